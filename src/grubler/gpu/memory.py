"""Arrays of our own on a GPU, and how each library reads and writes them in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import dlpack, driver
from .errors import InputError

if TYPE_CHECKING:
    from .dlpack import View
    from .driver import Memory


class DeviceArray:
    """Numbers on a GPU: `numpy()` fetches them, torch, CuPy and JAX take them by DLPack."""

    memory: Memory
    view: View
    dtype: Any
    stream: int

    def __init__(self, memory: driver.Memory, view: dlpack.View, dtype: str, stream: int = 0):
        self.memory, self.view, self.dtype, self.stream = memory, view, np.dtype(dtype), stream

    @classmethod
    def empty(cls, device: driver.Device, shape: Any, dtype: str, stream: int = 0) -> DeviceArray:
        size = int(np.prod(shape, dtype=np.int64))
        memory = driver.Memory(device, size * np.dtype(dtype).itemsize)
        steps = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1][: len(shape)]
        strides = tuple(int(s) for s in steps)
        view = dlpack.View(memory.address, tuple(shape), strides, device.index)
        return cls(memory, view, dtype, stream)

    @classmethod
    def of(
        cls, device: driver.Device, values: np.ndarray, dtype: str, stream: int = 0
    ) -> DeviceArray:
        """A copy of numbers in the CPU's memory."""
        array = cls.empty(device, np.shape(values), dtype, stream)
        array.fill(values)
        return array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view.shape

    @property
    def address(self) -> int:
        return self.view.address

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.shape} {self.dtype} on GPU {self.view.device}>"

    def __getitem__(self, i: int) -> DeviceArray:
        """A part along the first axis, in place."""
        v, i = self.view, range(len(self))[i]
        at = v.address + i * v.strides[0] * self.dtype.itemsize
        return self._seen(dlpack.View(at, v.shape[1:], v.strides[1:], v.device))

    def upto(self, n: int) -> DeviceArray:
        """The first n parts."""
        v = self.view
        return self._seen(dlpack.View(v.address, (n, *v.shape[1:]), v.strides, v.device))

    @property
    def mT(self) -> DeviceArray:
        """With the last two axes exchanged, in place."""
        v = self.view
        shape, strides = ((*x[:-2], x[-1], x[-2]) for x in (v.shape, v.strides))
        return self._seen(dlpack.View(v.address, shape, strides, v.device))

    def without_last(self) -> DeviceArray:
        """The first part along the last axis: of a batch of one, the one."""
        v = self.view
        return self._seen(dlpack.View(v.address, v.shape[:-1], v.strides[:-1], v.device))

    def _seen(self, view: dlpack.View) -> DeviceArray:
        return DeviceArray(self.memory, view, self.dtype.name, self.stream)

    # --- exchange ---

    def numpy(self) -> np.ndarray:
        """A copy in the CPU's memory, once all work on it is done."""
        device, view, itemsize = self.memory.device, self.view, self.dtype.itemsize
        driver.synchronize(device, self.stream)
        low, high = view.extent(itemsize)
        raw = np.empty((high - low) // itemsize, self.dtype)
        if raw.size:
            driver.download(device, raw.ctypes.data, low, raw.nbytes)
        strides = [s * itemsize for s in view.strides]
        return np.lib.stride_tricks.as_strided(raw, view.shape, strides).copy()

    def fill(self, values: Any) -> None:
        """Copy numbers from the CPU's memory, spread over the shape; dense arrays alone."""
        host = np.ascontiguousarray(np.broadcast_to(np.asarray(values, self.dtype), self.shape))
        driver.upload(self.memory.device, self.address, host.ctypes.data, host.nbytes, self.stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.view.device

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        if stream not in (-1, self.stream, 1 if self.stream == 0 else None):
            driver.synchronize(self.memory.device, self.stream)
        return dlpack.lend(self.view, 8 * self.dtype.itemsize, self.memory)

    @property
    def __cuda_array_interface__(self) -> dict[Any, Any]:
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False),
            "strides": tuple(s * self.dtype.itemsize for s in self.view.strides), "version": 3,
            "stream": self.stream or 1,
        }  # fmt: skip


class Library:
    """How one library looks at our arrays of (..., n, N), states last in memory."""

    name: str
    like: Any

    def __init__(self, name: str, like: Any = None):
        self.name, self.like = name, like

    def look(self, array: DeviceArray) -> Any:
        """(..., N, n), in place."""
        if self.name == "torch":
            import torch

            return torch.from_dlpack(array.mT)
        import cupy

        return cupy.from_dlpack(array.mT)

    def part(self, array: DeviceArray, whole: Any, i: int) -> Any:
        """The i-th (N, n) of an array, of which `whole` is the look."""
        if self.name != "jax":
            return whole[i]
        import jax

        driver.synchronize(array.memory.device, array.stream)
        return jax.dlpack.from_dlpack(array[i]).T  # JAX takes dense arrays alone

    def write(self, array: DeviceArray, whole: Any, i: int, values: Any) -> None:
        """Put an array of this library, (N, n) or (n,), into the i-th place."""
        if self.name == "torch":
            whole[i].copy_(values)
        elif self.name == "cupy":
            whole[i][...] = values
        else:
            import jax

            target = array[i]
            dense = jax.numpy.broadcast_to(values, target.shape[::-1]).T
            dense = jax.block_until_ready(dense.astype(array.dtype) + 0)
            source = dlpack.view(dense, "values", array.dtype.name, array.stream, own=False)
            size = source.size * array.dtype.itemsize
            driver.copy(array.memory.device, target.address, source.address, size, array.stream)
            driver.synchronize(array.memory.device, array.stream)  # JAX may reuse it at once

    def finite(self, whole: Any, i: int) -> bool | None:
        """Whether the i-th part of an array is finite, asked on the GPU; None: cannot tell."""
        if self.name == "torch":
            return bool(whole[i].isfinite().all())
        if self.name == "cupy":
            import cupy

            return bool(cupy.isfinite(whole[i]).all())
        return None


def on_gpu(value: Any) -> bool:
    """Whether an array is one of a library on a GPU, as far as its type tells."""
    library = dlpack.library_of(value)
    return library in ("torch", "cupy", "jax") or isinstance(value, DeviceArray)


def library_for(value: Any, name: str) -> Library:
    """The library of an array on a GPU; an array elsewhere is an error."""
    dlpack.device_of(value, name)
    library = dlpack.library_of(value)
    if library not in ("torch", "cupy", "jax"):
        raise InputError(f"{name} is of '{library}': give an array of torch, CuPy or JAX")
    return Library(library, value)


def host_copy(value: Any) -> np.ndarray:
    """An array on a GPU, fetched."""
    if isinstance(value, DeviceArray):
        return value.numpy()
    if dlpack.library_of(value) == "torch":
        dlpack.device_of(value, "q")
        return value.detach().cpu().numpy()
    return value.get() if dlpack.library_of(value) == "cupy" else np.asarray(value)
