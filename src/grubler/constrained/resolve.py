"""A cluster's joint with constraint rows on it: coordinates eliminated one by one.

A constraint row determines a coordinate's acceleration where there is one, and the joint's own
inertia otherwise. Both have one form: with T = 1 - S y',

    qdd = -(y a + e),   H <- T' H T = H - y z' - z y',   z = U - (D/2) y,
    p <- p - U e + y (D e + u),

where y = K̃ / (K̃ S), e = l̃ / (K̃ S) by a row, and y = U / D, e = -u / D otherwise: the update
H + K̃' Σ⁻¹ K̃ of (63) and the propagation P H of (42a) at once, without D⁻¹ where a row is resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import symmetric
from ..algebra.spatial import skew
from ..algebra.symbolic import is_symbolic
from ..tolerances import TURNING
from .reflection import Reflection, Row, reflect

if TYPE_CHECKING:
    from ..algorithms.first_pass import ClusterState
    from ..mechanism.parts import TreeJoint
    from ..typing import Array


@dataclass
class Coordinate:
    """One eliminated coordinate, by the module's formulas.

    The blocks that only pass through move it by g f λ, with f = F' S of each; g = 1/D where no row
    is resolved, else 0. `mass` is the mass that the row feels of the joint, D / |K S|²: what it
    adds to the inertia H. Where rows determine the motion it adds none, and `mass` is 1 / |K S|.
    """

    S: np.ndarray
    tau: object
    U: np.ndarray
    u: object
    y: np.ndarray
    z: np.ndarray
    e: object
    g: object
    f: dict[Any, Any]
    reflection: Reflection | None
    mass: object


@dataclass
class Resolved:
    """A cluster whose coordinates are eliminated, and the rows that pass on to its parent.

    `forces` are those on the coordinates that the rows withstand, once known."""

    space: Own | Joined
    coordinates: list[Coordinate]
    rows: list[Row]
    forces: list[Any] | None = None

    def roll_out(self, a_parent: Array, multipliers: Any) -> tuple[Any, Array, list[None]]:
        """(qdd (nv,), stacked acceleration, forces on the coordinates that the rows withstand).

        `multipliers` are those of carried blocks.
        """
        out, forces = [None] * len(self.coordinates), [None] * len(self.coordinates)
        a = self.space.unmoved(a_parent)
        for j in reversed(range(len(out))):
            c = self.coordinates[j]
            push = sum(c.f[b] @ multipliers[b] for b in c.f) if c.f else 0.0
            out[j] = -(c.y @ a + c.e) + c.g * push
            a = a + c.S * out[j]
            forces[j] = c.U @ a - c.u - push
        qdd = np.stack(out)
        return qdd, self.space.moved(a, a_parent, qdd), forces

    def balance(self, f: Array, qdd: Array) -> tuple[list[Any], Array]:
        """(forces as above, force on the parent) where rows determine the motion, from the force f
        that the bodies take and pass on: T' f + y tau, as p above."""
        f, forces = self.space.force(f, qdd), []
        for c in self.coordinates:
            forces.append(c.S @ f - c.tau)
            f = f - c.y * forces[-1]
        return forces, self.space.force_back(f)

    def multipliers(self, slots: Any) -> Any | Any:
        """Those of the rows as they came, from those of the rows passed on, in `slots`."""
        slots = slots if self.space.turn is None else list(self.space.turn @ np.stack(slots))
        for c, force in reversed(list(zip(self.coordinates, self.forces, strict=True))):
            if c.reflection is not None:
                slots = c.reflection.multipliers(force, slots)  # (62)
        return slots


