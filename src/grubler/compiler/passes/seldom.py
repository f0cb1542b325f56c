"""A tape with branches in two parts: what is usual, and what is computed where a state takes one.

Where states are computed side by side, in the lanes of a register or the threads of a warp, one
that takes a branch makes the others wait. So the usual part marks such a state, by a NaN for its
first result, and the states that are marked are computed afterwards, side by side.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.tape import Tape, last_branch, operands, with_operands
from .schedule import in_order


def branches(tape: Tape) -> bool:
    """Whether any result depends on a branch."""
    return any(instruction[0] == "branch" for instruction in tape.instructions)


def usual(tape: Tape) -> Tape:
    """The tape without its branches, the first result NaN for states that would take one."""
    if not branches(tape):
        return tape
    line, place, taken, fine = [], {}, {}, None
    for k, (op, *rest) in enumerate(tape.instructions):
        if op == "branch":
            ok = place[rest[1]]
            taken[k] = [place[v] for v in rest[2 : 2 + tape.branches[rest[0]].size]]
            if fine is not None:
                line.append(("and", fine, ok))
            fine = ok if fine is None else len(line) - 1
        elif op == "result" and rest[0] in taken:
            place[k] = taken[rest[0]][rest[1]]
        else:
            instruction = tape.instructions[k]
            place[k] = len(line)
            line.append(with_operands(instruction, [place[a] for a in operands(instruction)]))
    results = [[place[v] for v in values] for values in tape.results]
    output = marked_output(tape)
    line += [("const", float("nan")), ("select", fine, results[output][0], len(line))]
    results[output][0] = len(line) - 1
    return _live(replace(tape, instructions=line, results=tuple(map(tuple, results)), branches=()))


def marked_output(tape: Tape) -> int:
    """The output whose first element tells."""
    return next(i for i, array in enumerate(tape.outputs) if array.size)


def _live(tape: Tape) -> Tape:
    """The tape without instructions that no result needs, in the same order."""
    needed = {v for values in tape.results for v in values}
    for k in reversed(range(len(tape.instructions))):
        if k in needed:
            needed.update(operands(tape.instructions[k]))
    return in_order(tape, sorted(needed))


def seldom(tape: Tape) -> Tape:
    """What states that are marked need: the last branch alone where it gives all results and reads
    nothing of the line around, else everything."""
    known = last_branch(tape)
    if known is None:
        return tape
    _, number, _, *rest = tape.instructions[known[0]]
    step = tape.branches[number].step
    if len(rest) > tape.branches[number].size or len(_branches(tape)) > 1:
        return tape
    given = step.results[0]
    results = [
        tuple(given[tape.instructions[value][2]] for value in values) for values in tape.results
    ]
    return replace(step, inputs=tape.inputs, outputs=tape.outputs, results=tuple(results))


def _branches(tape: Tape) -> list[int]:
    return [k for k, instruction in enumerate(tape.instructions) if instruction[0] == "branch"]
