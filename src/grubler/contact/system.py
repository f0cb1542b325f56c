"""The robot as the contacts see it: u = G λ + g, and the velocity that impulses λ give.

One elimination serves all: with the articulated inertias (49)-(56) of C-ABA in D, rows of impulses
are carried to the base once,

    Y_k = S_k' P_k + E_k,   P_λ(k) += X_k' (P_k - U_k D_k⁻¹ Y_k)                           (62)
    G = Σ_k Y_k' D_k⁻¹ Y_k,   g = J v + dt Σ_k Y_k' D_k⁻¹ u_k                            (67)
    v⁺ = v + (the outward pass of C-ABA with dt u_k + Y_k λ instead of u_k)

so that the free motion is never computed by itself, and M is never formed.

Velocities after the step are in the axes that the bodies have before it. The linear velocity of a
floating base is a vector in turning axes, so that its rate is a plus ω × v: `turning` holds
dt ω × v, which all points of the robot share.

| code | meaning                                                              | shape      |
|------|----------------------------------------------------------------------|------------|
| P    | force on a cluster per impulse of a row, by cluster                  | (6l, m)    |
| E    | force on the joint of a cluster per impulse: limits, joint friction  | (nv, m)    |
| Y    | force that the cluster's joint meets per impulse                     | (nv, m)    |
| u    | force that the joint meets of all else, as in C-ABA                  | (nv,)      |
| D    | S'U + armature + dt (damping): the joints' damping is implicit       | (nv, nv)   |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import joined, symmetric
from ..algebra.spatial import cross
from ..algorithms.c_rnea import net_forces
from ..algorithms.elimination import Elimination
from ..algorithms.newton_euler import accelerated
from ..algorithms.sweep import outward, parent_of
from ..constrained.rows import Poses
from ..constrained.rows import stacked as on_cluster
from ..mechanism.parts import WORLD
from ..model import Model
from ..model.clusters import Cluster

if TYPE_CHECKING:
    from ..model.model import Model


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one point (three) or joint (one): forces on clusters `ends`, and on joints `joints`,
    per unit impulse; `velocity` is J v at the start of the step, `drift` what turning axes add."""

    ends: dict[int, np.ndarray]
    joints: dict[int, np.ndarray]
    velocity: np.ndarray
    drift: np.ndarray


@dataclass(frozen=True, eq=False)
class Trunk:
    """What the rows of a block feel through base cluster `root`: G_ij = scaled_i' half_j of all
    blocks i and j on it; `own` is that of the block with itself."""

    root: int
    half: np.ndarray
    scaled: np.ndarray
    own: np.ndarray

    def row(self, a: int) -> Trunk:
        """Row a alone."""
        one = slice(a, a + 1)
        return Trunk(self.root, self.half[:, one], self.scaled[:, one], self.own[one, one])


