"""grubler: exact, extremely fast dynamics of robots with kinematic loops."""

from . import robots
from .actuation import (
    actuator_effort,
    actuator_inertia,
    actuator_map,
    actuator_state,
    effort_from_force,
    force_from_effort,
    motion_from_actuators,
)
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
    kinematics,
    mass_matrix,
    spanning_map,
    spanning_state,
)
from .builder import ModelBuilder
from .check import Report, check
from .compiled import casadi_function, compile, count_operations
from .compiler import export, iterate
from .constrained import (
    ClosedChain,
    Closure,
    Constraint,
    constrained_forward_dynamics,
    inverse_osim,
    operators,
    solve_osim,
)
from .errors import ClosureError, GrublerError, InputError, ModelError, PartitionError
from .formats import convert, load, save
from .model import Model
from .parameters import parameter_values, with_parameters
from .repartition import (
    analytic,
    convert_acceleration,
    convert_configuration,
    convert_force,
    convert_velocity,
    numeric,
    repartition,
)
from .sim import Passive, SimulationError, Simulator, Trajectory
from .view import view

__version__ = "0.1.0"

__all__ = [
    "ClosedChain", "Closure", "ClosureError", "Constraint", "GrublerError", "InputError", "Model",
    "ModelBuilder", "ModelError", "PartitionError", "Passive", "Report", "SimulationError",
    "Simulator", "Trajectory", "actuator_effort", "actuator_inertia", "actuator_map",
    "actuator_state", "analytic", "assemble", "bias_force", "casadi_function", "centroidal",
    "check", "compile", "constrained_forward_dynamics", "convert", "convert_acceleration",
    "convert_configuration", "convert_force", "convert_velocity", "count_operations",
    "effort_from_force", "energy", "export", "force_from_effort", "forward_dynamics",
    "frame_acceleration_bias", "frame_jacobian", "frame_pose", "from_spanning",
    "generalized_force", "inverse_dynamics", "inverse_osim", "iterate", "kinematics", "load",
    "mass_matrix", "motion_from_actuators", "numeric", "operators", "parameter_values",
    "repartition", "robots", "save", "solve_osim", "spanning_map", "spanning_state",
    "view", "with_parameters",
]  # fmt: skip
