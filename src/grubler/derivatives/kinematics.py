"""Derivatives of the motion of bodies, by differentiating the outward recursion (33).

All in the axes of the body, with its spatial velocity V and acceleration A, gravity left out:

| code | meaning                          | shape   |
|------|----------------------------------|---------|
| J    | ∂V/∂v, and the body's displacement by the tangent coordinates | (6, nv) |
| Vq   | ∂V/∂q                            | (6, nv) |
| Aq   | ∂A/∂q                            | (6, nv) |
| Av   | ∂A/∂v                            | (6, nv) |

With V = X V_λ + v_J and A = X A_λ + a_J + V x v_J, a displacement P of the joint turns X by -P x X.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import Transform, cross_motion
from ..algorithms.sweep import JointState, outward
from ..mechanism.parts import WORLD
from .curvature import body_curvature, curvature
from .sources import crossing

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class Motion:
    """A body's or frame's pose X from the world, V, A and their derivatives, in its axes."""

    X: Transform
    V: np.ndarray
    A: np.ndarray
    J: np.ndarray
    Vq: np.ndarray
    Aq: np.ndarray
    Av: np.ndarray

    def at(self, placement: Transform) -> Motion:
        """That of a frame on the body."""
        move, moves = placement.motion, placement.motions
        return Motion(
            placement @ self.X, move(self.V), move(self.A),
            moves(self.J), moves(self.Vq), moves(self.Aq), moves(self.Av),
        )  # fmt: skip


def body_motions(
    model: Model, q: Array, v: Array, a: Array, bodies: Collection[int]
) -> dict[int, Motion]:
    """The motion of some bodies and of all that carry them, by index; WORLD included."""
    sweep, rest = outward(model, q, v, keep_frame=None), np.zeros((6, model.nv))
    motions = {
        WORLD: Motion(Transform.identity(), np.zeros(6), np.zeros(6), rest, rest, rest, rest)
    }
    path = set()
    for i in bodies:
        while i != WORLD:
            path.add(i)
            i = model.bodies[i].parent
    for state in sweep:
        k = state.cluster
        if path.isdisjoint(k.bodies):
            continue
        embedding = sweep.robot.embeddings[k.index]
        second = curvature(embedding, q[k.q], v[k.v], a[k.v], np.zeros(embedding.nv_span))
        for joint in state.joints:
            i = joint.body.index
            if i in path:
                own = None if second is None else second.rows(embedding.columns[i])
                up = motions[joint.body.parent]
                motions[i] = _moved(joint, up, joint.acceleration(a[k.v]), own, k.v)
    return motions


def _moved(joint: JointState, up: Motion, acceleration, own, place: slice) -> Motion:
    """The motion of a body from its parent's; `place` are its cluster's coordinates."""
    X, S, n = joint.X, joint.S, up.J.shape[1]
    vJ, aJ = S @ joint.rate, S @ acceleration
    aJ = aJ if joint.bias is None else aJ + joint.bias
    v_up, a_up = X.motion(up.V), X.motion(up.A)
    V = v_up + vJ

    def wide(columns):
        parts = [np.zeros((6, place.start)), columns, np.zeros((6, n - place.stop))]
        return np.concatenate(parts, axis=1)

    P = wide(S @ joint.G)
    J = X.motions(up.J) + P
    Vq = X.motions(up.Vq) + crossing(v_up) @ P
    Aq = X.motions(up.Aq) + crossing(a_up) @ P
    Av = X.motions(up.Av) - crossing(vJ) @ J + crossing(V) @ P
    bent = body_curvature(joint, own, acceleration, np.zeros(6))
    if bent is not None:
        speed = wide(bent.Vq)
        Vq, Aq = Vq + speed, Aq + wide(bent.Aq) + crossing(V) @ speed
        Av = Av + wide(bent.Av)
    Aq = Aq - crossing(vJ) @ Vq
    return Motion(X @ up.X, V, a_up + aJ + cross_motion(V, vJ), J, Vq, Aq, Av)


def frame_motion(model: Model, q: Array, v: Array, a: Array, frame: Any) -> Motion:
    """The motion of a frame, in its axes."""
    return body_motions(model, q, v, a, [frame.body])[frame.body].at(frame.placement)
