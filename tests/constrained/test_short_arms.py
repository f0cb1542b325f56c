"""Few joints on a fixed base: rows carried across them, and all joints at once."""

import numpy as np
import pytest
from cases import grow, hanging, in_many_digits, industrial_arm, serial, state

import grubler as gb
from conftest import load, relative
from grubler.constrained import Constraint, constrained_forward_dynamics, guard
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.equations import prepared
from grubler.constrained.plan import candidates, short_arm, usual_plan
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
def test_rows_are_carried_next_to_a_fixed_base(rows):
    """From whichever joint on, the accelerations are the same; and with the hand welded a row that
    the shoulder does not move, the arm hanging straight, is no longer too heavy."""
    model, constraints = humanoid_arm(), [Constraint("hand", rows)]
    checked = tuple(checked_constraints(model, constraints))
    light, plans = {}, {p.at_once or p.near: p for p in candidates(model, checked)}
    for name, plan in plans.items():
        for seed in range(4):
            q, v, tau = state(model, seed)
            equations = prepared(model, q, v, tau, checked)
            a, multipliers = resolved_early(equations, plan).outputs(equations)
            expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt")
            assert relative(a, expected.a) < 1e-11
            assert relative(multipliers, expected.multipliers) < 1e-11
        straight = prepared(model, model.neutral(), v, tau, checked)
        with np.errstate(all="ignore"):
            early = resolved_early(straight, plan)
            better, change = guard.refined(straight, plan, early)
        heaviest = guard.judged(model, checked, plan).heaviest
        light[name] = bool(guard.small(change, better) and early.row_mass <= heaviest)
    chosen = guard.chosen_plan(model, checked, True)
    assert chosen.near in (3, 4) if rows == "weld" else chosen.near == 0
    assert set(light) == ({0, 3, 4} if rows == "weld" else {0, 4, True})
    assert light == {name: rows == "point" or name != 0 for name in light}
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
        equations = prepared(model, q, v, tau, checked, {last.index: push}, Wanted(desired))
        early = resolved_early(equations, candidates(model, checked)[-1])
        a, multipliers = early.outputs(equations)
        masses = [mass for _, mass in early.row_masses]
        one_by_one = resolved_early(equations, usual_plan(model, checked))
        by_joint = [mass for _, mass in one_by_one.row_masses]
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
    checked = tuple(checked_constraints(model, constraints))
    assert guard.chosen_plan(model, checked, True).at_once
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    for seed in range(20):
        q, v, tau = state(model, seed)
        if seed % 2:
            q[3:5] = 1e-7 * seed, 0.0  # elbow and wrist move the tool one way
        for found, wanted in zip(code(q, v, tau), in_many_digits(model, q, v, tau, constraints)):
            assert relative(found, wanted) < 1e-10
