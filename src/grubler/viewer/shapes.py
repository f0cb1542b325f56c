"""Shapes a body is drawn with, in its own coordinates, and how they follow from its inertia."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..joints import perpendicular, unit
from ..parts import Body


@dataclass(frozen=True, eq=False)
class Box:
    """Edges `size` along the columns of `rotation`, centred at `position`."""

    size: np.ndarray
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))


@dataclass(frozen=True, eq=False)
class Cylinder:
    """About the third column of `rotation`, centred at `position`."""

    radius: float
    length: float
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))


@dataclass(frozen=True, eq=False)
class Ball:
    radius: float
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))


Shape = Box | Cylinder | Ball


def along(axis) -> np.ndarray:
    """A rotation whose third column points along an axis."""
    axis = unit(axis)
    return np.concatenate([perpendicular(axis), axis[None, :]]).T


def rod(start, end, radius: float) -> Cylinder:
    """A round bar between two points that do not coincide."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    span = end - start
    return Cylinder(radius, float(np.linalg.norm(span)), (start + end) / 2, along(span))


def pin(axis, radius: float, length: float, position=(0.0, 0.0, 0.0)) -> Cylinder:
    return Cylinder(radius, length, np.asarray(position, dtype=float), along(axis))


def inertia_box(body: Body, thinnest: float) -> Box | None:
    """The solid box of the body's mass and inertia, or None for a body without mass.

    A box with edges a, b, c has moments m (b² + c²) / 12, so a² = 6 (I_b + I_c - I_a) / m. Edges
    below `thinnest`, and those that no real body has, are drawn that thin.
    """
    if body.mass <= 0:
        return None
    moments, axes = np.linalg.eigh(body.inertia)
    squares = 6.0 / body.mass * (moments.sum() - 2.0 * moments)
    edges = np.sqrt(np.maximum(squares, 0.0))
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return Box(np.maximum(edges, thinnest), body.com, axes)


def rotor_cylinder(body: Body, thinnest: float) -> Cylinder:
    """The solid cylinder about the joint axis of a rotor's mass and inertia.

    J = m r² / 2 about the axis and m (3 r² + h²) / 12 across it. A rotor that is given by its spin
    alone, without mass, has no size of its own: a small disc stands for it.
    """
    axis = body.joint.motion.axis
    if body.mass <= 0:
        return Cylinder(3 * thinnest, thinnest, body.com, along(axis))
    J = float(axis @ body.inertia @ axis)
    across = (float(np.trace(body.inertia)) - J) / 2
    square = 2.0 * J / body.mass
    radius = max(float(np.sqrt(max(square, 0.0))), thinnest)
    height2 = 12.0 * across / body.mass - 3.0 * square
    height = max(float(np.sqrt(max(height2, 0.0))), 0.25 * radius)
    return Cylinder(radius, height, body.com, along(axis))
