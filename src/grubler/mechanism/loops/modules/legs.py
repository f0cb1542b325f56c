"""Legs between two bodies of known pose, closed by a ball joint: the parts of parallel platforms.
(For those that hang on a ball joint and are closed by a universal one see `ball_leg`.)

Two of them with a universal joint in the middle make the 2SPU+1U of a parallel ankle or torso, six
on a free platform the 6-UPS of Stewart and Gough. Seen from the foot of the leg the closing point
has the position t, and the leg must reach it:

    UpsLeg   R1 R2 (w0 + s e) = t        a universal joint and a slider
    RusLeg   R0 (b + R1 R2 w) = t        a crank and a rod on a universal joint

The universal joint may be one joint or two revolute ones whose axes meet. Rates are solved for in
the frame between its two axes, where both are constant: with z = R2 w the end of the leg moves by

    x1 a1 × z + x2 a2 × z + ...  =  the velocity of the closing point, seen from the foot,

three equations whose matrix is mostly zeros where the axes are coordinate axes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....algebra.linalg import determinant
from ....algebra.spatial import Transform, axis_rotation, cross
from ....algebra.symbolic import cos_sin
from ....tolerances import AXES_MEET
from ...joints import Prismatic, Revolute, Universal
from ...parts import Body
from ..chain import Way
from .base import ClosedForm, angle_between

if TYPE_CHECKING:
    from ....typing import Array
    from ..base import Loop


@dataclass(frozen=True, eq=False)
class Gimbal:
    """A universal joint: two axes that meet in `centre`, all in the frame where the first is fixed.

    `inner` leads from that frame, at zero angles, into the body carried."""

    axis1: np.ndarray
    axis2: np.ndarray
    centre: np.ndarray
    inner: Transform

    def aim(self, w: Array, t: Array, flip: int, centre_angles: Array) -> Array:
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

    def between(self, angle1: float) -> Array:
        """R1', which takes vectors from the frame of the joint to the one between its axes."""
        return axis_rotation(self.axis1, *cos_sin(angle1)).T

    def carried(self, x: Array, angle2: float) -> Array:
        """R2 x: a vector of the body carried, between the axes."""
        return axis_rotation(self.axis2, *cos_sin(angle2)) @ x

    def swing(self, z: Array, dz: Array, rates: Array) -> tuple[Array, Array]:
        """What z, that moves by dz with the second axis at rest, accelerates by as both turn
        (in the frame between the axes): the terms without accelerations."""
        a, b = self.axis1, self.axis2
        bz = cross(b, z)
        moved = rates[1] * bz + dz
        out = (rates[1] * rates[1]) * cross(b, bz) + (2.0 * rates[1]) * cross(b, dz)
        return out + rates[0] * cross(a, rates[0] * cross(a, z) + 2.0 * moved), moved

    def flip_at(self, w: Array, angle2: float) -> int:
        """The side of the axes' plane on which z = R2 w stands."""
        z = rotated(self.axis2, w, angle2)
        return 1 if z @ np.cross(self.axis1, self.axis2) >= 0 else -1


def about(axis: Array, start: Array, end: Array, centre: float) -> float:
    """The angle about a unit axis that takes `start` to `end`, nearest to `centre`."""
    along = axis @ start
    cosine = start @ end - along * (axis @ end)
    return angle_between(cosine, axis @ cross(start, end), start @ start - along * along, centre)


def rotated(axis: Array, x: Array, angle: float) -> Array:
    """x turned about a unit axis (floats)."""
    c, s = np.cos(angle), np.sin(angle)
    return c * x + s * np.cross(axis, x) + (1 - c) * (axis @ x) * axis


@dataclass(frozen=True, eq=False)
class Leg(ClosedForm):
    """A leg: the last joints of one path of the loop (`on_S`: the successor's)."""

    on_S: bool

    def goal(self, q: dict[int, Array]) -> Array:
        """The closing point in the frame of the leg's first joint."""
        return Approach(self, q).at

    def _approach(self, x, d=None) -> Approach:
        q = self._spread(self.inputs, x)
        rates = None if d is None else self._spread(self.inputs, d, velocities=True)
        return Approach(self, q, rates)

    def _stack(self, blocks, bodies):
        return np.concatenate([blocks[body.index] for body in bodies], axis=1)

    def conditioning(self, q: dict[int, Array]) -> float:
        """The volume of the unit motions of its joints: 0 at a singularity of the leg."""
        blocks, _ = self.loop.linearize(q, None)
        K = self._stack(blocks, self.outputs)
        sizes = 1.0
        for j in range(K.shape[1]):
            sizes = sizes * np.sqrt(K[:, j] @ K[:, j])
        return np.abs(determinant(K)) / sizes


@dataclass(frozen=True, eq=False)
class GimbalLeg(Leg):
    """A leg with a universal joint, closed by a ball; `flip` is the side to which that bends."""

    gimbal: Gimbal
    flip: int

    @abstractmethod
    def _reach(self, t):
        """Positions of the outputs that bring the end of the leg to t, seen from its foot."""

    @abstractmethod
    def _solving_frame(self, x):
        """(R, M): the rotation from the foot to the frame in which rates are solved for, and
        there the velocities of the end of the leg, a column for each of its joints."""

    @abstractmethod
    def _drift(self, x, rates):
        """The acceleration of the end at zero joint accelerations, in that frame."""

    def value(self, x: Array) -> Array:
        return self._reach(self.goal(self._spread(self.inputs, x)))

    def jacobian(self, x: Array) -> Array:
        R, M = self._solving_frame(self.value(x))
        return inverse3(M) @ (R @ self._approach(x).velocities())

    def curvature(self, x: Array, d: Array) -> Array:
        solved, approach = self.value(x), self._approach(x, d)
        R, M = self._solving_frame(solved)
        inverse = inverse3(M)
        rates = inverse @ (R @ approach.velocity)
        return inverse @ (R @ approach.acceleration - self._drift(solved, rates))


