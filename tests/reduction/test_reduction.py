"""Rearranged frames and inertias: the same robot, judged by Newton's law for each body as given."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import grubler as gb
from conftest import relative
from grubler import compiler
from grubler.algebra.spatial import (
    OnFixedOrigin,
    Transform,
    Turn,
    TurnThenShift,
    cross_force,
    rpy_matrix,
    spatial_inertia,
)
from grubler.algebra.symbolic import trace
from grubler.algorithms.c_rnea import joint_forces, net_forces
from grubler.algorithms.newton_euler import accelerated
from grubler.algorithms.sweep import outward
from grubler.constrained import Constraint, constrained_forward_dynamics
from grubler.mechanism.joints import KINDS, Revolute
from grubler.reduction.reduced import TURN, reduced, reframed
from mechanisms import mobile

AXES = (np.array([0.0, 0.0, 1.0]), np.array([0.0, -1.0, 0.0]), np.array([1.0, 2.0, -0.5]))
# how many numbers of ten a joint does not feel
UNFELT = {
    "revolute": 3, "continuous": 3, "prismatic": 6, "universal": 1, "spherical": 1,
    "helical": 0, "cylindrical": 0, "planar": 0, "free": 0,
}  # fmt: skip
DENSE = ("gt_chain", "pbt_chain", "robot_a", "robot_b")


def some_inertia(seed):
    rng = np.random.default_rng(seed)
    spread = rng.uniform(-1, 1, (3, 3))
    S = spread @ spread.T
    return spatial_inertia(rng.uniform(0.5, 2), rng.uniform(-1, 1, 3), np.trace(S) * np.eye(3) - S)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("kind", UNFELT)
def test_what_a_joint_does_not_feel(kind, axis):
    options = {} if kind in ("spherical", "free") else {"axis": axis}
    if kind == "universal":
        options["axis2"] = np.array([0.3, -0.2, 1.0])
    if kind == "helical":
        options["pitch"] = 0.1
    joint, rng, parts = KINDS[kind](**options), np.random.default_rng(0), []
    for seed in range(12):
        J = joint.unfelt(some_inertia(seed))
        parts.append(J.ravel())
        for _ in range(3):
            q = joint.integrate(joint.neutral(), rng.uniform(-2, 2, joint.nv))
            assert np.abs(J @ joint.subspace(q)).max() < 1e-14
            assert np.abs(joint.transform(q).congruence(J) - J).max() < 1e-13
    assert np.linalg.matrix_rank(np.stack(parts), tol=1e-9) == UNFELT[kind]


def newton(model, q, v, a):
    """tau by virtual work, body by body, from poses alone: no recursion over forces."""
    motion = gb.kinematics(model, q, v, a)
    unit = [gb.kinematics(model, q, e).velocity for e in np.eye(model.nv)]
    tau = np.zeros(model.nv)
    for body in model.bodies:
        i, I = body.index, body.spatial
        pull = np.concatenate([np.zeros(3), motion.rotation[i].T @ model.gravity])
        momentum = I @ motion.velocity[i]
        force = I @ (motion.acceleration[i] - pull) + cross_force(motion.velocity[i], momentum)
        tau += np.array([u[i] @ force for u in unit])
    if any(joint.armature for joint in model.joints):
        raise NotImplementedError("armature is no body's")
    return tau


def obeys_newton(model, seed):
    q, v = model.random_state(seed)
    a = np.random.default_rng(seed).uniform(-1, 1, model.nv)
    tau = newton(model, q, v, a)
    assert relative(gb.inverse_dynamics(model, q, v, a), tau) < 1e-11
    assert relative(gb.mass_matrix(model, q) @ a + gb.bias_force(model, q, v), tau) < 1e-11
    back = gb.forward_dynamics(model, q, v, tau)
    M = gb.mass_matrix(model, q)
    assert np.abs(M @ (back - a)).max() < 1e-11 * (1 + np.abs(tau).max())


def test_every_robot_obeys_newton(model):
    for seed in range(2):
        obeys_newton(model, seed)


@given(model=mobile())
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_random_mechanisms_obey_newton(model):
    obeys_newton(model, 0)


@pytest.mark.parametrize("name", DENSE)
def test_frames_make_placements_sparse(name):
    model = gb.robots.load(name, n=6, seed=2)
    assert any(np.count_nonzero(body.joint.placement.E) > TURN for body in model.bodies)
    bodies, _ = reframed(model.bodies, frozenset())
    parents = {body.parent for body in bodies}
    for body in bodies:
        placement = body.joint.placement
        assert np.abs(placement.E @ placement.E.T - np.eye(3)).max() < 1e-13
        if body.parent >= 0 and body.index in parents:  # a link on a link
            assert np.count_nonzero(placement.E) <= TURN
            assert placement.r[1] == 0.0


def test_hinges_slide_along_their_axes():
    """The shoulder of an arm, three axes through one point, is one point afterwards."""
    model = gb.robots.load("arm7")
    before, after = model.bodies, reduced(model, frozenset()).bodies
    assert np.any(before[2].joint.placement.r) and not np.any(after[2].joint.placement.r)
    kept = reduced(model, frozenset({2})).bodies
    np.testing.assert_array_equal(kept[2].joint.placement.r, before[2].joint.placement.r)
    # a knee in the plane of its leg stays there, and keeps its inertia's zeros
    quadruped = gb.robots.load("quadruped")
    for body, same in zip(quadruped.bodies, reduced(quadruped, frozenset()).bodies):
        np.testing.assert_array_equal(body.joint.placement.r, same.joint.placement.r)


def test_limbs_turn_first_where_they_leave_an_origin_at_rest():
    """The elbow of an arm, away from its shoulder: the same transform, of fewer operations."""
    arm = gb.robots.load("arm7")
    joints = [body.joint for body in reduced(arm, frozenset()).bodies]
    assert [isinstance(joint.placement, OnFixedOrigin) for joint in joints] == [
        i == 3 for i in range(7)
    ]
    elbow, rng = joints[3], np.random.default_rng(0)
    X = elbow.transform(np.array([0.7]))
    plain = Transform(X.E, X.r)
    assert isinstance(X, TurnThenShift) and np.abs(X.matrix() - plain.matrix()).max() == 0.0
    m, M, I = rng.normal(size=6), rng.normal(size=(6, 3)), some_inertia(0)
    for name, x in (
        ("motion", m), ("motions", M), ("force_back", m), ("forces_back", M),
        ("congruence", I), ("rigid_congruence", I), ("rotate", m[:3]), ("rotate_back", m[:3]),
    ):  # fmt: skip
        assert np.abs(getattr(X, name)(x) - getattr(plain, name)(x)).max() < 1e-14, name
    assert gb.count_operations(gb.forward_dynamics, arm).total < 1150


def test_frames_stay_near_on_almost_parallel_axes():
    b = gb.ModelBuilder("almost parallel")
    parent = "world"
    for i in range(4):
        b.add_body(f"b{i}", 1.0, (0.1, 0.05, 0.0), (0.1, 0, 0, 0.1, 0, 0.1))
        b.add_joint(f"j{i}", "revolute", parent, f"b{i}", xyz=(0.3, 0.2, 0.1),
                    rpy=(1e-5 * i, 0.7e-5, 0.4), axis=(0, 0, 1))  # fmt: skip
        parent = f"b{i}"
    model = b.build()
    for body in reframed(model.bodies, frozenset())[0]:
        assert np.abs(body.joint.placement.r).max() < 2.0
    obeys_newton(model, 0)


def test_bodies_with_a_frame_keep_theirs_and_forces_are_carried_to_new_ones():
    model = gb.robots.load("gt_chain", n=4, seed=1)
    i = model.body("link-2").index
    assert reduced(model, frozenset({i})).bodies[i].joint.motion is model.bodies[i].joint.motion
    q, v = model.random_state(0)
    a = np.zeros(model.nv)
    wrench = np.random.default_rng(0).normal(size=6)
    with_force = gb.inverse_dynamics(model, q, v, a, f_ext={"link-2": wrench})
    J = gb.frame_jacobian(model, q, "link-2")
    assert relative(gb.inverse_dynamics(model, q, v, a) - J.T @ wrench, with_force) < 1e-11


def test_constant_inertias_are_turned_by_their_harmonics():
    placement = Transform(rpy_matrix(0.3, -0.7, 1.1).T, np.array([0.2, -0.1, 0.4]))
    I = some_inertia(3)
    for axis in range(3):
        traced = trace(
            lambda x, k=axis: Turn(k, np.cos(x[0]), np.sin(x[0])).after(placement).congruence(I),
            [(1,)],
        )
        for angle in (0.0, 0.4, 2.5, -1.7):
            E = Turn(axis, np.cos(angle), np.sin(angle)) @ placement
            dense = E.matrix().T @ I @ E.matrix()
            assert np.abs(np.array(traced(angle)) - dense).max() < 1e-14 * np.abs(dense).max()


def test_fewer_operations_than_described_frames_take():
    """What the rearrangement is for: a third of a dense chain's operations."""
    model = gb.robots.load("gt_chain", n=6, seed=1)

    def described(model, q, v, a):
        motion = accelerated(outward(model, q, v, keep_frame=range(len(model.bodies))), a)
        return joint_forces(motion, net_forces(motion))

    plain = gb.count_operations(described, model).total
    assert gb.count_operations(gb.inverse_dynamics, model).total < 0.85 * plain


