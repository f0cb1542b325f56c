"""Compiled code as CPython methods: a call costs tens of nanoseconds instead of a microsecond.

A foreign-function call from Python spends more time on its arguments than a small robot's
dynamics take. CPython can call machine code directly, given a method definition that points at
it, and the generated code can read addresses itself: from a `bytes` object that holds them
(`bound`), or from the arrays handed over (`checked`, which verifies type, dtype, shape and layout
and answers None where anything differs, so that Python takes the careful path). Batches release
the GIL while they compute.

This relies on the layouts of `bytes` and of NumPy arrays in 64-bit little-endian CPython with the
GIL, part of their binary interfaces; they are verified once, and elsewhere `AVAILABLE` is false.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.tape import Array, Tape

_METH_FASTCALL, _METH_NOARGS = 0x0080, 0x0004
_BYTES_DATA = 32  # reference count, type, size, hash come before a bytes object's data
_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
STACK = 1 << 16  # bytes of scratch on the caller's stack; functions that need more do without


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Block(bytes):
    """The addresses of a bound call, and the (function, arguments, out, threads) that it came from.

    CPython pickles a method as the attribute of that name of its block. So a block is pickled as
    something that has this attribute: the call, bound again.
    """

    def __reduce__(self):
        return _Again, self.again


class _Again:
    def __init__(self, function, *rest):
        self._function, self._rest = function, rest

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        arguments, out, threads = self._rest
        return self._function.bind(*arguments, out=out, threads=threads)


def _layouts_are_as_expected() -> bool:
    plain = (
        sys.implementation.name == "cpython"
        and sys.byteorder == "little"
        and struct.calcsize("P") == 8
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
    )
    if not plain or sys.getsizeof(b"") != _BYTES_DATA + 1:
        return False
    data = _Block(struct.pack("<q", 0x1234567890))
    if ctypes.string_at(id(data) + _BYTES_DATA, 8) != data:
        return False
    array = np.zeros((3, 5))
    head = struct.unpack("<QQQiiQQQQi", ctypes.string_at(id(array), 68))
    _, kind, address, ndim, _, dims, _, _, dtype, flags = head
    return (
        kind == id(np.ndarray)
        and address == array.ctypes.data
        and ndim == 2
        and struct.unpack("<qq", ctypes.string_at(dims, 16)) == (3, 5)
        and dtype == id(array.dtype)
        and flags & 0xFFFF == array.flags.num
    )


AVAILABLE = _layouts_are_as_expected()

# Functions of CPython's that release the GIL and take it again.
_GIL = [
    ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    for name in ("PyEval_SaveThread", "PyEval_RestoreThread")
    if AVAILABLE
]


def _method(address: int, flags: int, name: str, block: bytes, alive: tuple[Any, ...]):
    definition = _MethodDefinition(name.encode(), address, flags, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.py_object]
    # The method holds a reference to its third argument: that keeps alive what the code uses.
    return new(ctypes.byref(definition), block, (definition, *alive))


def bound(
    address: int,
    name: str,
    addresses: list[int],
    result: str,
    alive: tuple[Any, ...],
    again: tuple[Any, ...],
) -> Any:
    """A method without arguments that runs on fixed addresses and returns `result`."""
    block = _Block(struct.pack(f"<{1 + len(addresses)}Q", id(result), *addresses))
    block.again = again
    return _method(address, _METH_NOARGS, name, block, (result, *alive))


def bound_batch(
    address: int,
    name: str,
    table: int,
    size: int,
    scratch: int,
    result: str,
    alive: tuple[Any, ...],
    again: tuple[Any, ...],
) -> Any:
    """Likewise on a table of arrays that hold `size` states."""
    block = _Block(struct.pack("<6Q", id(result), table, size, scratch, *_GIL))
    block.again = again
    return _method(address, _METH_NOARGS, name, block, (result, *alive))


def checked(address: int, name: str, dtype: np.dtype, alive: tuple[Any, ...]) -> Callable[..., Any]:
    """A method that takes the arguments, then arrays for the outputs, of one state or of a batch.

    Returns the last array, or None where an argument is not a plain array of the right shape.
    """
    block = struct.pack("<5Q", id(np.ndarray), id(dtype), id(None), *_GIL)
    return _method(address, _METH_FASTCALL, name, block, (dtype, *alive))


def single_calls(tape: Tape) -> str:
    """The IR behind `bound` and `checked` for one state."""
    n = len(tape.inputs) + len(tape.outputs)
    call = f"  call void @core({', '.join(f'ptr %p{i}' for i in range(n))})"
    lines = [_checked("checked", tape, [], ["  br label %run"], [call], states=False)]
    lines.append("define ptr @bound(ptr %self, ptr %unused) nounwind {")
    lines += _field("result", "ptr", 0)
    lines.append(f"  %addresses = getelementptr i8, ptr %self, i64 {_BYTES_DATA + 8}")
    lines.append("  call void @one(ptr %addresses)")
    return "\n".join([*lines, *_returned("%result"), "}"])


def batch_calls(tape: Tape, dtype: str, scratch: int) -> str:
    """The IR behind `bound_batch` and `checked` for batches; `scratch` numbers for the loop."""
    lines = ["define ptr @bound_batch(ptr %self, ptr %unused) nounwind {"]
    fields = (("result", "ptr"), ("table", "ptr"), ("size", "i64"), ("scratch", "ptr"))
    for k, (name, kind) in enumerate(fields):
        lines += _field(name, kind, 8 * k)
    lines += _without_gil(32, "call void @batch(ptr %table, i64 0, i64 %size, ptr %scratch)")
    lines += [*_returned("%result"), "}"]
    unit = np.dtype(dtype).itemsize
    if scratch * unit <= STACK and tape.inputs:
        lines.append(_checked_batch(tape, unit, scratch))
    return "\n".join(lines)


def _checked_batch(tape: Tape, unit: int, scratch: int) -> str:
    arrays = [*tape.inputs, *tape.outputs]
    memory = [
        f"  %table = alloca [{3 * len(arrays)} x i64], align 16",
        f"  %scratch = alloca [{scratch * unit} x i8], align 64",
    ]
    run = []
    for i, array in enumerate(arrays):
        for k, value in enumerate((f"ptr %p{i}", f"i64 {array.size}", "i64 1")):
            run.append(f"  %row{i}.{k} = getelementptr i64, ptr %table, i64 {3 * i + k}")
            run.append(f"  store {value}, ptr %row{i}.{k}")
    run += _without_gil(24, "call void @batch(ptr %table, i64 0, i64 %s0.n, ptr %scratch)")
    return _checked("checked_batch", tape, memory, _apart(tape, unit), run, states=True)


def _checked(name, tape: Tape, memory, before, run, states: bool) -> str:
    """A function that verifies all arrays, then goes on with `before`, which leads to `run`."""
    arrays = [*tape.inputs, *tape.outputs]
    lines = [
        f"define ptr @{name}(ptr %self, ptr %arguments, i64 %number) nounwind {{",
        *memory,
        *_field("type", "ptr", 0),
        *_field("dtype", "ptr", 8),
        *_field("none", "ptr", 16),
        f"  %right = icmp eq i64 %number, {len(arrays)}",
        "  br i1 %right, label %array0, label %end",
    ]
    incoming = ["[ %none, %0 ]"]
    for i, array in enumerate(arrays):
        lines += _check(i, array, i >= len(tape.inputs), states)
        places = ("array", "shape", "size") if array.shape or states else ("array", "shape")
        incoming += [f"[ %none, %{place}{i} ]" for place in places]
    if states:
        incoming.append(f"[ %none, %array{len(arrays)} ]")
    lines += [f"array{len(arrays)}:", *before, "run:", *run, "  br label %end", "end:"]
    lines.append(f"  %result = phi ptr {', '.join(incoming)}, [ %o{len(arrays) - 1}, %run ]")
    return "\n".join([*lines, *_returned("%result"), "}"])


def _field(name: str, kind: str, offset: int) -> list[str]:
    """Read what the `bytes` object holds at an offset."""
    return [
        f"  %{name}.at = getelementptr i8, ptr %self, i64 {_BYTES_DATA + offset}",
        f"  %{name} = load {kind}, ptr %{name}.at",
    ]


def _returned(result: str) -> list[str]:
    """Return an object: it gains a reference, in the low half of its count, which is where every
    64-bit little-endian CPython keeps it."""
    return [
        f"  %count = load i32, ptr {result}",
        "  %more = add i32 %count, 1",
        f"  store i32 %more, ptr {result}",
        f"  ret ptr {result}",
    ]


def _without_gil(offset: int, call: str) -> list[str]:
    return [
        *_field("save", "ptr", offset),
        *_field("restore", "ptr", offset + 8),
        "  %thread = call ptr %save()",
        f"  {call}",
        "  call void %restore(ptr %thread)",
    ]


def _apart(tape: Tape, unit: int) -> list[str]:
    """On to `run` where no output shares memory with another array."""
    arrays, lines, shared = [*tape.inputs, *tape.outputs], [], "false"
    for i, array in enumerate(arrays):
        lines.append(f"  %bytes{i} = mul i64 %s0.n, {array.size * unit}")
        lines.append(f"  %past{i} = getelementptr i8, ptr %p{i}, i64 %bytes{i}")
        for j in range(i) if i >= len(tape.inputs) else ():
            lines += [
                f"  %low{i}.{j} = icmp ult ptr %p{i}, %past{j}",
                f"  %high{i}.{j} = icmp ult ptr %p{j}, %past{i}",
                f"  %both{i}.{j} = and i1 %low{i}.{j}, %high{i}.{j}",
                f"  %shared{i}.{j} = or i1 {shared}, %both{i}.{j}",
            ]
            shared = f"%shared{i}.{j}"
    return [*lines, f"  br i1 {shared}, label %end, label %run"]


def _check(i: int, array: Array, writeable: bool, states: bool) -> list[str]:
    """Verify one array, with a leading axis of states, and read its address; on to the next."""
    flags = _C_CONTIGUOUS | _ALIGNED | (_WRITEABLE if writeable else 0)
    lines = [f"array{i}:", f"  %at{i} = getelementptr ptr, ptr %arguments, i64 {i}"]
    lines.append(f"  %o{i} = load ptr, ptr %at{i}")
    lines.append(f"  %t{i}.at = getelementptr i8, ptr %o{i}, i64 8")
    lines.append(f"  %t{i} = load ptr, ptr %t{i}.at")
    lines.append(f"  %t{i}.ok = icmp eq ptr %t{i}, %type")
    # Only an array may be read further.
    lines += [f"  br i1 %t{i}.ok, label %shape{i}, label %end", f"shape{i}:"]
    fields = (
        ("p", 16, "ptr"),
        ("n", 24, "i32"),
        ("s", 32, "ptr"),
        ("d", 56, "ptr"),
        ("f", 64, "i32"),
    )
    for field, offset, kind in fields:
        lines.append(f"  %{field}{i}.at = getelementptr i8, ptr %o{i}, i64 {offset}")
        lines.append(f"  %{field}{i} = load {kind}, ptr %{field}{i}.at")
    lines.append(f"  %d{i}.ok = icmp eq ptr %d{i}, %dtype")
    lines.append(f"  %n{i}.ok = icmp eq i32 %n{i}, {len(array.shape) + states}")
    lines.append(f"  %f{i}.is = and i32 %f{i}, {flags}")
    lines.append(f"  %f{i}.ok = icmp eq i32 %f{i}.is, {flags}")
    lines.append(f"  %a{i} = and i1 %d{i}.ok, %n{i}.ok")
    lines.append(f"  %b{i} = and i1 %a{i}, %f{i}.ok")
    if not array.shape and not states:
        return [*lines, f"  br i1 %b{i}, label %array{i + 1}, label %end"]
    lines += [f"  br i1 %b{i}, label %size{i}, label %end", f"size{i}:"]
    verdict = "true"
    if states:
        lines.append(f"  %s{i}.n = load i64, ptr %s{i}")
        lines.append(f"  %v{i} = icmp eq i64 %s{i}.n, %s0.n")
        verdict = f"%v{i}"
    for axis, size in enumerate(array.shape, start=int(states)):
        lines.append(f"  %s{i}.{axis}.at = getelementptr i64, ptr %s{i}, i64 {axis}")
        lines.append(f"  %s{i}.{axis} = load i64, ptr %s{i}.{axis}.at")
        lines.append(f"  %s{i}.{axis}.ok = icmp eq i64 %s{i}.{axis}, {size}")
        lines.append(f"  %v{i}.{axis} = and i1 {verdict}, %s{i}.{axis}.ok")
        verdict = f"%v{i}.{axis}"
    return [*lines, f"  br i1 {verdict}, label %array{i + 1}, label %end"]
