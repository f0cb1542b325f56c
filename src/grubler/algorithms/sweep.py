"""The outward sweep that all cluster algorithms share (Algorithm 1, lines 2-19).

Per tree joint: position, transform, subspace, its rows of G, rate and drift, each computed once.
Cluster quantities are made of these when they are asked for: transforms and motion subspaces (20),
(24), spatial velocities (33), bias accelerations (26).

The remap of parent-relative to output-relative motion (20) is unit lower triangular and is never
formed: applying it is the recursion from each body to its parent inside the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import ClusterTransform, SpinAxis, split
from ..algebra.linalg import symmetric
from ..algebra.spatial import Transform, TurnThenShift, cross_motion
from ..mechanism.parts import Body
from ..model import Model
from ..model.clusters import Cluster
from ..reduction.reduced import Reduced, reduced, spin_row, unreduced

if TYPE_CHECKING:
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class JointState:
    """A body's tree joint at (q, v); n is its number of velocities.

    | code  | meaning                                                     | shape   |
    |-------|-------------------------------------------------------------|---------|
    | q     | position of the joint                                       | (nq,)   |
    | X     | transform from the parent body; of a `spin_only` body a row |         |
    | S     | motion subspace; 1 of a `spin_only` body                    | (6, n)  |
    | G     | its rows of the cluster's G (7)                             | (n, nv) |
    | rate  | velocity G v, None without v                                | (n,)    |
    | drift | its rows of g (7), None without v                           | (n,)    |
    """

    body: Body
    q: np.ndarray
    X: Transform | SpinAxis
    S: np.ndarray
    G: np.ndarray
    rate: np.ndarray | None
    drift: np.ndarray | None

    @property
    def spin_only(self) -> bool:
        return isinstance(self.X, SpinAxis)

    @cached_property
    def bias(self) -> Array | None:
        """The joint's own bias acceleration Ṡ q̇ (6,), or None."""
        return None if self.spin_only else self.body.joint.motion.bias(self.q, self.rate)

    def acceleration(self, a: Array) -> Array | Any:
        """Of the joint's coordinates (n,), from those of the cluster (nv,); None for a = 0."""
        return self.drift if a is None else self.G @ a + self.drift


@dataclass(frozen=True, eq=False)
class ClusterState:
    """A cluster's joint at (q, v).

    | code | paper           | meaning                                     | shape    |
    |------|-----------------|---------------------------------------------|----------|
    | X    | kX_λ(k)         | transform from the parent cluster (17)      | blocks   |
    | S    | S_k             | motion subspace of the cluster joint (24)   | (6l, nv) |
    | v    | v_k             | stacked body velocities (33)                | (6l,)    |
    | c    | c_k = Ṡ_k ẏ_k   | bias acceleration across the joint (26)     | (6l,)    |
    | I    | I_i             | inertias of the bodies                      | list     |
    | R, r | Gᵀ R G, Gᵀ R g  | armature R of the tree joints, or None      | (nv, nv) |

    A `spin_only` body, a rotor, has one row instead of six.
    """

    sweep: Sweep
    cluster: Cluster
    joints: tuple[JointState, ...]
    I: list[Any]
    parent: ClusterState | None

    @cached_property
    def X(self) -> ClusterTransform:
        blocks: list[Any] = []
        for joint, inside in zip(self.joints, self.cluster.inner, strict=True):
            blocks.append(joint.X if inside is None else joint.X @ blocks[inside])
        outputs = tuple(j or 0 for j in self.cluster.output)
        return ClusterTransform(tuple(blocks), outputs, self.parent.sizes if self.parent else (6,))

    @cached_property
    def S(self) -> Array:
        S: list[Any] = []
        for joint, inside in zip(self.joints, self.cluster.inner, strict=True):
            rows = joint.S @ joint.G
            S.append(rows if inside is None else joint.X.motions(S[inside]) + rows)  # (24)
        return np.concatenate(S)

    @property
    def v(self) -> Any:
        return self.sweep.velocities[self.cluster.index]

    @property
    def c(self) -> Any:
        return self.sweep.biases[self.cluster.index]

    @cached_property
    def _armatures(self):
        """R of the tree joints (nv_span,); None without any."""
        joints = [joint.body.joint for joint in self.joints]
        if not any(joint.armature for joint in joints):
            return None
        return np.concatenate([np.full(joint.nv, joint.armature) for joint in joints])

    @cached_property
    def R(self) -> Array | None:
        if self._armatures is None:
            return None
        G = np.concatenate([joint.G for joint in self.joints])
        return symmetric((G.T * self._armatures) @ G)

    @cached_property
    def r(self) -> Any:
        if self._armatures is None or self.sweep.v is None:
            return None
        G = np.concatenate([joint.G for joint in self.joints])
        return (G.T * self._armatures) @ np.concatenate([joint.drift for joint in self.joints])

    def joint_inertia(self, U: Array) -> Array:
        """D = S' U (49), with the armature of the tree joints."""
        D = self.S.T @ U
        return D if self.R is None else D + self.R

    def joint_bias(self, p: Array) -> Array | Any:
        """The generalized force of forces p on the bodies, plus that of the armature at a = 0."""
        felt = self.S.T @ p
        return felt if self.r is None else felt + self.r

    @property
    def projected(self) -> bool:
        """True if the inertia is seen from the parent before the joint's part is subtracted.

        That saves operations for several bodies, and on a parent that turns about a fixed axis or
        point: there only one number of the parent's inertia, or its moments, count.
        """
        up, X = self.parent, self.X.blocks[0]
        turning = isinstance(X, TurnThenShift) or (up is not None and up._turns_only)
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
    def sizes(self) -> tuple[int, ...]:
        """The rows of each body in stacked quantities."""
        return tuple(joint.X.size for joint in self.joints)

    def split(self, x: Array) -> list[Any]:
        """A stacked quantity of this cluster by body."""
        return split(x, self.sizes)

    def on_body(self, place: int, F: Array) -> Array:
        """Columns of forces (6, m) on one of the bodies, as forces on the cluster (6l, m)."""
        m = F.shape[1]
        parts = [F if i == place else np.zeros((n, m)) for i, n in enumerate(self.sizes)]
        return np.concatenate(parts)


