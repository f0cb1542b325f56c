"""C-ABA: forward dynamics by the cluster-based articulated-body algorithm (Sec. VII, Algorithm 1).

| code | paper  | meaning                                        | shape    |
|------|--------|------------------------------------------------|----------|
| IA   | I_k^A  | articulated-cluster inertia (55)               | (6l, 6l) |
| pA   | p_k^A  | articulated bias force (55)                    | (6l,)    |
| U, D | U_k, D_k | (49)                                         |          |
| u    | u_k    | (49)                                           | (nv,)    |
| W    | X_k' U_k | U seen from the parent cluster               | (6l', nv)|

Accelerations are what the robot has beyond coasting, a = 0. What it has then, by its velocities and
gravity, is in the net forces of C-RNEA's first pass, and the paper's c_k is nowhere else: fewer
operations than carrying it through both passes. Across several bodies the inertia is projected
before the subtraction, X' I^A X - W D⁻¹ W', and the second pass needs only W: exact, and cheaper,
since the bodies' own accelerations drop out wherever nothing hangs on them (every rotor).
"""

from __future__ import annotations

import numpy as np

from ..cluster_spatial import block_diagonal
from ..linalg import LDL, symmetric
from .c_rnea import net_forces
from .first_pass import first_pass, stacked


def c_aba(model, q, v, tau, f_ext=None):
    """The acceleration a (nv,) under generalized force tau in state (q, v)."""
    states = first_pass(model, q, v, posed=f_ext or ())
    IA = [block_diagonal(state.I) for state in states]  # line 20
    _, f, _ = net_forces(model, q, v, None, f_ext)
    pA = stacked(states, f)  # line 21
    U, D, u, W = {}, {}, {}, {}
    for state in reversed(states):
        k, p = state.cluster.index, state.cluster.parent
        S, X = state.S, state.X
        U[k] = IA[k] @ S  # (49)
        D[k] = LDL(joint_inertia(state, U[k]))
        u[k] = tau[state.cluster.v] - S.T @ pA[k]
        u[k] = u[k] if state.r is None else u[k] - state.r
        if p is None:
            continue
        if len(state.cluster.bodies) > 1:
            W[k] = X.forces_back(U[k])
            IA[p] = IA[p] + symmetric(X.congruence(IA[k]) - D[k].quadratic(W[k].T))
            pA[p] = pA[p] + X.force_back(pA[k]) + W[k] @ D[k].solve(u[k])
        else:
            Ia = without_joint(state, IA[k], U[k], D[k])
            IA[p] = IA[p] + X.congruence(Ia)  # (55)
            pA[p] = pA[p] + X.force_back(pA[k] + U[k] @ D[k].solve(u[k]))  # (56)
    acc, out = [], []
    for state in states:
        k, p = state.cluster.index, state.cluster.parent
        a = 0.0 if p is None else state.X.motion(acc[p])  # line 40
        known = 0.0 if p is None else W[k].T @ acc[p] if k in W else U[k].T @ a
        out.append(D[k].solve(u[k] - known))  # (52)
        acc.append(a + state.S @ out[-1])  # line 42
    return np.concatenate(out)


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
