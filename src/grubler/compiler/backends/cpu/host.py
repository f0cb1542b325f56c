"""The CPU target: LLVM IR to object code, object code to callable addresses.

No middle-end pass runs: the tape's own passes have done that work, and code generation alone is
what keeps compilation short.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm

from ....errors import InputError
from ...forks import hold, uninterrupted

# llvmlite's own lock is taken when the garbage collector frees a module, too, at any time.
hold(llvm.ffi.lib._lock)

OPTIMIZATION = 2  # of code generation: scheduling and register allocation


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def _initialize_all() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@dataclass(frozen=True)
class Cpu:
    """A processor as LLVM names it."""

    triple: str
    name: str
    features: str
    vector_bytes: int  # of the widest registers

    def lanes(self, dtype: str) -> int:
        """How many numbers fill a vector register."""
        return max(1, self.vector_bytes // {"float64": 8, "float32": 4}[dtype])

    @property
    def digest(self) -> str:
        text = f"{self.triple} {self.name} {self.features} llvmlite {llvmlite.__version__}"
        return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def host() -> Cpu:
    """The processor that this process runs on."""
    _initialize()
    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    if features.get("avx512f"):
        width = 64
    elif features.get("avx"):
        width = 32
    else:
        width = 16  # SSE2, NEON
    return Cpu(triple, llvm.get_host_cpu_name(), features.flatten(), width)


def _machine(cpu: Cpu, jit: bool) -> llvm.TargetMachine:
    try:
        target = llvm.Target.from_triple(cpu.triple)
    except RuntimeError as error:
        raise InputError(
            f"no code generator for the triple '{cpu.triple}' ({error}): "
            "give one such as 'x86_64-linux-gnu' or 'aarch64-linux-gnu'"
        ) from error
    return target.create_target_machine(
        cpu=cpu.name,
        features=cpu.features,
        opt=OPTIMIZATION,
        reloc="pic",
        codemodel="small" if jit else "default",
        jit=jit,
    )


@uninterrupted()
def object_code(ir: str, cpu: Cpu | None = None) -> bytes:
    """Machine code of an IR module: for this process, or for another processor to link."""
    if cpu is None:
        _initialize()
    else:
        _initialize_all()
    machine = _machine(cpu or host(), jit=cpu is None)
    # A context of its own frees the module's types and lets threads compile side by side.
    context = llvm.create_context()
    module = llvm.parse_assembly(ir, context=context)
    module.triple = (cpu or host()).triple
    return machine.emit_object(module)


_engines = threading.Lock()  # the global context takes one thread at a time


class Library:
    """Object code loaded into this process."""

    @uninterrupted()
    def __init__(self, code: bytes):
        _initialize()
        # The engine's empty module lives in the global context, which is never freed: the garbage
        # collector may finalize a context of its own before the engine that still needs it.
        with _engines:
            empty = llvm.parse_assembly("")
            self._engine = llvm.create_mcjit_compiler(empty, _machine(host(), jit=True))
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function, or 0."""
        return self._engine.get_function_address(name)
