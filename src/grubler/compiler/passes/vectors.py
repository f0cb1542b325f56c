"""Vectors in the code of a single state: bundles of values (limbs.py), and what those read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..ir.ops import OPS, PAIR, Op
from ..ir.tape import Bundle, holds, members, read_by

if TYPE_CHECKING:
    from ..backends.llvm.emitter import Emitter
    from ..backends.llvm.lower import _Line


def read_operands(
    op: Op, operands: Any, mask: Callable[..., Any], value: Callable[..., Any]
) -> list[str]:
    """The operands of an operation, as masks and as values; values are read first."""
    values = [value(a) for a in operands[op.masks :]]
    return [*(mask(a) for a in operands[: op.masks]), *values]


class Vectors:
    """The bundles of a line while it is being emitted; `line` names values one by one."""

    line: Any
    e: Emitter
    instructions: Any

    def __init__(self, line: _Line):
        self.line, self.e, self.instructions = line, line.e, line.tape.instructions
        self.names: dict[Bundle, str] = {}
        self.masks: dict[Bundle, str] = {}  # of conditions; numbers only where they are asked for
        self._emitters: dict[int, object] = {}
        self._sines: dict[Bundle, tuple[str, str]] = {}
        self.starting: Any = {min(members(bundle)): bundle for bundle in line.tape.bundles}
        self.of: Any = {v: bundle for bundle in line.tape.bundles for v in members(bundle)}

    def emitter(self, lanes: int) -> object:
        if lanes not in self._emitters:
            self._emitters[lanes] = self.e.widened(lanes)
        return self._emitters[lanes]

    def compute(self, bundle: Bundle) -> None:
        """Emit one instruction for a bundle."""
        e, op = self.emitter(len(bundle)), OPS[self.instructions[members(bundle)[0]][0]]
        reads = read_by(self.instructions, bundle)
        if op.name in PAIR:
            self.names[bundle] = self._trigonometric(e, op.name == "cos", reads[0])
            return
        values = read_operands(op, reads, partial(self.mask, e), partial(self.vector, e))
        (self.masks if op.condition else self.names)[bundle] = e.operation(op, values)

    def named(self, bundle: Bundle) -> str:
        """The vector of a bundle that has been computed."""
        if bundle not in self.names:
            e = self.emitter(len(bundle))
            self.names[bundle] = e.select(self.masks[bundle], e.number(1.0), e.number(0.0))
        return self.names[bundle]

    def element(self, k: int) -> str:
        """A value of a bundle by itself."""
        bundle = self.of[k]
        vector = f"{self.emitter(len(bundle)).type} {self.named(bundle)}"
        return self.e.define(f"extractelement {vector}, i64 {bundle.index(k)}")

    def bit(self, k: int) -> str | None:
        """The same of a condition, as one bit; None of other values."""
        bundle = self.of.get(k)
        if bundle not in self.masks:
            return None
        vector = f"{self.emitter(len(bundle)).mask} {self.masks[bundle]}"
        return self.e.define(f"extractelement {vector}, i64 {bundle.index(k)}")

    def mask(self, e: Any, group: Bundle) -> str:
        """A vector of conditions."""
        held = self.of.get(members(group)[0], ())
        if held in self.masks and holds(held, group):
            return self.masks[held]
        return e.compare("une", self.vector(e, group), e.number(0.0))

    def vector(self, e: Any, group: Bundle) -> str:
        """A vector of values, put together where they are no bundle."""
        first, *others = members(group)
        if holds(self.of.get(first, ()), group):
            return self.named(self.of[first])
        if all(self.instructions[v][0] == "const" for v in (first, *others)):
            # One is as good as any number where nobody asks.
            return e.numbers([1.0 if v is None else self.instructions[v][1] for v in group])
        if group not in self.names:
            if others:
                values = [None if v is None else self.line.value(v) for v in group]
                self.names[group] = e.together(values)
            else:
                self.names[group] = e.same(self.line.value(first))
        return self.names[group]

    def _trigonometric(self, e, cosine: bool, angles: Bundle) -> str:
        memory = [self.line.waiting.get(angle) for angle in angles]
        if None in memory:
            if angles not in self._sines:
                self._sines[angles] = e.sine_cosine(self.vector(e, angles))
            return self._sines[angles][cosine]
        return self._waiting(e, [(pair[cosine], place) for pair, place in memory])

    def _waiting(self, e, memory: list[tuple[str, int]]) -> str:
        """Numbers from memory, at once where they follow each other there."""
        start, first = memory[0]
        if memory == [(start, first + lane) for lane in range(len(memory))]:
            return e.load_from(start, first)
        return e.together([self.e.load(*place) for place in memory])
