"""The first forward pass that all cluster algorithms share (Algorithm 1, lines 2-19).

The remap of parent-relative to output-relative motion (20) is unit lower triangular and is never
formed: applying it is the recursion from each body to its parent inside the cluster.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import ClusterTransform, SpinAxis, split
from ..algebra.linalg import symmetric
from ..algebra.spatial import Levered, cross_motion
from ..model import Model
from ..model.clusters import Cluster
from ..reduction.reduced import Reduced, as_described, reduced, spin_row

if TYPE_CHECKING:
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class ClusterState:
    """What a cluster's joint contributes at (q, v).

    | code | paper           | meaning                                     | shape    |
    |------|-----------------|---------------------------------------------|----------|
    | X    | kX_λ(k)         | transform from the parent cluster           | blocks   |
    | S    | S_k             | motion subspace of the cluster joint (24)   | (6l, nv) |
    | v    | v_k             | stacked body velocities (33)                | (6l,)    |
    | c    | c_k = Ṡ_k ẏ_k   | bias acceleration across the joint (26)     | (6l,)    |
    | I    | I_i             | inertias of the bodies                      | list     |
    | R, r | Gᵀ R G, Gᵀ R g  | armature R of the tree joints, or None      | (nv, nv) |

    A rotor that only spins has one row instead of six; `spinning` are the bodies treated so.
    """

    cluster: Cluster
    X: ClusterTransform
    S: np.ndarray
    v: np.ndarray | None
    c: np.ndarray | None
    I: list[Any]
    R: np.ndarray | None
    r: np.ndarray | None
    robot: Reduced
    parent: ClusterState | None

    @property
    def projected(self) -> bool:
        """Whether the inertia is seen from the parent before the joint's part is subtracted: of
        several bodies, and on a parent that turns about a fixed axis or point, since only one
        number of the parent's inertia, or its moments, count there."""
        up, X = self.parent, self.X.blocks[0]
        turning = isinstance(X, Levered) or (up is not None and up._turns_only)
        return turning or len(self.cluster.bodies) > 1

    @property
    def _turns_only(self) -> bool:
        """One coordinate on a fixed base, and one axis of each body's."""
        return (
            self.parent is None
            and self.cluster.nv == 1
            and isinstance(self.S, np.ndarray)
            and np.count_nonzero(self.S) == len(self.cluster.bodies)
        )

    @property
    def spinning(self) -> frozenset[int]:
        return self.robot.spinning

    def split(self, x: Array | None) -> list[Any]:
        """A stacked quantity of this cluster by body."""
        return split(x, self.X.sizes)


def first_pass(
    model: Model, q: Array, v: Array | None = None, posed: Collection[int] | None = ()
) -> list[ClusterState]:
    """Transforms, motion subspaces, velocities and biases of all clusters, parents first.

    Bodies in `posed` (None: all) get six coordinates and their true orientation even where their
    spin would do: those on which a frame sits. With None the inertias, too, are
    each body's own.
    """
    robot = as_described(model) if posed is None else reduced(model, frozenset(posed))
    states: list[ClusterState] = []
    for cluster, embedding in zip(model.clusters, robot.embeddings):
        parent = None if cluster.parent is None else states[cluster.parent]
        states.append(_cluster_joint(robot, cluster, embedding, q, v, parent))
    return states


def _cluster_joint(robot: Reduced, cluster: Cluster, embedding, q, v, parent) -> ClusterState:
    positions = embedding.positions(q[cluster.q])
    G, rates, drifts = embedding.velocity_map(positions, None if v is None else v[cluster.v])
    outputs = tuple(j or 0 for j in cluster.output)
    if v is not None:
        carried_v = [np.zeros(6)] if parent is None else parent.split(parent.v)
    blocks, S, vs, cs = [], [], [], []
    for i, index in enumerate(cluster.bodies):
        joint = robot.bodies[index].joint
        inside = cluster.inner[i]
        if index in robot.spinning:
            X = SpinAxis(np.concatenate([spin_row(robot.bodies[index]), np.zeros(3)]))
            Si = np.eye(1)
        else:
            X, Si = joint.transform(positions[index]), joint.motion.subspace(positions[index])
        rows = Si @ G[embedding.columns[index]]
        blocks.append(X if inside is None else X @ blocks[inside])
        S.append(rows if inside is None else X.motions(S[inside]) + rows)  # (24)
        if v is None:
            continue
        vJ, c = Si @ rates[index], Si @ drifts[index]
        up = carried_v[outputs[i]] if inside is None else vs[inside]
        vs.append(X.motion(up) + vJ)
        if index not in robot.spinning:
            c = c + cross_motion(vs[i], vJ)  # (26)
            drift = joint.motion.bias(positions[index], rates[index])
            c = c if drift is None else c + drift
        cs.append(c if inside is None else X.motion(cs[inside]) + c)
    R, r = _armature(robot, cluster, G, drifts)
    return ClusterState(
        cluster,
        ClusterTransform(tuple(blocks), outputs, (6,) if parent is None else parent.X.sizes),
        np.concatenate(S),
        np.concatenate(vs) if vs else None,
        np.concatenate(cs) if cs else None,
        [robot.I[index] for index in cluster.bodies],
        R,
        r,
        robot,
        parent,
    )


def _armature(robot: Reduced, cluster: Cluster, G, drifts):
    """Gᵀ R G and Gᵀ R g for the armature R of the cluster's tree joints; None without any."""
    joints = [robot.bodies[i].joint for i in cluster.bodies]
    if not any(joint.armature for joint in joints):
        return None, None
    weights = np.concatenate([np.full(joint.nv, joint.armature) for joint in joints])
    GR = G.T * weights
    drift = None if drifts is None else np.concatenate([drifts[i] for i in cluster.bodies])
    return symmetric(GR @ G), None if drift is None else GR @ drift


def base_acceleration(model: Model) -> np.ndarray:
    """The world accelerates upward instead of gravity pulling down: a_0 = -a_g."""
    return np.concatenate([np.zeros(3), -model.gravity])


def accelerations(states: list[ClusterState], a: Array | None, base: Array) -> list[Array]:
    """Stacked accelerations of all clusters (33); a=None leaves the bias alone."""
    acc = []
    for state in states:
        k = state.cluster
        value = state.X.motion(base if k.parent is None else acc[k.parent]) + state.c
        acc.append(value if a is None else value + state.S @ a[k.v])
    return acc


def stacked(states: list[ClusterState], by_body: dict[Any, Any]) -> list[Any]:
    """What bodies have, by index, stacked by cluster; a rotor has one number."""
    return [
        np.concatenate(
            [
                np.stack([by_body[i]]) if i in state.spinning else by_body[i]
                for i in state.cluster.bodies
            ]
        )
        for state in states
    ]


def parent_of(values: list[Any], cluster: Cluster, world: Any) -> Any:
    """A stacked quantity of the parent cluster, or the world's."""
    return world if cluster.parent is None else values[cluster.parent]


def locate(model: Model, body: int) -> tuple[int, int]:
    """The cluster of a body and its place in it."""
    return next((c.index, c.bodies.index(body)) for c in model.clusters if body in c.bodies)
