"""Planar loops in two dimensions: any number of joints in parallel planes, two of them solved for.

All axes of revolute joints are parallel to one normal n, all prismatic axes normal to it, so the
loop reads D(q) = tip_P - tip_S = 0 in the plane, two equations. Vectors are pairs (x, y), a
rotation by an angle is its (cosine, sine); both multiply like complex numbers.

With the other joints known, the two unknown ones a and b meet in A(x_a) - B(x_b) = t, where each of
A and B runs on a circle (a revolute joint) or on a line (a prismatic one): see `four_bar` and
`slider_crank` for the solutions.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....algebra.symbolic import cos_sin
from ...joints import Prismatic, Revolute, perpendicular
from ...parts import Body
from .base import ClosedForm, angle_between

if TYPE_CHECKING:
    from ....typing import Array
    from ..base import Loop

ONE = (1.0, 0.0)


class Link(NamedTuple):
    """A joint of a planar chain: `offset` leads to it from the joint before, seen from there.

    `sign` is that of a revolute axis along n, `direction` that of a prismatic axis (else None).
    """

    body: Body
    offset: tuple[float, float]
    sign: float
    direction: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two chains of a planar loop, from the common ancestor to the closing point.

    `basis` holds the plane's two directions and its normal, as rows, in the last body."""

    links: tuple[Link, ...]
    tip: tuple[float, float]
    basis: np.ndarray | None = None


class Path(NamedTuple):
    """Where x in const + Rot(sign x) vec (a circle) or const + x vec (a line) leads."""

    line: bool
    const: tuple[Any, ...]
    vec: tuple[Any, ...]
    sign: float


