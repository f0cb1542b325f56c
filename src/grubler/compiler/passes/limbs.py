"""Equal limbs side by side in the vector registers of a single state.

The legs of a quadruped are computed by the same formulas, of other constants and other elements of
the arguments. One instruction on a vector of four numbers does for all of them what would take
four: of 2,600 instructions for Go1 on four feet 860 are left, and 40 % of the time. A humanoid has
two legs and two arms. Nobody says so: here the formulas are compared.

A `bundle` is a tuple of values, one of each limb, that one instruction computes. They are found in
three steps. Formulas of equal shape, the tallest first, are taken apart together, down to the
elements of the arguments that they read in the same places: `_Bundles.apart`. From what is known
then up, instructions that do the same to values of the same bundles make a bundle, such as those
that lead to the trunk: `upwards`. And what bundles read besides, such as the velocity of the trunk
at each hip, is computed together, too, where the formulas are equal: `shared`.

Limbs that mirror each other differ in signs (signs.py). Every lane computes what the number alone
would: results are the same to the last bit.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

from ..ir.ops import OPS, with_signs
from ..ir.tape import Bundle, Instruction, Tape, heights, members, operands, read_by
from .schedule import in_order, with_short_lives
from .signs import exchanged, shapes, with_equal_signs

LIMBS = 8  # at most
# Of all instructions: vectors are not put together and taken apart for less,
WORTH = 1 / 8
# nor widened to as many limbs as there are formulas of, if those formulas are fewer. (Of C-RNEA of
# Tello 4 % are there four times, two in each leg; with them in the lanes of the rest it is slower.)
OFTEN = 1 / 20


def side_by_side(tape: Tape, width: int) -> Tape:
    """The tape with its bundles of at most `width` values, those of each in a row, in an order
    with short lives; loops and branches likewise. Where limbs are not equal, or too little of it
    all, the tape as it is."""
    tape = tape.inside(lambda step: side_by_side(step, width))
    found = _Bundles(tape.instructions)
    found.apart()
    found.upwards()
    found.shared()
    bundles = [part for bundle in found.made for part in _parts(bundle, width)]
    bundles = tuple(bundle for bundle in bundles if found.is_computed(bundle))
    bundled = with_equal_signs(replace(tape, instructions=found.instructions, bundles=bundles))
    if sum(len(members(bundle)) - 1 for bundle in bundled.bundles) < WORTH * len(tape):
        return tape
    return with_short_lives(in_order(bundled, _in_rows(bundled)))


def _parts(bundle: Bundle, width: int) -> list[Bundle]:
    """A bundle in vectors: of six limbs three and three."""
    count = -(-len(bundle) // width)
    cuts = [len(bundle) * part // count for part in range(count + 1)]
    return [bundle[start:end] for start, end in itertools.pairwise(cuts)]


class _Bundles:
    """Bundles while they are being found; exchangeable operands are put in the same places."""

    def __init__(self, instructions: list[Instruction]):
        self.instructions = list(instructions)
        self.shape, self.height = shapes(instructions), heights(instructions)
        self.made: list[Bundle] = []
        self.place: dict[int, tuple[int, int, int]] = {}  # of a value: its bundle, lane, and lanes

    def apart(self) -> None:
        """Bundles of what formulas of equal shape consist of.

        As many limbs are equal as there are values of a shape. Of three legs in the air and one on
        the ground the beginnings are the same, so the largest number goes first.
        """
        alike = defaultdict(list)
        for k, instruction in enumerate(self.instructions):
            if _on_vectors(instruction):
                alike[self.shape[k]].append(k)
        seeds = [tuple(values) for values in alike.values() if 2 <= len(values) <= LIMBS]
        limbs = Counter(map(len, seeds))
        seeds = [seed for seed in seeds if limbs[len(seed)] >= OFTEN * len(self.instructions)]
        seeds.sort(key=lambda seed: (-len(seed), -self.height[seed[0]]))
        seen: set[tuple[int, ...]] = set()
        for seed in seeds:
            groups, lanes = self._taken_apart(seed, seen)
            for group in sorted(groups, key=lambda group: self.height[group[0]]):
                if lanes and self.place.keys().isdisjoint(group):
                    self.make(tuple(None if lane is None else group[lane] for lane in lanes))

    def _taken_apart(self, seed: tuple[int, ...], seen: set[Any]) -> tuple[list[Any], list[Any]]:
        """Groups of values in the same places of some formulas, and which of them stands in each
        lane: as in the bundles found below, or else by the elements of the arguments."""
        groups, lanes, first = [], [], [()] * len(seed)
        stack = [seed]
        while stack:
            group = stack.pop()
            if group[0] in self.place and len(set(group)) == len(group):
                bundle = self.made[self.place[group[0]][0]]
                if not lanes and set(bundle) >= set(group):
                    lanes = [group.index(v) if v in group else None for v in bundle]
            if group in seen or len(set(group)) < len(group):
                continue
            seen.add(group)
            instruction = self.instructions[group[0]]
            op, computed = instruction[0], _on_vectors(instruction)
            if op == "input" or computed:
                groups.append(group)
            if op == "input":
                elements = [self.instructions[v][1:] for v in group]
                first = [min(a or b, b) for a, b in zip(first, elements)]
            elif computed:
                reads = [list(operands(self.instructions[v])) for v in group]
                reads = [exchanged(op, values, self.shape.__getitem__) for values in reads]
                stack += [g for g in zip(*reads) if len({self.shape[v] for v in g}) == 1]
        if not lanes and all(first):
            lanes = sorted(range(len(seed)), key=first.__getitem__)
        return groups, lanes

    def make(self, bundle: Bundle) -> None:
        for lane, v in enumerate(bundle):
            if v is not None:
                self.place.setdefault(v, (len(self.made), lane, len(bundle)))
        self.made.append(bundle)
        first, *rest = members(bundle)
        op = OPS.get(self.instructions[first][0])
        if op and (op.commutative or op.kind == "sum"):
            for v in rest:
                self._arrange(v, like=first)

    def is_computed(self, bundle: Bundle) -> bool:
        """Whether a bundle is computed, and of more than one value."""
        values = members(bundle)
        return len(values) > 1 and _on_vectors(self.instructions[values[0]])

    def _arrange(self, v: int, like: int) -> None:
        op, a, b, *rest = self.instructions[v]
        c, d = self.instructions[like][1:3]
        straight = self._likeness(a, c) + self._likeness(b, d)
        if self._likeness(a, d) + self._likeness(b, c) > straight:
            if OPS[op].kind == "sum":  # a - b, exchanged, is ("from", b, a)
                op = with_signs("sum", OPS[op].signs[::-1])
            self.instructions[v] = (op, b, a, *rest)

    def _likeness(self, a: int, b: int) -> int:
        """How well two values go together in a vector."""
        if a in self.place or b in self.place:
            same = a in self.place and b in self.place and self.place[a][0] == self.place[b][0]
            return 3 * same
        return (self.shape[a] == self.shape[b]) + (a == b)

    def upwards(self) -> None:
        """Bundles of instructions that do the same to values of the same bundles."""
        levels = defaultdict(list)
        for k, height in enumerate(self.height):
            if _on_vectors(self.instructions[k]):
                levels[height].append(k)
        for level in sorted(levels):
            ways = ((True, True), (False, True), (True, False), (False, False))
            for signed, (exact, whole) in itertools.product((True, False), ways):
                left = [k for k in levels[level] if k not in self.place]
                self._join(left, exact, whole, signed)

    def _join(self, values: list[int], exact: bool, whole: bool, signed: bool) -> None:
        """Bundles of some values, of all limbs (`whole`) or of several. Of what is no part of a
        bundle, values read must be the same (`exact`) or of one shape; constants are paired by
        size, which mirrored limbs have in common; sums differ in signs unless `signed`."""
        alike = defaultdict(lambda: defaultdict(list))
        for k in values:
            op, *reads = self.instructions[k]
            lanes = {self.place[a][1:] for a in reads if a in self.place}
            if len(lanes) != 1:
                continue
            ((lane, of),) = lanes
            sizes = [abs(self.instructions[a][1]) for a in reads if self._constant(a)]
            op = op if signed else OPS[op].kind
            parts = exchanged(op, [self._part(a, exact) for a in reads], lambda part: part)
            alike[op, of, *parts][lane].append((sizes, k))
        for (_, of, *_), limbs in alike.items():
            if len(limbs) == of or (len(limbs) > 1 and not whole):
                columns = {lane: [k for _, k in sorted(limbs[lane])] for lane in limbs}
                for row in zip(*columns.values()):
                    values = dict(zip(columns, row))
                    self.make(tuple(values.get(lane) for lane in range(of)))

    def _part(self, a: int, exact: bool) -> tuple[Any, ...]:
        if a in self.place:
            return (0, self.place[a][0])
        if self._constant(a):
            return (1, 0)
        return (2, a) if exact else (3, self.shape[a])

    def _constant(self, a: int) -> bool:
        return self.instructions[a][0] == "const"

    def shared(self) -> None:
        """Bundles of what bundles read: equal formulas, of which limbs may share some."""
        for bundle in self.made:  # which grows meanwhile
            for group in read_by(self.instructions, bundle):
                values = members(group)
                alike = len({self.shape[v] for v in values}) == 1
                if alike and self.is_computed(group) and self.place.keys().isdisjoint(values):
                    self.make(group)


def _on_vectors(instruction: Instruction) -> bool:
    """Whether an instruction may be computed in vectors."""
    op = OPS.get(instruction[0])
    return op is not None and op.on_vectors


def _in_rows(tape: Tape) -> list[int]:
    """An order in which the values of a bundle follow each other: depth first from the results."""
    rows = {v: row for row in map(members, tape.bundles) for v in row}
    order: dict[int, None] = {}
    for root in (value for values in tape.results for value in values):
        stack = [root]
        while stack:
            row = rows.get(stack[-1], stack[-1:])
            reads = (a for v in row for a in operands(tape.instructions[v]))
            missing = [] if row[0] in order else [a for a in reads if a not in order]
            stack += reversed(missing)
            if not missing:
                order.update(dict.fromkeys(row))
                stack.pop()
    return list(order)
