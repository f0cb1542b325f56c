"""Candidate points: what may touch, chosen once; where, is a function of the poses.

A plan of contacts is any frozen, hashable object with

- `points`: a tuple of records with `body` and `other` (indices; `other` is `WORLD` for the ground),
  `friction`, `restitution` and `name`;
- `bodies`: the indices of all bodies whose poses it needs;
- `located(pose)`: a `Located` for each point, in order, where `pose(body)` is (R, p): the rotation
  from the body's axes to the world's, and the position of its origin.

`PointsOnPlane` is the simplest one: points or spheres on bodies above one plane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..mechanism.parts import WORLD
from ..model import Model


class Located(NamedTuple):
    """A candidate point at a posture: the signed distance `gap` in m, negative where the shapes
    overlap; `point` (3,) and the unit `normal` (3,) from `other` to `body`, in world axes."""

    gap: np.ndarray
    point: np.ndarray
    normal: np.ndarray


@dataclass(frozen=True)
class Candidate:
    """A point of a body that may touch another body, or the world."""

    body: int
    friction: float
    restitution: float = 0.0
    other: int = WORLD
    name: str = ""


@dataclass(frozen=True)
class PointsOnPlane:
    """Points, or spheres with a radius, on bodies above the plane normal·x = height.

    `centres` are the spheres' centres (or the points) in the axes of their bodies.
    """

    points: tuple[Candidate, ...]
    centres: tuple[tuple[float, float, float], ...]
    radii: tuple[float, ...]
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    height: float = 0.0

    @classmethod
    def of(
        cls, model: Model, spheres: Mapping[str, float] | Mapping, *, friction: float = 0.7,
        restitution: float = 0.0, normal=(0.0, 0.0, 1.0), height: float = 0.0,
    ) -> PointsOnPlane:  # fmt: skip
        """The plan of frames with spheres about their origins: `spheres` gives a radius, in m, by
        the name of a frame or body; radius 0 is a point."""
        if not spheres:
            raise InputError("no candidate points: name at least one frame with a radius")
        points, centres, radii = [], [], []
        for name, radius in spheres.items():
            frame = model.frame(name)
            if frame.body == WORLD:
                raise InputError(f"frame '{name}' is fixed to the world: it cannot meet the ground")
            if not radius >= 0.0:
                raise InputError(f"the radius of '{name}' is {radius}: give a number >= 0, in m")
            points.append(Candidate(frame.body, float(friction), float(restitution), WORLD, name))
            centres.append(tuple(float(x) for x in frame.placement.r))
            radii.append(float(radius))
        length = float(np.linalg.norm(normal))
        if not length > 0.0:
            raise InputError(f"normal is {normal}: give a direction")
        unit = tuple(float(x) / length for x in normal)
        return checked_plan(cls(tuple(points), tuple(centres), tuple(radii), unit, float(height)))

    @property
    def bodies(self) -> tuple[int, ...]:
        return tuple(point.body for point in self.points)

    def located(self, pose: Callable) -> list[Located]:
        normal, found = np.array(self.normal), []
        for point, centre, radius in zip(self.points, self.centres, self.radii, strict=True):
            R, p = pose(point.body)
            lowest = p + R @ np.array(centre) - radius * normal
            found.append(Located(normal @ lowest - self.height, lowest, normal))
        return found


def checked_plan(plan):
    """Refuse friction and restitution that no material has."""
    for point in plan.points:
        if not 0.0 <= point.friction < np.inf:
            raise InputError(
                f"the friction of '{point.name}' is {point.friction}: give a number >= 0"
            )
        if not 0.0 <= point.restitution <= 1.0:
            raise InputError(
                f"the restitution of '{point.name}' is {point.restitution}: give a number from 0, "
                "plastic, to 1, elastic"
            )
    return plan


def tangents(normal):
    """C (3, 3) with columns t1, t2, n: an orthonormal basis, without a branch on values.

    Duff et al., Building an orthonormal basis, revisited (2017)."""
    x, y, z = normal[0], normal[1], normal[2]
    sign = np.where(z >= 0.0, 1.0, -1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return np.stack([
        np.stack([1.0 + sign * x * x * a, b, x]),
        np.stack([sign * b, sign + y * y * a, y]),
        np.stack([-sign * x, -y, z]),
    ])  # fmt: skip


__all__ = ["Candidate", "Located", "PointsOnPlane", "checked_plan", "tangents"]
