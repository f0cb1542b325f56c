"""Rows that pass the joint which should take them: PV-early at nearly singular postures."""

import importlib

import numpy as np
import pytest
from cases import CASES, in_many_digits, state

import grubler as gb
from conftest import load, relative
from grubler.compiler.program import arranged
from grubler.compiler.tape import last_branch
from grubler.constrained import constrained_forward_dynamics, residual
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.passing import Passing
from grubler.parameters import parameter_values, with_parameters

pv_early = importlib.import_module("grubler.constrained.pv_early")


def prepared(name):
    robot, constraints = CASES[name]
    model = load(robot)
    checked = tuple(checked_constraints(model, constraints))
    usual, _ = pv_early.usually(model.nominal, checked, 0)
    return model, constraints, checked, [pv_early.HEAVY * x for x in usual]


@pytest.mark.parametrize(
    "name",
    ["arm7 H", "quadruped 3F3", "quadruped mixed", "mini_cheetah 4F3", "humanoid 2F+H",
     "mit_humanoid 2F", "tello 2F", "joint_sampler"],
)  # fmt: skip
def test_any_joint_may_let_its_row_pass(name):
    """Each in turn is told that it is too heavy; the accelerations are the same."""
    model, _, checked, limits = prepared(name)
    q, v, tau = state(model, 3)
    ready = pv_early.prepared(model, q, v, checked)
    a, multipliers, masses, joints = pv_early.resolved_early(model, ready, tau, checked, 0)
    passed = 0
    for j in range(len(joints)):
        lower = [*limits[:j], 0.5 * masses[j], *limits[j + 1 :]]
        seen = watched(model, ready, tau, checked, lower)
        passed += sum(seen[2].full.values())
        assert relative(seen[0], a) < 1e-10 and relative(seen[1], multipliers) < 1e-10
    assert passed > 0


def watched(model, ready, tau, checked, limits):
    """(a, multipliers, the Passing that was used)."""
    made = []

    class Watched(Passing):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pv_early, "Passing", Watched)
        a, multipliers, *_ = pv_early.resolved_early(model, ready, tau, checked, 0, limits)
    return a, multipliers, made[0]


@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("name", ["quadruped 4F3", "mini_cheetah 4F3", "mit_humanoid 2F3+2H3"])
def test_all_limbs_straight(name, off, monkeypatch):
    """One row of each leg passes, and two of each arm of the humanoid, at the very posture and near
    it, and no digit is lost; nothing else is computed."""
    model, constraints, checked, limits = prepared(name)
    _, v, tau = state(model, 1)
    q = model.integrate(model.neutral(), off * np.random.default_rng(0).normal(size=model.nv))
    ready = pv_early.prepared(model, q, v, checked)
    with np.errstate(all="ignore"):
        masses = pv_early.resolved_early(model, ready, tau, checked, 0)[2]
    assert not pv_early.within(masses, limits)
    assert sum(watched(model, ready, tau, checked, limits)[2].full.values()) == 4
    monkeypatch.delattr(pv_early, "carried_to_base")
    found = constrained_forward_dynamics(model, q, v, tau, constraints)
    monkeypatch.undo()
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    expected = in_many_digits(model, q, v, tau, constraints)
    for result in (found[:2], code(q, v, tau)):
        for x, y in zip(result, expected, strict=True):
            assert relative(x, y) < 1e-12


@pytest.mark.parametrize("name", ["quadruped F3", "quadruped 4F3", "mini_cheetah 4F3"])
def test_straight_legs_of_three_joints_are_known_by_kinematics_alone(name):
    """Before a twentieth of the instructions, though four lanes go through them together; which
    legs, how straight, and what inertia they have, makes no difference."""
    model, constraints, checked, _ = prepared(name)
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    tape = arranged(code.tape, "float64", 1)[0]
    assert tape.bundles and last_branch(tape)[1] < len(tape) / 20
    heavy = with_parameters(model, {"inertia": 100.0 * parameter_values(model, "inertia")})
    rng = np.random.default_rng(0)
    for seed in range(5):
        q, v, tau = state(model, seed)
        q = model.integrate(q, np.concatenate([np.zeros(6), rng.normal(size=12)]))
        strains = []
        for robot in (model, heavy):
            ready = pv_early.prepared(robot, q, v, checked)
            found = pv_early.resolved_early(robot, ready, tau, checked, 0)
            strains.append(pv_early.strained(robot, *found[2:]))
        assert len(strains[0]) == len(constraints) and strains[0] == strains[1]


