"""Which points may touch, chosen once: `Contacts`, a frozen plan that compiled code is made for.

Shapes that may meet form pairs, and each pair has a fixed number of candidate points. Nothing of it
depends on the state: whether a point touches is seen from its gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import public
from ..errors import InputError
from ..mechanism.colliders import Collider, Material
from ..mechanism.geometry import Shape
from ..mechanism.parts import WORLD
from ..model import Model
from . import closed_forms
from .choice import Choice
from .ground import ground_colliders
from .materials import Coefficients
from .named import all_colliders
from .placed import Placed, Touch
from .srdf import never_touching

LIMIT = 64  # candidate points; the matrix of their responses has nine times its square numbers


class ContactWarning(UserWarning):
    """What a description says of contact, and no plan uses."""


@dataclass(frozen=True, eq=False)
class ContactPair:
    """Two shapes that may touch: their names, indices of the bodies that carry them (`other` is
    WORLD for the ground), the shapes in these bodies' coordinates, coefficients, the number of
    points, and whether only the lowest face of a box counts."""

    names: tuple[str, str]
    body: int
    other: int
    shapes: tuple[Shape, Shape]
    friction: float
    restitution: float
    torsional: float
    rolling: float
    count: int
    lowest_face: bool = False

    @property
    def name(self) -> str:
        return ", ".join(self.names)


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """A candidate point: its pair, and which of the pair's points it is."""

    name: str
    pair: ContactPair
    index: int

    @property
    def body(self) -> int:
        return self.pair.body

    @property
    def other(self) -> int:
        """The index of the other body, WORLD for the ground."""
        return self.pair.other

    @property
    def friction(self) -> float:
        return self.pair.friction

    @property
    def restitution(self) -> float:
        return self.pair.restitution

    @property
    def torsional(self) -> float:
        """Moment about the normal over the normal force, m."""
        return self.pair.torsional

    @property
    def rolling(self) -> float:
        """Moment across the normal over the normal force, m."""
        return self.pair.rolling


