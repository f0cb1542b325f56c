"""C-RNEA: inverse dynamics by the cluster-based recursive Newton-Euler algorithm ([C] Sec. VI).

| code | paper      | meaning                                                       | shape |
|------|------------|---------------------------------------------------------------|-------|
| a    | a_k        | stacked spatial accelerations of the bodies (33)              | (6l,) |
| f    | f_k^net, f_k^J | net force (34), then the force across the cluster joint (35) | (6l,) |
| tau  | τ_k        | generalized force at the independent joints (31)              | (nv,) |

X, S, v, c, I, R and r are those of `joints`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..checks import checked
from .joints import base_acceleration, cluster_joints, cross_force, external_forces

if TYPE_CHECKING:
    from ...model.model import Model
    from ...typing import Array


def inverse_dynamics(
    model: Model, q: Array, v: Array, ydd: Array, f_ext: Mapping[int, Array] | None = None
) -> np.ndarray:
    """The generalized force tau (nv,) that gives acceleration ydd (nv,) in state (q, v)."""
    q, v, ydd = checked(model, q=q, v=v, a=ydd)
    joints = cluster_joints(model, q, v)
    a0, f_ext = base_acceleration(model), external_forces(model, f_ext)
    a, f = [], []
    for k, j in enumerate(joints):
        a_parent = a0 if j.parent is None else a[j.parent]
        a.append(j.X @ a_parent + j.c + j.S @ ydd[j.y])  # (33)
        f.append(j.I @ a[k] + cross_force(j.v) @ j.I @ j.v - f_ext[k])  # (34)
    tau = np.zeros(model.nv)
    for k, j in reversed(list(enumerate(joints))):
        tau[j.y] = j.S.T @ f[k] + j.R @ ydd[j.y] + j.r  # (31)
        if j.parent is not None:
            f[j.parent] = f[j.parent] + j.X.T @ f[k]  # (35)
    return tau
