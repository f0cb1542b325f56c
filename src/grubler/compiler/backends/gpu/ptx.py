"""The GPU target: one state a thread, PTX out of the same tape and the same emitter.

Two kernels for a function. Both take, for every argument and output, its address and two strides
counted in numbers, between states and between elements, and last the number of states.

    columns    (n, N), or any strides: neighbouring threads read neighbouring numbers where the
               states are contiguous; an argument shared by all states has a stride of zero
    rows       (N, n): a block of threads brings its states through shared memory, so that memory
               is read and written in whole lines

A function with branches has a third (see gpu/seldom.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...ir.tape import Loop, Tape
from ..llvm.emitter import BYTES
from ..llvm.lower import _Line
from .emitter import GLOBAL, SHARED, PtxEmitter
from .registers import Spills, spills

if TYPE_CHECKING:
    from ..llvm.emitter import Emitter


@dataclass(frozen=True)
class Plan:
    """How a tape becomes a kernel: what is worth trying for a robot."""

    block: int = 128  # threads in a block
    registers: int = 0  # a thread's registers at most, by the assembler; 0: as it likes
    values: int = 0  # values held in registers at most, by us; 0: as many as there are
    staged: bool = False  # inputs wait in shared memory
    shared: int = 224  # numbers of a thread in shared memory; what waits beyond is local memory
    middle: int = 0  # level of LLVM's middle-end


class _GpuLine(_Line):
    """A tape while it is being emitted for a thread, with its moves to and from memory."""

    def __init__(
        self, kernel: Kernel, tape: Tape, plan: Spills | None, read=None, write=None, first=0
    ):
        super().__init__(kernel.e, tape, read or kernel.read, write or kernel.write)
        self.kernel, self.plan, self.first = kernel, plan, first  # slot
        self.last = None  # threads of a warp meet again after a branch

    def emit(self):
        places = self._places()
        for k, instruction in enumerate(self.tape.instructions):
            for action, value, slot in self.plan.before.get(k, ()) if self.plan else ():
                self._move(action, value, slot)
            self.e.cut()
            self.names.append(self._instruction(instruction))
            for place in places.get(k, ()):
                self.write(self.e, self.value(k), *place)
        return []

    def value(self, k: int) -> str:
        instruction = self.tape.instructions[k]
        if instruction[0] == "const":  # where it is used: there it is an operand
            return self.e.number(instruction[1])
        return super().value(k)

    def _move(self, action: str, value: int, slot: int) -> None:
        if action == "store":
            self.kernel.store(self.first + slot, self.value(value))
        elif action == "reload":
            self.names[value] = self.kernel.reload(self.first + slot)
            self.masks.pop(value, None)
        else:
            self.names[value] = self.read(self.e, *self.tape.instructions[value][1:])

    def _instruction(self, instruction):
        if instruction[0] == "loop" and self.tape is self.kernel.tape:
            held = self.kernel.loops.get(instruction[1])
            if held is not None:
                return self._held_loop(self.tape.loops[instruction[1]], instruction[2:], *held)
        return super()._instruction(instruction)

    def _held_loop(self, loop: Loop, start: tuple[int, ...], plan: Spills, first: int) -> list[Any]:
        """A loop of a fixed count whose state waits in memory, so that its step has the registers
        to itself: read from one place, written to another, moved over at the end."""
        e, kernel, n = self.e, self.kernel, loop.state_size
        now = first + plan.slots
        following = now + n
        for k, a in enumerate(start[:n]):
            kernel.store(now + k, self.value(a))
        sizes = [array.size for array in loop.step.inputs]

        def read(e, argument: int, element: int) -> str:
            if argument == 0:
                return kernel.reload(now + element)
            value = start[sum(sizes[:argument]) + element]
            instruction = self.tape.instructions[value]
            from_input = instruction[0] == "input"
            return self.read(e, *instruction[1:]) if from_input else self.value(value)

        def write(e, value: str, output: int, element: int) -> None:
            kernel.store(following + element, value)

        before, head, done = e.label, e.new_label("steps"), e.new_label("stepped")
        e.line(f"br label %{head}")
        e.start_block(head)
        place, k, after = len(e.lines), e.name(), e.name()
        _GpuLine(kernel, loop.step, plan, read, write, first).emit()
        for i in range(n):
            kernel.store(now + i, kernel.reload(following + i))
        e.line(f"{after} = add i32 {k}, 1")
        again = e.define(f"icmp ult i32 {after}, {loop.count}")
        e.line(f"br i1 {again}, label %{head}, label %{done}")
        e.lines.insert(place, f"  {k} = phi i32 [ 0, %{before} ], [ {after}, %{e.label} ]")
        e.start_block(done)
        return [*(kernel.reload(now + i) for i in range(n)), e.number(float(loop.count))]


class Kernel:
    """Writes one kernel."""

    tape: Tape
    plan: Plan
    layout: str

    def __init__(self, tape: Tape, dtype: str, plan: Plan, layout: str):
        self.tape, self.plan, self.layout = tape, plan, layout
        self.e: PtxEmitter = PtxEmitter(dtype, f"constants_{layout}")
        self.rows: bool = layout == "rows"
        self.staged: bool = plan.staged or self.rows
        self.spilled: Spills | None = spills(tape, plan.values) if plan.values else None
        self.places: dict[tuple[int, int], int] = {}  # columns: the inputs in shared memory
        self.regions: dict[str, tuple[int, int]] = {}  # rows: an array's start and pitch there
        self.first_slot: int = self._reserve() if self.staged else 0  # in numbers of all threads
        slots = self.spilled.slots if self.spilled else 0
        self.loops: dict[int, tuple[Spills, int]] = {}  # by index: moves in the step, first slot
        for i, loop in enumerate(tape.loops) if plan.values else ():
            if loop.tolerance is None and loop.count > 0:
                moves = spills(loop.step, plan.values)
                self.loops[i] = (moves, slots)
                slots += moves.slots + 2 * loop.state_size
        room = plan.shared - -(-self.first_slot // plan.block)
        self.shared_slots: int = min(slots, max(0, room))
        self.local_slots: int = slots - self.shared_slots

    def _reserve(self) -> int:
        """Shared memory for inputs, and for outputs in rows; how many numbers it takes."""
        if not self.rows:
            for used in sorted({i[1:] for i in self.tape.instructions if i[0] == "input"}):
                self.places[used] = len(self.places)
            return len(self.places) * self.plan.block
        start = 0
        for name, size in self.arrays():
            pitch = size | 1  # odd: the threads' rows begin in different banks
            self.regions[name] = (start, pitch)
            start += pitch * self.plan.block
        return start

    @property
    def frame(self) -> dict[str, int]:
        """Threads of a block, its bytes of shared memory, and its states."""
        numbers = self.first_slot + self.shared_slots * self.plan.block
        shared = numbers * BYTES[self.e.dtype]
        return {"block": self.plan.block, "shared": shared, "states": self.plan.block}

    def arrays(self) -> list[tuple[str, int]]:
        tape = self.tape
        named = [(f"in{i}", a.size) for i, a in enumerate(tape.inputs)]
        return named + [(f"out{i}", a.size) for i, a in enumerate(tape.outputs)]

    # --- places in memory ---

    def place(self, number: int) -> str:
        """A number of this thread's column."""
        return self.e.offset("%own", SHARED, number * self.plan.block)

    def read(self, e: Emitter, argument: int, element: int) -> str:
        if self.rows:
            at = self.e.offset(f"%in{argument}.row", SHARED, element)
            return self.e.load_from(at, SHARED, volatile=True)
        if self.staged:
            at = self.place(self.places[argument, element])
            return self.e.load_from(at, SHARED, volatile=True)
        return self.e.load_from(self.element(f"in{argument}", element), GLOBAL)

    def write(self, e: Emitter, value: str, output: int, element: int) -> None:
        if self.rows:
            at = self.e.offset(f"%out{output}.row", SHARED, element)
            self.e.store_to(value, at, SHARED)
        else:
            self.e.store_to(value, self.element(f"out{output}", element), GLOBAL)

    def element(self, name: str, element: int) -> str:
        """The address of an element of this thread's state."""
        if element == 0:
            return f"%{name}.own"
        # In bytes: one multiply-add of the GPU makes the whole address.
        step = self.e.define(f"mul i64 %{name}.wide, {element * BYTES[self.e.dtype]}")
        return self.e.define(f"getelementptr i8, ptr {GLOBAL} %{name}.own, i64 {step}")

    def store(self, slot: int, value: str) -> None:
        self.e.store_to(value, *self._slot(slot), volatile=True)

    def reload(self, slot: int) -> str:
        return self.e.load_from(*self._slot(slot), volatile=True)

    def _slot(self, slot: int) -> tuple[str, str]:
        if slot >= self.shared_slots:
            return f"%local{slot - self.shared_slots}", ""
        if self.rows:
            number = self.first_slot + slot * self.plan.block
            return self.e.offset("%own", SHARED, number), SHARED
        return self.place(self.first_slot // self.plan.block + slot), SHARED

    def barrier(self) -> None:
        self.e.intrinsic("barrier.cta.sync.aligned.all", "void", "i32 0")

    # --- the kernel's frame ---

    def text(self) -> str:
        e = self.e
        self._thread()
        e.line(f"%first = mul i32 %ctaid, {self.plan.block}")
        e.line("%state = add i32 %first, %tid")
        e.line("%inside = icmp ult i32 %state, %count")
        self._addresses()
        if self.rows:
            self._bring_rows()
        else:
            self._bring_columns()
        e.line("br i1 %inside, label %compute, label %after")
        e.start_block("compute")
        self.emit()
        e.line("br label %after")
        e.start_block("after")
        if self.rows:
            self.barrier()
            for i, array in enumerate(self.tape.outputs):
                self._move_rows(f"out{i}", array.size, inward=False)
        return self._function("writeonly")

    def emit(self) -> None:
        """The tape, for this thread's state."""
        _GpuLine(self, self.tape, self.spilled).emit()

    def _function(self, outputs: str) -> str:
        """The lines so far as a kernel that ends here."""
        parameters = []
        for name, _ in self.arrays():
            side = "readonly" if name.startswith("in") else outputs
            parameters += [
                f"ptr {GLOBAL} noalias {side} %{name}",
                f"i32 %{name}.state",
                f"i32 %{name}.step",
            ]
        attributes = f'"nvvm.maxntid"="{self.plan.block}"'
        if self.plan.registers:
            attributes += f' "nvvm.maxnreg"="{self.plan.registers}"'
        return "\n".join([
            f"define ptx_kernel void @{self.layout}({', '.join([*parameters, 'i32 %count'])}) "
            f"nounwind {attributes} {{",
            "entry:",
            *self.e.lines,
            "  ret void",
            "}",
        ])  # fmt: skip

    def _thread(self) -> None:
        e = self.e
        for name in ("tid", "ctaid"):
            e.declared[name] = f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()"
            e.line(f"%{name} = call i32 @llvm.nvvm.read.ptx.sreg.{name}.x()")
        e.line("%tid.wide = zext i32 %tid to i64")
        e.line(f"%own = getelementptr {e.scalar}, ptr {SHARED} @memory, i64 %tid.wide")
        for slot in range(self.local_slots):
            e.line(f"%local{slot} = alloca {e.scalar}, align {BYTES[e.dtype]}")

    def _addresses(self) -> None:
        """Where this thread's state is."""
        e = self.e
        for name, _ in self.arrays():
            e.line(f"%{name}.stride = sext i32 %{name}.state to i64")
            e.line(f"%{name}.wide = sext i32 %{name}.step to i64")
            if self.rows:
                start, pitch = self.regions[name]
                e.line(f"%{name}.before = mul i64 %tid.wide, {pitch}")
                e.line(f"%{name}.number = add i64 %{name}.before, {start}")
                e.line(
                    f"%{name}.row = getelementptr {e.scalar}, ptr {SHARED} @memory, "
                    f"i64 %{name}.number"
                )
            else:
                e.line(f"%{name}.index = zext i32 %state to i64")
                e.line(f"%{name}.far = mul i64 %{name}.index, %{name}.stride")
                e.line(
                    f"%{name}.own = getelementptr {e.scalar}, ptr {GLOBAL} %{name}, i64 %{name}.far"
                )

    def _bring_columns(self) -> None:
        """Each thread's inputs into its own column of shared memory: nobody else looks there."""
        e = self.e
        if not self.staged:
            return
        e.line("br i1 %inside, label %bring, label %after")
        e.start_block("bring")
        for (argument, element), number in self.places.items():
            self._copy_async(self.place(number), self.element(f"in{argument}", element))
        e.intrinsic("cp.async.wait.all", "void")

    def _copy_async(self, target: str, source: str) -> None:
        name = f"cp.async.ca.shared.global.{BYTES[self.e.dtype]}"
        self.e.intrinsic(name, "void", f"ptr {SHARED} {target}", f"ptr {GLOBAL} {source}")

    def _bring_rows(self) -> None:
        e = self.e
        e.line("%left = sub i32 %count, %first")
        e.line(f"%short = icmp ult i32 %left, {self.plan.block}")
        e.line(f"%here = select i1 %short, i32 %left, i32 {self.plan.block}")
        for i, array in enumerate(self.tape.inputs):
            self._move_rows(f"in{i}", array.size, inward=True)
        e.intrinsic("cp.async.wait.all", "void")
        self.barrier()

    def _move_rows(self, name: str, size: int, inward: bool) -> None:
        """The block's states of one array, moved by all threads together in memory's order."""
        if size == 0:
            return
        e = self.e
        dense, loop, done = (e.new_label(stem) for stem in ("dense", "rows", "moved"))
        whole = e.define(f"icmp eq i32 %here, {self.plan.block}")
        for stride, wanted in (("state", size), ("step", 1)):
            fits = e.define(f"icmp eq i32 %{name}.{stride}, {wanted}")
            whole = e.logical("and", whole, fits)
        e.line(f"br i1 {whole}, label %{dense}, label %{loop}")
        e.start_block(dense)
        self._move_dense(name, size, inward)
        e.line(f"br label %{done}")
        e.start_block(loop)
        self._move_loop(name, size, inward, done)
        e.start_block(done)

    def _move_dense(self, name: str, size: int, inward: bool) -> None:
        """A whole block of contiguous rows is one stretch of memory."""
        e, block = self.e, self.plan.block
        start, pitch = self.regions[name]
        wide = e.define("zext i32 %first to i64")
        origin = e.define(f"mul i64 {wide}, {size}")
        origin = e.offset(f"%{name}", GLOBAL, e.define(f"add i64 {origin}, %tid.wide"))
        for j in range(size):
            outside = e.offset(origin, GLOBAL, j * block)
            if pitch == size:
                within = e.offset("%own", SHARED, start + j * block)
            else:
                number = e.define(f"add i32 %tid, {j * block}")
                row = e.define(f"udiv i32 {number}, {size}")
                padded = e.define(f"zext i32 {e.define(f'add i32 {number}, {row}')} to i64")
                within = e.offset(e.offset("@memory", SHARED, start), SHARED, padded)
            self._move_one(within, outside, inward)

    def _move_loop(self, name: str, size: int, inward: bool, done: str) -> None:
        """Any strides, any number of states."""
        e = self.e
        start, pitch = self.regions[name]
        before, head = e.label, e.new_label("next")
        total = e.define(f"mul i32 %here, {size}")
        e.line(f"br label %{head}")
        e.start_block(head)
        i, after = e.name(), e.name()
        e.line(f"{i} = phi i32 [ %tid, %{before} ], [ {after}, %{head}.move ]")
        more = e.define(f"icmp ult i32 {i}, {total}")
        e.line(f"br i1 {more}, label %{head}.move, label %{done}")
        e.start_block(f"{head}.move")
        row = e.define(f"udiv i32 {i}, {size}")
        column = e.define(f"sub i32 {i}, {e.define(f'mul i32 {row}, {size}')}")
        state = e.define(f"add i32 %first, {row}")
        wide = [e.define(f"zext i32 {x} to i64") for x in (state, column, row)]
        far = e.define(f"mul i64 {wide[0]}, %{name}.stride")
        along = e.define(f"mul i64 {wide[1]}, %{name}.wide")
        outside = e.offset(f"%{name}", GLOBAL, e.define(f"add i64 {far}, {along}"))
        down = e.define(f"mul i64 {wide[2]}, {pitch}")
        number = e.define(f"add i64 {down}, {wide[1]}")
        within = e.offset(e.offset("@memory", SHARED, start), SHARED, number)
        self._move_one(within, outside, inward)
        e.line(f"{after} = add i32 {i}, {self.plan.block}")
        e.line(f"br label %{head}")

    def _move_one(self, within: str, outside: str, inward: bool) -> None:
        if inward:
            self._copy_async(within, outside)
        else:
            self.e.store_to(self.e.load_from(within, SHARED), outside, GLOBAL)
