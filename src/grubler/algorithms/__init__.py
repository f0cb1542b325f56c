"""The algorithms: one file each, after the papers; here their public faces, with checked arguments.

Every function is pure and takes the model first. Arrays may be floats or symbols.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..algebra.symbolic import is_symbolic
from ..arguments import public
from ..model import as_vector
from . import approximate, spanning
from . import kinematics as _kinematics
from . import projection as _projection
from .assemble import assemble as _assemble
from .c_aba import c_aba
from .c_crba import c_crba
from .c_efpa import c_efpa
from .c_rnea import c_rnea
from .centroidal import Centroidal
from .centroidal import centroidal as _centroidal
from .checks import (
    check_given_with_a,
    checked,
    checked_forces,
    checked_frame,
    checked_result,
    exact,
    from_spanning,
    pick,
    stacked_torques,
)
from .energy import Energy
from .energy import energy as _energy
from .kinematics import Kinematics
from .lagrange import lagrange
from .mass_matrix_method import mass_matrix_method
from .spanning import SpanningState
from .valid import Validity
from .valid import validity as _validity

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import ArrayLike, Floats, Forces, Frame

FORWARD: dict[Any, Any] = {
    "c_aba": c_aba,
    "projection": _projection.projection,
    "lagrange": lagrange,
    "mass_matrix": mass_matrix_method,
    "approximate": approximate.approximate_aba,
    "unconstrained": approximate.unconstrained_aba,
}
INVERSE: dict[Any, Any] = {
    "c_rnea": c_rnea,
    "projected": _projection.projected_rnea,
    "approximate": approximate.approximate_rnea,
    "unconstrained": approximate.unconstrained_rnea,
}
MASS = {"c_crba": c_crba, "projected": _projection.projected_mass_matrix}
OSIM: dict[Any, Any] = {  # more of them, and the function, in grubler.constrained
    "c_efpa": c_efpa,
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
def frame_jacobian(model: Model, q: ArrayLike, frame: Frame) -> Floats:
    """J (6, nv): the spatial velocity [angular; linear] of a frame, in its axes, is J v."""
    return _kinematics.frame_jacobian(model, checked(model, q=q), checked_frame(model, frame))


@public
def frame_acceleration_bias(model: Model, q: ArrayLike, v: ArrayLike, frame: Frame) -> Floats:
    """(dJ/dt) v (6,): the spatial acceleration of a frame, in its axes, at a = 0."""
    q, v = checked(model, q=q, v=v)
    return _kinematics.frame_acceleration_bias(model, q, v, checked_frame(model, frame))


@public
def energy(model: Model, q: ArrayLike, v: ArrayLike) -> Energy:
    """Kinetic and potential energy in J."""
    return _energy(model, *checked(model, q=q, v=v))


@public
def centroidal(model: Model, q: ArrayLike, v: ArrayLike | None = None) -> Centroidal:
    """Centre of mass, momentum about it [angular; linear] in world axes, and its matrix."""
    return _centroidal(model, *checked(model, q=q, v=v))


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


__all__ = [
    "Centroidal",
    "Energy",
    "Kinematics",
    "SpanningState",
    "Validity",
    "assemble",
    "bias_force",
    "centroidal",
    "energy",
    "forward_dynamics",
    "frame_acceleration_bias",
    "frame_jacobian",
    "frame_pose",
    "from_spanning",
    "generalized_force",
    "inverse_dynamics",
    "kinematics",
    "mass_matrix",
    "spanning_map",
    "spanning_state",
    "validity",
]  # fmt: skip
