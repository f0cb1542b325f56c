"""The tape: a straight line of scalar instructions in SSA form, loops and branches as nodes.

Value k is what instruction k computes. An instruction is a tuple, hashable and easy to read:

    ("const", 2.5)                  a number
    ("input", argument, element)    an element of an argument, counted row by row
    ("mul", a, b)                   an operation on earlier values
    ("loop", loop, a, b, ...)       tape.loops[loop] started from values a, b, ...
    ("branch", branch, ok, a, ...)  a, ... where ok, else what tape.branches[branch] gives
    ("result", k, j)                the j-th result of the loop or branch at value k

Comparisons yield 0.0 or 1.0, and any value other than zero counts as true, as in CasADi.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from ...errors import InputError
from .ops import LEAVES, OPS

Instruction: TypeAlias = tuple[Any, ...]
# of values, one a lane; in a lane without one nobody asks what is computed
Bundle: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Array:
    """The name and shape of an argument or an output."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))


@dataclass(frozen=True)
class Loop:
    """A traced step repeated on a state: x <- step(x, parameters).

    The step's arguments are the state and the parameters; its outputs the next state and, where
    `tolerance` is given, a residual. Without tolerance the step runs `count` times. With it, each
    lane stops at the first state where no |residual| exceeds the tolerance, or after `count`
    steps; NaN exceeds nothing, so that a lost lane does not hold up the others. Results, in
    order: the state, the residual at that state, the number of steps taken.
    """

    step: Tape
    count: int
    tolerance: float | None = None

    @property
    def state_size(self) -> int:
        return self.step.inputs[0].size

    @property
    def residual_size(self) -> int:
        return 0 if self.tolerance is None else self.step.outputs[1].size

    @property
    def result_size(self) -> int:
        return self.state_size + self.residual_size + 1


@dataclass(frozen=True)
class Branch:
    """What is computed instead where a condition fails, seldom.

    The step's arguments are those of the function, read again, and one more with the values of the
    line around that it needs: results of loops and branches there, and in a branch inside a branch
    whatever is known already. Its node's operands are the condition, the values where it holds,
    and those values.
    """

    step: Tape

    @property
    def size(self) -> int:
        return self.step.outputs[0].size


@dataclass(frozen=True)
class Tape:
    """A traced function: its arguments, its instructions, and the values that it returns."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    instructions: list[Instruction] = field(repr=False)
    results: tuple[tuple[int, ...], ...] = field(repr=False)  # values of each output, row by row
    loops: tuple[Loop, ...] = ()
    branches: tuple[Branch, ...] = ()
    # Values that one instruction on a vector computes (limbs.py), those of each in a row.
    bundles: tuple[Bundle, ...] = ()

    def __len__(self) -> int:
        return len(self.instructions)

    @property
    def total(self) -> int:
        """The number of instructions, those of the steps inside included."""
        return len(self) + sum(inner.step.total for inner in (*self.loops, *self.branches))

    @property
    def iterates(self) -> bool:
        """Whether there is a loop, in branches too."""
        return bool(self.loops) or any(branch.step.iterates for branch in self.branches)

    def inside(self, rewrite: Callable[[Tape], Tape]) -> Tape:
        """The tape with the steps of its loops and branches rewritten."""
        branches = tuple(replace(node, step=rewrite(node.step)) for node in self.branches)
        return replace(self.inside_loops(rewrite), branches=branches)

    def inside_loops(self, rewrite: Callable[[Tape], Tape]) -> Tape:
        """The tape with the steps of its loops rewritten."""
        loops = tuple(replace(node, step=rewrite(node.step)) for node in self.loops)
        return replace(self, loops=loops)

    def digest(self) -> str:
        """A hash of everything that the generated code depends on."""
        h = hashlib.sha256()
        _update_digest(h, self)
        return h.hexdigest()


def operands(instruction: Instruction) -> tuple[int, ...]:
    """The values that an instruction reads."""
    op = instruction[0]
    if op in LEAVES:
        return ()
    if op in ("loop", "branch"):
        return instruction[2:]
    if op == "result":
        return instruction[1:2]
    return instruction[1:]


def with_operands(instruction: Instruction, values: list[int]) -> Instruction:
    """The instruction with other operands in the places of `operands(instruction)`."""
    op = instruction[0]
    if op in LEAVES:
        return instruction
    if op in ("loop", "branch"):
        return (op, instruction[1], *values)
    if op == "result":
        return (op, *values, instruction[2])
    return (op, *values)


def heights(instructions: list[Instruction]) -> list[int]:
    """How many operations in a row lead to each value."""
    height: list[int] = []
    for instruction in instructions:
        height.append(1 + max((height[a] for a in operands(instruction)), default=0))
    return height


def members(bundle: Bundle) -> list[int]:
    """The values of a bundle, each once."""
    return list(dict.fromkeys(v for v in bundle if v is not None))


def read_by(instructions: list[Instruction], bundle: Bundle) -> list[Bundle]:
    """What the instructions of a bundle read, place by place."""
    reads = [None if v is None else operands(instructions[v]) for v in bundle]
    count = len(operands(instructions[members(bundle)[0]]))
    return [tuple(values and values[i] for values in reads) for i in range(count)]


def holds(bundle: Bundle, group: Bundle) -> bool:
    """Whether a bundle has the values of a group, each in its lane."""
    pairs = zip(bundle, group)
    return len(bundle) == len(group) and all(v is None or v == held for held, v in pairs)


def reordered(
    instructions: list[Instruction],
    results: Any,
    rank: list[int] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Depth-first order from the results: dead code goes, and a value is computed just before the
    first instruction that needs it. Of several operands the one of highest rank goes first."""
    place: dict[int, int] = {}
    order: list[Instruction] = []
    for root in (value for values in results for value in values):
        stack = [root]
        while stack:
            k = stack[-1]
            if k in place:
                stack.pop()
                continue
            missing = [a for a in operands(instructions[k]) if a not in place]
            if missing:
                if rank:
                    missing.sort(key=rank.__getitem__, reverse=True)
                stack.extend(reversed(missing))
                continue
            stack.pop()
            place[k] = len(order)
            order.append(
                with_operands(instructions[k], [place[a] for a in operands(instructions[k])])
            )
    return order, [tuple(place[v] for v in values) for values in results]


