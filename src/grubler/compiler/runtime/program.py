"""A program: one function for one dtype, and its kernels, compiled when first needed.

A kernel is the machine code for a number of lanes. The single-state kernel has one lane, the
batch kernel as many as the processor's registers hold; a user of one never waits for the other.
"""

from __future__ import annotations

import ctypes
import json
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...algebra.symbolic import VERSION
from ...errors import InputError
from ..backends.cpu import batch, native
from ..backends.cpu import host as cpu
from ..backends.cpu.batch_seldom import marked_states
from ..backends.llvm.emitter import BLOCK, KEPT
from ..backends.llvm.lower import emitted, lower, text_of
from ..forks import uninterrupted
from ..frontend.trace import argument_names, checked_shapes, name_of, trace
from ..ir.tape import Array, Tape
from ..log import stage
from ..passes.cost import fits, waits
from ..passes.limbs import side_by_side
from ..passes.schedule import asked_first, spread
from ..passes.seldom import branches, seldom, usual
from ..passes.simplify import optimize
from . import cache, elf

_BATCH = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)  # a call through it releases the GIL
_ONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Kernel:
    """Machine code of a program for a number of lanes, loaded."""

    def __init__(self, code: bytes, lanes: int):
        self.library: Any = cpu.Library(code)
        needed = ["batch", *(["one"] if lanes == 1 else [])]
        if native.AVAILABLE:
            needed += ["bound_batch", *(["bound", "checked"] if lanes == 1 else [])]
        if missing := [name for name in needed if not self.library.address(name)]:
            raise RuntimeError(f"the object file has no function '{missing[0]}'")
        self.batch: Any = _BATCH(self.library.address("batch"))
        self.one_address: int = self.library.address("one")
        self.one: Any = _ONE(self.one_address) if self.one_address else None


class Program:
    """A function on its way to machine code."""

    fn: Callable[..., Any]
    dtype: Any
    inputs: tuple[Array, ...]

    def __init__(
        self,
        fn: Callable[..., Any],
        shapes: Any,
        *,
        names: Any = None,
        output_names: Sequence[str] | None = None,
        dtype: np.dtype,
        key: str | None = None,
        chains: bool = True,
    ):
        self.fn, self.dtype, self._chains = fn, dtype, chains
        self.doc: Any = getattr(fn, "__doc__", None)
        self.shapes: list[tuple[int, ...]] = checked_shapes(shapes, names)
        self.names: list[str] = (
            list(names) if names is not None else argument_names(fn, len(self.shapes))
        )
        self.output_names = output_names
        self._lock = threading.RLock()
        self._kernels: dict[int, Kernel] = {}
        self._tape: Tape | None = None
        self.digest: str | None = None  # of the tape
        self._load_or_trace(key)

    def __getstate__(self) -> dict[Any, Any]:
        """Everything but the machine code, which the other process finds in the cache or compiles:
        the function where pickle can, or else its tape."""
        state = self.__dict__ | {"_lock": None, "_kernels": {}}
        try:
            pickle.dumps(self.fn)
        except Exception:  # pickle raises errors of many kinds
            return state | {"fn": None, "_tape": self.tape}
        return state if self.fn is None else state | {"_tape": None}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _load_or_trace(self, key: str | None) -> None:
        """Learn the outputs and the tape's digest, from the cache where a key leads there."""
        entry = None
        if key is not None:
            about = (key, self.dtype, self.shapes, self.names, self._chains)
            entry = cache.digest("signature", *about, cache.sources(), VERSION, np.__version__)
            with stage("signature from cache"):
                known = _signature(cache.read(entry))
            if known:
                self.inputs, self.outputs, self.digest = known
                self._name_outputs()
                return
        tape = self.tape
        self.inputs, self.outputs, self.digest = tape.inputs, tape.outputs, tape.digest()
        if entry:
            listed = [[[a.name, a.shape] for a in arrays] for arrays in (self.inputs, self.outputs)]
            cache.write(entry, json.dumps([*listed, self.digest]).encode())
        self._name_outputs()

    def _name_outputs(self) -> None:
        if self.output_names is not None and len(self.output_names) == len(self.outputs):
            self.outputs: tuple[Array, ...] = tuple(
                Array(n, a.shape) for n, a in zip(self.output_names, self.outputs)
            )

    @property
    def tape(self) -> Tape:
        """The optimized tape; traced now if the cache spared us so far."""
        with uninterrupted(), self._lock:
            if self._tape is None:
                traced = trace(self.fn, self.shapes, self.names, self.dtype)
                tape = optimize(traced, self._chains)
                if self.digest not in (None, tape.digest()):
                    raise InputError(
                        f"'{name_of(self.fn)}' computes something else than when its key was used "
                        "first: give another key, one for each version of the function"
                    )
                self._tape = tape
            return self._tape

    def kernel(self, lanes: int) -> Kernel:
        """The machine code for a number of lanes."""
        kernel = self._kernels.get(lanes)
        if kernel is None:
            with uninterrupted(), self._lock:
                kernel = self._kernels.get(lanes)
                if kernel is None:
                    kernel = self._kernels[lanes] = self._build(lanes)
        return kernel

    def _build(self, lanes: int) -> Kernel:
        name = cache.digest(
            "object", self.digest, self.dtype, lanes, cpu.host().digest, cache.sources("compiler")
        )
        kernel = self._from_cache(name, lanes)
        if kernel is not None:
            return kernel
        tape = self.tape
        with stage(f"emit for {lanes} lanes", tape.total):
            ir = module(tape, self.dtype.name, lanes)
        with stage(f"compile for {lanes} lanes", tape.total):
            code = cpu.object_code(ir)
        cache.write(name, code)
        with stage("load"):
            return Kernel(code, lanes)

    @staticmethod
    def _from_cache(name: str, lanes: int) -> Kernel | None:
        code = cache.read(name)
        if code is None:
            return None
        if elf.damage(code) is None:
            with stage(f"load code for {lanes} lanes from cache"):
                try:
                    return Kernel(code, lanes)
                except RuntimeError:  # LLVM cannot read it, or a function is missing
                    pass
        cache.discard(name)
        return None

    def scratch(self, lanes: int) -> np.ndarray:
        """Memory for one thread's blocks, aligned to whole vectors."""
        size = batch.scratch_size((*self.inputs, *self.outputs), lanes)
        alignment = max(64, lanes * self.dtype.itemsize)
        raw = np.empty(size * self.dtype.itemsize + alignment, dtype=np.uint8)
        offset = -raw.ctypes.data % alignment
        return raw[offset:]


