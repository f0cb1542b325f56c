"""Shapes a body is drawn with, in its own coordinates, and how they follow from its inertia."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..mechanism.geometry import Ball, Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape
from ..mechanism.joints import perpendicular, unit
from ..mechanism.parts import Body

if TYPE_CHECKING:
    from ..typing import Array

__all__ = [
    "Ball", "Box", "Capsule", "Cylinder", "Ellipsoid", "Mesh", "Shape", "along",
    "inertia_ellipsoid", "pin", "rod", "rotor_cylinder",
]  # fmt: skip


def along(axis: Array) -> np.ndarray:
    """A rotation whose third column points along an axis."""
    axis = unit(axis)
    return np.concatenate([perpendicular(axis), axis[None, :]]).T


def rod(start: Any, end: Any, radius: float) -> Cylinder:
    """A round bar between two points that do not coincide."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    span = end - start
    middle = (start + end) / 2
    return Cylinder(radius, float(np.linalg.norm(span)), position=middle, rotation=along(span))


def pin(axis: Array, radius: float, length: float, position: Array = (0.0, 0.0, 0.0)) -> Cylinder:
    place = np.asarray(position, dtype=float)
    return Cylinder(radius, length, position=place, rotation=along(axis))


def inertia_ellipsoid(body: Body, thinnest: float) -> Ellipsoid | None:
    """The solid ellipsoid of the body's mass and inertia, or None for a body without mass.

    Half axes a, b, c have moments m (b² + c²) / 5, so a² = 5 (I_b + I_c - I_a) / (2 m). Those below
    `thinnest`, and those that no real body has, are drawn that thin.
    """
    if body.mass <= 0:
        return None
    moments, axes = np.linalg.eigh(body.inertia)
    squares = 2.5 / body.mass * (moments.sum() - 2.0 * moments)
    radii = np.sqrt(np.maximum(squares, 0.0))
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return Ellipsoid(np.maximum(radii, thinnest), position=body.com, rotation=axes)


def rotor_cylinder(body: Body, thinnest: float) -> Cylinder:
    """The solid cylinder about the joint axis of a rotor's mass and inertia.

    J = m r² / 2 about the axis and m (3 r² + h²) / 12 across it. A rotor that is given by its spin
    alone, without mass, has no size of its own: a small disc stands for it.
    """
    axis = body.joint.motion.axis
    if body.mass <= 0:
        return Cylinder(3 * thinnest, thinnest, position=body.com, rotation=along(axis))
    J = float(axis @ body.inertia @ axis)
    across = (float(np.trace(body.inertia)) - J) / 2
    square = 2.0 * J / body.mass
    radius = max(float(np.sqrt(max(square, 0.0))), thinnest)
    height2 = 12.0 * across / body.mass - 3.0 * square
    height = max(float(np.sqrt(max(height2, 0.0))), 0.25 * radius)
    return Cylinder(radius, height, position=body.com, rotation=along(axis))
