"""PV: constrained dynamics by Popov and Vereshchagin's solver ([P] Sec. V, Algorithm 1).

| code | paper    | meaning                                                            | shape    |
|------|----------|--------------------------------------------------------------------|----------|
| H    | H_i^A    | articulated inertia (42a)                                          | (6l, 6l) |
| f    | f_i^A    | resultant force without constraint forces (42b)                    | (6l,)    |
| K    | K_i^A    | constraint forces propagated to the link, as rows (42c)            | (m, 6l)  |
| l    | l_i      | desired constraint accelerations propagated, negative (42d)        | (m,)     |
| L    | L_i^A    | inverse OSIM of the joints passed so far (42e)                     | (m, m)   |
| T    | T_i      | force subspace of the joint, SᵀT = 1                               | (6l, nv) |
| D, P | D_i, P_i | SᵀH S and 1 - H S D⁻¹ Sᵀ, which carries forces through the joint   |          |
| ab   | a_b,i    | acceleration across the joint at q̈ = 0                             | (6l,)    |

X, S, v, c, I, R and r are those of `joints`. A link of the paper is a cluster here. The paper gives
all vectors in one inertial frame; here each body has its own, and X stands in between. All rows are
kept at every link, zero where the paper leaves them out, and the recursion is carried to the world,
where (43) gives the multipliers, for a floating base, too (48).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import solve

from ...model import as_vector
from ..checks import checked
from .c_efpa import on_cluster
from .joints import base_acceleration, cluster_joints, cross_force, external_forces

if TYPE_CHECKING:
    from ...model.model import Model
    from ...typing import Array


def constrained_forward_dynamics(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Any,
    f_ext: Mapping[int, Array] | None = None,
) -> tuple[Array, Array | Array | Any]:
    """The acceleration a (nv,) and the multipliers (m,) with M a + h = tau + Jᵀ λ.

    `constraints` are tuples (frame name, K (m_i, 6), k (m_i,)): K a = k of the frame's spatial
    acceleration [angular; linear] in its axes. The rows must be independent at q.
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    joints = cluster_joints(model, q, v)
    a0 = base_acceleration(model)
    K, l, L = constraint_rows(model, joints, constraints, a0)
    H = [j.I for j in joints]
    bias = [cross_force(j.v) @ j.I @ j.v for j in joints]
    f = [external - p for external, p in zip(external_forces(model, f_ext), bias)]
    for k, j in enumerate(joints):  # line 5
        T = j.S @ np.linalg.inv(j.S.T @ j.S)
        f[k] = f[k] + T @ (tau[j.y] - j.r)
        if j.parent is not None:
            f[j.parent] = f[j.parent] - j.X.T @ T @ (tau[j.y] - j.r)
    D, K0 = {}, np.zeros((len(l), 6))
    for k, j in reversed(list(enumerate(joints))):
        S, X, ab = j.S, j.X, j.c
        D[k] = S.T @ H[k] @ S + j.R  # line 7
        P = np.eye(len(S)) - H[k] @ S @ solve(D[k], S.T)
        L = L + K[k] @ S @ solve(D[k], S.T @ K[k].T)  # line 11 (42e)
        l = l + K[k] @ (ab + S @ solve(D[k], S.T @ (f[k] - H[k] @ ab)))  # line 12 (42d)
        if j.parent is None:
            K0 = K0 + K[k] @ P.T @ X
            continue
        f[j.parent] = f[j.parent] + X.T @ P @ (f[k] - H[k] @ ab)  # line 8 (42b)
        H[j.parent] = H[j.parent] + X.T @ P @ H[k] @ X  # line 9 (42a)
        K[j.parent] = K[j.parent] + K[k] @ P.T @ X  # line 10 (42c)
    lam = solve(L, l + K0 @ a0) if len(l) else l  # (43)
    a, qdd = [], np.zeros(model.nv)
    for k, j in enumerate(joints):
        ap = j.X @ (a0 if j.parent is None else a[j.parent]) + j.c
        qdd[j.y] = solve(D[k], j.S.T @ (f[k] - H[k] @ ap - K[k].T @ lam))  # line 16 (41)
        a.append(ap + j.S @ qdd[j.y])  # line 17
    return qdd, -lam  # the paper's multipliers pull, ours push


def constraint_rows(
    model: Model, joints: Any, constraints: Any, a0: Array
) -> tuple[list[Array], Array, Array]:
    """K by cluster, l = -k with gravity (Sec. III-B2), and L = 0, all of m rows (line 5)."""
    m = sum(len(K) for _, K, _ in constraints)
    rows = [np.zeros((m, len(j.S))) for j in joints]
    l, start = np.zeros(m), 0
    for name, K, k in constraints:
        here = slice(start, start + len(K))
        start = here.stop
        i, X = on_cluster(model, model.frame(name))
        rows[i][here] = up = np.reshape(K, (-1, 6)) @ X
        while i is not None:  # a_0, seen from the frame
            up, i = up @ joints[i].X, joints[i].parent
        l[here] = -(as_vector(f"k of '{name}'", k, len(K)) + up @ a0)
    return rows, l, np.zeros((m, m))
