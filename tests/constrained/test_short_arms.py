"""Constraints on few joints on a fixed base: serial, branched, on rails and with loops."""

import numpy as np
import pytest
from cases import grow, hanging, in_many_digits, industrial_arm, serial, state

import grubler as gb
from conftest import load, relative
from grubler.constrained import Constraint, constrained_forward_dynamics
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.equations import prepared
from grubler.constrained.plan import planned
from grubler.constrained.pv_early import resolved_early
from grubler.constrained.rows import Wanted


def humanoid_arm() -> gb.Model:
    """Seven joints whose elbow stands off the line from shoulder to wrist, hanging at q = 0."""
    steps = ((0, 0, 0.1), (0, 0.16, 0), (0, 0.02, 0), (0.02, 0, -0.27), (-0.02, 0, -0.26),
             (0, 0, 0), (0, 0, 0))  # fmt: skip
    return serial("humanoid_arm", "zxzyzxy", steps)


def two_arms() -> gb.Model:
    """Three joints each on a trunk that turns, one of them with armature."""
    b = gb.ModelBuilder("two_arms")
    b.add_body("trunk", 3.0, com=(0.0, 0.02, 0.1), inertia=(0.1, 0, 0, 0.2, 0, 0.3))
    b.add_joint("waist", "revolute", "world", "trunk", armature=0.4)
    for side in ("left", "right"):
        b.add_frame(f"{side}_hand", grow(b, "trunk", side, 3), (0.05, 0.1, 0.2))
    return b.build()


@pytest.mark.parametrize("rows", ["weld", "point"])
def test_an_arm_that_hangs_straight(rows):
    """A shoulder that does not move the hand's row, and elsewhere: all digits, compiled and not."""
    model, constraints = humanoid_arm(), [Constraint("hand", rows)]
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    for seed in range(4):
        posture, v, tau = state(model, seed)
        for q in (posture, model.neutral()):
            expected = in_many_digits(model, q, v, tau, constraints)
            found = constrained_forward_dynamics(model, q, v, tau, constraints)
            for a, multipliers in (found[:2], code(q, v, tau)):
                assert relative(a, expected[0]) < 1e-12
                assert relative(multipliers, expected[1]) < 1e-12


SHORT = {
    "industrial": (industrial_arm, [Constraint("hand", "point")]),
    "tool": (industrial_arm, [Constraint("tool", "point")]),
    "humanoid": (humanoid_arm, [Constraint("hand", "point")]),
    "rail": (hanging, [Constraint("hand", "point")]),
    "finger": (hanging, [Constraint("tip", (3, 4, 5))]),
    "two arms": (two_arms, [Constraint("left_hand", (3,)), Constraint("right_hand", (4, 5))]),
    "leg": (lambda: load("mit_humanoid_leg"), [Constraint("toe_contact", (3, 5))]),
    "linkage": (lambda: load("planar_leg_linkage"), [Constraint("toe", (3,))]),
}


@pytest.mark.parametrize("name", SHORT)
def test_short_arms(name):
    """Serial, branched, on rails and with loops: as the dense solution."""
    build, constraints = SHORT[name]
    model = build()
    checked = tuple(checked_constraints(model, constraints))
    m, last = sum(c.m for c in checked), model.bodies[-1]
    for seed in range(6):
        q, v, tau = state(model, seed)
        rng = np.random.default_rng(seed)
        desired, push = rng.standard_normal(m), rng.standard_normal(6)
        equations = prepared(model, q, v, tau, checked, {last.index: push}, Wanted(desired))
        early = resolved_early(equations, planned(model, checked))
        a, multipliers = early.outputs(equations)
        expected = constrained_forward_dynamics(
            model, q, v, tau, constraints, {last.name: push}, method="kkt", desired=desired
        )
        due = 1e-11 + 1e-14 * np.max([mass for _, mass in early.row_masses], initial=1.0)
        assert relative(a, expected.a) < due
        assert relative(multipliers, expected.multipliers) < due


def test_a_short_arm_near_its_singular_postures():
    """Rows are carried there, as of any other robot."""
    model, constraints = industrial_arm(), [Constraint("tool", "point")]
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    for seed in range(20):
        q, v, tau = state(model, seed)
        if seed % 2:
            q[3:5] = 1e-7 * seed, 0.0  # elbow and wrist move the tool one way
        for found, wanted in zip(code(q, v, tau), in_many_digits(model, q, v, tau, constraints)):
            assert relative(found, wanted) < 1e-10
