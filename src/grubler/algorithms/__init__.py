"""The algorithms: one file each, after the papers; here their public faces, with checked arguments.

Every function is pure and takes the model first. Arrays may be floats or symbols.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..algebra.linalg import LDL
from ..algebra.symbolic import is_symbolic
from ..arguments import public
from ..model import as_vector
from . import approximate, c_aba, c_crba, c_efpa, c_rnea, lagrange, mass_matrix_method, spanning
from . import centroidal as _centroidal
from . import kinematics as _kinematics
from . import projection as _projection
from . import tangent as _tangent
from .assemble import assemble as _assemble
from .centroidal import Centroidal
from .checks import (
    check_given_with_a,
    checked,
    checked_axes,
    checked_forces,
    checked_frame,
    checked_number,
    checked_result,
    exact,
    from_spanning,
    pick,
    stacked_torques,
    with_mass,
)
from .coriolis import coriolis_matrix
from .energy import Energy
from .energy import energy as _energy
from .implied import forward_dynamics_equation
from .kinematics import Kinematics
from .reactions import LoopForces, joint_reactions, loop_forces
from .regressors import (
    BaseParameters,
    base_parameters,
    regressor,
    regressor_names,
    regressor_parameters,
)
from .spanning import SpanningState
from .valid import Validity
from .valid import validity as _validity

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import ArrayLike, Floats, Forces, Frame

FORWARD: dict[Any, Any] = {
    "c_aba": c_aba.c_aba,
    "projection": _projection.projection,
    "lagrange": lagrange.lagrange,
    "mass_matrix": mass_matrix_method.mass_matrix_method,
    "approximate": approximate.approximate_aba,
    "unconstrained": approximate.unconstrained_aba,
}
INVERSE: dict[Any, Any] = {
    "c_rnea": c_rnea.c_rnea,
    "projected": _projection.projected_rnea,
    "approximate": approximate.approximate_rnea,
    "unconstrained": approximate.unconstrained_rnea,
}
MASS: dict[Any, Any] = {"c_crba": c_crba.c_crba, "projected": _projection.projected_mass_matrix}
OSIM: dict[Any, Any] = {  # more of them, and the function, in grubler.constrained
    "c_efpa": c_efpa.c_efpa,
    "projected": _projection.projected_efpa,
    "approximate": approximate.approximate_efpa,
}


@public
def assemble(model: Model, q: ArrayLike, *, hold: bool = True) -> tuple[Floats, float]:
    """(q, gap): the configuration closed near q with its independent joints held, and the largest
    residual left, in m or rad. Made for compiling; `model.assemble` tries harder on one guess.

    `hold=False` moves all joints, each as little as possible: for random guesses, whose independent
    joints may be out of reach of each other."""
    if not is_symbolic(q):
        q = as_vector("q", q, model.nq, model.q_names)
    return _assemble(model, q, hold=hold)


@public
@exact("c_aba", "mass_matrix", "projection")
def forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    f_ext: Forces | None = None,
    *,
    method: str = "c_aba",
) -> Floats:
    """The acceleration a (nv,) under generalized force tau in state (q, v).

    `f_ext` are external forces by body name (or an array (nb, 6)): [moment; force] at the body
    origin, in body coordinates, in N m and N. Exact methods: "c_aba" (Cluster ABA), "projection",
    "lagrange", "mass_matrix"; for comparison: "approximate" (rotors as constant armature) and
    "unconstrained" (rotors ignored).
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    f_ext = checked_forces(model, f_ext)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = pick("forward_dynamics", FORWARD, method)(model, q, v, tau, f_ext)
    return checked_result(model, a)


forward_dynamics.implied_by = forward_dynamics_equation


@public
@exact("c_rnea", "projected")
def inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: Forces | None = None,
    *,
    method: str = "c_rnea",
) -> Floats:
    """The generalized force tau (nv,) that gives acceleration a in state (q, v).

    Exact methods: "c_rnea" (Cluster RNEA) and "projected"; for comparison: "approximate" and
    "unconstrained". External forces as in `forward_dynamics`.
    """
    q, v, a = checked(model, q=q, v=v, a=a)
    method = pick("inverse_dynamics", INVERSE, method)
    return method(model, q, v, a, checked_forces(model, f_ext))


@public
@exact("c_crba", "projected")
def mass_matrix(model: Model, q: ArrayLike, *, method: str = "c_crba") -> Floats:
    """The mass matrix M (nv, nv) in independent coordinates: M a + bias = tau."""
    return pick("mass_matrix", MASS, method)(model, checked(model, q=q))


@public
def bias_force(model: Model, q: ArrayLike, v: ArrayLike, f_ext: Forces | None = None) -> Floats:
    """The generalized force at zero acceleration: Coriolis, centrifugal, gravity, minus f_ext."""
    return inverse_dynamics(model, q, v, np.zeros(model.nv), f_ext)


