"""From a tape to LLVM IR text, for every target.

Each value of the tape is a vector of `lanes` numbers, one lane a state of the batch; with one
lane it is a scalar. The function written here,

    define void @core(ptr in0, ptr in1, ..., ptr out0, ...)

reads element k of an argument at `in[k * lanes]` and writes alike, so that addresses are constants
that fold into instructions. Multiply-adds are explicit and nothing else may be fused or
reordered: a state gives the same bits alone, in any lane, on any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.ops import LEAVES, NODES, OPS, PAIR
from ...ir.tape import Tape, last_branch, members
from ...passes.schedule import asked_first
from ...passes.vectors import Vectors, read_operands
from . import elementary
from .control import emit_branch, emit_loop, fork
from .emitter import BLOCK, KEPT, Emitter

# An angle this many operations from the arguments, such as a rotor's, is as good as an argument.
EARLY = 6

# Values that no instruction of their own computes where they stand: read from memory when needed,
# or given by control flow.
_ELSEWHERE = (*LEAVES, *NODES, *PAIR)


class _Line:
    """The values of one tape while it is being emitted."""

    e: Emitter
    tape: Tape
    read: Callable[..., Any]
    write: Callable[..., Any] | None
    last: int | None

    def __init__(
        self,
        e: Emitter,
        tape: Tape,
        read: Callable[..., Any],
        write: Callable[..., Any] | None = None,
        active: str | None = None,
    ):
        self.e, self.tape, self.read, self.write = e, tape, read, write
        self.active = active  # the lanes that take the branch that this is, or that is around
        self.names: list[Any] = []
        self.vectors: Vectors = Vectors(self)
        self.masks: dict[int, str] = {}
        self.pairs: dict[int, tuple[str, str]] = {}
        self.waiting: dict[int, tuple[list[str], int]] = {}  # sine and cosine in memory
        self.angles: dict[tuple[Any, ...], tuple[list[str], int]] = {}  # the same by formula
        self.kept: dict[int, str] = {}  # memory for values that branches read
        # The branch that gives all results of a single state, and the value after which it forks.
        known = last_branch(tape) if e.lanes == 1 and write else None
        self.last, self.fork = known or (None, None)
        self.fork = self.fork if e.early else self.last
        self.given: dict[int, list[tuple[int, int]]] = {}  # where the results of that branch go
        self.sines: set[int] = {ins[1] for ins in tape.instructions if ins[0] == "sin"}
        self.cosines: set[int] = {ins[1] for ins in tape.instructions if ins[0] == "cos"}

    def emit(self) -> list[list[str]]:
        """Emit every instruction; the names of the outputs' values."""
        places = self._places() if self.write else {}
        for k, instruction in enumerate(self.tape.instructions):
            self.e.cut()
            given = self.last is not None and k >= self.last  # by then all results are written
            self.names.append(None if given else self._computed(k, instruction))
            if self.e.held and not given:
                self._hold(k, instruction[0])
            if k in self.kept:
                self.e.store(self.value(k), self.kept[k], 0)
            for place in places.get(k, ()):  # at once: the register is free again
                self.write(self.e, self.value(k), *place)
            if k == self.fork:
                self._leave(*self.tape.instructions[self.last][1:])
        if self.write:
            return []
        return [[self.value(v) for v in values] for values in self.tape.results]

    def _hold(self, k: int, op: str) -> None:
        """Let LLVM keep an instruction where it is."""
        if k in self.vectors.starting:
            bundle = self.vectors.starting[k]
            if bundle in self.vectors.names:
                self.e.use(self.vectors.names[bundle], self.vectors.emitter(len(bundle)).type)
        elif isinstance(self.names[k], str) and op not in _ELSEWHERE:
            self.e.use(self.names[k], self.e.type)

    def _places(self) -> dict[int, list[tuple[int, int]]]:
        """Where each value that is returned goes; in place of a last branch's, the usual ones."""
        places: dict[int, list[tuple[int, int]]] = {}
        for output, values in enumerate(self.tape.results):
            for element, k in enumerate(values):
                places.setdefault(k, []).append((output, element))
        if self.last is None:
            return places
        instructions = self.tape.instructions
        self.given = {instructions[k][2]: where for k, where in places.items()}
        usual, places = self._usual(*instructions[self.last][1:]), {}
        for element, where in self.given.items():
            places.setdefault(usual[element], []).extend(where)
        return places

    def value(self, k: int) -> str:
        """The name of a value; a comparison becomes a number, and a value of a bundle is taken out
        of it, only where one is asked for."""
        if self.names[k] is None:
            if k in self.vectors.of:
                self.names[k] = self.vectors.element(k)
            else:
                one, zero = self.e.number(1.0), self.e.number(0.0)
                self.names[k] = self.e.select(self.masks[k], one, zero)
        return self.names[k]

    def mask(self, k: int) -> str:
        mask = self.masks.get(k)
        if mask is None:
            mask = self.vectors.bit(k) or self.e.compare("une", self.value(k), self.e.number(0.0))
            self.masks[k] = mask
        return mask

    def _computed(self, k: int, instruction):
        """The name of a value, if it has one by itself."""
        if k not in self.vectors.of:
            return self._instruction(instruction)
        if k in self.vectors.starting:
            self.vectors.compute(self.vectors.starting[k])
        return None

    def _instruction(self, instruction):
        e, op = self.e, instruction[0]
        if op == "const":
            return e.number(instruction[1])
        if op == "input":
            return self.read(e, *instruction[1:])
        if op == "loop":
            start = [self.value(a) for a in instruction[2:]]
            return emit_loop(e, self.tape.loops[instruction[1]], start, self._inside)
        if op == "branch":
            return self._branch(*instruction[1:])
        if op == "result":
            return self.names[instruction[1]][instruction[2]]
        if op in PAIR:
            return self._trigonometric(op, instruction[1])
        row = OPS[op]
        result = e.operation(row, read_operands(row, instruction[1:], self.mask, self.value))
        if not row.condition:
            return result
        self.masks[len(self.names)] = result
        return None

    def _usual(self, number: int, ok: int, *rest: int) -> tuple[int, ...]:
        """What a branch gives where its condition holds."""
        return rest[: self.tape.branches[number].size]

    def _branch(self, number: int, ok: int, *rest: int) -> list[str]:
        """The results of a branch, where the line goes on."""
        values = [self.value(k) for k in self._usual(number, ok, *rest)]
        read, _ = self._reader(number, rest)

        def emit(active: str) -> list[str]:
            line = _Line(self.e, self.tape.branches[number].step, read, active=active)
            line.find_angles(self.angles)
            return line.emit()[0]

        return emit_branch(values, self.e, self.mask(ok), self.active, emit)

    def _leave(self, number: int, ok: int, *rest: int) -> None:
        """Return with what the last branch gives where its condition fails; else go on.

        It is a function of its own where it reads nothing of this line: in one function LLVM would
        share values between both ways, and keep them for the one that is seldom taken.
        """
        e = self.e

        def write(e: Emitter, value: str, _: int, element: int) -> None:
            for place in self.given.get(element, ()):
                self.write(e, value, *place)

        read, alone = self._reader(number, rest)
        usual = fork(e, self.mask(ok))
        other = e.aside() if alone else e
        line = _Line(other, self.tape.branches[number].step, read, write)
        line.find_angles(self.angles)
        line.emit()
        if alone:
            found = dict.fromkeys(name for memory, _ in self.angles.values() for name in memory)
            arguments = [*e.arguments, *found]
            name = f"seldom{len(e.functions)}"
            e.functions.append(_function(name, other, arguments, "noinline cold"))
            e.line(f"call void @{name}({', '.join(f'ptr {x}' for x in arguments)})")
        e.line("ret void")
        e.start_block(usual)

    def _reader(self, number: int, rest: tuple[int, ...]):
        """How a branch reads arguments and values of this line, and whether it reads none."""
        branch = self.tape.branches[number]
        outside, last = rest[branch.size :], len(branch.step.inputs) - 1
        known = {k: self.value(k) for k in outside if k not in self.kept}

        def read(e: Emitter, argument: int, element: int) -> str:
            if argument < last:
                return self.read(e, argument, element)
            k = outside[element]
            return known[k] if k in known else e.load(self.kept[k], 0)

        return read, not outside

    def _inside(self, tape: Tape, read) -> list[list[str]]:
        """Emit the step of a loop; the names of its outputs' values."""
        return _Line(self.e, tape, lambda _, *place: read(*place), active=self.active).emit()

    def keep(self) -> None:
        """Memory for what branches read of this line: in registers it would be in the way."""
        for _, branch, _, *rest in (i for i in self.tape.instructions if i[0] == "branch"):
            for k in rest[self.tape.branches[branch].size :]:
                if k not in self.kept and self.tape.instructions[k][0] not in LEAVES:
                    self.kept[k] = self.e.memory()

    def find_angles(self, known: dict[Any, Any]) -> None:
        """Read sine and cosine from memory where the line around has them waiting there."""
        self.angles = known
        for k in self.sines | self.cosines if known else ():
            if self.steps_to(k) <= EARLY and self.formula(k) in known:
                self.waiting[k] = known[self.formula(k)]

    def formula(self, k: int) -> tuple[Any, ...]:
        """A value of few steps in terms of the arguments."""
        op, *rest = self.tape.instructions[k]
        return (op, *(rest if op in LEAVES else map(self.formula, rest)))

    def steps_to(self, k: int) -> int:
        """How many operations lead from the arguments to a value; beyond EARLY it is not known."""
        op, *rest = self.tape.instructions[k]
        if op in LEAVES:
            return 0
        if op in NODES or not OPS[op].arithmetic:
            return EARLY + 1
        steps = 1
        for a in rest:
            steps += self.steps_to(a) if steps <= EARLY else 0
        return steps

    def early(self, k: int) -> str:
        """A value of few steps, computed ahead of its place in the line."""
        op, *rest = self.tape.instructions[k]
        if op == "input":
            return self.read(self.e, *rest)
        if op == "const":
            return self.e.number(rest[0])
        return self.e.operation(OPS[op], [self.early(a) for a in rest])

    def _trigonometric(self, op: str, k: int) -> str:
        if k in self.waiting:
            memory, place = self.waiting[k]
            return self.e.load(memory[op == "cos"], place)
        if k not in self.pairs:
            self.pairs[k] = self.e.sine_cosine(self.value(k), k in self.sines, k in self.cosines)
        return self.pairs[k][op == "cos"]


