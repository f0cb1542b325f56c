"""Cluster CRBA: the mass matrix in independent coordinates.

A locked subtree moves with the body it hangs from, so composite inertias stay one 6x6 a body even
where articulated inertias couple the bodies of a cluster.

| code | meaning                                                     | shape    |
|------|-------------------------------------------------------------|----------|
| IC   | composite inertia of each body with the subtrees on it      | 6x6 each |
| F    | momentum of the subtree per unit of the cluster's velocity  | (6l, nv) |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import symmetric
from .sweep import outward

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


def c_crba(model: Model, q: Any) -> Array:
    """The mass matrix M (nv, nv), so that M a + bias = tau."""
    return mass_matrix_of(outward(model, q))


def mass_matrix_of(sweep: Any) -> Array:
    """The mass matrix from the states of the sweep."""
    IC, n = composite_inertias(sweep), [state.cluster.nv for state in sweep]
    M = [[np.zeros((i, j)) for j in n] for i in n]
    for state in sweep:
        k, F = state.cluster.index, []
        for body, S in zip(state.cluster.bodies, state.split(state.S), strict=True):
            F.append(IC[body] @ S)
        F = np.concatenate(F)
        M[k][k] = symmetric(state.S.T @ F)
        if state.R is not None:
            M[k][k] = M[k][k] + state.R
        while state.parent is not None:
            F, state = state.X.forces_back(F), state.parent
            j = state.cluster.index
            M[j][k] = state.S.T @ F
            M[k][j] = M[j][k].T
    return np.block(M) if n else np.zeros((0, 0))


def composite_inertias(sweep: Any) -> dict[int, Array]:
    """Composite inertias by body, the children's subtrees added leaves first."""
    IC = dict(enumerate(sweep.robot.I))
    for state in reversed(sweep):
        if state.parent is None:
            continue
        for X, j, body in zip(state.X.blocks, state.X.outputs, state.cluster.bodies, strict=True):
            up = state.parent.cluster.bodies[j]
            IC[up] = IC[up] + X.rigid_congruence(IC[body])
    return IC