@public
def gravity_force(model: Model, q: ArrayLike) -> Floats:
    """The generalized force (nv,) that holds the robot at rest against gravity."""
    q, rest = checked(model, q=q), np.zeros(model.nv)
    return c_rnea.c_rnea(model, q, rest, rest)


@public
def mass_matrix_inverse(model: Model, q: ArrayLike) -> Floats:
    """M⁻¹ (nv, nv), symmetric: the accelerations that unit generalized forces add."""
    M = c_crba.c_crba(model, checked(model, q=q))
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = LDL(M[::-1, ::-1]).quadratic(np.eye(model.nv))[::-1, ::-1]
    return checked_result(model, inverse)


@public
def kinematics(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None
) -> Kinematics:
    """Poses of all bodies in the world, with velocities given v and accelerations given v and a."""
    q, v, a = checked(model, q=q, v=v, a=a)
    check_given_with_a(v, a)
    return _kinematics.kinematics(model, q, v, a)


@public
def frame_pose(model: Model, q: ArrayLike, frame: Frame) -> tuple[Floats, Floats]:
    """The rotation (3, 3), frame to world coordinates, and the position (3,) of a frame."""
    return _kinematics.frame_pose(model, checked(model, q=q), checked_frame(model, frame))


@public
def frame_jacobian(model: Model, q: ArrayLike, frame: Frame, *, axes: str = "local") -> Floats:
    """J (6, nv): the velocity [angular; linear] of a frame is J v.

    `axes` are "local" (the frame's own), "world_aligned" (the world's axes at the frame's origin)
    or "world" (the spatial velocity at the world's origin)."""
    return _kinematics.frame_jacobian(
        model, checked(model, q=q), checked_frame(model, frame), checked_axes(axes)
    )


@public
def frame_velocity(
    model: Model, q: ArrayLike, v: ArrayLike, frame: Frame, *, axes: str = "local"
) -> Floats:
    """The velocity [angular; linear] of a frame (6,) in rad/s and m/s; axes as `frame_jacobian`."""
    q, v = checked(model, q=q, v=v)
    frame = checked_frame(model, frame)
    return _kinematics.frame_velocity(model, q, v, frame, checked_axes(axes))


@public
def frame_acceleration(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: Frame, *, axes: str = "local"
) -> Floats:
    """The acceleration [angular; linear] of a frame (6,): J a + dJ/dt v, the rate of
    `frame_velocity` in the same axes.

    In "world_aligned" axes the linear part is the acceleration of the frame's origin; in the others
    the acceleration is the spatial one."""
    q, v, a = checked(model, q=q, v=v, a=a)
    frame = checked_frame(model, frame)
    return _kinematics.frame_acceleration(model, q, v, a, frame, checked_axes(axes))


@public
def frame_acceleration_bias(
    model: Model, q: ArrayLike, v: ArrayLike, frame: Frame, *, axes: str = "local"
) -> Floats:
    """(dJ/dt) v (6,): the acceleration of a frame, in the axes named, at a = 0."""
    q, v = checked(model, q=q, v=v)
    frame = checked_frame(model, frame)
    return _kinematics.frame_acceleration(model, q, v, None, frame, checked_axes(axes))


@public
def energy(model: Model, q: ArrayLike, v: ArrayLike) -> Energy:
    """Kinetic and potential energy in J."""
    return _energy(model, *checked(model, q=q, v=v))


@public
def centroidal(model: Model, q: ArrayLike, v: ArrayLike | None = None) -> Centroidal:
    """Centre of mass, momentum about it [angular; linear] in world axes, and its matrix."""
    return _centroidal.centroidal(model, *checked(model, q=q, v=v))


@public
def com(model: Model, q: ArrayLike) -> Floats:
    """The centre of mass of all moving bodies (3,) in the world, in m."""
    return _centroidal.com(with_mass(model), checked(model, q=q))


@public
def com_jacobian(model: Model, q: ArrayLike) -> Floats:
    """J (3, nv): the velocity of the centre of mass, in the world's axes, is J v."""
    return _centroidal.com_jacobian(with_mass(model), checked(model, q=q))


@public
def com_velocity(model: Model, q: ArrayLike, v: ArrayLike) -> Floats:
    """The velocity of the centre of mass (3,) in the world's axes, in m/s."""
    q, v = checked(model, q=q, v=v)
    return _centroidal.com_jacobian(with_mass(model), q) @ v


