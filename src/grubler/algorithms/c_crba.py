"""Cluster CRBA: the mass matrix in independent coordinates.

A locked subtree moves with the body it hangs from, so composite inertias stay one 6x6 a body even
where articulated inertias couple the bodies of a cluster.

| code | meaning                                                     | shape    |
|------|-------------------------------------------------------------|----------|
| IC   | composite inertia of each body with the subtrees on it      | 6x6 each |
| F    | momentum of the subtree per unit of the cluster's velocity  | (6l, nv) |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..algebra.linalg import symmetric
from .first_pass import first_pass

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .first_pass import ClusterState


def c_crba(model: Model, q: Array) -> Array:
    """The mass matrix M (nv, nv), so that M a + bias = tau."""
    states = first_pass(model, q)
    return mass_matrix_of(model, states)


def mass_matrix_of(model: Model, states: list[ClusterState]) -> Array:
    """The mass matrix from the states of the first pass."""
    IC = composite_inertias(model, states)
    n = len(states)
    M = [[None] * n for _ in range(n)]
    for state in states:
        k = state.cluster.index
        bodies, S = state.cluster.bodies, state.split(state.S)
        F = np.concatenate([IC[body] @ S_i for body, S_i in zip(bodies, S, strict=True)])
        M[k][k] = symmetric(state.S.T @ F)
        if state.R is not None:
            M[k][k] = M[k][k] + state.R
        while state.cluster.parent is not None:
            F = state.X.forces_back(F)
            state = states[state.cluster.parent]
            j = state.cluster.index
            M[j][k] = state.S.T @ F
            M[k][j] = M[j][k].T
    if not states:
        return np.zeros((0, 0))
    size = [state.cluster.nv for state in states]
    return np.block(
        [
            [np.zeros((size[i], size[j])) if M[i][j] is None else M[i][j] for j in range(n)]
            for i in range(n)
        ]
    )


def composite_inertias(model: Model, states: list[ClusterState]) -> dict[int, Array]:
    """Composite inertias by body, the children's subtrees added leaves first."""
    IC = {
        body: I for state in states for body, I in zip(state.cluster.bodies, state.I, strict=True)
    }
    for state in reversed(states):
        k = state.cluster
        if k.parent is None:
            continue
        outputs = model.clusters[k.parent].bodies
        for i, body in enumerate(k.bodies):
            up = outputs[k.output[i]]
            IC[up] = IC[up] + state.X.blocks[i].rigid_congruence(IC[body])
    return IC
