"""Rows on the motion of a frame relative to the place where it is held.

The place is fixed in another body or in the world, or moves there as prescribed. Rows K hold
K V = 0, with V the spatial velocity of the frame relative to the place, at the frame's origin and
in its axes. The motions that K leaves free form a group where the rows are those of a joint
(revolute, prismatic, cylindrical, planar, spherical). Only then does a pose tell how far the frame
is off its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..algebra.spatial import Transform, cross, cross_motion, skew
from ..tolerances import GROUP_RANK, ROUNDING

if TYPE_CHECKING:
    from ..typing import Array


X_AXIS, Y_AXIS = np.eye(3)[:2]
UNIVERSAL = np.eye(6)[[2, 3, 4, 5]]


class Group(NamedTuple):
    """The motions that rows leave free: rotations about `axis`, through `centre`, and translations.

    Both are in the frame's axes. `axis` is None if no rotation is free, or if all are (`ball`);
    `slides` is True if translations are free.
    """

    axis: np.ndarray | None
    ball: bool
    slides: bool
    centre: np.ndarray


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows as they were described.

    K          (m, 6) in the frame's axes, at its origin; `universal`: at the joint's zero position
    classical  True if linear rows hold the second derivative of the origin's position
    universal  True if the first row holds the frame's y axis perpendicular to the place's x axis
    """

    K: np.ndarray
    classical: bool
    universal: bool = False

    @property
    def m(self) -> int:
        return self.K.shape[0]

    @property
    def has_place(self) -> bool:
        """True if a pose tells how far the frame is off."""
        return self.universal or self.group is not None

    @cached_property
    def group(self) -> Group | None:
        """The free motions, None if they are no group, or a helical one."""
        _, sizes, V = np.linalg.svd(self.K)
        free = V[int(np.sum(sizes > GROUP_RANK * sizes[0])) :]
        if len(free) == 0:
            return Group(None, False, False, np.zeros(3))
        due = GROUP_RANK * np.abs(self.K).max()
        brackets = [cross_motion(a, b) for a in free for b in free]
        if any(np.abs(self.K @ bracket).max() > due for bracket in brackets):
            return None
        _, sizes, turns = np.linalg.svd(free[:, :3])
        turns = turns[: int(np.sum(sizes > GROUP_RANK))]
        slides = len(free) > len(turns)
        if len(turns) == 0:
            return Group(None, False, slides, np.zeros(3))
        # a rotation w about the centre moves the frame's origin with -w x c
        levers = np.concatenate([self.K[:, 3:] @ skew(w) for w in turns])
        angular = np.concatenate([self.K[:, :3] @ w for w in turns])
        centre = np.linalg.lstsq(levers, angular, rcond=GROUP_RANK)[0]
        if np.abs(levers @ centre - angular).max() > due * (1 + np.abs(centre).max()):
            return None
        axis = _clean(turns[0]) if len(turns) == 1 else None
        return Group(axis, len(turns) == 3, slides, _clean(centre))

    def matrix(self, X: Transform | None) -> Array | Array:
        """K (m, 6) at the pose X, from the place into the frame."""
        if not self.universal:
            return self.K
        normal = cross(X.E @ X_AXIS, Y_AXIS)
        return np.concatenate([np.stack([np.concatenate([normal, np.zeros(3)])]), self.K[1:]])

    def turning(self, X: Transform, w: Array) -> Array:
        """dK/dt V (m,), w being the angular velocity relative to the place."""
        moved = cross(cross(X.E @ X_AXIS, w), Y_AXIS)
        return np.concatenate([np.stack([moved @ w]), np.zeros(self.m - 1)])

    def error(self, X: Transform) -> Array | Array:
        """How far the frame at the pose X is off its place, one number a row, in rad and m.

        Zero where the rows are met; there its rate is K V.
        """
        if self.universal:
            return np.concatenate([np.stack([-((X.E @ X_AXIS) @ Y_AXIS)]), X.E @ X.r])
        axis, ball, slides, centre = self.group
        turn = np.zeros(3)
        if axis is not None:
            turn = cross(X.E @ axis, axis)
        elif not ball:
            turn = sine_vector(X.E.T)
        shift = X.E @ (X.r - centre)
        # in axes that turn with w, the shift has the rate -w x shift besides that of the point
        arm = shift if slides else -centre
        return self.K @ np.concatenate([turn, shift + centre + cross(turn, arm)])


def sine_vector(R: Array) -> Array:
    """The rotation vector of R with the sine of the angle as its length."""
    return 0.5 * np.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])


def _clean(x):
    """Numbers that are zero or one to rounding as such: these cost nothing in generated code."""
    x = np.where(np.abs(x) < ROUNDING, 0.0, x)
    return np.where(np.abs(np.abs(x) - 1.0) < ROUNDING, np.sign(x), x)


__all__ = ["UNIVERSAL", "Group", "HeldRows", "sine_vector"]
