"""LLVM IR, instruction by instruction: vectors of `lanes` numbers, with one lane scalars."""

from __future__ import annotations

import copy
import itertools
from typing import Any

from ...ir.ops import Op
from . import elementary
from .elementary import literal

# Code generation is superlinear in the length of a basic block: cut the line. LLVM also orders
# instructions anew within a block: an order that it should keep, by and large, is cut shorter. One
# that it should keep altogether is held, by uses that it moves nothing past.
BLOCK = 512
KEPT = 256

SCALAR = {"float64": "double", "float32": "float"}
BYTES = {"float64": 8, "float32": 4}
_SUFFIX = {"float64": "f64", "float32": "f32"}


class Emitter:
    """Writes instructions line by line; every method returns the name of what it computed."""

    dtype: str
    lanes: int
    block: int
    held: bool
    scalar: str
    bits: int
    label: str

    def __init__(self, dtype: str, lanes: int, block: int = BLOCK, held: bool = False):
        self.dtype, self.lanes, self.block, self.held = dtype, lanes, block, held
        self.scalar, self.bits = SCALAR[dtype], 8 * BYTES[dtype]
        self.type: str = self.scalar if lanes == 1 else f"<{lanes} x {self.scalar}>"
        self.integer: str = f"i{self.bits}" if lanes == 1 else f"<{lanes} x i{self.bits}>"
        self.mask: str = "i1" if lanes == 1 else f"<{lanes} x i1>"
        suffix = _SUFFIX[dtype]
        self.suffix: str = suffix if lanes == 1 else f"v{lanes}{suffix}"
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.library: set[str] = set()
        self.label = "entry"
        self.early = False  # whether branches are taken as soon as they can be
        self.arguments: list[str] = []  # of the function that is written
        self.functions: list[str] = []  # others that it calls
        self._labels = 0
        self._names = itertools.count(1)  # these are shared with `widened`
        self._in_block = [0]

    def widened(self, lanes: int) -> Emitter:
        """An emitter into the same lines, of vectors of another number of lanes."""
        other = copy.copy(self)
        other.lanes = lanes
        other.type, other.mask = f"<{lanes} x {self.scalar}>", f"<{lanes} x i1>"
        other.integer = f"<{lanes} x i{self.bits}>"
        other.suffix = f"v{lanes}{_SUFFIX[self.dtype]}"
        return other

    def aside(self) -> Emitter:
        """An emitter of another function, whose names are others. It is a branch, and large: LLVM
        finds the better order."""
        other = copy.copy(self)
        other.lines, other.label, other._in_block, other.held = [], "entry", [0], False
        return other

    def name(self) -> str:
        return f"%v{next(self._names)}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def define(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        self._in_block[0] += 1
        return name

    def new_label(self, stem: str) -> str:
        self._labels += 1
        return f"{stem}{self._labels}"

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label, self._in_block[0] = label, 0

    def cut(self) -> None:
        """Begin a new basic block where the current one has grown long."""
        if self._in_block[0] >= self.block:
            label = self.new_label("b")
            self.line(f"br label %{label}")
            self.start_block(label)

    # --- arithmetic on vectors ---

    def number(self, value: float | None) -> str:
        text = literal(value, self.dtype)
        return text if self.lanes == 1 else f"splat ({self.scalar} {text})"

    def numbers(self, values: list[float]) -> str:
        """A vector of constants."""
        listed = ", ".join(f"{self.scalar} {literal(value, self.dtype)}" for value in values)
        return f"<{listed}>"

    def same(self, value: str) -> str:
        """A vector of one number in all lanes."""
        one = self.define(f"insertelement {self.type} poison, {self.scalar} {value}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.define(f"shufflevector {self.type} {one}, {self.type} poison, {zeros}")

    def together(self, values: Any) -> str:
        """A vector of numbers, anything where there is none."""
        vector = "poison"
        for lane, value in enumerate(values):
            if value is None:
                continue
            listed = f"{self.type} {vector}, {self.scalar} {value}, i64 {lane}"
            vector = self.define(f"insertelement {listed}")
        return vector

    def binary(self, op: str, a: str, b: str) -> str:
        return self.define(f"{op} {self.type} {a}, {b}")

    def unary(self, op: str, a: str) -> str:
        return self.define(f"{op} {self.type} {a}")

    def call(self, name: str, *arguments: str) -> str:
        intrinsic = f"@llvm.{name}.{self.suffix}"
        types = ", ".join([self.type] * len(arguments))
        self.declared[intrinsic] = f"declare {self.type} {intrinsic}({types})"
        listed = ", ".join(f"{self.type} {a}" for a in arguments)
        return self.define(f"call {self.type} {intrinsic}({listed})")

    def quotient(self, a: str, b: str) -> str:
        """a / b, in functions that add errors of their own."""
        return self.binary("fdiv", a, b)

    def root(self, x: str) -> str:
        """The square root, likewise."""
        return self.call("sqrt", x)

    def sine_cosine(self, x: str, sine: bool = True, cosine: bool = True) -> tuple[str, str]:
        """sin x and cos x; "" for one that is not wanted."""
        return elementary.sine_cosine(self, x, sine, cosine)

    def expanded(self, name: str, *arguments: str) -> str:
        """A function of `elementary.py`."""
        return getattr(elementary, name)(self, *arguments)

    def operation(self, op: Op, operands: list[str]) -> str:
        """The result of an operation; the first `op.masks` operands are masks."""
        if op.llvm is not None:
            return op.llvm(self, *operands)
        if op.library:
            return self.call_library(op.name, *operands)
        raise AssertionError(f"operation '{op.name}' reached the emitter: simplify the tape first")

    def call_library(self, name: str, *arguments: str) -> str:
        self.library.add(name)
        listed = ", ".join(f"{self.type} {a}" for a in arguments)
        return self.define(f"call {self.type} @lanes_{name}({listed})")

    def compare(self, predicate: str, a: str, b: str) -> str:
        return self.define(f"fcmp {predicate} {self.type} {a}, {b}")

    def logical(self, op: str, a: str, b: str) -> str:
        return self.define(f"{op} {self.mask} {a}, {b}")

    def true(self) -> str:
        return "true" if self.lanes == 1 else "splat (i1 true)"

    def select(self, mask: str, a: str, b: str) -> str:
        return self.define(f"select {self.mask} {mask}, {self.type} {a}, {self.type} {b}")

    def any(self, mask: str) -> str:
        """One bit: whether any lane is set."""
        if self.lanes == 1:
            return mask
        bits = self.define(f"bitcast {self.mask} {mask} to i{self.lanes}")
        return self.define(f"icmp ne i{self.lanes} {bits}, 0")

    def use(self, value: str, type_: str) -> None:
        """Have a value there, for nothing: LLVM moves no instruction past it (MachineScheduler)."""
        self.declared["@llvm.fake.use"] = "declare void @llvm.fake.use(...)"
        self.line(f"call void (...) @llvm.fake.use({type_} {value})")

    # --- integers ---

    def last_bits(self, value: str) -> str:
        """A number's bits as an integer, of which the last few count."""
        return self.define(f"bitcast {self.type} {value} to {self.integer}")

    def whole(self, value: int) -> str:
        """An integer constant."""
        return str(value) if self.lanes == 1 else f"splat (i{self.bits} {value})"

    def is_odd(self, integer: str) -> str:
        bit = self.define(f"and {self.integer} {integer}, {self.whole(1)}")
        return self.define(f"icmp ne {self.integer} {bit}, {self.whole(0)}")

    def next_integer(self, integer: str) -> str:
        return self.define(f"add {self.integer} {integer}, {self.whole(1)}")

    def flipped(self, value: str, integer: str) -> str:
        """The value with its sign flipped where an integer is 2 or 3 modulo 4."""
        bits = self.last_bits(value)
        flipped = self.define(f"xor {self.integer} {bits}, {self._sign(integer)}")
        return self.define(f"bitcast {self.integer} {flipped} to {self.type}")

    def _sign(self, integer: str) -> str:
        shifted = self.define(f"shl {self.integer} {integer}, {self.whole(self.bits - 2)}")
        return self.define(f"and {self.integer} {shifted}, {self.whole(-(2 ** (self.bits - 1)))}")

    # --- memory ---

    def load(self, pointer: str, element: int) -> str:
        return self.define(f"load {self.type}, ptr {self._at(pointer, element)}, {self._align()}")

    def load_from(self, pointer: str, element: int) -> str:
        """A vector of numbers that follow each other in memory of single ones."""
        at = self.define(f"getelementptr inbounds {self.scalar}, ptr {pointer}, i64 {element}")
        return self.define(f"load {self.type}, ptr {at}, align {BYTES[self.dtype]}")

    def store_to(self, vector: str, pointer: str, element: int) -> None:
        """Write a vector to memory of single numbers."""
        at = self.define(f"getelementptr inbounds {self.scalar}, ptr {pointer}, i64 {element}")
        self.line(f"store {self.type} {vector}, ptr {at}, align {BYTES[self.dtype]}")

    def store(self, value: str, pointer: str, element: int) -> None:
        self.line(f"store {self.type} {value}, ptr {self._at(pointer, element)}, {self._align()}")

    def memory(self, count: int = 1) -> str:
        """Memory for values, several in a row aligned to a vector's 32 bytes."""
        align = "align 32" if count > 1 else self._align()
        return self.define(f"alloca [{count} x {self.type}], {align}")

    def _at(self, pointer: str, element: int) -> str:
        if element == 0:
            return pointer
        return self.define(
            f"getelementptr inbounds {self.scalar}, ptr {pointer}, i64 {element * self.lanes}"
        )

    def _align(self) -> str:
        # With several lanes the arrays are our own scratch, aligned to whole vectors.
        return f"align {BYTES[self.dtype] * self.lanes}"
