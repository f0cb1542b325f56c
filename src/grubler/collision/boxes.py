"""Candidate points of two boxes: a face against a face, or an edge against an edge.

The axis along which two boxes are furthest apart, or least in each other, is the normal of one of
six faces or a common normal of two edges (the separating axes). Of two faces the points are the
corners of the polygon that they share, of two edges it is one.

| code    | meaning                                                                    | shape  |
|---------|----------------------------------------------------------------------------|--------|
| R       | axes of A, in the axes of B                                                | (3, 3) |
| t       | centre of A, from that of B, in the axes of B                              | (3,)   |
| ha, hb  | half edges                                                                 | (3,)   |
| apart   | separation along an axis: negative where the boxes overlap in it           |        |
| near    | the reference face: that of the best normal, of B where both are as good   |        |
| c, e, f | centre and half edges of the other box's face that is turned to it, in the | 3 each |
|         | axes (u, v, n) of the reference face, from its centre                      |        |

The polygon has up to eight corners: where the edges of the far face enter and leave the reference
face, and corners of that. Five are taken: those furthest out towards the four corners of the
reference face, each once, and the one of least gap where it is none of these, or the edges' point.
A point that does not exist at the present poses has the gap FAR.

Where boxes overlap the least gap is minus the depth; where they are apart it is positive and at
most the distance, to which it is equal where a face or an edge is nearest. Of axes that are as good
within SLACK of the smallest half edge B's face goes first, and faces before edges: boxes that rest
on each other keep their points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.spatial import cross
from .placed import FACE, Placed, Touch, clamped, first_largest, picked, side

FAR = 1e3  # m, the gap of a point that is no corner now
SLACK = 1e-5  # of a half edge: a corner this far beside a face counts as on it, and axes whose
# separations differ by less as equally good (equal boxes on a stack)
SINE2 = 1e-12  # sin² between edges, below which they are parallel and have no normal of their own


class Axis(NamedTuple):
    """The best axis of several: separation, unit normal from B to A, and of three faces 1 for the
    one that has it."""

    apart: np.ndarray
    normal: np.ndarray
    chosen: list[Any]


def box_box(a: Placed, b: Placed) -> list[Touch]:
    """Points in the axes of B, from its centre, then in the world."""
    R, t = b.R.T @ a.R, b.R.T @ (a.p - b.p)
    ha, hb = a.shape.size / 2, b.shape.size / 2
    small = float(min(ha.min(), hb.min()))
    faces_b, faces_a = _faces(np.eye(3), t, hb, R, ha), _faces(R, t, ha, np.eye(3), hb)
    on_b = faces_b.apart >= faces_a.apart - SLACK * small
    apart = np.where(on_b, faces_b.apart, faces_a.apart)
    edge, at = _edges(R, t, ha, hb)
    by_edge = edge.apart > apart + SLACK * small
    face_b = _Face.of(np.eye(3), np.zeros(3), hb, faces_b.chosen, faces_b.normal)
    face_a = _Face.of(R, t, ha, faces_a.chosen, -faces_a.normal)
    near = _Face(*(np.where(on_b, x, y) for x, y in zip(face_b, face_a)))
    far = (np.where(on_b, x, y) for x, y in ((t, np.zeros(3)), (R, np.eye(3)), (ha, hb)))
    normal = np.where(on_b, 1.0, -1.0) * near.n
    margin = np.maximum(apart, 0.0)
    *outer, lowest = _chosen(_polygon(near, margin, *_facing(near, *far)), near)
    face = np.logical_not(by_edge)
    found = [Touch(_gap(x, face), near.place(x), normal) for x in outer]
    found.append(
        Touch(
            np.where(by_edge, edge.apart, _gap(lowest, face)),
            np.where(by_edge, at, near.place(lowest)),
            np.where(by_edge, edge.normal, normal),
        )
    )
    return [Touch(f.gap, b.p + b.R @ f.point, b.R @ f.normal) for f in found]


def _gap(corner: _Corner, face):
    return np.where(np.logical_and(corner.valid, face), corner.w, FAR)


def _faces(axes, t, h, others, h_other) -> Axis:
    """Of the face normals of one box the one along which the other is furthest."""
    apart, normals = [], []
    for k in range(3):
        along = axes[:, k] @ t
        reach = sum(np.abs(axes[:, k] @ others[:, j]) * h_other[j] for j in range(3))
        apart.append(np.abs(along) - (h[k] + reach))
        normals.append(np.where(along < 0.0, -1.0, 1.0) * axes[:, k])
    chosen = first_largest(apart)
    return Axis(picked(chosen, apart), picked(chosen, normals), chosen)


def _edges(R, t, ha, hb):
    """Of the common normals of two edges the best, and the point half way between these edges."""
    best, at, unit = -FAR, np.zeros(3), np.eye(3)
    normal = np.zeros(3)
    for k in range(3):
        for j in range(3):
            n = cross(unit[k], R[:, j])
            square = n @ n
            crossing = square > SINE2
            n = n / np.sqrt(np.where(crossing, square, 1.0))
            n = np.where(n @ t < 0.0, -1.0, 1.0) * n
            corner_a = t - sum(side(n @ R[:, i]) * ha[i] * R[:, i] for i in range(3) if i != j)
            corner_b = np.stack([0.0 * n[i] if i == k else side(n[i]) * hb[i] for i in range(3)])
            apart = n @ (corner_a - corner_b)
            better = np.logical_and(crossing, apart > best)
            best, normal = np.where(better, apart, best), np.where(better, n, normal)
            point = _between_lines(corner_a, R[:, j], corner_b, k, np.where(crossing, square, 1.0))
            at = np.where(better, point, at)
    return Axis(best, normal, []), at


def _between_lines(p, u, q, k: int, sine2):
    """Half way between the line through p along u and the one through q along axis k."""
    r, along = p - q, u[k]
    s = (along * r[k] - u @ r) / sine2
    on_a = p + s * u
    on_b = np.stack([on_a[i] if i == k else q[i] for i in range(3)])
    return (on_a + on_b) / 2


class _Face(NamedTuple):
    """A reference face: its outward normal, the axes in it, half edges along these, and its
    centre."""

    n: np.ndarray
    u: np.ndarray
    v: np.ndarray
    hu: np.ndarray
    hv: np.ndarray
    p: np.ndarray

    @staticmethod
    def of(axes, p, h, chosen: list[Any], outward) -> _Face:
        columns, sizes = [axes[:, k] for k in range(3)], list(h)
        turned = [(x[1:] + x[:1], x[2:] + x[:2]) for x in (columns, sizes)]
        (us, vs), (hus, hvs) = turned
        return _Face(
            outward, picked(chosen, us), picked(chosen, vs), picked(chosen, hus),
            picked(chosen, hvs), p + picked(chosen, sizes) * outward,
        )  # fmt: skip

    def see(self, x):
        """Components of a direction: along u, v and n."""
        return self.u @ x, self.v @ x, self.n @ x

    def place(self, corner: _Corner):
        """The point half way between a corner and this face."""
        return self.p + corner.u * self.u + corner.v * self.v + corner.w / 2 * self.n


class _Corner(NamedTuple):
    """A point on the reference face, its height above it, and whether it is a corner of the
    polygon."""

    u: np.ndarray
    v: np.ndarray
    w: np.ndarray
    valid: np.ndarray


def _facing(near: _Face, p, axes, h):
    """Centre and half edges of the other box's face that is turned to the reference, each as seen
    from there."""
    columns = [axes[:, k] for k in range(3)]
    turned = [x @ near.n for x in columns]
    chosen = first_largest([np.abs(x) for x in turned])
    inward = picked(chosen, [side(x) * s * c for x, s, c in zip(turned, h, columns)])
    e = [
        near.see(picked(chosen, [h[(i + s) % 3] * columns[(i + s) % 3] for i in range(3)]))
        for s in (1, 2)
    ]
    return near.see(p - inward - near.p), *e


def _polygon(near: _Face, margin, c, e, f) -> list[_Corner]:
    """The corners of the polygon that two faces share; c, e, f: centre, half edges of the far one.

    The reference face counts as wider by `margin`: as far as boxes are apart along its normal they
    may be apart beside it, too, and one of them is then on its way to an edge.
    """
    corners = [tuple(c[i] + s * e[i] + r * f[i] for i in range(3)) for s, r in FACE]
    found = []
    for x, y in zip(corners, corners[1:] + corners[:1]):
        found += _clipped(near, margin, x, y)
    return found + [_covered(near, s * near.hu, r * near.hv, c, e, f) for s, r in FACE]


def _chosen(corners: list[_Corner], near: _Face) -> list[_Corner]:
    """The outermost corners towards the reference face's corners, and the lowest one, each once."""
    found: list[_Corner] = []
    taken: list[Any] = []
    for s, r in (*FACE, (None, None)):
        best, score, which = corners[0], -FAR, -1.0
        for k, corner in enumerate(corners):
            reach = -corner.w if s is None else s * corner.u / near.hu + r * corner.v / near.hv
            better = np.logical_and(corner.valid, reach > score)
            score, which = np.where(better, reach, score), np.where(better, float(k), which)
            best = _Corner(*(np.where(better, x, y) for x, y in zip(corner, best)))
        valid = which >= 0.0
        for other in taken:
            valid = np.logical_and(valid, which != other)
        found.append(best._replace(valid=valid))
        taken.append(which)
    return found


