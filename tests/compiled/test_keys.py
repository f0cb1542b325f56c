"""Keys of the cache, as a property: what gives different results has different keys."""

import copy
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grubler as gb
from grubler.algebra.spatial import Transform
from grubler.compiled.problem import Problem
from mechanisms import mobile

FUNCTIONS = (
    (gb.forward_dynamics, {}),
    (gb.forward_dynamics, {"method": "projection"}),
    (gb.inverse_dynamics, {}),
    (gb.mass_matrix, {}),
    (gb.energy, {}),
    (gb.kinematics, {"inputs": ["q"]}),
    (gb.kinematics, {"inputs": ["q", "v"]}),
    (gb.inverse_dynamics, {"parameters": ["gravity"]}),
)
SMALL = st.floats(1e-3, 0.5)


@st.composite
def neighbours(draw, model: gb.Model) -> gb.Model:
    """The model with one thing of one body or of the world changed, through a copy of its parts.

    A change of a joint's placement would open loops, so that bodies in loops keep theirs."""
    by = draw(SMALL)
    what = draw(st.sampled_from(["gravity", "mass", "com", "inertia", "armature", "place", "name"]))
    if what in ("gravity", "mass", "com", "inertia"):
        values = gb.parameter_values(model, what)
        changed = np.array(values)
        at = draw(st.integers(0, changed.size - 1))
        changed.flat[at] = changed.flat[at] * (1 + by) if what in ("mass", "inertia") else by
        return gb.with_parameters(model, {what: changed})
    if what == "name":
        return replace(model, name=model.name + "'")
    alone = [c for c in model.clusters if not c.loops and len(c.bodies) == 1]
    if not alone:
        return model
    cluster = draw(st.sampled_from(alone))
    body = model.bodies[cluster.bodies[0]]
    if what == "armature":
        joint = replace(body.joint, armature=body.joint.armature + by)
    else:
        X = body.joint.placement
        joint = replace(body.joint, placement=Transform(X.E, X.r + np.array([by, 0.0, 0.0])))
    new = replace(body, joint=joint)
    bodies = tuple(new if b is body else b for b in model.bodies)
    embedding = replace(cluster.embedding, bodies=(new,))
    clusters = tuple(replace(c, embedding=embedding) if c is cluster else c for c in model.clusters)
    return replace(model, bodies=bodies, clusters=clusters)


def computed(model, fn, options, state):
    """(key, results) of what `compile` would be asked for, by the call that it traces."""
    problem = Problem.from_options(fn, model, options)
    arrays = [gb.parameter_values(model, n) if n in problem.parameters else state[n]
              for n in problem.names]  # fmt: skip
    out = problem(*arrays)
    return problem.key(), [np.asarray(x) for x in (out if isinstance(out, tuple) else (out,))]


def differ(a, b) -> bool:
    return len(a) != len(b) or any(not np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@given(data=st.data(), model=mobile(), seed=st.integers(0, 100))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_different_results_have_different_keys(data, model, seed):
    q, v = model.random_state(seed)
    a = np.random.default_rng(seed).uniform(-1, 1, model.nv)
    state = {"q": q, "v": v, "a": a, "tau": a}
    found = []
    for other in (model, data.draw(neighbours(model)), data.draw(neighbours(model))):
        found += [computed(other, fn, options, state) for fn, options in FUNCTIONS]
    assert all(key for key, _ in found)
    for i, (key, results) in enumerate(found):
        for other_key, others in found[:i]:
            if differ(results, others):
                assert key != other_key


@given(model=mobile())
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_equal_models_have_the_same_keys(model):
    again = copy.deepcopy(model)
    for fn, options in FUNCTIONS:
        keys = {Problem.from_options(fn, x, options).key() for x in (model, again)}
        assert len(keys) == 1 and all(keys)
