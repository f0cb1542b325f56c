"""Distances of convex shapes on the CPU, through coal: whole hulls of meshes, and pairs of kinds
that have no closed form. For use between steps; nothing of it is traced or compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.checks import checked
from ..algorithms.kinematics import body_transforms
from ..algorithms.sweep import outward
from ..arguments import public
from ..errors import InputError
from ..mechanism.colliders import Collider
from ..mechanism.geometry import (
    Ball,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Hull,
    Mesh,
    Plane,
    Shape,
)
from ..model import Model
from .candidates import Candidates
from .hulls import vertices_of
from .named import all_colliders, named_pairs
from .placed import Placed

if TYPE_CHECKING:
    from ..typing import ArrayLike

TOLERANCE = 1e-9  # m, of coal's iterations
ITERATIONS = 1000


class ConvexPairs:
    """Pairs of convex shapes whose distances `at(q)` gives.

    `pairs` are (name, name) of shapes, links or bodies, also of shapes on the world. `shapes` are
    more shapes by the name of a body or frame, and `open_meshes` is as in `Contacts`. A mesh counts
    as the convex hull of all its vertices. `names` are the pairs in order.
    """

    model: Model

    @public
    def __init__(
        self, model: Model, pairs: Sequence[tuple[str, str]], *,
        shapes: Mapping[str, Shape | Sequence[Shape]] | None = None, open_meshes: bool = False,
    ):  # fmt: skip
        self.model: Model = model
        coal = _coal()
        colliders = all_colliders(model, shapes)
        self._pairs = named_pairs(colliders, pairs, model)
        self._made = {
            c.name: _made(coal, c, open_meshes) for pair in self._pairs for c in pair
        }  # fmt: skip
        self.names: tuple[tuple[str, str], ...] = tuple((a.name, b.name) for a, b in self._pairs)
        self._request, self._result = coal.DistanceRequest(), coal.DistanceResult
        self._request.enable_signed_distance = True
        self._request.gjk_tolerance = self._request.epa_tolerance = TOLERANCE
        self._request.gjk_max_iterations = self._request.epa_max_iterations = ITERATIONS

    @public
    def at(self, q: ArrayLike) -> Candidates:
        """Gap, point half way between the surfaces, and normal from the second shape to the first,
        of every pair at q."""
        coal, q = _coal(), checked(self.model, q=q)
        X = body_transforms(outward(self.model, q, keep_frame=None))
        gaps, points, normals = [], [], []
        for pair in self._pairs:
            sides = []
            for c in pair:
                E, r = X[c.body].E, X[c.body].r
                at = Placed.on(c.shape, E.T, r)
                sides += [self._made[c.name], coal.Transform3s(at.R, at.p)]
            result = self._result()
            gaps.append(coal.distance(*sides, self._request, result))
            points.append((result.getNearestPoint1() + result.getNearestPoint2()) / 2)
            normals.append(-np.array(result.normal))
        return Candidates(
            np.array(gaps), np.array(points).reshape(-1, 3), np.array(normals).reshape(-1, 3)
        )


def _coal() -> ModuleType:
    try:
        import coal
    except ImportError:
        raise InputError(
            "distances of convex shapes need coal: pip install grubler[collision]"
        ) from None
    return coal


SIMPLE: dict[type[Any], Callable[..., Any]] = {
    Ball: lambda coal, s: coal.Sphere(s.radius),
    Capsule: lambda coal, s: coal.Capsule(s.radius, s.length),
    Cylinder: lambda coal, s: coal.Cylinder(s.radius, s.length),
    Box: lambda coal, s: coal.Box(*s.size),
    Ellipsoid: lambda coal, s: coal.Ellipsoid(*s.radii),
    Plane: lambda coal, s: coal.Halfspace(0.0, 0.0, 1.0, 0.0),
}


def _made(coal: ModuleType, c: Collider, open_meshes: bool):
    """coal's own shape."""
    if type(c.shape) in SIMPLE:
        return SIMPLE[type(c.shape)](coal, c.shape)
    if not isinstance(c.shape, (Hull, Mesh)):
        raise InputError(
            f"shape '{c.name}' is a {type(c.shape).__name__}, which is not convex: plan its "
            "contacts with gb.Contacts"
        )
    mesh = isinstance(c.shape, Mesh)
    vertices = vertices_of(c.shape, c.name, open_meshes) if mesh else c.shape.vertices
    model = coal.BVHModelOBBRSS()
    model.beginModel(0, len(vertices))
    model.addVertices(np.array(vertices))
    model.endModel()
    model.buildConvexHull(False, "Qt")
    return model.convex