@public
def com_acceleration(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Floats:
    """The acceleration of the centre of mass (3,) in the world's axes, in m/s²."""
    return _centroidal.com_acceleration(with_mass(model), *checked(model, q=q, v=v, a=a))


@public
def spanning_state(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None
) -> SpanningState:
    """Position, velocity (given v) and acceleration (given v, a) of every tree joint, stacked in
    the order of `model.spanning_names`."""
    q, v, a = checked(model, q=q, v=v, a=a)
    check_given_with_a(v, a)
    return spanning.spanning_state(model, q, v, a)


@public
def validity(model: Model, q: ArrayLike) -> Validity:
    """How valid q is: lengths of its quaternions, gaps of its loops, conditions of its partitions.

    Made for compiling, on a CPU or a GPU: no q is refused. NumPy calls and functions compiled with
    `checked=True` refuse lengths 1e-6 from 1, gaps beyond 1e-7 and singular partitions."""
    if not is_symbolic(q):
        q = as_vector("q", q, model.nq, model.q_names)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _validity(model, q)


@overload
def spanning_map(model: Model, q: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]: ...


@overload
def spanning_map(model: Model, q: ArrayLike, v: None = None) -> tuple[Floats, None]: ...


@public
def spanning_map(
    model: Model, q: ArrayLike, v: ArrayLike | None = None
) -> tuple[Floats, Floats | None]:
    """G (nv_span, nv) and g (None without v): spanning velocities G v, accelerations G a + g."""
    return spanning.spanning_map(model, *checked(model, q=q, v=v))


@public
def generalized_force(
    model: Model, q: ArrayLike, torques: Mapping[str, ArrayLike] | ArrayLike
) -> Floats:
    """tau (nv,) from torques on any tree joints, by joint name: Gᵀ torques, by virtual work."""
    return spanning.generalized_force(model, checked(model, q=q), stacked_torques(model, torques))


@public
def integrate(model: Model, q: ArrayLike, xi: ArrayLike) -> Floats:
    """q ⊕ ξ (nq,): the configuration after one unit of time at the constant velocity ξ (nv,).

    Exact on every joint's manifold. Clusters closed implicitly are closed again with the increments
    of their independent joints held; where that fails, or would pass a singularity of these, floats
    raise a ClosureError and compiled code gives NaN."""
    return _tangent.integrate(model, *checked(model, q=q, xi=xi))


@public
def difference(model: Model, q0: ArrayLike, q1: ArrayLike) -> Floats:
    """q1 ⊖ q0 (nv,): the ξ with q0 ⊕ ξ = q1, if q0 and q1 are on one assembly of the loops.

    Orientations differ by at most half a turn, |ξ| <= π, and there ξ jumps; angles of hinges are
    not wrapped. Dependent joints are not looked at."""
    return _tangent.difference(model, *checked(model, q0=q0, q1=q1))


@public
def interpolate(model: Model, q0: ArrayLike, q1: ArrayLike, t: float) -> Floats:
    """The configuration at t between q0 (t = 0) and q1 (t = 1): q0 ⊕ t (q1 ⊖ q0), loops closed."""
    q0, q1 = checked(model, q0=q0, q1=q1)
    return _tangent.interpolate(model, q0, q1, checked_number("t", t))


@public
def tangent_map(model: Model, q: ArrayLike) -> Floats:
    """T (nq, nv) with q̇ = T v, for all entries of q: also quaternions and dependent positions."""
    return _tangent.tangent_map(model, checked(model, q=q))


@public
def integrate_derivatives(model: Model, q: ArrayLike, xi: ArrayLike) -> tuple[Floats, Floats]:
    """(A, B), (nv, nv) each: q ⊕ ξ moves by A δ where q moves by δ, and by B dξ where ξ changes.

    Moves of configurations are tangent vectors, as everywhere: (q ⊕ δ) ⊕ (ξ + dξ) is, to first
    order, (q ⊕ ξ) ⊕ (A δ + B dξ)."""
    return _tangent.integrate_derivatives(model, *checked(model, q=q, xi=xi))


@public
def difference_derivatives(model: Model, q0: ArrayLike, q1: ArrayLike) -> tuple[Floats, Floats]:
    """(A, B), (nv, nv) each: q1 ⊖ q0 changes by A δ0 + B δ1 where q0 and q1 move by δ0 and δ1."""
    return _tangent.difference_derivatives(model, *checked(model, q0=q0, q1=q1))


__all__ = [
    "BaseParameters",
    "Centroidal",
    "Energy",
    "Kinematics",
    "LoopForces",
    "SpanningState",
    "Validity",
    "assemble",
    "base_parameters",
    "bias_force",
    "centroidal",
    "com",
    "com_acceleration",
    "com_jacobian",
    "com_velocity",
    "coriolis_matrix",
    "difference",
    "difference_derivatives",
    "energy",
    "forward_dynamics",
    "frame_acceleration",
    "frame_acceleration_bias",
    "frame_jacobian",
    "frame_pose",
    "frame_velocity",
    "from_spanning",
    "generalized_force",
    "gravity_force",
    "integrate",
    "integrate_derivatives",
    "interpolate",
    "inverse_dynamics",
    "joint_reactions",
    "kinematics",
    "loop_forces",
    "mass_matrix",
    "mass_matrix_inverse",
    "regressor",
    "regressor_names",
    "regressor_parameters",
    "spanning_map",
    "spanning_state",
    "tangent_map",
    "validity",
]  # fmt: skip
