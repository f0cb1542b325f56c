"""The derivative of every operation of the table, and of choices at points where one side has
none."""

import dataclasses

import numpy as np
import pytest
from extended import OPERATIONS, mp

import grubler as gb
from conftest import load
from grubler.compiler.differentiate import NoDerivative, forward, reverse
from grubler.compiler.ir import ops
from grubler.compiler.ir.ops import OPS
from grubler.compiler.ir.tape import Array, Tape

MODEL = load("four_bar")
INSIDE = {"acosh": 1.0, "log": 0.0, "sqrt": 0.0, "pow": 0.0}  # the domain begins there


def tape_of(op):
    n = OPS[op].arity
    inputs = tuple(Array(f"x{i}", (1,)) for i in range(n))
    instructions = [*[("input", i, 0) for i in range(n)], (op, *range(n))]
    return Tape(inputs, (Array("out", (1,)),), instructions, ((n,),))


def samples(op):
    """Points off the borders of operations with pieces."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        x = rng.uniform(-0.9, 0.9, OPS[op].arity)
        if op in INSIDE:
            x = INSIDE[op] + np.abs(x) + 0.05
        if op == "fmod":
            x = x * (10.0, 1.0)
        yield x


@pytest.mark.parametrize("op", sorted(OPS))
def test_slopes_are_the_derivatives(op):
    """Against central differences in fifty digits, forward and reverse."""
    tape, n, h = tape_of(op), OPS[op].arity, mp.mpf(10) ** -15
    slopes = OPS[op].slopes
    assert slopes is not None and len(slopes) == n
    for x in samples(op):
        if op in ("and", "or", "not", "if_else_zero", "select"):
            x[0] = float(x[0] > 0)
        lists = [[np.float64(value)] for value in x]
        _, back = reverse(tape, lists, [[[np.float64(1.0)]]], [[True]] * n, 1)
        for i in range(n):
            given = [[[np.float64(1.0)]] if j == i else None for j in range(n)]
            _, ((rate,),) = forward(tape, lists, given, 1)
            ahead, behind = ([mp.mpf(v) for v in x] for _ in range(2))
            ahead[i] += h
            behind[i] -= h
            expected = float((OPERATIONS[op](*ahead) - OPERATIONS[op](*behind)) / (2 * h))
            if op in ("and", "or", "not") or (op in ("if_else_zero", "select") and i == 0):
                expected = 0.0
            found = 0.0 if rate is None else rate[0]
            assert found == pytest.approx(expected, rel=1e-13, abs=1e-14)
            adjoint = back[i][0]
            assert (0.0 if adjoint is None else adjoint[0]) == pytest.approx(found, rel=1e-15)


def test_an_operation_without_a_rule_is_named(monkeypatch):
    monkeypatch.setitem(ops.OPS, "tanh", dataclasses.replace(OPS["tanh"], slopes=None))

    def mine(model, x):
        return np.tanh(x) + np.sin(x)

    for product in (gb.jvp, gb.jacobian, gb.hvp, gb.vjp):
        with pytest.raises(NoDerivative, match=f"'mine' has no {product.__name__}.*'tanh'"):
            f = product(mine, MODEL, shapes={"x": (2,)})
            shapes = f.derivative_shapes(MODEL)
            f(MODEL, *[np.ones(s) for s in shapes.values()])
    partly = gb.jvp(lambda model, x, y: np.sin(x) + np.tanh(y), MODEL, wrt="x",
                    shapes={"x": (1,), "y": (1,)})  # fmt: skip
    assert partly(MODEL, [0.3], [0.2], [1.0])[0] == np.cos(0.3)


def _guarded(model, x):
    """sin(r)/r with its limit where r = 0, the root and the quotient guarded by one where."""
    r2 = x @ x
    small = r2 < 1e-8
    r = np.sqrt(np.where(small, 1.0, r2))
    return np.where(small, 1.0 - r2 / 6.0, np.sin(r) / r) + x[0]


def _unguarded(model, x):
    """The same without the inner guard: what is not taken is 0/0."""
    r2 = x @ x
    r = np.sqrt(r2)
    return np.where(r2 < 1e-8, 1.0 - r2 / 6.0, np.sin(r) / r) + x[0]


def _nested(model, x):
    """A choice inside a choice; where both conditions fail, logarithms of negative numbers."""
    inner = np.where(x[1] > 0.0, np.log(x[1]) * x[0], x[1] * x[1])
    return np.where(x[0] > 0.0, inner * np.sqrt(x[0]), x[0] * 3.0 + x[1])


def _branches(model, x):
    """The same by a branch in the code, its usual side infinite where it is not taken."""
    usual = np.stack([np.log(x[0]) * x[1], x[1] / x[0]])

    def seldom():
        return gb.otherwise(x[1] > 0.0, np.stack([np.sqrt(x[1]), x[0]]),
                            lambda: np.stack([x[0] * x[1], x[1] - x[0]]))  # fmt: skip

    return gb.otherwise(x[0] > 0.0, usual, seldom)


POINTS = [np.array(x) for x in ((0.7, 0.4), (0.0, 0.0), (-0.6, 0.3), (-0.2, -0.5), (0.5, -0.1))]


@pytest.mark.parametrize("fn", [_guarded, _unguarded, _nested, _branches])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_what_a_choice_does_not_take_leaves_no_trace(fn, mode):
    """Central differences, at points where the other side is infinite or not a number."""
    J = gb.jacobian(fn, MODEL, shapes={"x": (2,)}, mode=mode)
    compiled = gb.compile(J, MODEL)
    h = 1e-6
    for x in POINTS:
        if fn is _nested and not x.any():
            continue  # a border
        if fn is _branches and not x.any():
            continue
        with np.errstate(all="ignore"):
            expected = np.stack(
                [(fn(MODEL, x + d) - fn(MODEL, x - d)) / (2 * h) for d in h * np.eye(2)], axis=-1
            )
        np.testing.assert_allclose(J(MODEL, x), expected, atol=1e-8)
        np.testing.assert_allclose(compiled(x), J(MODEL, x), atol=1e-14)


def test_one_sided_derivatives_at_borders():
    """Ties go to the first operand, and |x| has the slope 0 at 0."""
    J = gb.jacobian(lambda model, x: np.stack([np.maximum(x[0], x[1]), np.minimum(x[0], x[1])]),
                    MODEL, shapes={"x": (2,)})  # fmt: skip
    np.testing.assert_array_equal(J(MODEL, [0.5, 0.5]), [[1.0, 0.0], [1.0, 0.0]])
    flat = gb.jacobian(lambda model, x: np.abs(x), MODEL, shapes={"x": (1,)})
    assert flat(MODEL, [0.0])[0, 0] == 0.0