class System:
    """The eliminated robot at (q, v) with its free motion over dt, ready for rows."""

    def __init__(
        self, model: Model, q: Any, v: Any, tau: Any, dt: float, f_ext: Any = None,
        posed: Any = (), damping: Mapping[int, float] | None = None,
    ):  # fmt: skip
        self.model: Model = model
        self.q: Any = q
        self.v: Any = v
        self.dt: float = dt
        self.sweep: Any = outward(model, q, v, keep_frame=posed)
        drag = _damping(self.sweep, damping or {})
        if drag:
            tau = tau - joined([_times(drag.get(c.index), v[c.v]) for c in model.clusters])
        self.poses: Poses = Poses(self.sweep)
        self.turning: dict[int, Any] = {
            c.index: dt * cross(v[c.v][:3], v[c.v][3:])
            for c in model.clusters if turns(model, c)
        }  # fmt: skip
        self._eliminate(tau, f_ext, drag)

    def _eliminate(self, tau, f_ext, drag):
        """C-ABA's backward pass."""
        IA = [block_diagonal(state.I) for state in self.sweep]
        pA = self.sweep.stack(net_forces(accelerated(self.sweep), f_ext))
        self.joints: dict[int, Elimination] = {}
        self.u: dict[int, Any] = {}
        for state in reversed(self.sweep):
            k, up, own = state.cluster.index, state.cluster.parent, tau[state.cluster.v]
            implicit = self.dt * drag[k] if k in drag else None
            J = self.joints[k] = Elimination(state, IA[k], implicit)  # (49)
            self.u[k] = J.joint_force(pA[k], own)
            if up is not None:
                IA[up] = IA[up] + J.inertia()  # (55), (56)
                pA[up] = pA[up] + J.bias(pA[k], own, self.u[k])

    def pose(self, body: int) -> tuple[Any, Any]:
        """(R, p): from the body's axes to the world's, and its origin in the world."""
        if body == WORLD:
            return np.eye(3), np.zeros(3)
        X = self.poses.between(body, WORLD)
        return X.E.T, X.r

    def point_rows(self, body: int, other: int, point: Any, axes: Any) -> Block:
        """The rows of the velocity of `body` against `other` at a point of the world, (3,), along
        the columns of `axes`."""
        ends: dict[Any, Any] = {}
        velocity, drift = 0.0, np.zeros(3)
        for index, sign in ((body, 1.0), (other, -1.0)):
            if index == WORLD:
                continue
            R, p = self.pose(index)
            arm, along = R.T @ (point - p), R.T @ axes
            moments = np.stack([cross(arm, along[:, j]) for j in range(3)]).T
            F = sign * np.concatenate([moments, along])
            k, place = self.model.tree.locate(index)
            own = self.sweep[k].split(self.sweep[k].v)[place]
            velocity = velocity + F.T @ own
            root = self.model.tree.inward(k)[-1]
            if root in self.turning:
                base = self.model.clusters[root].bodies[0]
                drift = drift + sign * (axes.T @ (self.pose(base)[0] @ self.turning[root]))
            _, F = on_cluster(self.sweep, index, F)
            ends[k] = ends[k] + F if k in ends else F
        return Block(ends, {}, velocity, drift)

    def joint_row(self, body: int) -> Block:
        """The row of the velocity of a body's tree joint of one freedom."""
        k, place = self.model.tree.locate(body)
        row = self.sweep[k].joints[place].G  # (1, nv)
        return Block({}, {k: row.T}, row @ self.v[self.model.clusters[k].v], np.zeros(1))

    def carry(self, blocks: list[Block]) -> list[dict[int, Any]]:
        """(Y by block and cluster, J v by block): all rows carried to the base (62)."""
        found = []
        for block in blocks:
            P, Y = dict(block.ends), {}
            for state in reversed(self.sweep):
                k, p = state.cluster.index, state.cluster.parent
                if k not in P and k not in block.joints:
                    continue
                E, force = block.joints.get(k), P.get(k)
                met = E if force is None else state.S.T @ force
                Y[k] = met if E is None or force is None else met + E
                if p is not None:
                    up = self._inward(state, force, E, Y[k])
                    P[p] = P[p] + up if p in P else up
            found.append(Y)
        return found

    def _inward(self, state, P, E, Y):
        """λ(k)X*_k (P - U D⁻¹ Y), forces on the parent."""
        joint = self.joints[state.cluster.index]
        if joint.held is None:
            force = np.zeros((sum(state.sizes), Y.shape[1])) if P is None else P
            return joint.forces(force, Y)
        through = -(joint.U @ joint.D.solve(Y)) if P is None else P - joint.U @ joint.D.solve(Y)
        through = joint.held[:, None] * through
        return state.X.forces_back(through if E is None else through - state.S @ E)

    def delassus(
        self, blocks: list[Block], carried: list[dict[int, Any]], apart: bool = False
    ) -> tuple[list[Any], list[Any], list[Trunk | None] | None]:
        """(G as a table of blocks, None where two do not feel each other; g by block; trunks) (67).

        `apart` leaves out of blocks off the diagonal what two feel of each other through the base:
        that is in the factors of their `Trunk`, six numbers a column.
        """
        half = [{k: self.joints[k].D.half(y) for k, y in Y.items()} for Y in carried]
        scaled = [{k: self.joints[k].D.scale(h) for k, h in H.items()} for H in half]
        n = len(blocks)
        G: list[list[Any]] = [[None] * n for _ in range(n)]
        for i in range(n):
            for j in range(i, n):
                common = [k for k in half[i] if k in half[j]]
                if apart and i != j:
                    common = [k for k in common if self.model.clusters[k].parent is not None]
                if not common:
                    continue
                terms = [scaled[i][k].T @ half[j][k] for k in common]
                value = sum(terms[1:], terms[0])
                G[i][j] = symmetric(value) if i == j else value
                G[j][i] = G[i][j].T
        pushed = {k: self.joints[k].D.half(u) for k, u in self.u.items()}
        g = []
        for block, S in zip(blocks, scaled, strict=True):
            gain = sum((S[k].T @ pushed[k] for k in S), 0.0)
            g.append(block.velocity + block.drift + self.dt * gain)
        trunks = [self._trunk(H, S) for H, S in zip(half, scaled, strict=True)] if apart else None
        return G, g, trunks

    def _trunk(self, half, scaled) -> Trunk | None:
        for k in half:
            if self.model.clusters[k].parent is None:
                return Trunk(k, half[k], scaled[k], symmetric(scaled[k].T @ half[k]))
        return None

    def change(self, carried: list[dict[int, Any]], impulses: list[Any], free: bool = True) -> Any:
        """v⁺ - v (nv,) of the free motion (unless free is False) and the impulses by block."""
        acc, out = [], []
        for state in self.sweep:
            k = state.cluster.index
            push = self.dt * self.u[k] if free else np.zeros(state.cluster.nv)
            for Y, impulse in zip(carried, impulses, strict=True):
                if k in Y:
                    push = push + Y[k] @ impulse
            own, a = self.joints[k].motion(push, parent_of(acc, state.cluster, None))
            if free and k in self.turning:
                own = own + joined([np.zeros(3), self.turning[k]])
            out.append(own)
            acc.append(a)
        return joined(out)


def turns(model: Model, cluster: Cluster) -> bool:
    """Whether a cluster is a body that floats in the world."""
    body = model.bodies[cluster.bodies[0]]
    return body.joint.kind == "free" and body.parent == WORLD and len(cluster.bodies) == 1


def _damping(sweep, damping: Mapping[int, float]) -> dict[Any, Any]:
    """By cluster: Gᵀ diag(d) G of the viscous damping d of tree joints, by body index."""
    found: dict[Any, Any] = {}
    for state in sweep:
        for joint in state.joints:
            d, k = damping.get(joint.body.index, 0.0), state.cluster.index
            if d:
                drag = d * symmetric(joint.G.T @ joint.G)
                found[k] = found[k] + drag if k in found else drag
    return found


def _times(B, v):
    return np.zeros(v.shape[0]) if B is None else B @ v


__all__ = ["Block", "System", "Trunk", "turns"]
