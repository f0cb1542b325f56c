"""Operation counts: PV-early grows linearly, PV-OSIM and EFPA cross on the long stalk."""

import pytest
from cases import CASES, LEGS, chain, ladder, points, stalk

import grubler as gb
from conftest import load
from grubler.constrained import Constraint, constrained_forward_dynamics


def count(model, constraints, **options):
    fn = constrained_forward_dynamics
    return gb.count_operations(fn, model, constraints=tuple(constraints), **options).total


def test_pv_early_is_linear_in_the_length_of_a_chain():
    sizes = (10, 40, 100)
    ends = [(chain(n), [f"link{n - 1}"]) for n in sizes]
    counts = [count(*end, regular=True) for end in ends]
    slopes = [
        (b - a) / (m - n)
        for (n, m), (a, b) in zip([sizes[:2], sizes[1:]], [counts[:2], counts[1:]])
    ]
    assert abs(slopes[1] / slopes[0] - 1) < 0.02
    for end, regular in zip(ends, counts, strict=True):  # long chains are always refined
        assert count(*end) < 2.0 * regular


def test_pv_early_is_linear_in_the_number_of_constraints():
    """The ladder: as many constraints as freedom."""
    counts = [count(*ladder(n), regular=True) for n in (1, 2, 3)]
    assert counts[2] - counts[1] == counts[1] - counts[0]
    for n in (1, 2, 4):  # refinement, where a robot always takes it, is linear as well
        assert count(*ladder(n)) < 1.5 * count(*ladder(n), regular=True)


def test_ltl_is_not():
    counts = [count(chain(n), [f"link{n - 1}"], method="ltl") for n in (6, 12, 18)]
    assert counts[2] - counts[1] > 1.4 * (counts[1] - counts[0])


FEWER_THAN_LTL = [
    "arm7 H3", "arm7 H", "arm7 K", "quadruped F3", "quadruped 4F3", "quadruped closure",
    "mini_cheetah F3", "mini_cheetah 2F3", "mini_cheetah 4F3", "mini_cheetah closures",
    "humanoid 2F", "mit_humanoid 2F", "tello 2F", "tello_explicit F+H3",
]  # fmt: skip


@pytest.mark.parametrize("name", FEWER_THAN_LTL)
def test_pv_early_needs_fewer_operations_than_ltl(name):
    """Refinement is a branch, and the estimate of the error that decides costs a few percent."""
    robot, constraints = CASES.get(name, ("mini_cheetah", points(LEGS[:2])))
    model = load(robot)
    fn, given = constrained_forward_dynamics, {"constraints": tuple(constraints)}
    early = gb.count_operations(fn, model, **given)
    regular = gb.count_operations(fn, model, regular=True, **given)
    assert early.total < 0.94 * count(model, constraints, method="ltl")
    assert regular.total < early.total < 1.05 * regular.total
    assert early.seldom > early.total > regular.seldom == 0


def test_pv_early_on_a_humanoid_with_feet_and_hands():
    model = load("humanoid")
    ends = ["right_toe_contact", "left_toe_contact", "right_hand_contact", "left_hand_contact"]
    early, rival = count(model, ends), count(model, ends, method="ltl")
    assert rival > 2 * early


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
        assert count(model, [], method=method) == free


def test_without_constraints_pv_early_is_the_quickest_forward_dynamics():
    model = load("arm7")
    free = gb.count_operations(gb.forward_dynamics, model, method="auto")
    assert gb.count_operations(constrained_forward_dynamics, model, constraints=()) == free
    assert free.total > count(model, [], method="pv")  # more operations, which wait less


def test_efpa_overtakes_pv_osim_on_the_long_stalk():
    """Fig. 2f: with few branches of seven links PV-OSIM needs fewer operations whatever the stem,
    with nine EFPA does from some stem on."""

    def counts(branches, stem):
        model, tips = stalk(stem, branches, 7)
        return [
            gb.count_operations(gb.inverse_osim, model, frames=tips, method=method).total
            for method in ("pv_osim", "c_efpa")
        ]

    (pv, efpa), (pv_long, efpa_long) = counts(3, 1), counts(3, 7)
    assert pv < efpa and pv_long - pv < efpa_long - efpa
    (pv, efpa), (pv_long, efpa_long) = counts(9, 1), counts(9, 7)
    assert pv < efpa and pv_long > efpa_long
