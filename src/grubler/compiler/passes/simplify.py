"""Passes over a tape: fewer operations, and an order that keeps few values alive.

    simplify     constants folded, equal subexpressions merged, signs gathered, where-patterns
                 joined, 1 - (1 - x) is x, one reciprocal instead of several divisions by the same
                 value, one sine and cosine for angles a constant apart
    chained      (sums.py) sums as chains of multiply-adds, where that pays; otherwise
    fuse         multiply-add as one instruction, where a product is only ever added
    reordered    (tape.py) dead code out
    schedule     (schedule.py) an order with short lives

What changes rounding: x / c becomes x * (1/c) for a constant c, and x / y becomes x * (1/y) where
y divides at least two values; both stay within 1.5 ulp of the quotient instead of 0.5. A fused
multiply-add rounds once instead of twice. The sine of x + c comes from sine and cosine of x where
both are needed anyway. Sums are reassociated where they are chained, and else
only as 1 - (1 - x).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from ..ir.ops import OPS, Op, with_signs
from ..ir.tape import Branch, Instruction, Tape, heights, operands, reordered, with_operands
from ..log import stage
from .cost import fits, waits
from .schedule import schedule
from .signs import shapes
from .sums import chained


def optimize(tape: Tape, chains: bool = True) -> Tape:
    """All passes, in order; what `lower` expects. On a GPU, whose threads hide what they wait for
    and have registers for few values, sums are no chains."""
    with stage("passes", tape.total):
        return _scheduled(shortened(tape, chains))


def shortened(tape: Tape, chains: bool = True) -> Tape:
    """The tape in as few instructions as the passes make it, in no particular order."""
    tape = simplify(tape)
    fused = fuse(tape, late_first=chains)
    if not (chains and fits(fused) and waits(fused)):
        return fused
    return chained(replace(tape, branches=fused.branches))


def _scheduled(tape: Tape) -> Tape:
    """The tape in the order of `schedule`.

    That is found as if branches read nothing of the line, which waits for them in memory and takes
    no register; and branches inside branches stay as they are: hardly any time is ever spent there,
    and a fifth of the compilation's would be.
    """
    inner = [branch.step.branches for branch in tape.branches]
    plain = _with_inner(tape, [()] * len(inner))
    first = [3 + branch.size for branch in tape.branches]
    reads = {i[1]: i[first[i[1]] :] for i in tape.instructions if i[0] == "branch"}
    done = schedule(
        replace(
            plain,
            instructions=[i[: first[i[1]]] if i[0] == "branch" else i for i in plain.instructions],
            results=(*tape.results, *reads.values()),
        )
    )
    reads = dict(zip(reads, done.results[len(tape.results) :]))
    if any(max(reads[i[1]], default=0) > k for k, i in enumerate(done.instructions)
           if i[0] == "branch"):  # fmt: skip
        return _with_inner(schedule(plain), inner)  # some of it would come too late
    instructions = [(*i, *reads[i[1]]) if i[0] == "branch" else i for i in done.instructions]
    results = done.results[: len(tape.results)]
    return _with_inner(replace(done, instructions=instructions, results=results), inner)


def _with_inner(tape: Tape, inner: list[tuple[Branch, ...]]) -> Tape:
    """The tape with other branches inside its branches."""
    branches = [
        replace(branch, step=replace(branch.step, branches=nodes))
        for branch, nodes in zip(tape.branches, inner)
    ]
    return replace(tape, branches=tuple(branches))


def simplify(tape: Tape) -> Tape:
    """Merge, fold and rewrite until the line is as short as local rules make it."""
    tape = tape.inside(simplify)
    instructions, results = _rebuild(tape.instructions, tape.results)
    divisors = Counter(ins[2] for ins in instructions if ins[0] == "div")
    shared = {divisor for divisor, number in divisors.items() if number > 1}
    further = _turned_angles(instructions)
    if shared or further:
        instructions, results = _rebuild(instructions, results, shared, further)
    return replace(tape, instructions=instructions, results=tuple(results))


def _turned_angles(instructions) -> dict[int, tuple[int, float]]:
    """Angles a constant further than one whose sine and cosine are there: (it, the constant)."""
    sines, cosines = ({i[1] for i in instructions if i[0] == op} for op in ("sin", "cos"))
    further = {}
    for k in sines | cosines:
        if instructions[k][0] == "add":
            for x, c in (instructions[k][1:], instructions[k][:0:-1]):
                if instructions[c][0] == "const" and x in sines & cosines:
                    further[k] = (x, instructions[c][1])
    return further


def _rebuild(instructions, results, shared_divisors=frozenset(), further=None):
    """The line built anew under the rules; a shared divisor is inverted once, and sine and cosine
    are turned on where they are known of an angle nearby."""
    b = _Builder()
    new: list[int] = []
    for instruction in instructions:
        if instruction[0] in ("sin", "cos") and further and instruction[1] in further:
            angle, offset = further[instruction[1]]
            new.append(b.turned(instruction[0], new[angle], offset))
            continue
        values = [new[a] for a in operands(instruction)]
        if instruction[0] == "div" and instruction[2] in shared_divisors:
            reciprocal = b.make("div", b.constant(1.0), values[1])
            new.append(b.make("mul", values[0], reciprocal))
        else:
            new.append(b.add(with_operands(instruction, values)))
    results = [tuple(new[v] for v in values) for values in results]
    return reordered(b.instructions, results)


class _Builder:
    """Adds instructions one at a time, returning an equal earlier value where there is one."""

    def __init__(self):
        self.instructions: list[Instruction] = []
        self._known: dict[Any, Any] = {}

    def constant(self, value: float) -> int:
        return self._put(("const", float(value)))

    def _put(self, instruction: Instruction) -> int:
        key = instruction
        if instruction[0] == "const":
            key = ("const", float(instruction[1]).hex())  # keeps -0.0 apart from 0.0
        elif (op := OPS.get(instruction[0])) and op.commutative:
            first, second, *rest = instruction[1:]
            key = instruction = (op.name, *sorted((first, second)), *rest)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.instructions)
            self.instructions.append(instruction)
        return found

    def _op(self, value: int) -> str:
        return self.instructions[value][0]

    def _number(self, value: int):
        """The constant behind a value, or None."""
        instruction = self.instructions[value]
        return instruction[1] if instruction[0] == "const" else None

    def _negated(self, value: int):
        """x where the value is -x, or None."""
        instruction = self.instructions[value]
        return instruction[1] if instruction[0] == "neg" else None

    def add(self, instruction: Instruction) -> int:
        op, *arguments = instruction
        if op not in OPS:
            return self._put(instruction)
        numbers = [self._number(a) for a in arguments]
        if None not in numbers:
            with np.errstate(all="ignore"):
                folded = OPS[op].evaluate(*[np.float64(n) for n in numbers])
            return self.constant(folded)
        rule = _RULES.get(op) or OPS[op].becomes
        replaced = rule(self, *arguments) if rule else None
        if replaced is None:
            replaced = self._without_signs(OPS[op], arguments)
        return self._put(instruction) if replaced is None else replaced

    def _without_signs(self, op: Op, arguments: list[int]) -> int | None:
        """An odd or even operation of an operand's negative by that of the operand, or None."""
        for i, parity in enumerate(op.parity):
            positive = self._negated(arguments[i])
            if parity and positive is not None:
                value = self.make(op.name, *arguments[:i], positive, *arguments[i + 1 :])
                return self.make("neg", value) if parity == "odd" else value
        return None

    def make(self, op: str, *arguments: int) -> int:
        return self.add((op, *arguments))

    def turned(self, op: str, angle: int, offset: float) -> int:
        """sin or cos of angle + offset from those of the angle."""
        s, c = self.make("sin", angle), self.make("cos", angle)
        first, second = (s, c) if op == "sin" else (c, s)
        parts = (
            self.make("mul", first, self.constant(math.cos(offset))),
            self.make("mul", second, self.constant(math.sin(offset))),
        )
        return self.make("add" if op == "sin" else "sub", *parts)


