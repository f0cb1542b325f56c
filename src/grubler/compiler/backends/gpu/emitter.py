"""One GPU thread's instructions: the emitter of `lower.py` with the GPU's own arithmetic.

Division and square root are the one thing where a GPU's exact forms are slow: each brings a slow
path that is called as a function and wrecks the registers around it. In fp32 they are the
hardware's approximations (2 ulp); in fp64 a quotient is the hardware's reciprocal seed refined by
multiply-adds (1 ulp). Sine and cosine read the quadrant off the bits of a rounded sum.
"""

from __future__ import annotations

from typing import Any

from ...ir.ops import Op
from ..llvm.emitter import BYTES, Emitter
from . import elementary as ptx_elementary

SHARED = "addrspace(3)"
GLOBAL = "addrspace(1)"
CONSTANT = "addrspace(4)"


class PtxEmitter(Emitter):
    """Scalar instructions of one thread."""

    bits: int
    integer: Any

    def __init__(self, dtype: str, table: str = "constants"):
        self.table = table
        super().__init__(dtype, 1)
        self.bits, self.integer = 32, "i32"
        self.single: bool = dtype == "float32"
        self.constants: dict[str, int] = {}  # literal -> its place in constant memory

    def number(self, value: float | None) -> str:
        """A literal in fp32; in fp64 read from constant memory, as an operand that takes no
        register. An instruction can hold the upper half of a number only."""
        text = super().number(value)
        if self.single or text.endswith("00000000"):
            return text
        place = self.constants.setdefault(text, len(self.constants))
        return self.define(
            f"load double, ptr {CONSTANT} getelementptr (double, ptr {CONSTANT} @{self.table}, "
            f"i64 {place}), align 8"
        )

    def constant_table(self) -> str:
        """The constants read so far; not known to be constant, so that nobody folds them back."""
        if not self.constants:
            return ""
        numbers = ", ".join(f"double {text}" for text in self.constants)
        size = len(self.constants)
        return (
            f"@{self.table} = {CONSTANT} externally_initialized global [{size} x double] "
            f"[{numbers}], align 8"
        )

    def intrinsic(self, name: str, result: str, *arguments: str) -> str:
        """Call an intrinsic of the GPU; arguments with their types."""
        types = ", ".join(a.rsplit(" ", 1)[0] for a in arguments)
        self.declared[name] = f"declare {result} @llvm.nvvm.{name}({types})"
        text = f"call {result} @llvm.nvvm.{name}({', '.join(arguments)})"
        if result == "void":
            self.line(text)
            return ""
        return self.define(text)

    def binary(self, op: str, a: str, b: str) -> str:
        if op != "fdiv":
            return super().binary(op, a, b)
        one = self.number(1.0)
        if self.single:
            if a == one:
                return self.intrinsic("rcp.approx.ftz.f", "float", f"float {b}")
            return self.intrinsic("div.approx.f", "float", f"float {a}", f"float {b}")
        inverse = self._reciprocal(b)
        return inverse if a == one else self._refined(a, b, inverse)

    def _refined(self, a: str, b: str, inverse: str) -> str:
        """a / b from an approximate 1/b; infinities need no refining, and would not survive it."""
        quotient = super().binary("fmul", a, inverse)
        rest = self.call("fma", self.unary("fneg", b), quotient, a)
        refined = self.call("fma", rest, inverse, quotient)
        return self.select(self.compare("ord", refined, refined), refined, quotient)

    def _reciprocal(self, b: str) -> str:
        """1/b in fp64; 1/0 and 1/inf need no refining."""
        seed = self.intrinsic("rcp.approx.ftz.d", "double", f"double {b}")
        minus = self.unary("fneg", b)
        # The seed is right to 20 bits: a cubic step gives all of them, a linear one the last.
        error = self.call("fma", minus, seed, self.number(1.0))
        refined = self.call("fma", self.call("fma", error, error, error), seed, seed)
        error = self.call("fma", minus, refined, self.number(1.0))
        refined = self.call("fma", error, refined, refined)
        finite = self.compare("oeq", refined, refined)
        return self.select(finite, refined, seed)

    def call(self, name: str, *arguments: str) -> str:
        if name == "sqrt" and self.single:
            return self.intrinsic("sqrt.approx.f", "float", f"float {arguments[0]}")
        return super().call(name, *arguments)

    def operation(self, op: Op, operands: list[str]) -> str:
        return super().operation(op, operands) if op.ptx is None else op.ptx(self, *operands)

    def call_library(self, name: str, *arguments: str) -> str:
        return ptx_elementary.emit(self, name, *arguments)

    def quotient(self, a: str, b: str) -> str:
        """a / b within 1 ulp, for functions that add errors of their own."""
        if not self.single:
            return self.binary("fdiv", a, b)
        return self._refined(a, b, self.intrinsic("rcp.approx.ftz.f", "float", f"float {b}"))

    def root(self, x: str) -> str:
        """The square root within 1 ulp: in fp32 the hardware's, refined once."""
        value = self.call("sqrt", x)
        if not self.single:
            return value
        rest = self.call("fma", self.unary("fneg", value), value, x)
        slope = super().binary("fadd", value, value)
        slope = self.intrinsic("rcp.approx.ftz.f", "float", f"float {slope}")
        refined = self.call("fma", rest, slope, value)
        return self.select(self.compare("ord", refined, refined), refined, value)

    # --- integers, of 32 bits as the device's are ---

    def last_bits(self, value: str) -> str:
        if self.single:
            return super().last_bits(value)
        bits = self.define(f"bitcast double {value} to i64")
        return self.define(f"trunc i64 {bits} to i32")

    def flipped(self, value: str, integer: str) -> str:
        if self.single:
            return super().flipped(value, integer)
        pair = self.define(f"bitcast double {value} to <2 x i32>")
        high = self.define(f"extractelement <2 x i32> {pair}, i64 1")
        flipped = self.define(f"xor i32 {high}, {self._sign(integer)}")
        pair = self.define(f"insertelement <2 x i32> {pair}, i32 {flipped}, i64 1")
        return self.define(f"bitcast <2 x i32> {pair} to double")

    # --- memory ---

    def load_from(self, pointer: str, space: str, volatile: bool = False) -> str:
        flag = "volatile " if volatile else ""
        size = BYTES[self.dtype]
        return self.define(f"load {flag}{self.scalar}, ptr {space} {pointer}, align {size}")

    def store_to(self, value: str, pointer: str, space: str, volatile: bool = False) -> None:
        flag = "volatile " if volatile else ""
        size = BYTES[self.dtype]
        self.line(f"store {flag}{self.scalar} {value}, ptr {space} {pointer}, align {size}")

    def offset(self, pointer: str, space: str, number: int | str) -> str:
        """The address `number` numbers further on."""
        if number == 0:
            return pointer
        return self.define(f"getelementptr {self.scalar}, ptr {space} {pointer}, i64 {number}")
