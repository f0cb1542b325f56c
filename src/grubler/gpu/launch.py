"""One call's arrays, checked, as the driver takes them; and the same call again, unchecked."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

from . import dlpack, driver
from .errors import InputError

if TYPE_CHECKING:
    from .dlpack import View
    from .driver import Device
    from .function import Argument, GpuFunction

_ITEMSIZE = {"float32": 4, "float64": 8}
_MOST_STATES = 2**31 - 2**12  # states are counted in 32 bits
_STRIDE_LIMIT = 2**31


class Launch:
    """Arguments and outputs of one call, checked, as the driver takes them."""

    function: GpuFunction
    states_last: bool
    stream: int
    tells: bool

    def __init__(
        self, function: GpuFunction, arguments: Any, out: Any, stream: Any, states_last: bool
    ):
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
        self.device: Device = driver.device(index)
        self._choose_stream(first, stream)
        self.owner: str | None = dlpack.library_of(first) if self.tells else None
        views = [
            self._view(value, f"argument '{a.name}'")
            for value, a in zip(arguments, function.inputs)
        ]
        self.size: int | None = self._batch_size(views)
        targets = self._targets(first, out)
        out_views = [
            self._view(value, f"out for '{a.name}'") for value, a in zip(targets, function.outputs)
        ]
        self._check_outputs(out_views, views)
        self.views: list[View] = [*views, *out_views]
        self._strides(self.views)
        self.alive: tuple[Any, list[Any]] = (arguments, targets)
        self.result: Any = targets[0] if len(targets) == 1 else tuple(targets)
        self.kernel: Any = function.kernel(index, self.layout) if self.size != 0 else None

    def run(self) -> None:
        if self.kernel is None:
            return
        self.kernel.launch(self.states, self.pointers, self.stream)
        if not self.tells:
            driver.synchronize(self.device, self.stream)

    def move(self, addresses: Any) -> None:
        """Take arrays at other addresses, of the same kinds."""
        for place, address in zip(self.places, addresses):
            place.value = address

    def _choose_stream(self, first, stream) -> None:
        if stream is None:
            self.stream, self.tells = dlpack.current_stream(first, self.device.index)
        else:
            self.stream, self.tells = dlpack.stream_handle(stream), True
        self.given: bool = stream is not None

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
        self.states: int = 1 if size is None else size
        return size

    def _split(self, shape) -> tuple[tuple[int, ...], int | None]:
        """A batch's shape as that of a state and the number of states."""
        if not shape:
            return shape, None
        return (shape[:-1], shape[-1]) if self.states_last else (shape[1:], shape[0])

    def _batched(self, shape, size) -> tuple[Any, ...]:
        return (*shape, size) if self.states_last else (size, *shape)

    def _targets(self, first, out) -> list[Any]:
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
            memory[4 * i + 2], memory[4 * i + 3] = state, step
            pointers += [base + 16 * i, base + 16 * i + 8, base + 16 * i + 12]
            if array.size > 1 and state != 0:
                weight += array.size if step == 1 and state != 1 else -array.size
        memory[4 * count] = self.states
        pointers.append(base + 16 * count)
        self.memory = memory
        self.places: Any = [ctypes.c_uint64.from_buffer(memory, 16 * i) for i in range(count)]
        self.pointers: Any = (ctypes.c_void_p * len(pointers))(*pointers)
        self.move([view.address for view in views])
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


class Repeat:
    """A call like one that was checked before: arrays of the same library, dtype, shapes, strides
    and device, so that addresses and the stream are all that is left to ask for."""

    launch: Launch
    number: int

    def __init__(self, launch: Launch, number: int):
        self.launch, self.number = launch, number  # of arguments
        itemsize = _ITEMSIZE[launch.function.dtype]
        views = launch.views
        starts = [view.address for view in views]
        self.extents: list[tuple[int, ...]] = [
            tuple(x - start for x in view.extent(itemsize)) for view, start in zip(views, starts)
        ]
        self.shapes: list[tuple[int, ...]] = [view.shape for view in views[number:]]
        # An array to tell the library by, that keeps none of the caller's memory.
        first, dtype = launch.alive[0][0], launch.function.dtype
        self.first: Any = dlpack.empty(first, (0,), dtype, launch.device.index)
        launch.alive = launch.result = None
        self.lock: Any = threading.Lock()  # the driver is called without Python's own

    def __call__(self, arguments: Any, out: Any, address_of: Any) -> Any:
        launch, function = self.launch, self.launch.function
        targets = out if isinstance(out, (tuple, list)) else [out]
        if out is None:
            index = launch.device.index
            targets = [dlpack.empty(self.first, s, function.dtype, index) for s in self.shapes]
        addresses = [address_of(x) for x in (*arguments, *targets)]
        if out is not None:
            self._check_overlap(addresses)
        if launch.kernel is not None:
            stream, _ = dlpack.current_stream(self.first, launch.device.index)
            kernel = function.kernel(launch.device.index, launch.layout)
            with self.lock:
                launch.move(addresses)
                kernel.launch(launch.states, launch.pointers, stream)
        return targets[0] if len(targets) == 1 else tuple(targets)

    def _check_overlap(self, addresses) -> None:
        spans = [(a + low, a + high) for a, (low, high) in zip(addresses, self.extents)]
        for i in range(self.number, len(spans)):
            low, high = spans[i]
            for j in range(i):
                if low < spans[j][1] and spans[j][0] < high:
                    arrays = (*self.launch.function.inputs, *self.launch.function.outputs)
                    what = f"{'argument' if j < self.number else 'out for'} '{arrays[j].name}'"
                    raise InputError(
                        f"out for '{arrays[i].name}' overlaps {what}: give an array of its own"
                    )
