"""A leg that hangs on a ball joint and is closed by a universal joint: the UPS leg cut elsewhere.

With R the ball's rotation, w = w0 + s e the closing point in the leg, t the same point seen from
the foot, m and k the axes of the universal joint on the leg and on the body that it reaches for:

    R w = t,   (R m) . k = 0

|w| = |t| gives the slider, t the direction of the leg, k how far it is turned about itself. Rates,
in the axes of the leg (u and h: the velocity of the point and of k, seen from there):

    ω × w + s' e = u,   ω . (m × k) = h
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ....algebra.spatial import cross, quaternion_matrix, quaternion_product
from ...joints import Prismatic, Spherical
from .legs import Approach, Leg

if TYPE_CHECKING:
    from ....typing import Array
    from ...parts import Body
    from ..base import Loop


@dataclass(frozen=True, eq=False)
class SpuLeg(Leg):
    """Ball, slider, universal joint. `branch` is that of the slider, beyond the ball or behind it,
    `origin` the one at the reference, `flip` the side to which the leg is turned about itself."""

    start: np.ndarray
    slide: np.ndarray
    own_axis: np.ndarray  # m, in the leg
    other_axis: np.ndarray  # k, in the last body of the other path
    flip: int
    origin: int

    module = "SPU leg"

    def value(self, x: Array) -> Array:
        approach = self._approach(x)
        t, k = approach.at, approach.direction(self.other_axis)[0]
        s = self._slider(t)
        return np.concatenate([self._turned(self._rotation(t, k, s)), np.stack([s])])

    def _slider(self, t):
        along = float(self.start @ self.slide)
        square = t @ t - float(self.start @ self.start) + along * along
        return -along + self.branch * np.sqrt(square)

    def _rotation(self, t, k, s):
        """R: the frame of (w, m) to that of (t, R m)."""
        w, m = self.start + s * self.slide, self.own_axis
        length2 = t @ t
        mu, kappa = (m @ w) / length2, (k @ t) / length2
        m1, k1 = m - mu * w, k - kappa * t  # normal to the leg
        mm, kk = m1 @ m1, k1 @ k1
        cosine = -mu * kappa * length2 / kk
        sine = self.flip * np.sqrt((mm - cosine * cosine * kk) / (kk * length2))
        m2 = cosine * k1 + sine * cross(t, k1)  # R m1
        here = [w, m1, cross(w, m1)]
        there = [t / length2, m2 / mm, cross(t, m2) / (length2 * mm)]
        return np.stack(there, axis=1) @ np.stack(here)

    def _turned(self, R):
        """The quaternion of R, within half a turn of the reference's on this branch."""
        centre = self._centre()
        E = quaternion_matrix(centre).T @ R
        one = 1.0 + E[0, 0] + E[1, 1] + E[2, 2]
        small = np.stack([one, E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])
        return quaternion_product(centre, small / (2.0 * np.sqrt(one)))

    def _centre(self) -> np.ndarray:
        """The ball at the reference; on the other branch turned by half about m."""
        centre = self.centre[:4]
        if self.branch == self.origin:
            return centre
        w = self.start + self.centre[4] * self.slide
        m = self.own_axis - (self.own_axis @ w) / (w @ w) * w
        return quaternion_product(centre, np.concatenate([[0.0], m / np.linalg.norm(m)]))

    def jacobian(self, x: Array) -> Array:
        solve, approach, R, (k, *_), _ = self._frame(x)
        rows = approach.velocities(cross(k, R @ self.own_axis))
        u, h = R.T @ rows[:3], -rows[3]
        return np.stack([solve(u[:, i], h[i]) for i in range(u.shape[1])], axis=1)

    def curvature(self, x: Array, d: Array) -> Array:
        solve, approach, R, jet, w = self._frame(x, d)
        m, (k_leg, k1, k2) = self.own_axis, (R.T @ k for k in jet)
        rates = solve(R.T @ approach.velocity, -(m @ k1))
        spin, sliding = rates[:3], rates[3]
        wm = cross(spin, m)
        swing = cross(spin, cross(spin, w) + (2.0 * sliding) * self.slide)
        bend = cross(spin, wm) @ k_leg + 2.0 * (wm @ k1) + m @ k2
        return solve(R.T @ approach.acceleration - swing, -bend)

    def _frame(self, x, d=None):
        """What velocities and accelerations are solved with at x."""
        approach = self._approach(x, d)
        t, jet = approach.at, approach.direction(self.other_axis)
        k, s = jet[0], self._slider(t)
        R, w, e = self._rotation(t, k, s), self.start + s * self.slide, self.slide
        g = cross(self.own_axis, R.T @ k)
        inverse, across = 1.0 / (t @ t), 1.0 / (w @ g)

        def solve(u, h):
            """(ω, s') of ω × w + s' e = u, ω . g = h."""
            sliding = (w @ u) / (w @ e)
            normal = inverse * cross(w, u - sliding * e)
            spin = normal + ((h - normal @ g) * across) * w
            return np.concatenate([spin, np.stack([sliding])])

        return solve, approach, R, jet, w

    @classmethod
    def make(
        cls,
        loop: Loop,
        on_S: bool,
        leg: tuple[Body, Body],
        inputs: tuple[Body, ...],
        reference: dict[int, Array],
    ) -> Loop | None:
        """The leg of these bodies, on the branch of the reference, or None."""
        if len(leg) != 2:
            return None
        ball, slider = (body.joint for body in leg)
        if not isinstance(ball.motion, Spherical) or type(slider.motion) is not Prismatic:
            return None
        frame, other = (loop.frame_S, loop.frame_P) if on_S else (loop.frame_P, loop.frame_S)
        axes = (loop.axis, loop.universal_axis2)
        mine, theirs = axes[::-1] if on_S else axes
        slide = slider.placement.E.T @ slider.motion.axis
        start = slider.placement.r + slider.placement.E.T @ frame.r
        own_axis = slider.placement.E.T @ (frame.E.T @ mine)
        centre = np.concatenate([reference[body.index] for body in leg])
        branch = 1 if start @ slide + centre[4] >= 0 else -1
        made = cls(loop.name, inputs, tuple(leg), loop, branch, centre, on_S, start, slide,
                   own_axis, other.E.T @ theirs, 1, branch)  # fmt: skip
        approach = Approach(made, reference)
        t, k = approach.at, approach.direction(made.other_axis)[0]
        moved = quaternion_matrix(centre[:4]) @ own_axis
        side = moved @ np.cross(t, k)
        return made if side >= 0 else replace(made, flip=-1)
