"""Random shapes in random places, and coal's distance of them."""

from __future__ import annotations

import numpy as np
import pytest

from grubler.algebra.spatial import quaternion_matrix
from grubler.collision.placed import Placed
from grubler.mechanism.geometry import Ball, Box, Capsule, Cylinder, Ellipsoid, Plane


def rotation(rng) -> np.ndarray:
    q = rng.normal(size=4)
    return quaternion_matrix(q / np.linalg.norm(q))


def drawn(kind, rng):
    """A shape of lengths from 0.1 to 0.6 m."""
    r = rng.uniform(0.05, 0.3, 3)
    return {
        Ball: lambda: Ball(r[0]),
        Capsule: lambda: Capsule(r[0], 2 * r[1]),
        Cylinder: lambda: Cylinder(r[0], 2 * r[1]),
        Box: lambda: Box(2 * r),
        Ellipsoid: lambda: Ellipsoid(r),
        Plane: Plane,
    }[kind]()


def placed(kind, rng) -> Placed:
    return Placed(drawn(kind, rng), rotation(rng), rng.uniform(-0.4, 0.4, 3))


def coal_shape(shape):
    coal = pytest.importorskip("coal")
    return {
        Ball: lambda: coal.Sphere(shape.radius),
        Capsule: lambda: coal.Capsule(shape.radius, shape.length),
        Cylinder: lambda: coal.Cylinder(shape.radius, shape.length),
        Box: lambda: coal.Box(*shape.size),
        Ellipsoid: lambda: coal.Ellipsoid(*shape.radii),
        Plane: lambda: coal.Halfspace(0.0, 0.0, 1.0, 0.0),
    }[type(shape)]()


def distance(a: Placed, b: Placed):
    """coal's signed distance and its normal from A to B."""
    coal = pytest.importorskip("coal")
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-12
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    sides = [x for s in (a, b) for x in (coal_shape(s.shape), coal.Transform3s(s.R, s.p))]
    return coal.distance(*sides, request, result), np.array(result.normal)


def off_surface(point: np.ndarray, outward: np.ndarray, shape: Placed) -> float:
    """How far a point is from the surface of a shape, by coal: a millimetre further out, the
    distance is a millimetre."""
    ball = Placed(Ball(1e-4), np.eye(3), point + 1e-3 * outward)
    return abs(distance(ball, shape)[0] - 9e-4)
