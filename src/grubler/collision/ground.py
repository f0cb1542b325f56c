"""The ground of a plan: what the model has on the world, a plane, heights, or a platform."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arguments import shown
from ..errors import InputError
from ..mechanism.colliders import ALL_BITS, Collider, checked_shape
from ..mechanism.geometry import HeightField, Plane, Shape
from ..mechanism.joints import perpendicular
from ..mechanism.parts import WORLD
from ..model import Model
from .named import picked


def ground_colliders(
    model: Model, ground: object, colliders: Sequence[Collider]
) -> tuple[Collider, ...]:
    """What `ground` of a plan stands for."""
    if ground is False:
        return ()
    if ground is None:
        own = tuple(c for c in colliders if c.body == WORLD)
        floor = any(c.link == "world" or isinstance(c.shape, (Plane, HeightField)) for c in own)
        return own if floor else (*own, _collider("ground", level(model)))
    several = isinstance(ground, (list, tuple))
    found: list[Collider] = []
    for k, entry in enumerate(ground if several else [ground]):
        name = f"ground.{k}" if several and len(ground) > 1 else "ground"
        if isinstance(entry, str):
            found += picked(colliders, [entry], model)
        elif isinstance(entry, Shape):
            found.append(_collider(name, entry))
        elif callable(entry):
            found.append(_collider(name, HeightField(function=entry)))
        else:
            raise InputError(
                f"ground is {shown(entry)}: give a shape, a function f(x, y) of height, the name "
                "of a shape, a list of these, or False for none"
            )
    return tuple(found)


def level(model: Model) -> Plane:
    """The plane through the origin across gravity; without gravity, z = 0."""
    size = np.linalg.norm(model.gravity)
    if size == 0.0:
        return Plane()
    up = -model.gravity / size
    if np.array_equal(up, [0.0, 0.0, 1.0]):
        return Plane()
    return Plane(rotation=np.concatenate([perpendicular(up), up[None, :]]).T)


def _collider(name: str, shape: Shape) -> Collider:
    checked = checked_shape(shape, f"'{name}'")
    return Collider(name, "world", WORLD, checked, contype=ALL_BITS, conaffinity=ALL_BITS)
