"""`GpuFunction`: a compiled function called with arrays on an NVIDIA GPU."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import NamedTuple

from . import dlpack, driver
from .errors import InputError

LAYOUTS = ("columns", "rows")
_ITEMSIZE = {"float32": 4, "float64": 8}
_MOST_STATES = 2**31 - 2**12  # states are counted in 32 bits
_STRIDE_LIMIT = 2**31


class Argument(NamedTuple):
    """The name and shape of an argument or an output."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size


class GpuFunction:
    """A function compiled for an NVIDIA GPU, one state a thread.

    Call it with arrays of torch, CuPy, JAX or any library that speaks DLPack, each argument with a
    leading axis of N states (or, for all states alike, without); they are read in place. The work
    is queued on the current stream of the first argument's library, or on `stream`, and the call
    returns at once with new arrays of that library, or with `out`. Nothing is converted. After
    `prepare()`, calls with `out` can be captured in a CUDA graph.

    JAX has no current stream: there the call waits for the result.
    """

    def __init__(self, signature: dict, texts: Sequence[str] = ()):
        self.name: str = signature["name"]
        self.dtype: str = signature["dtype"]
        self.arch: str = signature["arch"]
        self.inputs = tuple(Argument(n, tuple(s)) for n, s in signature["inputs"])
        self.outputs = tuple(Argument(n, tuple(s)) for n, s in signature["outputs"])
        self.candidates: list[dict] = signature["candidates"]
        self.chosen: dict[str, int] = dict(signature.get("chosen") or dict.fromkeys(LAYOUTS, 0))
        self.__name__ = self.name
        self._texts = list(texts)
        self._kernels: dict[tuple[int, str, int], driver.Kernel] = {}
        self._modules: dict[tuple[int, int], driver.Module] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        def listed(arrays):
            return ", ".join(f"{a.name} {a.shape}" for a in arrays)

        return (
            f"<compiled {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, "
            f"{self.dtype}, {self.arch}>"
        )

    def __call__(self, *arguments, out=None, stream=None):
        """The outputs for a batch, states along the first axis, or for one state."""
        return self._call(arguments, out, stream, states_last=False)

    def structure_of_arrays(self, *arguments, out=None, stream=None):
        """A batch with the states along the last axis: (n, N) instead of (N, n), outputs alike."""
        return self._call(arguments, out, stream, states_last=True)

    def bind(self, *arguments, out=None, stream=None, states_last: bool = False):
        """A callable without arguments that queues the work on these very arrays and returns
        `out`: the arrays are checked once, here, and kept alive; the stream stays that of now."""
        launch = _Launch(self, arguments, out, stream, states_last)

        def bound():
            launch.run()
            return launch.result

        return bound

    def prepare(self, device: int = 0) -> GpuFunction:
        """Load the code now rather than at the first call."""
        for layout in filter(self.has, LAYOUTS):
            self.kernel(device, layout)
        return self

    def tune(self, *arguments, states_last: bool = False, repeat: int = 5) -> dict[int, float]:
        """Time every candidate on these arguments and keep the fastest for their layout.

        Returns the milliseconds of each candidate that this GPU can run.
        """
        times: dict[int, float] = {}
        launch = _Launch(self, arguments, None, None, states_last)
        timer = driver.Timer(launch.device)
        for index in range(len(self.candidates)):
            try:
                launch.kernel = self.kernel(launch.device.index, launch.layout, index)
            except driver.GpuError:  # asks more of a block than this GPU has
                continue
            launch.run()
            times[index] = min(timer.milliseconds(launch.run, launch.stream) for _ in range(repeat))
        if times:
            self.chosen[launch.layout] = min(times, key=times.__getitem__)
        return times

    def kernel(self, device: int, layout: str, candidate: int | None = None) -> driver.Kernel:
        """The code for a device and a layout, loaded."""
        index = self.chosen[layout] if candidate is None else candidate
        key = (device, layout, index)
        kernel = self._kernels.get(key)
        if kernel is None:
            with self._lock:
                where = driver.device(device)
                module = self._modules.get((device, index))
                if module is None:
                    module = driver.Module(where, self.ptx(index), self.arch)
                    self._modules[device, index] = module
                frame = self.frames(index)[layout]
                kernel = module.kernel(layout, frame["block"], frame["shared"])
                self._kernels[key] = kernel
        return kernel

    def has(self, layout: str) -> bool:
        """Whether there is a kernel for a layout; that for columns serves any."""
        return layout in self.frames(self.chosen[layout])

    def ptx(self, candidate: int) -> str:
        """The PTX of a candidate."""
        return self._texts[candidate]

    def frames(self, candidate: int) -> dict[str, dict[str, int]]:
        """Threads and bytes of shared memory of a block, for each layout."""
        return self.candidates[candidate]["kernels"]

    def _call(self, arguments, out, stream, states_last: bool):
        launch = _Launch(self, arguments, out, stream, states_last)
        launch.run()
        return launch.result


