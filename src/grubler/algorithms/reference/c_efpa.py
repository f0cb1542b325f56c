"""C-EFPA: the inverse operational-space inertia matrix by force propagators ([C] Sec. VIII).

| code | paper     | meaning                                                      | shape    |
|------|-----------|--------------------------------------------------------------|----------|
| IA   | I_k^A     | articulated-cluster inertia (55)                             | (6l, 6l) |
| U, D | U_k, D_k  | I_k^A S_k and S_kᵀ U_k (49)                                  |          |
| L    | L_k       | 1 - S_k D_k⁻¹ U_kᵀ, its transpose carries forces over k (61) | (6l, 6l) |
| chi  | eχ_k      | its transpose carries forces from effector e to k (57), (62) | (m, 6l)  |
| Om   | Ω_ke⁻¹    | acceleration of cluster k by a unit force at effector e (67) | (6l, m)  |

X, S, I and R are those of `joints`. Block (e, d) of the result is eX_λ(e) Ω_λ(e)d⁻¹.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import solve

from ..checks import checked, checked_frames
from .joints import ClusterJoint, cluster_joints, rows

if TYPE_CHECKING:
    from ...model.model import Model
    from ...typing import Array, Frame


def inverse_osim(
    model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]
) -> np.ndarray:
    """J M⁻¹ Jᵀ of frames, names or (name, rows): rows of [angular; linear] in each frame's axes."""
    q = checked(model, q=q)
    joints = cluster_joints(model, q, np.zeros(model.nv))
    U, D = articulated(joints)
    L = [np.eye(len(j.I)) - j.S @ solve(D[k], U[k].T) for k, j in enumerate(joints)]  # (61)
    at, chi = [], []  # by effector: the cluster that it is on, and its propagators by cluster
    for frame, chosen in checked_frames(model, frames):
        k, X = on_cluster(model, frame)
        start = X[list(chosen)]
        at.append((k, start))
        chi.append({k: start})  # (57)
        while joints[k].parent is not None:
            j = joints[k]
            chi[-1][j.parent] = chi[-1][k] @ L[k] @ j.X  # (62)
            k = j.parent
    Om: list[list[np.ndarray]] = []  # by cluster and effector
    for k, j in enumerate(joints):
        Om.append([])
        for e, x in enumerate(chi):
            m = len(at[e][1])
            parent = np.zeros((j.X.shape[1], m)) if j.parent is None else Om[j.parent][e]
            own = j.S @ solve(D[k], j.S.T @ x[k].T) if k in x else 0.0  # e in ES(C_k)
            Om[k].append(L[k] @ j.X @ parent + own)  # (67)
    return np.block([[start @ Om[k][e] for e in range(len(at))] for k, start in at])


def articulated(joints: list[ClusterJoint]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """U and D of every cluster (49), by the recursion of the articulated inertias (55), (56)."""
    IA, U, D = [j.I for j in joints], {}, {}
    for k, j in reversed(list(enumerate(joints))):
        U[k] = IA[k] @ j.S
        D[k] = j.S.T @ U[k] + j.R
        if j.parent is not None:
            Ia = IA[k] - U[k] @ solve(D[k], U[k].T)
            IA[j.parent] = IA[j.parent] + j.X.T @ Ia @ j.X
    return U, D


def on_cluster(model: Model, frame: Frame) -> tuple[int, np.ndarray]:
    """(cluster that carries a frame, transform (6, 6l) from its bodies to the frame) (57), (58)."""
    k = next(c for c in model.clusters if frame.body in c.bodies)
    X = np.zeros((6, 6 * len(k.bodies)))
    X[:, rows(k.bodies.index(frame.body))] = frame.placement.matrix()
    return k.index, X