def last_branch(tape: Tape) -> tuple[int, int] | None:
    """(k, v) where the branch at value k gives all results, and v is the last value needed to take
    it: from there on a single state goes one way or the other. None where there is not one."""
    given = {tape.instructions[v][:2] for values in tape.results for v in values}
    if len(given) != 1:
        return None
    op, k = next(iter(given))
    if op != "result" or tape.instructions[k][0] != "branch":
        return None
    _, number, ok, *rest = tape.instructions[k]
    return k, max([ok, *rest[tape.branches[number].size :]])


def evaluate(tape: Tape, *arguments: Any) -> list[np.ndarray]:
    """The outputs, computed instruction by instruction in Python: slow, to check the rest."""
    flat = [np.asarray(a, dtype=float).ravel() for a in arguments]
    for array, given in zip(tape.inputs, flat, strict=True):
        if given.size != array.size:
            raise InputError(f"argument '{array.name}' has {given.size} elements, not {array.size}")
    with np.errstate(all="ignore"):
        values = _run(tape, flat)
    return [
        np.array([values[k] for k in result]).reshape(array.shape)
        for array, result in zip(tape.outputs, tape.results)
    ]


def _run(tape: Tape, arguments) -> list[Any]:
    values: list[Any] = []
    for instruction in tape.instructions:
        op = instruction[0]
        if op == "const":
            values.append(np.float64(instruction[1]))
        elif op == "input":
            values.append(np.float64(arguments[instruction[1]][instruction[2]]))
        elif op == "loop":
            start = [values[a] for a in instruction[2:]]
            values.append(run_loop(tape.loops[instruction[1]], start))
        elif op == "branch":
            branch = tape.branches[instruction[1]]
            ok, *rest = (values[a] for a in instruction[2:])
            taken = rest[: branch.size]
            if not ok:
                given = arguments[: len(branch.step.inputs) - 1]
                taken = evaluate(branch.step, *given, rest[branch.size :])[0].ravel()
            values.append(list(taken))
        elif op == "result":
            values.append(values[instruction[1]][instruction[2]])
        else:
            values.append(OPS[op].evaluate(*[values[a] for a in instruction[1:]]))
    return values


def run_loop(loop: Loop, start: list[Any]) -> list[Any]:
    """The results of a loop on numbers."""
    sizes = np.cumsum([array.size for array in loop.step.inputs])
    pieces = np.split(np.array(start), sizes[:-1])
    state, parameters = pieces[0], pieces[1:]
    taken, residual = 0, np.zeros(0)
    while True:
        if loop.tolerance is None and taken == loop.count:
            break
        next_state, *rest = evaluate(loop.step, state, *parameters)
        if loop.tolerance is not None:
            residual = rest[0].ravel()
            if not np.any(np.abs(residual) > loop.tolerance) or taken == loop.count:
                break
        state, taken = next_state.ravel(), taken + 1
    return [*state, *residual, np.float64(taken)]


@dataclass(frozen=True)
class OperationCount:
    """Arithmetic that one evaluation needs, counted as in the literature's tables.

    Loops count once for each step they may take. Changes of sign cost nothing in generated code
    and are listed apart, and so is all that branches do where their condition fails.
    """

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0
    trigonometric: int = 0
    square_roots: int = 0
    negations: int = 0
    others: int = 0
    seldom: int = 0

    @property
    def total(self) -> int:
        return (
            self.additions + self.multiplications + self.divisions
            + self.trigonometric + self.square_roots + self.others
        )  # fmt: skip


def count(tape: Tape) -> OperationCount:
    """Count the operations of a tape."""
    return OperationCount(**_tally(tape))


def _tally(tape: Tape) -> Counter[Any]:
    tally: Counter[Any] = Counter()
    for op, number in Counter(instruction[0] for instruction in tape.instructions).items():
        for kind in OPS[op].counted if op in OPS else ():
            tally[kind] += number
    for loop in tape.loops:
        for kind, number in _tally(loop.step).items():
            tally[kind] += number * loop.count
    for branch in tape.branches:
        inside = count(branch.step)
        tally["seldom"] += inside.total + inside.seldom
    return tally


def _update_digest(h, tape: Tape) -> None:
    h.update(repr((tape.inputs, tape.outputs, tape.results)).encode())
    for instruction in tape.instructions:
        if instruction[0] == "const":  # by bits: repr would merge no two numbers but NaNs
            h.update(b"c" + struct.pack("<d", instruction[1]))
        else:
            h.update(repr(instruction).encode())
    for loop in tape.loops:
        h.update(repr((loop.count, loop.tolerance)).encode())
        _update_digest(h, loop.step)
    for branch in tape.branches:
        h.update(b"branch")
        _update_digest(h, branch.step)
