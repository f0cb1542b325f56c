"""Rows between two moving bodies against the same bodies on a joint of a tree."""

from itertools import pairwise

import numpy as np
import pytest
from cases import HANDS, LEGS
from pairs import JOINTS, SYMMETRIC, free, of_tree, tree, wrench_on
from test_rows import oblique

import grubler as gb
from conftest import load, relative
from grubler.algebra.symbolic import trace
from grubler.constrained import ClosedChain, Closure, Constraint, constrained_forward_dynamics

METHODS = ("kkt", "proximal", "pv", "pv_early", "ltl")
FAST = 8.0  # rad/s and m/s: velocity terms outweigh gravity


def fast_state(joint: str, seed: int):
    """(tree, its q, v and a, bodies): a joint without a motor, at large velocities."""
    model, rng = tree(joint), np.random.default_rng(seed)
    q, v = model.random_state(seed)[0], rng.uniform(-FAST, FAST, model.nv)
    a = gb.forward_dynamics(model, q, v, np.zeros(model.nv))
    return of_tree(model, q, v, a)


def stacked(bodies):
    """q, v and a of both bodies in one model."""
    return (np.concatenate([getattr(bodies[n], x) for n in "ab"]) for x in "qva")


def rows_matrix(rows):
    """K of unit rows."""
    K = np.eye(6)
    return {"point": K[3:], "weld": K}[rows] if isinstance(rows, str) else K[list(rows)]


def expected_multipliers(bodies, joint: str, name: str):
    """The forces on body `name`, from its acceleration alone."""
    wrench = wrench_on(bodies[name], name)
    if joint != "universal":
        K = rows_matrix(JOINTS[joint][1])
        assert np.abs(wrench - K.T @ K @ wrench).max() < 1e-9 * np.abs(wrench).max()
        return K @ wrench
    models = {n: free(n) for n in "ab"}
    R = {n: gb.frame_pose(models[n], bodies[n].q, f"{n}_port")[0] for n in "ab"}
    normal = np.cross((R["b"].T @ R["a"])[:, 0], np.eye(3)[1])
    moment = wrench[:3] @ normal / (normal @ normal)
    assert np.abs(wrench[:3] - moment * normal).max() < 1e-9 * np.abs(wrench).max()
    return np.concatenate([[moment], wrench[3:]])


@pytest.mark.parametrize("joint", JOINTS)
def test_two_free_bodies_on_rows_move_as_on_a_joint(joint):
    """Accelerations and constraint forces, by every method."""
    model = free("a", "b")
    for seed in range(3):
        bodies = fast_state(joint, seed)
        q, v, a = stacked(bodies)
        for frame, to in (("b", "a"), ("a", "b")) if joint in SYMMETRIC else (("b", "a"),):
            rows = [Constraint(f"{frame}_port", JOINTS[joint][1], to=f"{to}_port")]
            due = expected_multipliers(bodies, joint, frame)
            for method in METHODS:
                found = constrained_forward_dynamics(model, q, v, 0 * v, rows, method=method)
                assert relative(found.a, a) < 1e-10, method
                assert relative(found.multipliers, due) < 1e-10, method
                assert np.abs(found.residual).max() < 1e-10 * np.abs(a).max()


@pytest.mark.parametrize("joint", JOINTS)
def test_stabilised_rows_move_as_on_a_joint(joint):
    """Where positions and velocities meet the rows, stabilisation adds nothing, at any angle."""
    model = free("a", "b")
    target = np.zeros(3) if JOINTS[joint][1] == "point" else (np.eye(3), np.zeros(3))
    rows = [Constraint("b_port", JOINTS[joint][1], to="a_port", target=target, period=0.05)]
    for seed in range(3):
        q, v, a = stacked(fast_state(joint, seed))
        found = constrained_forward_dynamics(model, q, v, 0 * v, rows)
        assert relative(found.a, a) < 1e-10


@pytest.mark.parametrize("joint", JOINTS)
def test_traced_and_compiled(joint):
    model = free("a", "b")
    rows = (Constraint("b_port", JOINTS[joint][1], to="a_port"),)
    Q, V, A = (np.stack(x) for x in zip(*[stacked(fast_state(joint, s)) for s in range(3)]))
    for method in METHODS[1:]:

        def fn(q, v, tau, method=method):
            return constrained_forward_dynamics(model, q, v, tau, rows, method=method)[:2]

        found = trace(fn, [(14,), (12,), (12,)])(Q[0], V[0], 0 * V[0])
        assert relative(np.array(found[0]).ravel(), A[0]) < 1e-10, method
        code = gb.compile(constrained_forward_dynamics, model, constraints=rows, method=method)
        assert relative(code(Q, V, 0 * V)[0], A) < 1e-10, method