class Own:
    """The stacked acceleration of the cluster's bodies: for a single body.

    Its joint's axes are coordinate axes, as a rule: H S = 0 afterwards is then known.
    """

    state: Any
    axes: Any

    def __init__(self, state: ClusterState):
        self.state, self.axes, self.turn = state, state.S, None
        self.cluster: int = state.cluster.index
        self.joint: TreeJoint = state.joints[0].body.joint

    def enter(
        self, H: Array, p: Array, tau: Array, rows: Any, carried: Any
    ) -> tuple[Array, Array, Array, Any]:
        return H, p, tau, rows

    def leave(
        self, H: Array, p: Array, rows: Any, outer: Any, left: Any, carried: Any
    ) -> tuple[None, None, Any] | tuple[Array, Array, Any]:
        """H, p and rows seen from the parent; `outer` are the pairs y, z still to subtract."""
        X = self.state.X
        if rows and self.state.cluster.parent is not None:
            rows = self._seen_from_parent(rows)
        carried.pass_on(self.state)
        if self.state.cluster.parent is None:
            return None, None, rows
        for y, z in outer:
            H = H - np.outer(y, z) - np.outer(z, y)
        H = symmetric(H) * np.outer(left, left)
        return X.congruence(H), X.force_back(p), rows

    def _seen_from_parent(self, rows):
        K, X = np.stack([row.K for row in rows]), self.state.X
        self.turn: None = turned_with(K, X.blocks[0].E, self.joint)
        if self.turn is None:
            K = X.forces_back(K.T).T
            return [Row(K[i], row.l) for i, row in enumerate(rows)]
        K = self.joint.placement.forces_back(K.T).T
        l = self.turn.T @ np.stack([row.l for row in rows])
        return [Row(K[i], l[i]) for i, row in enumerate(rows)]

    def unmoved(self, a_parent: Array) -> Array:
        return self.state.X.motion(a_parent)

    def moved(self, a: Array, a_parent: Array, qdd: Array) -> Array:
        return a

    def force(self, f: Array, qdd: Array) -> Array:
        return f

    def force_back(self, f: Any) -> Array:
        return self.state.X.force_back(f)


class Joined:
    """The parent's acceleration and the joint's own, [a_λ; qdd]: for clusters of several bodies.

    As in C-ABA across several bodies: fewer numbers than their stacked acceleration, which drops
    out where nothing hangs on them. Armature is inertia that feels qdd alone.
    """

    state: ClusterState
    cluster: int
    n: int

    turn = None

    def __init__(self, state: ClusterState):
        self.state, self.cluster = state, state.cluster.index
        self.n, nv = sum(state.X.parent_sizes), state.S.shape[1]
        self.axes: Array = np.concatenate([np.zeros((self.n, nv)), np.eye(nv)])

    def enter(
        self, H: Array, p: Array, tau: Array, rows: Any, carried: Any
    ) -> tuple[Array, Array, Array, Any]:
        S, X = self.state.S, self.state.X
        U = H @ S
        W, D = X.forces_back(U), symmetric(self.state.joint_inertia(U))
        r = self.state.joint_bias(p)
        carried.enter(self.state)
        if rows:
            F = np.stack([row.K for row in rows]).T
            K = np.concatenate([X.forces_back(F), S.T @ F]).T
            rows = [Row(K[i], row.l) for i, row in enumerate(rows)]
        H = np.block([[X.congruence(H), W], [W.T, D]])
        return H, np.concatenate([X.force_back(p), r]), tau, rows

    def leave(
        self, H: Array, p: Array, rows: Any, outer: Any, left: Any, carried: Any
    ) -> tuple[None, None, Any] | tuple[Array, Array, Any]:
        n = self.n
        rows = [Row(row.K[:n], row.l) for row in rows]
        carried.leave(self.state, n)
        if self.state.cluster.parent is None:
            return None, None, rows
        H = H[:n, :n]
        for y, z in outer:
            H = H - np.outer(y[:n], z[:n]) - np.outer(z[:n], y[:n])
        return symmetric(H), p[:n], rows

    def unmoved(self, a_parent: Array) -> Array:
        return np.concatenate([a_parent, np.zeros(self.axes.shape[1])])

    def moved(self, a: Array, a_parent: Array, qdd: Array) -> Array:
        return self.state.X.motion(a_parent) + self.state.S @ qdd

    def force(self, f: Array, qdd: Array) -> Array:
        state = self.state
        own = state.joint_bias(f)
        own = own if state.R is None else own + state.R @ qdd
        return np.concatenate([state.X.force_back(f), own])

    def force_back(self, f: Any) -> Array:
        return f[: self.n]