# Each rule returns the value to use instead, or None to keep the instruction.


def _add(b: _Builder, x: int, y: int):
    for this, other in ((x, y), (y, x)):
        if b._number(this) == 0.0:
            return other
        if (positive := b._negated(this)) is not None:
            return b.make("sub", other, positive)
    # np.where arrives as (c ? x : 0) + (!c ? y : 0).
    if b._op(x) == b._op(y) == "if_else_zero":
        (_, c, then), (_, d, otherwise) = b.instructions[x], b.instructions[y]
        if b.instructions[d] == ("not", c):
            return b.make("select", c, then, otherwise)
        if b.instructions[c] == ("not", d):
            return b.make("select", d, otherwise, then)
    return None


def _sub(b: _Builder, x: int, y: int):
    if b._number(y) == 0.0:
        return x
    if b._number(x) == 0.0:
        return b.make("neg", y)
    if (positive := b._negated(y)) is not None:
        return b.make("add", x, positive)
    if (positive := b._negated(x)) is not None:
        return b.make("neg", b.make("add", positive, y))
    if ("sub", y, x) in b._known:
        return b.make("neg", b._known["sub", y, x])
    if b._number(x) is not None and b.instructions[y][:2] == ("sub", x):
        return b.instructions[y][2]
    return None


def _mul(b: _Builder, x: int, y: int):
    for this, other in ((x, y), (y, x)):
        number = b._number(this)
        if number == 1.0:
            return other
        if number == -1.0:
            return b.make("neg", other)
        if (positive := b._negated(this)) is not None and b._number(other) is not None:
            return b.make("mul", positive, b.constant(-b._number(other)))
    return None


