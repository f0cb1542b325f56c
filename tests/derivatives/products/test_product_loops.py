"""Derivatives of loops: fixed counts of all sizes, Newton's steps, contractions, and loops that
contract nothing."""

import numpy as np
import pytest
from extended import Reference

import grubler as gb
from conftest import load

MODEL = load("four_bar")
SHAPES = {"x": (2,)}
X = np.array([0.7, 0.4])
D, W = np.array([0.3, -1.1]), np.array([0.8, 0.5])


def twice(count):
    """A loop of fixed count around a state of two, with parameters."""

    def fn(model, x):
        step = lambda y, x: np.stack([y[1], np.sin(y[0]) * x[0] + y[1] * x[1]])  # noqa: E731
        return gb.iterate(step, x, x, count=count)

    return fn


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 30, 91, 200, 1000])
def test_fixed_counts(count):
    """Unrolled, in segments, and with a rest: adjoints are those of the tangents, and compile."""
    fn = twice(count)
    J = gb.jacobian(fn, MODEL, shapes=SHAPES, mode="forward")(MODEL, X)
    expected = Reference(lambda x: fn(MODEL, x), MODEL, [(2,)]).derivative([X], [D])
    np.testing.assert_allclose(J @ D, expected, rtol=1e-11, atol=1e-12)
    back = gb.vjp(fn, MODEL, shapes=SHAPES)
    np.testing.assert_allclose(back(MODEL, X, W), W @ J, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(gb.compile(back, MODEL)(X, W), W @ J, rtol=1e-11, atol=1e-12)


def test_a_long_loop_costs_a_constant_times_its_length():
    """Computing states again costs two more runs, not one a step."""
    fn = twice(2500)
    own = gb.count_operations(fn, MODEL, shapes=SHAPES).total
    assert gb.count_operations(gb.vjp(fn, MODEL, shapes=SHAPES), MODEL).total < 6 * own


def root(model, x):
    """y with y² = x, by Newton's steps from 1."""
    step = lambda y, x: (y - 0.5 * (y * y - x) / y, y * y - x)  # noqa: E731
    return gb.iterate(step, np.ones(2) + 0.0 * x, x, tolerance=1e-13)[0]


def kepler(model, x):
    """E with E = M + e sin E, by a step that contracts by e."""

    def step(y, x):
        following = np.stack([x[0] + x[1] * np.sin(y[0])])
        return following, following - y

    return gb.iterate(step, x[:1], x, count=200, tolerance=1e-15)[0]


def slow(model, x):
    """y = 0.9 y + x₀ x₁ cos y: half a hundred steps a factor of 200."""

    def step(y, x):
        following = np.stack([0.9 * y[0] + 0.1 * x[0] * x[1] * np.cos(y[0])])
        return following, following - y

    return gb.iterate(step, x[:1], x, count=1000, tolerance=1e-16)[0]


def residual_too(model, x):
    """What is left at the end, and the number of steps, are constants."""
    y, left, taken = gb.iterate(
        lambda y, x: (y - 0.5 * (y * y - x) / y, y * y - x), np.ones(2) + x * 0.1, x,
        tolerance=1e-9,
    )  # fmt: skip
    return np.concatenate([y, left, np.stack([taken])])


def nested(model, x):
    """A loop of fixed count around a loop to a tolerance."""

    def step(y, x):
        inner = gb.iterate(
            lambda z, y, x: (z - 0.5 * (z * z - y - x) / z, z * z - y - x), np.ones(2) + 0.0 * x,
            y, x, tolerance=1e-13,
        )  # fmt: skip
        return inner[0] * 0.7

    return gb.iterate(step, x, x, count=5)


@pytest.mark.parametrize("fn", [root, kepler, slow, nested])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_fixed_points(fn, mode):
    """First derivatives in both modes and second ones, plain and compiled, in fifty digits."""
    product = gb.jacobian(fn, MODEL, shapes=SHAPES, mode=mode)
    reference = Reference(lambda x: fn(MODEL, x), MODEL, [(2,)])
    expected = reference.derivative([X], [D])
    np.testing.assert_allclose(product(MODEL, X) @ D, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gb.compile(product, MODEL)(X) @ D, expected, rtol=1e-12, atol=1e-13)
    if mode == "forward":
        return
    hvp, w = gb.hvp(fn, MODEL, shapes=SHAPES), W[: len(expected)]
    curvature = w @ reference.second([X], [D])
    assert D @ hvp(MODEL, X, w, D) == pytest.approx(curvature, rel=1e-11)
    assert D @ gb.compile(hvp, MODEL)(X, w, D) == pytest.approx(curvature, rel=1e-11)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_what_is_left_has_no_derivative(mode):
    J = gb.jacobian(residual_too, MODEL, shapes=SHAPES, mode=mode)(MODEL, X)
    np.testing.assert_allclose(J[:2], np.diag(0.5 / np.sqrt(X)), atol=1e-9)
    np.testing.assert_allclose(J[2:4], 0.0, atol=1e-9)
    np.testing.assert_array_equal(J[4], 0.0)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_step_that_does_not_contract_has_no_derivative(mode):
    """x/y hops between two numbers for ever; the loop believes itself converged."""

    def hops(model, x):
        step = lambda y, x: (x[:1] / y, 0.0 * y)  # noqa: E731
        return gb.iterate(step, x[1:], x, count=50, tolerance=1e-3)[0]

    product = gb.jacobian(hops, MODEL, shapes=SHAPES, mode=mode)
    assert np.isnan(product(MODEL, X)).any() and np.isnan(gb.compile(product, MODEL)(X)).any()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_residual_of_which_some_entries_do_not_vary(mode):
    """Entries of the residual and of the state that do not depend on x stand before those that
    do, and what the residual makes of the state is differentiated where the loop has ended."""

    def fn(model, x, z):
        def step(y, x, z):
            following = np.stack([z[0], y[1] - 0.5 * (y[1] * y[1] - x[0]) / y[1], z[1]])
            left = np.stack([1e-9 * z[0], y[1] * y[1] - x[0], 1e-9 * y[1] * x[1]])
            return following, left

        y, left, _ = gb.iterate(step, np.stack([z[0], x[1], z[1]]), x, z, tolerance=1e-8)
        return np.concatenate([y, left * 1e9])

    shapes, z = {"x": (2,), "z": (2,)}, np.array([0.2, 0.3])
    J = gb.jacobian(fn, MODEL, wrt="x", shapes=shapes, mode=mode)(MODEL, X, z)
    y = np.sqrt(X[0])
    expected = np.zeros((6, 2))
    expected[1, 0] = 0.5 / y
    expected[5] = [X[1] * 0.5 / y, y]
    np.testing.assert_allclose(J[[0, 1, 2, 3, 5]], expected[[0, 1, 2, 3, 5]], atol=1e-8)
    np.testing.assert_allclose(J[4] * 1e-9, 0.0, atol=1e-8)
