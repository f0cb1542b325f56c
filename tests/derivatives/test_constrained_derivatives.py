"""Derivatives of constrained forward dynamics and of frames' motion against independent ones."""

import numpy as np
import pytest
from differences import by_q, by_vector, tangent

import grubler as gb
from conftest import load, relative
from grubler.algebra.symbolic import Derivative

C = gb.Constraint
FEET = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]
SETS = {
    "feet": ("mini_cheetah", [C(foot, "point") for foot in FEET]),
    "feet, one on another": (
        "mini_cheetah", [C(FEET[0], "point"), C(FEET[2], "point", to=FEET[3])],
    ),
    "welded to another foot": ("quadruped", [C("torso-contact-1"), C(FEET[0], "point")]),
    "soft weld": ("tello", [C("left-toe_contact", softness=1e-3)]),
    "targets": ("arm7", [C("panda_hand_tcp", "point", target=(0.4, 0.1, 0.5))]),
    "held pose": (
        "arm7",
        [C("panda_hand_tcp", target=(np.eye(3), (0.4, 0.1, 0.5)), softness=0.1, period=0.3)],
    ),
    "universal": ("mini_cheetah", [C(FEET[0], "universal", to=FEET[1], period=0.2)]),
    "universal with the world": ("arm7", [C("panda_hand_tcp", "universal")]),
    "a loop's pin": ("four_bar", [C("pin", (3,), softness=1e-3)]),
    "a loop's tip": ("six_bar", [C("tip", (3, 4), softness=1e-2)]),
    "rod": ("joint_sampler", [C("hand", "point"), C("rim", (3,))]),
}  # fmt: skip


def state(model, seed):
    q, v = model.random_state(seed)
    rng = np.random.default_rng(seed)
    return q, v / 2, rng.uniform(-5, 5, model.nv), rng.normal(size=(len(model.bodies), 6))


@pytest.mark.parametrize("case", SETS)
def test_equals_the_differentiated_factorization(case):
    """LTL's own expressions, differentiated: exact, by another path."""
    robot, constraints = SETS[case]
    model = load(robot)
    nb, n = len(model.bodies), model.nv

    def solve(q, v, tau, f):
        f = np.stack([f[6 * i : 6 * i + 6] for i in range(nb)])
        return gb.constrained_forward_dynamics(model, q, v, tau, constraints, f, method="ltl")[:2]

    known = Derivative(solve, (model.nq, n, n, 6 * nb), wrt=3)
    for seed in range(3):
        q, v, tau, f = state(model, seed)
        ours = gb.constrained_forward_dynamics_derivatives(model, q, v, tau, constraints, f)
        size = np.abs(gb.constrained_forward_dynamics(model, q, v, tau, constraints, f).a).max()
        T = tangent(model, q)
        for part, rows in enumerate(known(q, v, tau, f.ravel())):
            for got, want in zip(ours[3 * part : 3 * part + 3], (rows[0] @ T, *rows[1:])):
                eps = 1e-9 if "held" in case or "tip" in case else 1e-10
                assert np.abs(got - want).max() < eps * max(np.abs(want).max(), size), case


def test_a_driven_place():
    model = load("mini_cheetah")
    constraints = [C(FEET[0], "point", driven=True, target=(0.1, 0.2, 0.0)), C(FEET[3], "point")]
    q, v, tau, _ = state(model, 3)
    motion = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 6))

    def solve(q, v, tau):
        out = gb.constrained_forward_dynamics(model, q, v, tau, constraints, motion=motion)
        return np.concatenate(out[:2])

    ours = gb.constrained_forward_dynamics_derivatives(model, q, v, tau, constraints, motion=motion)
    known = (
        by_q(model, lambda q: solve(q, v, tau), q),
        by_vector(lambda v: solve(q, v, tau), v),
        by_vector(lambda tau: solve(q, v, tau), tau),
    )
    for i, want in enumerate(known):
        assert relative(np.concatenate([ours[i], ours[3 + i]]), want) < 1e-7


def test_redundant_points_of_a_foot_share_their_force():
    model = load("quadruped")
    names = [f"torso-contact-{i}" for i in range(1, 5)]
    constraints = [C(name, "point") for name in names]
    q, v, tau, _ = state(model, 5)

    def solve(q, v, tau):
        return np.concatenate(gb.constrained_forward_dynamics(model, q, v, tau, constraints)[:2])

    ours = gb.constrained_forward_dynamics_derivatives(model, q, v, tau, constraints)
    want = by_q(model, lambda q: solve(q, v, tau), q)
    assert relative(np.concatenate([ours[0], ours[3]]), want) < 1e-6


def test_rows_that_depend_on_each_other_are_refused():
    model = load("four_bar")
    constraints = [C("pin", (3,)), C("pin", (3, 4), to=None)]
    q, v, tau, _ = state(model, 0)
    with pytest.raises(gb.InputError, match=r"depend on each other|redundant"):
        gb.constrained_forward_dynamics_derivatives(model, q, v, tau, constraints)


def test_without_constraints_it_is_forward_dynamics():
    model = load("tello")
    q, v, tau, f = state(model, 1)
    ours = gb.constrained_forward_dynamics_derivatives(model, q, v, tau, [], f)
    for got, want in zip(ours, gb.forward_dynamics_derivatives(model, q, v, tau, f), strict=False):
        assert relative(got, want) < 1e-11
    assert all(x.shape == (0, model.nv) for x in ours[3:])


def test_compiled_agrees():
    model, constraints = load("mini_cheetah"), SETS["feet"][1]
    q, v, tau, _ = state(model, 2)
    fn = gb.compile(gb.constrained_forward_dynamics_derivatives, model, constraints=constraints)
    want = gb.constrained_forward_dynamics_derivatives(model, q, v, tau, constraints)
    for got, expected in zip(fn(q, v, tau), want, strict=True):
        assert relative(got, expected) < 1e-10


@pytest.mark.parametrize("robot", ["mini_cheetah", "tello", "six_bar", "joint_sampler"])
def test_motion_of_a_frame(robot):
    model = load(robot)
    frame = model.bodies[-1].name
    q, v, a, _ = state(model, 6)

    def velocity(q, v):
        return gb.frame_jacobian(model, q, frame) @ v

    def acceleration(q, v, a):
        bias = gb.frame_acceleration_bias(model, q, v, frame)
        return gb.frame_jacobian(model, q, frame) @ a + bias

    first = gb.frame_velocity_derivatives(model, q, v, frame)
    second = gb.frame_acceleration_derivatives(model, q, v, a, frame)
    assert relative(first.dv_dq, by_q(model, lambda q: velocity(q, v), q)) < 1e-7
    assert relative(first.dv_dv, gb.frame_jacobian(model, q, frame)) < 1e-12
    assert relative(second.da_dq, by_q(model, lambda q: acceleration(q, v, a), q)) < 1e-7
    assert relative(second.da_dv, by_vector(lambda v: acceleration(q, v, a), v)) < 1e-7
    assert relative(second.da_da, gb.frame_jacobian(model, q, frame)) < 1e-12