def _clipped(near: _Face, margin, x, y) -> list[_Corner]:
    """Where the edge from x to y enters the reference face, and where it leaves it before y."""
    enter, leave, valid = 0.0, 1.0, True
    for i, h in ((0, near.hu), (1, near.hv)):
        wide = h * (1.0 + SLACK) + margin
        d = y[i] - x[i]
        crossing = d * d > SINE2 * h * h
        inverse = 1.0 / np.where(crossing, d, 1.0)
        t1, t2 = (-wide - x[i]) * inverse, (wide - x[i]) * inverse
        enter = np.maximum(enter, np.where(crossing, np.minimum(t1, t2), 0.0))
        leave = np.minimum(leave, np.where(crossing, np.maximum(t1, t2), 1.0))
        valid = np.logical_and(valid, np.logical_or(crossing, np.abs(x[i]) <= wide))
    valid = np.logical_and(valid, enter <= leave)
    found = []
    for t, at in ((enter, valid), (leave, np.logical_and(valid, leave < 1.0))):
        u, v, w = (x[i] + t * (y[i] - x[i]) for i in range(3))
        found.append(_Corner(clamped(u, -near.hu, near.hu), clamped(v, -near.hv, near.hv), w, at))
    return found


def _covered(near: _Face, u, v, c, e, f) -> _Corner:
    """A corner of the reference face, where the far face covers it: strictly, since what is on an
    edge of the far face is found there."""
    det = e[0] * f[1] - e[1] * f[0]
    size = e[0] * e[0] + e[1] * e[1] + f[0] * f[0] + f[1] * f[1]
    wide = det * det > SINE2 * size * size  # else the far face stands on its edge
    inverse = 1.0 / np.where(wide, det, 1.0)
    du, dv = u - c[0], v - c[1]
    s, t = (du * f[1] - dv * f[0]) * inverse, (dv * e[0] - du * e[1]) * inverse
    most = 1.0 - SLACK
    inside = np.logical_and(np.abs(s) < most, np.abs(t) < most)
    w = c[2] + s * e[2] + t * f[2]
    return _Corner(u, v, np.where(wide, w, 0.0), np.logical_and(wide, inside))
