"""From a NumPy function to a tape: run it once on symbols, read off the instructions.

A function that leaves the dialect (design: build arrays by np.stack / np.concatenate / np.block,
`np.where` instead of `if` on a value, no in-place write) gets an error that names the rule and
the line.
"""

from __future__ import annotations

import inspect
import os
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...algebra import symbolic
from ...arguments import public
from ...errors import InputError
from ..errors import DialectError
from ..forks import uninterrupted
from ..ir.tape import Array, Loop, Tape, run_loop
from ..log import stage
from .reader import Node, Other, read

_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (np, symbolic.casadi)
)  # frames in these are never the user's line

MOST_STEPS = 2**31 - 1  # of a loop: generated code counts them in 32 bits

# What is said when a known misuse raises: the start of CasADi's or our message, and the rule.
_RULES = (
    ("Cannot compute the truth value", "no `if`, `and`, `or`, `max`, `min` or chained comparison "
     "on a traced value: use np.where, np.logical_and, np.maximum or np.minimum"),
    ("the truth value of an array", "no `if` on a traced array: use np.where"),
    ("cannot convert symbolic", "no np.array / np.asarray around traced values, and no index or "
     "size made of them: build with np.stack, np.concatenate or np.block"),
    ("a symbol was converted to a Python number", "no float(), no math.* and no write into a "
     "NumPy array with a traced value: use np.* functions, and build with np.stack"),
    ("setting an array element with a sequence", "no write of a traced value into a NumPy array: "
     "build with np.stack, np.concatenate or np.block"),
    ("in-place write", "never write into an array in place: build a new one with np.stack, "
     "np.concatenate or np.block"),
    ("no implementation found for", "this NumPy function cannot be traced: write it out with "
     "arithmetic, grubler.algebra.linalg has small solvers"),
    ("too many indices", "no new axis by None on a traced array (and no more indices than axes): "
     "build with np.stack"),
    ("cannot be interpreted as an integer", "no index, size or loop count made of traced values: "
     "loop over structure, or use grubler's iterate for a loop over values"),
)  # fmt: skip


class _Recording(threading.local):
    """Loops and branches met so far in the function being traced, innermost trace last."""

    def __init__(self):
        self.stack: list[list[Node]] = []
        self.dtype = np.dtype(float)  # of the code that the outermost trace is for

    def add(self, inner, start, size: int):
        """Symbols for the results of a node in the innermost trace."""
        name = f"node{len(self.stack)}_{len(self.stack[-1])}"
        result = symbolic.symbols(name, size)
        self.stack[-1].append(Node(inner, start, result))
        return result


_recording = _Recording()


