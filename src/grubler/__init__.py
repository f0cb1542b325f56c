"""grubler: exact, extremely fast dynamics of robots with kinematic loops."""

from . import robots
from .algorithms import (
    bias_force,
    centroidal,
    energy,
    forward_dynamics,
    frame_acceleration_bias,
    frame_jacobian,
    frame_pose,
    from_spanning,
    generalized_force,
    inverse_dynamics,
    inverse_osim,
    kinematics,
    mass_matrix,
    spanning_map,
    spanning_state,
)
from .builder import ModelBuilder
from .errors import ClosureError, GrublerError, InputError, ModelError, PartitionError
from .model import Model

__version__ = "0.1.0"

__all__ = [
    "ClosureError", "GrublerError", "InputError", "Model", "ModelBuilder", "ModelError",
    "PartitionError", "bias_force", "centroidal", "energy", "forward_dynamics",
    "frame_acceleration_bias", "frame_jacobian", "frame_pose", "from_spanning",
    "generalized_force", "inverse_dynamics", "inverse_osim", "kinematics", "mass_matrix",
    "robots", "spanning_map", "spanning_state",
]  # fmt: skip
