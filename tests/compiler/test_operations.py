"""Every operation of the tape against NumPy, on random and on special values."""

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.compiler import elementary, scalar
from grubler.compiler.passes import optimize
from grubler.compiler.tape import Array, Tape

INF, NAN = np.inf, np.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, INF, -INF, NAN, 5e-324, -2e-310, 1e300, -1e300]
ARITY = {"select": 3, "fma": 3, "fms": 3, "fnma": 3, "fnms": 3}
UNARY = {
    "neg", "sq", "twice", "inv", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "exp", "log",
    "expm1", "log1p", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "fabs", "sign",
    "floor", "ceil", "not",
}  # fmt: skip


def arity(op):
    return ARITY.get(op, 1 if op in UNARY else 2)


def compiled(op, dtype, lanes):
    """One operation, past the tracer: also those that only the passes make."""
    n = arity(op)
    inputs = tuple(Array(f"x{i}", (1,)) for i in range(n))
    instructions = [*[("input", i, 0) for i in range(n)], (op, *range(n))]
    tape = Tape(inputs, (Array("out", (1,)),), instructions, ((n,),))
    tape = tape if op.startswith(("fm", "fnm")) and n == 3 else optimize(tape)
    f = gc.compile_function(lambda *x: x[0], [1] * n, dtype=dtype, lanes=lanes)
    f._program._tape, f._program.digest = tape, tape.digest()
    return f


def samples(op, dtype):
    n = arity(op)
    rng = np.random.default_rng(3)
    special = np.array(SPECIAL, dtype=float)
    if op in ("sin", "cos", "tan"):
        special = special[~(np.abs(special) > 1e6)]  # larger finite angles: their own test
    grid = np.stack(np.meshgrid(*[special] * n), -1).reshape(-1, n)
    random = rng.normal(size=(200, n)) * 10.0 ** rng.integers(-3, 3, size=(200, n))
    small = rng.uniform(-1, 1, size=(200, n))
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([grid, random, small]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", sorted(scalar.FUNCTIONS))
def test_operation_equals_numpy(op, dtype):
    x = samples(op, dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(float)
        expected = np.asarray(scalar.FUNCTIONS[op](*wide.T)).astype(dtype)
    ulp = 3 if op not in ("tan", "erf", "pow", "fma", "fms", "fnma", "fnms") else 6
    flush = np.finfo(dtype).tiny  # a denormal may differ by its own size
    got = [compiled(op, dtype, lanes) for lanes in (1, 8)]
    got = [f(*[column[:, None] for column in x.T])[:, 0] for f in got]
    same = got[0].view(f"u{x.itemsize}") == got[1].view(f"u{x.itemsize}")
    assert np.all(same | np.isnan(got[0])), "lanes differ from the single state"
    finite = np.isfinite(expected) & np.isfinite(got[0])
    rest = ~finite
    agrees = (expected == got[0]) | (np.isnan(expected) & np.isnan(got[0]))
    if op in ARITY and op != "select":
        # Fused: a product may overflow in NumPy alone, and cancellation is rounded once.
        agrees |= np.isinf(expected) | np.isnan(expected)
        with np.errstate(all="ignore"):
            terms = np.abs(wide[:, 0] * wide[:, 1]) + np.abs(wide[:, 2])
        scale = np.where(np.isfinite(terms), terms, INF)
    else:
        scale = np.abs(expected.astype(float))
    assert np.all(agrees[rest]), (x[rest & ~agrees][:5], expected[rest & ~agrees][:5])
    error = np.abs(got[0][finite].astype(float) - expected[finite].astype(float))
    bound = ulp * np.finfo(dtype).eps * scale[finite] + flush
    worst = np.argmax(error - bound)
    assert np.all(error <= bound), (x[finite][worst], error[worst], bound[worst])


@pytest.mark.parametrize("op", ["sqrt", "add", "mul", "sub", "floor", "ceil", "fmin", "sign"])
def test_exact_operations_are_exact(op):
    x = samples(op, "float64")
    with np.errstate(all="ignore"):
        expected = scalar.FUNCTIONS[op](*x.T)
    np.testing.assert_array_equal(
        compiled(op, "float64", 8)(*[c[:, None] for c in x.T])[:, 0], expected
    )


def test_angles_beyond_the_limit_are_nan():
    f = gc.compile_function(lambda x: np.concatenate([np.sin(x), np.cos(x), np.tan(x)]), [1])
    limit = elementary.LIMIT["float64"]
    assert np.all(np.isfinite(f(np.array([limit]))))
    for x in (limit * 1.001, -1e300, INF, NAN):
        assert np.all(np.isnan(f(np.array([x]))))