@pytest.mark.parametrize("method", ["pv_soft", "ltl_soft", "pv", "pv_early", "ltl", "proximal"])
@pytest.mark.parametrize("joint", ["hinge", "slider", "universal"])
def test_soft_rows(joint, method):
    """d/dt (K V) + R λ = 0: the accelerations that λ leaves are those of a desired -R λ."""
    model, R = free("a", "b"), 0.05
    q, v, _ = stacked(fast_state(joint, 1))
    given = {"rows": JOINTS[joint][1], "to": "a_port"}
    soft = Constraint("b_port", **given, softness=R)
    found = constrained_forward_dynamics(model, q, v, 0 * v, [soft], method=method)
    hard = Constraint("b_port", **given, acceleration=-R * found.multipliers)
    expected = constrained_forward_dynamics(model, q, v, 0 * v, [hard], method="kkt")
    assert relative(found.a, expected.a) < 1e-10


def relative_velocity(model, q, v, frame, to):
    """(velocity (6,) of a frame relative to another's body, E): in its axes, E from the other's."""
    (R, p), (R_to, p_to) = (gb.frame_pose(model, q, name) for name in (frame, to))
    V, V_to = (gb.frame_jacobian(model, q, name) @ v for name in (frame, to))
    E, r = R.T @ R_to, R_to.T @ (p - p_to)
    return V - np.concatenate([E @ V_to[:3], E @ (V_to[3:] + np.cross(V_to[:3], r))]), E


def derivative(fn, h=0.05):
    """The derivative at zero, by differences extrapolated to zero steps."""
    table = [(fn(h / 2**i) - fn(-h / 2**i)) / (2 * h / 2**i) for i in range(7)]
    for order in range(1, 7):
        w = 4.0**order
        table = [(w * b - a) / (w - 1) for a, b in pairwise(table)]
    return table[0]


PLACES = {
    "two bodies": (free("a", "b"), "b_port", "a_port"),
    "legs with rotors": (load("mini_cheetah"), LEGS[0], LEGS[1]),
    "rotor": (load("mini_cheetah"), "HL_hip_rotor", LEGS[2]),
    "oblique limbs": (oblique(), "frame5", "frame1"),
    "hands": (load("humanoid"), HANDS[0], HANDS[1]),
}


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("rows", ["point", "weld", "universal", (3, 4), (2, 3, 4, 5), "matrix"])
def test_accelerations_are_derivatives_of_what_rows_hold(rows, where):
    """In any state, also one that violates the rows and with frames far apart: differences in time
    of K V, of the point's velocity seen from the other body, of the angle's cosine."""
    (model, frame, to), rng = PLACES[where], np.random.default_rng(3)
    rows = rng.uniform(-1, 1, (3, 6)) if rows == "matrix" else rows
    q, v = model.random_state(1)[0], rng.uniform(-2, 2, model.nv)
    m = {"point": 3, "weld": 6, "universal": 4}[rows] if isinstance(rows, str) else len(rows)
    k = rng.uniform(-3, 3, m)
    constraint = [Constraint(frame, rows, to=to, acceleration=k)]
    found = constrained_forward_dynamics(model, q, v, 0 * v, constraint)
    speed = np.abs(found.a).max()

    def velocity(t):
        t = t / np.sqrt(1 + speed)
        there, now = model.integrate(q, v + 0.5 * t * found.a, t), v + t * found.a
        V, E = relative_velocity(model, there, now, frame, to)
        if isinstance(rows, str) and rows != "weld":
            seen = E.T @ V[3:]  # the rate of the position in the other's axes
            if rows == "point":
                return seen
            normal = np.cross(E[:, 0], np.eye(3)[1])
            return np.concatenate([[normal @ V[:3]], seen])
        return (rows_matrix(rows) if np.ndim(rows) < 2 else rows) @ V

    E = relative_velocity(model, q, v, frame, to)[1]
    due = k + found.residual  # six rows on fewer joints between the frames are not met
    if isinstance(rows, str) and rows != "weld":
        due = np.concatenate([due[:-3], E.T @ due[-3:]])
    rate = derivative(velocity) * np.sqrt(1 + speed)
    assert np.abs(rate - due).max() < 1e-11 * (100 + speed)