class Nut(Revolute):
    """A user's joint that turns and advances: it inherits from a hinge, and is none."""

    def transform(self, q):
        turn = super().transform(q)
        return Transform(turn.E, turn.r + 0.05 * q[0] * self.axis)

    def subspace(self, q):
        return np.concatenate([self.axis, 0.05 * self.axis])[:, None]


def test_a_joint_that_inherits_from_a_hinge_is_not_taken_for_one(monkeypatch):
    monkeypatch.setitem(KINDS, "nut", Nut)
    b = gb.ModelBuilder("nut")
    parent = "world"
    for name, axis in (("nut", (0, 0, 1)), ("knob", (0, 1, 0))):
        b.add_body(name, 1.0, (0.1, 0.05, 0.02), (0.1, 0.01, 0, 0.12, 0, 0.09))
        b.add_joint(f"{name}_joint", "nut", parent, name, rpy=(0.3, 0.2, 0.1), axis=axis)
        parent = name
    b.add_body("rotor", 0.2, (0, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1))
    b.add_joint("rotor_joint", "nut", "knob", "rotor", rpy=(1.0, 0, 0))
    obeys_newton(b.build(), 0)


def other_numbers(model, names, rng):
    """Values of parameters, each body's changed at random; inertias stay positive definite."""
    values = {name: gb.parameter_values(model, name) for name in names}
    change = {
        "mass": lambda x: x * rng.uniform(0.5, 1.5, x.shape),
        "com": lambda x: x + rng.uniform(-0.05, 0.05, x.shape),
        "inertia": lambda x: (
            x
            + rng.uniform(-0.1, 0.1, x.shape) * np.abs(x).max(1)[:, None]
            + np.abs(x).max(1)[:, None] * np.array([1.0, 0, 0, 1.0, 0, 1.0])
        ),
    }
    return {name: change[name](x) for name, x in values.items()}


