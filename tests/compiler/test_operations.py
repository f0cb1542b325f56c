"""Every operation of the tape against NumPy, on random and on special values."""

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.compiler.backends.llvm import elementary
from grubler.compiler.ir.ops import OPS

from .operations import INF, NAN, arity, check, samples, tape_of


def compiled(op, dtype, lanes):
    f = gc.compile_function(lambda *x: x[0], [1] * arity(op), dtype=dtype, lanes=lanes)
    tape = tape_of(op)
    f._program._tape, f._program.digest = tape, tape.digest()
    return f


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", sorted(OPS))
def test_operation_equals_numpy(op, dtype):
    x = samples(op, dtype)
    got = [compiled(op, dtype, lanes) for lanes in (1, 8)]
    got = [f(*[column[:, None] for column in x.T])[:, 0] for f in got]
    same = got[0].view(f"u{x.itemsize}") == got[1].view(f"u{x.itemsize}")
    assert np.all(same | np.isnan(got[0])), "lanes differ from the single state"
    check(op, x, got[0])


@pytest.mark.parametrize("op", ["sqrt", "add", "mul", "sub", "floor", "ceil", "fmin", "sign"])
def test_exact_operations_are_exact(op):
    x = samples(op, "float64")
    with np.errstate(all="ignore"):
        expected = OPS[op].evaluate(*x.T)
    np.testing.assert_array_equal(
        compiled(op, "float64", 8)(*[c[:, None] for c in x.T])[:, 0], expected
    )


def test_angles_beyond_the_limit_are_nan():
    f = gc.compile_function(lambda x: np.concatenate([np.sin(x), np.cos(x), np.tan(x)]), [1])
    limit = elementary.LIMIT["float64"]
    assert np.all(np.isfinite(f(np.array([limit]))))
    for x in (limit * 1.001, -1e300, INF, NAN):
        assert np.all(np.isnan(f(np.array([x]))))
