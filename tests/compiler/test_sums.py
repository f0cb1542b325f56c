"""Sums as chains, and the order that lets few instructions wait: the same numbers, sooner."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grubler.compiler as gc
from grubler.compiler.ir.tape import evaluate, operands
from grubler.compiler.passes.cost import SMALL, fits, waits
from grubler.compiler.passes.schedule import latency, schedule, spread
from grubler.compiler.passes.simplify import fuse, optimize, simplify
from grubler.compiler.passes.sums import chained

from .by_hand import quadruped

LEAVES = ("const", "input")


def work(tape):
    return [i for i in tape.instructions if i[0] not in LEAVES]


def longest(tape):
    """Cycles of the longest way through a tape."""
    done = []
    for instruction in tape.instructions:
        start = max((done[a] for a in operands(instruction)), default=0)
        done.append(start + latency(instruction[0]))
    return max(done)


def traced(fn, *shapes):
    return simplify(gc.trace(fn, list(shapes)))


def test_the_late_term_comes_last():
    tape = chained(traced(lambda x: x[0] / x[1] * x[2] + x[3] * x[4] + x[5] * x[6] + x[7], 8))
    (value,) = tape.results[0]
    ways = [tape.instructions[a][0] for a in operands(tape.instructions[value])]
    assert tape.instructions[value][0] == "fma" and "div" in ways
    assert [i[0] for i in work(tape)].count("fma") == 3 and len(work(tape)) == 4


def test_a_product_costs_one_instruction_where_a_value_is_added():
    """(a b + c d) + e begins with e; without e one product begins."""
    assert len(work(chained(traced(lambda x: x[0] * x[1] + x[2] * x[3] + x[4], 5)))) == 2
    assert len(work(chained(traced(lambda x: x[0] * x[1] + x[2] * x[3], 4)))) == 2


def test_constants_of_a_sum_are_one_and_none_where_they_cancel():
    tape = chained(traced(lambda x: (x[0] + 1.5) + (x[1] * x[2] - 0.5), 3))
    assert sorted(i[0] for i in work(tape)) == ["add", "fma"]
    assert evaluate(tape, [1.0, 2.0, 3.0])[0] == 8.0
    for fn in (lambda x: (x[0] - 1.5) + (1.5 - x[1]), lambda x: (2.0 - x[0]) - (2.0 - x[1])):
        tape = chained(traced(fn, 2))
        assert len(work(tape)) == 1
        assert evaluate(tape, [1.0, 4.0])[0] == fn(np.array([1.0, 4.0]))
    tape = chained(traced(lambda x: (1.0 - x[0]) + (x[0] * x[0] - 1.0), 1))
    assert evaluate(tape, [3.0])[0] == 6.0
    assert not work(traced(lambda x: 1.0 - (1.0 - x), 1))  # as in Rodrigues' formula


def test_a_value_that_all_wait_for_is_added_last():
    def fn(x):
        return x[0] * x[1] + x[2] * x[3] + 1.0 / (1.0 / x[4] + x[5])

    tape = chained(traced(fn, 6))
    assert tape.instructions[tape.results[0][0]][0] == "add"


@pytest.mark.parametrize("signs", range(16))
def test_signs(signs):
    sign = [1.0 if signs >> i & 1 else -1.0 for i in range(4)]

    def fn(x):
        total = sign[0] * x[0] + sign[1] * (x[1] * x[2]) + sign[2] * (x[3] * x[4])
        return np.stack([total + sign[3] * x[5], -total - x[5] * x[5]])

    x = np.array([1.5, 2.0, -3.0, 0.5, 7.0, 11.0])
    tape = gc.trace(fn, [6])
    np.testing.assert_array_equal(evaluate(chained(simplify(tape)), x)[0], fn(x))  # exact numbers
    np.testing.assert_array_equal(gc.compile_function(fn, [6])(x), fn(x))


def test_a_product_that_sums_share_is_computed_once():
    def fn(x):
        p = x[0] * x[1]
        return np.stack([p + x[2] * x[3], p + x[4] * x[5], p - x[6] * x[7]])

    assert [i[0] for i in work(chained(traced(fn, 8)))].count("mul") == 1


# Trees of sums and products over few inputs, values shared, small whole numbers: exact.
_leaf = st.integers(0, 5).map(lambda i: ("x", i))
_tree = st.recursive(
    _leaf, lambda t: st.tuples(st.sampled_from(["+", "-", "*"]), t, t), max_leaves=24
)


@given(
    st.lists(_tree, min_size=1, max_size=4), st.lists(st.integers(-3, 3), min_size=6, max_size=6)
)
@settings(max_examples=150, deadline=None)
def test_any_sum_keeps_its_value(trees, numbers):
    def value(tree, x):
        if tree[0] == "x":
            return x[tree[1]]
        a, b = value(tree[1], x), value(tree[2], x)
        return a + b if tree[0] == "+" else a - b if tree[0] == "-" else a * b

    def fn(x):
        values = [value(tree, x) for tree in trees]
        return np.stack([*values, values[0] - values[-1] * x[0]])

    x = np.array(numbers, dtype=float)
    expected = fn(x)
    if np.abs(expected).max() > 2.0**40:
        return  # intermediate values might round
    tape = chained(simplify(gc.trace(fn, [6])))
    np.testing.assert_array_equal(evaluate(tape, x)[0], expected)
    np.testing.assert_array_equal(evaluate(spread(tape), x)[0], expected)


@functools.cache
def robot():
    fn, nq, nv = quadruped(2, 2)
    return traced(fn, nq, nv, nv)


def test_chains_are_fewer_and_shorter():
    fused, chains = fuse(robot()), chained(robot())
    assert len(work(chains)) < 0.96 * len(work(fused))
    assert longest(chains) < 0.9 * longest(fused)


def test_spread_is_the_same_line_and_waits_less():
    chains = schedule(chained(robot()))
    apart = spread(chains)
    rng = np.random.default_rng(0)
    x = [rng.normal(size=array.size) for array in chains.inputs]
    np.testing.assert_array_equal(evaluate(apart, *x)[0], evaluate(chains, *x)[0])
    assert sorted(i[0] for i in apart.instructions) == sorted(i[0] for i in chains.instructions)
    assert lost(apart) < 0.5 * lost(chains)


def lost(tape) -> int:
    """Cycles lost by a processor that takes one instruction at a time, in order."""
    done, now, cycles = {}, 0, 0
    for k, instruction in enumerate(tape.instructions):
        if instruction[0] in LEAVES:
            continue
        there = max((done.get(a, 0) for a in operands(instruction)), default=0)
        cycles += max(0, there - now)
        now = max(now, there) + 1
        done[k] = now - 1 + latency(instruction[0])
    return cycles


def test_chains_where_a_processor_waits():
    """One limb after another waits; many limbs side by side do not."""

    def limb(x, n):
        for _ in range(n):
            x = np.stack([x[0] / (x[1] + x[0] * x[0]), x[0] * x[1] + x[0] + x[1] * x[1]])
        return x

    one = gc.trace(lambda x: limb(x, 12), [2])
    many = gc.trace(lambda x: np.concatenate([limb(x[i : i + 2], 12) for i in range(24)]), [25])
    assert waits(fuse(simplify(one))) and not waits(fuse(simplify(many)))
    assert optimize(one).digest() == schedule(chained(simplify(one))).digest()
    assert (
        optimize(one, chains=False).digest()
        == schedule(fuse(simplify(one), late_first=False)).digest()
    )
    assert optimize(many).digest() == schedule(fuse(simplify(many))).digest()


def test_branches_beside_chains_have_multiply_adds():
    def fn(x):
        for _ in range(12):
            x = np.stack([x[0] / (x[1] + x[0] * x[0]), x[0] * x[1] + x[0] + x[1] * x[1]])
        return gc.otherwise(x[0] > 0.0, x, lambda: x * x[0] + x[1] * x)

    tape = gc.trace(fn, [2])
    assert waits(fuse(simplify(tape)))
    inside = [i[0] for i in optimize(tape).branches[0].step.instructions]
    assert "fma" in inside and "add" not in inside


def test_large_tapes_stay_as_written():
    """Beyond the instruction cache, code is kept small instead."""

    def fn(x):
        triples = itertools.combinations(range(26), 3)
        return np.stack([(x[i] * x[j] + x[k] * x[i]) + x[j] for i, j, k in triples])

    tape = gc.trace(fn, [26])
    chains = chained(simplify(tape))
    assert not fits(chains) and len(work(chains)) > SMALL
    assert optimize(tape).digest() == schedule(fuse(simplify(tape))).digest()


def test_loops_have_chains_inside():
    def step(x, y):
        return x / y + x * y + y * y

    tape = chained(simplify(gc.trace(lambda x, y: gc.iterate(step, x, y, count=3), [2, 2])))
    assert "fma" in [i[0] for i in tape.loops[0].step.instructions]
    x, y = np.array([1.0, 2.0]), np.array([4.0, -2.0])
    compiled = gc.compile_function(lambda x, y: gc.iterate(step, x, y, count=3), [2, 2])
    got = compiled(x, y)
    for _ in range(3):
        x = step(x, y)
    np.testing.assert_allclose(got, x, rtol=1e-14)
