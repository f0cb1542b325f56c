"""Limbs that mirror each other: sums here, differences there, and one operation for both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grubler as gb
import grubler.compiler as gc
from conftest import load
from grubler.compiler.ir.tape import evaluate, members
from grubler.compiler.passes.limbs import side_by_side
from grubler.compiler.passes.schedule import schedule
from grubler.compiler.passes.signs import shapes
from grubler.compiler.passes.simplify import fuse, simplify


def mirrored(turns, last=lambda x: x):
    """Two limbs of turns about an axis and shifts; the right one turns and shifts the other way.
    They begin alike."""

    def limb(q, x, side):
        for i in range(turns):
            c, s = np.cos(q[i]), np.sin(q[i])
            x = np.stack([x[0] * c + 0.2 * x[1] * s, x[1] * s - np.sqrt(1.0 + x[0] * x[0])])
        for i in range(turns):
            c, s = np.cos(q[i]), np.sin(q[i])
            a, b = x[0] * c + side * (x[1] * s), x[1] * c - side * (x[0] * s)
            x = np.stack([a + side * (0.3 * b) + side * 0.1, b * b - side * (a * x[0])])
        return last(x)

    def fn(q, x):
        n = turns
        return np.concatenate([limb(q[:n], x[:2], 1.0), limb(q[n:], x[2:], -1.0)])

    return fn, [2 * turns, 4]


def bundled(fn, shapes_):
    plain = schedule(fuse(simplify(gc.trace(fn, shapes_))))
    return plain, side_by_side(plain, 4)


def computed(tape):
    return [k for k, i in enumerate(tape.instructions) if i[0] not in ("const", "input")]


def same_numbers(fn, shapes_, arguments):
    plain, tape = bundled(fn, shapes_)
    for x in zip(*arguments):
        np.testing.assert_array_equal(evaluate(tape, *x)[0], evaluate(plain, *x)[0])
    one, many = (gc.compile_function(fn, shapes_, lanes=lanes) for lanes in (1, 8))
    np.testing.assert_array_equal(np.stack([one(*x) for x in zip(*arguments)]), many(*arguments))


@pytest.mark.parametrize("turns", [1, 3, 8])
def test_mirrored_limbs_are_computed_together(turns):
    fn, sizes = mirrored(turns)
    plain, tape = bundled(fn, sizes)
    for bundle in tape.bundles:
        assert len({tape.instructions[v][0] for v in members(bundle)}) == 1
    assert len(tape.bundles) > 0.85 * len(computed(plain)) / 2
    negations = [i for i in tape.instructions if i[0] == "neg"]
    assert len(negations) <= 2  # of results
    rng = np.random.default_rng(turns)
    same_numbers(fn, sizes, [rng.uniform(-2, 2, (40, n)) for n in sizes])


def test_formulas_are_alike_but_for_signs():
    fn, sizes = mirrored(2)
    tape = gc.trace(fn, sizes)
    left, right = tape.results[0][:2], tape.results[0][2:]
    signed, unsigned = shapes(tape.instructions), shapes(tape.instructions, signed=False)
    assert [signed[v] for v in left] != [signed[v] for v in right]
    assert [unsigned[v] for v in left] == [unsigned[v] for v in right]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_the_signs_results_are_the_same(data):
    """Two limbs of the same operations, each sign drawn; many contradict each other."""
    steps = data.draw(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=4, max_size=14))
    drawn = [[data.draw(st.sampled_from([1.0, -1.0])) for _ in steps] for _ in range(4)]

    def limb(x, first, second):
        values = [x[i] for i in range(4)]
        for (a, b, c), f, s in zip(steps, first, second):
            product = values[a] * values[b] * f
            values[c] = product + s * values[c] + 0.5 * s if a % 2 else product + f * 0.25
            if b == 3:
                values[c] = np.where(x[0] < 0.2, values[c], f * values[b])
            elif c == 2:
                values[c] = np.where(x[1] < 0.1, values[c], s * 0.5) * np.where(x[2] < 0.0, s, 0.0)
        return np.stack(values)

    def fn(x):
        return np.concatenate([limb(x[:4], *drawn[:2]), limb(x[4:], *drawn[2:])])

    plain, tape = bundled(fn, [8])
    for x in np.random.default_rng(0).uniform(-1.5, 1.5, (10, 8)):
        np.testing.assert_array_equal(evaluate(tape, x)[0], evaluate(plain, x)[0])


def test_choices_in_a_mirror():
    """A choice between values that are negatives is the negative: none is computed."""

    def last(x):
        return np.where(x[1] * x[1] < 1.0, np.stack([x[0] * 0.5, x[1]]), x * x[0])

    fn, sizes = mirrored(3, last)
    _, tape = bundled(fn, sizes)
    chosen = [b for b in tape.bundles if tape.instructions[members(b)[0]][0] == "select"]
    assert len(chosen) == 2 and sum(i[0] == "neg" for i in tape.instructions) <= 2
    rng = np.random.default_rng(5)
    same_numbers(fn, sizes, [rng.uniform(-2, 2, (40, n)) for n in sizes])


def test_zeros_keep_their_signs_on_the_way_to_an_arctangent():
    fn, sizes = mirrored(3, lambda x: np.stack([np.arctan2(x[0] - x[0] * 1.5, -x[1] * x[1]), x[1]]))
    arguments = [np.zeros((8, n)) for n in sizes]
    arguments[1][1:] = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], (7, 4))
    same_numbers(fn, sizes, arguments)


def test_a_humanoid_with_arms_in_a_mirror():
    """Its sides differ in signs: a third of the operations is spared, and the bits are the same."""
    model = load("humanoid")
    one, many = (gb.compile(gb.forward_dynamics, model, lanes=lanes) for lanes in (1, 8))
    tape = one._program.tape
    assert sum(len(b) - 1 for b in side_by_side(tape, 4).bundles) > 0.3 * len(computed(tape))
    states = [model.random_state(seed) for seed in range(24)]
    q, v = (np.array(x) for x in zip(*states))
    a = many(q, v, 3 * v)
    np.testing.assert_array_equal(np.stack([one(*x) for x in zip(q, v, 3 * v)]), a)
