"""Legs between two bodies of known pose, closed by a ball joint: the parts of parallel platforms.

Two of them with a universal joint in the middle make the 2SPU+1U of a parallel ankle or torso, six
on a free platform the 6-UPS of Stewart and Gough. Seen from the foot of the leg the closing point
has the position t, and the leg must reach it:

    UpsLeg   R1 R2 (w0 + s e) = t        a universal joint and a slider
    RusLeg   R0 (b + R1 R2 w) = t        a crank and a rod on a universal joint

The universal joint may be one joint or two revolute ones whose axes meet. The Jacobian follows from
the three rows of the loop by one 3x3 inverse a leg, written out.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ...joints import Prismatic, Revolute, Universal
from ...parts import Body
from ...spatial import Transform, cross
from ..joint import LoopJoint, follow
from .base import ClosedForm, angle_between

MEET = 1e-7  # m: axes that pass closer than this meet


@dataclass(frozen=True, eq=False)
class Gimbal:
    """A universal joint: two axes that meet in `centre`, all in the frame where the first is fixed.

    `inner` leads from that frame, at zero angles, into the body carried."""

    axis1: np.ndarray
    axis2: np.ndarray
    centre: np.ndarray
    inner: Transform

    def aim(self, w, t, flip: int, centre_angles):
        """The angles with R1 R2 w = t, |w| = |t|, both seen from the centre.

        The vector z = R2 w keeps its part along axis 2 and gets that of t along axis 1; what is
        left goes to either side of their plane (`flip`): Paden and Kahan's second subproblem."""
        a, b = self.axis1, self.axis2
        ab = float(a @ b)
        p, q = a @ t, b @ w
        along_a, along_b = (p - ab * q) / (1 - ab * ab), (q - ab * p) / (1 - ab * ab)
        n = np.cross(a, b)
        rest = w @ w - along_a * along_a - along_b * along_b - 2 * ab * along_a * along_b
        z = along_a * a + along_b * b + (flip * np.sqrt(rest / float(n @ n))) * n
        return np.stack([about(a, z, t, centre_angles[0]), about(b, w, z, centre_angles[1])])

    def flip_at(self, w, angle2: float) -> int:
        """The side of the axes' plane on which z = R2 w stands."""
        z = rotated(self.axis2, w, angle2)
        return 1 if z @ np.cross(self.axis1, self.axis2) >= 0 else -1


def about(axis, start, end, centre: float):
    """The angle about a unit axis that takes `start` to `end`, nearest to `centre`."""
    cosine = start @ end - (axis @ start) * (axis @ end)
    return angle_between(cosine, axis @ cross(start, end), centre)


def rotated(axis, x, angle: float):
    """x turned about a unit axis (floats)."""
    c, s = np.cos(angle), np.sin(angle)
    return c * x + s * np.cross(axis, x) + (1 - c) * (axis @ x) * axis


@dataclass(frozen=True, eq=False)
class Leg(ClosedForm):
    """A leg: the last joints of one path of the loop (`on_S`: the successor's).

    `flip` is the side to which its universal joint bends."""

    on_S: bool
    gimbal: Gimbal
    flip: int

    @abstractmethod
    def _reach(self, t):
        """Positions of the outputs that bring the end of the leg to t, seen from its foot."""

    def value(self, x):
        return self._reach(self.goal(self._spread(self.inputs, x)))

    def goal(self, q):
        """The closing point in the frame of the leg's first joint."""
        return leg_goal(self.loop, self.on_S, self.outputs, q)

    def jacobian(self, x):
        q = self._spread(self.inputs, x)
        q |= self._spread(self.outputs, self.value(x))
        blocks, _ = self.loop.linearize(q, None)
        return self._jacobian(blocks)

    def curvature(self, x, d):
        q = self._spread(self.inputs, x)
        q |= self._spread(self.outputs, self.value(x))
        blocks, _ = self.loop.linearize(q, None)
        rates = self._spread(self.inputs, d, velocities=True)
        rates |= self._spread(self.outputs, self._jacobian(blocks) @ d, velocities=True)
        _, k = self.loop.linearize(q, rates)
        return inverse3(self._stack(blocks, self.outputs)) @ k

    def _stack(self, blocks, bodies):
        return np.concatenate([blocks[body.index] for body in bodies], axis=1)

    def _jacobian(self, blocks):
        K = self._stack(blocks, self.inputs)
        return -(inverse3(self._stack(blocks, self.outputs)) @ K)

    def conditioning(self, q) -> float:
        """The volume of the unit motions of its joints: 0 at a singularity of the leg."""
        blocks, _ = self.loop.linearize(q, None)
        K = self._stack(blocks, self.outputs)
        return float(abs(np.linalg.det(K / np.linalg.norm(K, axis=0))))


def inverse3(A):
    """The inverse of a 3x3 matrix by cross products of its columns."""
    a, b, c = A[:, 0], A[:, 1], A[:, 2]
    rows = [cross(b, c), cross(c, a), cross(a, b)]
    return np.stack(rows) / (a @ rows[0])


def leg_goal(loop: LoopJoint, on_S: bool, leg, q):
    own, other = (loop.path_S, loop.path_P) if on_S else (loop.path_P, loop.path_S)
    frame = loop.frame_P if on_S else loop.frame_S
    goal = (frame @ follow(other, q, None).X).r
    foot = leg[0].joint.placement @ follow(own[: len(own) - len(leg)], q, None).X
    return foot.E @ (goal - foot.r)


