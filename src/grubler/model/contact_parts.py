"""Shapes under construction: what may touch, by name, before bodies have indices."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from ..errors import ModelError, unknown
from ..mechanism.colliders import (
    Collider,
    Collision,
    GivenPair,
    checked_mask,
    checked_shape,
)
from ..mechanism.geometry import Plane, Shape
from .spanning_tree import SpanningTree


class ContactParts:
    """Shapes on bodies, bodies that never touch, pairs of shapes that may; `placed` is the result.

    A `Collider` is given with the name of its body, `link` (or `carrier`, where the link is welded
    to another body), in whose coordinates its shape is.
    """

    def __init__(self):
        self._shapes: dict[str, Collider] = {}
        self._carriers: dict[str, str] = {}
        self._excluded: set[frozenset[str]] = set()
        self._pairs: list[GivenPair] = []
        self._unused: list[str] = []

    def name_for(self, link: str) -> str:
        """A name that no shape has yet."""
        return next(name for k in count() if (name := f"{link}.{k}") not in self._shapes)

    def same_floor(self, shape: Shape) -> str | None:
        """The name of a plane on the world that is there already, or None."""
        for name, c in self._shapes.items():
            planes = isinstance(c.shape, Plane) and isinstance(shape, Plane)
            if planes and self._carriers[name] == "world":
                turned = c.shape.rotation[:, 2] @ shape.rotation[:, 2]
                apart = c.shape.rotation[:, 2] @ (c.shape.position - shape.position)
                if turned > 1 - 1e-12 and abs(apart) < 1e-12:
                    return name
        return None

    def add(self, c: Collider, carrier: str | None = None) -> None:
        if c.name in self._shapes:
            raise ModelError(f"there is already a shape named '{c.name}': names are unique")
        of = f"shape '{c.name}'"
        self._carriers[c.name] = carrier or c.link
        self._shapes[c.name] = replace(
            c, shape=checked_shape(c.shape, of), material=c.material.checked(of),
            contype=checked_mask(c.contype, f"contype of {of}"),
            conaffinity=checked_mask(c.conaffinity, f"conaffinity of {of}"),
        )  # fmt: skip

    def exclude(self, first: str, second: str) -> None:
        self._excluded.add(frozenset((first, second)))

    def allow(self, pair: GivenPair) -> None:
        for name in (pair.first, pair.second):
            if name not in self._shapes:
                raise ModelError(unknown("shape", name, self._shapes))
        of = f"shapes '{pair.first}' and '{pair.second}'"
        self._pairs.append(replace(pair, material=pair.material.checked(of)))

    def unused(self, what: str) -> None:
        """Note what a description says of contact and no plan uses."""
        self._unused.append(what)

    def placed(self, tree: SpanningTree) -> Collision:
        """All of it on moving bodies."""
        found = []
        for name, c in self._shapes.items():
            carrier, X = tree.place(f"shape '{name}'", self._carriers[name])
            found.append(replace(c, body=carrier, shape=c.shape.carried(X)))
        links = {c.link for c in found}
        for body in {name for pair in self._excluded for name in pair} - links:
            tree.place("exclude_contact", body)
        return Collision(
            tuple(found), frozenset(self._excluded), tuple(self._pairs), tuple(self._unused)
        )