def _div(b: _Builder, x: int, y: int):
    number = b._number(y)
    if number is not None and number != 0.0 and math.isfinite(1.0 / number):
        return b.make("mul", x, b.constant(1.0 / number))
    return None


def _neg(b: _Builder, x: int):
    if (positive := b._negated(x)) is not None:
        return positive
    op, *arguments = b.instructions[x]
    if op == "mul":
        for this, other in (arguments, arguments[::-1]):
            if (number := b._number(this)) is not None:
                return b.make("mul", other, b.constant(-number))
    return None


def _pow(b: _Builder, x: int, y: int):
    number = b._number(y)
    if number is None or number != int(number if math.isfinite(number) else 0) or abs(number) > 8:
        return None
    power = b.constant(1.0)
    for _ in range(abs(int(number))):
        power = b.make("mul", power, x)
    return power if number >= 0 else b.make("div", b.constant(1.0), power)


def _select(b: _Builder, c: int, then: int, otherwise: int):
    if (number := b._number(c)) is not None:
        return then if number != 0.0 else otherwise
    if b._op(c) == "not":
        return b.make("select", b.instructions[c][1], otherwise, then)
    return then if then == otherwise else None


def _if_else_zero(b: _Builder, c: int, x: int):
    if (number := b._number(c)) is not None:
        return x if number != 0.0 else b.constant(0.0)
    return None


_RULES = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "pow": _pow,
    "select": _select,
    "if_else_zero": _if_else_zero,
}


def fuse(tape: Tape, late_first: bool = True) -> Tape:
    """Join products with the sums they enter.

    A product that is only ever added or subtracted disappears, even where it enters several sums:
    a fused multiply-add costs no more than the addition alone. Of the products of a sum the one
    that is known last goes first, and mirrored limbs choose alike; else they go in order, and fewer
    values are alive.
    """
    tape = tape.inside(lambda step: fuse(step, late_first))
    instructions = tape.instructions
    users: dict[int, list[int]] = {}
    for k, instruction in enumerate(instructions):
        for a in operands(instruction):
            users.setdefault(a, []).append(k)
    returned = {v for values in tape.results for v in values}

    def disappears(k: int) -> bool:
        return (
            instructions[k][0] == "mul"
            and k not in returned
            and all(instructions[u][0] in ("add", "sub") for u in users[k])
        )

    absorbed: dict[int, int] = {}  # sum -> the product that it absorbs
    order = range(len(instructions))
    if late_first:
        shape, height = shapes(instructions, signed=False), heights(instructions)
        order = sorted(order, key=lambda k: (-height[k], shape[k]))
    for k in order:
        if disappears(k) and all(u not in absorbed for u in users[k]) and _distinct(users[k]):
            absorbed.update(dict.fromkeys(users[k], k))
    fused = [
        _fused(ins, absorbed[k], instructions[absorbed[k]]) if k in absorbed else ins
        for k, ins in enumerate(instructions)
    ]
    ordered, results = reordered(fused, tape.results)
    return replace(tape, instructions=ordered, results=tuple(results))


def _distinct(users: list[int]) -> bool:
    return len(set(users)) == len(users)  # x*y + x*y would name its sum twice


def _fused(addition: Instruction, product: int, multiplication: Instruction) -> Instruction:
    op, *terms = addition
    at = terms.index(product)
    signs = OPS[op].signs
    return (with_signs("fused", (signs[at], signs[1 - at])), *multiplication[1:], terms[1 - at])
