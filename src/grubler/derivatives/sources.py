"""What each body's joint contributes to the derivatives of inverse dynamics.

Symbols as in `inverse`. A body with six coordinates has a `Source`; a body that only spins has a
`Rotor`, in the axes of its carrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import symmetric
from ..algebra.spatial import cross, skew
from ..algorithms.c_rnea import felt
from ..algorithms.newton_euler import Motion
from ..algorithms.sweep import ClusterState
from .curvature import Curvature, body_curvature, curvature

if TYPE_CHECKING:
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class Source:
    """P, Ψ̇ + ∂(G v), Ψ̈ with its own, Σ with its own, and u, in the body's axes or its parent's."""

    P: np.ndarray
    Bq: np.ndarray
    Aq: np.ndarray
    Av: np.ndarray
    u: np.ndarray  # velocity of the body's origin seen from its parent's, in the parent's axes


@dataclass(frozen=True, eq=False)
class Rotor:
    """A rotor in the axes of its carrier: moment J, axis e, J w x e, its joint's rate and row of G,
    what `curvature` adds, and how an external force on it turns."""

    J: np.ndarray
    e: np.ndarray
    gyro: np.ndarray
    rate: np.ndarray
    G: np.ndarray
    own: Curvature | None
    turned: np.ndarray | None


@dataclass(frozen=True, eq=False)
class ClusterSources:
    """The sources of a cluster's bodies, and what its joints add to its own block."""

    bodies: dict[Any, Any]
    dq: np.ndarray
    dv: np.ndarray
    M: np.ndarray


def cluster_sources(
    motion: Motion,
    state: ClusterState,
    q: Array,
    v: Array,
    a: Array,
    f: Any,
    f_ext: Mapping[int, Array] | None,
) -> ClusterSources:
    """The sources of a cluster's bodies at its q, v, a; `f` are the forces across all joints."""
    embedding = motion.sweep.robot.embeddings[state.cluster.index]
    force = np.concatenate([felt(motion, joint, f) for joint in state.joints])
    second = curvature(embedding, q, v, a, force)
    n, out = state.cluster.nv, {}
    dq = np.zeros((n, n)) if second is None else second.Fq
    dv, M = np.zeros((n, n)), np.zeros((n, n))
    for joint in state.joints:
        i, G, moment = joint.body.index, joint.G, joint.body.joint.armature
        own = None if second is None else second.rows(embedding.columns[i])
        if joint.spin_only:
            out[i] = _rotor(motion, joint, own, f_ext.get(i))
            moment = moment + out[i].J
        else:
            out[i], turned = _source(motion, joint, own, f[i])
            dq = dq if turned is None else dq + turned
        if not (isinstance(moment, (int, float)) and moment == 0):
            M = M + symmetric(moment * (G.T @ G))
            if own is not None:
                dq, dv = dq + moment * (G.T @ own.Aq), dv + moment * (G.T @ own.Av)
    return ClusterSources(out, dq, dv, M)


def _rotor(motion, joint, own, external) -> Rotor:
    robot, body = motion.sweep.robot, joint.body
    e, J = joint.X.row[:3], robot.I[body.index][0, 0]
    gyro = J * cross(motion.bodies[body.parent].w, e)
    turned = None
    if external is not None:  # the part on the carrier turns with the rotor, about its axis
        X = body.joint.transform(joint.q)
        _, (_, on_carrier) = robot.felt_by(body.index, external, joint.q)
        axis = np.stack([np.concatenate([e, cross(X.r, e)])], axis=1)
        turned = -turning(on_carrier, axis)[:, 0]
    return Rotor(J, e, gyro, joint.rate[0], joint.G, own, turned)


def _source(motion, joint, own, f):
    """(source, what a moving subspace adds to ∂τ/∂q, None for nothing)."""
    up, here = motion.bodies[joint.body.parent], motion.bodies[joint.body.index]
    X, S, G = joint.X, joint.S, joint.G
    vJ, P = S @ joint.rate, S @ G
    w_up = X.rotate(up.w)
    A_up = X.rotate(up.A + up.U @ X.r) + cross(w_up, vJ[3:])
    v_up = np.concatenate([w_up, -vJ[3:]])
    a_up = np.concatenate([X.rotate(up.dw), A_up])
    psi = crossing(v_up) @ P
    both = crossing(np.concatenate([w_up + here.w, -vJ[3:]]))
    Bq, Aq, Av = psi, crossing(a_up) @ P + crossing(v_up) @ psi, both @ P
    bent = body_curvature(joint, own, motion.joints[joint.body.index], f)
    if bent is not None:
        Bq, Aq, Av = Bq + bent.Vq, Aq + both @ bent.Vq + bent.Aq, Av + bent.Av
    u = cross(up.w, X.r) + X.rotate_back(vJ[3:])
    return Source(P, Bq, Aq, Av, u), None if bent is None else bent.Fq


def crossing(v: Array) -> Array:
    """The matrix of the cross product of motion vectors, v x m (5)."""
    w = skew(v[:3])
    return np.block([[w, np.zeros((3, 3))], [skew(v[3:]), w]])


def turning(f: Array, P: Any) -> Array:
    """P x* f for columns of motions: how a force changes that moves along with them (5)."""
    n, l = skew(f[:3]), skew(f[3:])
    return -np.concatenate([n @ P[:3] + l @ P[3:], l @ P[:3]])
