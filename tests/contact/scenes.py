"""Small mechanisms with contacts, for the tests."""

from __future__ import annotations

import numpy as np

import grubler as gb
from grubler.contact.candidates import PointsOnPlane

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
