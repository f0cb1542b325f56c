"""A shape where it is now, and a point where two shapes touch first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..mechanism.geometry import Shape
from ..typing import Array

if TYPE_CHECKING:
    from ..typing import Array

FACE = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))  # signs of the corners of a face
TINY = 1e-12  # m: points nearer than this have no direction between them


class Placed(NamedTuple):
    """A shape, the rotation of its axes (3, 3) and its position (3,) in the world."""

    shape: Any
    R: Array
    p: Array

    @staticmethod
    def on(shape: Shape, R: Array, p: Array) -> Placed:
        """The shape on a body that is turned by R and has its origin at p."""
        return Placed(shape, R @ shape.rotation, p + R @ shape.position)

    @property
    def axis(self) -> Array:
        """The third axis: that of a cylinder or capsule, the normal of a plane."""
        return self.R[:, 2]

    def inside(self, point: Array) -> Array:
        """A point of the world in the axes of the shape, from its position."""
        return self.R.T @ (point - self.p)


class Touch(NamedTuple):
    """Where A and B touch first: the gap in m (negative in each other), the point half way between
    the surfaces and the unit normal from B to A, in the world."""

    gap: Array
    point: Array
    normal: Array


def flipped(touches: list[Touch]) -> list[Touch]:
    """The same with A and B exchanged."""
    return [Touch(t.gap, t.point, -t.normal) for t in touches]


def between_balls(a: Array, radius_a: float, b: Array, radius_b: float, fallback: Array) -> Touch:
    """Two balls; of coincident centres the normal is `fallback`, and all numbers stay finite."""
    delta = a - b
    square = delta @ delta
    apart = square > TINY * TINY
    size = np.sqrt(np.where(apart, square, 1.0))
    n = np.where(apart, delta / size, fallback)
    gap = np.where(apart, size, 0.0) - (radius_a + radius_b)
    return Touch(gap, b + (radius_b + gap / 2) * n, n)


def clamped(x: Array, low: Array | float, high: Array | float) -> Array:
    """x within bounds."""
    return np.minimum(np.maximum(x, low), high)


def side(x: Array) -> Array:
    """-1 below zero, else 1."""
    return np.where(x < 0.0, -1.0, 1.0)


def first_largest(values: list[Any]) -> list[Any]:
    """1 at the largest of three numbers, the first of equal ones, 0 at the others."""
    x, y, z = values
    first = np.where(np.logical_and(x >= y, x >= z), 1.0, 0.0)
    second = np.where(y >= z, 1.0 - first, 0.0)
    return [first, second, 1.0 - first - second]


def picked(chosen: list[Any], values: list[Any]) -> Array:
    """The value at the 1 of `first_largest`."""
    return sum(c * x for c, x in zip(chosen, values))
