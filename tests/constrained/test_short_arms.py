"""Few joints on a fixed base: rows carried across them, and all joints at once."""

import importlib

import numpy as np
import pytest
from cases import grow, hanging, in_many_digits, industrial_arm, serial, state

import grubler as gb
from conftest import load, relative
from grubler.constrained import Constraint, constrained_forward_dynamics
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.rows import Wanted
from grubler.constrained.structure import short_arm

pv_early = importlib.import_module("grubler.constrained.pv_early")


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
def test_rows_are_carried_next_to_a_fixed_base(rows):
    """From whichever joint on, the accelerations are the same; and with the hand welded a row that
    the shoulder does not move, the arm hanging straight, is no longer too heavy."""
    model, constraints = humanoid_arm(), [Constraint("hand", rows)]
    checked = tuple(checked_constraints(model, constraints))
    light, ways = {}, [*pv_early.NEAR, *([None] if short_arm(model, checked) else [])]
    for near in ways:
        for seed in range(4):
            q, v, tau = state(model, seed)
            ready = pv_early.prepared(model, q, v, checked)
            early = pv_early.resolved_early(model, ready, tau, checked, near)
            a, multipliers = pv_early.together(early, ready, checked)
            expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt")
            assert relative(a, expected.a) < 1e-11
            assert relative(multipliers, expected.multipliers) < 1e-11
        straight = pv_early.prepared(model, model.neutral(), v, checked)
        with np.errstate(all="ignore"):
            early = pv_early.resolved_early(model, straight, tau, checked, near)
            better, change = pv_early.refined_early(model, straight, tau, checked, near, early)
        heaviest = pv_early.suited(model, checked, near)[1]
        light[near] = bool(pv_early.close(change, better) and early.mass <= heaviest)
    assert pv_early.quickest_near(model, checked) in ((3, 4) if rows == "weld" else (0, None))
    assert light == {0: rows == "point", 3: True, 4: True} | (
        {} if rows == "weld" else {None: True}
    )
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    for found, wanted in zip(
        code(model.neutral(), v, tau), in_many_digits(model, model.neutral(), v, tau, constraints)
    ):
        assert relative(found, wanted) < 1e-12


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
def test_all_joints_at_once(name):
    """Serial, branched, on rails and with loops: as the dense solution; rows feel the joints as
    they do one after the other, whose rows are not scaled alike."""
    build, constraints = SHORT[name]
    model = build()
    checked = tuple(checked_constraints(model, constraints))
    assert short_arm(model, checked)
    m, last = sum(c.m for c in checked), model.bodies[-1]
    for seed in range(6):
        q, v, tau = state(model, seed)
        rng = np.random.default_rng(seed)
        desired, push = rng.standard_normal(m), rng.standard_normal(6)
        ready = pv_early.prepared(model, q, v, checked, {last.index: push}, Wanted(desired))
        early = pv_early.resolved_early(model, ready, tau, checked, None)
        a, multipliers = pv_early.together(early, ready, checked)
        masses = [mass for _, mass in early.masses]
        by_joint = [
            mass for _, mass in pv_early.resolved_early(model, ready, tau, checked, 0).masses
        ]
        expected = constrained_forward_dynamics(
            model, q, v, tau, constraints, {last.name: push}, method="kkt", desired=desired
        )
        due = 1e-11 + 1e-14 * np.max(masses, initial=1.0)
        assert relative(a, expected.a) < due
        assert relative(multipliers, expected.multipliers) < due
        assert np.all(np.abs(np.log(np.array(masses) / np.array(by_joint))) < np.log(m) + 1e-9)


def test_a_short_arm_takes_all_joints_at_once_when_compiled():
    """And carries its rows at singular postures, as any other."""
    model, constraints = industrial_arm(), [Constraint("tool", "point")]
    assert pv_early.quickest_near(model, tuple(checked_constraints(model, constraints))) is None
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    for seed in range(20):
        q, v, tau = state(model, seed)
        if seed % 2:
            q[3:5] = 1e-7 * seed, 0.0  # elbow and wrist move the tool one way
        for found, wanted in zip(code(q, v, tau), in_many_digits(model, q, v, tau, constraints)):
            assert relative(found, wanted) < 1e-10
