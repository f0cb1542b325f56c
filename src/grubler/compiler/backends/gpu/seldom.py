"""Branches on a GPU: a kernel of its own for the states that take them.

Threads of a warp run together: one state that takes a branch makes 31 others wait, and the branch
takes registers from those that never enter it. So the function's kernel leaves branches out and
marks a state that would take one, by a NaN for its first result. A second kernel, launched after
it, looks for the marks: each block lists those of its stretch of states in shared memory, and its
threads then compute them side by side, everything anew.
"""

from __future__ import annotations

from ...ir.tape import Tape
from ...passes.seldom import marked_output
from .emitter import GLOBAL, SHARED
from .ptx import Kernel, Plan

SPAN = 32  # states that a thread looks at


class SeldomKernel(Kernel):
    """Computes the states that the function's own kernel has marked."""

    def __init__(self, tape: Tape, dtype: str):
        super().__init__(tape, dtype, Plan(block=64, registers=255), "seldom")
        # Shared memory holds whole numbers of 32 bits: how many states, then which.
        self.states: int = SPAN * self.plan.block

    @property
    def frame(self) -> dict[str, int]:
        return {"block": self.plan.block, "shared": 4 * (self.states + 1), "states": self.states}

    def text(self) -> str:
        e = self.e
        self._thread()
        e.line(f"%first = mul i32 %ctaid, {self.states}")
        e.line("%alone = icmp eq i32 %tid, 0")
        e.line("br i1 %alone, label %reset, label %ready")
        e.start_block("reset")
        e.line(f"store i32 0, ptr {SHARED} @memory")
        e.line("br label %ready")
        e.start_block("ready")
        self.barrier()
        self._list_marked()
        self.barrier()
        e.line(f"%number = load i32, ptr {SHARED} @memory")
        before = e.label
        e.line("br label %again")
        e.start_block("again")
        place = len(e.lines)
        e.line("%more = icmp ult i32 %which, %number")
        e.line("br i1 %more, label %compute, label %end")
        e.start_block("compute")
        e.line(f"%state = load i32, ptr {SHARED} {self._listed('%which')}")
        self._addresses()
        self.emit()
        e.line(f"%following = add i32 %which, {self.plan.block}")
        e.line("br label %again")
        e.lines.insert(place, f"  %which = phi i32 [ %tid, %{before} ], [ %following, %{e.label} ]")
        e.start_block("end")
        return self._function("")

    def _list_marked(self) -> None:
        """States of this block whose mark is set, in any order; all marks are on their way at once,
        a state beyond the last standing for it."""
        e, name = self.e, f"out{marked_output(self.tape)}"
        stride = e.define(f"sext i32 %{name}.state to i64")
        last = e.define("sub i32 %count, 1")
        begin, seen = e.define("add i32 %first, %tid"), []
        for k in range(SPAN):
            state = e.define(f"add i32 {begin}, {k * self.plan.block}")
            inside = e.define(f"icmp ult i32 {state}, %count")
            near = e.define(f"select i1 {inside}, i32 {state}, i32 {last}")
            far = e.define(f"mul i64 {e.define(f'zext i32 {near} to i64')}, {stride}")
            mark = e.load_from(e.offset(f"%{name}", GLOBAL, far), GLOBAL)
            seen.append((state, inside, mark))
        for state, inside, mark in seen:
            listed, after = e.new_label("list"), e.new_label("listed")
            marked = e.define(f"fcmp uno {e.scalar} {mark}, {mark}")
            marked = e.logical("and", marked, inside)
            e.line(f"br i1 {marked}, label %{listed}, label %{after}")
            e.start_block(listed)
            place = e.define(f"atomicrmw add ptr {SHARED} @memory, i32 1 monotonic, align 4")
            e.line(f"store i32 {state}, ptr {SHARED} {self._listed(place)}")
            e.line(f"br label %{after}")
            e.start_block(after)

    def _listed(self, number: str) -> str:
        after = self.e.define(f"add i32 {number}, 1")
        wide = self.e.define(f"zext i32 {after} to i64")
        return self.e.define(f"getelementptr i32, ptr {SHARED} @memory, i64 {wide}")
