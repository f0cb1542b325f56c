"""Timing of small calls on a machine that others use, too: rounds interleaved, the best kept."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable

import numpy as np


def interleaved(
    calls: dict[str, Callable], rounds: int = 15, seconds: float = 0.01
) -> dict[str, float]:
    """Seconds a call of each, the best of several rounds that take turns: a slow spell of the
    machine falls on all of them."""
    repeats, best = {}, {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        once = max(time.perf_counter() - start, 1e-8)
        repeats[name] = max(1, min(100_000, int(seconds / once)))
        best[name] = np.inf
    for _ in range(rounds):
        for name, call in calls.items():
            count = range(repeats[name])
            start = time.perf_counter()
            for _ in count:
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats[name])
    return best


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
