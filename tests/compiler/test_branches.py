"""Branches: what is computed where a condition fails, in each lane for itself."""

import numpy as np
import pytest

import grubler.compiler as gc
from grubler import symbolic
from grubler.compiler.tape import evaluate
from grubler.errors import InputError


def root_or(x, a):
    """A square root by Newton's steps where a is positive, else something else of its own."""
    start = np.ones(2) + 0.0 * x
    y = gc.iterate(lambda y, a: y - (y * y - a) / (2.0 * y), start, np.abs(a), count=8)
    z = gc.otherwise(np.logical_and(a[0] > 0.0, a[1] > 0.0), np.sin(x) + y, lambda: a / y - 3.0 * x)
    return z * 2.0, np.cos(z[0]) + y[1]


def samples(n=45):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), rng.normal(size=(n, 2))


@pytest.mark.parametrize("lanes", [1, 8])
def test_each_lane_takes_its_own(lanes):
    f = gc.compile_function(root_or, [2, 2], lanes=lanes)
    X, A = samples()
    found = f(X, A)
    taken = np.all(A > 0, axis=1)
    assert 5 < taken.sum() < 40
    for i in range(len(X)):
        for got, want in zip(found, root_or(X[i], A[i])):
            np.testing.assert_allclose(got[i], want, rtol=1e-13, atol=1e-13)


def test_the_same_bits_alone_and_together():
    f = gc.compile_function(root_or, [2, 2])
    X, A = samples()
    for got, x, a in zip(zip(*f(X, A)), X, A):
        for together, alone in zip(got, f(x, a)):
            np.testing.assert_array_equal(together, alone)


def test_tape():
    X, A = samples(9)
    tape = gc.trace(root_or, [2, 2])
    assert len(tape.branches) == len(tape.loops) == 1
    for x, a in zip(X, A):
        for got, want in zip(evaluate(tape, x, a), root_or(x, a)):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)
    other = gc.trace(lambda x, a: gc.otherwise(a[0] > 0.0, x, lambda: x + 1.0), [2, 2])
    one_more = gc.trace(lambda x, a: gc.otherwise(a[0] > 0.0, x, lambda: x + 2.0), [2, 2])
    assert other.digest() != one_more.digest()


def test_what_is_seldom_is_counted_apart():
    found = gc.count_operations(
        lambda x: gc.otherwise(x[0] > 0.0, 2.0 * x, lambda: np.sin(x) * x + x), [3]
    )
    assert (found.total, found.seldom) == (3 + 1, 3 * 3)


def test_inside_a_branch_and_inside_a_loop():
    def inner(x):
        return gc.otherwise(x[0] > 1.0, x * 0.5, lambda: 3.0 * x + 1.0)

    def fn(x):
        y = gc.iterate(inner, x, count=6)
        return gc.otherwise(y[0] > 2.0, y, lambda: inner(y) + inner(x))

    f = gc.compile_function(fn, [1])
    X = np.linspace(-1.0, 4.0, 40)[:, None]
    np.testing.assert_allclose(f(X), np.stack([fn(x) for x in X]), rtol=1e-13)


def test_floats_compute_one_side_only():
    def never():
        raise AssertionError

    assert gc.otherwise(True, 1.0, never) == 1.0
    assert gc.otherwise(np.float64(2.0) < 1.0, 1.0, lambda: 2.0) == 2.0


def test_a_casadi_function_computes_both():
    def fn(x):
        return gc.otherwise(x[0] > 0.0, x, lambda: x * x)

    f = gc.casadi_function(fn, [2])
    g = symbolic.trace(fn, [(2,)])
    for x in (np.array([1.0, -3.0]), np.array([-2.0, 3.0])):
        np.testing.assert_array_equal(np.array(f(x)).ravel(), fn(x))
        np.testing.assert_array_equal(np.array(g(x)).ravel(), fn(x))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_function_knows_its_precision(dtype):
    def fn(x):
        return gc.iterate(lambda x: x + gc.precision(), x, count=2) + gc.precision()

    assert gc.compile_function(fn, [1], dtype=dtype)(np.zeros(1, dtype)) == 3 * np.finfo(dtype).eps
    assert gc.precision() == np.finfo(float).eps


def test_bad_branches():
    with pytest.raises(InputError, match="one size"):
        gc.trace(lambda x: gc.otherwise(x[0] > 0.0, x, lambda: x[:1]), [2])
    with pytest.raises(InputError, match="1-D"):
        gc.trace(lambda x: gc.otherwise(x[0, 0] > 0.0, x, lambda: x), [(2, 2)])
