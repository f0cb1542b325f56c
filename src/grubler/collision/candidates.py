"""Candidate points of a plan of contacts at a configuration.

Traceable: floats, symbols, compiled, batched. Of a plan with m points:

| code   | meaning                                                                  | shape  |
|--------|--------------------------------------------------------------------------|--------|
| gap    | distance of the two shapes there in m, negative where they overlap        | (m,)   |
| point  | in the world, half way between the two surfaces                           | (m, 3) |
| normal | in the world, of unit length, from the surface of B to that of A          | (m, 3) |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..algebra.linalg import joined, stacked
from ..algorithms.checks import checked
from ..algorithms.kinematics import body_transforms
from ..algorithms.sweep import outward
from ..arguments import public
from ..errors import InputError
from .contacts import Contacts

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import ArrayLike


class Candidates(NamedTuple):
    """Gaps (m,), points (m, 3) and normals (m, 3) of all candidate points, in the plan's order."""

    gap: np.ndarray
    point: np.ndarray
    normal: np.ndarray


@public
def contact_candidates(model: Model, q: ArrayLike, contacts: Contacts) -> Candidates:
    """The gap, the place and the normal of every candidate point of a plan at q."""
    check_plan(model, contacts)
    X = body_transforms(outward(model, checked(model, q=q), keep_frame=contacts.bodies))
    found = contacts.located(lambda body: (X[body].E.T, X[body].r))
    return Candidates(
        joined([np.stack([t.gap]) for t in found]),
        stacked([t.point for t in found], (0, 3)),
        stacked([t.normal + np.zeros(3) for t in found], (0, 3)),
    )


def check_plan(model: Model, contacts: Contacts) -> None:
    """Refuse a plan that was made for another model."""
    if not isinstance(contacts, Contacts):
        raise InputError(f"contacts is a {type(contacts).__name__}: give gb.Contacts(model, ...)")
    names = tuple(body.name for body in model.bodies)
    if names != contacts.names:
        raise InputError(
            f"the contacts were planned for other bodies than those of '{model.name}': make them "
            "anew with gb.Contacts(model, ...)"
        )
