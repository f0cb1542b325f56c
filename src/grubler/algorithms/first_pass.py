"""The first forward pass that all cluster algorithms share (Algorithm 1, lines 2-19).

The remap of parent-relative to output-relative motion (20) is unit lower triangular and is never
formed: applying it is the recursion from each body to its parent inside the cluster.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..cluster_spatial import ClusterTransform, part
from ..clusters import Cluster
from ..model import Model
from ..parts import WORLD
from ..spatial import Transform, cross_force, cross_motion


@dataclass(frozen=True, eq=False)
class ClusterState:
    """What a cluster's joint contributes at (q, v).

    | code | paper           | meaning                                     | shape    |
    |------|-----------------|---------------------------------------------|----------|
    | X    | kX_λ(k)         | transform from the parent cluster           | blocks   |
    | S    | S_k             | motion subspace of the cluster joint (24)   | (6l, nv) |
    | v    | v_k             | stacked body velocities (33)                | (6l,)    |
    | c    | c_k = Ṡ_k ẏ_k   | bias acceleration across the joint (26)     | (6l,)    |
    """

    cluster: Cluster
    X: ClusterTransform
    S: np.ndarray
    v: np.ndarray | None
    c: np.ndarray | None


@lru_cache(maxsize=256)
def free_spinners(model: Model) -> frozenset[int]:
    """Leaf bodies symmetric about their joint axis: every rotor.

    Seen from its parent the inertia of such a body does not depend on its angle, so a frame that
    does not turn with it serves as well, and the angle drops out of the dynamics exactly.
    """
    parents = {body.parent for body in model.bodies}
    return frozenset(
        body.index
        for body in model.bodies
        if body.index not in parents and body.symmetric_about_joint
    )


def first_pass(model: Model, q, v=None, posed: Collection[int] | None = ()) -> list[ClusterState]:
    """Transforms, motion subspaces, velocities and biases of all clusters, parents first.

    Bodies in `posed` (None: all) get their true orientation even where the dynamics does not need
    it: those on which a frame sits or a force acts.
    """
    still = frozenset() if posed is None else free_spinners(model) - frozenset(posed)
    states: list[ClusterState] = []
    for cluster in model.clusters:
        up = None if v is None else np.zeros(6)
        if cluster.parent is not None:
            up = states[cluster.parent].v
        states.append(_cluster_joint(model, cluster, q, v, up, still))
    return states


def _cluster_joint(model: Model, cluster: Cluster, q, v, parent_v, still) -> ClusterState:
    embedding = cluster.embedding
    positions = embedding.positions(q[cluster.q])
    G, rates, drifts = embedding.velocity_map(positions, None if v is None else v[cluster.v])
    outputs = tuple(j or 0 for j in cluster.output)
    blocks: list[Transform] = []
    S, vs, cs = [], [], []
    for i, index in enumerate(cluster.bodies):
        joint = model.bodies[index].joint
        inside = cluster.inner[i]
        X = joint.placement if index in still else joint.transform(positions[index])
        Si = joint.motion.subspace(positions[index])
        rows = Si @ G[embedding.columns[index]]
        blocks.append(X if inside is None else X @ blocks[inside])
        S.append(rows if inside is None else X.motions(S[inside]) + rows)  # (24)
        if v is None:
            continue
        vJ = Si @ rates[index]
        vs.append(X.motion(part(parent_v, outputs[i]) if inside is None else vs[inside]) + vJ)
        c = cross_motion(vs[i], vJ) + Si @ drifts[index]  # (26)
        drift = joint.motion.bias(positions[index], rates[index])
        c = c if drift is None else c + drift
        cs.append(c if inside is None else X.motion(cs[inside]) + c)
    size = 1 if cluster.parent is None else len(model.clusters[cluster.parent].bodies)
    return ClusterState(
        cluster,
        ClusterTransform(tuple(blocks), outputs, size),
        np.concatenate(S),
        np.concatenate(vs) if vs else None,
        np.concatenate(cs) if cs else None,
    )


def base_acceleration(model: Model) -> np.ndarray:
    """The world accelerates upward instead of gravity pulling down: a_0 = -a_g."""
    return np.concatenate([np.zeros(3), -model.gravity])


def parent_of(values: list, cluster: Cluster, world):
    """A stacked quantity of the parent cluster, or the world's."""
    return world if cluster.parent is None else values[cluster.parent]


def inertias(model: Model, cluster: Cluster) -> list:
    """The spatial inertias of a cluster's bodies."""
    return [model.bodies[i].spatial for i in cluster.bodies]


def locate(model: Model, body: int) -> tuple[int, int]:
    """The cluster of a body and its place in it."""
    for cluster in model.clusters:
        if body in cluster.bodies:
            return cluster.index, cluster.bodies.index(body)
    raise AssertionError(f"body {body} is in no cluster, world is {WORLD}")


def gyroscopic(model: Model, state: ClusterState, f_ext):
    """p_k = v_k ×* I_k v_k minus the external forces, stacked (line 21)."""
    forces = []
    for i, index in enumerate(state.cluster.bodies):
        vi = part(state.v, i)
        p = cross_force(vi, model.bodies[index].spatial @ vi)
        forces.append(p if f_ext is None or index not in f_ext else p - f_ext[index])
    return np.concatenate(forces)
