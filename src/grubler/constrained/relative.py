"""The motion of a frame relative to the place where it is held.

V = V_F - V_P, at the frame's origin and in its axes. With ω, ω_P the angular velocities of frame
and place, and a, a_P the accelerations of the frame's origin and of the place's point there,

    d/dt V = [ω̇ - ω̇_P + ω x ω_P;  a - a_P - (ω + ω_P) x v]

and the second derivative of the origin's position, seen from the place, is a - a_P - 2 ω_P x v: for
K with all linear rows it differs from d/dt v only where K V is not zero.

A driven place moves relative to where it rests. Its motion (3, 6) is given there, in the axes of
its rest: [rotation vector; position], [angular velocity; rate of position] and the derivatives of
these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import Transform, cross, quaternion_exp, quaternion_matrix

if TYPE_CHECKING:
    from ..typing import Array


@dataclass(frozen=True)
class PointMotion:
    """Spatial velocity v (6,), angular acceleration dw (3,), and the acceleration a (3,) of the
    point, at one point and in one frame's axes."""

    v: np.ndarray
    dw: np.ndarray
    a: np.ndarray


def moved_place(motion: Any) -> Transform:
    """From where the place rests into the place."""
    return Transform.from_placement(quaternion_matrix(quaternion_exp(motion[0][:3])), motion[0][3:])


def relative_to(
    own: PointMotion, carrier: PointMotion | None, X: Transform, motion: Any, classical: bool
) -> tuple[Array, Array]:
    """(velocity (6,), acceleration (6,)) of a frame relative to its place.

    `carrier` is the motion of the body that the place is on, at the frame's origin, None for the
    world. X is the transform into the frame from where the place rests, and `motion` (3, 6) is that
    of the place from there, None for none. `classical`: the linear part is the second derivative of
    the origin's position.
    """
    place = carrier if motion is None else _driven(carrier, X, motion)
    w = own.v[:3]
    if place is None:
        v, dw, a = own.v, own.dw, own.a
        return v, np.concatenate([dw, a if classical else a - cross(w, v[3:])])
    v, w_P = own.v - place.v, place.v[:3]
    about = 2.0 * w_P if classical else w + w_P
    dw = own.dw - place.dw + cross(w, w_P)
    return v, np.concatenate([dw, own.a - place.a - cross(about, v[3:])])


def _driven(carrier: PointMotion | None, X: Transform, motion) -> PointMotion:
    """The motion of a driven place, at the frame's origin."""
    (w, rate), (dw, second) = ((row[:3], row[3:]) for row in (motion[1], motion[2]))
    arm = X.r - motion[0][3:]
    swept = cross(w, arm)
    v = np.concatenate([X.E @ w, X.E @ (rate + swept)])
    a = X.E @ (second + cross(dw, arm) + cross(w, swept))
    own = PointMotion(v, X.E @ dw, a)
    if carrier is None:
        return own
    w_C = carrier.v[:3]
    return PointMotion(
        carrier.v + own.v,
        carrier.dw + own.dw + cross(w_C, own.v[:3]),
        carrier.a + own.a + 2.0 * cross(w_C, own.v[3:]),
    )
