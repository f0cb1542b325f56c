"""`CompiledFunction`: machine code for one function, called with NumPy arrays."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ..backends.cpu import native
from ..forks import in_child
from ..ir.tape import Array, OperationCount, Tape, count
from .arguments import (
    as_numbers,
    as_outputs,
    batch_size,
    check_number,
    overlaps,
    strides,
    written_once,
)
from .program import Program

if TYPE_CHECKING:
    from ...typing import ArrayLike


class CompiledFunction:
    """A function compiled to machine code.

    Call it with one state, each argument of its own shape, or with a batch, each argument with a
    leading axis of N states; in a batch an argument without that axis is the same for all. The
    outputs have the leading axis alike. Numbers of another dtype are converted, NaN passes
    through, and a state gives the same bits alone and in any batch.

    It may be called from several threads at once; batches run without the GIL.
    """

    name: str
    lanes: int

    def __init__(self, program: Program, name: str, lanes: int):
        self._program, self.name, self.lanes = program, name, lanes
        self.inputs: tuple[Array, ...] = program.inputs
        self.outputs: tuple[Array, ...] = program.outputs
        self.dtype: np.dtype = program.dtype
        self.__name__ = name
        self.__doc__ = program.doc
        self._single = len(self.outputs) == 1
        self._shapes = [array.shape for array in self.outputs]
        self._checked = self._checked_batch = _not_ready
        self._idle_scratch: list[np.ndarray] = []
        self._chain_scratch: list[np.ndarray] = []

    def __reduce__(self) -> tuple[type[CompiledFunction], tuple[Program, str, int]]:
        """Machine code is not pickled: another process finds it in the cache, or compiles it."""
        return CompiledFunction, (self._program, self.name, self.lanes)

    @property
    def tape(self) -> Tape:
        """The instructions behind the machine code."""
        return self._program.tape

    @property
    def operations(self) -> OperationCount:
        """The arithmetic of one evaluation."""
        return count(self.tape)

    def __repr__(self) -> str:
        def listed(arrays):
            return ", ".join(f"{a.name} {a.shape}" for a in arrays)

        return (
            f"<compiled {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, "
            f"{self.dtype}, {self.lanes} lanes>"
        )

    def __call__(self, *arguments: ArrayLike, out: Any = None, threads: int | None = None) -> Any:
        """The outputs for one state or for a batch; `threads` share a batch."""
        # Plain arrays: the generated code checks them itself.
        if out is None and threads is None:
            if self._single:
                result = self._checked(*arguments, np.empty(self._shapes[0], self.dtype))
                if result is not None:
                    return result
            else:
                targets = [np.empty(shape, self.dtype) for shape in self._shapes]
                if self._checked(*arguments, *targets) is not None:
                    return tuple(targets)
        if threads is None and self._checked_batch is not _not_ready:
            targets = self._batch_targets(arguments, out)
            if targets and self._checked_batch(*arguments, *targets) is not None:
                return targets[0] if self._single else tuple(targets)
        return self._call(arguments, out, threads, states_last=False)

    def _batch_targets(self, arguments, out):
        """Arrays for a batch's outputs, the number of states from the first argument."""
        if out is not None:
            return out if isinstance(out, (tuple, list)) else [out]
        first = arguments[0] if arguments else None
        if not isinstance(first, np.ndarray) or first.ndim <= len(self.inputs[0].shape):
            return None
        return [np.empty((len(first), *shape), self.dtype) for shape in self._shapes]

    def structure_of_arrays(
        self, *arguments: ArrayLike, out: Any = None, threads: int | None = None
    ) -> Any:
        """A batch with the states along the last axis: (n, N) instead of (N, n), outputs alike."""
        return self._call(arguments, out, threads, states_last=True)

    def prepare(self, *, one: bool = True, batch: bool = True) -> CompiledFunction:
        """Compile now what would be compiled at the first call of each kind."""
        if one:
            self._single_state_kernel()
        if batch:
            self._batch_kernel()
        return self

    def bind(
        self, *arguments: np.ndarray, out: Any = None, threads: int | None = None
    ) -> Callable[[], Any]:
        """A callable without arguments that computes on these very arrays and returns `out`.

        The arrays are checked once, here, and must be exact: nothing is converted or copied. A
        single state then costs tens of nanoseconds besides the arithmetic, and keeps the GIL; a
        batch releases it. Arrays are kept alive.
        """
        check_number(arguments, self.inputs, self.name)
        for value, array in zip(arguments, self.inputs):
            if not isinstance(value, np.ndarray) or value.dtype != self.dtype:
                found = getattr(value, "dtype", type(value).__name__)
                raise InputError(
                    f"bind needs argument '{array.name}' as a {self.dtype} array, not {found}: "
                    "convert it first, since the bound call reads it in place"
                )
        size = batch_size(arguments, self.inputs)
        shapes = [a.shape if size is None else (size, *a.shape) for a in self.outputs]
        if out is None:
            targets = [np.zeros(shape, self.dtype) for shape in shapes]
        else:
            targets = as_outputs(out, self.outputs, self.dtype, shapes)
        if (pair := overlaps(targets, arguments)) is not None:
            raise InputError(
                f"out for '{self.outputs[pair[0]].name}' overlaps argument "
                f"'{self.inputs[pair[1]].name}': give the bound call an array of its own"
            )
        result = targets[0] if self._single else tuple(targets)
        if size is None:
            return self._bind_one(arguments, targets, result)
        return self._bind_batch(arguments, targets, result, size, threads)

    def _bind_one(self, arguments, targets, result):
        arrays = (*self.inputs, *self.outputs)
        for value, array in zip((*arguments, *targets), arrays):
            if not (value.flags.c_contiguous and value.flags.aligned):
                raise InputError(
                    f"bind needs '{array.name}' contiguous: pass np.ascontiguousarray of it, and "
                    "write new values into that array"
                )
        kernel = self._single_state_kernel()
        alive = (*arguments, *targets)
        addresses = [value.ctypes.data for value in alive]
        again = (self, arguments, result, None)
        if native.AVAILABLE:
            code = kernel.library.address("bound")
            return native.bound(code, self.name, addresses, result, (alive, kernel), again)
        table = np.array(addresses, dtype=np.uint64)
        return _Bound(functools.partial(kernel.one, table.ctypes.data), table, again)

    def _bind_batch(self, arguments, targets, result, size, threads):
        table = self._table(arguments, targets, size)
        if table is None:
            raise InputError(
                "bind needs arrays whose elements are evenly spaced in memory: pass "
                "np.ascontiguousarray of each, and write new values into those"
            )
        pieces = self._pieces(size, threads)
        scratch = [self._program.scratch(self.lanes) for _ in pieces]
        if native.AVAILABLE and len(pieces) == 1:
            kernel = self._batch_kernel()
            alive = (arguments, targets, table, scratch, kernel)
            places = table.ctypes.data, size, scratch[0].ctypes.data
            code = kernel.library.address("bound_batch")
            again = (self, arguments, result, threads)
            return native.bound_batch(code, self.name, *places, result, alive, again)
        run = functools.partial(self._run, table, pieces, scratch)
        return _Bound(run, targets, (self, arguments, result, threads))

    def chain(self, arguments: Any, targets: Any, count: int) -> None:
        """Compute `count` states one after the other, each when the one before is written.

        Outputs may be what the next state reads: rows of the same arrays, one further on. Arrays
        have a leading axis of states; arguments without it are the same for all. No array is
        checked.
        """
        table = self._table(arguments, targets, count)
        try:
            scratch = self._chain_scratch.pop()  # atomic: threads never share one
        except IndexError:
            scratch = self._program.scratch(1)
        self._program.kernel(1).batch(table.ctypes.data, 0, count, scratch.ctypes.data)
        self._chain_scratch.append(scratch)

    def _single_state_kernel(self):
        kernel = self._program.kernel(1)
        if native.AVAILABLE and self._checked is _not_ready:
            code = kernel.library.address("checked")
            self._checked = native.checked(code, self.name, self.dtype, (kernel,))
        return kernel

    def _batch_kernel(self):
        kernel = self._program.kernel(self.lanes)
        if native.AVAILABLE and self._checked_batch is _not_ready:
            code = kernel.library.address("checked_batch")
            if code:
                self._checked_batch = native.checked(code, self.name, self.dtype, (kernel,))
        return kernel

    def _call(self, arguments, out, threads, states_last: bool):
        check_number(arguments, self.inputs, self.name)
        given = [as_numbers(v, a, self.dtype) for v, a in zip(arguments, self.inputs)]
        if states_last:
            given = [
                np.moveaxis(v, -1, 0) if v.ndim == len(a.shape) + 1 else v
                for v, a in zip(given, self.inputs)
            ]
        size = batch_size(given, self.inputs)
        shapes = [a.shape if size is None else (size, *a.shape) for a in self.outputs]
        if states_last and size is not None:
            shapes = [(*shape[1:], size) for shape in shapes]
        if out is None:
            final = [np.empty(shape, self.dtype) for shape in shapes]
            targets = final
        else:
            final = as_outputs(out, self.outputs, self.dtype, shapes)
            targets = self._safe_targets(final, given, size is None)
        if size is None:
            self._compute_one(given, targets)
        else:
            seen = [np.moveaxis(t, -1, 0) for t in targets] if states_last else targets
            self._compute_batch(given, seen, size, threads)
        for target, wanted in zip(targets, final):
            if target is not wanted:
                wanted[...] = target
        return final[0] if self._single else tuple(final)

    def _safe_targets(self, final, given, one: bool):
        """The arrays to compute into: those given, or copies where memory is shared."""
        if overlaps(final, given) is not None:
            return [np.empty(t.shape, self.dtype) for t in final]
        return [
            t if t.flags.aligned and (t.flags.c_contiguous or (not one and written_once(t)))
            else np.empty(t.shape, self.dtype)
            for t in final
        ]  # fmt: skip

    def _compute_one(self, given, targets) -> None:
        kernel = self._single_state_kernel()
        alive = [np.ascontiguousarray(v) for v in given] + targets
        addresses = np.array([v.ctypes.data for v in alive], dtype=np.uint64)
        kernel.one(addresses.ctypes.data)

    def _compute_batch(self, given, targets, size: int, threads) -> None:
        pieces = self._pieces(size, threads)
        if size == 0:
            return
        given = [
            v if strides(v, a, v.ndim > len(a.shape)) is not None else np.ascontiguousarray(v)
            for v, a in zip(given, self.inputs)
        ]
        computed = [
            t if strides(t, a, True) is not None else np.empty(t.shape, self.dtype)
            for t, a in zip(targets, self.outputs)
        ]
        scratch = [self._take_scratch() for _ in pieces]
        self._run(self._table(given, computed, size), pieces, scratch)
        self._idle_scratch.extend(scratch)
        for target, value in zip(targets, computed):
            if value is not target:
                target[...] = value

    def _take_scratch(self) -> np.ndarray:
        try:
            return self._idle_scratch.pop()  # atomic: threads never share one
        except IndexError:
            return self._program.scratch(self.lanes)

    def _table(self, given, targets, size: int) -> np.ndarray | None:
        """Addresses and strides of all arrays, as the batch loop reads them."""
        rows = []
        arrays = (*self.inputs, *self.outputs)
        for i, (value, array) in enumerate(zip((*given, *targets), arrays)):
            batched = i >= len(self.inputs) or value.ndim > len(array.shape)
            steps = strides(value, array, batched)
            if steps is None:
                return None
            rows.append((value.ctypes.data, *steps))
        return np.array(rows, dtype=np.int64)

    def _pieces(self, size: int, threads: int | None) -> list[tuple[int, int]]:
        """Ranges of states, one a thread, cut at whole blocks."""
        if threads is None:
            threads = 1
        if not isinstance(threads, (int, np.integer)) or isinstance(threads, bool) or threads < 1:
            raise InputError(f"threads is {threads!r}: give a whole number, at least 1")
        blocks = -(-size // self.lanes)
        step = max(1, -(-blocks // threads)) * self.lanes
        return [(i, min(i + step, size)) for i in range(0, size, step)]

    def _run(self, table: np.ndarray | None, pieces, scratch) -> None:
        code, at = self._batch_kernel().batch, table.ctypes.data
        work = [
            (at, start, stop, memory.ctypes.data) for (start, stop), memory in zip(pieces, scratch)
        ]
        # The calling thread takes the last piece, the shortest.
        waiting = [_pools.of(len(work)).submit(code, *piece) for piece in work[:-1]]
        if work:
            code(*work[-1])
        for future in waiting:
            future.result()


class _Bound:
    """A bound call where Python makes it: `run` fills the arrays of `again`."""

    def __init__(self, run, alive, again):
        self._run, self._alive, self._again = run, alive, again
        self._result = again[2]

    def __call__(self):
        self._run()
        return self._result

    def __reduce__(self):
        return bind_again, self._again


def bind_again(
    function: CompiledFunction, arguments: Any, out: Any, threads: int | None
) -> Callable[..., Any]:
    """The bound call that was pickled, on the arrays that came with it."""
    return function.bind(*arguments, out=out, threads=threads)


def _not_ready(*_):
    """Stands in for a checked call until its kernel exists."""
    return None


class _Pools:
    """Pools of threads by their size; a forked child has none of the threads and makes its own."""

    def __init__(self):
        self._renew()
        in_child(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._by_size: dict[int, ThreadPoolExecutor] = {}

    def of(self, threads: int) -> ThreadPoolExecutor:
        with self._lock:
            if threads not in self._by_size:
                pool = ThreadPoolExecutor(threads, thread_name_prefix="grubler")
                self._by_size[threads] = pool
            return self._by_size[threads]


_pools = _Pools()
