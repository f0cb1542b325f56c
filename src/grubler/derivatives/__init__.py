"""Derivatives of the dynamics, recursive and exact, in tangent coordinates.

A derivative by q has nv columns: column i is the rate of change as q moves with velocity e_i along
the closed manifold, q̇ = T(q) v. For a quaternion that is a rotation about a body axis, for a free
joint a shift or a turn in the body's axes, and for a loop all its joints together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.symbolic import is_symbolic
from ..algorithms.checks import checked, checked_forces, checked_frame, checked_result
from ..arguments import public
from ..constrained import checked_wanted
from .constrained import constrained_derivatives
from .forward import c_aba_derivatives
from .inverse import c_rnea_derivatives
from .kinematics import frame_motion

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import ArrayLike, Forces


class InverseDynamicsDerivatives(NamedTuple):
    """Derivatives of tau, each (nv, nv); `dtau_da` is the mass matrix."""

    dtau_dq: np.ndarray
    dtau_dv: np.ndarray
    dtau_da: np.ndarray


class ForwardDynamicsDerivatives(NamedTuple):
    """Derivatives of a, each (nv, nv); `da_dtau` is the inverse of the mass matrix."""

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray


class ConstrainedDerivatives(NamedTuple):
    """Derivatives of the acceleration, (nv, nv), and of the m multipliers, (m, nv)."""

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray
    dlambda_dq: np.ndarray
    dlambda_dv: np.ndarray
    dlambda_dtau: np.ndarray


class FrameVelocityDerivatives(NamedTuple):
    """Derivatives of a frame's spatial velocity in its axes, each (6, nv)."""

    dv_dq: np.ndarray
    dv_dv: np.ndarray


class FrameAccelerationDerivatives(NamedTuple):
    """Derivatives of a frame's spatial acceleration in its axes, each (6, nv)."""

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_da: np.ndarray


@public
def inverse_dynamics_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: Forces | None = None
) -> InverseDynamicsDerivatives:
    """(∂tau/∂q, ∂tau/∂v, ∂tau/∂a) of `inverse_dynamics`, in tangent coordinates of q.

    External forces are constant in the axes of their bodies.
    """
    q, v, a = checked(model, q=q, v=v, a=a)
    return InverseDynamicsDerivatives(
        *c_rnea_derivatives(model, q, v, a, checked_forces(model, f_ext))
    )


@public
def forward_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    f_ext: Forces | None = None,
) -> ForwardDynamicsDerivatives:
    """(∂a/∂q, ∂a/∂v, ∂a/∂tau) of `forward_dynamics`, in tangent coordinates of q.

    External forces are constant in the axes of their bodies.
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = c_aba_derivatives(model, q, v, tau, checked_forces(model, f_ext))
    checked_result(model, out[2].sum(axis=1) if not is_symbolic(out[2]) else out[2])
    return ForwardDynamicsDerivatives(*out)


@public
def constrained_forward_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    constraints: Any,
    f_ext: Forces | None = None,
    desired: Any = None,
    motion: Any = None,
) -> ConstrainedDerivatives:
    """(∂a/∂q, ∂a/∂v, ∂a/∂tau, ∂λ/∂q, ∂λ/∂v, ∂λ/∂tau) of `constrained_forward_dynamics`.

    Arguments as there. Rows that are redundant on one body, such as four points of a foot, share
    their force in the sense of least squares. Rows of several bodies that depend on each other
    have multipliers without a derivative: an error says so (compiled code cannot raise one, and
    returns numbers that are large or not finite).
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    constraints, wanted = checked_wanted(model, constraints, desired, motion)
    with np.errstate(divide="ignore", invalid="ignore"):
        return ConstrainedDerivatives(
            *constrained_derivatives(
                model, q, v, tau, constraints, checked_forces(model, f_ext), wanted
            )
        )


@public
def frame_velocity_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, frame: Any
) -> FrameVelocityDerivatives:
    """(∂V/∂q, ∂V/∂v) of the spatial velocity [angular; linear] of a frame, in its axes."""
    q, v = checked(model, q=q, v=v)
    moved = frame_motion(model, q, v, np.zeros(model.nv), checked_frame(model, frame))
    return FrameVelocityDerivatives(moved.Vq, moved.J)


@public
def frame_acceleration_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: Any
) -> FrameAccelerationDerivatives:
    """(∂A/∂q, ∂A/∂v, ∂A/∂a) of the spatial acceleration of a frame, in its axes."""
    q, v, a = checked(model, q=q, v=v, a=a)
    moved = frame_motion(model, q, v, a, checked_frame(model, frame))
    return FrameAccelerationDerivatives(moved.Aq, moved.Av, moved.J)


__all__ = [
    "ConstrainedDerivatives",
    "ForwardDynamicsDerivatives",
    "FrameAccelerationDerivatives",
    "FrameVelocityDerivatives",
    "InverseDynamicsDerivatives",
    "constrained_forward_dynamics_derivatives",
    "forward_dynamics_derivatives",
    "frame_acceleration_derivatives",
    "frame_velocity_derivatives",
    "inverse_dynamics_derivatives",
]