def _angles_together(e: Emitter, line: _Line, width: int) -> None:
    """Sine and cosine of all angles known from the start, `width` at a time, ahead of the line.

    A single state leaves the vector registers empty: a dozen joints' angles go through them
    together. The results wait in memory, from where instructions read them as operands.
    """
    angles = [k for k in _angles(line) if line.steps_to(k) <= EARLY]
    if len(angles) < 2:
        return
    vector = e.widened(width)
    memory = [e.memory(-(-len(angles) // width) * width) for _ in range(2)]
    for first in range(0, len(angles), width):
        group = angles[first : first + width]
        values = [line.early(k) for k in group] + [e.number(0.0)] * (width - len(group))
        pair = vector.sine_cosine(vector.together(values))
        for values, start in zip(pair, memory):
            vector.store_to(values, start, first)
        for i, k in enumerate(group):
            line.waiting[k] = line.angles[line.formula(k)] = (memory, first + i)


def _angles(line: _Line) -> list[int]:
    """The values that a line takes sine or cosine of, those of bundles in a row."""
    instructions = line.tape.instructions
    rows = [members(bundle) for bundle in sorted(line.tape.bundles, key=len, reverse=True)]
    bundles = [row for row in rows if instructions[row[0]][0] in PAIR]
    together = [instructions[k][1] for bundle in bundles for k in bundle]
    return list(dict.fromkeys(together + sorted(line.sines | line.cosines)))


def lower(
    tape: Tape, dtype: str, lanes: int, width: int = 1, block: int = BLOCK, held: bool = False
) -> str:
    """The LLVM IR of the function `core` and of what it calls.

    With one lane, `width` is how many angles go through a vector register together. `block` is how
    long basic blocks may be, `held` whether LLVM keeps the order of instructions.
    """
    return text_of(dtype, lanes, emitted("core", tape, dtype, lanes, width, block, held))


def emitted(
    name: str, tape: Tape, dtype: str, lanes: int, width: int = 1, block: int = BLOCK,
    held: bool = False,
) -> Emitter:  # fmt: skip
    """A function of that name, and those that it calls, among the functions of an emitter."""
    e = Emitter(dtype, lanes, block, held)
    e.early = lanes == 1 and (block != KEPT or bool(asked_first(tape)))
    e.arguments = [f"%in{i}" for i in range(len(tape.inputs))]
    e.arguments += [f"%out{i}" for i in range(len(tape.outputs))]
    line = _Line(e, tape, _read, _write)
    line.keep()
    if lanes == 1 and width > 1:
        _angles_together(e, line, width)
    line.emit()
    e.functions.append(_function(name, e, e.arguments))
    return e


def text_of(dtype: str, lanes: int, *emitters: Emitter) -> str:
    """The LLVM IR of the functions of some emitters and of what they call."""
    declared = {name: line for e in emitters for name, line in e.declared.items()}
    library = sorted(set().union(*(e.library for e in emitters)))
    wrappers = [elementary.library_wrapper(name, dtype, lanes) for name in library]
    functions = [function for e in emitters for function in e.functions]
    return "\n".join([*declared.values(), *wrappers, *functions])


def _read(e: Emitter, argument: int, element: int) -> str:
    return e.load(f"%in{argument}", element)


def _write(e: Emitter, value: str, output: int, element: int) -> None:
    e.store(value, f"%out{output}", element)


def _function(name: str, e: Emitter, arguments: list[str], attributes: str = "") -> str:
    """A function of pointers; outputs are written, and all others read."""
    if e.held:  # processors that are told apart have their instructions put in order once more
        attributes += ' "tune-cpu"="generic"'
    listed = ", ".join(
        f"ptr noalias nocapture {'writeonly' if x.startswith('%out') else 'readonly'} {x}"
        for x in arguments
    )
    head = f"define internal void @{name}({listed}) nounwind {attributes} {{"
    return "\n".join([head, "entry:", *e.lines, "  ret void", "}"])
