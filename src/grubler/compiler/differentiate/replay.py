"""A tape run on numbers or symbols, and which of its values vary with its arguments.

An array is a list of its elements here, row by row: numbers, or scalars of CasADi.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra import symbolic
from ...algebra.symbolic import Scalar, is_symbolic
from ..errors import DialectError
from ..frontend.trace import otherwise, repeat
from ..ir.ops import OPS
from ..ir.tape import Loop, Tape

if TYPE_CHECKING:
    pass


class NoDerivative(DialectError):
    """An operation has no derivative rule."""


class Arithmetic:
    """Operations by their names on a tape, on numbers and symbols alike: `f.sin(x)`."""

    def make(self, op: str, *operands: Any) -> Any:
        if not any(isinstance(x, Scalar) for x in operands):
            return OPS[op].evaluate(*operands)
        written = _WRITTEN.get(op)
        return symbolic.apply(op, *operands) if written is None else written(self, *operands)

    def __getattr__(self, op: str) -> Callable[..., Any]:
        if op not in OPS:
            raise AttributeError(f"no operation '{op}'")
        return lambda *operands: self.make(op, *operands)


# Operations that CasADi does not have; simplify joins them again.
_WRITTEN = {
    "from": lambda f, a, b: b - a,
    "fma": lambda f, a, b, c: a * b + c,
    "fms": lambda f, a, b, c: a * b - c,
    "fnma": lambda f, a, b, c: c - a * b,
    "fnms": lambda f, a, b, c: -(a * b) - c,
    "select": lambda f, c, a, b: f.if_else_zero(c, a) + f.if_else_zero(f.make("not", c), b),
}

f: Arithmetic = Arithmetic()


def scalars(array: Any) -> list[Any]:
    """The elements of an array, row by row."""
    return symbolic.elements(array) if is_symbolic(array) else list(np.ravel(array))


def array(elements: Sequence[Any], shape: tuple[int, ...] | None = None) -> Any:
    """The array of elements, one-dimensional unless a shape is given."""
    return symbolic.assembled(elements, (len(elements),) if shape is None else shape)


def replay(tape: Tape, arguments: Sequence[list[Any]]) -> list[list[Any]]:
    """The outputs of a tape for arguments given as lists of elements."""
    values = values_of(tape, arguments)
    return [[values[k] for k in result] for result in tape.results]


def values_of(tape: Tape, arguments: Sequence[list[Any]]) -> list[Any]:
    """What each instruction of a tape computes: a number or scalar; of a node its results."""
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for instruction in tape.instructions:
            values.append(value_of(tape, instruction, values, arguments))
    return values


def value_of(tape: Tape, instruction: Any, values: list[Any], arguments: Any) -> Any:
    """What one instruction computes from the values before it."""
    op, *operands = instruction
    if op == "const":
        return np.float64(operands[0])
    if op == "input":
        return arguments[operands[0]][operands[1]]
    if op == "result":
        return values[operands[0]][operands[1]]
    if op == "loop":
        return repeat(tape.loops[operands[0]], [values[a] for a in operands[1:]])
    if op == "branch":
        step = tape.branches[operands[0]].step
        ok, taken, inside = branch_operands(tape, instruction, values, arguments)
        return branched(ok, taken, lambda: replay(step, inside)[0])
    return f.make(op, *[values[a] for a in operands])


def branch_operands(tape: Tape, instruction: Any, values: list[Any], arguments: Any) -> Any:
    """Of a branch's node the condition, the values where it holds, and the arguments of its step,
    all of them as lists."""
    branch = tape.branches[instruction[1]]
    ok, *rest = (values[a] for a in instruction[2:])
    given = list(arguments[: len(branch.step.inputs) - 1])
    return ok, rest[: branch.size], [*given, rest[branch.size :]]


def branched(ok: Any, taken: list[Any], fn: Callable[[], list[Any]]) -> list[Any]:
    """The list `taken` where `ok`, and elsewhere the list that `fn` gives: a branch."""
    if not taken:
        return []
    return scalars(otherwise(array([ok], ()), array(taken), lambda: array(fn())))


def pieces(loop: Loop, start: list[Any]) -> list[list[Any]]:
    """The state and the parameters that a loop's node starts from."""
    parts, at = [], 0
    for given in loop.step.inputs:
        parts.append(start[at : at + given.size])
        at += given.size
    return parts


def varying(tape: Tape, arguments: Sequence[Sequence[bool]]) -> list[Any]:
    """Which values of a tape vary with the elements of its arguments that are marked: True or
    False of each instruction, of a node a list for its results."""
    marks: list[Any] = []
    for instruction in tape.instructions:
        op, *operands = instruction
        if op == "const":
            marks.append(False)
        elif op == "input":
            marks.append(bool(arguments[operands[0]][operands[1]]))
        elif op == "result":
            marks.append(marks[operands[0]][operands[1]])
        elif op == "loop":
            marks.append(in_loop(tape.loops[operands[0]], [marks[a] for a in operands[1:]])[1])
        elif op == "branch":
            step = tape.branches[operands[0]].step
            _, taken, inside = branch_operands(tape, instruction, marks, arguments)
            other = outputs_varying(step, inside)[0]
            marks.append([a or b for a, b in zip(taken, other)])
        else:
            marks.append(_varies(op, [marks[a] for a in operands]))
    return marks


def outputs_varying(tape: Tape, arguments: Any) -> list[list[bool]]:
    """Which elements of the outputs vary with the marked elements of the arguments."""
    marks = varying(tape, arguments)
    return [[marks[k] for k in result] for result in tape.results]


def in_loop(loop: Loop, start: Sequence[bool]) -> tuple[list[list[bool]], list[bool]]:
    """Which elements of a loop's state and parameters vary in some step, and which results do."""
    state, *parameters = pieces(loop, list(start))
    while True:
        following = outputs_varying(loop.step, [state, *parameters])
        joined = [a or b for a, b in zip(state, following[0])]
        if joined == state:
            break
        state = joined
    residual = following[1] if loop.tolerance is not None else []
    return [state, *parameters], [*state, *residual, False]


def _varies(op: str, marks: Sequence[bool]) -> bool:
    if not any(marks):
        return False
    slopes = OPS[op].slopes
    if slopes is None:
        raise NoDerivative(
            f"the operation '{op}' has no derivative rule (`slopes` in compiler/ir/ops.py): write "
            "it with others, or leave out what it depends on by wrt="
        )
    return any(mark and slope is not None for mark, slope in zip(marks, slopes))
