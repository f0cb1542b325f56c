"""The Lagrange multiplier method (Sec. II-D): spanning accelerations and loop forces together.

    [H  Kᵀ] [ qdd ]   [tau - c]
    [K  0 ] [-lam ] = [   k   ]

solved through the Schur complement K H⁻¹ Kᵀ, which is definite once redundant rows are left out.
"""

from __future__ import annotations

import numpy as np

from ..derived import spanning_tree
from ..linalg import LDL, symmetric
from .c_crba import c_crba
from .c_rnea import c_rnea
from .spanning import independent_columns, loop_constraints, spanning_map, spanning_state


def lagrange(model, q, v, tau, f_ext=None):
    """The acceleration a (nv,) of the independent coordinates."""
    return constrained_spanning(model, q, v, tau, f_ext)[0][independent_columns(model)]


def constrained_spanning(model, q, v, tau, f_ext=None):
    """Spanning accelerations (nv_span,) and the multipliers of the kept loop rows."""
    tree, span = spanning_tree(model), spanning_state(model, q).positions
    G, _ = spanning_map(model, q)
    c = c_rnea(tree, span, G @ v, np.zeros(model.nv_span), f_ext)
    H = LDL(c_crba(tree, span)[::-1, ::-1])  # leaves first, no fill-in
    lift = np.eye(model.nv_span)[:, independent_columns(model)]  # P with Gᵀ P = 1 (Sec. V-D)
    free = H.solve((lift @ tau - c)[::-1])[::-1]
    K, k = loop_constraints(model, q, v)
    if K.shape[0] == 0:
        return free, np.zeros(0)
    HinvKt = H.solve(K.T[::-1])[::-1]
    multipliers = LDL(symmetric(K @ HinvKt)).solve(k - K @ free)
    return free + HinvKt @ multipliers, multipliers