def add(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return a[0] + b[0], a[1] + b[1]


def sub(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return a[0] - b[0], a[1] - b[1]


def scale(k: float, a: tuple[float, float]) -> tuple[float, float]:
    return k * a[0], k * a[1]


def turn(r: tuple[float, float], a: Any) -> tuple[float, float]:
    """a turned by the rotation r = (cosine, sine)."""
    return r[0] * a[0] - r[1] * a[1], r[0] * a[1] + r[1] * a[0]


def turn_back(r: tuple[float, float], a: tuple[float, float]) -> tuple[float, float]:
    return r[0] * a[0] + r[1] * a[1], r[0] * a[1] - r[1] * a[0]


def dot(a: tuple[float, float], b: tuple[float, float] | None) -> float:
    return a[0] * b[0] + a[1] * b[1]


def cross2(a: tuple[float, float], b: tuple[float, float]) -> float:
    return a[0] * b[1] - a[1] * b[0]


def quarter(a: tuple[float, float]) -> tuple[float, float]:
    """a turned by a quarter."""
    return -a[1], a[0]


class Walk(NamedTuple):
    """A chain followed at some positions: its rotation, its end, and what each joint does there.

    `arms` holds for each link its pivot (revolute) or its direction (prismatic)."""

    rotation: tuple[Any, ...]
    end: tuple[Any, ...]
    arms: list[Any]


def walk(
    links: tuple[Link, ...],
    q: dict[int, Array],
    rotation: tuple[float, float] = ONE,
    start: tuple[float, float] = (0.0, 0.0),
) -> Walk:
    """Follow links from `start`; q holds positions by body index."""
    r, p, arms = rotation, start, []
    for link in links:
        p = add(p, turn(r, link.offset))
        x = q[link.body.index][0]
        if link.direction is not None:
            e = turn(r, link.direction)
            arms.append(e)
            p = add(p, scale(x, e))
        else:
            arms.append(p)
            c, s = cos_sin(x)
            r = turn(r, (c, link.sign * s))
    return Walk(r, p, arms)


def path_of(side: Side, i: int, q: dict[int, Array]) -> Path:
    """The closing point as a function of joint i of a side alone."""
    link = side.links[i]
    before = walk(side.links[:i], q)
    joint = add(before.end, turn(before.rotation, link.offset))
    after = walk(side.links[i + 1 :], q)
    beyond = turn(before.rotation, add(after.end, turn(after.rotation, side.tip)))
    if link.direction is not None:
        return Path(True, add(joint, beyond), turn(before.rotation, link.direction), 1.0)
    return Path(False, joint, beyond, link.sign)


def two_paths(
    side_P: Side, side_S: Side, a: Body, b: Body, q: Any
) -> tuple[Path, Path, tuple[float, float]]:
    """(A, B, t): paths of the unknown joints a and b, without constants, with A - B = t."""
    places = {link.body.index: (s, i) for s, side in enumerate((side_P, side_S))
              for i, link in enumerate(side.links)}  # fmt: skip
    (s_a, i_a), (s_b, i_b) = places[a.index], places[b.index]
    sides = (side_P, side_S)
    if s_a != s_b:
        A, B = path_of(sides[s_a], i_a, q), path_of(sides[s_b], i_b, q)
        return A, B, sub(B.const, A.const)
    side, other = sides[s_a], sides[1 - s_a]
    goal = walk(other.links, q)
    goal = add(goal.end, turn(goal.rotation, other.tip))
    link, before = side.links[i_a], walk(side.links[:i_a], q)
    joint = add(before.end, turn(before.rotation, link.offset))
    rest = Side(side.links[i_a + 1 :], side.tip)
    B = path_of(rest, i_b - i_a - 1, q)  # seen from joint a
    if link.direction is None:  # const_B + B = Rot(-a) (goal - joint)
        vec = turn_back(before.rotation, sub(goal, joint))
        return Path(False, (0.0, 0.0), vec, -link.sign), B, B.const
    vec, const = turn(before.rotation, B.vec), turn(before.rotation, B.const)
    A = Path(True, (0.0, 0.0), turn(before.rotation, link.direction), 1.0)
    return A, B._replace(vec=scale(-1.0, vec)), sub(goal, add(joint, const))


def angle_on(path: Path, value: tuple[float, float], centre: float) -> float:
    """The angle at which a circle reaches `value`, nearest to `centre`."""
    sine = path.sign * cross2(path.vec, value)
    return angle_between(dot(path.vec, value), sine, dot(path.vec, path.vec), centre)


@dataclass(frozen=True, eq=False)
class PlanarClosure(ClosedForm):
    """A planar loop solved for two joints, `outputs` = (a, b), a above b where on one side."""

    side_P: Side
    side_S: Side

    @abstractmethod
    def _meet(self, A: Path, B: Path, t):
        """(x_a, x_b) with A(x_a) - B(x_b) = t, on the branch."""

    def value(self, x: Array) -> Array:
        q = self._spread(self.inputs, x)
        A, B, t = two_paths(self.side_P, self.side_S, *self.outputs, q)
        return np.stack(self._meet(A, B, t))

    def jacobian(self, x: Array) -> Array:
        columns = self._columns(self._all(x))
        return self._jacobian(columns)

    def curvature(self, x: Array, d: Array) -> Array:
        q = self._all(x)
        columns = self._columns(q)
        rates = self._spread(self.inputs, d)
        rates |= self._spread(self.outputs, self._jacobian(columns) @ d)
        drift = sub(self._drift(self.side_P, q, rates), self._drift(self.side_S, q, rates))
        return np.stack(self._solve(columns, scale(-1.0, drift)))

    def _all(self, x) -> dict[Any, Any]:
        return self._spread(self.inputs, x) | self._spread(self.outputs, self.value(x))

    def _columns(self, q) -> dict[Any, Any]:
        """dD/dq of every joint, by body index."""
        columns = {}
        for side, sign in ((self.side_P, 1.0), (self.side_S, -1.0)):
            path = walk(side.links, q)
            tip = add(path.end, turn(path.rotation, side.tip))
            for link, arm in zip(side.links, path.arms, strict=True):
                if link.direction is not None:
                    columns[link.body.index] = scale(sign, arm)
                else:
                    columns[link.body.index] = scale(sign * link.sign, quarter(sub(tip, arm)))
        return columns

    @staticmethod
    def _drift(side: Side, q, rates):
        """The acceleration of the tip at zero joint accelerations."""
        r, w, out = ONE, 0.0, (0.0, 0.0)
        for link in side.links:
            x, rate = q[link.body.index][0], rates[link.body.index][0]
            out = sub(out, scale(w * w, turn(r, link.offset)))
            if link.direction is not None:
                e = turn(r, link.direction)
                out = add(out, sub(scale(2.0 * w * rate, quarter(e)), scale(w * w * x, e)))
            else:
                c, s = cos_sin(x)
                r = turn(r, (c, link.sign * s))
                w = w + link.sign * rate
        return sub(out, scale(w * w, turn(r, side.tip)))

    def _solve(self, columns, rhs):
        """(x_a, x_b) with c_a x_a + c_b x_b = rhs."""
        a, b = (columns[body.index] for body in self.outputs)
        inverse = 1.0 / cross2(a, b)
        return cross2(rhs, b) * inverse, cross2(a, rhs) * inverse

    def _jacobian(self, columns):
        solved = [self._solve(columns, scale(-1.0, columns[b.index])) for b in self.inputs]
        return np.stack([np.stack([s[i] for s in solved]) for i in (0, 1)])

    def conditioning(self, q: dict[int, Array]) -> float:
        """The sine of the angle at which the two unknown motions meet: 0 at a dead point."""
        a, b = (self._columns(q)[body.index] for body in self.outputs)
        return np.abs(cross2(a, b)) / (np.sqrt(dot(a, a) * dot(b, b)) + 1e-300)


def planar_sides(
    loop: Loop, reference: Any, pins: bool = True, tolerance: float = 1e-7
) -> tuple[Side, Side] | None:
    """(side_P, side_S) of a loop whose joints all move in parallel planes, or None.

    `pins`: only for a loop that holds a point of the plane and lets it turn."""
    normal = plane_normal(loop, reference, tolerance)
    if normal is None or (pins and loop.kind in ("prismatic", "fixed", "distance")):
        return None
    basis = np.stack([*perpendicular(normal), normal])  # rows: in the ancestor
    side_P = _side(loop.path_P, loop.frame_P, basis)
    held = loop._position @ (side_P.basis[:2] @ loop.frame_P.E.T).T
    if pins and np.linalg.matrix_rank(held, tol=tolerance) < 2:
        return None  # the point is held in one direction of the plane alone
    return side_P, _side(loop.path_S, loop.frame_S, basis)


def _side(path, frame, B: np.ndarray) -> Side:
    links = []
    for body in path:
        X, motion = body.joint.placement, body.joint.motion
        offset, B = B @ X.r, B @ X.E.T  # the same plane in the joint's frame
        axis = B @ motion.axis
        moves = isinstance(motion, Prismatic)
        direction = (float(axis[0]), float(axis[1])) if moves else None
        sign = 1.0 if moves else float(np.sign(axis[2]))
        links.append(Link(body, (float(offset[0]), float(offset[1])), sign, direction))
    tip = B @ frame.r
    return Side(tuple(links), (float(tip[0]), float(tip[1])), B)


def plane_normal(loop: Loop, reference: dict[Any, Any], tolerance: float = 1e-7) -> Array | None:
    """The normal of a planar loop in its common ancestor, or None."""
    turning, sliding = [], []
    for path, frame in ((loop.path_P, loop.frame_P), (loop.path_S, loop.frame_S)):
        E = np.eye(3)
        for body in path:
            motion = body.joint.motion
            if type(motion) is Prismatic:
                sliding.append((body.joint.placement.E @ E).T @ motion.axis)
            elif isinstance(motion, Revolute) and motion.kind in ("revolute", "continuous"):
                turning.append((body.joint.placement.E @ E).T @ motion.axis)
            else:
                return None
            E = body.joint.transform(reference[body.index]).E @ E
        if loop.kind in ("revolute", "cylindrical"):
            turning.append((frame.E @ E).T @ loop.axis)
        elif loop.kind == "prismatic":
            sliding.append((frame.E @ E).T @ loop.axis)
    if loop.kind in ("universal", "planar") or not turning:
        return None
    normal = turning[0]
    parallel = all(np.linalg.norm(np.cross(normal, axis)) < tolerance for axis in turning)
    across = all(abs(normal @ axis) < tolerance for axis in sliding)
    return normal if parallel and across else None
