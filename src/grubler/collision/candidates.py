"""Candidate points of a plan of contacts, from the poses of the bodies.

Traceable: floats, symbols, compiled, batched. Of a plan with m points:

| code   | meaning                                                                  | shape  |
|--------|--------------------------------------------------------------------------|--------|
| gap    | distance of the two shapes there in m, negative where they overlap        | (m,)   |
| point  | in the world, half way between the two surfaces                           | (m, 3) |
| normal | in the world, of unit length, from the surface of B to that of A          | (m, 3) |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..algebra.linalg import joined, stacked
from ..algebra.spatial import Transform
from ..algorithms.checks import checked
from ..algorithms.first_pass import first_pass
from ..algorithms.kinematics import body_transforms
from ..arguments import public
from ..errors import InputError
from ..mechanism.geometry import Shape
from .closed_forms import touches
from .contacts import Contacts
from .placed import Placed


class Candidates(NamedTuple):
    """Gaps (m,), points (m, 3) and normals (m, 3) of all candidate points, in the plan's order."""

    gap: np.ndarray
    point: np.ndarray
    normal: np.ndarray


@public
def contact_candidates(model, q, contacts: Contacts) -> Candidates:
    """The gap, the place and the normal of every candidate point of a plan at q."""
    check_plan(model, contacts)
    return candidates(contacts, poses_of(model, checked(model, q=q), contacts))


def poses_of(model, q, contacts: Contacts) -> dict[int, Transform]:
    """The transform from the world to every body."""
    return body_transforms(model, first_pass(model, q, posed=contacts.bodies))


def candidates(contacts: Contacts, poses: Mapping[int, Transform]) -> Candidates:
    """All candidate points, from X_BW from the world to each of `contacts.bodies`."""
    placed: dict[int, Placed] = {}

    def at(shape: Shape, body: int | None) -> Placed:
        if id(shape) not in placed:
            X = Transform.identity() if body is None else poses[body]
            placed[id(shape)] = Placed.on(shape, X)
        return placed[id(shape)]

    found = [
        touch
        for pair in contacts.pairs
        for touch in touches(at(pair.shape_a, pair.body_a), at(pair.shape_b, pair.body_b))
    ]
    return Candidates(
        joined([np.stack([t.gap]) for t in found]),
        stacked([t.point for t in found], (0, 3)),
        stacked([t.normal + np.zeros(3) for t in found], (0, 3)),
    )


def check_plan(model, contacts: Contacts) -> None:
    """Refuse a plan that was made for another model."""
    if not isinstance(contacts, Contacts):
        raise InputError(f"contacts is a {type(contacts).__name__}: give gb.Contacts(model, ...)")
    names = tuple(body.name for body in model.bodies)
    if names != contacts.names:
        raise InputError(
            f"the contacts were planned for other bodies than those of '{model.name}': make them "
            "anew with gb.Contacts(model, ...)"
        )
