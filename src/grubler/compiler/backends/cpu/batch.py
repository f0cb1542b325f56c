"""The loop over a batch, in LLVM IR: blocks of `lanes` states through `core`.

    define void @batch(ptr table, i64 start, i64 stop, ptr scratch)

computes states start..stop-1. The table has three entries for each argument and output: address,
stride between states and stride between elements, both counted in numbers. Any strided array will
do: rows (N, n), columns (n, N), slices, and one state for all (stride 0). A block's states are
brought into scratch, element by element with the lanes side by side, by whole tiles transposed in
registers where a state's elements are contiguous, and by plain copies where the lanes are. The
last block may be short: its missing lanes repeat its last state and are not written back, so
nothing outside the arrays is touched.

With one lane there is also

    define void @one(ptr addresses)                    one state, arrays contiguous

Both are CPython methods, too (see native.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.tape import Array, Tape
from ..llvm.emitter import SCALAR

FEW = 64  # numbers; more, written here and there, are better gathered in scratch and then copied


def _transposition(registers: list[str], lanes: int, vector: str) -> tuple[list[str], list[str]]:
    """Instructions that finish the transposition of a tile held in registers, and its names.

    The tile has `lanes` states and c elements, in c registers; register i holds states i, i + c,
    i + 2c, ... (on the way back, the same order comes out). What is left of the transposition
    exchanges, at each distance d below c, blocks of d numbers between registers i and i + d.
    """
    lines, names, d, count = [], list(registers), 1, 0
    while d < len(registers):
        fresh = list(names)
        for i in range(len(registers)):
            if i & d:
                continue
            low = [e if not e & d else lanes + e - d for e in range(lanes)]
            high = [e + d if not e & d else lanes + e for e in range(lanes)]
            for target, mask in ((i, low), (i + d, high)):
                fresh[target] = f"%t{count}"
                lines.append(_shuffled(fresh[target], vector, names[i], names[i + d], mask))
                count += 1
        names, d = fresh, 2 * d
    return lines, names


# Shared by `fetch` and `put`: strides, and which of the three ways applies.
_PROLOGUE = """
entry:
  %base = load ptr, ptr %entry_
  %rs.at = getelementptr i64, ptr %entry_, i64 1
  %rs = load i64, ptr %rs.at
  %es.at = getelementptr i64, ptr %entry_, i64 2
  %es = load i64, ptr %es.at
  %origin = mul i64 %first, %rs
  %here = getelementptr SCALAR, ptr %base, i64 %origin
  %whole = icmp eq i64 %m, LANES
  %es.one = icmp eq i64 %es, 1
  %rs.one = icmp eq i64 %rs, 1
  %tiled = and i1 %whole, %es.one
  %copied = and i1 %whole, %rs.one
"""

_TILES_HEAD = """
tiles:
  %last = sub i64 %n, COLUMNS
  br label %tile
tile:
  %j = phi i64 [ 0, %tiles ], [ %j.next, %tile ]
  %j.past = icmp ugt i64 %j, %last
  %j0 = select i1 %j.past, i64 %last, i64 %j
  %side = getelementptr SCALAR, ptr %here, i64 %j0
  %inner.at = mul i64 %j0, LANES
  %inner = getelementptr SCALAR, ptr %scratch, i64 %inner.at
"""

_TILES_TAIL = """
  %j.next = add i64 %j, COLUMNS
  %j.more = icmp ult i64 %j.next, %n
  br i1 %j.more, label %tile, label %end
"""

_COPIES = """
copies:
  %k = phi i64 [ 0, %maybe ], [ %k.next, %copies ]
  %k.at = mul i64 %k, %es
  %outer.k = getelementptr SCALAR, ptr %here, i64 %k.at
  %k.in = mul i64 %k, LANES
  %inner.k = getelementptr SCALAR, ptr %scratch, i64 %k.in
  MOVE_VECTOR
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %n
  br i1 %k.more, label %copies, label %end
"""

_SINGLES = """
singles:
  br label %lane
lane:
  %l = phi i64 [ 0, %singles ], [ %l.next, %lane.end ]
  %m.last = sub i64 %m, 1
  %l.past = icmp ugt i64 %l, %m.last
  %l.row = select i1 %l.past, i64 %m.last, i64 %l
  %l.at = mul i64 %l.row, %rs
  %row = getelementptr SCALAR, ptr %here, i64 %l.at
  %column = getelementptr SCALAR, ptr %scratch, i64 %l
  br label %element
element:
  %i = phi i64 [ 0, %lane ], [ %i.next, %element ]
  %i.at = mul i64 %i, %es
  %outer.i = getelementptr SCALAR, ptr %row, i64 %i.at
  %i.in = mul i64 %i, LANES
  %inner.i = getelementptr SCALAR, ptr %column, i64 %i.in
  MOVE_SCALAR
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %n
  br i1 %i.more, label %element, label %lane.end
lane.end:
  %l.next = add i64 %l, 1
  %l.more = icmp ult i64 %l.next, LAST_LANE
  br i1 %l.more, label %lane, label %end
