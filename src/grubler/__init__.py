"""grubler: exact, extremely fast dynamics of robots with kinematic loops."""

from . import robots
from .algorithms import (
    assemble,
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
from .compiled import casadi_function, compile, count_operations
from .compiler import export, iterate
from .errors import ClosureError, GrublerError, InputError, ModelError, PartitionError
from .formats import convert, load, save
from .model import Model
from .parameters import parameter_values, with_parameters
from .sim import Passive, SimulationError, Simulator, Trajectory

__version__ = "0.1.0"

__all__ = [
    "ClosureError", "GrublerError", "InputError", "Model", "ModelBuilder", "ModelError",
    "PartitionError", "Passive", "SimulationError", "Simulator", "Trajectory", "assemble",
    "bias_force", "casadi_function", "centroidal", "compile", "convert", "count_operations",
    "energy", "export", "forward_dynamics", "frame_acceleration_bias", "frame_jacobian",
    "frame_pose", "from_spanning", "generalized_force", "inverse_dynamics", "inverse_osim",
    "iterate", "kinematics", "load", "mass_matrix", "parameter_values", "robots", "save",
    "spanning_map", "spanning_state", "with_parameters",
]  # fmt: skip
