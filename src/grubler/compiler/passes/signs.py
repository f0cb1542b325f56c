"""Signs of mirrored limbs: what one computes, and the negative of what the other does, are one.

A right arm is a left arm in a mirror: its formulas are the same but for signs, a sum here and a
difference there. Any value may be computed as its negative instead, and whoever reads it adds where
it would subtract. Here that is chosen so that the values of a bundle (limbs.py) are computed by one
operation: a product has the sign that its factors give it, a sum may be the negative if all of its
terms are, a choice between values has theirs, and a constant may have either sign.

Whether a value is negated is a linear expression, modulo two, of choices that are free. The terms
of a sum give equations between them, and a value whose equations contradict others leaves its
bundle. Results, and what other operations read, have their own sign: by the choices that are left,
or else by a negation.

Rounding does not depend on signs: results are the same to the last bit, but for the sign of a zero.
What leads to an arctangent of two, whose value depends on that, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..ir.ops import LEAVES, NODES, OPS, Op, with_signs
from ..ir.tape import Instruction, Tape, members, operands, with_operands

_PRODUCTS = ("mul", "div", "neg")


def shapes(instructions: list[Instruction], signed: bool = True) -> list[int]:
    """A number for each value, the same for equal formulas of whatever constants and elements of
    the arguments; and of whatever signs, unless `signed`."""
    numbers: dict[tuple[Any, ...], int] = {}
    shape: list[int] = []
    for k, instruction in enumerate(instructions):
        op, reads = instruction[0], [shape[a] for a in operands(instruction)]
        if op == "neg" and not signed:
            shape.append(reads[0])
            continue
        if op in LEAVES:
            key = (op, *instruction[1:-1])
        elif op in NODES:
            key = (op, k)
        else:
            op = op if signed else OPS[op].kind
            key = (op, *exchanged(op, reads, lambda x: x))
        shape.append(numbers.setdefault(key, len(numbers)))
    return shape


def exchanged(op: str, values: list[Any], key: Callable[..., Any]) -> list[Any]:
    """Operands in an order that does not depend on how exchangeable ones were written."""
    free = op in ("sum", "fused") or (op in OPS and OPS[op].commutative)
    return sorted(values[:2], key=key) + values[2:] if free else values


def with_equal_signs(tape: Tape) -> Tape:
    """The tape with the values of each bundle computed by one operation. ("from", a, b) there is
    b - a, and not in what is returned."""
    signs = _Signs(tape)
    signs.find()
    return signs.rewritten()


def _terms(reads) -> tuple[Any, ...]:
    """The two terms of a sum, of which the first may be a product."""
    return reads[:-1], reads[-1:]


def _with_signed_zeros(instructions: list[Instruction]) -> set[int]:
    """All values on which operations depend that tell -0 from 0."""
    found: set[int] = set()
    for k in reversed(range(len(instructions))):
        op = OPS.get(instructions[k][0])
        if k in found or (op and op.signed_zero):
            found.update(operands(instructions[k]))
    return found


class _Choices:
    """Expressions modulo two, as the bits of integers: the lowest is 1, the others are choices."""

    def __init__(self):
        self.made: dict[int, int] = {}  # the highest bit of an equation: the equation
        self._free = 0

    def new(self) -> int:
        self._free += 1
        return 1 << self._free

    def reduced(self, expression: int) -> int:
        """The same in terms of choices that are still free."""
        left = 0
        while expression > 1:
            highest = 1 << expression.bit_length() - 1
            if highest in self.made:
                expression ^= self.made[highest]
            else:
                expression ^= highest
                left ^= highest
        return left ^ expression

    def vanishes(self, expression: int) -> bool:
        """Make choices so that an expression is zero; whether that can be."""
        expression = self.reduced(expression)
        if expression > 1:
            self.made[1 << expression.bit_length() - 1] = expression
        return expression != 1

    def value(self, expression: int) -> int:
        """Zero or one, where all choices that are still free are zero."""
        return self.reduced(expression) & 1


class _Signs:
    """`negated`: of each value whether it is computed as its negative, as an expression; `turned`:
    by value the same of the constants in its terms; `signs`: of its terms."""

    def __init__(self, tape: Tape):
        self.tape, self.choices = tape, _Choices()
        self.negated: list[int] = []
        self.turned: dict[int, list[int]] = {}
        self.signs: dict[int, list[int]] = {}
        self.bundle = {v: bundle for bundle in tape.bundles for v in members(bundle)}
        self.first: dict[
            tuple[Any, ...], int
        ] = {}  # of a bundle: the value that the others are like
        self.alone: set[int] = set()
        self.fixed = _with_signed_zeros(tape.instructions)

    def find(self) -> None:
        """Choose signs."""
        read = []
        for k, instruction in enumerate(self.tape.instructions):
            op, reads = OPS.get(instruction[0]), operands(instruction)
            if op and op.signs:
                self.negated.append(self._sum(k, op, _terms(reads)))
            elif op and op.name in _PRODUCTS:
                self.negated.append(self._product(k, reads))
                read += reads[1:] if op.name == "div" else ()
            elif op and op.choice:
                self.negated.append(self._choice(k, reads[1:]))
                read += reads[:1]
            else:
                self.negated.append(0)
                read += reads
        for v in (*read, *(v for values in self.tape.results for v in values)):
            self.choices.vanishes(self.negated[v])

    def _of(self, reads) -> int:
        out = 0
        for a in reads:
            out ^= self.negated[a]
        return out

    def _product(self, k: int, reads) -> int:
        turned = 0
        if k in self.bundle and k not in self.fixed and self._has_constant(reads):
            turned = self.choices.new()
        self.turned[k] = [turned]
        return self._of(reads) ^ turned

    def _choice(self, k: int, values) -> int:
        """Whether a choice between values is the negative: where they are, if they can be alike."""
        negated = [self.negated[v] for v in values if not self._has_constant([v])]
        if k in self.fixed or not negated:
            return 0
        for other in negated[1:]:
            self.choices.vanishes(other ^ negated[0])
        return negated[0]

    def _sum(self, k: int, op: Op, terms) -> int:
        """Whether a sum is the negative, so that its terms have the signs that they have in the
        first of its bundle; of that one, as of a sum by itself, the first term is added."""
        own = [sign ^ self._of(term) for sign, term in zip(op.signs, terms)]
        first = self.first.setdefault(self.bundle.get(k, k), k)
        change = [x ^ y for x, y in zip(own, self.signs.get(first, own))]
        negated, turned, alike = 0, [0, 0], True
        if k in self.fixed:
            alike = all(map(self.choices.vanishes, change))
        elif first != k:
            negated, turned, alike = self._like_the_first(change, terms)
        if not alike:
            self.alone.add(k)
        if k not in self.fixed and (first == k or not alike):
            negated = own[0] if op.kind == "sum" else self.choices.new()
        self.turned[k] = turned
        self.signs[k] = [x ^ t ^ negated for x, t in zip(own, turned)]
        return negated

    def _like_the_first(self, change: list[int], terms) -> tuple[int, list[int], bool]:
        """Whether a sum is the negative, its constants are turned, and that makes it like the first
        of its bundle, from which its terms' signs differ by `change`."""
        constant = [self._has_constant(term) for term in terms]
        if all(constant):
            negated = change[0] ^ self.choices.new()
        else:
            negated = change[constant.index(False)]
        turned = [c * (x ^ negated) for c, x in zip(constant, change)]
        return negated, turned, any(constant) or self.choices.vanishes(change[0] ^ change[1])

    def _has_constant(self, reads) -> bool:
        return any(self.tape.instructions[a][0] == "const" for a in reads)

    def rewritten(self) -> Tape:
        """The tape in these signs."""
        new, place, opposite = [], [], {}

        def put(instruction: Instruction) -> int:
            new.append(instruction)
            return len(new) - 1

        def signed(v: int, negated: int = 0) -> int:
            if self.choices.value(self.negated[v]) == negated:
                return place[v]
            if self._has_constant([v]):
                return put(("const", -self.tape.instructions[v][1]))
            if v not in opposite:
                opposite[v] = put(("neg", place[v]))
            return opposite[v]

        for k, instruction in enumerate(self.tape.instructions):
            op, reads = OPS.get(instruction[0]), operands(instruction)
            if op is None or not (op.signs or op.name in _PRODUCTS):
                chosen = self.choices.value(self.negated[k])  # zero but for choices
                values = [signed(a, chosen if i else 0) for i, a in enumerate(reads)]
                place.append(put(with_operands(instruction, values)))
                continue
            values = [place[a] for a in reads]
            terms = _terms(range(len(reads))) if op.signs else [range(len(reads))]
            for term, turned in zip(terms, self.turned[k]):
                if self.choices.value(turned):
                    i = next(i for i in term if self._has_constant(reads[i : i + 1]))
                    values[i] = put(("const", -self.tape.instructions[reads[i]][1]))
            name = op.name
            if op.signs:
                signs = tuple(map(self.choices.value, self.signs[k]))
                if op.kind == "sum" and signs == (1, 0):  # no "from": a difference exchanged
                    signs, values = (0, 1), values[::-1]
                name = with_signs(op.kind, signs)
            place.append(put((name, *values)))
        results = tuple(tuple(signed(v) for v in values) for values in self.tape.results)
        bundles = [
            tuple(None if v is None or v in self.alone else place[v] for v in bundle)
            for bundle in self.tape.bundles
        ]
        bundles = tuple(bundle for bundle in bundles if len(members(bundle)) > 1)
        return replace(self.tape, instructions=new, results=results, bundles=bundles)
