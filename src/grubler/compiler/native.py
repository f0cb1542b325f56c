"""Compiled code as CPython methods: a call costs tens of nanoseconds instead of a microsecond.

A foreign-function call from Python spends more time on its arguments than a small robot's
dynamics take. CPython can call machine code directly, given a method definition that points at
it, and the generated code can read addresses itself: from a `bytes` object that holds them
(`bound`), or from the arrays handed over (`checked`, which verifies type, dtype, shape and layout
and answers None where anything differs, so that Python takes the careful path).

This relies on the layouts of `bytes` and of NumPy arrays in 64-bit little-endian CPython with the
GIL, part of their binary interfaces; they are verified once, and elsewhere `AVAILABLE` is false.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig

import numpy as np

from .tape import Array, Tape

_METH_FASTCALL, _METH_NOARGS = 0x0080, 0x0004
_BYTES_DATA = 32  # reference count, type, size, hash come before a bytes object's data
_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _layouts_are_as_expected() -> bool:
    plain = (
        sys.implementation.name == "cpython"
        and sys.byteorder == "little"
        and struct.calcsize("P") == 8
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
    )
    if not plain or sys.getsizeof(b"") != _BYTES_DATA + 1:
        return False
    data = struct.pack("<q", 0x1234567890)
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


def _method(address: int, flags: int, name: str, block: bytes, alive: tuple):
    definition = _MethodDefinition(name.encode(), address, flags, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.py_object]
    # The method holds a reference to its third argument: that keeps alive what the code uses.
    return new(ctypes.byref(definition), block, (definition, *alive))


def bound(address: int, name: str, addresses: list[int], result, alive: tuple):
    """A method without arguments that runs on fixed addresses and returns `result`."""
    block = struct.pack(f"<{1 + len(addresses)}Q", id(result), *addresses)
    return _method(address, _METH_NOARGS, name, block, (result, *alive))


def checked(address: int, name: str, dtype: np.dtype, alive: tuple):
    """A method that takes the arguments, then arrays for the outputs, one state each.

    Returns the last array, or None where an argument is not a plain array of the right shape.
    """
    block = struct.pack("<3Q", id(np.ndarray), id(dtype), id(None))
    return _method(address, _METH_FASTCALL, name, block, (dtype, *alive))


def checked_call(tape: Tape) -> str:
    """The IR of the function behind `checked`."""
    arrays = [*tape.inputs, *tape.outputs]
    lines = [
        "define ptr @checked(ptr %self, ptr %arguments, i64 %number) nounwind {",
        f"  %data = getelementptr i8, ptr %self, i64 {_BYTES_DATA}",
        "  %type = load ptr, ptr %data",
        f"  %dtype.at = getelementptr i8, ptr %self, i64 {_BYTES_DATA + 8}",
        "  %dtype = load ptr, ptr %dtype.at",
        f"  %none.at = getelementptr i8, ptr %self, i64 {_BYTES_DATA + 16}",
        "  %none = load ptr, ptr %none.at",
        f"  %right = icmp eq i64 %number, {len(arrays)}",
        "  br i1 %right, label %array0, label %end",
    ]
    incoming = ["[ %none, %0 ]"]
    for i, array in enumerate(arrays):
        lines += _check(i, array, writeable=i >= len(tape.inputs))
        places = ("array", "shape", "size") if array.shape else ("array", "shape")
        incoming += [f"[ %none, %{place}{i} ]" for place in places]
    last = len(arrays) - 1
    pointers = ", ".join(f"ptr %p{i}" for i in range(len(arrays)))
    lines += [
        f"array{len(arrays)}:",
        f"  call void @core({pointers})",
        "  br label %end",
        "end:",
        f"  %result = phi ptr {', '.join(incoming)}, [ %o{last}, %array{len(arrays)} ]",
        "  %count = load i32, ptr %result",
        "  %more = add i32 %count, 1",
        "  store i32 %more, ptr %result",
        "  ret ptr %result",
        "}",
    ]
    return "\n".join(lines)


def _check(i: int, array: Array, writeable: bool) -> list[str]:
    """Verify one array and read its address; on to the next, or to the end."""
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
    lines.append(f"  %n{i}.ok = icmp eq i32 %n{i}, {len(array.shape)}")
    lines.append(f"  %f{i}.is = and i32 %f{i}, {flags}")
    lines.append(f"  %f{i}.ok = icmp eq i32 %f{i}.is, {flags}")
    lines.append(f"  %a{i} = and i1 %d{i}.ok, %n{i}.ok")
    lines.append(f"  %b{i} = and i1 %a{i}, %f{i}.ok")
    if not array.shape:
        return [*lines, f"  br i1 %b{i}, label %array{i + 1}, label %end"]
    lines += [f"  br i1 %b{i}, label %size{i}, label %end", f"size{i}:"]
    verdict = "true"
    for axis, size in enumerate(array.shape):
        lines.append(f"  %s{i}.{axis}.at = getelementptr i64, ptr %s{i}, i64 {axis}")
        lines.append(f"  %s{i}.{axis} = load i64, ptr %s{i}.{axis}.at")
        lines.append(f"  %s{i}.{axis}.ok = icmp eq i64 %s{i}.{axis}, {size}")
        lines.append(f"  %v{i}.{axis} = and i1 {verdict}, %s{i}.{axis}.ok")
        verdict = f"%v{i}.{axis}"
    return [*lines, f"  br i1 {verdict}, label %array{i + 1}, label %end"]
