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
from dataclasses import dataclass, replace

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import LDL, joined, symmetric
from ..algebra.spatial import cross
from ..algorithms.c_aba import (
    force_across,
    held_axes,
    joint_inertia,
    move_on,
    without_joint,
)
from ..algorithms.c_rnea import net_forces
from ..algorithms.first_pass import first_pass, locate, stacked
from ..constrained.rows import Poses
from ..constrained.rows import stacked as on_cluster
from ..mechanism.parts import WORLD


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one point (three) or joint (one): forces on clusters `ends`, and on joints `joints`,
    per unit impulse; `velocity` is J v at the start of the step, `drift` what turning axes add."""

    ends: dict[int, np.ndarray]
    joints: dict[int, np.ndarray]
    velocity: np.ndarray
    drift: np.ndarray


class System:
    """The eliminated robot at (q, v) with its free motion over dt, ready for rows."""

    def __init__(self, model, q, v, tau, dt, f_ext=None, posed=(), damping=None):
        self.model, self.q, self.v, self.dt = model, q, v, dt
        states = first_pass(model, q, v, posed=posed)
        if damping:
            drag = _damping(states[0].robot, model, q, damping)
            states = [_with_damping(s, drag.get(s.cluster.index), dt) for s in states]
            tau = tau - joined([_times(drag.get(c.index), v[c.v]) for c in model.clusters])
        self.states, self.poses = states, Poses(model, states)
        self.turning = {
            c.index: dt * cross(v[c.v][:3], v[c.v][3:])
            for c in model.clusters if turns(model, c)
        }  # fmt: skip
        self._eliminate(model, q, v, tau, f_ext, posed)

    def _eliminate(self, model, q, v, tau, f_ext, posed):
        """C-ABA's backward pass."""
        states = self.states
        IA = [block_diagonal(state.I) for state in states]
        _, f, _ = net_forces(model, q, v, None, f_ext, posed)
        pA = stacked(states, f)
        self.U, self.D, self.u, self.W = {}, {}, {}, {}
        for state in reversed(states):
            k, p = state.cluster.index, state.cluster.parent
            own = tau[state.cluster.v]
            U = self.U[k] = IA[k] @ state.S  # (49)
            D = self.D[k] = LDL(joint_inertia(state, U))
            u = own - state.S.T @ pA[k]
            u = self.u[k] = u if state.r is None else u - state.r
            if p is None:
                continue
            if state.projected:
                W = self.W[k] = state.X.forces_back(U)
                IA[p] = IA[p] + symmetric(state.X.congruence(IA[k]) - D.quadratic(W.T))
                pA[p] = pA[p] + state.X.force_back(pA[k]) + W @ D.solve(u)
            else:
                IA[p] = IA[p] + state.X.congruence(without_joint(state, IA[k], U, D))  # (55)
                pA[p] = pA[p] + state.X.force_back(force_across(state, pA[k], own, U, D, u))

    def pose(self, body: int):
        """(R, p): from the body's axes to the world's, and its origin in the world."""
        if body == WORLD:
            return np.eye(3), np.zeros(3)
        X = self.poses.between(body, WORLD)
        return X.E.T, X.r

    def point_rows(self, body: int, other: int, point, axes) -> Block:
        """The rows of the velocity of `body` against `other` at a point of the world, (3,), along
        the columns of `axes`."""
        ends: dict = {}
        velocity, drift = 0.0, np.zeros(3)
        for index, sign in ((body, 1.0), (other, -1.0)):
            if index == WORLD:
                continue
            R, p = self.pose(index)
            arm, along = R.T @ (point - p), R.T @ axes
            moments = np.stack([cross(arm, along[:, j]) for j in range(3)]).T
            F = sign * np.concatenate([moments, along])
            k, place = locate(self.model, index)
            own = self.states[k].split(self.states[k].v)[place]
            velocity = velocity + F.T @ own
            root = k
            while self.model.clusters[root].parent is not None:
                root = self.model.clusters[root].parent
            if root in self.turning:
                base = self.model.clusters[root].bodies[0]
                drift = drift + sign * (axes.T @ (self.pose(base)[0] @ self.turning[root]))
            _, F = on_cluster(self.model, self.states, index, F)
            ends[k] = ends[k] + F if k in ends else F
        return Block(ends, {}, velocity, drift)

    def joint_row(self, body: int) -> Block:
        """The row of the velocity of a body's tree joint of one freedom."""
        k, _ = locate(self.model, body)
        cluster, joint = self.model.clusters[k], self.states[k].robot.embeddings[k]
        G, _, _ = joint.velocity_map(joint.positions(self.q[cluster.q]), None)
        row = G[joint.columns[body]]  # (1, nv)
        return Block({}, {k: row.T}, row @ self.v[cluster.v], np.zeros(1))

    def carry(self, blocks):
        """(Y by block and cluster, J v by block): all rows carried to the base (62)."""
        found = []
        for block in blocks:
            P, Y = dict(block.ends), {}
            for state in reversed(self.states):
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
        k = state.cluster.index
        U, D = self.U[k], self.D[k]
        if state.projected:
            up = -(self.W[k] @ D.solve(Y))
            return up if P is None else up + state.X.forces_back(P)
        through = -(U @ D.solve(Y)) if P is None else P - U @ D.solve(Y)
        held = held_axes(state)
        if held is not None:
            through = held[:, None] * through
            through = through if E is None else through - state.S @ E
        return state.X.forces_back(through)

    def delassus(self, blocks, carried):
        """(G as a table of blocks, None where two do not feel each other; g by block) (67)."""
        half = [{k: self.D[k].half(y) for k, y in Y.items()} for Y in carried]
        scaled = [{k: self.D[k].scale(h) for k, h in H.items()} for H in half]
        n = len(blocks)
        G: list[list] = [[None] * n for _ in range(n)]
        for i in range(n):
            for j in range(i, n):
                common = [k for k in half[i] if k in half[j]]
                if not common:
                    continue
                terms = [scaled[i][k].T @ half[j][k] for k in common]
                value = sum(terms[1:], terms[0])
                G[i][j] = symmetric(value) if i == j else value
                G[j][i] = G[i][j].T
        pushed = {k: self.D[k].half(u) for k, u in self.u.items()}
        g = []
        for block, S in zip(blocks, scaled, strict=True):
            gain = sum((S[k].T @ pushed[k] for k in S), 0.0)
            g.append(block.velocity + block.drift + self.dt * gain)
        return G, g

    def change(self, carried, impulses, free: bool = True):
        """v⁺ - v (nv,) of the free motion (unless free is False) and the impulses by block."""
        acc, out = [], []
        for state in self.states:
            k, p = state.cluster.index, state.cluster.parent
            push = self.dt * self.u[k] if free else np.zeros(state.cluster.nv)
            for Y, impulse in zip(carried, impulses, strict=True):
                if k in Y:
                    push = push + Y[k] @ impulse
            own, a = move_on(
                state, self.D[k], push, self.U[k], self.W.get(k), None if p is None else acc[p]
            )
            if free and k in self.turning:
                own = own + joined([np.zeros(3), self.turning[k]])
            out.append(own)
            acc.append(a)
        return joined(out)


def turns(model, cluster) -> bool:
    """Whether a cluster is a body that floats in the world."""
    body = model.bodies[cluster.bodies[0]]
    return body.joint.kind == "free" and body.parent == WORLD and len(cluster.bodies) == 1


def _damping(robot, model, q, damping: Mapping[int, float]) -> dict:
    """By cluster: Gᵀ diag(d) G of the viscous damping d of tree joints, by body index."""
    found = {}
    for cluster, joint in zip(model.clusters, robot.embeddings):
        weights = [np.full(body.joint.nv, damping.get(body.index, 0.0)) for body in joint.bodies]
        d = joined(weights)
        if d.any():
            G, _, _ = joint.velocity_map(joint.positions(q[cluster.q]), None)
            found[cluster.index] = symmetric((G.T * d) @ G)
    return found


def _with_damping(state, drag, dt):
    if drag is None:
        return state
    return replace(state, R=dt * drag if state.R is None else state.R + dt * drag)


def _times(B, v):
    return np.zeros(v.shape[0]) if B is None else B @ v


__all__ = ["Block", "System", "turns"]
