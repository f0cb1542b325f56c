"""The CUDA driver, called through ctypes: it comes with every NVIDIA GPU, and nothing else is
needed to load PTX and to launch it. Contexts are the devices' primary ones, which torch, CuPy and
JAX use too."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from .errors import GpuError

_OUT_OF_MEMORY, _NO_DEVICE, _NO_BINARY, _BAD_PTX, _OLD_DRIVER = 2, 100, 209, 218, 222
_CAPTURING = range(900, 909)  # not allowed while a graph is captured
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_SHARED_MEMORY = 8  # function attribute: the largest block of dynamic shared memory
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6  # options of the driver's assembler


@functools.cache
def library() -> ctypes.CDLL:
    """The driver, initialized."""
    name = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
    try:
        lib = ctypes.CDLL(name)
    except OSError as error:
        raise GpuError(
            f"no NVIDIA driver on this machine ({name} cannot be loaded): use target='cpu', which "
            "needs none"
        ) from error
    code = lib.cuInit(0)
    if code == _NO_DEVICE:
        raise GpuError("the NVIDIA driver finds no GPU on this machine: use target='cpu'")
    if code:
        raise GpuError(f"the NVIDIA driver does not start: {_message(lib, code)}")
    return lib


def available() -> bool:
    """Whether this machine has a driver and a GPU."""
    try:
        return device_count() > 0
    except GpuError:
        return False


def device_count() -> int:
    number = ctypes.c_int()
    check(library().cuDeviceGetCount(ctypes.byref(number)), "counting GPUs")
    return number.value


def _message(lib, code: int) -> str:
    text = ctypes.c_char_p()
    lib.cuGetErrorString(code, ctypes.byref(text))
    return f"{(text.value or b'unknown error').decode()} (CUDA error {code})"


def check(code: int, doing: str) -> None:
    """Raise what a return code of the driver means."""
    if code == 0:
        return
    message = _message(library(), code)
    if code == _OUT_OF_MEMORY:
        raise GpuError(f"the GPU is out of memory while {doing}: use a smaller batch ({message})")
    if code in _CAPTURING:
        raise GpuError(
            f"a CUDA graph is being captured while {doing}: call prepare() before the capture, so "
            f"that the code is loaded by then ({message})"
        )
    raise GpuError(f"the GPU failed while {doing}: {message}")


class Device:
    """A GPU and its primary context."""

    index: int
    handle: Any
    context: Any

    def __init__(self, index: int):
        lib = library()
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        number = device_count()
        if not 0 <= index < number:
            raise GpuError(f"no GPU number {index}: this machine has {number}")
        check(lib.cuDeviceGet(ctypes.byref(handle), index), "opening the GPU")
        code = lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
        check(code, "opening the GPU")
        self.index, self.handle, self.context = index, handle, context
        major, minor = self._attribute(_CAPABILITY_MAJOR), self._attribute(_CAPABILITY_MINOR)
        self.capability: int = 10 * major + minor

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        check(
            library().cuDeviceGetAttribute(ctypes.byref(value), which, self.handle),
            "asking the GPU's properties",
        )
        return value.value

    @functools.cached_property
    def name(self) -> str:
        text = ctypes.create_string_buffer(256)
        check(library().cuDeviceGetName(text, 256, self.handle), "asking the GPU's name")
        return text.value.decode()

    def current(self) -> _Current:
        """With it, the device's context is current, as it is anyway where a framework runs."""
        return _Current(self.context)

    def require(self, arch: str) -> None:
        """Refuse code for a newer architecture than this GPU's."""
        wanted = int(arch.removeprefix("sm_"))
        if wanted > self.capability:
            raise GpuError(
                f"the code is for {arch} and newer, but {self.name} is sm_{self.capability}: "
                f"compile with arch='sm_{self.capability}'"
            )


class _Current:
    def __init__(self, context: Any):
        self._context, self._pushed = context, False

    def __enter__(self) -> None:
        lib, current = library(), ctypes.c_void_p()
        check(lib.cuCtxGetCurrent(ctypes.byref(current)), "asking for the context")
        if current.value != self._context.value:
            check(lib.cuCtxPushCurrent_v2(self._context), "entering the context")
            self._pushed = True

    def __exit__(self, *_: object) -> None:
        if self._pushed:
            library().cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


@functools.cache
def _context_reader():
    """`cuCtxGetCurrent` called with Python's lock held, so that one place serves all threads."""
    place = ctypes.c_void_p()
    address = ctypes.cast(library().cuCtxGetCurrent, ctypes.c_void_p).value
    return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address), place


def _current_context() -> int | None:
    read, place = _context_reader()
    return place.value if read(ctypes.addressof(place)) == 0 else None


@functools.cache
def device(index: int) -> Device:
    return Device(index)


