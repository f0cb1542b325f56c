"""Tell what runs here: CPU, GPU, versions, the cache of compiled code."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import __version__
from ..compiler.backends.cpu import host as cpu
from ..compiler.runtime import cache
from ..gpu import GpuError, driver
from .common import json_argument, show

PACKAGES = {  # distribution -> what it is for
    "numpy": "", "casadi": "", "llvmlite": "",
    "mujoco": "MJCF files", "pyyaml": "YAML files", "xacro": "xacro files",
    "matplotlib": "pictures", "viser": "the viewer", "pin": "bench",
}  # fmt: skip
EXAMPLES = [
    ("grubler info", "what to name in a report of a fault"),
    ("grubler info --json", "the same, for a program"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    json_argument(parser)


def run(arguments: Any) -> int:
    host = cpu.host()
    data = {
        "grubler": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": host.name,
        "SIMD lanes": f"{host.lanes('float64')} fp64, {host.lanes('float32')} fp32",
        "gpu": gpus(),
        "cache": cache_state(),
    }
    for name, purpose in PACKAGES.items():
        try:
            data[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            data[name] = f"not installed (for {purpose})" if purpose else "not installed"
    show(data, arguments.json)
    return 0


def gpus() -> str:
    """The GPUs that the driver finds, or why there are none."""
    try:
        devices = [driver.Device(i) for i in range(driver.device_count())]
    except GpuError as error:
        return f"none: {error}"
    return ", ".join(f"{d.name} (sm_{d.capability})" for d in devices) or "none"


def cache_state() -> str:
    folder = cache.folder()
    if folder is None:
        return "off (GRUBLER_CACHE_DIR is empty)"
    if refused := cache.refusal(folder):
        return f"not used: {refused}"
    sizes = [path.stat().st_size for path in Path(folder).rglob("*.bin")]
    return f"{folder}, {len(sizes)} entries, {sum(sizes) / 2**20:.1f} MiB"
