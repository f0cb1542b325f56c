"""Errors of the GPU runtime; within the package they are grubler's own."""

from __future__ import annotations

from typing import Any

try:
    from ..errors import GrublerError, InputError
except ImportError:  # in a bundle this folder stands alone

    class GrublerError(ValueError):
        """Base of every error that this library raises on bad input."""

    class InputError(GrublerError):
        """An argument has the wrong shape, type or value."""


class GpuError(GrublerError):
    """The GPU or its driver is missing, too old, out of memory, or failed."""


class SimulationError(GrublerError):
    """The simulation stopped early; `trajectory` holds all states up to there."""

    def __init__(self, message: str, trajectory: Any):
        super().__init__(message)
        self.trajectory = trajectory


__all__ = ["GpuError", "GrublerError", "InputError", "SimulationError"]
