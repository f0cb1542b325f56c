"""Trigonometry against mpmath, in units in the last place."""

import mpmath
import numpy as np
import pytest

import grubler.compiler as gc


def worst_ulp(got, exact, dtype):
    """The largest error in units in the last place of the exact value."""
    spacing = [float(np.spacing(np.abs(np.array(float(e), dtype)))) for e in exact]
    return max(float(abs(mpmath.mpf(float(g)) - e) / s) for g, e, s in zip(got, exact, spacing))


def arguments(dtype, reach):
    rng = np.random.default_rng(5)
    near = np.arange(-700, 700) * (np.pi / 2)  # where the reduction cancels most
    parts = [
        rng.uniform(-np.pi, np.pi, 1500),
        rng.uniform(-reach, reach, 1500),
        near, np.nextafter(near, 1e9), near * (1 + 1e-12),
        rng.integers(0, int(reach), 500) * (np.pi / 2) % reach,
        10.0 ** rng.uniform(-20, 0, 300),
    ]  # fmt: skip
    return np.concatenate(parts).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "reach"),
    [
        ("float64", 1e4),
        ("float64", 1e9),
        ("float64", 2.0**47),
        ("float32", 1e4),
        ("float32", 2**18),
    ],
)
def test_within_two_ulp(dtype, reach):
    x = arguments(dtype, reach)
    f = gc.compile_function(lambda x: (np.sin(x), np.cos(x)), [1], dtype=dtype)
    sine, cosine = (column[:, 0] for column in f(x[:, None]))
    with mpmath.workprec(250):
        exact = [mpmath.mpf(float(v)) for v in x]
        assert worst_ulp(sine, [mpmath.sin(v) for v in exact], dtype) < 2
        assert worst_ulp(cosine, [mpmath.cos(v) for v in exact], dtype) < 2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arc_functions_within_three_ulp(dtype):
    rng = np.random.default_rng(0)
    y, x = (rng.normal(size=(2, 2000)) * 10.0 ** rng.integers(-6, 6, (2, 2000))).astype(dtype)
    x[:1000] = y[:1000] * rng.uniform(-3, 3, 1000).astype(dtype)
    near_one = 1 - 10.0 ** rng.uniform(-16, 0, 500)
    u = np.concatenate([rng.uniform(-1, 1, 1000), near_one, -near_one]).astype(dtype)
    f = gc.compile_function(
        lambda y, x, u: (np.arctan2(y, x), np.arctan(y), np.arcsin(u), np.arccos(u)),
        [1, 1, 1],
        dtype=dtype,
    )
    got = [column[:, 0] for column in f(y[:, None], x[:, None], u[:, None])]
    with mpmath.workprec(200):
        y, x, u = ([mpmath.mpf(float(v)) for v in values] for values in (y, x, u))
        exact = [
            [mpmath.atan2(a, b) for a, b in zip(y, x)],
            [mpmath.atan(a) for a in y],
            [mpmath.asin(a) for a in u],
            [mpmath.acos(a) for a in u],
        ]
        for g, e in zip(got, exact):
            assert worst_ulp(g, e, dtype) < 3