def argument_names(fn: Callable[..., Any], number: int) -> list[str]:
    """The names of a function's first positional parameters, or x0, x1, ... where unknown."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    return names[:number] if len(names) >= number else [f"x{i}" for i in range(number)]


def checked_shapes(shapes: Any, names: Any = None) -> list[tuple[int, ...]]:
    """Shapes as tuples; an integer n stands for (n,)."""
    if isinstance(shapes, (int, np.integer)) or not isinstance(shapes, Sequence):
        raise InputError(f"shapes must be a list with one shape an argument, not {shapes!r}")
    checked = []
    for i, shape in enumerate(shapes):
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        whole = all(isinstance(n, (int, np.integer)) and n >= 0 for n in shape)
        if not whole or len(shape) not in (1, 2):
            label = names[i] if names and i < len(names) else i
            raise InputError(
                f"shape {shape} of argument {label!r} is not understood: give one or two sizes, "
                "without the batch axis"
            )
        checked.append(tuple(int(n) for n in shape))
    return checked


def precision() -> float:
    """The relative spacing of the numbers that the function being traced is compiled for; on
    floats that of double precision."""
    return float(np.finfo(_recording.dtype).eps)


@uninterrupted()
def trace(
    fn: Callable[..., Any],
    shapes: list[tuple[int, ...]],
    names: Sequence[str] | None = None,
    dtype: np.dtype | None = None,
    around: list[Any] | None = None,
) -> Tape:
    """The tape of a NumPy function for arguments of the given shapes, as traced.

    `dtype` is only what `precision` tells the function; a function traced inside has that of the
    one around it. Values of a trace around it that the function uses become one more argument where
    the list `around` is given; the array of these values is put there.
    """  # fmt: skip
    shapes = checked_shapes(shapes, names)
    names = list(names) if names is not None else argument_names(fn, len(shapes))
    if len(names) != len(shapes):
        raise InputError(f"{len(names)} names for {len(shapes)} shapes: give one name an argument")
    with stage(f"trace {name_of(fn)}"), symbolic.only_pure_operations():
        arguments = [symbolic.symbols(f"x{i}", *shape) for i, shape in enumerate(shapes)]
        _recording.stack.append([])
        outer = _recording.dtype
        _recording.dtype = outer if dtype is None else np.dtype(dtype)
        try:
            outputs = _outputs(fn, fn(*arguments))
        except DialectError:
            raise
        except (TypeError, RuntimeError, ValueError, IndexError, NotImplementedError) as error:
            raise _explained(fn, error) from error
        finally:
            nodes, _recording.dtype = _recording.stack.pop(), outer
        inputs = tuple(Array(n, s) for n, s in zip(names, shapes))
        received = np.zeros(0) if around is None else _received(arguments, outputs, nodes)
        if received.shape[0]:
            around.append(received)
            arguments.append(received)
            inputs += (Array("around", received.shape),)
        return read(name_of(fn), inputs, arguments, outputs, nodes)


def _received(arguments, outputs, nodes: list[Node]):
    """The symbols of other traces that outputs and nodes are built from, as an array."""
    known, built, waiting = list(arguments), list(outputs), list(nodes)
    while waiting:
        node = waiting.pop()
        known.append(node.result)
        built.append(node.start)
        if isinstance(node.inner, Other):
            built.append(node.inner.values)
            waiting += node.inner.nodes
    return symbolic.received_from_around(known, built)


def name_of(fn: Callable[..., Any]) -> str:
    fn = getattr(fn, "func", fn)  # a functools.partial
    return getattr(fn, "__name__", type(fn).__name__)


def _outputs(fn, out) -> list[Any]:
    """The outputs as a list of arrays with one or two axes or none."""
    outputs = list(out) if isinstance(out, (tuple, list)) else [out]
    if not outputs:
        raise DialectError(f"'{name_of(fn)}' returns nothing: return an array, or several")
    for i, value in enumerate(outputs):
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
            outputs[i] = np.float64(value)
        elif not (isinstance(value, np.ndarray) or symbolic.is_symbolic(value)):
            raise DialectError(
                f"'{name_of(fn)}' returns {type(value).__name__} as output {i}: return an array, "
                "or a tuple of arrays"
            )
        if len(outputs[i].shape) > 2:
            raise DialectError(
                f"output {i} of '{name_of(fn)}' has shape {outputs[i].shape}: at most two axes, "
                "batching is the compiler's business"
            )
    return outputs


def _explained(fn, error: Exception) -> Exception:
    """A DialectError for a known misuse, otherwise the error as it came."""
    message = str(error)
    rule = next((rule for start, rule in _RULES if start in message), None)
    if rule is None:
        return error
    frames = [
        f for f in traceback.extract_tb(error.__traceback__)
        if not os.path.abspath(f.filename).startswith(_LIBRARIES)
    ]  # fmt: skip
    outside = [f for f in frames if not _is_own(f.filename)]
    where = ""
    if outside or frames:
        frame = (outside or frames)[-1]
        where = f", {os.path.basename(frame.filename)} line {frame.lineno}: `{frame.line}`"
    return DialectError(f"'{name_of(fn)}' cannot be traced{where}: {rule}")


def _is_own(filename: str) -> bool:
    """Whether a frame belongs to the tracer itself, not to a function being traced."""
    compiler = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    return os.path.abspath(filename).startswith(compiler) or filename == symbolic.__file__


@public
def iterate(
    step: Callable[..., Any],
    state: Any,
    *parameters: Any,
    count: int = 50,
    tolerance: float | None = None,
) -> Any:
    """Repeat a traced step: a loop in the generated code, a Python loop on floats.

    Without `tolerance`, `step(x, *parameters) -> x_next` runs `count` times and `iterate` returns
    x. With it, `step(x, *parameters) -> (x_next, residual)` runs until no |residual| exceeds the
    tolerance or `count` steps were taken, each lane of a batch for itself, and `iterate` returns
    (x, residual at x, number of steps taken). A residual of NaN ends the loop: check the residual
    that is returned. The state is 1-D.

    Derivatives (`grubler.jvp`, `vjp`) with a tolerance are those of the fixed point, and NaN where
    `step` does not contract there; without, those of all steps.
    """
    if not isinstance(count, (int, np.integer)) or count < 0:
        raise InputError(f"count is {count!r}: give the largest number of steps, an integer >= 0")
    if count > MOST_STEPS:
        raise InputError(f"count is beyond {MOST_STEPS}: give the largest number of steps")
    if tolerance is not None and not tolerance >= 0:
        raise InputError(f"tolerance is {tolerance!r}: give a number >= 0, or None")
    if len(_shape(state)) != 1:
        raise InputError(f"the state of a loop has shape {_shape(state)}: give a 1-D array")
    if not symbolic.is_symbolic(state, *parameters):
        state = np.asarray(state)
        return _iterate_floats(step, state, parameters, count, tolerance)
    if not _recording.stack:
        raise DialectError("iterate was given symbols outside a traced function: use compile_loop")
    shapes = [_shape(a) for a in (state, *parameters)]
    # A scalar parameter travels as one element.
    shapes = [shape or (1,) for shape in shapes]
    tape = trace(step, shapes)
    _check_step(step, tape, tolerance)
    loop = Loop(tape, int(count), None if tolerance is None else float(tolerance))
    start = np.concatenate([_flat(a) for a in (state, *parameters)])
    result = _recording.add(loop, start, loop.result_size)
    n, r = loop.state_size, loop.residual_size
    return result[:n] if tolerance is None else (result[:n], result[n : n + r], result[n + r])


def repeat(loop: Loop, start: Any) -> list[Any]:
    """The results of a loop from the values that its node starts from: scalars or numbers."""
    if not any(isinstance(x, symbolic.Scalar) for x in start):
        return run_loop(loop, [float(x) for x in start])
    if not _recording.stack:
        raise DialectError("a loop was given symbols outside a traced function: use compile_loop")
    start = symbolic.assembled(start, (len(start),))
    return symbolic.elements(_recording.add(loop, start, loop.result_size))


@public
def otherwise(ok: Any, values: Any, fn: Callable[[], Any]) -> Any:
    """`values` where `ok`, and what `fn()` gives elsewhere: a branch in the generated code.

    For what is seldom needed and costs much: np.where computes both. In a batch the states that
    take the branch are gathered and computed side by side, after the others; inside a loop a
    register takes it where one of its states does. Both are 1-D, of one size. Loops and
    branches inside `fn` are computed only there. It computes again what it needs of the values
    known outside: to store them for it, always, would cost more.
    """
    if not symbolic.is_symbolic(ok):
        return values if ok else fn()
    recorded = bool(_recording.stack)  # not where a CasADi Function is made
    if recorded:
        _recording.stack.append([])
    try:
        other = fn()
    finally:
        nodes = _recording.stack.pop() if recorded else []
    if len(_shape(values)) != 1 or _shape(values) != _shape(other):
        raise InputError(
            f"values of shape {_shape(values)} or else {_shape(other)}: give 1-D arrays of one size"
        )
    if not recorded:
        return np.where(ok, values, other)
    return _recording.add(Other(other, nodes), np.concatenate([_flat(ok), values]), values.size)


def _shape(a) -> tuple[int, ...]:
    # np.shape would see a symbolic vector as CasADi's column.
    return tuple(int(n) for n in (a.shape if hasattr(a, "shape") else np.shape(a)))


def _flat(a):
    shape = _shape(a)
    if len(shape) == 0:
        return np.stack([a])
    return a if len(shape) == 1 else np.concatenate([a[i] for i in range(shape[0])])


def _check_step(step, tape: Tape, tolerance) -> None:
    state = tape.inputs[0].shape
    if tape.outputs[0].shape != state:
        raise DialectError(
            f"the step '{name_of(step)}' turns a state of shape {state} into one of shape "
            f"{tape.outputs[0].shape}: the first output must be the next state"
        )
    expected = 1 if tolerance is None else 2
    if len(tape.outputs) != expected:
        fix = "return the next state alone" if expected == 1 else "return (next state, residual)"
        raise DialectError(f"the step '{name_of(step)}' has {len(tape.outputs)} outputs: {fix}")


def _iterate_floats(step, x, parameters, count, tolerance):
    if tolerance is None:
        for _ in range(count):
            x = step(x, *parameters)
        return x
    taken = 0
    while True:
        out = step(x, *parameters)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise InputError(
                f"the step '{name_of(step)}' returned {type(out).__name__}: with a tolerance, "
                "return (next state, residual)"
            )
        following, residual = out
        if not np.any(np.abs(residual) > tolerance) or taken == count:
            return x, np.atleast_1d(residual), np.float64(taken)
        x, taken = following, taken + 1
