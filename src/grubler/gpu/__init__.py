"""Compiled functions on an NVIDIA GPU: arrays of torch, CuPy or JAX in, the same out.

This folder stands alone: it needs NumPy and the GPU's driver, neither the compiler nor its
dependencies, and an exported bundle carries a copy of it.

    driver.py     the CUDA driver through ctypes: modules, launches, errors
    dlpack.py     arrays of any library: address, shape, strides, device, stream
    function.py   `GpuFunction`: checks, launches, tuning
    bundle.py     functions from an exported folder
"""

from .bundle import load
from .driver import available
from .errors import GpuError, InputError
from .function import GpuFunction

__all__ = ["GpuError", "GpuFunction", "InputError", "available", "load"]
