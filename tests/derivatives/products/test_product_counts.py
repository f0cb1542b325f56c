"""Exact operation counts of products, and how they compare with the function's own."""

import pytest

import grubler as gb
from conftest import load

COUNTS = {
    ("mini_cheetah", "vjp", "forward_dynamics"): 5893,  # 1.995 times the function
    ("mini_cheetah", "jvp", "forward_dynamics"): 6011,
    ("mini_cheetah", "hvp", "forward_dynamics"): 15283,
    ("mini_cheetah", "vjp", "inverse_dynamics"): 3010,  # 2.270
    ("mini_cheetah", "jvp", "inverse_dynamics"): 3067,
    ("jvrc1", "vjp", "forward_dynamics"): 17598,  # 2.039
    ("jvrc1", "jvp", "forward_dynamics"): 17994,
    ("jvrc1", "vjp", "inverse_dynamics"): 8991,  # 2.582
    ("four_bar", "vjp", "forward_dynamics"): 486,  # 2.859
    ("six_bar", "vjp", "forward_dynamics"): 860,  # 2.792
    ("tello", "vjp", "forward_dynamics"): 12882,  # 1.949
}

LIMITS = {"vjp": 2.2, "jvp": 2.2}  # of forward dynamics: plain reverse mode takes 2.5 to 2.8


def counted(robot: str, kind: str, fn) -> int:
    model = load(robot)
    return gb.count_operations(getattr(gb, kind)(fn, model), model).total


@pytest.mark.parametrize("robot, kind, name", sorted(COUNTS))
def test_counts(robot, kind, name):
    """Not one operation more or fewer: a deliberate change is written here."""
    assert counted(robot, kind, getattr(gb, name)) == COUNTS[robot, kind, name]


@pytest.mark.parametrize("robot", ["mini_cheetah", "jvrc1"])
@pytest.mark.parametrize("kind", sorted(LIMITS))
def test_in_terms_of_the_function(robot, kind):
    own = gb.count_operations(gb.forward_dynamics, load(robot)).total
    assert counted(robot, kind, gb.forward_dynamics) <= LIMITS[kind] * own


def test_a_gradient_costs_what_it_needs_alone():
    """By tau alone the adjoint is M⁻¹ w; by v alone no derivative of inertias is left."""
    model = load("mini_cheetah")
    fn = gb.forward_dynamics
    by = {n: gb.count_operations(gb.vjp(fn, model, wrt=n), model).total for n in ("q", "v", "tau")}
    everything = gb.count_operations(gb.vjp(fn, model), model).total
    assert by["tau"] < by["v"] < by["q"] < everything
    assert by["tau"] < gb.count_operations(fn, model).total
