"""A cluster's joint eliminated from the equation of motion of its cluster (Sec. VII).

The articulated equation of motion of a cluster k is f = I^A a + p^A, with a = X a_λ + S q̈ and
τ = S' f. Eliminating q̈ leaves the equation that the parent sees:

    U = I^A S,   D = S' U,   u = τ - S' p^A                                     (49)
    q̈ = D⁻¹ (u - U' X a_λ)                                                      (52)
    I^a = I^A - U D⁻¹ U',   p^a = p^A + U D⁻¹ u                                 (56)

seen from the parent as X' I^a X and X' p^a (55). The matrices belong to the configuration. There
may be many right-hand sides: biases, forces of constraints, unit forces at end-effectors.

| code | paper    | meaning                                                    | shape     |
|------|----------|------------------------------------------------------------|-----------|
| IA   | I_k^A    | articulated inertia of the cluster                         | (6l, 6l)  |
| U    | U_k      |                                                            | (6l, nv)  |
| D    | D_k      | factorized; with the armature of the joint                 | (nv, nv)  |
| W    | X' U_k   | U seen from the parent, where the joint is `projected`     | (6l', nv) |
| held |          | 1 for each coordinate that the joint holds, 0 for the others | (6,)    |

Accelerations are those beyond coasting: there is no c_k, because what velocities and gravity do is
in p. Two forms save operations, exactly:

- `projected` (several bodies, or a parent of which only one number counts): the inertia is seen
  from the parent before the joint's part is subtracted, X' I^A X - W D⁻¹ W'. The accelerations of
  the cluster's bodies then drop out wherever nothing hangs on them, as on every rotor.
- `held` (one body, the joint's axes are coordinate axes, no armature): I^a S = 0 and S' p^a = τ are
  known without computing. The acceleration along the axes is S' a = y, where y = D⁻¹ (u - U' a) is
  taken over the held coordinates of a = X a_λ alone; then q̈ = y - S' X a_λ. It does not pass
  through the parent's acceleration along the axes: one multiply-add less on the way outward.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import LDL, joined, symmetric
from .sweep import parent_of

if TYPE_CHECKING:
    from ..typing import Array
    from .sweep import ClusterState


class Elimination:
    """The joint of a cluster state eliminated, given the cluster's articulated inertia."""

    state: ClusterState

    def __init__(self, state: ClusterState, IA: Array, implicit: Any = None):
        """`implicit` (nv, nv) is added to D: dt times the damping of the joint in a time step."""
        self.state, self.IA = state, IA
        self.U = IA @ state.S  # (49)
        D = state.joint_inertia(self.U)
        self.D = LDL(D if implicit is None else D + implicit)
        self.plain: bool = state.R is None and implicit is None

    @cached_property
    def W(self) -> Array | None:
        state = self.state
        projected = state.projected and state.parent is not None
        return state.X.forces_back(self.U) if projected else None

    @cached_property
    def held(self) -> Any:
        S = self.state.S
        if self.W is not None or len(self.state.cluster.bodies) > 1 or not self.plain:
            return None
        if not isinstance(S, np.ndarray):
            return None
        moved = np.abs(S)
        return 1.0 - moved.sum(axis=1) if np.all(np.sort(moved, axis=0)[-2:].T == (0, 1)) else None

    def inertia(self) -> Array:
        """X' I^a X, the cluster's part of its parent's articulated inertia (55), (56)."""
        X = self.state.X
        if self.W is not None:
            return symmetric(X.congruence(self.IA) - self.D.quadratic(self.W.T))
        Ia = symmetric(self.IA - self.D.quadratic(self.U.T))
        return X.congruence(Ia if self.held is None else Ia * np.outer(self.held, self.held))

    def joint_force(self, pA: Array, tau: Array) -> Array | Any:
        """u (nv,): the force left to accelerate the joint (49), less that of its armature."""
        return tau - self.state.joint_bias(pA)

    def bias(self, pA: Array, tau: Array, u: Array) -> Array:
        """X' p^a, the cluster's part of its parent's bias force (55), (56)."""
        X = self.state.X
        if self.W is not None:
            return X.force_back(pA) + self.W @ self.D.solve(u)
        pa = pA + self.U @ self.D.solve(u)
        return X.force_back(pa if self.held is None else self.held * pa + self.state.S @ tau)

    def motion(self, u: Array, a_parent: Array) -> tuple[Array, Array] | tuple[Any | Array, Any]:
        """(q̈ (nv,), stacked acceleration of the cluster) from the parent's acceleration (52).

        `a_parent` is None where the cluster hangs on the world.
        """
        S = self.state.S
        if a_parent is None:
            qdd = self.D.solve(u)
            return qdd, S @ qdd
        a = self.state.X.motion(a_parent)
        if self.W is not None:
            qdd = self.D.solve(u - self.W.T @ a_parent)
            return qdd, a + S @ qdd
        if self.held is None:
            qdd = self.D.solve(u - self.U.T @ a)
            return qdd, a + S @ qdd
        rest = self.held * a
        if self.U.shape[1] == 1:  # D⁻¹ u and D⁻¹ U are there already
            y = self.D.solve(u) - self.D.scale(self.U.T) @ rest
        else:
            y = self.D.solve(u - self.U.T @ rest)
        return y - S.T @ a, rest + S @ y

    def forces(self, F: Array, Y: Any = None) -> Array:
        """X' (1 - U D⁻¹ S') F: columns of forces carried to the parent, the joint being free (62).

        Y = S' F may be given.
        """
        Y = self.state.S.T @ F if Y is None else Y
        if self.W is not None:
            return self.state.X.forces_back(F) - self.W @ self.D.solve(Y)
        return self.state.X.forces_back(F - self.U @ self.D.solve(Y))

    def motions(self, A: Array) -> Array:
        """(1 - S D⁻¹ U') X A: columns of accelerations carried from the parent, the joint free."""
        moved = self.state.X.motions(A)
        felt = self.U.T @ moved if self.W is None else self.W.T @ A
        return moved - self.state.S @ self.D.solve(felt)

    def free_force(self, f: Array) -> Array:
        """(1 - U D⁻¹ S') f on the cluster itself, for a vector or for columns."""
        return f - self.U @ self.D.solve(self.state.S.T @ f)

    def free_motion(self, a: Array) -> Array:
        """(1 - S D⁻¹ U') a on the cluster itself, for a vector or for columns."""
        return a - self.state.S @ self.D.solve(self.U.T @ a)


