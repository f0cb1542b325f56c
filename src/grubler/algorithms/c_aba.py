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
since the bodies' own accelerations drop out wherever nothing hangs on them (every rotor). So it is
next to an arm's first joint, which feels one number of all that.

Where a joint's axes are coordinate axes of its body, the acceleration along them does not depend on
the parent's there: it is y = D⁻¹ (u - U'a) with U and a on the other axes alone, since D = S'U, and
the joint's own is y - S'a. Fewer operations, and the shorter way from one joint to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import LDL, joined, symmetric
from .c_rnea import net_forces
from .first_pass import first_pass, stacked

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .first_pass import ClusterState


def c_aba(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """The acceleration a (nv,) under generalized force tau in state (q, v)."""
    states = first_pass(model, q, v)
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
        if state.projected:
            W[k] = X.forces_back(U[k])
            IA[p] = IA[p] + symmetric(X.congruence(IA[k]) - D[k].quadratic(W[k].T))
            pA[p] = pA[p] + X.force_back(pA[k]) + W[k] @ D[k].solve(u[k])
        else:
            Ia = without_joint(state, IA[k], U[k], D[k])
            IA[p] = IA[p] + X.congruence(Ia)  # (55)
            pa = force_across(state, pA[k], tau[state.cluster.v], U[k], D[k], u[k])
            pA[p] = pA[p] + X.force_back(pa)  # (56)
    acc, out = [], []
    for state in states:
        k, p = state.cluster.index, state.cluster.parent
        parent = None if p is None else acc[p]
        own, a = move_on(state, D[k], u[k], U[k], W.get(k), parent)
        out.append(own)
        acc.append(a)
    return joined(out)


def force_across(state: ClusterState, pA: Array, tau: Array, U: Array, D: LDL, u: Array) -> Array:
    """p_k^a = p_k^A + U D⁻¹ u (56) of a single body: the joint's force along its axes."""
    pa, held = pA + U @ D.solve(u), held_axes(state)
    return pa if held is None else held * pa + state.S @ tau


def move_on(
    state: ClusterState, D: LDL, u: Array, U: Array, W: Array | None, parent: Array | None
) -> tuple[Array, Array]:
    """(acceleration of the joint (52), stacked acceleration of the cluster) from the parent's.

    `parent` is None where nothing moves but the joint.
    """
    if parent is None:
        out = D.solve(u)
        return out, state.S @ out
    a = state.X.motion(parent)  # line 40
    held = held_axes(state)
    if held is None or W is not None:
        out = D.solve(u - (U.T @ a if W is None else W.T @ parent))
        return out, a + state.S @ out  # line 42
    # Of one coordinate by D⁻¹ u and U D⁻¹, which are there already.
    one = U.shape[1] == 1
    rest = held * a
    y = D.solve(u) - D.scale(U.T) @ rest if one else D.solve(u - U.T @ rest)
    return y - state.S.T @ a, rest + state.S @ y


def held_axes(state: ClusterState) -> Array | None:
    """Of a single body's six coordinates 1 where its joint holds it, 0 where it moves; None where
    its axes are not coordinate axes, or have armature, which the parent does not feel."""
    S = state.S
    if len(state.cluster.bodies) > 1 or state.R is not None or not isinstance(S, np.ndarray):
        return None
    moved = np.abs(S)
    return 1.0 - moved.sum(axis=1) if np.all(np.sort(moved, axis=0)[-2:].T == (0, 1)) else None


def joint_inertia(state: ClusterState, U: Array) -> Array:
    """D_k = S_k' U_k (49), with the armature of its joints."""
    D = state.S.T @ U
    return D if state.R is None else D + state.R


def without_joint(state: ClusterState, IA: Array, U: Array, D: LDL) -> Array:
    """I_k^a = I_k^A - U D⁻¹ U' (56) of a single body.

    I_k^a S_k = 0: where the joint's axes are coordinate axes, those rows cost nothing.
    """
    Ia, held = symmetric(IA - D.quadratic(U.T)), held_axes(state)
    return Ia if held is None else Ia * np.outer(held, held)


def seen_from_parent(state: ClusterState, IA: Array, U: Array, D: LDL) -> Array:
    """λ(k)X*_k I_k^a kX_λ(k), what the articulated inertia adds to the parent's (55), (56)."""
    if not state.projected:
        return state.X.congruence(without_joint(state, IA, U, D))
    W = state.X.forces_back(U)
    return symmetric(state.X.congruence(IA) - D.quadratic(W.T))
