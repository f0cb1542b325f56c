"""Small mechanisms with contacts, for the tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import grubler as gb
from grubler.contact.candidates import Candidate, Located, PointsOnPlane
from grubler.mechanism.parts import WORLD

G = 9.81


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
