"""From CasADi's instructions to a tape, with loops and branches as nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra import symbolic
from ..errors import DialectError
from ..ir.ops import LEAVES, NODES, known_as
from ..ir.tape import Array, Branch, Instruction, Loop, Tape, reordered


class Node(NamedTuple):
    """A loop or what a branch takes, what its node starts from, symbols for its results."""

    inner: Loop | Other
    start: object
    result: object


class Other(NamedTuple):
    """The values that a branch takes, and the loops and branches inside it alone."""

    values: object
    nodes: list[Node]


def read(
    name: str,
    inputs: tuple[Array, ...],
    arguments: Any,
    outputs: list[Array],
    nodes: list[Node],
) -> Tape:
    """The tape of what the function `name` computes from symbols `arguments`."""
    line = _Line(name, inputs, arguments, outputs, nodes, [])
    instructions, results = reordered(line.instructions, line.returned)
    shapes = [tuple(int(n) for n in o.shape) for o in outputs]
    named = tuple(Array(f"out{i}" if len(shapes) > 1 else "out", s) for i, s in enumerate(shapes))
    return line.tape(inputs, named, instructions, results)


class _Line:
    """The instructions of a function or of a branch in it, equal ones once where there are nodes.

    `returned` are the values of each output. `around` are the nodes of the lines around a branch:
    what it reads of them is ("around", node, element) as yet. A value has the same instruction in
    both lines, which tells what is there already.
    """

    def __init__(self, name: str, inputs, arguments, outputs, own: list[Node], around: list[Node]):
        self.instructions: list[Instruction] = []
        self._place: dict[Instruction, int] = {}
        self._arguments, self._nodes = len(inputs), [*around, *own]
        self._own, self._seldom = len(around), bool(around)
        symbols = [*arguments, *(node.result for node in self._nodes)]
        self._nothing = self._put(("const", 0.0))
        values = self._read(name, symbols, [*outputs, *(node.start for node in own)])
        self.returned, starts = values[: len(outputs)], values[len(outputs) :]
        self.loops, self.branches, ends = [], [], []
        for node, start in zip(own, starts):
            if isinstance(node.inner, Loop):
                ends.append(("loop", len(self.loops), *start))
                self.loops.append(node.inner)
                continue
            other = node.inner
            inside = _Line(name, inputs, arguments, [other.values], other.nodes, self._nodes)
            branch, needed = inside.branch(inputs, self)
            ends.append(("branch", len(self.branches), *start, *needed))
            self.branches.append(branch)
        base = len(self.instructions) - self._own
        self.instructions = [
            ("result", base + ins[1], ins[2]) if self._is_own(ins) else ins
            for ins in self.instructions
        ] + ends

    def tape(self, inputs, outputs, instructions, results) -> Tape:
        loops, branches = tuple(self.loops), tuple(self.branches)
        return Tape(inputs, outputs, instructions, tuple(results), loops, branches)

    def branch(self, inputs, outer: _Line) -> tuple[Branch, list[int]]:
        """This line as a branch of `outer`, and the values of that which it reads."""
        outside = len(inputs)
        cut = [
            ins if at is None else ("input", outside, at)
            for ins, at in zip(self.instructions, self._found_in(outer))
        ]
        instructions, results = reordered(cut, self.returned)
        needed = list(
            dict.fromkeys(ins[2] for ins in instructions if ins[:2] == ("input", outside))
        )
        place = {("input", outside, at): ("input", outside, j) for j, at in enumerate(needed)}
        instructions = [place.get(ins, ins) for ins in instructions]
        arrays = (*inputs, Array("results", (len(needed),)))
        out = Array("out", (len(self.returned[0]),))
        return Branch(self.tape(arrays, (out,), instructions, results)), needed

    def _found_in(self, outer: _Line) -> list[int | None]:
        """Where those values of this line stand in `outer` that are not computed again.

        These are results of nodes, and in a branch inside a branch all that the one around has
        computed: being seldom taken, it may keep every value alive.
        """
        there: list[int | None] = []
        same: list[int | None] = []  # where each value stands, computed again or not
        for ins in self.instructions:
            op, at = ins[0], None
            if op == "around":
                at = outer._put(ins)
            elif op in LEAVES:
                at = outer._place.get(_key(ins))
            elif op not in NODES:
                values = [same[a] for a in ins[1:]]
                at = None if None in values else outer._place.get((op, *values))
            same.append(at)
            again = op in LEAVES or not (op == "around" or outer._seldom)
            there.append(None if again else at)
        return there

    def _is_own(self, ins: Instruction) -> bool:
        return ins[0] == "around" and ins[1] >= self._own

    def _put(self, instruction: Instruction) -> int:
        place = len(self.instructions)
        if self._nodes:  # else nobody asks what is there
            place = self._place.setdefault(_key(instruction), place)
        if place == len(self.instructions):
            self.instructions.append(instruction)
        return place

    def _read(self, name: str, symbols, outputs) -> list[list[int]]:
        """The values of the outputs' elements, their instructions put."""
        function = symbolic.function_of(symbols, outputs, name="f")
        free = symbolic.free_symbols(function)
        if free:
            raise DialectError(
                f"'{name}' uses traced values that it does not receive ({', '.join(free[:4])}): "
                "hand them to it as arguments; a loop's step takes them as parameters, and what "
                "is found inside a branch is known only there"
            )
        registers: dict[int, int] = {}
        sizes = [int(np.prod(o.shape, dtype=int)) for o in outputs]
        values = [[self._nothing] * size for size in sizes]  # structural zeros are never written
        for op, *rest in symbolic.instructions_of(function):
            if op == "output":
                values[rest[0]][rest[1]] = registers[rest[2]]
                continue
            target, *operands = rest
            if op == "assign":
                registers[target] = registers[operands[0]]
                continue
            if op == "input" and operands[0] >= self._arguments:
                instruction = ("around", operands[0] - self._arguments, operands[1])
            elif op in LEAVES:
                instruction = (op, *operands)
            else:
                instruction = (_known(name, op), *[registers[a] for a in operands])
            registers[target] = self._put(instruction)
        return values


def _key(instruction: Instruction) -> Instruction:
    """What equal instructions share: 0.0 and -0.0 are not equal."""
    return ("const", instruction[1].hex()) if instruction[0] == "const" else instruction


def _known(name: str, op: str) -> str:
    known = known_as(op)
    if known is None:
        raise DialectError(
            f"'{name}' uses the operation '{op}', which has no machine code here: write it "
            "with arithmetic and elementary functions"
        )
    return known
