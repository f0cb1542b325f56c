"""One body of C-RNEA: its motion from its parent's, and the force that its motion takes.

| code | paper | meaning                                               | shape |
|------|-------|-------------------------------------------------------|-------|
| w, dw| v_k, a_k | angular velocity and acceleration (33)             | (3,)  |
| A    | a_k   | acceleration of the body's origin, with -gravity (33) | (3,)  |
| U    |       | [dw x] + [w x][w x]                                   | (3, 3)|

Accelerations are those of points, not spatial ones: the origin of a child at r has A + U r, the
force on a body is m A + U mc, and no linear velocity is needed (Luh, Walker and Paul; a quarter
fewer operations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import cross, rigid_parts, skew
from ..mechanism.parts import WORLD
from .sweep import JointState, Sweep

if TYPE_CHECKING:
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class Moving:
    """The motion of a body, in its own axes."""

    w: np.ndarray
    dw: np.ndarray
    A: np.ndarray
    U: np.ndarray


@dataclass(frozen=True, eq=False)
class Motion:
    """Of a robot: every body's motion, and every tree joint's acceleration, by body index.

    A `spin_only` body has none of its own; its spin is in its joint and its carrier.
    """

    sweep: Sweep
    bodies: dict[int, Moving]
    joints: dict[int, np.ndarray]


def accelerated(sweep: Sweep, a: Array | None = None) -> Motion:
    """The motion of all bodies (33) at acceleration a (nv,); None: a = 0, the robot coasting."""
    g, zero = sweep.model.gravity, np.zeros(3)
    bodies, joints = {WORLD: Moving(zero, zero, -g, np.zeros((3, 3)))}, {}
    for state in sweep:
        own = None if a is None else a[state.cluster.v]
        for joint in state.joints:
            i, up = joint.body.index, joint.body.parent
            joints[i] = joint.acceleration(own)
            if not joint.spin_only:
                bodies[i] = moved(joint, bodies[up], joints[i])
    return Motion(sweep, bodies, joints)


def moved(joint: JointState, up: Moving, acceleration: Array) -> Moving:
    """The motion of a body from its parent's (33)."""
    X, S = joint.X, joint.S
    vJ, aJ = S @ joint.rate, S @ acceleration
    aJ = aJ if joint.bias is None else aJ + joint.bias
    w = X.rotate(up.w) + vJ[:3]
    dw = X.rotate(up.dw) + aJ[:3] + cross(w, vJ[:3])
    A = X.rotate(up.A + up.U @ X.r) + aJ[3:] + cross(2.0 * w - vJ[:3], vJ[3:])
    return Moving(w, dw, A, skew(dw) + skew(w) @ skew(w))


def body_force(I: Array, body: Moving, spin: Any) -> Array:
    """Rate of change of a body's momentum (34), with that of the rotors' `spin` (3,), or None.

    Io dw + w x Io w by elements of Io: those on the diagonal as in Euler's equations, a product of
    inertia by elements of U, which the force needs anyway: 7 % fewer operations on a humanoid.
    """
    Io, m, mc = rigid_parts(I)
    w, dw, U = body.w, body.dw, body.U
    moment = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        euler = Io[i, i] * dw[i] + (Io[k, k] - Io[j, j]) * (w[j] * w[k])
        across = Io[i, k] * U[j, i] - Io[i, j] * U[k, i]
        moment.append(euler + across + Io[j, k] * (w[j] * w[j] - w[k] * w[k]))
    moment = np.stack(moment) + cross(mc, body.A)
    moment = moment if spin is None else moment + cross(w, spin)
    return np.concatenate([moment, m * body.A + U @ mc])


def rotor_force(
    J: Array, joint: JointState, up: Moving, acceleration: Array
) -> tuple[Array, Any | Any]:
    """(the moment (1,) on a body known by its spin, its angular momentum (3,)).

    J is the moment of inertia about the axis; both are of the absolute spin.
    """
    axis = joint.X.row[:3]
    moment = J * (axis @ up.dw + acceleration[0])
    return np.stack([moment]), axis * (J * (axis @ up.w + joint.rate[0]))
