"""Loops over values: fixed count, and until converged in each lane for itself."""

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.compiler.ir.tape import evaluate
from grubler.errors import InputError


def newton(x, a):
    """One step towards the square root of a, and the residual at x."""
    residual = x * x - a
    return x - residual / (2.0 * x), residual


def python_newton(x, a, count, tolerance):
    steps = 0
    while True:
        following, residual = newton(x, a)
        if not np.any(np.abs(residual) > tolerance) or steps == count:
            return x, residual, steps
        x, steps = following, steps + 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_each_lane_stops_for_itself(dtype, lanes):
    tolerance = 1e-10 if dtype == "float64" else 1e-3
    f = gc.compile_loop(newton, [2, 2], tolerance=tolerance, count=30, dtype=dtype, lanes=lanes)
    rng = np.random.default_rng(0)
    A = 10.0 ** rng.uniform(-2, 2, size=(45, 2)).astype(dtype)
    X = np.ones((45, 2), dtype)
    x, residual, steps = f(X, A)
    assert np.all(np.abs(residual) <= tolerance) and len(set(steps)) > 3
    np.testing.assert_allclose(x * x, A, atol=2 * tolerance)
    if dtype == "float64":
        for i in range(45):
            expected = python_newton(X[i], A[i], 30, tolerance)
            np.testing.assert_allclose(x[i], expected[0], rtol=1e-14)
            assert steps[i] == expected[2]


def test_lanes_do_not_disturb_each_other():
    f = gc.compile_loop(newton, [1, 1], tolerance=1e-12, count=20)
    A = np.array([[4.0], [np.nan], [1e6], [1.0], [-1.0], [9.0]])
    together = f(np.ones((6, 1)), A)
    for i in range(6):
        alone = f(np.ones(1), A[i])
        for t, a in zip(together, alone):
            np.testing.assert_array_equal(t[i], a)
    assert together[2][1] == 0 and np.isnan(together[1][1])  # NaN ends a lane


def test_largest_number_of_steps():
    f = gc.compile_loop(newton, [1, 1], tolerance=0.0, count=3)
    x, residual, steps = f(np.array([1.0]), np.array([2.0]))
    expected = python_newton(np.array([1.0]), np.array([2.0]), 3, 0.0)
    np.testing.assert_allclose(x, expected[0])
    np.testing.assert_allclose(residual, expected[1], atol=1e-15)
    assert steps == 3
    x, residual, steps = gc.compile_loop(newton, [1, 1], tolerance=0.0, count=0)(
        np.array([1.0]), np.array([2.0])
    )
    assert (x[0], residual[0], steps) == (1.0, -1.0, 0.0)


def test_fixed_count():
    for count in (0, 1, 7):
        f = gc.compile_loop(lambda x, a: x * a + 1.0, [2, 2], count=count)
        x, a = np.array([1.0, 2.0]), np.array([0.5, 1.5])
        want = x
        for _ in range(count):
            want = want * a + 1.0
        np.testing.assert_allclose(f(x, a), want)
        np.testing.assert_allclose(f(np.tile(x, (11, 1)), a)[7], want)


def test_a_loop_inside_a_function_and_inside_a_loop():
    def root(a):
        return gc.iterate(newton, np.ones(1) + 0.0 * a, a, count=25, tolerance=1e-12)

    def step(x, a):
        # An inner loop that starts from the outer state.
        inner, _, _ = root(x)
        return inner + a

    def fn(x, a):
        before = np.sin(x)
        y, _, k = root(a)
        z = gc.iterate(step, np.cos(y), a, count=4)
        return before * y, z + before, k * 2.0

    x, a = np.array([0.4]), np.array([3.0])
    expected = fn(x, a)
    tape = gc.trace(fn, [1, 1])
    for got, want in zip(evaluate(tape, x, a), expected):
        np.testing.assert_allclose(got, want, rtol=1e-9)
    compiled = gc.compile_function(fn, [1, 1])
    for got, want in zip(compiled(x, a), expected):
        np.testing.assert_allclose(got, want, rtol=1e-9)
    for got, want in zip(compiled(np.tile(x, (9, 1)), a), expected):
        np.testing.assert_allclose(got[8], want, rtol=1e-9)


def test_matrix_and_scalar_parameters():
    def fn(A, b, s):
        return gc.iterate(
            lambda x, A, b, s: x - s * (A @ x - b), np.zeros(2) * b, A, b, s[0], count=60
        )

    A, b = np.array([[2.0, 0.3], [0.1, 1.0]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(
        gc.compile_function(fn, [(2, 2), 2, 1])(A, b, np.array([0.5])),
        np.linalg.solve(A, b),
        rtol=1e-9,
    )


def test_counts_include_the_steps():
    def fn(x):
        return gc.iterate(lambda x: x * 2.0 + 1.0, x, count=5)

    assert gc.count_operations(fn, [3]).multiplications == 15


def test_bad_loops():
    with pytest.raises(gc.DialectError, match="next state"):
        gc.compile_loop(lambda x: x[:1], [2], count=3)
    with pytest.raises(gc.DialectError, match="residual"):
        gc.compile_loop(lambda x: x, [2], count=3, tolerance=1e-3)
    with pytest.raises(gc.DialectError, match="parameters"):
        gc.compile_function(lambda x, a: gc.iterate(lambda y: y + a, x, count=2), [1, 1])
    with pytest.raises(InputError, match="count"):
        gc.compile_loop(newton, [1, 1], count=-1)
    with pytest.raises(InputError, match="count is beyond 2147483647"):
        gc.compile_loop(newton, [1, 1], count=2**32 + 1)
    with pytest.raises(InputError, match="count is beyond 2147483647"):
        gc.iterate(lambda x: 0.5 * x, np.ones(1), count=10**5000)
    with pytest.raises(InputError, match="tolerance"):
        gc.compile_loop(newton, [1, 1], tolerance=-1.0)
    with pytest.raises(gc.DialectError, match="CasADi"):
        gc.casadi_function(lambda x: gc.iterate(lambda x: x * 2.0, x, count=2), [1])