class _Launch:
    """Arguments and outputs of one call, checked, as the driver takes them."""

    def __init__(self, function: GpuFunction, arguments, out, stream, states_last: bool):
        self.function, self.states_last = function, states_last
        if len(arguments) != len(function.inputs):
            expected = ", ".join(a.name for a in function.inputs)
            raise InputError(
                f"'{function.name}' takes {len(function.inputs)} arguments ({expected}), not "
                f"{len(arguments)}"
            )
        driver.library()  # without a driver, nothing below makes sense
        first = arguments[0]
        index = dlpack.device_of(first, f"argument '{function.inputs[0].name}'")
        self.device = driver.device(index)
        self._choose_stream(first, stream)
        self.owner = dlpack.library_of(first) if self.tells else None
        views = [
            self._view(value, f"argument '{a.name}'")
            for value, a in zip(arguments, function.inputs)
        ]
        self.size = self._batch_size(views)
        targets = self._targets(first, out)
        out_views = [
            self._view(value, f"out for '{a.name}'") for value, a in zip(targets, function.outputs)
        ]
        self._check_outputs(out_views, views)
        self._strides([*views, *out_views])
        self.alive = (arguments, targets)
        self.result = targets[0] if len(targets) == 1 else tuple(targets)
        self.kernel = function.kernel(index, self.layout) if self.size != 0 else None

    def run(self) -> None:
        if self.kernel is None:
            return
        self.kernel.launch(self.states, self.pointers, self.stream)
        if not self.tells:
            driver.synchronize(self.device, self.stream)

    def _choose_stream(self, first, stream) -> None:
        if stream is None:
            self.stream, self.tells = dlpack.current_stream(first, self.device.index)
        else:
            self.stream, self.tells = dlpack.stream_handle(stream), True
        self.given = stream is not None

    def _view(self, value, name: str) -> dlpack.View:
        own = not self.given and self.owner is not None and dlpack.library_of(value) == self.owner
        view = dlpack.view(value, name, self.function.dtype, self.stream, own)
        if view.device != self.device.index:
            raise InputError(
                f"{name} lies on GPU {view.device}, but argument "
                f"'{self.function.inputs[0].name}' on GPU {self.device.index}: move both to one"
            )
        return view

    def _batch_size(self, views) -> int | None:
        """The number of states, or None for a single state; every shape is checked."""
        size = source = None
        for view, array in zip(views, self.function.inputs):
            if view.shape == array.shape:
                continue
            own, states = self._split(view.shape)
            if own != array.shape:
                wanted = self._batched(array.shape, "N")
                raise InputError(
                    f"argument '{array.name}' has shape {view.shape}: expected {array.shape}, or "
                    f"({', '.join(map(str, wanted))}) for a batch of N"
                )
            if size is None:
                size, source = states, array.name
            elif states != size:
                raise InputError(
                    f"argument '{array.name}' holds {states} states, but '{source}' holds {size}: "
                    "give both the same number"
                )
        if size is not None and size > _MOST_STATES:
            raise InputError(f"a batch of {size} states is too large: at most {_MOST_STATES}")
        self.states = 1 if size is None else size
        return size

    def _split(self, shape) -> tuple[tuple[int, ...], int | None]:
        """A batch's shape as that of a state and the number of states."""
        if not shape:
            return shape, None
        return (shape[:-1], shape[-1]) if self.states_last else (shape[1:], shape[0])

    def _batched(self, shape, size) -> tuple:
        return (*shape, size) if self.states_last else (size, *shape)

    def _targets(self, first, out) -> list:
        outputs = self.function.outputs
        if out is None:
            return [
                dlpack.empty(first, self._shape(a), self.function.dtype, self.device.index)
                for a in outputs
            ]
        given = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(given) != len(outputs):
            names = ", ".join(a.name for a in outputs)
            raise InputError(f"out must be {len(outputs)} arrays ({names}), not {len(given)}")
        for value, array in zip(given, outputs):
            if dlpack.library_of(value) == "jax":
                raise InputError(
                    f"out for '{array.name}' is an array of JAX, which never change: leave out= out"
                )
        return given

    def _shape(self, array: Argument) -> tuple[int, ...]:
        return array.shape if self.size is None else self._batched(array.shape, self.size)

    def _check_outputs(self, outputs, inputs) -> None:
        itemsize = _ITEMSIZE[self.function.dtype]
        taken = [
            (view.extent(itemsize), f"argument '{a.name}'")
            for view, a in zip(inputs, self.function.inputs)
        ]
        for view, array in zip(outputs, self.function.outputs):
            wanted = self._shape(array)
            if view.shape != wanted:
                raise InputError(
                    f"out for '{array.name}' has shape {view.shape}: expected {wanted}"
                )
            if any(s == 0 and n > 1 for s, n in zip(view.strides, view.shape)):
                raise InputError(f"out for '{array.name}' has elements that share memory")
            low, high = view.extent(itemsize)
            for (first, last), name in taken:
                if low < last and first < high:
                    raise InputError(
                        f"out for '{array.name}' overlaps {name}: give an array of its own"
                    )
            taken.append(((low, high), f"out for '{array.name}'"))

    def _strides(self, views) -> None:
        """Addresses and strides as the kernels take them, and the kernel that suits them."""
        arrays = (*self.function.inputs, *self.function.outputs)
        count = len(views)
        memory = (ctypes.c_int32 * (4 * count + 1))()
        base, weight = ctypes.addressof(memory), 0
        pointers = []
        for i, (view, array) in enumerate(zip(views, arrays)):
            state, step = self._state_and_step(view, array)
            ctypes.c_uint64.from_buffer(memory, 16 * i).value = view.address
            memory[4 * i + 2], memory[4 * i + 3] = state, step
            pointers += [base + 16 * i, base + 16 * i + 8, base + 16 * i + 12]
            if array.size > 1 and state != 0:
                weight += array.size if step == 1 and state != 1 else -array.size
        memory[4 * count] = self.states
        pointers.append(base + 16 * count)
        self.memory = memory
        self.pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        by_rows = weight > 0 and self.states > 1 and self.function.has("rows")
        self.layout = "rows" if by_rows else "columns"

    def _state_and_step(self, view: dlpack.View, array: Argument) -> tuple[int, int]:
        """Strides between states and between elements."""
        strides, state = view.strides, 0
        if view.shape != array.shape:
            strides = strides[:-1] if self.states_last else strides[1:]
            state = view.strides[-1 if self.states_last else 0]
        step = span = None
        for n, stride in zip(reversed(array.shape), reversed(strides)):
            if n == 1:
                continue
            if span is not None and stride != span:
                raise InputError(
                    f"the elements of '{array.name}' are not evenly spaced in memory: make it "
                    "contiguous"
                )
            step = stride if step is None else step
            span = stride * n
        step = 1 if step is None else step
        if max(abs(state), abs(step)) >= _STRIDE_LIMIT:
            raise InputError(f"'{array.name}' is spread too wide in memory: make it contiguous")
        return state, step