@dataclass(frozen=True, eq=False, init=False)
class Contacts:
    """The pairs of shapes of a model that may touch, and their candidate points.

    ground       None: the shapes that the model has on the world, and the plane through the origin
                 across gravity, unless a plane, a height field or a shape of the world itself
                 (not of a link that is welded to it) is among them. Or a shape, a function of
                 height f(x, y), the name of a shape (or of all shapes of a body: a moving
                 platform), or a list of these. False: no ground
    touching     what may touch the ground: "all" shapes, those of "leaves" (bodies that carry no
                 other body with a shape), or names of shapes, links or bodies
    pairs        what may touch each other: (name, name) of shapes, links or bodies; "all" of what
                 the description allows, without neighbours and without what always overlaps
    srdf         path or text of an SRDF: its links never touch each other, in pairs="all"
    shapes       more shapes, by the name of the body or frame that carries them
    friction     a coefficient for all pairs, or by the name of a shape or (name, name) of two. What
                 is not given is what the description says; of two shapes the larger number, 0.8
                 where it says nothing
    restitution, torsional (m), rolling (m)
                 in the same way; 0 where nothing is said
    corners      of a box on the ground: 8, all of them, or 4, those of its lowest face: fewer
                 points, which become others when the box turns over
    hull_points  vertices by which the convex hull of a mesh is represented
    open_meshes  True takes the hulls of meshes that are not closed, too
    limit        the largest number of candidate points
    strict       False leaves out pairs for which there is no closed form instead of refusing them

    `pairs`, `points`, `bodies` (indices of all bodies that take part) and `notes`, what was left
    out and why, are what a plan holds.
    """

    names: tuple[str, ...]
    pairs: tuple[ContactPair, ...]
    points: tuple[ContactPoint, ...]
    notes: tuple[str, ...] = field(default=(), metadata={"fingerprint": False})

    @public
    def __init__(
        self, model: Model, *, ground: object = None, touching: str | Iterable[str] = "all",
        pairs: str | Sequence[tuple[str, str]] = (), srdf: str | Path | None = None,
        shapes: Mapping[str, Shape | Sequence[Shape]] | None = None,
        friction: float | Mapping[Any, Any] | None = None,
        restitution: float | Mapping[Any, Any] | None = None,
        torsional: float | Mapping[Any, Any] | None = None,
        rolling: float | Mapping[Any, Any] | None = None, corners: int = 8, hull_points: int = 8,
        open_meshes: bool = False, limit: int = LIMIT, strict: bool = True,
    ):  # fmt: skip
        if corners not in (4, 8):
            raise InputError(f"corners is {corners!r}: give 8, or 4 for the lowest face alone")
        notes = list(model.collision.unused)
        if notes:
            warnings.warn("; ".join(notes), ContactWarning, stacklevel=3)
        colliders = all_colliders(model, shapes)
        floor = ground_colliders(model, ground, colliders)
        apart = model.collision.excluded
        if srdf is not None:
            apart = apart | never_touching(srdf, {c.link for c in colliders}, notes)
        choice = Choice(model, colliders, floor, apart, notes, hull_points, open_meshes, strict)
        given = {"friction": friction, "restitution": restitution, "torsional": torsional,
                 "rolling": rolling}  # fmt: skip
        coefficients = Coefficients(given, choice.names)
        found = []
        for a, b, said in choice.on_ground(touching) + choice.between(pairs):
            found.append(_pair(a, b, coefficients.of(a, b, said), corners == 4))
        coefficients.tell(notes)
        points = tuple(
            ContactPoint(f"{pair.name} {k}" if pair.count > 1 else pair.name, pair, k)
            for pair in found
            for k in range(pair.count)
        )
        _check_count(found, len(points), limit)
        for name, value in (
            ("names", tuple(body.name for body in model.bodies)), ("pairs", tuple(found)),
            ("points", points), ("notes", tuple(notes)),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def bodies(self) -> tuple[int, ...]:
        """Indices of all bodies on which there are points, in order."""
        ends = {i for pair in self.pairs for i in (pair.body, pair.other)}
        return tuple(sorted(ends - {WORLD}))

    def located(self, pose: Callable[..., Any]) -> list[Touch]:
        """Gap, point and normal of every candidate point in order, traceable. `pose(body)` is the
        rotation (3, 3) from a body's axes to the world's and the position (3,) of its origin, for
        the indices in `bodies`."""
        placed: dict[int, Placed] = {}

        def at(shape: Shape, body: int) -> Placed:
            if id(shape) not in placed:
                R, p = (np.eye(3), np.zeros(3)) if body == WORLD else pose(body)
                placed[id(shape)] = Placed.on(shape, R, p)
            return placed[id(shape)]

        return [
            touch
            for pair in self.pairs
            for touch in closed_forms.touches(
                at(pair.shapes[0], pair.body), at(pair.shapes[1], pair.other), pair.lowest_face
            )
        ]

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"<Contacts: {len(self.pairs)} pairs, {len(self.points)} points>"

    def table(self) -> str:
        """All pairs with their points and coefficients, and what was left out."""
        lines = [f"{len(self.pairs)} pairs of shapes, {len(self.points)} candidate points"]
        for p in self.pairs:
            extra = "".join(
                f", {name} {getattr(p, name):g}"
                for name in ("restitution", "torsional", "rolling")
                if getattr(p, name)
            )
            lines.append(f"  {p.name}: {p.count}, friction {p.friction:g}{extra}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def _pair(a: Collider, b: Collider, m: Material, lowest_face: bool) -> ContactPair:
    return ContactPair(
        (a.name, b.name), a.body, b.body, (a.shape, b.shape), m.friction, m.restitution,
        m.torsional, m.rolling, closed_forms.count(a.shape, b.shape, lowest_face), lowest_face,
    )  # fmt: skip


def _check_count(pairs: Sequence[ContactPair], points: int, limit: int) -> None:
    """Refuse more points than the limit, saying what they cost."""
    if points <= limit:
        return
    most = sorted(pairs, key=lambda pair: -pair.count)[:4]
    named = "; ".join(f"{pair.name} has {pair.count}" for pair in most)
    raise InputError(
        f"{len(pairs)} pairs of shapes have {points} candidate points, more than the limit of "
        f"{limit} ({named}): each step would form a matrix of {3 * points} by {3 * points}, and "
        f"each sweep of its solver take about {18 * points * points:,} operations; choose with "
        "touching= and pairs=, give simpler shapes with shapes=, or raise limit="
    )
