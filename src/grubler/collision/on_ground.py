"""Candidate points of shapes on a plane or a height field, by closed forms.

    shape      candidates on a plane                                      more on a height field
    sphere     1   the lowest point
    capsule    2   the balls at its ends                                  1   at its middle
    box        8   its corners; or 4, those of its lowest face
    cylinder   4   the lowest point of each rim, and of the lower rim     8   of each rim four
                   the points 120° from it
    ellipsoid  1   the lowest point
    hull       n   its vertices

A is the shape, B the ground. Points of a body are always the same in the same order, but those of a
cylinder and an ellipsoid, which lie where the ground is nearest. Tops of a height field that poke
into a box's face between its corners are not seen.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..mechanism.geometry import HeightField
from .placed import FACE, TINY, Placed, Touch, first_largest, picked, side
from .surfaces import distance, touch

SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))  # of the corners of a box
THIRD = np.array([-0.5, np.sqrt(0.75)])  # cosine and sine of 120°


def ball_on_ground(a: Placed, b: Placed) -> list[Touch]:
    return [touch(b, a.p, a.shape.radius)]


def capsule_on_ground(a: Placed, b: Placed) -> list[Touch]:
    half = a.shape.length / 2 * a.axis
    points = [a.p - half, a.p + half]
    if isinstance(b.shape, HeightField):
        points.append(a.p)
    return [touch(b, point, a.shape.radius) for point in points]


def box_on_ground(a: Placed, b: Placed) -> list[Touch]:
    return [touch(b, corner) for corner in corners(a)]


def face_on_ground(a: Placed, b: Placed) -> list[Touch]:
    """The corners of the face that is turned most to the ground: the lowest corner is one."""
    _, n = distance(b, a.p)
    edges = [a.R[:, k] * (a.shape.size[k] / 2) for k in range(3)]
    turned = [a.R[:, k] @ n for k in range(3)]
    chosen = first_largest([np.abs(x) for x in turned])
    centre = a.p - picked(chosen, [side(x) * e for x, e in zip(turned, edges)])
    e, f = (picked(chosen, edges[s:] + edges[:s]) for s in (1, 2))
    return [touch(b, centre + s * e + r * f) for s, r in FACE]


def corners(box: Placed) -> list[Any]:
    """The eight corners of a box in the world, the last axis the quickest."""
    edges = [box.R[:, k] * (box.shape.size[k] / 2) for k in range(3)]
    return [box.p + s[0] * edges[0] + s[1] * edges[1] + s[2] * edges[2] for s in SIGNS]


def hull_on_ground(a: Placed, b: Placed) -> list[Touch]:
    return [touch(b, a.p + a.R @ vertex) for vertex in a.shape.vertices]


def ellipsoid_on_ground(a: Placed, b: Placed) -> list[Touch]:
    """The point whose tangent plane is parallel to the ground: -D² n / |D n| in its own axes, D its
    radii."""
    _, n = distance(b, a.p)
    scaled = (a.R.T @ n) * a.shape.radii
    reach = np.sqrt(scaled @ scaled)
    return [touch(b, a.p - a.R @ (scaled * a.shape.radii / reach))]


def cylinder_on_ground(a: Placed, b: Placed) -> list[Touch]:
    """Rim points; where the axis is along the normal all points of a rim are equally low, and
    those at the shape's first axis are taken."""
    r, half = a.shape.radius, a.shape.length / 2 * a.axis
    if isinstance(b.shape, HeightField):
        directions = [a.R[:, 0], a.R[:, 1], -a.R[:, 0], -a.R[:, 1]]
        return [touch(b, end + r * u) for end in (a.p - half, a.p + half) for u in directions]
    _, n = distance(b, a.p)
    along = a.axis @ n
    down = along * a.axis - n  # across the axis
    square = down @ down
    tilted = square > TINY * TINY
    u = np.where(tilted, down / np.sqrt(np.where(tilted, square, 1.0)), a.R[:, 0])
    w = np.stack(
        [
            a.axis[1] * u[2] - a.axis[2] * u[1],
            a.axis[2] * u[0] - a.axis[0] * u[2],
            a.axis[0] * u[1] - a.axis[1] * u[0],
        ]
    )
    lower = a.p - np.where(along < 0.0, -1.0, 1.0) * half
    side, back = THIRD[1] * r * w, THIRD[0] * r * u
    points = [a.p - half + r * u, a.p + half + r * u, lower + back + side, lower + back - side]
    return [touch(b, point) for point in points]
