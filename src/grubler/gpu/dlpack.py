"""Arrays of any library that speaks DLPack, read in place."""

from __future__ import annotations

import ctypes
import functools
import math
from dataclasses import dataclass
from typing import Any

from .errors import InputError

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_FLOAT = 2


class _Tensor(ctypes.Structure):
    """DLTensor, the head of a DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor: what a capsule holds."""

    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


@dataclass(frozen=True)
class View:
    """Where an array lies on a GPU; strides counted in numbers."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def extent(self, itemsize: int) -> tuple[int, int]:
        """The first byte and the one after the last."""
        if self.size == 0:
            return self.address, self.address
        reach = [s * (n - 1) for s, n in zip(self.strides, self.shape)]
        low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        return self.address + low * itemsize, self.address + (high + 1) * itemsize


_lent: dict[
    int, tuple[Any, ...]
] = {}  # what capsules out there refer to, by the address of their tensor


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _give_back(address):
    _lent.pop(address, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _forget(capsule):
    """A capsule's end: where nobody took the tensor, its name is still the first one."""
    if ctypes.pythonapi.PyCapsule_IsValid(ctypes.c_void_p(capsule), b"dltensor"):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        _lent.pop(ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
            ctypes.cast(get, ctypes.c_void_p).value)(capsule, b"dltensor"), None)  # fmt: skip


def lend(view: View, bits: int, owner: Any) -> Any:
    """A DLPack capsule of memory on a GPU, which keeps `owner` alive."""
    shape, strides = ((ctypes.c_int64 * len(view.shape))(*x) for x in (view.shape, view.strides))
    managed = _Managed()
    managed.tensor = _Tensor(
        view.address, _CUDA, view.device, len(view.shape), _FLOAT, bits, 1,
        ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
        ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)), 0,
    )  # fmt: skip
    managed.deleter = ctypes.cast(_give_back, ctypes.c_void_p)
    address = ctypes.addressof(managed)
    _lent[address] = (managed, shape, strides, owner)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, b"dltensor", ctypes.cast(_forget, ctypes.c_void_p))


@functools.cache
def _library(kind: type[Any]) -> str:
    name = kind.__module__.partition(".")[0]
    return "jax" if name.startswith("jax") else name


def library_of(value: Any) -> str:
    """The package that an array belongs to."""
    return _library(type(value))


def device_of(value: Any, name: str) -> int:
    """The GPU that an array lies on; an array anywhere else is an error."""
    if library_of(value) == "torch" and value.is_cuda:
        return value.device.index  # a tenth of the cost
    ask = getattr(value, "__dlpack_device__", None)
    if ask is None:
        raise InputError(
            f"{name} is an object of type {type(value).__name__}: give an array on the GPU, of "
            "torch, CuPy, JAX or another library that speaks DLPack"
        )
    kind, index = ask()
    if kind in (_CUDA, _CUDA_MANAGED):
        return int(index)
    where = "the CPU's memory" if kind in (_CPU, _CUDA_HOST) else f"a device of kind {int(kind)}"
    raise InputError(
        f"{name} ({type(value).__module__}.{type(value).__name__}) lies in {where}, but this "
        "function runs on an NVIDIA GPU: move it there (torch: x.cuda(), CuPy: cupy.asarray(x), "
        "JAX: jax.device_put(x)), or compile with target='cpu'"
    )


def view(value: Any, name: str, dtype: str, stream: int, own: bool) -> View:
    """An array's memory, ready on `stream`; `own`: the stream is that of the array's library."""
    device = device_of(value, name)
    if getattr(value, "requires_grad", False):
        raise InputError(
            f"{name} requires a gradient, which this function does not give: pass x.detach()"
        )
    if own and library_of(value) == "torch":
        found = str(value.dtype).removeprefix("torch.")
        shape, strides, address = tuple(value.shape), value.stride(), value.data_ptr()
    else:
        # 1 is the legacy default stream and -1 asks for no waiting (array API).
        try:
            capsule = value.__dlpack__(stream=-1 if own else (stream or 1))
        except BufferError as error:
            raise InputError(f"{name} cannot be read in place: {error}") from error
        found, shape, strides, address = _read(capsule)
    if found != dtype:
        raise InputError(
            f"{name} has dtype {found}, but this function computes in {dtype}: convert it, or "
            "compile with that dtype"
        )
    return View(address, shape, strides, device)


def _read(capsule) -> tuple[str, tuple[int, ...], tuple[int, ...], int]:
    tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    kind = {0: "int", 1: "uint", _FLOAT: "float", 4: "bfloat", 5: "complex", 6: "bool"}
    found = f"{kind.get(tensor.code, 'unknown')}{tensor.bits}"
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    else:
        steps, step = [], 1
        for n in reversed(shape):
            steps.append(step)
            step *= n
        strides = tuple(reversed(steps))
    return found, shape, strides, (tensor.data or 0) + tensor.byte_offset


def _torch_kind(x) -> tuple[Any, ...]:
    return x.dtype, x.shape, x.stride(), x.device, x.requires_grad


def _cupy_kind(x) -> tuple[Any, ...]:
    return x.dtype, x.shape, x.strides, x.data.device_id


_READERS = {
    "torch": (_torch_kind, lambda x: x.data_ptr()),
    "cupy": (_cupy_kind, lambda x: x.data.ptr),
}


def kinds(arguments: Any, out: Any) -> tuple[Any, Any]:
    """All that a call's checks depend on but addresses, and how to ask for those; (None, None)
    where the arrays are not all of one library that tells at little cost."""
    if not arguments:
        return None, None
    kind = type(arguments[0])
    reader = _READERS.get(_library(kind)) if kind.__name__ in ("Tensor", "ndarray") else None
    if reader is None:
        return None, None
    given = () if out is None else out if isinstance(out, (tuple, list)) else (out,)
    arrays = (*arguments, *given)
    for x in arrays:
        if type(x) is not kind:
            return None, None
    return tuple(map(reader[0], arrays)), reader[1]


def current_stream(value: Any, device: int) -> tuple[int, bool]:
    """The stream that the array's library is using, and whether it has one to tell."""
    library = library_of(value)
    if library == "torch":
        import torch

        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # what Triton calls, too
        if raw is not None:
            return raw(device), True
        return torch.cuda.current_stream(device).cuda_stream, True
    if library == "cupy":
        import cupy

        return cupy.cuda.get_current_stream().ptr, True
    return 0, False


def stream_handle(stream: Any) -> int:
    """The address behind a stream object."""
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    for attribute in ("cuda_stream", "ptr"):  # torch, CuPy
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    raise InputError(
        f"stream is an object of type {type(stream).__name__}: give a torch.cuda.Stream, a "
        "cupy.cuda.Stream, an object with __cuda_stream__, or the stream's address"
    )


def empty(like: Any, shape: tuple[int, ...], dtype: str, device: int) -> Any:
    """A new array of the same library on the same GPU."""
    library = library_of(like)
    if library == "torch":
        import torch

        return torch.empty(shape, dtype=getattr(torch, dtype), device=f"cuda:{device}")
    if library == "cupy":
        import cupy

        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype)
    if library == "jax":
        import jax

        # Arrays of JAX never change, but nobody has seen this one yet.
        return jax.block_until_ready(jax.numpy.zeros(shape, dtype, device=like.device))
    raise InputError(f"give out=, since arrays of '{library}' cannot be created here")
