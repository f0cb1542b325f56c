"""What to draw and where: a model as shapes on bodies, and a configuration as their poses.

Nothing here knows the browser; `drawing` hands a scene to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..algebra.spatial import Transform
from ..mechanism.loops import Loop, LoopJoint
from ..mechanism.parts import WORLD, Body
from ..model import Model
from ..tolerances import OPEN_LOOP
from . import palette
from .meshes import loaded
from .outline import Outline, Room, body_poses, loop_ends, rotors
from .palette import Colour
from .shapes import Ball, Box, Cylinder, Shape, inertia_ellipsoid, pin, rod, rotor_cylinder

if TYPE_CHECKING:
    from ..typing import Array

LAYERS = ("bodies", "links", "joints", "loops")
GLASS = 0.2  # opacity of inertia ellipsoids: the links inside stay visible


@dataclass(frozen=True, eq=False)
class Part:
    """A shape fixed to a body (or to WORLD). `layer` is what the user shows and hides together."""

    name: str
    body: int
    layer: str
    shape: Shape
    colour: Colour
    opacity: float | None = None


@dataclass(frozen=True, eq=False)
class LoopLine:
    """A loop in the world: the points it connects, and how far it is from closed.

    A loop joint connects its two frames, which coincide or keep what the joint allows; a coupling
    connects the joints that it couples, as a belt would. `gap` is the largest residual in m
    or rad.
    """

    name: str
    points: np.ndarray  # (n, 3)
    gap: float
    gap_text: str
    joint: bool
    colour: Colour  # while closed

    @property
    def closed(self) -> bool:
        return self.gap <= OPEN_LOOP

    @property
    def segments(self) -> np.ndarray:
        """(n - 1, 2, 3)"""
        return np.stack([self.points[:-1], self.points[1:]], axis=1)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One configuration: `rotation` (nb, 3, 3) and `position` (nb, 3) of the bodies, the loops."""

    rotation: np.ndarray
    position: np.ndarray
    loops: tuple[LoopLine, ...]

    @property
    def gap(self) -> float:
        return max((line.gap for line in self.loops), default=0.0)


@dataclass(frozen=True, eq=False)
class Scene:
    """The shapes of a model, and the poses that a configuration gives them."""

    model: Model
    parts: tuple[Part, ...]
    outline: Outline
    colours: tuple[Colour, ...]  # by cluster
    missing: tuple[str, ...] = ()  # meshes that could not be read

    @staticmethod
    def of(model: Model, geometry: Mapping[str, Sequence[Shape]] | None = None) -> Scene:
        """The scene of a model. Bodies are drawn by `model.geometry`; `geometry` gives other shapes
        by the name of a body, in its coordinates. A body without any is drawn by its inertia."""
        outline = Outline.of(model)
        colours = tuple(palette.cluster_colours(model))
        given = dict(model.geometry)
        given |= {model.body(name).index: tuple(x) for name, x in (geometry or {}).items()}
        drawn, missing = loaded(given)
        artist = _Artist(model, outline, colours, drawn)
        return Scene(model, tuple(artist.parts()), outline, colours, missing)

    @cached_property
    def _loop_colours(self) -> dict[str, Colour]:
        """Loop joints black; couplings a shade of their cluster, to which they belong as a gear."""
        return {
            loop.name: palette.CLOSED
            if isinstance(loop, LoopJoint)
            else palette.darker(self.colours[cluster.index])
            for cluster in self.model.clusters
            for loop in cluster.loops
        }

    def room(self, q: Array) -> Room:
        """The box that the robot takes up at q."""
        return self.outline.room(self.model, self.model.unpack(np.asarray(q, dtype=float)))

    def snapshot(self, q: Array) -> Snapshot:
        """Where everything is at q, which need not be closed."""
        positions = self.model.unpack(np.asarray(q, dtype=float))
        poses = body_poses(self.model, positions)
        bodies = range(len(self.model.bodies))
        colours = self._loop_colours
        return Snapshot(
            np.array([poses[i].E.T for i in bodies]).reshape(-1, 3, 3),
            np.array([poses[i].r for i in bodies]).reshape(-1, 3),
            tuple(_line(loop, positions, poses, colours[loop.name]) for loop in self.model.loops),
        )


def _in_world(pose: Transform, point: np.ndarray) -> np.ndarray:
    return pose.r + pose.E.T @ point


def _line(loop: Loop, positions, poses, colour: Colour) -> LoopLine:
    if isinstance(loop, LoopJoint):
        points = [_in_world(poses[body], X.r) for body, X in loop_ends(loop)]
    else:
        points = [poses[i].r for i in loop.bodies]
    gap = loop.opening(positions)
    text = loop.gap(positions)
    return LoopLine(loop.name, np.array(points), gap, text, isinstance(loop, LoopJoint), colour)


