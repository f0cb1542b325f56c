"""C-ABA: forward dynamics by the cluster-based articulated-body algorithm (Sec. VII, Algorithm 1).

| code | paper  | meaning                                        | shape    |
|------|--------|------------------------------------------------|----------|
| IA   | I_k^A  | articulated-cluster inertia (55)               | (6l, 6l) |
| pA   | p_k^A  | articulated bias force (55)                    | (6l,)    |
| U, D | U_k,D_k| (49)                                           |          |
| u    | u_k - U_k' c_k | force left for the joint's own motion  | (nv,)    |

Two exact rearrangements save operations. With u reduced by U'c the bias is p + I^A c + U D⁻¹ u and
the acceleration D⁻¹(u - U' X a). And across several bodies the inertia is projected before the
subtraction, X' I^A X - W D⁻¹ W' with W = X' U; a single body keeps X' (I^A - U D⁻¹ U') X, which has
a zero row for each freedom of its joint.
"""

from __future__ import annotations

import numpy as np

from ..cluster_spatial import block_diagonal
from ..linalg import LDL, symmetric
from .first_pass import base_acceleration, first_pass, gyroscopic, inertias, parent_of


def c_aba(model, q, v, tau, f_ext=None, armature=None):
    """The acceleration a (nv,) under generalized force tau in state (q, v).

    `armature` (nv,) is added to the diagonal of the mass matrix, as the approximate methods do.
    """
    states = first_pass(model, q, v, posed=f_ext or ())
    IA = [block_diagonal(inertias(model, state.cluster)) for state in states]  # line 20
    pA = [gyroscopic(model, state, f_ext) for state in states]  # line 21
    U, D, u = {}, {}, {}
    for state in reversed(states):
        k, p = state.cluster.index, state.cluster.parent
        S, X = state.S, state.X
        U[k] = IA[k] @ S  # (49)
        D[k] = LDL(joint_inertia(state, U[k], armature))
        u[k] = tau[state.cluster.v] - S.T @ pA[k] - U[k].T @ state.c
        if p is None:
            continue
        IA[p] = IA[p] + seen_from_parent(state, IA[k], U[k], D[k])  # (55)
        pa = pA[k] + IA[k] @ state.c + U[k] @ D[k].solve(u[k])  # (56)
        pA[p] = pA[p] + X.force_back(pa)
    acc, out = [], []
    for state in states:
        k = state.cluster.index
        carried = state.X.motion(parent_of(acc, state.cluster, base_acceleration(model)))
        out.append(D[k].solve(u[k] - U[k].T @ carried))  # (52)
        acc.append(carried + state.c + state.S @ out[-1])  # line 42
    return np.concatenate(out)


def joint_inertia(state, U, armature):
    """D_k = S_k' U_k (49), with the armature of its coordinates."""
    D = state.S.T @ U
    return D if armature is None else D + np.diag(armature[state.cluster.v])


def seen_from_parent(state, IA, U, D):
    """λ(k)X*_k I_k^a kX_λ(k), what the articulated inertia adds to the parent's (55), (56)."""
    if len(state.cluster.bodies) == 1:
        return state.X.congruence(symmetric(IA - D.quadratic(U.T)))
    W = state.X.forces_back(U)
    return symmetric(state.X.congruence(IA) - D.quadratic(W.T))
