"""The table of operations: each column against the values that the operation has on numbers."""

import numpy as np
import pytest

from grubler.compiler.ir import ops
from grubler.compiler.ir.ops import OPS
from grubler.compiler.ir.tape import OperationCount

X = np.array([[0.3, -0.7, 0.2], [-0.6, 0.4, 0.9], [0.8, 0.5, -0.3], [-0.1, -0.9, -0.4]])


def value(op, *operands):
    with np.errstate(all="ignore"):
        return np.asarray(op.evaluate(*operands[: op.arity]), dtype=float)


@pytest.fixture(params=sorted(OPS))
def op(request):
    return OPS[request.param]


def test_a_row_is_complete(op):
    """What no backend can emit, simplify replaces, and all else has a form in LLVM and in C."""
    spelled = (op.llvm is not None or op.library, bool(op.c))
    assert spelled == ((False, False) if op.becomes else (True, True))
    assert op.llvm is None or not op.library
    assert set(op.counted) <= OperationCount.__dataclass_fields__.keys()
    assert op.masks <= op.arity and len(op.parity) in (0, op.arity)


def test_parity(op):
    """The columns that say what a negated operand does, on numbers."""
    for x in X:
        for i, parity in enumerate(op.parity):
            turned = x.copy()
            turned[i] *= -1
            before, after = value(op, *x), value(op, *turned)
            expected = {"odd": -before, "even": before}[parity]
            np.testing.assert_array_equal(after, expected)


def test_exchangeable_operands():
    """The rows with the mark are those whose value does not change."""
    binary = [op for op in OPS.values() if op.arity > 1]
    same = {
        op.name for op in binary if all(value(op, *x) == value(op, x[1], x[0], x[2]) for x in X)
    }
    assert {op.name for op in binary if op.commutative} == same


def test_signs_of_sums():
    for op in OPS.values():
        if op.signs is None:
            continue
        first, second = (-1.0 if sign else 1.0 for sign in op.signs)
        for a, b, c in X:
            product, other = (a * b, c) if op.arity == 3 else (a, b)
            assert value(op, a, b, c) == pytest.approx(first * product + second * other)
        if op.name != "from":
            assert ops.with_signs(op.kind, op.signs) == op.name


def test_operations_that_tell_signed_zeros_apart(op):
    """Where 0 and -0 give different results the row has the mark, or the operation a pole there."""
    for x in (*X, *-X):
        for i in range(op.arity):
            low, high = x.copy(), x.copy()
            low[i], high[i] = -0.0, 0.0
            found = [value(op, *operands) for operands in (low, high)]
            pole = not np.isfinite(found).all()
            assert op.signed_zero or pole or found[0] == found[1]


def test_names_of_casadi():
    assert ops.known_as("constpow") == "pow" and ops.known_as("sin") == "sin"
    assert ops.known_as("einstein") is None
