"""C-ABA: forward dynamics by the cluster-based articulated-body algorithm (Sec. VII, Algorithm 1).

| code | paper  | meaning                                        | shape    |
|------|--------|------------------------------------------------|----------|
| IA   | I_k^A  | articulated-cluster inertia (55)               | (6l, 6l) |
| pA   | p_k^A  | articulated bias force (55)                    | (6l,)    |
| U, D | U_k, D_k | (49)                                         |          |
| u    | u_k    | (49); less U_k' c_k where there is a W         | (nv,)    |
| W    | X_k' U_k | U seen from the parent cluster               | (6l', nv)|

A cluster of one body follows the paper line by line. Across several bodies the inertia is projected
before the subtraction, X' I^A X - W D⁻¹ W', and the second pass needs only W: exact, and cheaper,
since the bodies' own accelerations drop out wherever nothing hangs on them (every rotor).
"""

from __future__ import annotations

import numpy as np

from ..cluster_spatial import block_diagonal
from ..linalg import LDL, symmetric
from .first_pass import base_acceleration, first_pass, net_forces, parent_of


def c_aba(model, q, v, tau, f_ext=None):
    """The acceleration a (nv,) under generalized force tau in state (q, v)."""
    states = first_pass(model, q, v, posed=f_ext or (), points=True)
    IA = [block_diagonal(state.I) for state in states]  # line 20
    pA = net_forces(model, states, f_ext)  # line 21
    U, D, u, W = {}, {}, {}, {}
    for state in reversed(states):
        k, p = state.cluster.index, state.cluster.parent
        S, X, c = state.S, state.X, state.c
        U[k] = IA[k] @ S  # (49)
        D[k] = LDL(joint_inertia(state, U[k]))
        u[k] = tau[state.cluster.v] - S.T @ pA[k]
        u[k] = u[k] if state.r is None else u[k] - state.r
        if len(state.cluster.bodies) > 1:
            W[k] = X.forces_back(U[k])
            u[k] = u[k] - U[k].T @ c
            if p is not None:
                IA[p] = IA[p] + symmetric(X.congruence(IA[k]) - D[k].quadratic(W[k].T))
                pA[p] = pA[p] + X.force_back(pA[k] + IA[k] @ c) + W[k] @ D[k].solve(u[k])
        elif p is not None:
            Ia = without_joint(state, IA[k], U[k], D[k])
            IA[p] = IA[p] + X.congruence(Ia)  # (55)
            pA[p] = pA[p] + X.force_back(pA[k] + Ia @ c + U[k] @ D[k].solve(u[k]))  # (56)
    acc, out = [], []
    for state in states:
        k = state.cluster.index
        a_parent = parent_of(acc, state.cluster, base_acceleration(model))
        a = state.X.motion(a_parent) + state.c  # line 40
        if free(state):  # U = D: (52) without the product
            out.append(D[k].solve(u[k]) - a)
        else:
            known = W[k].T @ a_parent if k in W else U[k].T @ a
            out.append(D[k].solve(u[k] - known))  # (52)
        acc.append(a + state.S @ out[-1])  # line 42
    return np.concatenate(out)


def free(state) -> bool:
    """Whether the cluster is one body whose joint allows everything, S = 1."""
    S = state.S
    return state.R is None and isinstance(S, np.ndarray) and np.array_equal(S, np.eye(6))


def joint_inertia(state, U):
    """D_k = S_k' U_k (49), with the armature of its joints."""
    D = state.S.T @ U
    return D if state.R is None else D + state.R


def without_joint(state, IA, U, D):
    """I_k^a = I_k^A - U D⁻¹ U' (56) of a single body.

    I_k^a S_k = 0: where the joint's axes are coordinate axes, those rows are zero and cost nothing
    (armature, which the parent does not feel, leaves something there).
    """
    Ia = symmetric(IA - D.quadratic(U.T))
    S = state.S
    if state.R is None and isinstance(S, np.ndarray) and np.all((S != 0).sum(axis=0) == 1):
        left = 1.0 - np.any(S != 0, axis=1)
        Ia = Ia * np.outer(left, left)
    return Ia


def seen_from_parent(state, IA, U, D):
    """λ(k)X*_k I_k^a kX_λ(k), what the articulated inertia adds to the parent's (55), (56)."""
    if len(state.cluster.bodies) == 1:
        return state.X.congruence(without_joint(state, IA, U, D))
    W = state.X.forces_back(U)
    return symmetric(state.X.congruence(IA) - D.quadratic(W.T))