def momentum(models, states):
    """Total linear momentum, and angular about the origin."""
    total = np.zeros(6)
    for name, model in models.items():
        q, v = states[name][:2]
        c = gb.centroidal(model, q, v)
        total += np.concatenate([c.momentum[:3] + np.cross(c.com, c.momentum[3:]), c.momentum[3:]])
    return total


@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("compiled", [False, True])
def test_two_robots_on_a_closure_move_as_on_a_joint(joint, compiled):
    models = {n: free(n) for n in "ab"}
    closure = Closure("c", ("b", "b_port"), ("a", "a_port"), JOINTS[joint][1])
    chain = ClosedChain({"a": models["a"]}, {"b": models["b"]}, [closure], compiled=compiled)
    for seed in range(3):
        bodies = fast_state(joint, seed)
        states = {n: (x.q, x.v, None) for n, x in bodies.items()}
        for secondary_first in (False, True):
            found = chain.forward_dynamics(states, secondary_first=secondary_first)
            for n in "ab":
                assert relative(found.a[n], bodies[n].a) < 1e-10
            assert relative(found.forces["c"], expected_multipliers(bodies, joint, "b")) < 1e-10


@pytest.mark.parametrize("joint", JOINTS)
def test_impulses_are_those_of_a_joint(joint):
    """Two bodies with any velocities are caught on a joint: the velocities are those of the tree
    that are nearest in kinetic energy, and no momentum is lost, though ports may be apart."""
    rng, model = np.random.default_rng(5), tree(joint)
    q = model.random_state(2)[0]
    bodies = of_tree(model, q, np.zeros(model.nv), np.zeros(model.nv))
    models = {n: free(n) for n in "ab"}
    closure = Closure("c", ("b", "b_port"), ("a", "a_port"), JOINTS[joint][1])
    chain = ClosedChain({"a": models["a"]}, {"b": models["b"]}, [closure], compiled=False)
    states = {n: (bodies[n].q, rng.uniform(-FAST, FAST, 6), None) for n in "ab"}
    after = chain.impulse(states)
    J = np.concatenate([gb.frame_jacobian(model, q, n) for n in "ab"])
    p = np.concatenate([gb.mass_matrix(models[n], states[n][0]) @ states[n][1] for n in "ab"])
    due = J @ np.linalg.solve(gb.mass_matrix(model, q), J.T @ p)
    assert relative(np.concatenate([after[n] for n in "ab"]), due) < 1e-10
    left = {n: (states[n][0], after[n]) for n in "ab"}
    before = momentum(models, states)
    assert np.abs(momentum(models, left) - before).max() < 1e-12 * np.abs(before).max()


@pytest.mark.parametrize("rows", ["point", "weld", "universal", (0, 1, 3, 4, 5), (3,)])
def test_forces_are_equal_and_opposite_at_one_place_though_ports_are_apart(rows):
    """Momentum through impulse and motion, of bodies whose ports are half a metre apart."""
    models = {n: free(n, gravity=(0, 0, 0)) for n in "ab"}
    both = free("a", "b", gravity=(0, 0, 0))
    closure = Closure("c", ("b", "b_port"), ("a", "a_port"), rows)
    chain = ClosedChain({"a": models["a"]}, {"b": models["b"]}, [closure], compiled=False)
    q, v = both.random_state(3)
    a = constrained_forward_dynamics(both, q, v, 0 * v, [Constraint("b_port", rows, to="a_port")]).a
    states = {n: (q[7 * i : 7 * i + 7], v[6 * i : 6 * i + 6], None) for i, n in enumerate("ab")}
    start = momentum(models, states)
    caught = chain.impulse(states)
    assert np.abs(momentum(models, {n: (states[n][0], caught[n]) for n in "ab"}) - start).max() < (
        1e-12 * np.abs(start).max()
    )
    for accelerations in (chain.forward_dynamics(states).a, {"a": a[:6], "b": a[6:]}):
        force = sum(rate_of_momentum(models[n], *states[n][:2], accelerations[n]) for n in "ab")
        scale = np.abs(rate_of_momentum(models["a"], *states["a"][:2], accelerations["a"])).max()
        assert np.abs(force).max() < 1e-12 * scale


def rate_of_momentum(model, q, v, a):
    """[moment about the origin; force] that the motion of a free body needs."""
    R, p = gb.frame_pose(model, q, model.bodies[0].name)
    f = gb.inverse_dynamics(model, q, v, a)
    return np.concatenate([R @ f[:3] + np.cross(p, R @ f[3:]), R @ f[3:]])
