"""What a tape costs on a processor, by a simple model of one: its instructions, and the longest way
through them, on which each waits for the one before (`schedule.latency`).
"""

from __future__ import annotations

from ..ir.ops import LEAVES
from ..ir.tape import Tape, members, operands
from .schedule import latency

SMALL = 1850  # instructions, about 27 kB of machine code: the caller needs some of the cache, too
BEYOND = 26 / 15  # measured: ns for a kB of code that exceeds 32 kB, and of code that does not
UNITS = 2  # multiply-adds that begin in a cycle
PART = 0.45  # of the time that the units need for all instructions

# Of a cycle, what an instruction takes, and what a cycle of the longest way adds. Measured: single
# states of arms with two to sixteen joints, by two methods each, within 10 %.
EACH, WAITED = 0.43, 0.26


def fits(tape: Tape) -> bool:
    """Whether a tape's machine code fits in the instruction cache."""
    return _work(tape) <= SMALL


def waits(tape: Tape) -> bool:
    """Whether the longest way through a tape takes so long that a processor, which sees part of it
    at a time, has too little to do meanwhile.

    Where this is so (arms; C-ABA of an 18-dof quadruped, at 0.5) chains in a `spread` order take 5
    to 30 % off single states, and up to 25 % off eight lanes. Below (C-RNEA of quadrupeds, C-ABA
    with rotors, at 0.4) single states still gain 5 to 10 %, but eight lanes lose 5 %.
    """
    return _longest(tape) >= PART * _work(tape) / UNITS


def cycles(tape: Tape) -> float:
    """About how many cycles a state takes: what methods are compared by."""
    each = EACH if fits(tape) else EACH * BEYOND
    return each * _work(tape) + WAITED * _longest(tape)


def _longest(tape: Tape) -> int:
    known: list[int] = []
    for instruction in tape.instructions:
        start = max((known[a] for a in operands(instruction)), default=0)
        known.append(start + latency(instruction[0]))
    return max(known, default=0)


def _work(tape: Tape) -> int:
    """Instructions, with those that store results; branches stand aside."""
    computed = sum(instruction[0] not in LEAVES for instruction in tape.instructions)
    computed -= sum(len(members(bundle)) - 1 for bundle in tape.bundles)
    inside = sum(_work(loop.step) for loop in tape.loops)
    return computed + inside + sum(array.size for array in tape.outputs)
