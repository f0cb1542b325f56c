"""The projection methods (Sec. II-C to II-E): the spanning tree's dynamics, projected by G."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, symmetric
from ..model.derived import spanning_tree
from .c_crba import c_crba
from .c_rnea import c_rnea
from .kinematics import frame_jacobian
from .spanning import spanning_map, spanning_state

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array, Frame


def projected_mass_matrix(model: Model, q: Array) -> Array:
    """Gᵀ H G."""
    G, _ = spanning_map(model, q)
    return symmetric(G.T @ c_crba(spanning_tree(model), spanning_state(model, q).positions) @ G)


def projected_rnea(
    model: Model, q: Array, v: Array, a: Array, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """Gᵀ RNEA(G_t, q, qd, qdd)."""
    G, g = spanning_map(model, q, v)
    span = spanning_state(model, q).positions
    return G.T @ c_rnea(spanning_tree(model), span, G @ v, G @ a + g, f_ext)


def projection(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """a = (GᵀHG)⁻¹ (tau - Gᵀ(c + H g)), the mass matrix factorized leaves first."""
    G, g = spanning_map(model, q, v)
    tree, span = spanning_tree(model), spanning_state(model, q).positions
    bias = c_rnea(tree, span, G @ v, g, f_ext)  # c + H g
    M = symmetric(G.T @ c_crba(tree, span) @ G)
    return solve_from_leaves(M, tau - G.T @ bias)


def projected_efpa(
    model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]
) -> Array:
    """J (GᵀHG)⁻¹ Jᵀ."""
    J = np.concatenate([frame_jacobian(model, q, frame)[list(rows)] for frame, rows in frames])
    return LDL(projected_mass_matrix(model, q)[::-1, ::-1]).quadratic(J.T[::-1])


def solve_from_leaves(M: Array, b: Any) -> Array:
    """M⁻¹ b, eliminating from the last coordinate: the branches of the tree cause no fill-in."""
    return LDL(M[::-1, ::-1]).solve(b[::-1])[::-1]
