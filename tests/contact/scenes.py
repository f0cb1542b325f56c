"""Small mechanisms with contacts, for the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import grubler as gb
from grubler.contact.candidates import checked_plan
from grubler.errors import InputError
from grubler.mechanism.parts import WORLD
from grubler.model import Model

G = 9.81


class Located(NamedTuple):
    """A candidate point at a posture."""

    gap: np.ndarray
    point: np.ndarray
    normal: np.ndarray


@dataclass(frozen=True)
class Candidate:
    """A point of a body that may touch another body, or the world."""

    body: int
    friction: float
    restitution: float = 0.0
    other: int = WORLD
    name: str = ""


@dataclass(frozen=True)
class PointsOnPlane:
    """Points, or spheres with a radius, on bodies above the plane normal·x = height.

    `centres` are the spheres' centres (or the points) in the axes of their bodies.
    """

    points: tuple[Candidate, ...]
    centres: tuple[tuple[float, float, float], ...]
    radii: tuple[float, ...]
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    height: float = 0.0

    @classmethod
    def of(
        cls, model: Model, spheres: Mapping[str, float] | Mapping, *, friction: float = 0.7,
        restitution: float = 0.0, normal=(0.0, 0.0, 1.0), height: float = 0.0,
    ) -> PointsOnPlane:  # fmt: skip
        """The plan of frames with spheres about their origins: `spheres` gives a radius, in m, by
        the name of a frame or body; radius 0 is a point."""
        if not spheres:
            raise InputError("no candidate points: name at least one frame with a radius")
        points, centres, radii = [], [], []
        for name, radius in spheres.items():
            frame = model.frame(name)
            if frame.body == WORLD:
                raise InputError(f"frame '{name}' is fixed to the world: it cannot meet the ground")
            if not radius >= 0.0:
                raise InputError(f"the radius of '{name}' is {radius}: give a number >= 0, in m")
            points.append(Candidate(frame.body, float(friction), float(restitution), WORLD, name))
            centres.append(tuple(float(x) for x in frame.placement.r))
            radii.append(float(radius))
        length = float(np.linalg.norm(normal))
        if not length > 0.0:
            raise InputError(f"normal is {normal}: give a direction")
        unit = tuple(float(x) / length for x in normal)
        return checked_plan(
            model, cls(tuple(points), tuple(centres), tuple(radii), unit, float(height))
        )

    @property
    def bodies(self) -> tuple[int, ...]:
        return tuple(point.body for point in self.points)

    def located(self, pose: Callable) -> list[Located]:
        normal, found = np.array(self.normal), []
        for point, centre, radius in zip(self.points, self.centres, self.radii, strict=True):
            R, p = pose(point.body)
            lowest = p + R @ np.array(centre) - radius * normal
            found.append(Located(normal @ lowest - self.height, lowest, normal))
        return found


def cuboid(name: str, mass: float, size):
    """(mass, com, inertia) of a solid box with edges `size`."""
    x, y, z = (s * s for s in size)
    return mass, (0.0, 0.0, 0.0), (mass * (y + z) / 12, 0, 0, mass * (x + z) / 12, 0,
                                   mass * (x + y) / 12)  # fmt: skip


def box(mass=1.0, size=(0.4, 0.3, 0.2), gravity=(0.0, 0.0, -G), corners="bottom"):
    """A free box with frames at its corners: (model, names of the frames)."""
    b = gb.ModelBuilder("box", gravity)
    b.add_body("box", *cuboid("box", mass, size))
    b.add_joint("free", "free", "world", "box")
    names = []
    for z in (-1,) if corners == "bottom" else (-1, 1):
        for x in (-1, 1):
            for y in (-1, 1):
                names.append(f"c{len(names)}")
                b.add_frame(names[-1], "box", tuple(np.array([x, y, z]) * size / 2))
    return b.build(), names


def ball(radius=0.1, mass=1.0, gravity=(0.0, 0.0, -G), inertia=None):
    """A free solid ball with a sphere about its centre."""
    I = 0.4 * mass * radius**2 if inertia is None else inertia
    b = gb.ModelBuilder("ball", gravity)
    b.add_body("ball", mass, (0.0, 0.0, 0.0), (I, 0, 0, I, 0, I), physical=inertia is None)
    b.add_joint("free", "free", "world", "ball")
    return b.build()


def on_incline(model, spheres, angle: float, friction: float, **options):
    """The plan of a plane that falls along +x by an angle, through the origin."""
    normal = (np.sin(angle), 0.0, np.cos(angle))
    return PointsOnPlane.of(model, spheres, friction=friction, normal=normal, **options)


def turned_about_y(angle: float) -> list[float]:
    return [np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0]


def free_state(model, position, quaternion=(1.0, 0.0, 0.0, 0.0)):
    """q of a floating robot at its reference, with its base placed."""
    q = model.neutral()
    q[:3], q[3:7] = position, quaternion
    return q


@dataclass(frozen=True)
class Balls:
    """A plan of spheres about the origins of bodies: pairs of them, and each against a plane."""

    points: tuple
    radii: tuple  # by body index
    normal: tuple | None = None

    @classmethod
    def of(cls, model, radii, pairs, friction=0.5, restitution=0.0):
        index = {name: model.body(name).index for name in radii}
        points = [
            Candidate(index[a], friction, restitution, WORLD if b is None else index[b], f"{a} {b}")
            for a, b in pairs
        ]
        return cls(tuple(points), tuple((index[n], r) for n, r in radii.items()))

    @property
    def bodies(self):
        return tuple(i for p in self.points for i in (p.body, p.other) if i != WORLD)

    def located(self, pose):
        radii, found = dict(self.radii), []
        for p in self.points:
            a = pose(p.body)[1]
            if p.other == WORLD:
                n, r = np.array([0.0, 0.0, 1.0]), radii[p.body]
                found.append(Located(a[2] - r, a - r * n, n))
                continue
            d = a - pose(p.other)[1]
            distance = np.sqrt(d @ d)
            n = d / distance
            ra, rb = radii[p.body], radii[p.other]
            found.append(Located(distance - ra - rb, a - ra * n, n))
        return found


@dataclass(frozen=True)
class Together:
    """Several plans as one."""

    plans: tuple

    @property
    def points(self):
        return tuple(p for plan in self.plans for p in plan.points)

    @property
    def bodies(self):
        return tuple(i for plan in self.plans for i in plan.bodies)

    def located(self, pose):
        return [found for plan in self.plans for found in plan.located(pose)]


def balls(masses, radius=0.1, gravity=(0.0, 0.0, -G)):
    """Free solid balls b0, b1, ... in one world."""
    b = gb.ModelBuilder("balls", gravity)
    for i, m in enumerate(masses):
        I = 0.4 * m * radius**2
        b.add_body(f"b{i}", m, (0.0, 0.0, 0.0), (I, 0, 0, I, 0, I))
        b.add_joint(f"free{i}", "free", "world", f"b{i}")
    return b.build()


def stacked_q(model, positions):
    """q of free bodies at positions, not turned."""
    return np.concatenate([[*p, 1.0, 0.0, 0.0, 0.0] for p in positions])


def world_velocity(model, q, v, body):
    """(ω, velocity of the origin) of a free body in world axes."""
    R, _ = gb.frame_pose(model, q, body)
    J = gb.frame_jacobian(model, q, body)
    return R @ (J[:3] @ v), R @ (J[3:] @ v)
