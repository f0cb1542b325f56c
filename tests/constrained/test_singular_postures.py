"""PV-early at and near singular postures: refinement, rows carried to the world, least squares."""

import numpy as np
import pytest
from cases import CASES, in_many_digits, state

import grubler as gb
from conftest import load, relative
from grubler.constrained import constrained_forward_dynamics, guard, residual
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.equations import prepared
from grubler.constrained.plan import planned
from grubler.constrained.pv_early import resolved_early


def case(name):
    robot, constraints = CASES[name]
    model = load(robot)
    return model, constraints, tuple(checked_constraints(model, constraints))


@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("name", ["quadruped 4F3", "mini_cheetah 4F3", "mit_humanoid 2F3+2H3"])
def test_all_limbs_straight(name, off):
    """At the very posture and near it no digit is lost."""
    model, constraints, _ = case(name)
    _, v, tau = state(model, 1)
    q = model.integrate(model.neutral(), off * np.random.default_rng(0).normal(size=model.nv))
    found = constrained_forward_dynamics(model, q, v, tau, constraints)
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    expected = in_many_digits(model, q, v, tau, constraints)
    for result in (found[:2], code(q, v, tau)):
        for x, y in zip(result, expected, strict=True):
            assert relative(x, y) < 1e-12


@pytest.mark.parametrize(
    "angle, way", [(0.1, "early"), (1e-3, "refined"), (1e-9, "carried"), (0.0, "carried")]
)
def test_which_way_a_knee_is_solved(angle, way, monkeypatch):
    """Nearly straight it is refined, and only at the singular posture are rows carried."""
    model, constraints, _ = case("quadruped 4F3")
    q, v, tau = state(model, 3)
    q[7:] = 0.5  # all legs alike and bent
    q[9] = angle
    taken = ["early"]

    def watched(name, label):
        original = getattr(guard, name)

        def called(*given, **options):
            taken.append(label)
            return original(*given, **options)

        monkeypatch.setattr(guard, name, called)

    constrained_forward_dynamics(model, q, v, tau, constraints)  # what is known of it is kept
    watched("refined", "refined")
    watched("carried_to_base", "carried")
    found = constrained_forward_dynamics(model, q, v, tau, constraints)
    assert taken[-1] == way
    for x, y in zip(found[:2], in_many_digits(model, q, v, tau, constraints), strict=True):
        assert relative(x, y) < 1e-12


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
    model, constraints, checked = case(name)
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
    """Straight legs of five joints on two feet: refinement does not converge."""
    model, constraints, checked = case("humanoid 2F")
    q = model.neutral()
    v, tau = np.zeros(model.nv), np.ones(model.nv)
    equations, plan = prepared(model, q, v, tau, checked), planned(model, checked)
    with np.errstate(all="ignore"):
        early = resolved_early(equations, plan)
        better, change = guard.refined(equations, plan, early)
    assert not guard.small(change, better)
    expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt").a
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    for a in (constrained_forward_dynamics(model, q, v, tau, constraints).a, code(q, v, tau)[0]):
        assert relative(a, expected) < 1e-9