def inverse3(A: Array) -> Array:
    """The inverse of a 3x3 matrix by cross products of its columns."""
    a, b, c = A[:, 0], A[:, 1], A[:, 2]
    rows = [cross(b, c), cross(c, a), cross(a, b)]
    return np.stack(rows) / (a @ rows[0])


class Approach:
    """How the closing point moves seen from the foot of a leg, in the foot's axes.

    The point moves with the last body of the other path, the foot with the body before the leg.
    """

    leg: Leg
    rates: dict[int, Array] | None
    seen: Any
    at: Any
    velocity: Any
    acceleration: Any

    def __init__(self, leg: Leg, q: dict[int, Array], rates: dict[int, Array] | None = None):
        loop, n = leg.loop, len(leg.outputs)
        own, other = (loop.path_S, loop.path_P) if leg.on_S else (loop.path_P, loop.path_S)
        frame = loop.frame_P if leg.on_S else loop.frame_S
        self.leg, self.rates = leg, rates
        self.way: Way = Way(other, own[: len(own) - n], leg.outputs[0].joint.placement, q)
        self.seen, moved = self.way.carried(frame.r, rates)
        self.at, self.velocity, self.acceleration = moved

    def direction(self, n: Array) -> tuple[Any, ...]:
        """A direction fixed in the point's body, with its derivatives."""
        return self.way.carried(n, self.rates, point=False)[1]

    def velocities(self, *moments: Any) -> Array:
        """(3, n): columns in the order of the leg's inputs; for a moment one more row, its power
        in the turning of the point's body."""
        return self.leg._stack(self.way.rows([*np.eye(3)], moments, self.seen), self.leg.inputs)


@dataclass(frozen=True, eq=False)
class UpsLeg(GimbalLeg):
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

    def _inside(self, x):
        """The end of the leg and the slider's direction, between the axes."""
        z = self.gimbal.carried(self.start + x[2] * self.slide, x[1])
        return z, self.gimbal.carried(self.slide, x[1])

    def _solving_frame(self, x):
        z, e = self._inside(x)
        columns = [cross(self.gimbal.axis1, z), cross(self.gimbal.axis2, z), e]
        return self.gimbal.between(x[0]), np.stack(columns, axis=1)

    def _drift(self, x, rates):
        z, e = self._inside(x)
        return self.gimbal.swing(z, rates[2] * e, rates)[0]

    @classmethod
    def make(
        cls,
        loop: Loop,
        on_S: bool,
        leg: tuple[Body, ...],
        inputs: tuple[Body, ...],
        reference: dict[int, Array],
    ) -> Loop | None:
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
class RusLeg(GimbalLeg):
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
        length = A * A + B * B
        D = np.sqrt(length - C * C)
        return angle_between(A * C - self.branch * B * D, B * C + self.branch * A * D, length,
                             self.centre[0])  # fmt: skip

    def _turned_back(self, t, angle):
        return axis_rotation(self.axis, *cos_sin(angle)).T @ t

    def _inside(self, x):
        """From the crank to between the axes, the end of the leg there, and seen from the crank."""
        z, R = self.gimbal.carried(self.rod, x[2]), self.gimbal.between(x[1]) @ self.carrier.E
        return R, z, self.pivot + R.T @ z

    def _solving_frame(self, x):
        R, z, end = self._inside(x)
        columns = [R @ cross(self.axis, end), cross(self.gimbal.axis1, z),
                   cross(self.gimbal.axis2, z)]  # fmt: skip
        back = axis_rotation(self.axis, *cos_sin(x[0])).T
        return R @ back, np.stack(columns, axis=1)

    def _drift(self, x, rates):
        R, z, end = self._inside(x)
        out, moved = self.gimbal.swing(z, np.zeros(3), rates[1:])
        moved = R.T @ (moved + rates[1] * cross(self.gimbal.axis1, z))
        turning = cross(self.axis, rates[0] * cross(self.axis, end) + 2.0 * moved)
        return out + R @ (rates[0] * turning)

    @classmethod
    def make(
        cls,
        loop: Loop,
        on_S: bool,
        leg: tuple[Body, ...],
        inputs: tuple[Body, ...],
        reference: dict[int, Array],
    ) -> Loop | None:
        """The leg of these bodies, on the branch of the reference, or None."""
        gimbal = find_gimbal(leg[1:])
        if gimbal is None or not _turns(leg[0]):
            return None
        frame = loop.frame_S if on_S else loop.frame_P
        rod = gimbal.inner.r + gimbal.inner.E.T @ frame.r - gimbal.centre
        if np.linalg.norm(rod) < AXES_MEET:
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
    if np.linalg.norm(normal) < 1e-3 or abs(normal @ place.r) > AXES_MEET * np.linalg.norm(normal):
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
