"""Where a mechanism may touch: shapes with their friction, and which of them may meet.

Read from descriptions or given with `ModelBuilder.add_shape`. No algorithm of the dynamics depends
on them: a plan of contacts (`grubler.collision.Contacts`) is made from them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..errors import InputError, ModelError
from .geometry import (
    Ball,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Hull,
    Mesh,
    Plane,
    Shape,
)
from .parts import LARGEST, frozen

LENGTHS: dict[Any, Any] = {
    Ball: ("radius",),
    Capsule: ("radius", "length"),
    Cylinder: ("radius", "length"),
    Box: ("size",),
    Ellipsoid: ("radii",),
}
MAY_BE_ZERO = ((Ball, "radius"), (Capsule, "length"))  # a point, a ball
ALL_BITS = 0xFFFFFFFF
KINDS: Any = (*LENGTHS, Plane, HeightField, Hull, Mesh)


@dataclass(frozen=True)
class Material:
    """The coefficients of a shape; None where its description gives none.

    friction     Coulomb's μ
    restitution  Newton's e, 0 to 1
    torsional    moment about the normal over the normal force, m
    rolling      moment along the surface over the normal force, m
    condim       MuJoCo's number of directions: 1 without friction, 3 with, 4 torsional, 6 rolling,
                 too; None: as the coefficients say
    priority     of two shapes the one of higher priority gives the coefficients
    """

    friction: float | None = None
    restitution: float | None = None
    torsional: float | None = None
    rolling: float | None = None
    condim: int | None = None
    priority: int = 0

    def checked(self, what: str) -> Material:
        """The same coefficients as numbers, or a ModelError that names the one that is wrong."""
        values = {}
        for name in ("friction", "restitution", "torsional", "rolling"):
            value = getattr(self, name)
            if value is None:
                continue
            most = 1.0 if name == "restitution" else LARGEST
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = np.nan
            if isinstance(value, bool) or not 0 <= number <= most:
                limit = "from 0 to 1" if name == "restitution" else ">= 0"
                raise ModelError(f"{name} of {what} is {value!r}: give a number {limit}")
            values[name] = number
        if self.condim not in (None, 1, 3, 4, 6):
            raise ModelError(f"condim of {what} is {self.condim!r}: give 1, 3, 4 or 6")
        return replace(self, **values)

    def over(self, other: Material) -> Material:
        """These coefficients, those that are None taken from the other."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(other, **{k: x for k, x in given.items() if x is not None})


def combined(a: Material, b: Material) -> Material:
    """The coefficients of two shapes that touch, as MuJoCo combines them: those of the shape of
    higher priority, else the larger of each; where one shape gives none, the other's (of condim,
    MuJoCo's default of 3, if that is larger)."""
    if a.priority != b.priority:
        first, second = (a, b) if a.priority > b.priority else (b, a)
        return first.over(second)

    def larger(name: str):
        given = [x for x in (getattr(a, name), getattr(b, name)) if x is not None]
        return max(given, default=None)

    found = Material(**{f.name: larger(f.name) for f in fields(Material)})
    one_says = (a.condim is None) != (b.condim is None)
    return replace(found, condim=max(found.condim, 3)) if one_says else found


@dataclass(frozen=True, eq=False)
class Collider:
    """A shape that may touch others.

    `link` is the body as described, `body` the index of the moving body that carries it (WORLD for
    the ground), in whose coordinates `shape` is. Two shapes may meet if a bit of the `contype` of
    one is in the `conaffinity` of the other.
    """

    name: str
    link: str
    body: int
    shape: Shape
    material: Material = Material()
    contype: int = 1
    conaffinity: int = 1


@dataclass(frozen=True, eq=False)
class GivenPair:
    """Two shapes, by name, that a description lets touch whatever other rules say."""

    first: str
    second: str
    material: Material = Material()


@dataclass(frozen=True, eq=False)
class Collision:
    """What a description says of contact: shapes, pairs of links (by name) that never touch,
    pairs of shapes that may, and what of it no plan uses."""

    colliders: tuple[Collider, ...] = ()
    excluded: frozenset[frozenset[str]] = frozenset()
    pairs: tuple[GivenPair, ...] = ()
    unused: tuple[str, ...] = ()


def checked_shape(shape: Shape, what: str) -> Shape:
    """The shape with read-only numbers, or a ModelError that says what is wrong with it."""
    if not isinstance(shape, KINDS):
        kinds = "Sphere, Capsule, Box, Cylinder, Ellipsoid, Plane, HeightField, Hull or Mesh"
        raise ModelError(f"the shape of {what} is a {type(shape).__name__}: give a {kinds}")
    changes: dict[Any, Any] = {
        "position": _numbers(shape.position, (3,), f"position of {what}"),
        "rotation": _numbers(shape.rotation, (3, 3), f"rotation of {what}"),
    }
    R = changes["rotation"]
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0:
        raise ModelError(f"rotation of {what} is not a rotation matrix (orthonormal, right-handed)")
    for name in LENGTHS.get(type(shape), ()):
        size = (3,) if name in ("size", "radii") else ()
        value = _numbers(getattr(shape, name), size, f"{name} of {what}")
        positive = value >= 0 if (type(shape), name) in MAY_BE_ZERO else value > 0
        if not np.all(positive):
            raise ModelError(f"{name} of {what} is {value.tolist()}: lengths are positive, in m")
        changes[name] = value if size else float(value)
    if isinstance(shape, Hull):
        rows = np.shape(shape.vertices)[:1] or (0,)
        changes["vertices"] = _numbers(shape.vertices, (*rows, 3), f"vertices of {what}")
        if rows[0] < 1:
            raise ModelError(f"{what} has no vertices: give (n, 3) numbers in m")
    if isinstance(shape, HeightField):
        changes |= _checked_heights(shape, what)
    return replace(shape, **changes)


def _checked_heights(field: HeightField, what: str) -> dict[Any, Any]:
    """The array of a height field, or its function, checked."""
    if (field.heights is None) == (field.function is None):
        raise ModelError(f"{what}: give either heights=, with size=, or function=")
    if field.function is not None:
        if not callable(field.function):
            raise ModelError(f"function of {what} is {field.function!r}: give f(x, y) -> height")
        return {}
    heights = np.asarray(field.heights, dtype=float)
    if heights.ndim != 2 or min(heights.shape) < 2 or not np.all(np.isfinite(heights)):
        raise ModelError(
            f"heights of {what} have shape {heights.shape}: give finite numbers (nx, ny), at least "
            "2 each way"
        )
    if field.size is None:
        raise ModelError(f"{what} has no size: give size=(length along x, length along y) in m")
    size = _numbers(field.size, (2,), f"size of {what}")
    if not np.all(size > 0):
        raise ModelError(f"size of {what} is {size.tolist()}: lengths are positive, in m")
    return {"heights": frozen(heights), "size": size}


def _numbers(x, shape: tuple[int, ...], what: str) -> np.ndarray:
    try:
        value = frozen(x)
    except (TypeError, ValueError):
        value = None
    if value is None or value.shape != shape or not np.all(np.abs(value) <= LARGEST):
        count = "a number" if shape == () else f"numbers of shape {shape}"
        raise ModelError(f"{what} is {x!r}: give {count}, finite, in m")
    return value


def checked_mask(value: object, what: str) -> int:
    """A mask of 32 bits, or an InputError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(f"{what} is {value!r}: give a whole number >= 0, a mask of bits")
    return int(value)
