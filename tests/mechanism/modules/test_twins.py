"""Every analytic module equals its numeric twin in position, velocity and acceleration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grubler as gb
from grubler.algebra.symbolic import Differentiable
from grubler.mechanism.loops.modules import ClosedForm, module_name
from grubler.model.exchange import (
    analytic,
    convert_acceleration,
    convert_configuration,
    convert_force,
    convert_velocity,
    numeric,
)
from linkages import MECHANISMS, planar_ring


@pytest.fixture(params=MECHANISMS, scope="module")
def twins(request):
    make, _ = MECHANISMS[request.param]
    model = make()
    return model, analytic(model)


def forms(model) -> list[ClosedForm]:
    return [
        step
        for cluster in model.clusters
        for step in getattr(cluster.embedding, "steps", ())
        if isinstance(step, ClosedForm)
    ]


@pytest.mark.parametrize("name", MECHANISMS)
def test_recognised_by_structure(name):
    make, what = MECHANISMS[name]
    closed = analytic(make())
    names = [module_name(c.embedding.steps) for c in closed.clusters if c.loops]
    assert names == [what]
    assert not any(cluster.embedding.implicit for cluster in closed.clusters)


def test_equal_to_the_numeric_twin(twins):
    """The numeric side finds its own way from the reference to random configurations."""
    model, closed = twins
    rng = np.random.default_rng(0)
    for seed in range(8):
        q, v = model.random_state(seed)
        a, tau = rng.uniform(-2, 2, (2, model.nv))
        y = convert_configuration(model, closed, q)
        w = convert_velocity(model, closed, q, v)
        b = convert_acceleration(model, closed, q, v, a)
        one, two = gb.spanning_state(model, q, v, a), gb.spanning_state(closed, y, w, b)
        assert _turned(one.positions - two.positions) < 1e-9
        for x, z in zip(one[1:], two[1:], strict=True):
            assert np.abs(x - z).max() < 1e-9 * (1 + np.abs(x).max())
        force = convert_force(model, closed, q, tau)
        moved = convert_acceleration(model, closed, q, v, gb.forward_dynamics(model, q, v, tau))
        again = gb.forward_dynamics(closed, y, w, force)
        assert np.abs(moved - again).max() < 1e-9 * (1 + np.abs(moved).max())


def _turned(difference) -> float:
    """The largest difference, full turns left out."""
    return np.abs(np.angle(np.exp(1j * difference))).max()


def test_closed_and_regular(twins):
    _, closed = twins
    for seed in range(5):
        q, v = closed.random_state(seed)
        assert closed.loop_gap(q) < 1e-12
        for cluster in closed.clusters:
            if cluster.loops:
                joint = cluster.embedding
                positions = joint.positions(q[cluster.q])
                G, rates, g = joint.velocity_map(positions, v[cluster.v])
                for loop in cluster.loops:
                    blocks, k = loop.linearize(positions, rates)
                    KG = sum(K @ G[joint.columns[i]] for i, K in blocks.items())
                    Kg = sum(K @ g[i] for i, K in blocks.items())
                    assert np.abs(KG).max() < 1e-12 and np.abs(Kg - k).max() < 1e-11


def test_derivatives_are_those_of_gamma(twins):
    _, closed = twins
    positions = closed.unpack(closed.random_state(3)[0])
    rng = np.random.default_rng(1)
    for step in forms(closed):
        if any(body.joint.nq != body.joint.nv for body in step.inputs):
            continue
        x = step._gather(positions)
        d = rng.uniform(-1, 1, len(x))
        gamma = Differentiable(step.value, len(x))
        assert np.allclose(step.value(x), gamma.value(x), atol=1e-13)
        J, bend = step.jacobian(x), step.curvature(x, d)
        slopes = np.stack([_moved(step, positions, column) for column in J.T], axis=1)
        assert np.allclose(slopes, gamma.jacobian(x), rtol=1e-9, atol=1e-11)
        second = _moved(step, positions, bend) + _moved(step, positions, J @ d, "second")
        assert np.allclose(second, gamma.curvature(x, d), rtol=1e-8, atol=1e-10)


def _moved(step, positions, velocities, method="derivative") -> np.ndarray:
    """Derivatives of the outputs' positions from their velocities: of a ball, its quaternion's."""
    by_body = step._spread(step.outputs, velocities, velocities=True)
    return np.concatenate([
        getattr(body.joint.motion, method)(positions[body.index], by_body[body.index])
        for body in step.outputs
    ])  # fmt: skip


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_other_branch(name):
    model = MECHANISMS[name][0]()
    closed = analytic(model)
    loops = [form.name for form in forms(closed)]
    try:
        other = analytic(model, branches=dict.fromkeys(loops, "other"))
    except gb.ClosureError:
        pytest.fail("the other branch closes at the reference, too")
    assert [f.branch for f in forms(other)] == [-f.branch for f in forms(closed)]
    q, v = other.random_state(1)
    assert other.loop_gap(q) < 1e-12
    spans = [m.unpack(q) for m in (closed, other)]
    solved = [b.index for f in forms(closed) for b in f.outputs]
    assert max(np.abs(spans[0][i] - spans[1][i]).max() for i in solved) > 1e-3
    twin = numeric(other)
    at, a = convert_configuration(other, twin, q), np.ones(other.nv)
    w = convert_velocity(other, twin, q, v)
    b = convert_acceleration(other, twin, q, v, a)
    for x, y in zip(gb.spanning_state(other, q, v, a), gb.spanning_state(twin, at, w, b)):
        assert np.abs(x - y).max() < 1e-9 * (1 + np.abs(x).max())
    chosen = {f.name: f.branch for f in forms(closed)}
    again = analytic(model, branches=chosen)
    assert np.array_equal(again.neutral(), closed.neutral())


@pytest.mark.parametrize("name", ["four_bar", "lambda", "2SPU+1U", "2RUS+1U", "6-UPS, on balls"])
def test_compiled(name):
    closed = analytic(MECHANISMS[name][0]())
    compiled = gb.compile(gb.spanning_state, closed, inputs=["q", "v", "a"])
    rng = np.random.default_rng(0)
    states = [closed.random_state(seed) for seed in range(20)]
    q, v = (np.array(x) for x in zip(*states))
    a = rng.uniform(-1, 1, v.shape)
    out = compiled(q, v, a)
    for i in range(len(q)):
        for x, y in zip(out, gb.spanning_state(closed, q[i], v[i], a[i])):
            assert np.allclose(x[i], y, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", ["four_bar", "lambda", "2SPU+1U", "2RUS+1U"])
def test_solved_angles_need_no_trigonometry(name):
    """A closed form finds cosines and sines: the dynamics takes those, and no angle."""
    closed = analytic(MECHANISMS[name][0]())
    count = gb.count_operations(gb.inverse_dynamics, closed)
    turning = [body for body in closed.bodies if body.joint.kind in ("revolute", "continuous")]
    free = [body for body in turning if body.joint.name in closed.v_names]
    assert count.trigonometric <= 2 * len(free) < 2 * len(turning)


def test_fewer_operations_than_newton():
    model = MECHANISMS["2SPU+1U"][0]()

    def state(model, q, v, a):
        q, _ = gb.assemble(model, q)
        return tuple(gb.spanning_state(model, q, v, a))

    closed = gb.count_operations(state, analytic(model)).total
    step = gb.count_operations(gb.assemble, model).total
    assert closed < gb.count_operations(state, model).total + 3 * step


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sides=st.sampled_from([("rr", "r"), ("rrr", ""), ("rp", "r"), ("r", "pr"), ("pr", "r"),
                           ("rr", "rr"), ("rrp", "r"), ("prr", "r"), ("rpr", "r"), ("r", "rp")]),
    kind=st.sampled_from(["revolute", "ball"]),
)  # fmt: skip
def test_random_planar_loops(seed, sides, kind):
    """Chains of any shape between any two bodies, in any plane, cut anywhere."""
    check_ring(planar_ring(seed, *sides, kind), seed)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sides=st.sampled_from([("rrr", ""), ("rr", "r"), ("rr", "rr"), ("r", "rrr"), ("rp", "rr")]),
    kind=st.sampled_from(["fixed", "prismatic"]),
)
def test_random_planar_loops_closed_by_welds_and_sliders(seed, sides, kind):
    if kind == "fixed" and len("".join(sides)) < 4:
        return  # no freedom is left
    check_ring(planar_ring(seed, *sides, kind), seed)


def check_ring(model, seed):
    if model is None:
        return
    closed = analytic(model)
    assert not any(cluster.embedding.implicit for cluster in closed.clusters)
    rng = np.random.default_rng(seed)
    q = closed.integrate(closed.neutral(), rng.uniform(-1, 1, closed.nv), 0.02)
    if not np.all(np.isfinite(np.concatenate(list(closed.unpack(q).values())))):
        return  # out of reach: the draw was near a dead point
    assert closed.loop_gap(q) < 1e-10
    twin = numeric(closed)
    at = convert_configuration(closed, twin, q)
    v, a = rng.uniform(-1, 1, (2, closed.nv))
    w = convert_velocity(closed, twin, q, v)
    b = convert_acceleration(closed, twin, q, v, a)
    one, two = gb.spanning_state(closed, q, v, a), gb.spanning_state(twin, at, w, b)
    for x, y in zip(one, two, strict=True):
        assert np.abs(x - y).max() < 1e-8 * (1 + np.abs(x).max())
