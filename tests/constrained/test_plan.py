"""Plans of PV-early: known of a robot and its constraints before any posture."""

import dataclasses

import pytest
from cases import LEGS, points

from conftest import load
from grubler.constrained import Constraint
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.plan import planned


def plan_of(robot, constraints):
    model = load(robot)
    return model, planned(model, tuple(checked_constraints(model, constraints)))


def test_feet_of_a_quadruped_take_the_legs():
    """Three coordinates of each leg take three rows, none is left for the base."""
    model, plan = plan_of("quadruped", points(LEGS))
    base = model.tree.roots[0]
    assert {k for k, _ in plan.takes} == set(range(len(model.clusters))) - {base}
    assert len(plan.takes) == 12 and not plan.determined
    text = str(plan)
    assert text.count("takes 1 row") == 12 and "determine" not in text


def test_a_welded_hand_determines_an_arm_of_seven_joints_nowhere_and_of_six_everywhere():
    """Seven joints keep one freedom, which the seventh from the hand, the shoulder, takes."""
    _, plan = plan_of("arm7", [Constraint("panda_hand_tcp")])
    assert len(plan.takes) == 6 and not plan.determined
    held, plan = plan_of("quadruped", [Constraint("torso-contact-1")])
    assert plan.determined == frozenset(held.tree.roots)
    assert "takes 6 rows, which determine its motion" in str(plan)


def test_rows_between_two_bodies_wait_until_their_ends_meet():
    """No joint takes rows of a bar between two feet; the base, where it closes, carries others."""
    bar = Constraint(LEGS[0], "point", to=LEGS[1])
    model, plan = plan_of("quadruped", [bar])
    assert not plan.takes and plan.carries == frozenset(model.tree.roots)


def test_plans_are_values():
    _, plan = plan_of("quadruped", points(LEGS))
    assert plan == plan_of("quadruped", points(LEGS))[1]
    assert plan != plan_of("quadruped", points(LEGS[:2]))[1]
    assert isinstance(hash(plan), int)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.takes = frozenset()