end:
  ret void
}
"""


def _columns(size: int, lanes: int) -> int:
    """The width of tiles for an array of `size` elements; 0 where it is too small for any."""
    return next((c for c in (lanes // 2, lanes // 4) if c > 1 and size >= c), 0)


def _mover(way: str, dtype: str, lanes: int, columns: int) -> str:
    """`fetch` (arrays to scratch) or `put` (scratch to arrays) for one array and one block."""
    inwards = way == "fetch"
    scalar = SCALAR[dtype]
    bytes_ = 8 if scalar == "double" else 4
    vector = f"<{lanes} x {scalar}>"
    own, foreign = f"align {bytes_ * lanes}", f"align {bytes_}"
    head = f"define internal void @{way}{columns}"
    head += "(ptr %entry_, i64 %n, i64 %first, i64 %m, ptr %scratch)"
    choose, body = "  br label %singles\n", ""
    if lanes > 1:
        first = "br i1 %tiled, label %tiles, label %maybe" if columns else "br label %maybe"
        choose = f"  {first}\nmaybe:\n  br i1 %copied, label %copies, label %singles\n"
        move = (
            f"%x.k = load {vector}, ptr %SOURCE.k, {foreign if inwards else own}\n"
            f"  store {vector} %x.k, ptr %TARGET.k, {own if inwards else foreign}"
        )
        body = _directed(_COPIES.replace("MOVE_VECTOR", move), inwards)
    if columns:
        body += _TILES_HEAD + _tile(lanes, columns, scalar, own, foreign, inwards) + _TILES_TAIL
    single = (
        f"%x.i = load {scalar}, ptr %SOURCE.i, {foreign}\n"
        f"  store {scalar} %x.i, ptr %TARGET.i, {foreign}"
    )
    body += _directed(_SINGLES.replace("MOVE_SCALAR", single), inwards)
    text = f"{head} nounwind {{{_PROLOGUE}{choose}{body}"
    text = text.replace("LAST_LANE", str(lanes) if inwards else "%m")
    text = text.replace("LANES", str(lanes)).replace("COLUMNS", str(columns))
    return text.replace("SCALAR", scalar)


def _directed(text: str, inwards: bool) -> str:
    source, target = ("outer", "inner") if inwards else ("inner", "outer")
    return text.replace("SOURCE", source).replace("TARGET", target)


def _tile(lanes: int, columns: int, scalar: str, own: str, foreign: str, inwards: bool) -> str:
    """Move a tile of all lanes and some elements.

    Parts of vectors are joined as they are loaded (or split as they are stored), which memory
    instructions do by themselves: those stages of the transposition are free.
    """
    vector, part = f"<{lanes} x {scalar}>", f"<{columns} x {scalar}>"
    lines = []
    for l in range(lanes):
        lines.append(f"  %o{l}.at = mul i64 %rs, {l}")
        lines.append(f"  %o{l} = getelementptr {scalar}, ptr %side, i64 %o{l}.at")
    for k in range(columns):
        lines.append(f"  %i{k} = getelementptr {scalar}, ptr %inner, i64 {k * lanes}")
        if not inwards:
            lines.append(f"  %r{k} = load {vector}, ptr %i{k}, {own}")
            continue
        parts = []
        for l in range(k, lanes, columns):
            lines.append(f"  %a{l} = load {part}, ptr %o{l}, {foreign}")
            parts.append(f"%a{l}")
        lines += _joined(parts, columns, scalar, f"%r{k}")
    shuffles, names = _transposition([f"%r{k}" for k in range(columns)], lanes, vector)
    lines += shuffles
    for k in range(columns):
        if inwards:
            lines.append(f"  store {vector} {names[k]}, ptr %i{k}, {own}")
            continue
        for l in range(k, lanes, columns):
            mask = range(l - k, l - k + columns)
            lines.append(_shuffled(f"%a{l}", vector, names[k], "poison", mask))
            lines.append(f"  store {part} %a{l}, ptr %o{l}, {foreign}")
    return "\n".join(lines)


def _joined(parts: list[str], size: int, scalar: str, name: str) -> list[str]:
    """Vectors put end to end, two and two, into one called `name`."""
    lines = []
    while len(parts) > 1:
        kind, joined = f"<{size} x {scalar}>", []
        for i in range(0, len(parts), 2):
            joined.append(name if len(parts) == 2 else f"{name}.{size}.{i}")
            lines.append(_shuffled(joined[-1], kind, parts[i], parts[i + 1], range(2 * size)))
        parts, size = joined, 2 * size
    return lines


def _shuffled(name: str, kind: str, a: str, b: str, mask) -> str:
    indices = ", ".join(f"i32 {e}" for e in mask)
    return f"  {name} = shufflevector {kind} {a}, {kind} {b}, <{len(mask)} x i32> <{indices}>"


def scratch_size(arrays: Sequence[Array], lanes: int) -> int:
    """Numbers that a block's arguments and outputs take."""
    return lanes * sum(array.size for array in arrays)


