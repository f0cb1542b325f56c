"""The first forward pass that all cluster algorithms share (Algorithm 1, lines 2-19).

The remap of parent-relative to output-relative motion (20) is unit lower triangular and is never
formed: applying it is the recursion from each body to its parent inside the cluster.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..cluster_spatial import ClusterTransform, SpinAxis, split
from ..clusters import Cluster
from ..linalg import symmetric
from ..model import Model
from ..spatial import cross_motion, net_force


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
    I: list
    R: np.ndarray | None
    r: np.ndarray | None
    spinning: frozenset[int]

    def split(self, x) -> list:
        """A stacked quantity of this cluster by body."""
        return split(x, self.X.sizes)


@lru_cache(maxsize=256)
def spinners(model: Model) -> frozenset[int]:
    """Leaf bodies symmetric about their joint axis: every rotor."""
    parents = {body.parent for body in model.bodies}
    return frozenset(
        body.index
        for body in model.bodies
        if body.index not in parents and body.parent >= 0 and body.symmetric_about_joint
    )


@lru_cache(maxsize=256)
def inertias(model: Model, spinning: frozenset[int]) -> list:
    """The inertia of each body: with all of a rotor it carries but the spin; a rotor's is J."""
    I = [body.spatial for body in model.bodies]
    for i in spinning:
        body = model.bodies[i]
        axis = _axis(body)
        J = axis @ (body.spatial @ axis)
        rest = body.spatial - J * np.outer(axis, axis)
        I[body.parent] = I[body.parent] + body.joint.placement.congruence(rest)
        I[i] = np.stack([np.stack([J])])
    return I


def _axis(body) -> np.ndarray:
    """e, the row that takes a velocity's part about the joint axis."""
    return np.concatenate([body.joint.motion.axis, np.zeros(3)])


def first_pass(model: Model, q, v=None, posed: Collection[int] | None = ()) -> list[ClusterState]:
    """Transforms, motion subspaces, velocities and biases of all clusters, parents first.

    Bodies in `posed` (None: all) get six coordinates and their true orientation even where their
    spin would do: those on which a frame sits or a force acts.
    """
    spinning = frozenset() if posed is None else spinners(model) - frozenset(posed)
    states: list[ClusterState] = []
    for cluster in model.clusters:
        parent = None if cluster.parent is None else states[cluster.parent]
        states.append(_cluster_joint(model, cluster, q, v, parent, spinning))
    return states


def _cluster_joint(model: Model, cluster: Cluster, q, v, parent, spinning) -> ClusterState:
    embedding = cluster.embedding
    positions = embedding.positions(q[cluster.q])
    G, rates, drifts = embedding.velocity_map(positions, None if v is None else v[cluster.v])
    outputs = tuple(j or 0 for j in cluster.output)
    if v is not None:
        carried_v = [np.zeros(6)] if parent is None else parent.split(parent.v)
    blocks, S, vs, cs = [], [], [], []
    for i, index in enumerate(cluster.bodies):
        joint = model.bodies[index].joint
        inside = cluster.inner[i]
        if index in spinning:
            X = SpinAxis(_axis(model.bodies[index])) @ joint.placement
            Si = np.eye(1)
        else:
            X, Si = joint.transform(positions[index]), joint.motion.subspace(positions[index])
        rows = Si @ G[embedding.columns[index]]
        blocks.append(X if inside is None else X @ blocks[inside])
        S.append(rows if inside is None else X.motions(S[inside]) + rows)  # (24)
        if v is None:
            continue
        vJ = Si @ rates[index]
        vs.append(X.motion(carried_v[outputs[i]] if inside is None else vs[inside]) + vJ)
        c = Si @ drifts[index]
        if index not in spinning:
            c = c + cross_motion(vs[i], vJ)  # (26)
            drift = joint.motion.bias(positions[index], rates[index])
            c = c if drift is None else c + drift
        cs.append(c if inside is None else X.motion(cs[inside]) + c)
    I = inertias(model, spinning)
    R, r = _armature(model, cluster, G, drifts)
    return ClusterState(
        cluster,
        ClusterTransform(tuple(blocks), outputs, (6,) if parent is None else parent.X.sizes),
        np.concatenate(S),
        np.concatenate(vs) if vs else None,
        np.concatenate(cs) if cs else None,
        [I[index] for index in cluster.bodies],
        R,
        r,
        spinning,
    )


def _armature(model: Model, cluster: Cluster, G, drifts):
    """Gᵀ R G and Gᵀ R g for the armature R of the cluster's tree joints; None without any."""
    joints = [model.bodies[i].joint for i in cluster.bodies]
    if not any(joint.armature for joint in joints):
        return None, None
    weights = np.concatenate([np.full(joint.nv, joint.armature) for joint in joints])
    GR = G.T * weights
    drift = None if drifts is None else np.concatenate([drifts[i] for i in cluster.bodies])
    return symmetric(GR @ G), None if drift is None else GR @ drift


def base_acceleration(model: Model) -> np.ndarray:
    """The world accelerates upward instead of gravity pulling down: a_0 = -a_g."""
    return np.concatenate([np.zeros(3), -model.gravity])


def parent_of(values: list, cluster: Cluster, world):
    """A stacked quantity of the parent cluster, or the world's."""
    return world if cluster.parent is None else values[cluster.parent]


def locate(model: Model, body: int) -> tuple[int, int]:
    """The cluster of a body and its place in it."""
    return next((c.index, c.bodies.index(body)) for c in model.clusters if body in c.bodies)


def net_forces(model: Model, states: list[ClusterState], f_ext, acc=None) -> list:
    """f_k^net = I_k a_k + v_k ×* I_k v_k minus the external forces, stacked, of every cluster (34).

    Without accelerations the bias p_k (line 21). The momentum J σ of a rotor's spin turns with the
    body that carries it.
    """
    spin = {}
    for state in states:
        for body, I, v in zip(state.cluster.bodies, state.I, state.split(state.v), strict=True):
            if body in state.spinning:
                rotor = model.bodies[body]
                row = (SpinAxis(_axis(rotor)) @ rotor.joint.placement).row
                h = row[:3] * (I[0, 0] * v[0])
                spin[rotor.parent] = spin[rotor.parent] + h if rotor.parent in spin else h
    forces = []
    for state in states:
        k = state.cluster
        accelerations = [None] * len(k.bodies) if acc is None else state.split(acc[k.index])
        parts = []
        for body, I, v, a in zip(
            k.bodies, state.I, state.split(state.v), accelerations, strict=True
        ):
            if body in state.spinning:
                parts.append(np.zeros(1) if a is None else I[0] * a)
                continue
            f = net_force(I, v, a, spin.get(body))
            parts.append(f if f_ext is None or body not in f_ext else f - f_ext[body])
        forces.append(np.concatenate(parts))
    return forces
