"""Built models as parts of a larger one: all that a model has, under names with a prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ..algebra.spatial import Transform, matrix_quaternion
from ..errors import ModelError
from ..mechanism.colliders import Collider, GivenPair
from ..mechanism.loops import Loop, LoopJoint
from ..mechanism.parts import WORLD, Body, TreeJoint
from .contact_parts import ContactParts
from .model import Model
from .spanning_tree import Edge, Mass, SpanningTree


class Joined:
    """The parts of a model under the prefix of a name, its world placed by X."""

    def __init__(self, name: str, model: Model, X: Transform):
        self.prefix: str = f"{name}/"
        self.model: Model = model
        self.X: Transform = X
        self.at_rest: bool = np.array_equal(X.E, np.eye(3)) and not np.any(X.r)

    def body_name(self, index: int) -> str:
        return "world" if index == WORLD else self.prefix + self.model.bodies[index].name

    def masses(self) -> dict[str, Mass]:
        bodies = self.model.bodies
        return {self.body_name(b.index): Mass(b.mass, b.com, b.inertia) for b in bodies}

    def edges(self) -> dict[str, Edge]:
        """Tree joints by child."""
        return {
            self.body_name(b.index): Edge(
                self.body_name(b.parent), self.body_name(b.index), self._joint(b)
            )
            for b in self.model.bodies
        }

    def _joint(self, body: Body) -> TreeJoint:
        joint = replace(body.joint, name=self.prefix + body.joint.name)
        if body.parent != WORLD or self.at_rest or _floats(body):
            return joint
        return replace(joint, placement=(joint.placement @ self.X).rounded())

    def reference(self) -> dict[str, np.ndarray]:
        """Positions of the joints; of bodies that float in the world, placed."""
        found = {}
        for body in self.model.bodies:
            q = self.model.reference[body.index]
            if _floats(body) and not self.at_rest:
                X = body.joint.transform(q) @ self.X
                q = np.concatenate([X.r, matrix_quaternion(X.E.T)])
            found[self.prefix + body.joint.name] = q
        return found

    def loops(self) -> dict[str, Callable[[SpanningTree], Loop]]:
        """Makers of the loops, by name, from the bodies of the larger model."""
        return {self.prefix + loop.name: self._maker(loop) for loop in self.model.loops}

    def _maker(self, loop: Loop) -> Callable[[SpanningTree], Loop]:
        def make(tree: SpanningTree) -> Loop:
            here = {b.name: b for b in tree.bodies}

            def moved(body: Body) -> Body:
                name = self.body_name(body.index)
                if name not in here:
                    raise ModelError(f"loop '{self.prefix}{loop.name}': body '{name}' is welded")
                return here[name]

            new = _with_bodies(loop, moved)
            new = replace(new, name=self.prefix + loop.name, slack=0.0)
            return self._placed(new) if isinstance(new, LoopJoint) else new

        return make

    def _placed(self, loop: LoopJoint) -> LoopJoint:
        """A frame on the world moves with the placement."""
        ends = tuple(end and (end if end == "world" else self.prefix + end) for end in loop.ends)
        changes: dict[Any, Any] = {"ends": ends}
        on_world = (*loop.path_P, *loop.path_S)[0].parent == WORLD
        for path, frame in (("path_P", "frame_P"), ("path_S", "frame_S")):
            if not getattr(loop, path) and on_world and not self.at_rest:
                changes[frame] = (getattr(loop, frame) @ self.X).rounded()
        return replace(loop, **changes)

    def frames(self) -> dict[str, tuple[str, Transform]]:
        found = {}
        for frame in self.model.frames:
            on_world = frame.body == WORLD and not self.at_rest
            X = frame.placement @ self.X if on_world else frame.placement
            found[self.prefix + frame.name] = (self.body_name(frame.body), X)
        return found

    def actuators(self) -> dict[str, tuple[str, float, float | None]]:
        return {
            self.prefix + a.name: (
                self.prefix + self.model.bodies[a.joint].joint.name, a.gear, a.effort_limit
            )
            for a in self.model.actuators
        }  # fmt: skip

    def geometry(self) -> dict[str, tuple[Any, ...]]:
        """Shapes to be drawn, by the name of a body."""
        return {
            self.body_name(i): tuple(s.carried(self.X) if i == WORLD else s for s in shapes)
            for i, shapes in self.model.geometry.items()
        }

    def add_contact(self, parts: ContactParts) -> None:
        """Shapes that may touch, and rules for them; a floor that is there already counts once."""
        rules, given = self.model.collision, {}
        for c in rules.colliders:
            shape = c.shape.carried(self.X) if c.body == WORLD else c.shape
            known = parts.same_floor(shape) if c.body == WORLD else None
            given[c.name] = known or self.prefix + c.name
            if known is None:
                parts.add(
                    replace(c, name=given[c.name], link=self._link(c), shape=shape, body=WORLD),
                    carrier=self.body_name(c.body),
                )
        for first, second in (sorted(pair) * (3 - len(pair)) for pair in rules.excluded):
            parts.exclude(*(x if x == "world" else self.prefix + x for x in (first, second)))
        for pair in rules.pairs:
            parts.allow(GivenPair(given[pair.first], given[pair.second], pair.material))
        for what in rules.unused:
            parts.unused(f"{self.prefix[:-1]}: {what}")

    def _link(self, c: Collider) -> str:
        return "world" if c.link == "world" else self.prefix + c.link


def _floats(body: Body) -> bool:
    """Whether its joint's position is its pose in the world."""
    X = body.joint.placement
    level = np.array_equal(X.E, np.eye(3)) and not np.any(X.r)
    return body.parent == WORLD and body.joint.kind == "free" and level


def _with_bodies(value, moved: Callable[[Body], Body]):
    """The same with other bodies, in loops, tuples and whatever dataclass holds them."""
    if isinstance(value, Body):
        return moved(value)
    if isinstance(value, Mapping):
        return {k: _with_bodies(x, moved) for k, x in value.items()}
    if isinstance(value, tuple):
        parts = [_with_bodies(x, moved) for x in value]
        if all(x is y for x, y in zip(parts, value)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if is_dataclass(value) and not isinstance(value, type):
        changes = {}
        for field in fields(value):
            old = getattr(value, field.name)
            new = _with_bodies(old, moved)
            if new is not old and field.init:
                changes[field.name] = new
        return replace(value, **changes) if changes else value
    return value
