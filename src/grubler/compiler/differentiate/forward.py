"""Forward mode: values and tangents of a tape, ẏ = J ẋ, in several directions at once.

| code   | symbol | meaning                                                                  |
|--------|--------|--------------------------------------------------------------------------|
| x, z   |        | operands and result of an operation                                      |
| t      | ẋ      | tangents of a value, one a direction; None where it does not vary        |
| slope  | ∂z/∂x  | of each operand, from the table of operations                            |

    ż = Σ_i (∂z/∂x_i) ẋ_i

A loop's tangents are carried by the loop beside its state. One to a tolerance has those of its
fixed point (`fixed_point.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..frontend.trace import iterate
from ..ir.ops import LEAVES, OPS
from ..ir.tape import Tape
from .fixed_point import settled_tangents
from .replay import (
    array,
    branch_operands,
    branched,
    f,
    in_loop,
    pieces,
    scalars,
    value_of,
    varying,
)

Tangent: Any = list | None  # of one value: a number a direction, or None


def forward(
    tape: Tape, arguments: Sequence[list[Any]], tangents: Sequence[Any], directions: int
) -> Any:
    """(outputs, their tangents) of a tape, where those of its arguments are given: for each element
    a list with one number a direction, or None; None for an argument that does not vary."""
    line = _Line(tape, arguments, tangents, directions)
    outputs = [[line.values[k] for k in result] for result in tape.results]
    return outputs, [[line.tangents[k] for k in result] for result in tape.results]


class _Line:
    """The values of a tape with their tangents, instruction by instruction."""

    def __init__(self, tape: Tape, arguments, tangents, directions: int):
        self.tape, self.arguments, self.directions = tape, arguments, directions
        self.given = [
            [None] * len(x) if t is None else list(t) for x, t in zip(arguments, tangents)
        ]
        self.marks = varying(tape, [[t is not None for t in given] for given in self.given])
        self.values: list[Any] = []
        self.tangents: list[Any] = []
        with np.errstate(all="ignore"):
            for k, instruction in enumerate(tape.instructions):
                value, tangent = self._next(instruction, self.marks[k])
                self.values.append(value)
                self.tangents.append(tangent)

    def _next(self, instruction, varies):
        op, *operands = instruction
        if op == "loop" and any(varies):
            return self._loop(instruction)
        if op == "branch" and any(varies):
            return self._branch(instruction, varies)
        value = value_of(self.tape, instruction, self.values, self.arguments)
        if op == "input":
            return value, self.given[operands[0]][operands[1]]
        if op == "result":
            return value, self.tangents[operands[0]][operands[1]]
        if op in LEAVES or not varies or isinstance(value, list):
            return value, [None] * len(value) if isinstance(value, list) else None
        return value, self._operation(op, operands, value)

    def _operation(self, op: str, operands, z) -> Tangent:
        x = [self.values[a] for a in operands]
        parts = [
            (slope, self.tangents[a])
            for slope, a in zip(OPS[op].slopes, operands)
            if slope is not None and self.tangents[a] is not None
        ]
        total = []
        for i in range(self.directions):
            terms = [slope(f, t[i], z, *x) for slope, t in parts if t[i] is not None]
            total.append(sum(terms[1:], terms[0]) if terms else None)
        return total if any(t is not None for t in total) else None

    def _branch(self, instruction, varies):
        ok, taken, inside = branch_operands(self.tape, instruction, self.values, self.arguments)
        _, given, known = branch_operands(self.tape, instruction, self.tangents, self.given)
        step = self.tape.branches[instruction[1]].step

        def seldom() -> list[Any]:
            (values,), (tangents,) = forward(step, inside, known, self.directions)
            return [*values, *dense(tangents, varies, self.directions)]

        joined = branched(ok, [*taken, *dense(given, varies, self.directions)], seldom)
        n = len(taken)
        return joined[:n], spread(joined[n:], varies, self.directions)

    def _loop(self, instruction):
        loop = self.tape.loops[instruction[1]]
        start = pieces(loop, [self.values[a] for a in instruction[2:]])
        tangents = pieces(loop, [self.tangents[a] for a in instruction[2:]])
        marks, _ = in_loop(loop, [t is not None for part in tangents for t in part])
        step = LoopStep(loop, marks, self.directions)
        along = [dense(t, mark, self.directions) for t, mark in zip(tangents, marks)]
        n = loop.state_size

        def both(x, p, dp):
            x, p, dp = scalars(x), scalars(p), scalars(dp)
            (following, *residual), (moved, *_) = step.tangents(x[:n], x[n:], p, dp)
            following = array([*following, *moved])
            return (following, array(residual[0])) if residual else following

        p, dp = list(chain(*start[1:])), list(chain(*along[1:]))
        done = iterate(
            both, array([*start[0], *along[0]]), array(p), array(dp),
            count=loop.count, tolerance=loop.tolerance,
        )  # fmt: skip
        if loop.tolerance is None:
            done = scalars(done)
            values = [*done[:n], np.float64(loop.count)]
            return values, [*spread(done[n:], marks[0], self.directions), None]
        x, residual, taken = done
        x = scalars(x)
        moved = settled_tangents(step, along[0], x[:n], x[n:], p, dp)
        _, (_, rates) = step.tangents(x[:n], moved, p, dp)
        mine = spread(moved, marks[0], self.directions)
        rates = spread(rates, [True] * loop.residual_size, self.directions)
        return [*x[:n], *scalars(residual), *scalars(taken)], [*mine, *rates, None]


class LoopStep:
    """A loop's step with the tangents of what varies in it, in lists without gaps."""

    loop: Any
    marks: Any
    directions: int

    def __init__(self, loop: Any, marks: Any, directions: int):
        self.loop, self.marks, self.directions = loop, marks, directions

    def tangents(self, x: list[Any], dx: list[Any], p: list[Any], dp: list[Any]) -> Any:
        """The step's outputs from state x and parameters p, and their tangents."""
        parts = pieces(self.loop, [*x, *p])
        marks = [mark for part in self.marks[1:] for mark in part]
        known = spread(dp, marks, self.directions)
        given = pieces(self.loop, [*spread(dx, self.marks[0], self.directions), *known])
        outputs, rates = forward(self.loop.step, parts, given, self.directions)
        state = dense(rates[0], self.marks[0], self.directions)
        return outputs, [state, *(dense(r, None, self.directions) for r in rates[1:])]


def dense(tangents: list[Any], marks: Any, directions: int) -> list[Any]:
    """The tangents of marked values (None: all), zeros for None, one after the other."""
    nothing = [None] * directions
    marked = [t for t, mark in zip(tangents, marks or [True] * len(tangents)) if mark]
    flat = [x for t in marked for x in (nothing if t is None else t)]
    return [np.float64(0.0) if x is None else x for x in flat]


def spread(tangents: list[Any], marks: Any, directions: int) -> list[Any]:
    """The tangents of all values from those of the marked ones, None elsewhere."""
    rest = iter(range(0, len(tangents), directions)) if directions else iter(())
    return [
        tangents[i : i + directions] if mark and (i := next(rest)) >= 0 else None for mark in marks
    ]
