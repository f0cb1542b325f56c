"""Planar linkages closed by a revolute joint.

`four_bar` is a crank-rocker of our own. Numbers of the others: generalized_rbda v2.1.0, MIT
licence, (c) 2023 Matthew Chignoli; the planar leg's links have inertia about z alone.
"""

from __future__ import annotations

from typing import Any

from ..model import Model
from ..model.builder import ModelBuilder

BAR: dict[Any, Any] = {"mass": 3.3, "inertia": (0.011253, 0.0, 0.0, 0.036203, 0.0, 0.042673)}
Y = (0.0, 1.0, 0.0)


def four_bar() -> Model:
    """A crank-rocker in the x-z plane: ground 0.5 m, crank 0.2, coupler 0.45, follower 0.4."""
    b = ModelBuilder("four_bar")
    b.add_body("crank", 0.7, (0.08, 0.0, 0.015), (0.0024, 0, 0, 0.004, 0, 0.0032))
    b.add_body("coupler", 1.1, (0.21, 0.0, -0.02), (0.0126, 0, 0, 0.021, 0, 0.0168))
    b.add_body("follower", 0.9, (0.17, 0.0, 0.01), (0.0078, 0, 0, 0.013, 0, 0.0104))
    b.add_joint("crank", "revolute", "world", "crank", axis=Y, independent=True)
    b.add_joint("coupler", "revolute", "crank", "coupler", xyz=(0.2, 0.0, 0.0), axis=Y)
    b.add_joint("follower", "revolute", "world", "follower", xyz=(0.5, 0.0, 0.0), axis=Y)
    b.add_loop(
        "pin",
        "revolute",
        "coupler",
        "follower",
        predecessor_xyz=(0.45, 0.0, 0.0),
        successor_xyz=(0.4, 0.0, 0.0),
        axis=Y,
    )
    b.add_frame("pin", "coupler", (0.45, 0.0, 0.0))
    b.add_actuator("motor", "crank")
    return b.build(reference={"crank": 1.05, "coupler": -0.53, "follower": 1.6})


def parallel_four_bar() -> Model:
    """A parallelogram in the x-y plane: ground and coupler 1 m, both rockers 0.5 m."""
    b = ModelBuilder("parallel_four_bar")
    for name in ("link1", "link2", "link3"):
        b.add_body(name, **BAR)
    limits = {"lower": -13.14, "upper": 13.14, "velocity_limit": 1.0, "effort_limit": 30.0}
    b.add_joint("joint1", "revolute", "world", "link1", independent=True, **limits)
    b.add_joint(
        "joint2", "revolute", "link1", "link2", xyz=(0.5, 0, 0), independent=False, **limits
    )
    b.add_joint(
        "joint3", "revolute", "world", "link3", xyz=(1.0, 0, 0), independent=False, **limits
    )
    b.add_loop(
        "loop1",
        "revolute",
        "link2",
        "link3",
        predecessor_xyz=(1.0, 0.0, 0.0),
        successor_xyz=(0.5, 0.0, 0.0),
    )
    b.add_frame("tip_link2", "link2", (0.1, 0.2, 0.3))
    b.add_actuator("motor", "joint1", effort_limit=30.0)
    return b.build(reference={"joint1": 1.0, "joint2": -1.0, "joint3": 1.0})


def six_bar() -> Model:
    """Five bars and the ground in the x-y plane, three degrees of freedom."""
    b = ModelBuilder("six_bar")
    for i in range(1, 6):
        b.add_body(f"link{i}", **BAR)
    on = {1: ("world", 0.0), 2: ("link1", 0.1), 3: ("link2", 0.2)}
    on |= {4: ("world", 0.0), 5: ("link4", 0.4)}
    for i, (parent, x) in on.items():
        b.add_joint(
            f"joint{i}", "continuous", parent, f"link{i}", xyz=(x, 0.0, 0.0), independent=i <= 3
        )
    b.add_loop(
        "constraint1",
        "revolute",
        "link3",
        "link5",
        predecessor_xyz=(0.3, 0.0, 0.0),
        successor_xyz=(0.5, 0.0, 0.0),
    )
    b.add_frame("tip", "link3", (0.3, 0.0, 0.0))
    for i in (1, 2, 3):
        b.add_actuator(f"motor{i}", f"joint{i}")
    start = {"joint1": 0.3, "joint2": 0.6, "joint3": 0.8, "joint4": 0.2, "joint5": 1.9}
    return b.build(reference=start)


def planar_leg_linkage() -> Model:
    """A thigh and on it a parallelogram whose fourth bar is the foot; two degrees of freedom."""
    b = ModelBuilder("planar_leg_linkage")
    bodies = {  # mass, x of the centre of mass, izz
        "thigh": (0.23, 0.0364, 4.5389e-5),
        "shank_driver": (0.004, 0.048, 3.257e-6),
        "shank_support": (0.225, 0.04, 2.2918e-5),
        "foot": (0.017, 0.0635, 2.2176e-5),
    }
    for name, (mass, x, izz) in bodies.items():
        b.add_body(name, mass, (x, 0.0, 0.0), (0, 0, 0, 0, 0, izz), physical=False)
    joints = (
        ("base_to_thigh", "world", "thigh", 0.0, None),
        ("thigh_to_driver", "thigh", "shank_driver", 0.011, True),
        ("thigh_to_support", "thigh", "shank_support", 0.042, False),
        ("driver_to_foot", "shank_driver", "foot", 0.096, False),
    )
    for name, parent, child, x, independent in joints:
        b.add_joint(name, "continuous", parent, child, xyz=(x, 0.0, 0.0), independent=independent)
    b.add_loop(
        "linkage",
        "revolute",
        "foot",
        "shank_support",
        predecessor_xyz=(0.031, 0.0, 0.0),
        successor_xyz=(0.096, 0.0, 0.0),
    )
    b.add_frame("toe", "foot", (0.127, 0.0, 0.0))
    b.add_actuator("thigh_motor", "base_to_thigh")
    b.add_actuator("driver_motor", "thigh_to_driver")
    start = {"thigh_to_driver": 1.0, "thigh_to_support": 1.0, "driver_to_foot": -1.0}
    return b.build(reference=start)
