"""A joint eliminated, against the same algebra on dense matrices; the sweep, layout and tree."""

import itertools

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler.algorithms.elimination import Elimination, eliminations, pushed
from grubler.algorithms.kinematics import path_jacobian
from grubler.algorithms.sweep import outward
from grubler.mechanism.layout import Layout

ROBOTS = ["arm7", "mini_cheetah", "joint_sampler", "loop_sampler", "quadruped", "tello"]


def joints(name):
    """Eliminations of all joints that have a parent, with random articulated inertias."""
    model, rng = load(name), np.random.default_rng(0)
    q, v = model.random_state(0)
    for state in outward(model, q, v):
        n = sum(state.sizes)
        A = rng.standard_normal((n, n + 2))
        yield Elimination(state, A @ A.T), rng


@pytest.mark.parametrize("name", ROBOTS)
def test_every_form_equals_the_dense_one(name):
    """Plain, with held axes, and projected: (49) to (56), for vectors and for columns."""
    for J, rng in joints(name):
        state, IA = J.state, J.IA
        S, R = state.S, 0.0 if state.R is None else state.R
        r = 0.0 if state.r is None else state.r
        U = IA @ S
        D = S.T @ U + R
        p, tau = rng.standard_normal(len(IA)), rng.standard_normal(S.shape[1])
        u = J.joint_force(p, tau)
        assert relative(u, tau - S.T @ p - r) < 1e-13
        if state.parent is None:
            qdd, a = J.motion(u, None)
            assert relative(D @ qdd, u) < 1e-11 and relative(a, S @ qdd) < 1e-13
            continue
        n = sum(state.parent.sizes)
        X = state.X.motions(np.eye(n))
        free = np.eye(len(IA)) - U @ np.linalg.solve(D, S.T)
        F, A = rng.standard_normal((len(IA), 3)), rng.standard_normal((n, 3))
        a_parent = rng.standard_normal(n)
        qdd, a = J.motion(u, a_parent)
        expected = np.linalg.solve(D, u - U.T @ X @ a_parent)
        assert relative(J.inertia(), X.T @ (IA - U @ np.linalg.solve(D, U.T)) @ X) < 1e-11
        assert relative(J.bias(p, tau, u), X.T @ (p + U @ np.linalg.solve(D, u))) < 1e-11
        assert relative(qdd, expected) < 1e-11
        assert relative(a, X @ a_parent + S @ expected) < 1e-11
        assert relative(J.forces(F), X.T @ free @ F) < 1e-11
        assert relative(J.motions(A), free.T @ X @ A) < 1e-11


def test_robots_here_use_all_forms():
    held, projected, plain = 0, 0, 0
    for name in ROBOTS:
        for J, _ in joints(name):
            held += J.held is not None
            projected += J.W is not None
            plain += J.held is None and J.W is None and J.state.parent is not None
    assert held > 5 and projected > 5 and plain > 0


@pytest.mark.parametrize("name", ROBOTS)
def test_pushed_is_the_inverse_mass_matrix_on_forces(name):
    model, rng = load(name), np.random.default_rng(1)
    q, _ = model.random_state(1)
    sweep = outward(model, q)
    forces = [rng.standard_normal(sum(state.sizes)) for state in sweep]
    tau = np.zeros(model.nv)
    for k, f in enumerate(forces):
        for j, columns in path_jacobian(sweep, k, f[:, None]).items():
            tau[model.clusters[j].v] += columns[0]
    expected = np.linalg.solve(gb.mass_matrix(model, q), tau)
    assert relative(pushed(eliminations(sweep), forces), expected) < 1e-9


@pytest.mark.parametrize("name", ["mini_cheetah", "loop_sampler"])
def test_paths_in_the_tree(name):
    tree, clusters = load(name).tree, load(name).clusters
    for k, cluster in enumerate(clusters):
        path = tree.inward(k)
        assert path[0] == k and clusters[path[-1]].parent is None
        assert all(clusters[a].parent == b for a, b in itertools.pairwise(path))
        assert tree.outward(k) == path[::-1]
        assert [tree.locate(body) for body in cluster.bodies] == [
            (k, i) for i in range(len(cluster.bodies))
        ]
        for other in range(len(clusters)):
            shared = [c for c in path if c in tree.inward(other)]
            assert tree.common(k, other) == (shared[0] if shared else None)
            if shared:
                assert tree.between(shared[0], k) == path[: path.index(shared[0])][::-1]


@pytest.mark.parametrize("name", ["joint_sampler", "mini_cheetah", "tello_explicit"])
def test_a_layout_splits_and_stacks(name):
    """Slices follow each other and names belong to them, quaternions included."""
    model = load(name)
    for layout, n, names in (
        (model.spanning, model.nv_span, model.spanning_names),
        (model.layout, model.nq, model.q_names),
    ):
        velocities = names is model.spanning_names
        places = list((layout.v if velocities else layout.q).values())
        assert [x.start for x in places] == [0, *(x.stop for x in places[:-1])]
        assert places[-1].stop == n == len(names)
        x = np.arange(float(n))
        parts = layout.split_v(x) if velocities else layout.split_q(x)
        assert np.array_equal(layout.stack(parts), x)
        for i, place in (layout.v if velocities else layout.q).items():
            assert all(n.startswith(model.bodies[i].joint.name) for n in names[place])
    q, _ = model.random_state(0)
    for place in model.layout.quaternions.values():
        assert abs(np.linalg.norm(q[place]) - 1) < 1e-12
    assert Layout([]).nq == 0 and Layout([]).stack({}).shape == (0,)