class Module:
    """PTX, assembled by the driver for one device."""

    device: Device

    def __init__(self, where: Device, ptx: str, arch: str):
        where.require(arch)
        self.device, self._handle = where, ctypes.c_void_p()
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 8192)
        with where.current():
            code = library().cuModuleLoadDataEx(
                ctypes.byref(self._handle), ptx.encode(), 2, options, values
            )
        if code in (_NO_BINARY, _BAD_PTX, _OLD_DRIVER):
            said = log.value.decode(errors="replace").strip() or _message(library(), code)
            raise GpuError(
                f"the driver cannot assemble the code for {where.name} (sm_{where.capability}): "
                f"{said}; a newer driver, or compiling with arch='sm_{where.capability}', may help"
            )
        check(code, "loading the code")

    def kernel(self, name: str, frame: dict[str, int]) -> Kernel:
        """A kernel by its name; `frame` are a block's threads, bytes of shared memory, states."""
        handle, shared = ctypes.c_void_p(), frame["shared"]
        lib = library()
        with self.device.current():
            code = lib.cuModuleGetFunction(ctypes.byref(handle), self._handle, name.encode())
            check(code, f"looking for kernel '{name}'")
            if shared > 48 * 1024:
                code = lib.cuFuncSetAttribute(handle, _SHARED_MEMORY, shared)
                check(code, f"reserving {shared} bytes of shared memory a block")
        return Kernel(self, handle, frame)


class Kernel:
    """A function of a module, ready to launch."""

    module: Module
    handle: Any
    frame: dict[str, int]

    then: Kernel | None = None  # launched after it, on the same arguments

    def __init__(self, module: Module, handle: Any, frame: dict[str, int]):
        self.module, self.handle, self.frame = module, handle, frame
        self._context = module.device.context.value
        self._launch = library().cuLaunchKernel
        self._launch.argtypes = (
            [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
        )  # fmt: skip

    def launch(self, states: int, arguments: Any, stream: int) -> None:
        """Queue the kernel; `arguments` is an array of pointers to ctypes values."""
        blocks, block = -(-states // self.frame["states"]), self.frame["block"]
        shared = self.frame["shared"]
        launched = self.handle, blocks, 1, 1, block, 1, 1, shared, stream, arguments, None
        if _current_context() == self._context:  # as it is wherever a framework runs
            code = self._launch(*launched)
        else:
            with self.module.device.current():
                code = self._launch(*launched)
        if code:
            check(code, "launching a kernel")
        if self.then is not None:
            self.then.launch(states, arguments, stream)


def synchronize(where: Device, stream: int) -> None:
    """Wait for what a stream has been given."""
    with where.current():
        check(library().cuStreamSynchronize(ctypes.c_void_p(stream)), "running a kernel")


class Memory:
    """A stretch of a GPU's memory, given back when nobody refers to it any more."""

    device: Device
    size: int

    def __init__(self, where: Device, size: int):
        self.device, self.size, self.address = where, size, 0
        address = ctypes.c_uint64()
        with where.current():
            code = library().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        check(code, f"reserving {size / 2**20:.3g} MiB")
        self.address: int = address.value

    def __del__(self) -> None:
        if self.address and library is not None:  # at exit, this module may be gone first
            with self.device.current():
                library().cuMemFree_v2(ctypes.c_uint64(self.address))


def upload(where: Device, target: int, source: int, size: int, stream: int) -> None:
    """Copy bytes from the CPU's memory, after what the stream was given before."""
    synchronize(where, stream)
    with where.current():
        code = library().cuMemcpyHtoD_v2(
            ctypes.c_uint64(target), ctypes.c_void_p(source), ctypes.c_size_t(size)
        )
    check(code, "copying to the GPU")


def download(where: Device, target: int, source: int, size: int) -> None:
    """Copy bytes to the CPU's memory."""
    with where.current():
        code = library().cuMemcpyDtoH_v2(
            ctypes.c_void_p(target), ctypes.c_uint64(source), ctypes.c_size_t(size)
        )
    check(code, "copying from the GPU")


def copy(where: Device, target: int, source: int, size: int, stream: int) -> None:
    """Copy bytes within the GPU's memory, in the stream's order."""
    with where.current():
        code = library().cuMemcpyDtoDAsync_v2(
            ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )  # fmt: skip
    check(code, "copying on the GPU")


class Timer:
    """Two events around work on a stream."""

    device: Device

    def __init__(self, where: Device):
        self.device, self._events = where, [ctypes.c_void_p(), ctypes.c_void_p()]
        with where.current():
            for event in self._events:
                check(library().cuEventCreate(ctypes.byref(event), 0), "creating an event")

    def milliseconds(self, work: Any, stream: int) -> float:
        lib, elapsed = library(), ctypes.c_float()
        with self.device.current():
            check(lib.cuEventRecord(self._events[0], ctypes.c_void_p(stream)), "timing")
            work()
            check(lib.cuEventRecord(self._events[1], ctypes.c_void_p(stream)), "timing")
            check(lib.cuEventSynchronize(self._events[1]), "timing")
            code = lib.cuEventElapsedTime(ctypes.byref(elapsed), *self._events)
            check(code, "timing")
        return elapsed.value
