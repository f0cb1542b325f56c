"""Equal limbs in the lanes of one state's registers: found by their formulas, the same bits."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grubler as gb
import grubler.compiler as gc
from grubler.compiler.backends.llvm.lower import lower
from grubler.compiler.ir.tape import evaluate, members, operands
from grubler.compiler.passes.limbs import side_by_side
from grubler.compiler.passes.schedule import spread
from grubler.compiler.passes.simplify import optimize

from .by_hand import in_two_legs, star


def bundled(fn, shapes, width=4):
    tape = optimize(gc.trace(fn, shapes))
    return tape, side_by_side(tape, width)


def spared(tape):
    return sum(len(members(bundle)) - 1 for bundle in tape.bundles)


def computed(tape):
    return sum(i[0] not in ("const", "input") for i in tape.instructions)


def as_written(fn, *arguments):
    """Compiled alone and in lanes, a function gives the same bits, and what NumPy gives."""
    shapes = [x.shape[1] for x in arguments]
    one, many = (gc.compile_function(fn, shapes, lanes=n) for n in (1, 8))
    found = np.stack([one(*x) for x in zip(*arguments)])
    np.testing.assert_array_equal(found, many(*arguments))
    want = np.stack([fn(*x) for x in zip(*arguments)])
    np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("mirrored", [True, False])
@pytest.mark.parametrize("limbs", [2, 3, 4, 5, 6, 8])
def test_the_limbs_of_a_star(limbs, mirrored):
    fn, shapes = star(limbs, mirrored), [2 * limbs, 2 * limbs, 4]
    plain, tape = bundled(fn, shapes)
    sizes = {2: {2}, 3: {3}, 4: {4}, 5: {2, 3}, 6: {3}, 8: {4}}[limbs]
    assert {len(bundle) for bundle in tape.bundles} == sizes
    assert spared(tape) > 0.75 * (1 - 1 / max(sizes)) * computed(plain)
    rng = np.random.default_rng(limbs)
    arguments = [rng.uniform(-2, 2, (50, n)) for n in shapes]
    for x in zip(*arguments):
        np.testing.assert_array_equal(evaluate(tape, *x)[0], evaluate(plain, *x)[0])
    for dtype in ("float64", "float32"):
        one, many = (gc.compile_function(fn, shapes, lanes=n, dtype=dtype) for n in (1, 8))
        given_ = [x.astype(dtype) for x in arguments]
        np.testing.assert_array_equal(np.stack([one(*x) for x in zip(*given_)]), many(*given_))


def test_bundles_are_rows_of_one_operation_each_limb_in_its_lane():
    plain, tape = bundled(star(4, order=[2, 0, 3, 1]), [8, 8, 4])  # limbs written in any order
    assert Counter(i[0] for i in tape.instructions) == Counter(i[0] for i in plain.instructions)
    for ordered in (tape, spread(tape)):
        reads: dict = {}  # the limb whose elements of the arguments a value depends on
        for k, instruction in enumerate(ordered.instructions):
            reads[k] = set().union(*(reads[a] for a in operands(instruction)))
            if instruction[0] == "input" and instruction[1] < 2:
                reads[k] = {instruction[2] // 2}
            assert all(a < k for a in operands(instruction))
        lanes = [Counter() for _ in range(4)]
        for bundle in ordered.bundles:
            row = sorted(members(bundle))
            assert row == list(range(row[0], row[-1] + 1))
            assert len({ordered.instructions[v][0] for v in bundle}) == 1
            for lane, v in enumerate(bundle):
                lanes[lane].update(reads[v] if len(reads[v]) == 1 else ())
        assert [sorted(limb) for limb in lanes] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("held", [1, 2, 3])
def test_limbs_that_are_equal_to_some_extent(held):
    """Of four limbs some go on otherwise: what they have in common takes one instruction, and each
    limb stays in its lane."""

    def fn(q, v):
        returned = []
        for i in range(4):
            s, c = np.sin(q[i]), np.cos(q[i])
            common = (s * v[i] - 0.3 * c) / (2.0 + v[i] * v[i]) + c * c * v[i]
            common = common * common - s * common + np.sqrt(1.0 + s * v[i] * v[i] * s)
            further = common * s - c
            if i < held:
                further = further * further / (1.0 + c * c) - common
            returned += [common + v[i], further * common * s]
        return np.stack(returned)

    _, tape = bundled(fn, [4, 4])
    assert {len(bundle) for bundle in tape.bundles} == {4}
    holes = [sum(v is None for v in bundle) for bundle in tape.bundles]
    assert set(holes) == {0, *({held, 4 - held} - {3})}
    rng = np.random.default_rng(held)
    Q, V = rng.normal(size=(2, 50, 4))
    one, many = (gc.compile_function(fn, [4, 4], lanes=n) for n in (1, 8))
    np.testing.assert_array_equal(np.stack([one(*x) for x in zip(Q, V)]), many(Q, V))


def test_one_instruction_for_all_legs():
    plain = gb.compile(gb.forward_dynamics, gb.robots.load("mini_cheetah")).tape
    tape = side_by_side(plain, 4)
    assert computed(plain) - spared(tape) < 0.4 * computed(plain)
    code = lower(tape, "float64", 1, 4)
    assert code.count("@llvm.fma.v4f64(") > 2 * code.count("@llvm.fma.f64(")


def test_what_has_no_equal_limbs_stays_as_it_is():
    arm = gb.compile(gb.forward_dynamics, gb.robots.load("arm7")).tape
    assert side_by_side(arm, 4) == arm
    tape = optimize(gc.trace(lambda x: np.stack([x[0] * 2.0, x[1] * 2.0]), [2]))
    assert evaluate(side_by_side(tape, 4), [1.0, 2.0])[0].tolist() == [2.0, 4.0]


def test_sums_over_limbs_are_no_bundles():
    """What depends on one another is not computed at once."""
    tape = optimize(gc.trace(lambda x: np.stack([np.prod(x[:4]), np.prod(x[4:])]), [8]))
    x = np.arange(1.0, 9.0)
    assert evaluate(side_by_side(tape, 4), x)[0].tolist() == [24.0, 1680.0]


def test_branches_read_bundles_and_have_their_own():
    tape = side_by_side(optimize(gc.trace(in_two_legs, [4, 2])), 4)
    rarely = tape.branches[0].step
    assert tape.bundles and rarely.bundles and rarely.branches[0].step.bundles
    rng = np.random.default_rng(3)
    Q, V = rng.normal(size=(200, 4)), rng.normal(size=(200, 2))
    as_written(in_two_legs, Q, V)


def test_choices_are_made_in_all_limbs_at_once():
    """Conditions of each limb stay in its lane, and may be read as numbers, by branches too."""

    def fn(q, v):
        out = []
        for i in range(4):
            heavy = np.logical_not(q[i] * q[i] < 0.5)
            full = np.logical_and(heavy, v[i] > 0.0)
            out.append(np.where(full, np.sin(q[i]), v[i] * q[i]) * (0.3 + v[i] * v[i]))
            out.append(out[-1] * np.where(heavy, 1.0, 0.0) + full)
        usual = np.stack(out)

        def rarely():
            return np.stack([x * x - 0.5 * y for x, y in zip(out, out[1:] + out[:1])])

        return gc.otherwise(out[1] + out[5] > 1.0, usual, rarely)

    _, tape = bundled(fn, [4, 4])
    ops = Counter(tape.instructions[members(bundle)[0]][0] for bundle in tape.bundles)
    assert ops["select"] + ops["if_else_zero"] >= 2 and ops["lt"] >= 2 and ops["and"] == 1
    assert not [v for v in set(range(len(tape))) - {v for b in tape.bundles for v in members(b)}
                if tape.instructions[v][0] in ("select", "if_else_zero", "not")]  # fmt: skip
    rng = np.random.default_rng(7)
    Q, V = rng.normal(size=(300, 4)), rng.normal(size=(300, 4))
    as_written(fn, Q, V)


def test_in_a_loop():
    step = star(4)

    def fn(q, v, base):
        return gc.iterate(lambda x, v, base: 0.3 * step(x, v, base)[:8], q, v, base, count=5)

    rng = np.random.default_rng(4)
    arguments = [rng.normal(size=(40, n)) for n in (8, 8, 4)]
    one, many = (gc.compile_function(fn, [8, 8, 4], lanes=n) for n in (1, 8))
    assert side_by_side(one.tape, 4).loops[0].step.bundles
    np.testing.assert_array_equal(np.stack([one(*x) for x in zip(*arguments)]), many(*arguments))


OPERATIONS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: b * a, lambda a, b: a * b - a,
    lambda a, b: a / (2.0 + b * b), lambda a, b: np.sin(a) * b, lambda a, b: np.cos(b),
    lambda a, b: np.sqrt(1.0 + a * a), np.arctan2, lambda a, b: -a,
    lambda a, b: np.where(a > b, a, b * 0.5), lambda a, b: np.abs(a) * 0.25,
    lambda a, b: np.where(np.logical_and(a > 0.0, np.logical_not(b > a)), 0.0, -b),
    lambda a, b: (a < b) * 1.0 + np.logical_or(a > 1.0, b <= 0.0) * a,
    np.maximum, lambda a, b: np.arcsin(np.sin(a) * 0.9), lambda a, b: np.sign(a) * b,
]  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 6),
    st.lists(st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 99), st.integers(0, 99)),
             min_size=6, max_size=25),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), max_size=3),
)  # fmt: skip
def test_any_limbs(limbs, formulas, odd):
    """Random formulas, the same for all limbs but for some that differ."""

    def fn(x, trunk):
        returned = []
        for limb in range(limbs):
            values = [x[3 * limb], x[3 * limb + 1], x[3 * limb + 2], trunk[0], trunk[1]]
            values.append(trunk[0] * (0.1 * limb) + trunk[1])
            for k, (op, a, b) in enumerate(formulas):
                if (limb, k) in odd:
                    op = (op + 1) % len(OPERATIONS)
                values.append(OPERATIONS[op](values[a % len(values)], values[b % len(values)]))
            returned += values[-3:]
        return np.stack([*returned, sum(returned[::3])])

    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(12, 3 * limbs)), rng.normal(size=(12, 2))
    one, many = (gc.compile_function(fn, [3 * limbs, 2], lanes=n) for n in (1, 8))
    np.testing.assert_array_equal(np.stack([one(*x) for x in zip(X, T)]), many(X, T))
