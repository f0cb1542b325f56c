"""The compiler: a plain NumPy function in, machine code for SIMD lanes out.

frontend   the function run once on symbols            frontend/
tape       its instructions in SSA form, with loops    ir/
passes     fewer operations, short-lived values        passes/simplify.py, sums.py, schedule.py
limbs      equal limbs of one state in vectors         passes/limbs.py, signs.py, vectors.py
lower      LLVM IR, one emitter for every target       backends/llvm/
target     machine code for the host, C, PTX           backends/cpu/, c/, gpu/
call       NumPy arrays in and out, cached on disk     runtime/
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..algebra import symbolic
from ..errors import InputError, unknown
from .backends.cpu import host as cpu
from .errors import DialectError
from .frontend.trace import checked_shapes, iterate, name_of, otherwise, precision, trace
from .ir.tape import OperationCount, Tape, count, evaluate
from .passes import cost
from .passes.limbs import side_by_side
from .passes.simplify import shortened, simplify
from .runtime import cache
from .runtime.exported import export
from .runtime.function import CompiledFunction
from .runtime.program import Program, single_width

__all__ = [
    "CompiledFunction",
    "DialectError",
    "OperationCount",
    "Tape",
    "casadi_function",
    "choice",
    "compile_function",
    "compile_loop",
    "count_operations",
    "estimate_cycles",
    "evaluate",
    "export",
    "iterate",
    "otherwise",
    "precision",
    "trace",
]


def compile_function(
    fn: Callable[..., Any],
    shapes: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dtype: str = "float64",
    name: str | None = None,
    lanes: int | None = None,
    key: str | None = None,
) -> CompiledFunction:
    """Machine code for a NumPy function of arguments with the given shapes.

    `fn` is run once on symbols (design: the dialect). `lanes` is the number of states that go
    through a batch's instructions together, by default what fills the processor's registers.
    `key` stands for everything that `fn` depends on besides this package's sources and the
    shapes: where the cache knows it, `fn` is not run at all.
    """
    checked = _dtype(dtype)
    host_lanes = cpu.host().lanes(checked.name)
    lanes = host_lanes if lanes is None else lanes
    if not isinstance(lanes, (int, np.integer)) or lanes not in (1, 2, 4, 8, 16, 32):
        raise InputError(f"lanes is {lanes!r}: give 1, 2, 4, 8, 16 or 32 ({host_lanes} fit here)")
    program = Program(fn, shapes, names=names, output_names=output_names, dtype=checked, key=key)
    return CompiledFunction(program, name or name_of(fn).replace("<lambda>", "f"), int(lanes))


def compile_loop(
    step: Callable[..., Any],
    shapes: Sequence[Any],
    *,
    count: int = 50,
    tolerance: float | None = None,
    **options: Any,
) -> CompiledFunction:
    """Machine code that repeats a step: `x, residual, steps = compiled(x, *parameters)`.

    With `tolerance`, `step(x, *parameters) -> (x_next, residual)` is repeated until the largest
    |residual| is within it, at most `count` times, each state for itself; without, `step` returns
    x_next alone and is repeated `count` times, and the result is x alone.
    """

    def loop(x, *parameters):
        return iterate(step, x, *parameters, count=count, tolerance=tolerance)

    options.setdefault("name", name_of(step))
    if tolerance is not None:
        options.setdefault("output_names", ("x", "residual", "steps"))
    if options.get("key") is not None:
        options["key"] = f"{options['key']} loop {count} {tolerance!r}"
    return compile_function(loop, shapes, **options)


def count_operations(fn: Callable[..., Any], shapes: Sequence[Any]) -> OperationCount:
    """The arithmetic of one evaluation after simplification: the measure of the papers' tables."""
    return count(simplify(trace(fn, shapes)))


def estimate_cycles(fn: Callable[..., Any], shapes: Sequence[Any]) -> float:
    """About how many cycles of a CPU one evaluation takes, by its instructions, equal limbs side by
    side, and by the longest way through them: for comparing methods, of which the one with fewer
    operations may be slower."""
    return cost.cycles(side_by_side(shortened(trace(fn, shapes)), single_width("float64")))


def choice(key: str | None, options: Sequence[str], decide: Callable[[], str]) -> str:
    """One of the options, as `decide` says for the host's processor; where the cache knows the key,
    as it said before."""
    if key is None:
        return decide()
    return cache.choice((key, cpu.host().digest), options, decide)


def casadi_function(
    fn: Callable[..., Any], shapes: Sequence[Any], *, name: str | None = None
) -> Any:
    """The CasADi Function of a NumPy function, for CasADi's solvers and their users."""
    shapes = checked_shapes(shapes)
    tape = trace(fn, shapes)  # for its errors: they name the rule and the line
    if tape.iterates:
        raise DialectError(
            f"'{name_of(fn)}' contains a loop over values, which a CasADi Function cannot hold: "
            "hand CasADi one step of it"
        )
    return symbolic.trace(fn, shapes, name or name_of(fn).replace("<lambda>", "f"))


def _dtype(dtype) -> np.dtype:
    try:
        checked = np.dtype(dtype)
    except TypeError:
        checked = None
    if checked is None or checked.name not in ("float64", "float32") or not checked.isnative:
        raise InputError(unknown("dtype", dtype, ["float64", "float32"]))
    return checked