def turned_with(K: Array, E: Array, joint: Any) -> Any | None:
    """Q orthogonal with K X(q) = Q(q) K X(0), if the rows turn with a revolute joint; or None.

    Rows known as numbers, such as those of a hand on the axis of its wrist: in the axes of the
    parent they stay numbers. K Z = W K with Z the joint's turning and W skew gives
    Q = 1 + sin W + (1 - cos) W².
    """
    if is_symbolic(K) or not joint.is_hinge:
        return None
    axis = np.flatnonzero(joint.motion.axis)
    if len(axis) != 1 or is_symbolic(joint.placement.E, joint.placement.r):
        return None
    Z = np.kron(np.eye(2), -skew(joint.motion.axis))
    W = K @ Z @ np.linalg.pinv(K)
    if np.abs(K @ Z - W @ K).max() > TURNING or np.abs(W + W.T).max() > TURNING:
        return None
    W = np.where(np.abs(W) < TURNING, 0.0, 0.5 * (W - W.T))
    R = E @ joint.placement.E.T  # exp(-q axis×)
    i, j = (axis[0] + 1) % 3, (axis[0] + 2) % 3
    cosine, sine = R[i, i], R[i, j] * joint.motion.axis[axis[0]]
    return np.eye(len(K)) + sine * W + (1.0 - cosine) * (W @ W)


def space_of(state: ClusterState) -> Own | Joined:
    """In which accelerations the coordinates of a cluster are eliminated."""
    single = len(state.cluster.bodies) == 1 and state.R is None
    return Own(state) if single else Joined(state)


def resolve(
    space: Any,
    H: Array,
    p: Array,
    tau: Array,
    rows: Any,
    carried: Any,
    takes: Any,
    determined: bool,
) -> tuple[Resolved, Array, Array]:
    """Eliminate the coordinates of a space; returns (Resolved, H and p seen from the parent).

    `carried` are the blocks that only pass through (their F, l and L are updated); `takes` says of
    each coordinate if it takes a row; rows `determined` all of them: then H need not be known.
    """
    done: list[Coordinate] = []
    H, p, tau, rows = space.enter(H, p, tau, rows, carried)
    left = np.ones(len(space.axes))  # elements of the acceleration that H still feels
    aligned = _aligned(space.axes)
    for j in range(space.axes.shape[1]):
        S = space.axes[:, j]
        U = H @ S
        for d in done:
            U = U - d.y * (d.z @ S) - d.z * (d.y @ S)
        U = U * left
        D, u = S @ U, tau[j] - S @ p
        if takes[j] and rows:
            axis = int(np.flatnonzero(S)[0]) if aligned else None
            reflection = reflect(rows, S, axis)
            rows, y, e, g = reflection.rows, reflection.y, reflection.e, 0.0
            mass = (np.abs(reflection.size) if determined else D) * reflection.inverse
            z, p = U - y * (0.5 * D), p - U * e + y * (D * e + u)
        else:
            reflection, mass, g = None, None, 1.0 / D
            y, e = U * g, -u * g
            z, p = 0.5 * U, p - U * e
        f = carried.resolve(space.cluster, S, y, e, g)
        done.append(Coordinate(S, tau[j], U, u, y, z, e, g, f, reflection, mass))
        if aligned:
            left = left * (S == 0.0)
    outer = [(d.y, d.z) for d in done]
    H, p, rows = space.leave(H, p, rows, outer, left, carried)
    return Resolved(space, done, rows), H, p


def _aligned(S) -> bool:
    """Whether the joint's axes are coordinate axes: H S = 0 afterwards is then known."""
    return isinstance(S, np.ndarray) and bool(np.all((S != 0).sum(axis=0) == 1))