class _Artist:
    """Chooses the shapes of every body."""

    def __init__(self, model: Model, outline: Outline, colours: Sequence[Colour], geometry):
        self.model, self.outline, self.geometry = model, outline, geometry
        self.r = outline.radius
        self.rotors = rotors(model)
        self.colour = {
            i: colours[cluster.index] for cluster in model.clusters for i in cluster.bodies
        }
        self.colour[WORLD] = palette.GROUND
        names = model.v_names
        self.independent = {
            body.index
            for body in model.bodies
            if any(n in names for n in body.joint.names(body.joint.motion.labels))
        }

    def parts(self):
        for body in self.model.bodies:
            yield from self.body(body)
            yield from self.joint(body)
        yield from self.look("world", WORLD, palette.GROUND)
        for index in (WORLD, *range(len(self.model.bodies))):
            if index not in self.geometry:  # a shape of its own shows where a body reaches
                yield from self.links(index)
        for loop in self.model.loops:
            if isinstance(loop, LoopJoint):
                yield from self.loop(loop)

    def body(self, body: Body):
        colour = self.colour[body.index]
        if body.index in self.rotors:
            colour = palette.darker(colour)
        if body.index in self.geometry:
            yield from self.look(body.name, body.index, colour)
        elif body.index in self.rotors:
            yield Part(body.name, body.index, "bodies", rotor_cylinder(body, self.r), colour)
        elif (shape := inertia_ellipsoid(body, self.r)) is not None:
            yield Part(body.name, body.index, "bodies", shape, colour, GLASS)

    def look(self, name: str, index: int, colour: Colour):
        for k, shape in enumerate(self.geometry.get(index, ())):
            yield Part(f"{name}.{k}", index, "bodies", shape, colour)

    def links(self, index: int):
        start, ends = self.outline.bars(index)
        colour = self.colour[index]
        name = "world" if index == WORLD else self.model.bodies[index].name
        for k, end in enumerate(ends):
            yield Part(f"{name} link {k}", index, "links", rod(start, end, self.r), colour)
        if len(ends):
            yield Part(f"{name} hub", index, "links", Ball(self.r, position=start), colour)

    def joint(self, body: Body):
        """Pins stand on the side in which their axis is fixed."""
        leads = body.index in self.independent
        colour = palette.INDEPENDENT if leads else palette.DEPENDENT
        # two joints on one axis are seen both: the one that follows is thinner
        small = 0.55 if body.index in self.rotors else 1.0 if leads else 0.85
        for k, (index, shape) in enumerate(self._symbols(body, self.r * small)):
            yield Part(f"{body.joint.name} joint {k}", index, "joints", shape, colour)

    def _symbols(self, body: Body, r: float):
        motion, placement, kind = body.joint.motion, body.joint.placement, body.joint.kind
        on_parent = placement.E.T
        if kind in ("revolute", "continuous"):
            yield body.index, pin(motion.axis, 1.5 * r, 6 * r)
        elif kind in ("prismatic", "cylindrical", "helical"):
            ends = [abs(x) for x in (body.joint.lower, body.joint.upper) if x is not None]
            stroke = max([6 * r, *ends]) if kind == "prismatic" else 6 * r
            axis = on_parent @ motion.axis
            yield body.parent, pin(axis, 0.5 * r, 2 * stroke, placement.r)
            if kind == "prismatic":
                yield body.index, Box(np.full(3, 3 * r))
            else:
                yield body.index, pin(motion.axis, 1.6 * r, 4 * r)
        elif kind == "universal":
            yield body.parent, pin(on_parent @ motion.axis, r, 6 * r, placement.r)
            yield body.index, pin(motion.axis2, r, 6 * r)
        elif kind == "spherical":
            yield body.index, Ball(2 * r)
        elif kind == "planar":
            axis = on_parent @ motion.axis
            yield body.parent, pin(axis, 6 * r, 0.4 * r, placement.r)
            yield body.index, pin(motion.axis, r, 4 * r)

    def loop(self, loop: LoopJoint):
        for side, (index, X) in zip("PS", loop_ends(loop), strict=True):
            name = f"{loop.name} {side}"
            if side == "P" and loop.kind in ("revolute", "prismatic", "cylindrical"):
                shape: Ball | Cylinder = pin(X.E.T @ loop.axis, 1.1 * self.r, 8 * self.r, X.r)
            else:
                shape = Ball(1.5 * self.r, position=X.r)
            yield Part(name, index, "loops", shape, palette.CLOSED)