def single_width(dtype: str) -> int:
    """How many angles a single state's kernel takes together: half the widest registers, since
    with so few vectors the widest ones slow the clock more than they help."""
    return min(cpu.host().lanes(dtype), 32 // np.dtype(dtype).itemsize)


def arranged(tape: Tape, dtype: str, lanes: int) -> tuple[Tape, int, bool]:
    """The tape in the order that suits a number of lanes, how long its blocks may be, and whether
    LLVM keeps that order."""
    if lanes == 1:
        tape = side_by_side(tape, 32 // np.dtype(dtype).itemsize)
    single, written = lanes == 1, sum(array.size for array in tape.outputs)
    held = single and written <= batch.FEW
    # Vectors that wait in memory cost more than numbers, and so do many results.
    if fits(tape) and (waits(tape) or held):
        return spread(tape, single, asked_first(tape) if single else frozenset()), KEPT, held
    return tape, BLOCK, False


def module(tape: Tape, dtype: str, lanes: int) -> str:
    """The IR of everything that a kernel needs."""
    calls = native.batch_calls(
        tape, dtype, batch.scratch_size((*tape.inputs, *tape.outputs), lanes)
    )
    if lanes > 1 and branches(tape):
        cores = []
        for name, part in (("core", usual(tape)), ("core_seldom", seldom(tape))):
            part, *order = arranged(part, dtype, lanes)
            cores.append(emitted(name, part, dtype, lanes, single_width(dtype), *order))
        loop = batch.batch_loop(tape, dtype, lanes, "usual")
        marked = marked_states(tape, dtype, lanes)
        return "\n".join([text_of(dtype, lanes, *cores), loop, marked, calls])
    tape, *order = arranged(tape, dtype, lanes)
    parts = [lower(tape, dtype, lanes, single_width(dtype), *order)]
    parts += [batch.batch_loop(tape, dtype, lanes), calls]
    if lanes == 1:
        parts += [batch.single_state(tape), native.single_calls(tape)]
    return "\n".join(parts)


def _signature(data: bytes | None):
    """(inputs, outputs, digest) from a cache entry, or None."""
    if data is None:
        return None
    try:
        inputs, outputs, digest = json.loads(data)
        arrays = [tuple(_array(*entry) for entry in part) for part in (inputs, outputs)]
    except (ValueError, TypeError):
        return None
    return (*arrays, digest) if isinstance(digest, str) else None


def _array(name: str, shape: list[int]) -> Array:
    if type(name) is not str or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError("no array")
    return Array(name, tuple(shape))