@pytest.mark.parametrize("names", [("mass",), ("com",), ("mass", "com", "inertia")])
def test_frames_chosen_by_structure_serve_all_values_of_parameters(model, names):
    """Against the spanning tree of a model that is built with these numbers, projected."""
    rng = np.random.default_rng(7)
    values = other_numbers(model, names, rng)
    q, v = model.random_state(0)
    x = rng.uniform(-2, 2, model.nv)

    def both(q, v, x, *given):
        changed = gb.with_parameters(model, dict(zip(names, given, strict=True)))
        tau = gb.inverse_dynamics(changed, q, v, x)
        return tau, gb.forward_dynamics(changed, q, v, tau)

    shapes = [a.shape for a in (q, v, x, *values.values())]
    tape = compiler.trace(both, shapes)
    tau, back = compiler.evaluate(tape, q, v, x, *values.values())
    other = gb.with_parameters(model, values)
    assert relative(tau, gb.inverse_dynamics(other, q, v, x, method="projected")) < 1e-11
    assert relative(back, x) < 1e-8


@pytest.mark.parametrize(
    "robot, most",
    [("arm7", 1.18), ("jvrc1", 1.11), ("mini_cheetah", 1.16), ("robot_a", 1.35), ("six_bar", 1.05)],
)
def test_masses_as_inputs_leave_most_of_the_reduction(robot, most):
    """Frames depend on numbers that stay, and base parameters move where axes are parallel."""
    model = gb.robots.load(robot)
    free = gb.count_operations(gb.forward_dynamics, model).total
    given = gb.count_operations(gb.forward_dynamics, model, parameters=["mass"]).total
    assert given < most * free


def test_constraints_on_a_robot_whose_masses_are_inputs():
    model = gb.robots.load("mini_cheetah")
    q, v = model.random_state(1)
    feet = [Constraint(f"{leg}_foot_contact", "point") for leg in ("HR", "FL")]
    values = other_numbers(model, ("mass",), np.random.default_rng(3))
    given = {"constraints": tuple(feet), "parameters": ["mass"]}
    fn = gb.compile(constrained_forward_dynamics, model, **given)
    a, multipliers = fn(q, v, np.ones(model.nv), values["mass"])
    other = gb.with_parameters(model, values)
    expected = constrained_forward_dynamics(other, q, v, np.ones(model.nv), feet, method="kkt")
    assert relative(a, expected.a) < 1e-9
    assert relative(multipliers, expected.multipliers) < 1e-9
