"""A 7-dof arm: the Franka Emika Panda with its hand, fingers locked at zero.

Numbers: panda.urdf of example-robot-data 5.0.0, after franka_description of franka_ros
(Apache-2.0, (c) Franka Emika GmbH). The last link includes the flange, the hand and the fingers.
"""

from __future__ import annotations

import numpy as np

from ..model import Model
from ..model.builder import ModelBuilder
from ._parts import Part, add_part

UP, DOWN = (-np.pi / 2, 0.0, 0.0), (np.pi / 2, 0.0, 0.0)

LINKS = (
    Part(
        axis="z",
        xyz=(0.0, 0.0, 0.333),
        mass=4.970684,
        com=(0.003875, 0.002081, -0.04762),
        inertia=(0.70337, -0.000139, 0.006772, 0.70661, 0.019169, 0.009117),
    ),
    Part(
        axis="z",
        xyz=(0.0, 0.0, 0.0),
        rpy=UP,
        mass=0.646926,
        com=(-0.003141, -0.02872, 0.003495),
        inertia=(0.007962, -0.003925, 0.010254, 0.02811, 0.000704, 0.025995),
    ),
    Part(
        axis="z",
        xyz=(0.0, -0.316, 0.0),
        rpy=DOWN,
        mass=3.228604,
        com=(0.027518, 0.039252, -0.066502),
        inertia=(0.037242, -0.004761, -0.011396, 0.036155, -0.012805, 0.01083),
    ),
    Part(
        axis="z",
        xyz=(0.0825, 0.0, 0.0),
        rpy=DOWN,
        mass=3.587895,
        com=(-0.05317, 0.104419, 0.027454),
        inertia=(0.025853, 0.007796, -0.001332, 0.019552, 0.008641, 0.028323),
    ),
    Part(
        axis="z",
        xyz=(-0.0825, 0.384, 0.0),
        rpy=UP,
        mass=1.225946,
        com=(-0.011953, 0.041065, -0.038437),
        inertia=(0.035549, -0.002117, -0.004037, 0.029474, 0.000229, 0.008627),
    ),
    Part(
        axis="z",
        xyz=(0.0, 0.0, 0.0),
        rpy=DOWN,
        mass=1.666555,
        com=(0.060149, -0.014117, -0.010517),
        inertia=(0.001964, 0.000109, -0.001158, 0.004354, 0.000341, 0.005433),
    ),
    Part(
        axis="z",
        xyz=(0.088, 0.0, 0.0),
        rpy=DOWN,
        mass=1.495522,
        com=(0.0017208742976286579, 0.00136035441716123, 0.1004852811486558),
        inertia=(
            0.016529853712634626,
            0.0003948922971191777,
            -0.0007066957106145017,
            0.014107248642161839,
            -0.001051105327046708,
            0.006676955556640956,
        ),
    ),
)
LIMITS = (  # lower and upper (rad), velocity (rad/s), effort (N m)
    (-2.8973, 2.8973, 2.175, 87.0),
    (-1.7628, 1.7628, 2.175, 87.0),
    (-2.8973, 2.8973, 2.175, 87.0),
    (-3.0718, -0.0698, 2.175, 87.0),
    (-2.8973, 2.8973, 2.61, 12.0),
    (-0.0175, 3.7525, 2.61, 12.0),
    (-2.8973, 2.8973, 2.61, 12.0),
)


def arm7() -> Model:
    """The Panda arm, seven revolute joints on a fixed base."""
    b = ModelBuilder("arm7")
    parent = "world"
    for i, (link, (lower, upper, velocity, effort)) in enumerate(zip(LINKS, LIMITS), start=1):
        body, joint = f"panda_link{i}", f"panda_joint{i}"
        add_part(
            b,
            body,
            joint,
            parent,
            link,
            lower=lower,
            upper=upper,
            velocity_limit=velocity,
            effort_limit=effort,
        )
        b.add_actuator(f"panda_motor{i}", joint, effort_limit=effort)
        parent = body
    b.add_frame("panda_hand_tcp", parent, (0.0, 0.0, 0.2104), rpy=(0.0, 0.0, -np.pi / 4))
    return b.build()
