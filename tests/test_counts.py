"""Operations and estimated cycles stay as recorded in counts.json; see counts.py."""

import pytest

import grubler as gb
from conftest import ROBOTS, load
from counts import differences, measured, recorded


@pytest.mark.parametrize("robot", ROBOTS)
def test_counts_are_as_recorded(robot):
    """Beyond 1 % more, and where there is less than recorded. Deliberate changes are recorded by
    `python -m tests.counts --write`."""
    lines = differences(recorded()[robot], measured(robot))
    assert not lines, "\n".join([robot, *lines, "to record: python -m tests.counts --write"])


def test_the_record_has_every_robot():
    assert sorted(recorded()) == sorted(ROBOTS)


def test_what_is_counted_is_what_users_count():
    model, record = load("four_bar"), recorded()["four_bar"]
    for fn in (gb.forward_dynamics, gb.inverse_dynamics, gb.mass_matrix):
        assert record[fn.__name__][0] == gb.count_operations(fn, model).total


@pytest.mark.parametrize(
    "change, line",
    [
        ([1011, 0, 300], "forward_dynamics, operations: 1000 -> 1011 (+1.10 %)"),
        ([999, 0, 300], "forward_dynamics, operations: 1000 -> 999 (-0.10 %)"),
        ([1000, 5, 300], "forward_dynamics, seldom: 0 -> 5"),
        ([1000, 0, 304], "forward_dynamics, cycles: 300 -> 304 (+1.33 %)"),
        (None, "forward_dynamics: recorded, not counted"),
    ],
)
def test_a_difference_is_named(change, line):
    record = {"forward_dynamics": [1000, 0, 300]}
    now = {} if change is None else {"forward_dynamics": change}
    assert differences(record, now) == [line]


def test_growth_within_one_percent_passes():
    record = {"forward_dynamics": [1000, 0, 300]}
    assert differences(record, {"forward_dynamics": [1010, 0, 303]}) == []
    assert differences({}, record) == ["forward_dynamics: not recorded"]
