"""C-ABA: forward dynamics by the cluster-based articulated-body algorithm ([C] Algorithm 1).

| code   | paper        | meaning                                                  | shape    |
|--------|--------------|----------------------------------------------------------|----------|
| IA     | I_k^A        | articulated-cluster inertia (55)                         | (6l, 6l) |
| pA     | p_k^A        | articulated bias force (55)                              | (6l,)    |
| U, D   | U_k, D_k     | I_k^A S_k and S_kᵀ U_k (49)                              |          |
| u      | u_k          | τ_k - S_kᵀ p_k^A (49)                                    | (nv,)    |
| Ia, pa | I^a, p^a     | what the parent feels of inertia and bias force (56)     |          |
| ap     | a'           | acceleration of the cluster at ÿ_k = 0 (line 40)         | (6l,)    |
| ydd    | ÿ            | acceleration of the independent coordinates (52)         | (nv,)    |

X, S, v, c, I, R and r are those of `joints`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.linalg import solve

from ..checks import checked
from .joints import base_acceleration, cluster_joints, cross_force, external_forces

if TYPE_CHECKING:
    from ...model.model import Model
    from ...typing import Array


def forward_dynamics(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> np.ndarray:
    """The acceleration ydd (nv,) under generalized force tau (nv,) in state (q, v)."""
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    joints, f_ext = cluster_joints(model, q, v), external_forces(model, f_ext)  # lines 2-19
    IA = [j.I for j in joints]  # line 20
    pA = [cross_force(j.v) @ j.I @ j.v - f for j, f in zip(joints, f_ext)]  # line 21
    U, D, u = {}, {}, {}
    for k, j in reversed(list(enumerate(joints))):
        U[k] = IA[k] @ j.S  # line 26 (49)
        D[k] = j.S.T @ U[k] + j.R  # line 27
        u[k] = tau[j.y] - j.S.T @ pA[k] - j.r  # line 28
        if j.parent is not None:
            Ia = IA[k] - U[k] @ solve(D[k], U[k].T)  # line 30 (56)
            pa = pA[k] + Ia @ j.c + U[k] @ solve(D[k], u[k])  # line 31
            IA[j.parent] = IA[j.parent] + j.X.T @ Ia @ j.X  # line 32 (55)
            pA[j.parent] = pA[j.parent] + j.X.T @ pa  # line 33
    a0 = base_acceleration(model)  # line 38
    a, ydd = [], np.zeros(model.nv)
    for k, j in enumerate(joints):
        ap = j.X @ (a0 if j.parent is None else a[j.parent]) + j.c  # line 40
        ydd[j.y] = solve(D[k], u[k] - U[k].T @ ap)  # line 41 (52)
        a.append(ap + j.S @ ydd[j.y])  # line 42
    return ydd
