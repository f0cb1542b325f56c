"""The states of a batch that take a branch, in LLVM IR: computed after the others, side by side.

    define void @batch(ptr table, i64 start, i64 stop, ptr scratch)

computes the states start..stop-1 as batch.py does, `SPAN` at a time, by `usual`, which marks those
that take a branch (seldom.py). It then looks for the marks, gathers the arguments of as many marked
states as there are lanes, computes them by `core_seldom` and puts their results in place. A
register that is not full repeats its last state.
"""

from __future__ import annotations

from ...ir.tape import Tape
from ...passes.seldom import marked_output
from ..llvm.emitter import SCALAR

SPAN = 1024  # states: enough for full registers, and still in cache when marks are looked for

_BATCH = """
define void @batch(ptr %table, i64 %start, i64 %stop, ptr %scratch) nounwind {
entry:
  %some = icmp ult i64 %start, %stop
  br i1 %some, label %span, label %end
span:
  %first = phi i64 [ %start, %entry ], [ %last, %span ]
  %left = sub i64 %stop, %first
  %whole = icmp uge i64 %left, SPAN
  %m = select i1 %whole, i64 SPAN, i64 %left
  %last = add i64 %first, %m
  call void @usual(ptr %table, i64 %first, i64 %last, ptr %scratch)
  call void @marked(ptr %table, i64 %first, i64 %last, ptr %scratch)
  %more = icmp ult i64 %last, %stop
  br i1 %more, label %span, label %end
end:
  ret void
}
define internal void @marked(ptr %table, i64 %start, i64 %stop, ptr %scratch) nounwind {
entry:
  %listed = alloca [LANES x i64]
  %base.at = getelementptr i64, ptr %table, i64 MARK
  %base = load ptr, ptr %base.at
  %rs.at = getelementptr i64, ptr %base.at, i64 1
  %rs = load i64, ptr %rs.at
  br label %look
look:
  %i = phi i64 [ %start, %entry ], [ %i.next, %next ]
  %n = phi i64 [ 0, %entry ], [ %n.next, %next ]
  %i.row = mul i64 %i, %rs
  %mark.at = getelementptr SCALAR, ptr %base, i64 %i.row
  %mark = load SCALAR, ptr %mark.at
  %taken = fcmp uno SCALAR %mark, %mark
  %place = getelementptr i64, ptr %listed, i64 %n
  store i64 %i, ptr %place
  %one = zext i1 %taken to i64
  %n.now = add i64 %n, %one
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %stop
  %full = icmp eq i64 %n.now, LANES
  %some = icmp ne i64 %n.now, 0
  %rest = and i1 %done, %some
  %now = or i1 %full, %rest
  br i1 %now, label %compute, label %next
compute:
  call void @listed(ptr %table, ptr %listed, i64 %n.now, ptr %scratch)
  br label %next
next:
  %n.next = phi i64 [ %n.now, %look ], [ 0, %compute ]
  br i1 %done, label %end, label %look
end:
  ret void
}
"""

_MOVE = """
define internal void @WAY(ptr %entry_, i64 %size, ptr %listed, i64 %n, ptr %scratch) nounwind {
entry:
  %base = load ptr, ptr %entry_
  %rs.at = getelementptr i64, ptr %entry_, i64 1
  %rs = load i64, ptr %rs.at
  %es.at = getelementptr i64, ptr %entry_, i64 2
  %es = load i64, ptr %es.at
  %n.last = sub i64 %n, 1
  br label %lane
lane:
  %l = phi i64 [ 0, %entry ], [ %l.next, %lane.end ]
  %l.past = icmp ugt i64 %l, %n.last
  %l.row = select i1 %l.past, i64 %n.last, i64 %l
  %state.at = getelementptr i64, ptr %listed, i64 %l.row
  %state = load i64, ptr %state.at
  %row.at = mul i64 %state, %rs
  %row = getelementptr SCALAR, ptr %base, i64 %row.at
  %column = getelementptr SCALAR, ptr %scratch, i64 %l
  br label %element
element:
  %k = phi i64 [ 0, %lane ], [ %k.next, %element ]
  %k.at = mul i64 %k, %es
  %outer = getelementptr SCALAR, ptr %row, i64 %k.at
  %k.in = mul i64 %k, LANES
  %inner = getelementptr SCALAR, ptr %column, i64 %k.in
  %x = load SCALAR, ptr %SOURCE
  store SCALAR %x, ptr %TARGET
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %size
  br i1 %k.more, label %element, label %lane.end
lane.end:
  %l.next = add i64 %l, 1
  %l.more = icmp ult i64 %l.next, COUNT
  br i1 %l.more, label %lane, label %end
end:
  ret void
}
"""


def marked_states(tape: Tape, dtype: str, lanes: int) -> str:
    """The function `batch` around `usual`, and its helpers."""
    mark = 3 * (len(tape.inputs) + marked_output(tape))
    gather = _MOVE.replace("WAY", "gather").replace("SOURCE", "outer").replace("TARGET", "inner")
    scatter = _MOVE.replace("WAY", "scatter").replace("SOURCE", "inner").replace("TARGET", "outer")
    text = _BATCH + gather.replace("COUNT", "LANES") + scatter.replace("COUNT", "%n")
    text = text.replace("SPAN", str(SPAN)).replace("MARK", str(mark))
    text += _listed(tape)
    return text.replace("LANES", str(lanes)).replace("SCALAR", SCALAR[dtype])


def _listed(tape: Tape) -> str:
    """The function that computes the states of a list."""
    head = "define internal void @listed(ptr %table, ptr %listed, i64 %n, ptr %scratch) nounwind {"
    lines, before, after, offset = [head, "entry:"], [], [], 0
    arrays = [*tape.inputs, *tape.outputs]
    for i, array in enumerate(arrays):
        lines.append(f"  %entry{i} = getelementptr i64, ptr %table, i64 {3 * i}")
        lines.append(f"  %in{i} = mul i64 {offset}, LANES")
        lines.append(f"  %s{i} = getelementptr SCALAR, ptr %scratch, i64 %in{i}")
        offset += array.size
        arguments = f"(ptr %entry{i}, i64 {array.size}, ptr %listed, i64 %n, ptr %s{i})"
        if array.size and i < len(tape.inputs):
            before.append(f"  call void @gather{arguments}")
        elif array.size:
            after.append(f"  call void @scatter{arguments}")
    pointers = ", ".join(f"ptr %s{i}" for i in range(len(arrays)))
    call = f"  call void @core_seldom({pointers})"
    return "\n".join([*lines, *before, call, *after, "  ret void", "}"])
