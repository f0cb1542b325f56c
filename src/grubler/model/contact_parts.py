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
from .spanning_tree import SpanningTree


class ContactParts:
    """Shapes on bodies, bodies that never touch, pairs of shapes that may; `placed` is the result.

    A `Collider` is given with the name of its body, `link`, in whose coordinates its shape is.
    """

    def __init__(self):
        self._shapes: dict[str, Collider] = {}
        self._excluded: set[frozenset[str]] = set()
        self._pairs: list[GivenPair] = []
        self._unused: list[str] = []

    def name_for(self, link: str) -> str:
        """A name that no shape has yet."""
        return next(name for k in count() if (name := f"{link}.{k}") not in self._shapes)

    def add(self, c: Collider) -> None:
        if c.name in self._shapes:
            raise ModelError(f"there is already a shape named '{c.name}': names are unique")
        of = f"shape '{c.name}'"
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
            carrier, X = tree.place(f"shape '{name}'", c.link)
            found.append(replace(c, body=carrier, shape=c.shape.carried(X)))
        for pair in self._excluded:
            for body in pair:
                tree.place("exclude_contact", body)
        return Collision(
            tuple(found), frozenset(self._excluded), tuple(self._pairs), tuple(self._unused)
        )
