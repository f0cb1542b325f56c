"""Derivatives of the dynamics, recursive and exact, in tangent coordinates.

A derivative by q has nv columns: column i is the rate of change as q moves with velocity e_i along
the closed manifold, q̇ = T(q) v. For a quaternion that is a rotation about a body axis, for a free
joint a shift or a turn in the body's axes, and for a loop all its joints together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.symbolic import is_symbolic
from ..algorithms.checks import checked, checked_forces, checked_result
from ..arguments import public
from .forward import c_aba_derivatives
from .inverse import c_rnea_derivatives


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


@public
def inverse_dynamics_derivatives(model, q, v, a, f_ext=None) -> InverseDynamicsDerivatives:
    """(∂tau/∂q, ∂tau/∂v, ∂tau/∂a) of `inverse_dynamics`, in tangent coordinates of q.

    External forces are constant in the axes of their bodies.
    """
    q, v, a = checked(model, q=q, v=v, a=a)
    return InverseDynamicsDerivatives(
        *c_rnea_derivatives(model, q, v, a, checked_forces(model, f_ext))
    )


@public
def forward_dynamics_derivatives(model, q, v, tau, f_ext=None) -> ForwardDynamicsDerivatives:
    """(∂a/∂q, ∂a/∂v, ∂a/∂tau) of `forward_dynamics`, in tangent coordinates of q.

    External forces are constant in the axes of their bodies.
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = c_aba_derivatives(model, q, v, tau, checked_forces(model, f_ext))
    checked_result(model, out[2].sum(axis=1) if not is_symbolic(out[2]) else out[2])
    return ForwardDynamicsDerivatives(*out)


__all__ = [
    "ForwardDynamicsDerivatives",
    "InverseDynamicsDerivatives",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
]
