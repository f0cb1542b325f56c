"""`CudaFunction`: a function compiled for NVIDIA GPUs, with its tape behind it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np

from ...errors import InputError, unknown
from ...gpu import GpuFunction
from ..backends.gpu import module as ptx_module
from ..backends.gpu.plans import plans
from ..frontend.trace import name_of
from ..ir.tape import OperationCount, Tape, count
from ..log import stage
from ..passes.seldom import usual
from . import cache
from .program import Program


class CudaFunction(GpuFunction):
    """PTX for a function, made when first needed and kept on disk.

    Several plans of registers and memory are worth trying for a robot; the first candidate is
    the one to expect most of, and `tune` measures them all and keeps the best.
    """

    def __init__(self, program: Program, name: str, arch: str):
        self._program = program
        self._made: dict[int, tuple[str, dict[Any, Any]]] = {}
        signature = {
            "name": name,
            "dtype": program.dtype.name,
            "arch": ptx_module.checked_arch(arch),
            "inputs": [[a.name, a.shape] for a in program.inputs],
            "outputs": [[a.name, a.shape] for a in program.outputs],
            "candidates": _Plans(program),
        }
        super().__init__(signature)
        self._choice = cache.digest("choice", program.digest, self.dtype, arch, _sources())
        known = cache.read(self._choice)
        if known is not None:
            self.chosen.update(json.loads(known))

    def __reduce__(
        self,
    ) -> tuple[type[CudaFunction], tuple[Program, str, str], dict[str, dict[str, int]]]:
        """The code itself is made, or found in the cache, where it is used."""
        return CudaFunction, (self._program, self.name, self.arch), {"chosen": self.chosen}

    @property
    def tape(self) -> Tape:
        """The instructions behind the code."""
        return self._program.tape

    @property
    def operations(self) -> OperationCount:
        """The arithmetic of one evaluation."""
        return count(self.tape)

    def ptx(self, candidate: int = 0) -> str:
        """The PTX of a candidate."""
        return self._make(candidate)[0]

    def frames(self, candidate: int) -> dict[str, dict[str, int]]:
        return self._make(candidate)[1]

    def tune(self, *arguments: Any, **options: Any) -> dict[int, float]:
        times = super().tune(*arguments, **options)
        cache.write(self._choice, json.dumps(self.chosen).encode())
        return times

    def _make(self, candidate: int) -> tuple[str, dict[Any, Any]]:
        if candidate not in self._made:
            self._made[candidate] = self._load_or_make(candidate)
        return self._made[candidate]

    def _load_or_make(self, candidate: int) -> tuple[str, dict[Any, Any]]:
        program, version = self._program, llvmlite.__version__
        name = cache.digest(
            "ptx", program.digest, self.dtype, self.arch, candidate, version, _sources()
        )
        known = cache.read(name)
        if known is not None:
            text, frames = json.loads(known)
            return text, frames
        plan = self.candidates[candidate]
        with stage(f"emit for {self.arch}", program.tape.total):
            ir, frames = ptx_module.module(program.tape, self.dtype, plan)
        with stage(f"compile for {self.arch}", program.tape.total):
            text = ptx_module.assemble(ir, self.arch, plan["columns"].middle)
        cache.write(name, json.dumps([text, frames]).encode())
        return text, frames


def compile_cuda(
    fn: Callable[..., Any],
    shapes: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dtype: str = "float64",
    name: str | None = None,
    arch: str = "sm_90",
    key: str | None = None,
) -> CudaFunction:
    """GPU code for a NumPy function; arguments as in `compile_function`."""
    try:
        checked = np.dtype(dtype)
    except TypeError:
        checked = None
    if checked is None or checked.name not in ("float64", "float32") or not checked.isnative:
        raise InputError(unknown("dtype", dtype, ["float64", "float32"]))
    ptx_module.checked_arch(arch)
    program = Program(
        fn, shapes, names=names, output_names=output_names, dtype=checked, key=key, chains=False
    )
    return CudaFunction(program, name or name_of(fn).replace("<lambda>", "f"), arch)


class _Plans:
    """The plans of a program, looked up when asked: most calls need no tape at all."""

    def __init__(self, program: Program):
        self._program, self._plans = program, None

    def _list(self) -> list[dict[Any, Any]]:
        if self._plans is None:
            self._plans = plans(usual(self._program.tape), self._program.dtype.name)
        return self._plans

    def __len__(self) -> int:
        return len(self._list())

    def __getitem__(self, index: int):
        return self._list()[index]


def _sources() -> str:
    return cache.sources("compiler")


_LOADER = '''"""Loads the functions of this folder: needs NumPy and an NVIDIA driver, nothing else.

    import grubler_bundle
    f = grubler_bundle.load("NAME")     # the name may be left out where there is one
    qdd = f(q, v, tau)                  # torch, CuPy or JAX arrays on the GPU
"""

import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
if str(_FOLDER) not in sys.path:
    sys.path.insert(0, str(_FOLDER))

from grubler_gpu import GpuError, GpuFunction, InputError, SimulationError  # noqa: E402, F401
from grubler_gpu import available  # noqa: E402, F401
from grubler_gpu import load as _load  # noqa: E402
from grubler_gpu import load_simulation as _load_simulation  # noqa: E402
from grubler_gpu.bundle import save_choice as _save_choice  # noqa: E402


def load(name=None) -> GpuFunction:
    """A function of this folder."""
    return _load(_FOLDER, name)


def load_simulation(name=None, batch=None):
    """A simulation of this folder, of as many robots as it was exported for, or of `batch`:
    `load_simulation("NAME").run(q, v, controller, steps)`."""
    return _load_simulation(_FOLDER, name, batch)


def save_choice(function: GpuFunction) -> None:
    """Keep the candidate that `function.tune(...)` found fastest."""
    _save_choice(_FOLDER, function)
'''


def export_bundle(
    compiled: Any, folder: Any, name: str, candidates: int | None = 1,
    simulation: dict[Any, Any] | None = None,
) -> list[Path]:  # fmt: skip
    """Write PTX, a JSON signature and the loader; `candidates`: how many plans, None for all;
    `simulation`: what a run of a step needs to know besides."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written, listed = [], []
    kept = sorted(set(compiled.chosen.values()))
    number = len(compiled.candidates) if candidates is None else candidates
    kept += [i for i in range(len(compiled.candidates)) if i not in kept]
    kept = kept[: max(number, len(set(compiled.chosen.values())))]
    for place, index in enumerate(kept):
        path = folder / f"{name}.{place}.ptx"
        path.write_text(compiled.ptx(index))
        written.append(path)
        described = {layout: asdict(plan) for layout, plan in compiled.candidates[index].items()}
        frames = compiled.frames(index)
        listed.append({"file": path.name, "kernels": frames, "plans": described})
    signature = {
        "name": name, "dtype": compiled.dtype, "arch": compiled.arch,
        "inputs": compiled.inputs, "outputs": compiled.outputs, "candidates": listed,
        "chosen": {layout: kept.index(index) for layout, index in compiled.chosen.items()},
    }  # fmt: skip
    if simulation is not None:
        signature["simulation"] = simulation
    path = folder / f"{name}.json"
    path.write_text(json.dumps(signature, indent=1) + "\n")
    loader = folder / "grubler_bundle.py"
    loader.write_text(_LOADER)
    runtime = Path(__file__).parents[2] / "gpu"
    shutil.copytree(
        runtime, folder / "grubler_gpu", dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )  # fmt: skip
    return [*written, path, loader]