def batch_loop(tape: Tape, dtype: str, lanes: int, name: str = "batch") -> str:
    """The function `batch`, or of another name, and its helpers."""
    scalar = SCALAR[dtype]
    arrays = [*tape.inputs, *tape.outputs]
    before, inputs, outputs, pointers, movers = [], [], [], [], set()
    offset = 0
    written = sum(array.size for array in tape.outputs)
    straight = ["  br label %blocks"]
    if lanes == 1 and written <= FEW:
        straight = _in_place(arrays, scalar)
    for i, array in enumerate(arrays):
        before.append(f"  %entry{i} = getelementptr i64, ptr %table, i64 {3 * i}")
        before.append(f"  %s{i} = getelementptr {scalar}, ptr %scratch, i64 {offset}")
        pointers.append(f"ptr %s{i}")
        offset += array.size * lanes
        if array.size == 0:
            continue
        columns = _columns(array.size, lanes)
        call = f"{columns}(ptr %entry{i}, i64 {array.size}, i64 %first, i64 %m, ptr %s{i})"
        movers.add(("fetch" if i < len(tape.inputs) else "put", columns))
        if i < len(tape.inputs):
            inputs.append(_fetch_once(i, call))
        else:
            outputs.append(f"  call void @put{call}")
    return "\n".join(
        [
            *[_mover(way, dtype, lanes, columns) for way, columns in sorted(movers)],
            f"define void @{name}(ptr %table, i64 %start, i64 %stop, ptr %scratch) nounwind {{",
            "entry:",
            *before,
            "  %some = icmp ult i64 %start, %stop",
            "  br i1 %some, label %choose, label %end",
            "choose:",
            *straight,
            "blocks:",
            "  br label %block",
            "block:",
            "  %first = phi i64 [ %start, %blocks ], [ %next, %put ]",
            "  %left = sub i64 %stop, %first",
            f"  %full = icmp uge i64 %left, {lanes}",
            f"  %m = select i1 %full, i64 {lanes}, i64 %left",
            "  %initial = icmp eq i64 %first, %start",
            *inputs,
            "  br label %compute",
            "compute:",
            f"  call void @core({', '.join(pointers)})",
            "  br label %put",
            "put:",
            *outputs,
            f"  %next = add i64 %first, {lanes}",
            "  %more = icmp ult i64 %next, %stop",
            "  br i1 %more, label %block, label %end",
            "end:",
            "  ret void",
            "}",
        ]
    )


def _in_place(arrays, scalar: str) -> list[str]:
    """A loop over single states without scratch, where every array's elements are contiguous.

    Copies in and out would cost a fifth of an arm's dynamics, and keep the processor from
    beginning a state while the one before ends.
    """
    lines, contiguous = [], "true"
    for i, array in enumerate(arrays):
        lines += [
            f"  %base{i} = load ptr, ptr %entry{i}",
            f"  %row.at{i} = getelementptr i64, ptr %entry{i}, i64 1",
            f"  %row{i} = load i64, ptr %row.at{i}",
        ]
        if array.size < 2:
            continue  # whatever its stride
        lines += [
            f"  %element.at{i} = getelementptr i64, ptr %entry{i}, i64 2",
            f"  %element{i} = load i64, ptr %element.at{i}",
            f"  %one{i} = icmp eq i64 %element{i}, 1",
            f"  %all{i} = and i1 {contiguous}, %one{i}",
        ]
        contiguous = f"%all{i}"
    lines += [
        f"  br i1 {contiguous}, label %state, label %blocks",
        "state:",
        "  %k = phi i64 [ %start, %choose ], [ %k.next, %state ]",
    ]
    for i in range(len(arrays)):
        lines.append(f"  %k.at{i} = mul i64 %k, %row{i}")
        lines.append(f"  %here{i} = getelementptr {scalar}, ptr %base{i}, i64 %k.at{i}")
    pointers = ", ".join(f"ptr %here{i}" for i in range(len(arrays)))
    return [
        *lines,
        f"  call void @core({pointers})",
        "  %k.next = add i64 %k, 1",
        "  %k.more = icmp ult i64 %k.next, %stop",
        "  br i1 %k.more, label %state, label %end",
    ]


def _fetch_once(i: int, call: str) -> str:
    """Fetch an argument; one that is the same for all states only in the first block."""
    return f"""  %stride.at{i} = getelementptr i64, ptr %entry{i}, i64 1
  %stride{i} = load i64, ptr %stride.at{i}
  %moves{i} = icmp ne i64 %stride{i}, 0
  %needed{i} = or i1 %moves{i}, %initial
  br i1 %needed{i}, label %fetch{i}, label %fetched{i}
fetch{i}:
  call void @fetch{call}
  br label %fetched{i}
fetched{i}:"""


def single_state(tape: Tape) -> str:
    """The function `one`, with one lane."""
    n = len(tape.inputs) + len(tape.outputs)
    lines = ["define void @one(ptr %addresses) nounwind {"]
    for i in range(n):
        lines.append(f"  %at{i} = getelementptr ptr, ptr %addresses, i64 {i}")
        lines.append(f"  %p{i} = load ptr, ptr %at{i}")
    lines.append(f"  call void @core({', '.join(f'ptr %p{i}' for i in range(n))})")
    lines += ["  ret void", "}"]
    return "\n".join(lines)
