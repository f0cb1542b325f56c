"""From CasADi's instructions to a tape, with loops and branches as nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import symbolic
from .errors import DialectError
from .scalar import FUNCTIONS
from .tape import Array, Branch, Loop, Tape, reordered

_RENAMED = {"constpow": "pow"}


class Node(NamedTuple):
    """A loop, or the values that a branch takes; what its node starts from; symbols for results."""

    inner: object
    start: object
    result: object


def read(name: str, inputs: tuple[Array, ...], arguments, outputs, nodes: list[Node]) -> Tape:
    """The tape of what the function `name` computes from symbols `arguments`."""
    symbols = [*arguments, *(node.result for node in nodes)]
    starts = [node.start for node in nodes]
    instructions, values = _instructions(name, symbols, [*outputs, *starts], len(inputs))
    # Nodes come last: the results are named by negative numbers until then.
    loops, branches, ends = [], [], []
    for node, start in zip(nodes, values[len(outputs) :]):
        if isinstance(node.inner, Loop):
            ends.append(("loop", len(loops), *start))
            loops.append(node.inner)
            continue
        branch, needed = _branch(name, inputs, symbols, node.inner)
        ends.append(("branch", len(branches), *start, *_places(instructions, needed)))
        branches.append(branch)
    base = len(instructions)
    instructions = [
        ("result", base - 1 - ins[1], ins[2]) if ins[0] == "result" else ins for ins in instructions
    ]
    ordered, returned = reordered([*instructions, *ends], values[: len(outputs)])
    shapes = [tuple(int(n) for n in o.shape) for o in outputs]
    named = tuple(Array(f"out{i}" if len(shapes) > 1 else "out", s) for i, s in enumerate(shapes))
    return Tape(inputs, named, ordered, tuple(returned), tuple(loops), tuple(branches))


def _branch(name: str, inputs, symbols, other) -> tuple[Branch, list]:
    """A branch that gives `other`, and the nodes' results that it needs."""
    instructions, values = _instructions(name, symbols, [other], len(inputs))
    needed = list(dict.fromkeys(ins for ins in instructions if ins[0] == "result"))
    place = {ins: ("input", len(inputs), j) for j, ins in enumerate(needed)}
    instructions, results = reordered([place.get(ins, ins) for ins in instructions], values)
    outside = Array("results", (len(needed),))
    out = Array("out", (len(values[0]),))
    return Branch(Tape((*inputs, outside), (out,), instructions, tuple(results))), needed


def _places(instructions: list, needed: list) -> range:
    """Where these instructions stand, once appended."""
    instructions += needed
    return range(len(instructions) - len(needed), len(instructions))


def _instructions(name: str, symbols, outputs, n_arguments: int) -> tuple[list, list[list[int]]]:
    """The instructions of the outputs, and by output the values of its elements."""
    function = symbolic.function_of(symbols, outputs, name="f")
    free = symbolic.free_symbols(function)
    if free:
        raise DialectError(
            f"'{name}' uses traced values that it does not receive ({', '.join(free[:4])}): "
            "hand them to it as arguments; a loop's step takes them as parameters"
        )
    instructions: list = [("const", 0.0)]
    registers: dict[int, int] = {}
    sizes = [int(np.prod(o.shape, dtype=int)) for o in outputs]
    values = [[0] * size for size in sizes]  # what is structurally zero is never written
    for op, *rest in symbolic.instructions_of(function):
        if op == "output":
            values[rest[0]][rest[1]] = registers[rest[2]]
            continue
        target, *operands = rest
        if op == "assign":
            registers[target] = registers[operands[0]]
            continue
        if op in ("const", "input"):
            instruction = (op, *operands)
        else:
            instruction = (_known(name, op), *[registers[a] for a in operands])
        if op == "input" and operands[0] >= n_arguments:
            instruction = ("result", -1 - (operands[0] - n_arguments), operands[1])
        registers[target] = len(instructions)
        instructions.append(instruction)
    return instructions, values


def _known(name: str, op: str) -> str:
    op = _RENAMED.get(op, op)
    if op not in FUNCTIONS:
        raise DialectError(
            f"'{name}' uses the operation '{op}', which has no machine code here: write it "
            "with arithmetic and elementary functions"
        )
    return op
