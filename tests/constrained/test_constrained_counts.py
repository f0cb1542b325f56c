"""Operation counts: PV-early grows linearly, PV-OSIM and EFPA cross on the long stalk."""

import pytest
from cases import CASES, LEGS, chain, ladder, stalk

import grubler as gb
from conftest import load
from grubler.constrained import Constraint, constrained_forward_dynamics


def count(model, constraints, **options):
    fn = constrained_forward_dynamics
    return gb.count_operations(fn, model, constraints=tuple(constraints), **options).total


def test_pv_early_is_linear_in_the_length_of_a_chain():
    sizes = (10, 40, 100)
    counts = [count(chain(n), [f"link{n - 1}"]) for n in sizes]
    slopes = [
        (b - a) / (m - n)
        for (n, m), (a, b) in zip([sizes[:2], sizes[1:]], [counts[:2], counts[1:]])
    ]
    assert abs(slopes[1] / slopes[0] - 1) < 0.02


def test_pv_early_is_linear_in_the_number_of_constraints():
    """The ladder: as many constraints as freedom."""
    counts = [count(*ladder(n), regular=True) for n in (1, 2, 3)]
    assert counts[2] - counts[1] == counts[1] - counts[0]
    counts = [count(*ladder(n)) for n in (1, 2, 4)]  # with guards, spare slots fill up at first
    assert abs((counts[2] - counts[1]) / (counts[1] - counts[0]) / 2 - 1) < 0.1


def test_ltl_is_not():
    counts = [count(chain(n), [f"link{n - 1}"], method="ltl") for n in (6, 12, 18)]
    assert counts[2] - counts[1] > 1.4 * (counts[1] - counts[0])


@pytest.mark.parametrize("name", ["quadruped 4F3", "mini_cheetah 4F3"])
def test_pv_early_needs_fewer_operations_than_ltl(name):
    robot, constraints = CASES[name]
    model = load(robot)
    assert count(model, constraints) < count(model, constraints, method="ltl")
    assert count(model, constraints, regular=True) < count(model, constraints)


def test_pv_early_on_a_humanoid_with_feet_and_hands():
    model = load("humanoid")
    ends = ["right_toe_contact", "left_toe_contact", "right_hand_contact", "left_hand_contact"]
    early, rival = count(model, ends), count(model, ends, method="ltl")
    assert rival > 1.5 * early


def test_soft_constraints_cost_next_to_nothing():
    model = load("quadruped")
    soft = [Constraint(f, "point", softness=1e-6) for f in LEGS]
    free = gb.count_operations(gb.forward_dynamics, model).total
    assert count(model, soft, method="pv_soft") < 1.2 * free
    assert count(model, soft, method="pv_soft") < 0.7 * count(model, soft, method="ltl_soft")


def test_without_constraints_pv_is_the_articulated_body_algorithm():
    model = load("mini_cheetah")
    free = gb.count_operations(gb.forward_dynamics, model).total
    for method in ("pv", "pv_early"):
        # C-ABA takes the accelerations of points, a little cheaper than the spatial ones of K a = k
        assert free <= count(model, [], method=method) < 1.05 * free


def test_efpa_overtakes_pv_osim_on_the_long_stalk():
    """Fig. 2f: with few branches a link of the stem costs PV-OSIM less, with nine it does not."""

    def slope(method, branches):
        counts = []
        for stem in (1, 4):
            model, tips = stalk(stem, branches, 1)
            counts.append(
                gb.count_operations(gb.inverse_osim, model, frames=tips, method=method).total
            )
        return counts[1] - counts[0]

    assert slope("pv_osim", 2) < slope("c_efpa", 2)
    assert slope("pv_osim", 9) > slope("c_efpa", 9)
