"""Shapes in the coordinates of a body: what bodies look like, and where they may touch.

No algorithm of the dynamics reads them; a plan of contacts does (`grubler.collision`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..algebra.spatial import Transform


@dataclass(frozen=True, eq=False)
class Shape:
    """Something at `position`, turned by the matrix `rotation`."""

    position: np.ndarray = field(default_factory=lambda: np.zeros(3), kw_only=True)
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3), kw_only=True)

    def carried(self, placement: Transform) -> Shape:
        """The same shape in the coordinates of a body on which its frame has a placement."""
        R = placement.E.T
        return replace(
            self, position=placement.r + R @ self.position, rotation=R @ self.rotation
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Box(Shape):
    """Edges `size` along the columns of `rotation`."""

    size: np.ndarray


@dataclass(frozen=True, eq=False)
class Cylinder(Shape):
    """About the third column of `rotation`."""

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class Capsule(Shape):
    """A cylinder of that length with half a ball on each end."""

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class Ball(Shape):
    radius: float


@dataclass(frozen=True, eq=False)
class Ellipsoid(Shape):
    """Half axes `radii` along the columns of `rotation`."""

    radii: np.ndarray


@dataclass(frozen=True, eq=False)
class Mesh(Shape):
    """Triangles: in a file, which need not exist (`path` None where it was not found), or given."""

    name: str
    path: Path | None = None
    scale: np.ndarray = field(default_factory=lambda: np.ones(3))
    vertices: np.ndarray | None = None
    faces: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Hull(Shape):
    """The convex hull of `vertices` (n, 3)."""

    vertices: np.ndarray


@dataclass(frozen=True, eq=False)
class Plane(Shape):
    """The half space below a plane: through `position`, its normal the third column of
    `rotation`."""


@dataclass(frozen=True, eq=False)
class HeightField(Shape):
    """Ground of varying height along the third column of `rotation`: an array or a function.

    `heights` (nx, ny) in m stand on a grid of edges `size` (2,) in m, centred at `position`; in
    between the height is bilinear, and beyond the edges that of the nearest edge. `function` gives
    the height at (x, y) instead. It is written in NumPy as an algorithm is (np.where, no `if` on a
    value) and is differentiated exactly.
    """

    heights: np.ndarray | None = None
    size: np.ndarray | None = None
    function: Callable[..., Any] | None = None


Sphere = Ball  # the name in the public interface
