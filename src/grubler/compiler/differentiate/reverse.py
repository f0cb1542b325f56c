"""Reverse mode: values and adjoints of a tape, x̄ = Jᵀ ȳ, for several weights at once.

| code   | symbol | meaning                                                              |
|--------|--------|----------------------------------------------------------------------|
| x, z   |        | operands and result of an operation                                  |
| t      | z̄      | adjoints of a value, one a weight                                    |
| slope  | ∂z/∂x  | of each operand, from the table of operations                        |
| guard  |        | the conditions under which alone a value is used, outermost first    |

    x̄_i += (∂z/∂x_i) z̄

What `np.where` and `otherwise` do not take may be infinite or NaN, and so may be its slopes: 0
times them is no 0. So adjoints of values that are used under a condition alone are computed as if
it held, and chosen by it where they leave for values that are used without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.ops import OPS
from ..ir.tape import Tape
from .forward import dense
from .loops import loop_adjoints
from .replay import branch_operands, branched, f, outputs_varying, values_of, varying

Guard = tuple  # of (value of the condition, whether it must hold)


def reverse(
    tape: Tape,
    arguments: Sequence[list[Any]],
    weights: Sequence[Any],
    wanted: Sequence[Any],
    rows: int,
) -> Any:
    """(outputs, adjoints of the arguments) of a tape. `weights` has for each element of an output a
    list with one number a row, or None; None for an output without weight. `wanted` marks the
    elements of the arguments that have adjoints; of others, and where nothing depends, None."""
    line = _Line(tape, arguments, weights, wanted, rows)
    outputs = [[line.values[k] for k in result] for result in tape.results]
    return outputs, line.adjoints()


class _Line:
    def __init__(self, tape: Tape, arguments, weights, wanted, rows: int):
        self.tape, self.arguments, self.rows = tape, arguments, rows
        self.wanted = [list(marks) for marks in wanted]
        self.marks = varying(tape, self.wanted)
        self.values = values_of(tape, arguments)
        self.guards: dict[Any, Any] = {}  # by value, and by (node, result)
        self.parts: dict[
            Any, Any
        ] = {}  # adjoints by value and by the guard under which they arrive
        self.found: list[Any] = [[None] * len(marks) for marks in self.wanted]
        self.weights = weights
        self._find_guards()

    def adjoints(self) -> list[list[Any]]:
        """The adjoints of the arguments."""
        with np.errstate(all="ignore"):
            for result, given in zip(self.tape.results, self.weights):
                for k, t in zip(result, [None] * len(result) if given is None else given):
                    self._receive(k, (), t)
            for k in reversed(range(len(self.tape.instructions))):
                self._back(k)
        return self.found

    # which values are used under which conditions

    def _find_guards(self) -> None:
        for result in self.tape.results:
            for k in result:
                self.guards[k] = ()
        instructions = self.tape.instructions
        for k in reversed(range(len(instructions))):
            if k not in self.guards:
                continue
            instruction, guard = instructions[k], self.guards[k]
            if instruction[0] == "input":
                self.guards[k] = ()
            for operand, inner in self._reads(instruction, guard):
                known = self.guards.get(operand)
                self.guards[operand] = inner if known is None else _common(known, inner)

    def _reads(self, instruction, guard: Guard):
        """The values that an instruction reads, and under which conditions."""
        op, *operands = instruction
        if op in ("const", "input"):
            return
        if op == "result":
            yield operands[0], guard
        elif op in ("loop", "branch"):
            size = self.tape.branches[operands[0]].size if op == "branch" else 0
            for i, a in enumerate(operands[1:]):
                yield a, ((*guard, (operands[1], True)) if 1 <= i <= size else guard)
        else:
            for i, a in enumerate(operands):
                yield a, self._chosen(op, operands, i, guard)

    @staticmethod
    def _chosen(op: str, operands, i: int, guard: Guard) -> Guard:
        """The conditions for operand i of an operation."""
        if not OPS[op].choice or i == 0:
            return guard
        return (*guard, (operands[0], i == 1))

    # adjoints

    def _receive(self, k, guard: Guard, t) -> None:
        """Add to the adjoints of a value what arrives under a guard."""
        if t is None:
            return
        parts = self.parts.setdefault(k, {})
        before = parts.get(guard)
        parts[guard] = t if before is None else _plus(before, t)

    def _total(self, k, guard: Guard):
        """The adjoints of a value, chosen by the conditions beyond its guard."""
        total = None
        for inner, t in self.parts.pop(k, {}).items():
            t = self._where(inner[len(guard) :], t)
            total = t if total is None else _plus(total, t)
        return total

    def _where(self, conditions: Guard, t: list[Any]) -> list[Any]:
        """Adjoints where all conditions hold, zero elsewhere."""
        for condition, holds in reversed(conditions):
            c = self.values[condition]
            c = c if holds else f.make("not", c)
            t = [None if x is None else f.if_else_zero(c, x) for x in t]
        return t

    def _give(self, argument: int, element: int, t: list[Any]) -> None:
        """Add to the adjoints of an argument's element."""
        before = self.found[argument][element]
        self.found[argument][element] = t if before is None else _plus(before, t)

    def _back(self, k: int) -> None:
        instruction = self.tape.instructions[k]
        op, *operands = instruction
        if op in ("loop", "branch"):
            if any(self.marks[k]):
                self._node(k, instruction)
            return
        if k not in self.parts or not self.marks[k]:
            return
        guard = self.guards[k]
        t = self._total(k, guard)
        if op == "input":
            self._give(*operands, t)
        elif op == "result":
            self._receive(tuple(operands), guard, t)
        else:
            self._operation(op, operands, guard, self.values[k], t)

    def _operation(self, op: str, operands, guard: Guard, z, t: list[Any] | None) -> None:
        x = [self.values[a] for a in operands]
        for i, (slope, a) in enumerate(zip(OPS[op].slopes, operands)):
            if slope is None or not self.marks[a]:
                continue
            inner = self._chosen(op, operands, i, guard)
            if inner != guard:  # chosen where it leaves what the condition guards
                self._receive(a, inner, t)
            else:
                self._receive(a, inner, [None if s is None else slope(f, s, z, *x) for s in t])

    def _node(self, k: int, instruction) -> None:
        guard = self.guards[k]
        n = len(self.marks[k])
        weights = [self._total((k, j), guard) for j in range(n)]
        if all(w is None for w in weights):
            return
        if instruction[0] == "branch":
            self._branch(instruction, guard, weights)
        else:
            self._loop(instruction, guard, weights, self.values[k])

    def _branch(self, instruction, guard: Guard, weights: list[Any]) -> None:
        number, okay, *rest = instruction[1:]
        branch = self.tape.branches[number]
        inner = (*guard, (okay, True))
        for a, w in zip(rest, weights):
            if self.marks[a]:
                self._receive(a, inner, w)
        _, _, wanted = branch_operands(self.tape, instruction, self.marks, self.wanted)
        ok, _, inside = branch_operands(self.tape, instruction, self.values, self.arguments)
        reached = [(i, j) for i, marks in enumerate(wanted) for j, mark in enumerate(marks) if mark]
        if not any(outputs_varying(branch.step, wanted)[0]):
            return

        def seldom() -> list[Any]:
            _, found = reverse(branch.step, inside, [weights], wanted, self.rows)
            return dense([found[i][j] for i, j in reached], None, self.rows)

        flat = branched(ok, dense([None] * len(reached), None, self.rows), seldom)
        known = rest[branch.size :]
        for at, (i, j) in enumerate(reached):
            t = flat[at * self.rows : (at + 1) * self.rows]
            if i == len(wanted) - 1:
                self._receive(known[j], guard, t)
            else:
                self._give(i, j, self._where(guard, t))

    def _loop(self, instruction, guard: Guard, weights: list[Any], done: list[Any]) -> None:
        loop, start = self.tape.loops[instruction[1]], instruction[2:]
        marks = [self.marks[a] for a in start]
        begin = [self.values[a] for a in start]
        back = loop_adjoints(reverse, loop, begin, done, marks, weights, self.rows)
        for a, t in zip(start, back):
            if self.marks[a]:
                self._receive(a, guard, t)


def _plus(a: list[Any], b: list[Any]) -> list[Any]:
    """The sums of adjoints, of which None are zero."""
    return [y if x is None else x if y is None else x + y for x, y in zip(a, b)]


def _common(a: Guard, b: Guard) -> Guard:
    """The conditions that two guards begin with."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return a[:n]
