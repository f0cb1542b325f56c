"""Shapes by name: those of the model, and more that are given to a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..arguments import shown
from ..errors import InputError, unknown
from ..mechanism.colliders import Collider, checked_shape
from ..mechanism.geometry import Shape
from ..mechanism.parts import WORLD
from ..model import Model


def all_colliders(
    model: Model, shapes: Mapping[str, Shape | Sequence[Shape]] | None
) -> tuple[Collider, ...]:
    """The colliders of the model, and `shapes` by the name of a frame or body, named after it."""
    found = list(model.collision.colliders)
    if shapes is not None and not isinstance(shapes, Mapping):
        raise InputError(
            f"shapes is {shown(shapes)}: give a mapping from names of frames to shapes"
        )
    taken = {c.name for c in found}
    for name, given in (shapes or {}).items():
        several = [given] if isinstance(given, Shape) else list(given)
        frame = model.frame(name)
        for k, shape in enumerate(several):
            of = name if len(several) == 1 else f"{name}.{k}"
            if of in taken:
                raise InputError(f"shapes: there is already a shape named '{of}' on the model")
            taken.add(of)
            own = checked_shape(shape, f"'{of}'")
            found.append(Collider(of, name, frame.body, own.carried(frame.placement)))
    return tuple(found)


def picked(colliders: Iterable[Collider], names: Iterable[str], model: Model) -> list[Collider]:
    """The colliders of these names, of these links, or on these bodies."""
    found: dict[str, Collider] = {}
    colliders = list(colliders)
    for name in names:
        body = {b.name: b.index for b in model.bodies}.get(name)
        hits = [c for c in colliders if c.name == name]
        hits = hits or [c for c in colliders if c.link == name]
        hits = hits or [c for c in colliders if body is not None and c.body == body]
        if not hits:
            known = [c.name for c in colliders]
            there = f"the model has no shapes; give shapes={{'{name}': ...}}"
            raise InputError(unknown("shape", name, known) if known else there)
        found |= {c.name: c for c in hits}
    return list(found.values())


def named_pairs(
    colliders: Iterable[Collider], pairs: Sequence[tuple[str, str]], model: Model
) -> list[tuple[Collider, Collider]]:
    """The shapes of pairs of names, each pair once, the one on the world last."""
    found: dict[frozenset[str], tuple[Collider, Collider]] = {}
    colliders = list(colliders)
    if not isinstance(pairs, (list, tuple)):
        raise InputError(f"pairs is {shown(pairs)}: give a list of (name, name)")
    for entry in pairs:
        if not (isinstance(entry, (tuple, list)) and len(entry) == 2):
            raise InputError(f"pairs holds {shown(entry)}: give (name, name)")
        first, second = (picked(colliders, [name], model) for name in entry)
        for a in first:
            for b in second:
                if a.body == b.body:
                    raise InputError(
                        f"pairs: '{a.name}' and '{b.name}' are on one body and never move against "
                        "each other"
                    )
                if a.body == WORLD:
                    a, b = b, a
                found.setdefault(frozenset((a.name, b.name)), (a, b))
    return list(found.values())


def moving(colliders: Iterable[Collider], what: str) -> list[Collider]:
    """The colliders, or an InputError that names one that is fixed to the world."""
    found = list(colliders)
    for c in found:
        if c.body == WORLD:
            raise InputError(
                f"{what}: shape '{c.name}' is on '{c.link}', which is fixed to the world and "
                "cannot move: name shapes of moving bodies"
            )
    return found
