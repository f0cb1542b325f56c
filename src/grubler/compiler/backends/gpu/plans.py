"""Which plans to try for a tape, and which to take where nothing can be measured.

What counts is how many threads an SM holds against how many values each can keep at hand: 65,536
registers and 227 KB of shared memory for all of its threads. Fewer threads hide less latency;
fewer values mean more moves. Best on an H200, by the largest number of values alive:

    fp32   up to 200       no limits at all; in rows, 110 values in 128 registers
           up to 300       150 values in 168 registers, the rest in shared memory
           above           200 values in 255 registers, likewise
    fp64   up to 300       116 values in 255 registers, inputs and the rest in shared memory
           above           110 values, and one block alone on an SM with all its shared memory
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.ops import LEAVES
from ...ir.tape import Tape, operands
from ..llvm.emitter import BYTES
from .ptx import Plan

# Numbers of fp32 a thread in shared memory, where all the threads that fit by registers also fit.
_SHARED = {128: 110, 168: 150, 255: 224}
_BLOCK_BYTES = 227 * 1024  # of shared memory, the most for a block
_ALONE = 224  # of fp64, where one block of 128 threads is alone on an SM


def alive(tape: Tape) -> int:
    """The most values alive at a time, constants and inputs aside."""
    last: dict[int, int] = {}
    for k, instruction in enumerate(tape.instructions):
        for a in operands(instruction):
            last[a] = k
    now = most = 0
    for k, instruction in enumerate(tape.instructions):
        if k in last and instruction[0] not in LEAVES:
            now += 1
        for a in set(operands(instruction)):
            if last[a] == k and tape.instructions[a][0] not in LEAVES:
                now -= 1
        most = max(most, now)
    return most


def plans(tape: Tape, dtype: str) -> list[dict[str, Plan]]:
    """Plans worth trying, for both layouts, the ones to take unmeasured first."""
    most = alive(tape)
    inside = max([alive(loop.step) for loop in tape.loops if loop.tolerance is None], default=0)
    if inside > most:
        columns = rows = _looped(inside, dtype)
    elif dtype == "float32":
        columns, rows = _single(most, rows=False), _single(most, rows=True)
    else:
        columns = rows = _double(most)
    return [_pair(tape, dtype, *both) for both in zip(columns, rows)]


def _pair(tape: Tape, dtype: str, columns: Plan, rows: Plan) -> dict[str, Plan]:
    """A plan for each layout. In rows, inputs and outputs pass through shared memory: where a
    block of 32 does not fit there, the layout is left out and columns, which take any strides,
    serve instead."""
    most = _BLOCK_BYTES // BYTES[dtype]
    inputs = sum(array.size for array in tape.inputs)
    if columns.staged and inputs * columns.block > most:
        columns = replace(columns, staged=False)
    pair = {"columns": columns}
    numbers = sum(array.size | 1 for array in (*tape.inputs, *tape.outputs))
    block = rows.block
    while numbers * block > most:
        block //= 2
    if block >= 32:
        # One module, one level of the middle-end.
        pair["rows"] = replace(rows, staged=True, block=block, middle=columns.middle)
    return pair


def _single(most: int, rows: bool) -> list[Plan]:
    free = Plan(middle=1)
    if most <= 90:
        return [free, Plan(block=64, middle=1), Plan(block=64), Plan(values=60, shared=60)]
    narrow = [
        Plan(values=v, registers=128, shared=_SHARED[128], middle=m)
        for v, m in ((110, 1), (100, 0), (100, 1))
    ]
    medium = [
        Plan(values=v, registers=168, shared=_SHARED[168], middle=m)
        for v, m in ((150, 1), (140, 1), (140, 0))
    ]
    wide = [
        Plan(values=v, shared=_SHARED[255], middle=m)
        for v, m in ((200, 1), (220, 1), (180, 1), (200, 0), (220, 0))
    ]
    if most > 300:
        return [*wide[1::-1], *wide[2:], *medium] if rows else [*wide, *medium]
    if most > 200:
        return [*medium, free, *narrow, wide[0]]
    return [*narrow, *medium, free, wide[0]] if rows else [free, *narrow, *medium, wide[0]]


def _looped(most: int, dtype: str) -> list[Plan]:
    """A tape that is a loop around a step: all by the assembler, or the step by us. On an H200 the
    second is faster by 30 % in fp64 with 314 alive and in fp32 with 666, slower by 30 % in fp32
    with 314."""
    free = [Plan(middle=1), Plan(block=64, middle=1)]
    single = dtype == "float32"
    if most <= (90 if single else 40):
        return free
    # The state waits in shared memory already: in fp64 the plans that bring inputs there come last.
    planned = _single(most, rows=False)[:4] if single else _double(most)[3::-1]
    return [*free, *planned] if most <= (400 if single else 200) else [*planned, *free]


def _double(most: int) -> list[Plan]:
    if most <= 40:
        return [Plan(middle=1), Plan(block=64, middle=1), Plan()]
    tried = [
        Plan(values=v, staged=staged, shared=_SHARED[255] // 2, middle=m)
        for v, staged, m in (
            (116, True, 0), (110, True, 0), (110, True, 1), (100, True, 0), (110, False, 0),
        )
    ]  # fmt: skip
    if most <= 300:
        return tried
    # Too much for two blocks on an SM: one alone has all of the shared memory.
    alone = [
        Plan(values=v, staged=staged, shared=_ALONE, middle=m)
        for v, staged, m in ((110, False, 1), (110, True, 0), (110, False, 0), (116, False, 0))
    ]
    if most <= 340:  # a step of Mini Cheetah: inputs in shared memory are half as fast again
        alone[:2] = alone[1::-1]
    return [*alone, *tried[:3]]
