"""`GpuFunction`: a compiled function called with arrays on an NVIDIA GPU."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import dlpack, driver
from .launch import Launch, Repeat

LAYOUTS = ("columns", "rows")
_MOST_REPEATS = 256  # kinds of calls remembered


class Argument(NamedTuple):
    """The name and shape of an argument or an output."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class GpuFunction:
    """A function compiled for an NVIDIA GPU, one state a thread.

    Call it with arrays of torch, CuPy, JAX or any library that speaks DLPack, each argument with a
    leading axis of N states (or, for all states alike, without); they are read in place. The work
    is queued on the current stream of the first argument's library, or on `stream`, and the call
    returns at once with new arrays of that library, or with `out`. Nothing is converted. After
    `prepare()`, calls with `out` can be captured in a CUDA graph.

    JAX has no current stream: there the call waits for the result.
    """

    def __init__(self, signature: dict[Any, Any], texts: Sequence[str] = ()):
        self.name: str = signature["name"]
        self.dtype: str = signature["dtype"]
        self.arch: str = signature["arch"]
        self.inputs: tuple[Argument, ...] = tuple(
            Argument(n, tuple(s)) for n, s in signature["inputs"]
        )
        self.outputs: tuple[Argument, ...] = tuple(
            Argument(n, tuple(s)) for n, s in signature["outputs"]
        )
        self.candidates: list[dict[Any, Any]] = signature["candidates"]
        self.chosen: dict[str, int] = dict(signature.get("chosen") or dict.fromkeys(LAYOUTS, 0))
        self.__name__: str = self.name
        self._texts = list(texts)
        self._kernels: dict[tuple[int, str, int], driver.Kernel] = {}
        self._modules: dict[tuple[int, int], driver.Module] = {}
        self._repeats: dict[tuple[Any, ...], Repeat] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        def listed(arrays):
            return ", ".join(f"{a.name} {a.shape}" for a in arrays)

        return (
            f"<compiled {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, "
            f"{self.dtype}, {self.arch}>"
        )

    def __call__(self, *arguments: Any, out: Any = None, stream: Any = None) -> Any:
        """The outputs for a batch, states along the first axis, or for one state."""
        return self._call(arguments, out, stream, states_last=False)

    def structure_of_arrays(self, *arguments: Any, out: Any = None, stream: Any = None) -> Any:
        """A batch with the states along the last axis: (n, N) instead of (N, n), outputs alike."""
        return self._call(arguments, out, stream, states_last=True)

    def bind(
        self, *arguments: Any, out: Any = None, stream: Any = None, states_last: bool = False
    ) -> Callable[[], Any]:
        """A callable without arguments that queues the work on these very arrays and returns
        `out`: the arrays are checked once, here, and kept alive; the stream stays that of now."""
        launch = Launch(self, arguments, out, stream, states_last)

        def bound():
            launch.run()
            return launch.result

        return bound

    def prepare(self, device: int = 0) -> GpuFunction:
        """Load the code now rather than at the first call."""
        for layout in filter(self.has, LAYOUTS):
            self.kernel(device, layout)
        return self

    def tune(self, *arguments: Any, states_last: bool = False, repeat: int = 5) -> dict[int, float]:
        """Time every candidate on these arguments and keep the fastest for their layout.

        Returns the milliseconds of each candidate that this GPU can run.
        """
        times: dict[int, float] = {}
        launch = Launch(self, arguments, None, None, states_last)
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
            self._repeats.clear()
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
                frames = self.frames(index)
                kernel = module.kernel(layout, frames[layout])
                if "seldom" in frames:  # for states that take a branch
                    kernel.then = module.kernel("seldom", frames["seldom"])
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

    def bound_launch(self, arguments: Any, out: Any, stream: int, states_last: bool) -> Launch:
        """A launch whose arrays can be moved, for those who launch it many times."""
        return Launch(self, tuple(arguments), out, stream, states_last)

    def _call(self, arguments, out, stream, states_last: bool):
        key = address_of = None
        if stream is None:
            key, address_of = dlpack.kinds(arguments, out)
        if key is not None:
            key = (states_last, out is None, key)
            repeat = self._repeats.get(key)
            if repeat is not None:
                return repeat(arguments, out, address_of)
        launch = Launch(self, arguments, out, stream, states_last)
        launch.run()
        result = launch.result
        if key is not None:
            if len(self._repeats) >= _MOST_REPEATS:
                self._repeats.clear()
            self._repeats[key] = Repeat(launch, len(arguments))
        return result
