"""PV-early against LTL and fifty digits, at random and nearly singular states."""

import numpy as np
import pytest
from cases import CASES, in_many_digits
from precise import FACTOR, FLOOR, Ltl, compared, error, near_singular, random_states

import grubler as gb
from conftest import load
from grubler.constrained import constrained_forward_dynamics
from grubler.constrained.constraints import checked_constraints

STATES = 3000


def of_case(name):
    robot, constraints = CASES[name]
    model = load(robot)
    checked = tuple(checked_constraints(model, constraints))
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    return model, checked, code


@pytest.mark.parametrize("singular", [False, True])
@pytest.mark.parametrize(
    "name",
    ["arm7 H3", "arm7 K", "quadruped 4F3", "quadruped mixed", "mini_cheetah 4F3",
     "mini_cheetah closures", "humanoid 2F", "mit_humanoid 2F3+2H3", "tello 2F", "joint_sampler"],
)  # fmt: skip
def test_pv_early_is_as_accurate_as_ltl(name, singular):
    """Wherever rows are independent: within a hundred times the error of LTL, or 1e-12. The worst
    states are judged by fifty digits."""
    model, checked, code = of_case(name)
    ltl, rng = Ltl(model, checked), np.random.default_rng(5)
    states = random_states(model, STATES, rng)
    if singular:
        states = near_singular(model, checked, states, rng)
    found = code(*states)
    errors, allowed, regular = compared(ltl, found, states)
    assert regular.mean() > 0.8
    assert np.all(errors[regular] <= allowed[regular])
    for i in np.argsort(np.where(regular, errors / allowed, 0.0))[-2:]:
        state = [x[i] for x in states]
        exact = ltl.in_fifty_digits(*state)
        plain = [x[i] for x in ltl.compiled(*states)[3:]]
        due = max(FLOOR, FACTOR * float(error(plain, exact)))
        assert error([x[i] for x in found], exact) <= due


def test_fifty_digits_are_those_of_the_dense_system():
    """The reference against the dense system of mass_matrix, bias_force and residual."""
    model, checked, _ = of_case("mini_cheetah closures")
    ltl = Ltl(model, checked)
    q, v, tau = (x[0] for x in random_states(model, 1, np.random.default_rng(0)))
    expected = in_many_digits(model, q, v, tau, CASES["mini_cheetah closures"][1])
    assert error(ltl.in_fifty_digits(q, v, tau), expected) < 1e-13


def test_nearly_singular_states_are_nearly_singular():
    """Without its branches PV-early loses more than six digits at many of them."""
    model, checked, _ = of_case("quadruped 4F3")
    rng = np.random.default_rng(1)
    states = near_singular(model, checked, random_states(model, STATES, rng), rng)
    regular = gb.compile(
        constrained_forward_dynamics, model, constraints=CASES["quadruped 4F3"][1], regular=True
    )
    errors, _, independent = compared(Ltl(model, checked), regular(*states), states)
    assert np.mean(errors > 1e-10) > 0.05 and independent.all()
