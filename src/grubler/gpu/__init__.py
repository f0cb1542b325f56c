"""Compiled functions on an NVIDIA GPU: arrays of torch, CuPy or JAX in, the same out.

This folder stands alone: it needs NumPy and the GPU's driver, neither the compiler nor its
dependencies, and an exported bundle carries a copy of it.

    driver.py     the CUDA driver through ctypes: modules, launches, errors
    dlpack.py     arrays of any library: address, shape, strides, device, stream
    launch.py     a call's arrays checked once, launched many times
    function.py   `GpuFunction`: calls, tuning
    memory.py     arrays of our own on the GPU
    simulation.py a compiled step run on and on
    bundle.py     functions and simulations from an exported folder
"""

from .bundle import load, load_simulation
from .driver import available
from .errors import GpuError, InputError, SimulationError
from .function import GpuFunction
from .simulation import GpuSimulation, GpuTrajectory

__all__ = [
    "GpuError", "GpuFunction", "GpuSimulation", "GpuTrajectory", "InputError", "SimulationError",
    "available", "load", "load_simulation",
]  # fmt: skip
