"""A GPU made of this CPU: memory is the CPU's, and a launch runs the same tape's CPU code on the
addresses, strides and counts that the kernel would get."""

import contextlib
import ctypes

import numpy as np

from grubler.compiler.runtime.function import CompiledFunction
from grubler.gpu import GpuFunction, driver


class FakeDevice:
    index, capability, name = 0, 90, "Fake GPU"

    def current(self):
        return contextlib.nullcontext()

    def require(self, arch):
        pass


class FakeMemory:
    def __init__(self, where, size):
        self.device, self.size = where, size
        self._held = np.full(max(size, 1), 0xFF, np.uint8)  # NaN until written
        self.address = self._held.ctypes.data


class FakeKernel:
    launches = 0

    def __init__(self, function):
        self.function = function
        self.cpu = CompiledFunction(function._program, function.name, 1)

    def launch(self, threads, arguments, stream):
        FakeKernel.launches += 1
        arrays = (*self.function.inputs, *self.function.outputs)
        dtype = np.dtype(self.function.dtype)
        seen = []
        for i, array in enumerate(arrays):
            address = ctypes.c_uint64.from_address(arguments[3 * i]).value
            strides = [ctypes.c_int32.from_address(arguments[3 * i + j]).value for j in (1, 2)]
            held = (ctypes.c_char * (1 << 40)).from_address(address)
            flat = np.ndarray(
                (threads, array.size), dtype, held,
                strides=[s * dtype.itemsize for s in strides],
            )  # fmt: skip
            seen.append(flat)
        count = ctypes.c_int32.from_address(arguments[3 * len(arrays)]).value
        assert count == threads
        number = len(self.function.inputs)
        given = [
            np.ascontiguousarray(x).reshape(threads, *a.shape)
            for x, a in zip(seen, self.function.inputs)
        ]
        out = self.cpu(*given)
        out = out if isinstance(out, tuple) else (out,)
        for target, values in zip(seen[number:], out):
            target[...] = np.asarray(values).reshape(target.shape)


def install(monkeypatch):
    """Put the fake in the driver's place."""
    fake = FakeDevice()
    monkeypatch.setattr(driver, "library", lambda: None)
    monkeypatch.setattr(driver, "device", lambda index: fake)
    monkeypatch.setattr(driver, "Memory", FakeMemory)
    monkeypatch.setattr(driver, "synchronize", lambda where, stream: None)
    for name in ("upload", "copy"):
        monkeypatch.setattr(
            driver, name, lambda where, to, source, size, stream: ctypes.memmove(to, source, size)
        )
    monkeypatch.setattr(
        driver, "download", lambda where, to, source, size: ctypes.memmove(to, source, size)
    )
    kernels = {}

    def kernel(self, device, layout, candidate=None):
        return kernels.setdefault(id(self), FakeKernel(self))

    monkeypatch.setattr(GpuFunction, "kernel", kernel)
    monkeypatch.setattr(GpuFunction, "has", lambda self, layout: layout == "columns")
    FakeKernel.launches = 0
    return FakeKernel