def eliminations(sweep: Any) -> list[Elimination]:
    """All joints eliminated, from the articulated inertias alone (49), (55), (56)."""
    IA = [block_diagonal(state.I) for state in sweep]
    joints: list[Any] = [None] * len(sweep)
    for state in reversed(sweep):
        k, up = state.cluster.index, state.cluster.parent
        joints[k] = Elimination(state, IA[k])
        if up is not None:
            IA[up] = IA[up] + joints[k].inertia()
    return joints


def pushed(joints: list[Elimination], forces: Any = None, tau: Array | None = None) -> Array:
    """M⁻¹ (tau + J' f) (nv,): the accelerations that forces cause, on the clusters, by cluster
    (6l,), and on the joints (nv,); None for none."""
    p, u, acc, out = {}, {}, [], []
    for joint in joints:
        k = joint.state.cluster.index
        p[k] = np.zeros(joint.U.shape[0]) if forces is None else -forces[k]
    for joint in reversed(joints):
        cluster = joint.state.cluster
        own = np.zeros(joint.U.shape[1]) if tau is None else tau[cluster.v]
        u[cluster.index] = own - joint.state.S.T @ p[cluster.index]
        if cluster.parent is not None:
            back = joint.bias(p[cluster.index], own, u[cluster.index])
            p[cluster.parent] = p[cluster.parent] + back
    for joint in joints:
        cluster = joint.state.cluster
        qdd, a = joint.motion(u[cluster.index], parent_of(acc, cluster, None))
        out.append(qdd)
        acc.append(a)
    return joined(out)