@pytest.mark.parametrize("name", [name for name, (_, constraints) in CASES.items() if constraints])
def test_limbs_straight_at_rest_and_in_motion(name):
    """The neutral posture, where rows of some robots depend on each other: least squares, and the
    smallest multipliers, whatever rounding errors make of what is zero."""
    model, constraints = load(CASES[name][0]), CASES[name][1]
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    q = model.neutral()
    for seed in range(3):
        _, moving, tau = state(model, seed)
        for v in (moving, np.zeros(model.nv)):
            expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt")
            found = constrained_forward_dynamics(model, q, v, tau, constraints)
            for a, multipliers in (found[:2], code(q, v, tau)):
                assert relative(a, expected.a) < 1e-9
                assert relative(multipliers, expected.multipliers) < 1e-9


@pytest.mark.parametrize("off", [1e-2, 1e-3, 3e-4])
@pytest.mark.parametrize(
    "name", ["arm7 H", "humanoid 2F", "humanoid 2F+H", "mit_humanoid 2F", "tello 2F", "leg held"]
)
def test_rows_that_nearly_depend_on_each_other(name, off):
    """Digits are lost once, not twice as by J M⁻¹ J', whose condition is that of J squared: at the
    least of these angles LTL has 1e-8 to 4e-6 here."""
    model, constraints = load(CASES[name][0]), CASES[name][1]
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    for seed in range(3):
        _, v, tau = state(model, seed)
        away = off * np.random.default_rng(seed).normal(size=model.nv)
        q = model.integrate(model.neutral(), away)
        expected = in_many_digits(model, q, v, tau, constraints)
        found = constrained_forward_dynamics(model, q, v, tau, constraints)
        for result in (found[:2], code(q, v, tau)):
            for x, y in zip(result, expected, strict=True):
                assert relative(x, y) < 1e-9


@pytest.mark.parametrize(
    "name",
    ["arm7 H3", "arm7 H", "arm7 K", "quadruped F3", "quadruped 2F3", "quadruped 4F3",
     "quadruped mixed", "humanoid F", "humanoid 2F", "humanoid 2F+H", "humanoid F+bar",
     "mini_cheetah 4F3", "mini_cheetah closures", "mit_humanoid 2F", "tello 2F", "leg held"],
)  # fmt: skip
def test_right_angles(name):
    """Joints at multiples of a right angle, where axes meet and levers vanish in all ways: rows
    that depend on each other exactly, and rows that no joint moves."""
    model, constraints, checked, _ = prepared(name)
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    rng, n = np.random.default_rng(1), model.nv
    for i in range(90):
        straight = rng.random(n) < 0.7
        angles = rng.choice([0, 0, 0, np.pi / 2, -np.pi / 2, np.pi], size=n)
        q = model.integrate(model.neutral(), np.where(straight, angles, rng.uniform(-3, 3, n)))
        _, v, tau = state(model, i % 5)
        v = v * (i % 2 == 0)
        J = residual(model, q, v, np.zeros(n), np.zeros(sum(c.m for c in checked)), checked)[1]
        B = np.linalg.solve(np.linalg.cholesky(gb.mass_matrix(model, q)), J.T)
        sizes = np.linalg.svd(B / np.linalg.norm(B, axis=0), compute_uv=False)
        if np.any((sizes < 3e-3) & (sizes > 1e-9)):
            continue  # nearly dependent: the test above
        expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt")
        a, multipliers = code(q, v, tau)
        assert relative(a, expected.a) < 1e-9
        assert relative(multipliers, expected.multipliers) < 1e-9


def test_where_rows_depend_on_each_other_all_are_carried():
    """Straight legs of five joints on two feet: passing is not enough."""
    model, constraints, checked, limits = prepared("humanoid 2F")
    q = model.neutral()
    v, tau = np.zeros(model.nv), np.ones(model.nv)
    ready = pv_early.prepared(model, q, v, checked)
    with np.errstate(all="ignore"):
        light = pv_early.resolved_early(model, ready, tau, checked, 0, limits)[2]
    assert not light
    expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt").a
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    for a in (constrained_forward_dynamics(model, q, v, tau, constraints).a, code(q, v, tau)[0]):
        assert relative(a, expected) < 1e-9
