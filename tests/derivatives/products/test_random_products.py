"""Random programs with choices, branches and loops inside each other: both modes against fifty
digits, plain and compiled."""

import numpy as np
import pytest
from extended import NotConverged, Reference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grubler as gb
from conftest import load

MODEL = load("four_bar")
N = 3


class Program:
    """A function R³ → R³, drawn from a seed: the same at every call."""

    def __init__(self, seed: int, deep: int = 2):
        rng = np.random.default_rng(seed)
        self.lines = [self._line(rng, deep) for _ in range(rng.integers(4, 9))]
        self.out = rng.integers(0, 1000, N)
        self.__name__ = f"program {seed}"

    @staticmethod
    def _line(rng, deep: int):
        kinds = ["sum", "product", "sin", "cos", "tanh", "root", "quotient", "where", "hypot"]
        kinds += ["branch", "count", "newton", "contraction"] * (deep > 0)
        kind = rng.choice(kinds)
        inner = [Program(int(rng.integers(2**31)), deep - 1) for _ in range(2)] if deep else []
        return kind, rng.integers(0, 1000, 3), float(rng.uniform(-0.5, 0.5)), inner

    def __call__(self, model, x):
        values = [x[i] for i in range(N)]
        for kind, places, c, inner in self.lines:
            a, b, d = (values[i % len(values)] for i in places)
            values += self._values(kind, a, b, d, c, inner)
        return np.stack([np.tanh(values[i % len(values)]) for i in self.out])

    def _values(self, kind, a, b, d, c, inner) -> list:
        if kind == "sum":
            return [a + c * b - d]
        if kind == "product":
            return [a * b]
        if kind in ("sin", "cos", "tanh"):
            return [getattr(np, kind)(a + c)]
        if kind == "root":
            return [np.sqrt(1.5 + a * a + c)]
        if kind == "quotient":
            return [a / (2.0 + b * b)]
        if kind == "hypot":
            return [np.hypot(a, 0.3 + b * b)]
        if kind == "where":  # what is not taken is not a number
            return [np.where(a > c, np.log(a - c) * b, np.sqrt(c - a) * d), np.abs(b)]
        start = np.stack([a, b, d])
        if kind == "branch":
            good = np.stack([np.log(a - c), b * d, d])
            out = gb.otherwise(a - c > 0.01, good, lambda: inner[0](None, start))
        elif kind == "count":
            out = gb.iterate(lambda y, p: inner[0](None, y + 0.5 * p), start, start, count=4)
        elif kind == "newton":  # y³ + y = s(p)

            def step(y, p):
                residual = y * y * y + y - inner[0](None, p)
                return y - residual / (3.0 * y * y + 1.0), residual

            out = gb.iterate(step, np.zeros(N) + 0.0 * start, start, tolerance=1e-12)[0]
        else:  # y = 0.2 s(y, p)

            def step(y, p):
                following = 0.2 * np.tanh(inner[0](None, y * 0.3 + p))
                return following, following - y

            out = gb.iterate(step, start, start, count=400, tolerance=1e-15)[0]
        return [out[i] for i in range(N)]


def _at_a_border(J) -> bool:
    return not np.all(np.isfinite(J)) or np.abs(J).max() > 1e6


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**31))
def test_both_modes(seed):
    fn = Program(seed)
    rng = np.random.default_rng(seed)
    x, d, w = rng.uniform(-1, 1, (3, N))
    try:
        expected = Reference(lambda x: fn(MODEL, x), MODEL, [(N,)]).derivative([x], [d])
    except NotConverged:
        return
    if _at_a_border(expected):
        return
    size = max(1.0, np.abs(expected).max())
    jvp, vjp = (make(fn, MODEL, shapes={"x": (N,)}) for make in (gb.jvp, gb.vjp))
    np.testing.assert_allclose(jvp(MODEL, x, d), expected, atol=1e-10 * size)
    assert vjp(MODEL, x, w) @ d == pytest.approx(w @ expected, abs=1e-10 * size)


@pytest.mark.parametrize("seed", [3, 11, 12])
def test_compiled(seed):
    fn = Program(seed)
    rng = np.random.default_rng(seed)
    x, d, w = rng.uniform(-1, 1, (3, 20, N))
    options = {"shapes": {"x": (N,)}}
    jvp, vjp, hvp = (make(fn, MODEL, **options) for make in (gb.jvp, gb.vjp, gb.hvp))
    rate, back = gb.compile(jvp, MODEL)(x, d), gb.compile(vjp, MODEL)(x, w)
    bent = gb.compile(hvp, MODEL)(x, w, d)
    for i in range(0, 20, 6):
        np.testing.assert_allclose(rate[i], jvp(MODEL, x[i], d[i]), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(back[i], vjp(MODEL, x[i], w[i]), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(bent[i], hvp(MODEL, x[i], w[i], d[i]), rtol=1e-8, atol=1e-9)
