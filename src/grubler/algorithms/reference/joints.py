"""Cluster joints at a state, as dense matrices ([C] Algorithm 1, lines 2 to 19).

| code   | paper            | meaning                                                 | shape      |
|--------|------------------|---------------------------------------------------------|------------|
| X      | kX_λ(k)          | motion transform from the parent cluster (17)           | (6l, 6l')  |
| remap  | Λ(k)X_λ(k)       | parent-relative to output-relative motion (20)          | (6l, 6l)   |
| dremap | d/dt Λ(k)X_λ(k)  | its derivative (line 17)                                | (6l, 6l)   |
| Sb     | S̄_k              | motion subspaces of the tree joints (line 8)            | (6l, n)    |
| rates  | G_k ẏ_k          | velocities of the tree joints (3)                       | (n,)       |
| drifts | g_k              | accelerations of the tree joints at ÿ_k = 0 (3)         | (n,)       |
| S      | S_k              | motion subspace of the cluster joint (24)               | (6l, nv)   |
| v      | v_k              | stacked spatial velocities of the bodies (33)           | (6l,)      |
| c      | c_k = Ṡ_k ẏ_k    | acceleration across the joint at ÿ_k = 0 (26)           | (6l,)      |
| I      | I_k              | inertias of the bodies, block diagonal (14)             | (6l, 6l)   |
| R, r   | Gᵀ A G, Gᵀ A g   | armature A of the tree joints; the papers have none     | (nv, nv)   |

A cluster has l bodies, its parent cluster l' bodies; the world counts as one body at rest. The
cluster has n spanning and nv independent velocities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...model import Model
from ...model.clusters import Cluster
from ..checks import checked_forces

if TYPE_CHECKING:
    from ...typing import Array


@dataclass(frozen=True, eq=False)
class ClusterJoint:
    """What the cluster joint k contributes at (q, v); `y` is its slice of v, `parent` λ(k)."""

    y: slice
    parent: int | None
    X: np.ndarray
    S: np.ndarray
    v: np.ndarray
    c: np.ndarray
    I: np.ndarray
    R: np.ndarray
    r: np.ndarray


def cluster_joints(model: Model, q: np.ndarray, v: np.ndarray) -> list[ClusterJoint]:
    """The joint of every cluster, parents first."""
    joints: list[ClusterJoint] = []
    for cluster in model.clusters:
        at_rest = np.zeros(6)  # line 2
        v_parent = at_rest if cluster.parent is None else joints[cluster.parent].v
        joints.append(_cluster_joint(model, cluster, q, v, v_parent))
    return joints


def _cluster_joint(model: Model, k: Cluster, q, v, v_parent) -> ClusterJoint:
    bodies = [model.bodies[i] for i in k.bodies]
    positions = k.embedding.positions(q[k.q])
    G, by_body, drift = k.embedding.velocity_map(positions, v[k.v])  # line 11
    G = np.concatenate([G[k.embedding.columns[b.index]] for b in bodies])
    rates = np.concatenate([by_body[b.index] for b in bodies])
    drifts = np.concatenate([drift[b.index] for b in bodies])
    Xp = [b.joint.transform(positions[b.index]).matrix() for b in bodies]  # line 6
    Sb = block([b.joint.motion.subspace(positions[b.index]) for b in bodies])  # line 8
    moving = [b.joint.motion.bias(positions[b.index], by_body[b.index]) for b in bodies]
    dSb_rates = np.concatenate([np.zeros(6) if x is None else x for x in moving])  # (d/dt S̄) G ẏ

    X = between_clusters(k, Xp, len(v_parent))  # line 9
    remap = within_cluster(k, Xp)  # line 10
    S = remap @ Sb @ G  # line 12 (24)
    v_joint = S @ v[k.v]
    vk = X @ v_parent + v_joint  # line 13 (33)
    dremap = derivative(remap, vk)  # lines 14-17
    dS_y = dremap @ Sb @ rates + remap @ dSb_rates + remap @ Sb @ drifts
    c = dS_y + cross_motion(vk) @ v_joint  # (26); line 18 prints the first term alone
    armature = np.concatenate([np.full(b.joint.nv, b.joint.armature) for b in bodies])
    R, r = G.T @ (armature[:, None] * G), G.T @ (armature * drifts)
    return ClusterJoint(k.v, k.parent, X, S, vk, c, block([b.spatial for b in bodies]), R, r)


def between_clusters(k: Cluster, Xp: list[np.ndarray], width: int) -> np.ndarray:
    """kX_λ(k): in the row of each body, the transform from its output body (17)."""
    X = np.zeros((6 * len(k.bodies), width))
    for i, output in enumerate(k.output):
        Xi, j = Xp[i], k.inner[i]
        while j is not None:  # up to the output body, through the cluster
            Xi, j = Xi @ Xp[j], k.inner[j]
        X[rows(i), rows(output or 0)] = Xi
    return X


def within_cluster(k: Cluster, Xp: list[np.ndarray]) -> np.ndarray:
    """Λ(k)X_λ(k): unit lower triangular, the transforms from all bodies that carry a body (20)."""
    remap = np.eye(6 * len(k.bodies))
    for i, parent in enumerate(k.inner):
        if parent is not None:
            remap[rows(i)] += Xp[i] @ remap[rows(parent)]
    return remap


def derivative(remap: np.ndarray, vk: np.ndarray) -> np.ndarray:
    """d/dt Λ(k)X_λ(k), block by block: d/dt iX_j = (iX_j v_j - v_i) × iX_j (line 15)."""
    out = np.zeros_like(remap)
    for i in range(len(vk) // 6):
        for j in range(i):
            X = remap[rows(i), rows(j)]
            out[rows(i), rows(j)] = cross_motion(X @ vk[rows(j)] - vk[rows(i)]) @ X
    return out


def rows(i: int) -> slice:
    """The rows of the i-th body of a cluster."""
    return slice(6 * i, 6 * i + 6)


def block(matrices: list[np.ndarray]) -> np.ndarray:
    """block({Z_i}): matrices on the diagonal, zeros elsewhere (14)."""
    out = np.zeros((sum(len(Z) for Z in matrices), sum(Z.shape[1] for Z in matrices)))
    row = column = 0
    for Z in matrices:
        out[row : row + len(Z), column : column + Z.shape[1]] = Z
        row, column = row + len(Z), column + Z.shape[1]
    return out


def cross_motion(v: np.ndarray) -> np.ndarray:
    """v ×, block diagonal over the bodies of a cluster (5)."""
    return block([_cross(v[rows(i)]) for i in range(len(v) // 6)])


def cross_force(v: np.ndarray) -> np.ndarray:
    """v ×* = -(v ×)ᵀ (5)."""
    return -cross_motion(v).T


def _cross(v: np.ndarray) -> np.ndarray:
    w, l = _skew(v[:3]), _skew(v[3:])
    return np.block([[w, np.zeros((3, 3))], [l, w]])


def _skew(p: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])


def base_acceleration(model: Model) -> np.ndarray:
    """a_0 = -a_g (6,): the world accelerates upward instead of gravity pulling down."""
    return np.concatenate([np.zeros(3), -model.gravity])


def external_forces(model: Model, f_ext: Mapping[int, Array] | None) -> list[np.ndarray]:
    """The external forces on the bodies of each cluster, stacked, from those by body name."""
    known = checked_forces(model, f_ext) or {}
    return [
        np.concatenate([known.get(i, np.zeros(6)) for i in cluster.bodies])
        for cluster in model.clusters
    ]
