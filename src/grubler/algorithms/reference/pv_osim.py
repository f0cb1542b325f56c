"""PV-OSIM: the inverse operational-space inertia matrix in two sweeps ([P] Algorithm 2).

| code | paper    | meaning                                                            | shape    |
|------|----------|--------------------------------------------------------------------|----------|
| H    | H_i^A    | articulated inertia (42a)                                          | (6l, 6l) |
| K    | K_i^A    | constraint forces propagated to the link, as rows (42c)            | (m, 6l)  |
| L    | L_i^A    | inverse OSIM of the joints passed so far (42e)                     | (m, m)   |
| D, P | D_i, P_i | SᵀH S and 1 - H S D⁻¹ Sᵀ, which carries forces through the joint   |          |

X, S, I and R are those of `joints`. A link of the paper is a cluster here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.linalg import solve

from ..checks import checked, checked_frames
from .c_efpa import on_cluster
from .joints import cluster_joints

if TYPE_CHECKING:
    from ...model.model import Model
    from ...typing import Array, Frame


def inverse_osim(
    model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]
) -> np.ndarray:
    """J M⁻¹ Jᵀ of frames, names or (name, rows): rows of [angular; linear] in each frame's axes."""
    q = checked(model, q=q)
    joints = cluster_joints(model, q, np.zeros(model.nv))
    frames = checked_frames(model, frames)
    m, start = sum(len(chosen) for _, chosen in frames), 0
    H, K, L = [j.I for j in joints], [np.zeros((m, len(j.I))) for j in joints], np.zeros((m, m))
    for frame, chosen in frames:  # line 3
        k, X = on_cluster(model, frame)
        K[k][start : start + len(chosen)] = X[list(chosen)]
        start += len(chosen)
    for k, j in reversed(list(enumerate(joints))):
        S, X = j.S, j.X
        D = S.T @ H[k] @ S + j.R  # line 5
        P = np.eye(len(S)) - H[k] @ S @ solve(D, S.T)
        L = L + K[k] @ S @ solve(D, S.T @ K[k].T)  # line 8
        if j.parent is not None:
            H[j.parent] = H[j.parent] + X.T @ P @ H[k] @ X  # line 6
            K[j.parent] = K[j.parent] + K[k] @ P.T @ X  # line 7
    return L
