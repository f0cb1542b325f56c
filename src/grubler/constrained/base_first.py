"""A free base resolved before the multipliers (49), where constraints are on its branches.

Without the base L_b is block diagonal over branches, and the base feels K_b' L_b⁻¹ K_b:

    (H_b + K_b' L_b⁻¹ K_b) a_b = f_b - K_b' L_b⁻¹ l,   λ = -L_b⁻¹ (K_b a_b + l)  (46)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, symmetric
from ..algorithms.sweep import outward
from ..tolerances import FRAME_RANK
from .carried import Carried
from .jacobian import jacobian_and_drift
from .rows import constraint_rows, framed, independent_rows

if TYPE_CHECKING:
    from ..algorithms.sweep import ClusterState
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked


def base_and_multipliers(
    state: ClusterState, H: Array, p: Array, tau: Array, carried: Carried
) -> tuple[Array, list[Any]]:
    """(acceleration of the base, multipliers by block)."""
    F = carried.at(0)
    right = tau[state.cluster.v] - p
    factors = []
    for blocks in carried.components():
        L = LDL(carried.matrix(blocks))
        K = np.concatenate([F[b] for b in blocks], axis=1).T
        l = np.concatenate([carried.l[b] for b in blocks])
        H = H + L.quadratic(K)
        right = right - K.T @ L.solve(l)
        factors.append((blocks, L, K, l))
    a_base = LDL(symmetric(H)).solve(right)
    multipliers: dict[Any, Any] = {}
    for blocks, L, K, l in factors:
        multipliers |= carried.split(blocks, -L.solve(K @ a_base + l))  # (46)
    return a_base, [multipliers[b] for b in range(len(carried.m))]


def free_base(model: Model) -> bool:
    """True if everything hangs on one body with a free joint."""
    roots = [model.clusters[k] for k in model.tree.roots]
    if len(roots) != 1 or len(roots[0].bodies) != 1 or roots[0].nv != 6:
        return False
    return not model.bodies[roots[0].bodies[0]].joint.armature


@lru_cache(maxsize=256)
def applies(model: Model, constraints: Sequence[Checked]) -> bool:
    """True if (49) applies: a free base, and hard rows that its branches can serve without it."""
    if not free_base(model):
        return False
    hard = tuple(c for c in constraints if c.softness is None)
    return bool(constraints) and all(_served_without_base(model, hard, seed) for seed in range(3))


def _served_without_base(model, constraints, seed: int) -> bool:
    if not constraints:
        return True
    sweep = outward(model, model.random_state(seed)[0], keep_frame=framed(constraints))
    rows = independent_rows(model, constraint_rows(sweep, constraints), constraints)
    J = jacobian_and_drift(sweep, rows)[0][:, 6:]
    return np.linalg.matrix_rank(J, tol=FRAME_RANK * np.linalg.norm(J)) == J.shape[0]
