"""What the solver asks of a plan of contacts, and the axes of a point.

`gb.Contacts` is a plan. Any frozen, hashable object is one that has

- `points`: a tuple of records with `body` and `other` (indices; `other` is `WORLD` for the ground),
  `friction`, `restitution` and `name`;
- `bodies`: the indices of all bodies whose poses it needs;
- `located(pose)`: gap, point and normal of each point, in order, where `pose(body)` is (R, p): the
  rotation from the body's axes to the world's, and the position of its origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..model import Model

if TYPE_CHECKING:
    pass


def checked_plan(model: Model, plan: Any) -> Any:
    """The plan, if it is one for this model with laws that the solver has."""
    if not hasattr(plan, "located"):
        raise InputError(f"contacts is a {type(plan).__name__}: give gb.Contacts(model, ...)")
    if not plan.points:
        raise InputError("contacts has no candidate points: name what may touch")
    names = tuple(body.name for body in model.bodies)
    if getattr(plan, "names", names) != names:
        raise InputError(
            f"the contacts were planned for other bodies than those of '{model.name}': make them "
            "anew with gb.Contacts(model, ...)"
        )
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
        for kind in ("torsional", "rolling"):
            if getattr(point, kind, 0.0):
                raise InputError(
                    f"'{point.name}' has {kind} friction {getattr(point, kind):g} m, which the "
                    f"solver does not have: plan it with {kind}=0, or give the body several points"
                )
    return plan


def tangents(normal: Any) -> Any:
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


__all__ = ["checked_plan", "tangents"]
