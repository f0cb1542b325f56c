"""What the figures were measured with, and on."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Hashable

import numpy as np

from grubler.cli.timing import interleaved

__all__ = ["COPIES", "best", "copied", "interleaved", "machine"]

# Of each code, the best of which counts: with its place in memory its time varies by 5 %, and by
# two to four times for about one in fifty, some of whose pages a processor cannot keep side by side
# in its instruction cache.
COPIES = 3


def copied(label: Hashable, make: Callable[..., Callable], *given) -> dict[tuple, Callable]:
    """Calls of some copies of a code, each made anew by make(*given), by (label, copy)."""
    return {(label, copy): make(*given) for copy in range(COPIES)}


def best(seconds: dict[tuple, float]) -> dict:
    """Of the copies of each call, (label, copy), the least."""
    found: dict = {}
    for (label, _), x in seconds.items():
        found[label] = min(x, found.get(label, x))
    return found


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
