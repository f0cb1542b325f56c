"""A function's kernels as one module, and PTX of it.

PTX is text that the driver assembles for its GPU: no CUDA toolkit is needed, here or there.
"""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from ....errors import InputError, unknown
from ...forks import uninterrupted
from ...ir.tape import Tape
from ...passes.seldom import branches, usual
from ..cpu.host import _initialize_all
from ..llvm.emitter import SCALAR
from .emitter import SHARED
from .ptx import Kernel, Plan
from .seldom import SeldomKernel

TRIPLE = "nvptx64-nvidia-cuda"
LAYOUT = "e-p6:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
# Architectures with the asynchronous copies used here, and the PTX version that each needs. Code
# for one runs on every later one.
ARCHITECTURES = {
    "sm_80": 83, "sm_86": 83, "sm_87": 83, "sm_89": 83, "sm_90": 83, "sm_100": 86, "sm_120": 87,
}  # fmt: skip


def module(tape: Tape, dtype: str, plans: dict[str, Plan]) -> tuple[str, dict[str, dict[Any, Any]]]:
    """The IR of a kernel for each layout, and the threads and shared bytes of a block of each."""
    kernels = [Kernel(usual(tape), dtype, plan, layout) for layout, plan in plans.items()]
    if branches(tape):
        kernels.append(SeldomKernel(tape, dtype))
    texts = [kernel.text() for kernel in kernels]
    declared = {line for kernel in kernels for line in kernel.e.declared.values()}
    ir = "\n".join([
        f'target triple = "{TRIPLE}"',
        f'target datalayout = "{LAYOUT}"',
        f"@memory = external {SHARED} global [0 x {SCALAR[dtype]}], align 16",
        *(kernel.e.constant_table() for kernel in kernels),
        *sorted(declared),
        *texts,
    ])  # fmt: skip
    return ir, {kernel.layout: kernel.frame for kernel in kernels}


@functools.cache
def _target() -> llvm.Target:
    _initialize_all()
    return llvm.Target.from_triple(TRIPLE)


def checked_arch(arch: str) -> str:
    """The architecture's name, where there is code for it."""
    if arch not in ARCHITECTURES:
        raise InputError(unknown("GPU architecture", arch, ARCHITECTURES))
    return arch


@uninterrupted()
def assemble(ir: str, arch: str, middle: int) -> str:
    """PTX of an IR module."""
    features = f"+ptx{ARCHITECTURES[checked_arch(arch)]}"
    machine = _target().create_target_machine(cpu=arch, features=features, opt=2)
    parsed = llvm.parse_assembly(ir, context=llvm.create_context())
    if middle:
        options = llvm.create_pipeline_tuning_options(speed_level=middle)
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(parsed, builder)
    return machine.emit_assembly(parsed)
