"""LLVM keeps the order of instructions of a single state, which is ours then."""

import re

import llvmlite.binding as llvm
import numpy as np

import grubler.compiler as gc
from grubler.compiler.backends.cpu import host as cpu
from grubler.compiler.backends.llvm.emitter import BLOCK
from grubler.compiler.backends.llvm.lower import lower
from grubler.compiler.passes.schedule import spread
from grubler.compiler.passes.simplify import optimize, simplify
from grubler.compiler.runtime.program import arranged

ARITHMETIC = re.compile(r"\tv?(mul|add|sub)sd\b|\tf(mul|add|sub)\b")  # x86-64, AArch64


def long_sums(x):
    """Products of sums, many of which could go first."""
    y = [x[i] * x[(i + 3) % 8] - x[(i + 5) % 8] for i in range(8)]
    for k in range(12):
        y = [y[i] * (y[(i + k) % 8] + x[i]) - y[(i + 1) % 8] for i in range(8)]
    return np.stack(y)


def in_machine_code(tape) -> list[str]:
    """What the arithmetic of a tape is in the order of its machine code."""
    ir = lower(tape, "float64", 1, 1, BLOCK, held=True) + "\n"
    ir += "define void @one(ptr %a, ptr %b) { call void @core(ptr %a, ptr %b)\n ret void }"
    text = cpu._machine(cpu.host(), jit=True).emit_assembly(llvm.parse_assembly(ir))
    return [m[1] or m[2] for m in map(ARITHMETIC.match, text.split("\n")) if m]


def test_the_order_of_a_single_state_is_kept():
    tape = spread(simplify(gc.trace(long_sums, [8])), single=True)
    ours = [i[0] for i in tape.instructions if i[0] not in ("const", "input")]
    assert len(ours) > 300 and in_machine_code(tape) == ours


def test_orders():
    """One state is held where it writes few results; lanes of a batch are not."""
    tape = optimize(gc.trace(long_sums, [8]))
    assert arranged(tape, "float64", 1)[2]
    assert not arranged(tape, "float64", 8)[2]
    many = optimize(gc.trace(lambda x: np.outer(long_sums(x), np.tile(x, 2)), [8]))
    assert not arranged(many, "float64", 1)[2]


def test_a_longer_way_outweighs_a_life():
    """Of a single state what the results wait for goes first; of several the lives end first."""

    def fn(x):
        late = x[0]
        for _ in range(30):
            late = late / x[1]
        return np.stack([late, *[x[2] * (x[3] + i) for i in range(20)]])

    tape = simplify(gc.trace(fn, [4]))
    ways = (spread(tape, single).instructions for single in (True, False))
    single, several = ([i[0] for i in way if i[0] not in ("const", "input")] for way in ways)
    assert single.index("div") == 0 < several.index("div")
