"""The Lagrange multiplier method (Sec. II-D): spanning accelerations and loop forces together.

    [H  Kᵀ] [ qdd ]   [tau - c]
    [K  0 ] [-lam ] = [   k   ]

solved through the Schur complement K H⁻¹ Kᵀ, which is definite once redundant rows are left out.

Where a loop holds massless bodies H alone is singular, though the whole system is not. There the
rows of the loop are added to the dynamics, weighed by w: with K qdd = k

    (H + Kᵀ w K) qdd - Kᵀ lam' = tau - c + Kᵀ w k,     lam' = lam + w (K qdd - k) = lam

is the same system with the same multipliers, and H + Kᵀ w K is definite exactly where the whole
system is regular. Loops without massless bodies keep the sparsity of H.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..algebra.linalg import LDL, symmetric
from ..algebra.symbolic import is_symbolic
from ..model import Model
from ..model.derived import spanning_tree
from ..tolerances import NO_INERTIA
from .c_crba import c_crba
from .c_rnea import c_rnea
from .spanning import independent_columns, loop_constraints, spanning_map, spanning_state

if TYPE_CHECKING:
    from ..typing import Array


def lagrange(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """The acceleration a (nv,) of the independent coordinates."""
    return constrained_spanning(model, q, v, tau, f_ext)[0][independent_columns(model)]


def constrained_spanning(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> tuple[Array, Array]:
    """Spanning accelerations (nv_span,) and the multipliers of the kept loop rows."""
    tree, span = spanning_tree(model), spanning_state(model, q).positions
    G, _ = spanning_map(model, q)
    c = c_rnea(tree, span, G @ v, np.zeros(model.nv_span), f_ext)
    lift = np.eye(model.nv_span)[:, independent_columns(model)]  # P with Gᵀ P = 1 (Sec. V-D)
    H, force = c_crba(tree, span), lift @ tau - c
    K, k = loop_constraints(model, q, v)
    for rows, columns in loops_without_inertia(model):
        own = K[rows]
        wK = (np.trace(H[columns, columns]) / np.sum(own * own)) * own  # as heavy as its bodies
        H, force = H + symmetric(own.T @ wK), force + wK.T @ k[rows]
    H = LDL(H[::-1, ::-1])  # leaves first, no fill-in
    free = H.solve(force[::-1])[::-1]
    if K.shape[0] == 0:
        return free, np.zeros(0)
    HinvKt = H.solve(K.T[::-1])[::-1]
    multipliers = LDL(symmetric(K @ HinvKt)).solve(k - K @ free)
    return free + HinvKt @ multipliers, multipliers


@lru_cache(maxsize=128)
def loops_without_inertia(model: Model) -> tuple[tuple[slice, slice], ...]:
    """(rows of K, spanning columns) of each cluster with loops in which some motion of the tree
    carries no inertia, at the reference or near it. Inertias that are symbols may be zero: then
    that is every cluster with loops.
    """
    tree, generator = spanning_tree(model), np.random.default_rng(0)
    q = tree.neutral()
    samples = [q] + [tree.integrate(q, generator.uniform(-0.1, 0.1, tree.nv)) for _ in range(2)]
    masses = [c_crba(tree, x) for x in samples]
    idle = np.ones(model.nv_span, dtype=bool)
    if not is_symbolic(*masses):
        idle = np.any([_idle(H) for H in masses], axis=0)
    found, start = [], 0
    for cluster in model.clusters:
        stop = start + (len(cluster.embedding.kept) or sum(loop.rows for loop in cluster.loops))
        if stop > start and idle[cluster.span].any():
            found.append((slice(start, stop), cluster.span))
        start = stop
    return tuple(found)


def _idle(H: np.ndarray) -> np.ndarray:
    """Which spanning velocities take part in a motion that carries no inertia."""
    size = np.diag(H)
    none = size <= NO_INERTIA * size.max(initial=0.0)
    scale = 1.0 / np.sqrt(np.where(none, 1.0, size))
    values, vectors = np.linalg.eigh(scale[:, None] * np.where(none, 0.0, H) * scale)
    still = vectors[:, values < NO_INERTIA * len(H)]
    return none | np.any(np.abs(still) > 1e-6, axis=1)
