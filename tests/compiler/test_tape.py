"""Tracing and passes: the same numbers from fewer instructions."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grubler.compiler as gc
from grubler.compiler.ir.tape import OperationCount, count, evaluate
from grubler.compiler.passes.simplify import fuse, optimize, simplify

from .by_hand import quadruped


def ops(tape):
    return [instruction[0] for instruction in tape.instructions]


def test_tape_equals_the_function():
    fn, nq, nv = quadruped(2, 2)
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=nq), rng.normal(size=nv), rng.normal(size=nv)
    traced = gc.trace(fn, [nq, nv, nv])
    expected = fn(q, v, tau)
    for tape in (traced, simplify(traced), optimize(traced)):
        np.testing.assert_allclose(evaluate(tape, q, v, tau)[0], expected, rtol=1e-9)
    assert len(fuse(simplify(traced))) < len(simplify(traced)) <= len(traced)


def test_matrices_are_row_major_both_ways():
    def fn(A, b):
        return A @ np.stack([b, 2 * b], axis=1), A.T, np.zeros((2, 3))

    A, b = np.arange(6.0).reshape(2, 3), np.array([1.0, -1, 3])
    for got, expected in zip(evaluate(gc.trace(fn, [(2, 3), 3]), A, b), fn(A, b)):
        np.testing.assert_array_equal(got, expected)


def test_common_subexpressions_are_merged():
    tape = simplify(gc.trace(lambda x: np.stack([x[0] * x[1] + x[2], x[2] + x[1] * x[0]]), [3]))
    assert ops(tape).count("mul") == ops(tape).count("add") == 1


def test_one_reciprocal_for_several_divisions():
    tape = simplify(gc.trace(lambda x: x[:3] / x[3], [4]))
    assert ops(tape).count("div") == 1 and ops(tape).count("mul") == 3
    single = simplify(gc.trace(lambda x: x[0] / x[1], [2]))
    assert ops(single).count("div") == 1 and "mul" not in ops(single)


def test_where_becomes_a_selection():
    tape = simplify(gc.trace(lambda x: np.where(x[:1] < x[1], x[2], x[3]), [4]))
    assert "select" in ops(tape) and "if_else_zero" not in ops(tape) and "add" not in ops(tape)


def test_signs_are_gathered():
    tape = simplify(
        gc.trace(lambda x: np.stack([-x[0] * x[1] + x[2], np.cos(-x[0]) - np.sin(-x[0])]), [3])
    )
    assert "neg" not in ops(tape)


def test_dead_code_is_dropped():
    def fn(x):
        np.sin(x)
        return x * 2.0

    assert "sin" not in ops(gc.trace(fn, [2]))


def test_constants_are_folded():
    tape = simplify(gc.trace(lambda x: (x + 1.0) * 1.0 - (0.0 * 3.0), [1]))
    assert ops(tape) == ["input", "const", "add"] or ops(tape) == ["const", "input", "add"]


def test_counts():
    def fn(x):
        return np.stack([np.sin(x[0]) * np.cos(x[0]) + x[1] / x[2], np.sqrt(x[2]) - 3.0 * x[1]])

    expected = OperationCount(
        additions=2, multiplications=2, divisions=1, trigonometric=2, square_roots=1
    )
    assert gc.count_operations(fn, [3]) == expected
    assert count(optimize(gc.trace(fn, [3]))) == expected
    assert expected.total == 8


def test_digest_tells_tapes_apart():
    digests = {
        gc.trace(fn, [2]).digest()
        for fn in (
            lambda x: x * 2.0,
            lambda x: x * 2.5,
            lambda x: x * -2.0,
            lambda x: x[::-1] * 2.0,
        )
    }
    assert len(digests) == 4
    assert gc.trace(lambda x: x * 2.0, [2]).digest() in digests


def test_casadi_function():
    fn, nq, nv = quadruped(1, 1)
    rng = np.random.default_rng(1)
    x = [rng.normal(size=n) for n in (nq, nv, nv)]
    function = gc.casadi_function(fn, [nq, nv, nv])
    np.testing.assert_allclose(np.array(function(*x)).ravel(), fn(*x), rtol=1e-9)


def over(a, b):
    return a / (1.0 + b * b)


def angle(a, b):
    return np.arctan2(a, 1.0 + b * b)


def length(a):
    return np.sqrt(1.0 + a * a)


def chosen(a, b, c, x):
    return np.where(x[0] < x[1], a - b, c)


# None of these amplifies a rounding error beyond the size of what it is made of.
OPERATIONS = [
    np.add, np.subtract, np.subtract, np.multiply, np.minimum, np.negative, np.sin, np.cos, np.abs,
    np.tanh, over, angle, length, chosen, 0.0, 1.0, -1.0, 2.0, 0.3,
]  # fmt: skip
ARITY = {np.add: 2, np.subtract: 2, np.multiply: 2, np.minimum: 2, over: 2, angle: 2, chosen: 3}


@st.composite
def programs(draw):
    """A random line of operations on four inputs."""
    steps = []
    for k in range(draw(st.integers(1, 25))):
        operation = draw(st.sampled_from(OPERATIONS))
        places = [draw(st.integers(0, 3 + k)) for _ in range(ARITY.get(operation, 1))]
        steps.append((operation, places))
    return steps


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.lists(st.floats(-1, 1), min_size=4, max_size=4))
def test_passes_keep_the_value_of_random_programs(steps, x):
    def fn(x):
        values = [x[i] for i in range(4)]
        for operation, places in steps:
            operands = [values[p] for p in places]
            if operation is chosen:
                operands.append(x)
            known = isinstance(operation, float)
            values.append(operands[0] * operation if known else operation(*operands))
        return np.stack(values)

    x = np.array(x)
    traced = gc.trace(fn, [4])
    expected = fn(x)
    # Sines of large numbers hang on their last bits: compare up to the first of those.
    large = np.flatnonzero(~(np.abs(expected) < 100))
    tame = slice(0, large[0] if len(large) else None)
    optimized = evaluate(optimize(traced), x)[0]
    for got in (evaluate(traced, x)[0], optimized, gc.compile_function(fn, [4])(x)):
        np.testing.assert_allclose(got[tame], expected[tame], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_any_number_of_lanes(lanes):
    fn, nq, nv = quadruped(1, 2)
    f = gc.compile_function(fn, [nq, nv, nv], lanes=lanes)
    rng = np.random.default_rng(2)
    Q, V, T = (rng.normal(size=(37, n)) for n in (nq, nv, nv))
    expected = np.stack([fn(*x) for x in zip(Q, V, T)])
    np.testing.assert_allclose(f(Q, V, T), expected, rtol=1e-9)


def test_angles_a_constant_apart_share_sine_and_cosine():
    def fn(x):
        return np.stack([np.sin(x[0]), np.cos(x[0]), np.sin(x[0] + 0.3), np.cos(1.2 + x[0])])

    tape = simplify(gc.trace(fn, [1]))
    assert count(tape).trigonometric == 2
    for x in (0.0, -2.0, 40.0):
        np.testing.assert_allclose(evaluate(tape, np.array([x]))[0], fn(np.array([x])), atol=4e-16)
    alone = simplify(gc.trace(lambda x: np.stack([np.sin(x[0] + 0.3), np.sin(x[0])]), [1]))
    assert count(alone).trigonometric == 2  # turning would need the cosine, too
