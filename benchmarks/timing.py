"""What the figures were measured with, and on."""

from __future__ import annotations

import os
import platform

import numpy as np

from grubler.cli.timing import interleaved

__all__ = ["interleaved", "machine"]


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    import casadi
    import llvmlite

    import grubler

    out = {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "casadi": casadi.__version__,
        "llvmlite": llvmlite.__version__,
        "grubler": grubler.__version__,
        "flags": "LLVM code generation at level 2 for the host CPU, fp contract, no fast-math",
    }
    for module in ("pinocchio", "mujoco"):
        try:
            out[module] = __import__(module).__version__
        except ImportError:
            out[module] = "not installed"
    return out


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as info:
            lines = info.read().splitlines()
    except OSError:
        return platform.processor()
    fields = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    wide = "AVX-512" if "avx512f" in fields.get("flags", "") else "no AVX-512"
    return f"{fields.get('model name', '?')}, family {fields.get('cpu family')} model " \
           f"{fields.get('model')}, {wide}"  # fmt: skip
