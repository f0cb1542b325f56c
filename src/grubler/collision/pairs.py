"""Candidate points of two shapes, by closed forms without a branch on values.

| pair              | points | which                                                             |
|-------------------|--------|-------------------------------------------------------------------|
| sphere, sphere    | 1      |                                                                   |
| sphere, capsule   | 1      | nearest point of the axis                                         |
| sphere, box       | 1      | nearest point of the box; of a centre inside, its nearest face    |
| sphere, cylinder  | 1      | nearest point of side, rim or end; of a centre inside, the nearer |
| capsule, capsule  | 1      | nearest points of the axes                                        |
| capsule, box      | 3      | nearest point of the axis, and the balls at its ends              |

A is the first shape. Degenerate cases, all finite: of coincident centres, and of axes that cross,
the normal is the third axis of B, or any across it; of parallel capsules the point is half way
along their common part; where the axis of a capsule runs through a box the point is half way
through, and its gap that to the face nearest there, which is no less than the depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import cross
from ..typing import Array
from .placed import TINY, Placed, Touch, between_balls, clamped

if TYPE_CHECKING:
    from ..typing import Array

SLIGHTLY = 1.0 - 1e-12  # an end is taken for nearest only if it is nearer than the middle by this
PARALLEL = 1e-16  # sin² of the angle between axes below which they count as parallel


def ball_ball(a: Placed, b: Placed) -> list[Touch]:
    return [between_balls(a.p, a.shape.radius, b.p, b.shape.radius, b.axis)]


def ball_capsule(a: Placed, b: Placed) -> list[Touch]:
    half = b.shape.length / 2
    t = clamped(b.axis @ (a.p - b.p), -half, half)
    return [
        between_balls(a.p, a.shape.radius, b.p + t * b.axis, b.shape.radius, b.R[:, 0])
    ]  # fmt: skip


def ball_box(a: Placed, b: Placed) -> list[Touch]:
    return [_ball_box(a.p, a.shape.radius, b)]


def _ball_box(centre, radius: float, box: Placed) -> Touch:
    p, h = box.inside(centre), box.shape.size / 2
    delta = p - clamped(p, -h, h)
    square = delta @ delta
    outside = square > TINY * TINY
    size = np.sqrt(np.where(outside, square, 1.0))
    depth = np.abs(p) - h
    deepest = np.maximum(np.maximum(depth[0], depth[1]), depth[2])
    first = depth[0] >= deepest
    second = np.logical_and(depth[1] >= deepest, np.logical_not(first))
    third = np.logical_not(np.logical_or(first, second))
    sign = np.where(p < 0.0, -1.0, 1.0)
    face = np.stack([np.where(x, s, 0.0) for x, s in zip((first, second, third), sign)])
    n = box.R @ np.where(outside, delta / size, face)
    gap = np.where(outside, size, deepest) - radius
    return Touch(gap, centre - (radius + gap / 2) * n, n)


def ball_cylinder(a: Placed, b: Placed) -> list[Touch]:
    p, r, half = b.inside(a.p), b.shape.radius, b.shape.length / 2
    square = p[0] * p[0] + p[1] * p[1]
    off = square > TINY * TINY
    rho = np.sqrt(np.where(off, square, 1.0))
    out = np.stack([np.where(off, p[0] / rho, 1.0), np.where(off, p[1] / rho, 0.0)])
    rho, up = np.where(off, rho, 0.0), np.where(p[2] < 0.0, -1.0, 1.0)
    side, end = rho - r, np.abs(p[2]) - half
    beyond_side, beyond_end = np.maximum(side, 0.0), np.maximum(end, 0.0)
    square = beyond_side * beyond_side + beyond_end * beyond_end
    outside = square > TINY * TINY
    size = np.sqrt(np.where(outside, square, 1.0))
    sideways = np.where(outside, beyond_side / size, np.where(side >= end, 1.0, 0.0))
    upward = np.where(outside, beyond_end / size, np.where(side >= end, 0.0, 1.0))
    n = b.R @ np.stack([sideways * out[0], sideways * out[1], upward * up])
    gap = np.where(outside, size, np.maximum(side, end)) - a.shape.radius
    return [Touch(gap, a.p - (a.shape.radius + gap / 2) * n, n)]


def capsule_capsule(a: Placed, b: Placed) -> list[Touch]:
    """The nearest points of two segments: inside both, else of four ends against the other one."""
    ha, hb = a.shape.length / 2, b.shape.length / 2
    r, u, w = a.p - b.p, a.axis, b.axis
    along = u @ w
    across = u - along * w
    sine2 = across @ across
    parallel = sine2 < PARALLEL
    # of parallel axes the middle of the common part, by the ends of B seen from A
    low, high = _ordered(-(u @ r) - along * hb, -(u @ r) + along * hb)
    middle = (np.maximum(low, -ha) + np.minimum(high, ha)) / 2
    s = np.where(parallel, middle, -(across @ r) / np.where(parallel, 1.0, sine2))
    s = clamped(s, -ha, ha)
    t = clamped(along * s + w @ r, -hb, hb)
    s = clamped(along * t - u @ r, -ha, ha)
    best = _square(r + s * u - t * w)
    ends = [(end, clamped(along * end + w @ r, -hb, hb)) for end in (-ha, ha)]
    ends += [(clamped(along * end - u @ r, -ha, ha), end) for end in (-hb, hb)]
    for s_end, t_end in ends:
        found = _square(r + s_end * u - t_end * w)
        nearer = found < SLIGHTLY * best
        best = np.where(nearer, found, best)
        s, t = np.where(nearer, s_end, s), np.where(nearer, t_end, t)
    normal = _across(u, w, b.R[:, 0])
    return [
        between_balls(a.p + s * u, a.shape.radius, b.p + t * w, b.shape.radius, normal)
    ]  # fmt: skip


def _across(u, w, fallback):
    """A unit vector across both, or `fallback` where they are parallel."""
    n = cross(u, w)
    square = n @ n
    crossing = square >= PARALLEL
    return np.where(crossing, n / np.sqrt(np.where(crossing, square, 1.0)), fallback)


def _ordered(x, y):
    return np.minimum(x, y), np.maximum(x, y)


def _square(x):
    return x @ x


def capsule_box(a: Placed, b: Placed) -> list[Touch]:
    half, r = a.shape.length / 2, a.shape.radius
    middle = nearest_on_segment(b.inside(a.p), b.R.T @ a.axis, half, b.shape.size / 2)
    return [_ball_box(a.p + t * a.axis, r, b) for t in (middle, -half, half)]


def nearest_on_segment(c: Array, u: Array, half: float, h: Array) -> Array:
    """t of the point c + t u, |t| <= half, that is nearest to a box of half edges h at the origin.

    Half the derivative of the squared distance, Σ u_k (p_k - clamp(p_k)), never falls, and is
    linear between the t at which the segment passes a face: two of these embrace its zero.
    """

    def rate(t):
        p = c + t * u
        return u @ (p - clamped(p, -h, h))

    low, rate_low, high, rate_high = -half, 0.0, half, 0.0
    first, last = half, -half  # of the t where the rate is zero
    for t in [-half, half, *_passages(c, u, half, h)]:
        g = rate(t)
        raised = np.logical_and(g < 0.0, t >= low)
        low, rate_low = np.where(raised, t, low), np.where(raised, g, rate_low)
        lowered = np.logical_and(g > 0.0, t <= high)
        high, rate_high = np.where(lowered, t, high), np.where(lowered, g, rate_high)
        zero = np.logical_and(g <= 0.0, g >= 0.0)
        first = np.where(zero, np.minimum(first, t), first)
        last = np.where(zero, np.maximum(last, t), last)
    rise = rate_high - rate_low
    t = low - (high - low) * rate_low / np.where(rise > 0.0, rise, 1.0)
    return np.where(first <= last, (first + last) / 2, clamped(t, -half, half))


def _passages(c, u, half: float, h) -> list[Any]:
    """The t at which a segment passes the planes of a box's faces, kept within its ends."""
    found = []
    for k in range(3):
        passing = u[k] * u[k] > TINY * TINY
        inverse = 1.0 / np.where(passing, u[k], 1.0)
        for face in (-h[k], h[k]):
            t = clamped((face - c[k]) * inverse, -half, half)
            found.append(np.where(passing, t, 0.0))
    return found
