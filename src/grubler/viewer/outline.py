"""The outline of a robot: the points its bodies are joined at, its size, a camera and a ground."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import Transform
from ..mechanism.loops import LoopJoint
from ..mechanism.parts import WORLD, Body
from ..model import Model

if TYPE_CHECKING:
    from ..typing import Array

THIN = 0.009  # radius of a link, as a share of the robot's size
FIELD_OF_VIEW = 0.6  # rad, narrow: parallel bars look parallel
DISTANCE = 0.6 / np.sin(FIELD_OF_VIEW / 2)  # a ball of the robot's size leaves a margin


def rotors(model: Model) -> frozenset[int]:
    """Leaf bodies symmetric about their joint axis that a loop couples to others."""
    parents = {body.parent for body in model.bodies}
    coupled = {i for loop in model.loops for i in loop.bodies}
    return frozenset(
        body.index
        for body in model.bodies
        if body.index in coupled and body.index not in parents and body.symmetric_about_joint
    )


def loop_ends(loop: Any) -> tuple[tuple[int, Transform], tuple[int, Transform]]:
    """(body, frame) of predecessor and successor. An empty path ends where the other begins."""
    root = (*loop.path_P, *loop.path_S)
    P = loop.path_P[-1].index if loop.path_P else root[0].parent
    S = loop.path_S[-1].index if loop.path_S else root[0].parent
    return (P, loop.frame_P), (S, loop.frame_S)


def body_poses(model: Model, positions: Mapping[int, np.ndarray]) -> dict[int, Transform]:
    """X_BW of every body from the positions of all tree joints: no velocity, so no singularity."""
    poses = {WORLD: Transform.identity()}
    for body in model.bodies:
        poses[body.index] = body.joint.transform(positions[body.index]) @ poses[body.parent]
    return poses


@dataclass(frozen=True, eq=False)
class Room:
    """The box about a robot, along the axes of the world."""

    lower: np.ndarray
    upper: np.ndarray

    @staticmethod
    def of(model: Model, anchors: Mapping[int, np.ndarray], positions: Mapping[int, Array]) -> Room:
        poses = body_poses(model, positions)
        points = [anchors[WORLD]]
        for body in model.bodies:
            X = poses[body.index]
            points += [X.r[None, :], X.r + anchors[body.index] @ X.E, _spread(body, X)]
        stacked = np.concatenate(points)
        stacked = stacked if len(stacked) else np.zeros((1, 3))  # nothing moves: the world's origin
        lower, upper = stacked.min(axis=0), stacked.max(axis=0)
        if np.linalg.norm(upper - lower) < 1e-9:  # a single body without extent
            lower, upper = lower - 0.5, upper + 0.5
        return Room(lower, upper)

    @property
    def size(self) -> float:
        """The diagonal, in m."""
        return float(np.linalg.norm(self.upper - self.lower))

    @property
    def centre(self) -> np.ndarray:
        return (self.lower + self.upper) / 2

    def camera(self) -> np.ndarray:
        """A place to look at the centre from: across the plane of a flat robot, else from aside."""
        spans = self.upper - self.lower
        flat = int(np.argmin(spans))
        direction = np.array([0.75, -1.0, 0.55])
        if spans[flat] < 0.35 * spans.max():
            direction = np.array([[1.0, -0.35, 0.3], [0.25, -1.0, 0.3], [0.0, -0.75, 1.0]])[flat]
        return self.centre + direction / np.linalg.norm(direction) * DISTANCE * self.size


@dataclass(frozen=True, eq=False)
class Outline:
    """Points in the coordinates of each body, and the size of the robot at its reference, in m."""

    anchors: dict[int, np.ndarray]  # body (or WORLD) -> (n, 3)
    size: float

    @staticmethod
    def of(model: Model) -> Outline:
        anchors = {i: _anchors(model, i) for i in (WORLD, *range(len(model.bodies)))}
        return Outline(anchors, Room.of(model, anchors, model.reference).size)

    def room(self, model: Model, positions: Mapping[int, np.ndarray]) -> Room:
        """What the robot takes up at the given positions of its tree joints."""
        return Room.of(model, self.anchors, positions)

    @property
    def radius(self) -> float:
        """Of the bars between joints."""
        return THIN * self.size

    def bars(self, index: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Where the bars of a body start and end: from its origin, on the ground from the first."""
        points = list(self.anchors[index])
        if index == WORLD:
            start, points = (points[0], points[1:]) if points else (np.zeros(3), [])
        else:
            start = np.zeros(3)
        return start, [p for p in points if np.linalg.norm(p - start) > 1e-3 * self.radius]


def _anchors(model: Model, index: int) -> np.ndarray:
    """Where joints, loops and (at the end of a chain) named frames or the mass sit on a body."""
    spinning = rotors(model)
    children = [body for body in model.bodies if body.parent == index]
    points = [
        body.joint.placement.r
        for body in children
        if body.joint.kind != "free" and body.index not in spinning
    ]
    for loop in model.loops:
        if isinstance(loop, LoopJoint):
            points += [X.r for body, X in loop_ends(loop) if body == index]
    if index != WORLD and index not in spinning:
        if not points:
            points = [frame.placement.r for frame in model.frames if frame.body == index]
        if not points:
            points = [model.bodies[index].com]
    different: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > 1e-6 for other in different):
            different.append(np.asarray(point, dtype=float))
    return np.array(different).reshape(-1, 3)


def _spread(body: Body, X: Transform) -> np.ndarray:
    """Corners about the centre of mass as far out as the mass is spread: a root is no point."""
    spread = np.sqrt(max(np.trace(body.inertia), 0.0) / body.mass) if body.mass > 0 else 0.0
    centre = X.r + X.E.T @ body.com
    # half of the spread: the anchors say where long bodies end
    return centre + 0.5 * spread * np.array([[-1.0, -1, -1], [1.0, 1, 1]])