class Sweep(Sequence[Any]):
    """The states of all clusters, parents first; `robot` are the bodies in the sweep's frames."""

    model: Model
    robot: Reduced
    v: Array

    def __init__(self, model: Model, robot: Reduced, v: Array | None):
        self.model, self.robot, self.v = model, robot, v
        self._states: list[ClusterState] = []

    def __getitem__(self, k: int) -> ClusterState:
        return self._states[k]

    def __len__(self) -> int:
        return len(self._states)

    @cached_property
    def velocities(self) -> list[Any]:
        """Stacked body velocities of each cluster (33), None without v."""
        if self.v is None:
            return [None] * len(self)
        out: list[Any] = []
        for state in self:
            up, vs = state.parent, []
            carried = [np.zeros(6)] if up is None else up.split(out[up.cluster.index])
            for joint, inside, j in zip(state.joints, state.cluster.inner, state.X.outputs):
                base = carried[j] if inside is None else vs[inside]
                vs.append(joint.X.motion(base) + joint.S @ joint.rate)
            out.append(np.concatenate(vs))
        return out

    @cached_property
    def biases(self) -> list[Any]:
        """Stacked bias accelerations across the joint of each cluster (26), None without v."""
        if self.v is None:
            return [None] * len(self)
        out = []
        for state, velocity in zip(self, self.velocities):
            cs: list[Any] = []
            for joint, inside, v in zip(state.joints, state.cluster.inner, state.split(velocity)):
                c = joint.S @ joint.drift
                if not joint.spin_only:
                    c = c + cross_motion(v, joint.S @ joint.rate)
                    c = c if joint.bias is None else c + joint.bias
                cs.append(c if inside is None else joint.X.motion(cs[inside]) + c)
            out.append(np.concatenate(cs))
        return out

    def accelerations(self, a: Array) -> list[Any]:
        """Stacked spatial accelerations of all clusters (33), without gravity; of the biases alone
        where a is None."""
        out: list[Any] = []
        for state, c in zip(self, self.biases, strict=True):
            own = c if a is None else c + state.S @ a[state.cluster.v]
            out.append(state.X.motion(parent_of(out, state.cluster, np.zeros(6))) + own)
        return out

    def stack(self, by_body: dict[Any, Any]) -> list[Any]:
        """What bodies have, by index, stacked by cluster."""
        return [np.concatenate([by_body[i] for i in state.cluster.bodies]) for state in self]


def outward(
    model: Model, q: Any, v: Array | None = None, keep_frame: Collection[int] | None = ()
) -> Sweep:
    """The states of all clusters at (q, v).

    Bodies in `keep_frame` have their described frame, and six coordinates even where their spin
    would do: those on which a frame or a force is. None: all bodies, each with its own inertia.
    """
    robot = unreduced(model) if keep_frame is None else reduced(model, frozenset(keep_frame))
    sweep = Sweep(model, robot, v)
    for cluster, embedding in zip(model.clusters, robot.embeddings):
        parent = None if cluster.parent is None else sweep[cluster.parent]
        positions = embedding.positions(q[cluster.q])
        G, rates, drifts = embedding.velocity_map(positions, None if v is None else v[cluster.v])
        joints = []
        for i in cluster.bodies:
            X, S = _across(robot, i, positions[i])
            rate, drift = (None, None) if v is None else (rates[i], drifts[i])
            rows = G[embedding.columns[i]]
            joints.append(JointState(robot.bodies[i], positions[i], X, S, rows, rate, drift))
        I = [robot.I[i] for i in cluster.bodies]
        sweep._states.append(ClusterState(sweep, cluster, tuple(joints), I, parent))
    return sweep


def _across(robot: Reduced, i: int, q):
    """(X, S) of the tree joint of body i."""
    body = robot.bodies[i]
    if i in robot.spin_only:
        return SpinAxis(np.concatenate([spin_row(body), np.zeros(3)])), np.eye(1)
    return body.joint.transform(q), body.joint.motion.subspace(q)


def base_acceleration(model: Model) -> np.ndarray:
    """The world accelerates upward instead of gravity pulling down: a_0 = -a_g."""
    return np.concatenate([np.zeros(3), -model.gravity])


def parent_of(values: list[Any], cluster: Cluster, world: Any) -> Any:
    """A quantity of the parent cluster, or the world's."""
    return world if cluster.parent is None else values[cluster.parent]
