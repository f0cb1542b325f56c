"""What the package offers: read by editors and type checkers, and by `__init__.py` itself."""

# ruff: isort: skip_file
from . import (
    gpu as gpu,
    robots as robots,
)
from .control.actuation import (
    actuator_effort as actuator_effort,
    actuator_inertia as actuator_inertia,
    actuator_map as actuator_map,
    actuator_state as actuator_state,
    effort_from_force as effort_from_force,
    force_from_effort as force_from_effort,
    motion_from_actuators as motion_from_actuators,
)
from .algorithms import (
    assemble as assemble,
    base_parameters as base_parameters,
    bias_force as bias_force,
    centroidal as centroidal,
    com as com,
    com_acceleration as com_acceleration,
    com_jacobian as com_jacobian,
    com_velocity as com_velocity,
    coriolis_matrix as coriolis_matrix,
    difference as difference,
    difference_derivatives as difference_derivatives,
    energy as energy,
    forward_dynamics as forward_dynamics,
    frame_acceleration as frame_acceleration,
    frame_acceleration_bias as frame_acceleration_bias,
    frame_jacobian as frame_jacobian,
    frame_pose as frame_pose,
    frame_velocity as frame_velocity,
    from_spanning as from_spanning,
    generalized_force as generalized_force,
    gravity_force as gravity_force,
    integrate as integrate,
    integrate_derivatives as integrate_derivatives,
    interpolate as interpolate,
    inverse_dynamics as inverse_dynamics,
    joint_reactions as joint_reactions,
    kinematics as kinematics,
    loop_forces as loop_forces,
    mass_matrix as mass_matrix,
    mass_matrix_inverse as mass_matrix_inverse,
    regressor as regressor,
    regressor_names as regressor_names,
    regressor_parameters as regressor_parameters,
    spanning_map as spanning_map,
    spanning_state as spanning_state,
    tangent_map as tangent_map,
    validity as validity,
)
from .model.branches import (
    assemblies as assemblies,
    with_reference as with_reference,
)
from .model.builder import (
    ModelBuilder as ModelBuilder,
)
from .checks import (
    Report as Report,
    check as check,
)
from .collision import (
    Contacts as Contacts,
    contact_candidates as contact_candidates,
)
from .compiled.problem import (
    compile as compile,
    count_operations as count_operations,
)
from .compiled.products import (
    hvp as hvp,
    jacobian as jacobian,
    jvp as jvp,
    vjp as vjp,
)
from .compiler import (
    export as export,
    iterate as iterate,
    otherwise as otherwise,
)
from .constrained import (
    ClosedChain as ClosedChain,
    Closure as Closure,
    Constraint as Constraint,
    constrained_forward_dynamics as constrained_forward_dynamics,
    inverse_osim as inverse_osim,
    operators as operators,
    solve_osim as solve_osim,
)
from .contact.dynamics import (
    contact_dynamics as contact_dynamics,
    impulse_dynamics as impulse_dynamics,
)
from .contact.step import (
    ContactSolver as ContactSolver,
)
from .derivatives import (
    constrained_forward_dynamics_derivatives as constrained_forward_dynamics_derivatives,
    forward_dynamics_derivatives as forward_dynamics_derivatives,
    frame_acceleration_derivatives as frame_acceleration_derivatives,
    frame_velocity_derivatives as frame_velocity_derivatives,
    inverse_dynamics_derivatives as inverse_dynamics_derivatives,
)
from .model.exchange import (
    analytic as analytic,
    convert_acceleration as convert_acceleration,
    convert_configuration as convert_configuration,
    convert_force as convert_force,
    convert_velocity as convert_velocity,
    numeric as numeric,
    repartition as repartition,
)
from .errors import (
    ClosureError as ClosureError,
    GrublerError as GrublerError,
    InputError as InputError,
    ModelError as ModelError,
    PartitionError as PartitionError,
)
from .interop.casadi import (
    casadi_function as casadi_function,
)
from .formats import (
    convert as convert,
    load as load,
    save as save,
)
from .mechanism.geometry import (
    Box as Box,
    Capsule as Capsule,
    Cylinder as Cylinder,
    Ellipsoid as Ellipsoid,
    HeightField as HeightField,
    Hull as Hull,
    Mesh as Mesh,
    Plane as Plane,
    Sphere as Sphere,
)
from .model import (
    Model as Model,
)
from .model.parameters import (
    parameter_values as parameter_values,
    with_parameters as with_parameters,
)
from .model.scene import (
    scene as scene,
)
from .sim import (
    Passive as Passive,
    SimulationError as SimulationError,
    Simulator as Simulator,
    Trajectory as Trajectory,
)
from .sim.linearize import (
    linearize as linearize,
)
from .viewer import (
    view as view,
)

__version__: str