@dataclass(frozen=True, eq=False)
class UpsLeg(Leg):
    """Universal joint (or two revolute ones), slider, ball: |w0 + s e| = |t| gives the slider.

    The branch is the root of that square: the slider beyond the joint's centre, or behind it."""

    start: np.ndarray
    slide: np.ndarray

    module = "UPS leg"

    def _reach(self, t):
        t = t - self.gimbal.centre
        w, e = self.start, self.slide
        along = float(w @ e)
        s = -along + self.branch * np.sqrt(t @ t - float(w @ w) + along * along)
        angles = self.gimbal.aim(w + s * e, t, self.flip, self.centre)
        return np.concatenate([angles, np.stack([s])])

    @classmethod
    def make(cls, loop, on_S, leg, inputs, reference):
        """The leg of these bodies, on the branch of the reference, or None."""
        if type(leg[-1].joint.motion) is not Prismatic:
            return None
        gimbal = find_gimbal(leg[:-1])
        if gimbal is None:
            return None
        joint, frame = leg[-1].joint, loop.frame_S if on_S else loop.frame_P
        inner = gimbal.inner
        slide = inner.E.T @ (joint.placement.E.T @ joint.motion.axis)
        tip = joint.placement.r + joint.placement.E.T @ frame.r
        start = inner.r + inner.E.T @ tip - gimbal.centre
        centre = np.concatenate([reference[body.index] for body in leg])
        branch = 1 if start @ slide + centre[2] >= 0 else -1
        flip = gimbal.flip_at(start + centre[2] * slide, centre[1])
        return cls(loop.name, inputs, tuple(leg), loop, branch, centre, on_S, gimbal, flip, start,
                   slide)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RusLeg(Leg):
    """Crank, universal joint, rod, ball: the crank's end stays at the rod's length from the goal,

        A cos x + B sin x = C,   x = atan2(B C + branch A D, A C - branch B D),  D² = A² + B² - C²

    The branch is the side to which crank and rod bend."""

    axis: np.ndarray
    pivot: np.ndarray  # the universal joint's centre, in the crank
    carrier: Transform  # from the crank to the frame of the universal joint
    rod: np.ndarray

    module = "RUS leg"

    def _reach(self, t):
        crank = self._crank(t)
        end = self._turned_back(t, crank)
        carried = self.carrier.E @ (end - self.carrier.r) - self.gimbal.centre
        angles = self.gimbal.aim(self.rod, carried, self.flip, self.centre[1:])
        return np.concatenate([np.stack([crank]), angles])

    def _equation(self, t):
        a, b = self.axis, self.pivot
        along = float(a @ b)
        half = (t @ t + float(b @ b) - float(self.rod @ self.rod)) / 2
        return t @ (b - along * a), t @ np.cross(a, b), half - along * (a @ t)

    def _crank(self, t):
        A, B, C = self._equation(t)
        D = np.sqrt(A * A + B * B - C * C)
        return angle_between(A * C - self.branch * B * D, B * C + self.branch * A * D,
                             self.centre[0])  # fmt: skip

    def _turned_back(self, t, angle):
        c, s = np.cos(angle), np.sin(angle)
        a = self.axis
        return c * t - s * cross(a, t) + ((1 - c) * (a @ t)) * a

    @classmethod
    def make(cls, loop, on_S, leg, inputs, reference):
        """The leg of these bodies, on the branch of the reference, or None."""
        gimbal = find_gimbal(leg[1:])
        if gimbal is None or not _turns(leg[0]):
            return None
        frame = loop.frame_S if on_S else loop.frame_P
        rod = gimbal.inner.r + gimbal.inner.E.T @ frame.r - gimbal.centre
        if np.linalg.norm(rod) < MEET:
            return None
        carrier = leg[1].joint.placement
        pivot = carrier.r + carrier.E.T @ gimbal.centre
        centre = np.concatenate([reference[body.index] for body in leg])
        flip = gimbal.flip_at(rod, centre[2])
        made = cls(loop.name, inputs, tuple(leg), loop, 1, centre, on_S, gimbal, flip,
                   leg[0].joint.motion.axis, pivot, carrier, rod)  # fmt: skip
        A, B, _ = made._equation(made.goal(reference))
        side = A * np.sin(centre[0]) - B * np.cos(centre[0])
        return made if side >= 0 else made.with_branch(-1)


def find_gimbal(bodies: tuple[Body, ...]) -> Gimbal | None:
    """One universal joint, or two revolute ones whose axes meet; None otherwise."""
    if len(bodies) == 1 and isinstance(bodies[0].joint.motion, Universal):
        motion = bodies[0].joint.motion
        return Gimbal(motion.axis, motion.axis2, np.zeros(3), Transform.identity())
    if len(bodies) != 2 or not all(_turns(body) for body in bodies):
        return None
    first, second = (body.joint.motion.axis for body in bodies)
    place = bodies[1].joint.placement
    second = place.E.T @ second
    normal = np.cross(first, second)
    if np.linalg.norm(normal) < 1e-3 or abs(normal @ place.r) > MEET * np.linalg.norm(normal):
        return None
    # first * l = r + second * m, in the least-squares sense
    l, m = np.linalg.lstsq(np.stack([first, -second], axis=1), place.r, rcond=None)[0]
    centre = first * l
    # the second axis passes through the centre to rounding: the rest is the file's
    inner = Transform(place.E, centre - second * m)
    return Gimbal(first, second, centre, inner)


def _turns(body: Body) -> bool:
    motion = body.joint.motion
    return isinstance(motion, Revolute) and motion.kind in ("revolute", "continuous")
