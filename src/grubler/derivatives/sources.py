"""What each body's joint contributes to the derivatives of inverse dynamics.

Symbols as in `inverse`. A body with six coordinates has a `Source`; a body that only spins has a
`Rotor`, in the axes of its carrier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..algebra.linalg import symmetric
from ..algebra.spatial import cross, skew
from ..algorithms.c_rnea import felt_by
from ..reduction.reduced import spin_row
from .curvature import Curvature, body_curvature, curvature


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

    bodies: dict
    dq: np.ndarray
    dv: np.ndarray
    M: np.ndarray


def cluster_sources(robot, k, embedding, state, moving, f, joints, f_ext) -> ClusterSources:
    """The sources of cluster k; `f` are the forces across its joints, with the subtrees'."""
    q, v, a = (x[s] for x, s in zip(state, (k.q, k.v, k.v)))
    positions = embedding.positions(q)
    force = np.concatenate([_felt(robot, moving, f, joints, i) for i in k.bodies])
    second = curvature(embedding, q, v, a, force)
    n, out = k.nv, {}
    dq = np.zeros((n, n)) if second is None else second.Fq
    dv, M = np.zeros((n, n)), np.zeros((n, n))
    for i in k.bodies:
        body, G, acceleration = joints[i]
        own = None if second is None else second.rows(embedding.columns[i])
        moment = body.joint.armature
        if i in robot.spinning:
            turned = None
            if i in f_ext:
                turned = _turned_with_rotor(robot, i, f_ext[i], positions[i])
            out[i] = _rotor(robot, i, moving[body.parent], G, v, own, turned)
            moment = moment + out[i].J
        else:
            up, rate = moving[body.parent], G @ v
            out[i], turned = _source(
                body, up, moving[i], positions[i], rate, acceleration, G, own, f[i]
            )
            dq = dq if turned is None else dq + turned
        if not (isinstance(moment, (int, float)) and moment == 0):
            M = M + symmetric(moment * (G.T @ G))
            if own is not None:
                dq, dv = dq + moment * (G.T @ own.Aq), dv + moment * (G.T @ own.Av)
    return ClusterSources(out, dq, dv, M)


def _felt(robot, moving, f, joints, i):
    """The force that a tree joint takes, with its armature's."""
    body, _, acceleration = joints[i]
    felt = np.stack([f[i]]) if i in robot.spinning else moving[i].S.T @ f[i]
    return felt + body.joint.armature * acceleration if body.joint.armature else felt


def _turned_with_rotor(robot, i, external, q):
    """The change of the net force on the carrier as an external force turns with its rotor (6,)."""
    body = robot.bodies[i]
    X = body.joint.transform(q)
    (_, _), (_, on_carrier) = felt_by(robot, i, external, q)
    w = X.rotate_back(body.joint.motion.axis)
    axis = np.stack([np.concatenate([w, cross(X.r, w)])], axis=1)
    return -turning(on_carrier, axis)[:, 0]


def _rotor(robot, i, carrier, G, v, own, turned) -> Rotor:
    e, J = spin_row(robot.bodies[i]), robot.I[i][0, 0]
    rate = (G @ v)[0]
    return Rotor(J, e, J * cross(carrier.w, e), rate, G, own, turned)


def _source(body, up, here, q, rate, acceleration, G, own, f):
    """(source, what a moving subspace adds to ∂τ/∂q, None for nothing)."""
    X, S = here.X, here.S
    vJ, P = S @ rate, S @ G
    w_up = X.rotate(up.w)
    A_up = X.rotate(up.A + up.U @ X.r) + cross(w_up, vJ[3:])
    v_up = np.concatenate([w_up, -vJ[3:]])
    a_up = np.concatenate([X.rotate(up.dw), A_up])
    psi = crossing(v_up) @ P
    both = crossing(np.concatenate([w_up + here.w, -vJ[3:]]))
    Bq, Aq, Av = psi, crossing(a_up) @ P + crossing(v_up) @ psi, both @ P
    bent = body_curvature(body, S, G, own, q, rate, acceleration, f)
    if bent is not None:
        Bq, Aq, Av = Bq + bent.Vq, Aq + both @ bent.Vq + bent.Aq, Av + bent.Av
    u = cross(up.w, X.r) + X.rotate_back(vJ[3:])
    return Source(P, Bq, Aq, Av, u), None if bent is None else bent.Fq


def crossing(v):
    """The matrix of the cross product of motion vectors, v x m (5)."""
    w = skew(v[:3])
    return np.block([[w, np.zeros((3, 3))], [skew(v[3:]), w]])


def turning(f, P):
    """P x* f for columns of motions: how a force changes that moves along with them (5)."""
    n, l = skew(f[:3]), skew(f[3:])
    return -np.concatenate([n @ P[:3] + l @ P[3:], l @ P[:3]])
