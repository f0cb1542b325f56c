"""Which closed form gives the candidate points of two shapes, and how many there are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..mechanism.geometry import (
    Ball,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Hull,
    Plane,
    Shape,
)
from .boxes import box_box
from .on_ground import (
    ball_on_ground,
    box_on_ground,
    capsule_on_ground,
    cylinder_on_ground,
    ellipsoid_on_ground,
    face_on_ground,
    hull_on_ground,
)
from .pairs import (
    ball_ball,
    ball_box,
    ball_capsule,
    ball_cylinder,
    capsule_box,
    capsule_capsule,
)
from .placed import Placed, Touch, flipped

ON_GROUND: dict[Any, Any] = {
    Ball: ball_on_ground,
    Capsule: capsule_on_ground,
    Box: box_on_ground,
    Cylinder: cylinder_on_ground,
    Ellipsoid: ellipsoid_on_ground,
    Hull: hull_on_ground,
}
FORMS: Any = {
    (Ball, Ball): ball_ball,
    (Ball, Capsule): ball_capsule,
    (Ball, Box): ball_box,
    (Ball, Cylinder): ball_cylinder,
    (Capsule, Capsule): capsule_capsule,
    (Capsule, Box): capsule_box,
    (Box, Box): box_box,
} | {(kind, ground): form for kind, form in ON_GROUND.items() for ground in (Plane, HeightField)}


FEWER = {(Box, ground): face_on_ground for ground in (Plane, HeightField)}


def known(a: Shape, b: Shape) -> bool:
    """Whether there is a closed form for two shapes, in either order."""
    return (type(a), type(b)) in FORMS or (type(b), type(a)) in FORMS


def touches(a: Placed, b: Placed, lowest_face: bool = False) -> list[Touch]:
    """The candidate points of two shapes; the normals lead from B to A. Of a box on the ground
    all corners count, or those of its lowest face."""
    forms = FORMS | FEWER if lowest_face else FORMS
    form = forms.get((type(a.shape), type(b.shape)))
    if form is not None:
        return form(a, b)
    return flipped(forms[type(b.shape), type(a.shape)](b, a))


@lru_cache(maxsize=4096)
def count(a: Shape, b: Shape, lowest_face: bool = False) -> int:
    """How many candidate points two shapes have."""
    one = np.array([0.0, 0.0, 1.0])
    return len(touches(Placed(a, np.eye(3), one), Placed(b, np.eye(3), -one), lowest_face))
