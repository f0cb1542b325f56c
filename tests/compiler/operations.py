"""Every operation of a tape: samples, NumPy's results, and how far any target may be from them."""

import numpy as np

from grubler.compiler.ir.ops import OPS
from grubler.compiler.ir.tape import Array, Tape, operands, with_operands
from grubler.compiler.passes.simplify import optimize

INF, NAN = np.inf, np.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, INF, -INF, NAN, 5e-324, -2e-310, 1e300, -1e300]
# A divisor below the smallest ordinary number counts as zero on a GPU.
NORMAL = [x for x in SPECIAL if not 0 < abs(x) < np.finfo(float).tiny]
LOOSE = {"tan", "erf", "pow", "fma", "fms", "fnma", "fnms"}


def arity(op):
    return OPS[op].arity


def tape_of(op):
    """One operation, past the tracer: also those that only the passes make."""
    n = arity(op)
    inputs = tuple(Array(f"x{i}", (1,)) for i in range(n))
    instructions = [*[("input", i, 0) for i in range(n)], (op, *range(n))]
    tape = Tape(inputs, (Array("out", (1,)),), instructions, ((n,),))
    return tape if OPS[op].kind == "fused" else optimize(tape)


def samples(op, dtype, special=SPECIAL):
    n = arity(op)
    rng = np.random.default_rng(3)
    special = np.array(special, dtype=float)
    if op in ("sin", "cos", "tan"):
        special = special[~(np.abs(special) > 1e6)]  # larger finite angles: their own test
    grid = np.stack(np.meshgrid(*[special] * n), -1).reshape(-1, n)
    random = rng.normal(size=(200, n)) * 10.0 ** rng.integers(-3, 3, size=(200, n))
    small = rng.uniform(-1, 1, size=(200, n))
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([grid, random, small]).astype(dtype)


def expected(op, x):
    """NumPy's results on rows of arguments, rounded to their dtype, and how far off one may be:
    nothing where they are not finite, and anything where the bound is infinite."""
    with np.errstate(all="ignore"):
        wide = x.astype(float)
        result = np.asarray(OPS[op].evaluate(*wide.T)).astype(x.dtype)
        finite = np.isfinite(result)
        scale = np.abs(result.astype(float))
        otherwise = 0.0
        if OPS[op].kind == "fused":
            # Fused: a product may overflow in NumPy alone, and cancellation is rounded once.
            scale = np.abs(wide[:, 0] * wide[:, 1]) + np.abs(wide[:, 2])
            otherwise = INF
        flush = np.finfo(x.dtype).tiny  # a denormal may differ by its own size
        bound = (6 if op in LOOSE else 3) * np.finfo(x.dtype).eps * scale + flush
    return result, np.where(finite, bound, otherwise)


def check(op, x, got):
    """Assert that results are within their bounds."""
    result, bound = expected(op, x)
    with np.errstate(all="ignore"):
        near = np.abs(got.astype(float) - result.astype(float)) <= bound
    good = near | (result == got) | (np.isnan(result) & np.isnan(got)) | np.isinf(bound)
    bad = np.flatnonzero(~good)
    assert not len(bad), [(x[i].tolist(), got[i], result[i], bound[i]) for i in bad[:5]]


def all_operations():
    """A tape of all operations: three inputs, an output for each, in the order of their names."""
    names = sorted(OPS)
    instructions: list[tuple] = [("input", i, 0) for i in range(3)]
    results = []
    for op in names:
        tape, place = tape_of(op), {}
        for k, instruction in enumerate(tape.instructions):
            if instruction[0] == "input":
                place[k] = instruction[1]
                continue
            place[k] = len(instructions)
            moved = with_operands(instruction, [place[a] for a in operands(instruction)])
            instructions.append(moved)
        results.append((place[tape.results[0][0]],))
    inputs = tuple(Array(f"x{i}", (1,)) for i in range(3))
    return Tape(inputs, tuple(Array(op, (1,)) for op in names), instructions, tuple(results))
