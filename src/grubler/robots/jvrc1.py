"""JVRC-1: a humanoid of 38 degrees of freedom, a rotor behind each of its 32 joints.

Numbers: generalized_rbda v2.1.0, MIT licence, (c) 2023 Matthew Chignoli. The rotors' inertia there
has its large moment about z whatever their axis, larger than the sum of the others, and is kept as
published.
"""

from __future__ import annotations

from ..arguments import public
from ..model import Model
from ..model.builder import ModelBuilder
from ._parts import Part, add_base, add_part

BASE = "pelvis"
RATIO = 6.0
ROTOR_MASS, ROTOR_INERTIA = 0.07, (2e-05, 0.0, 0.0, 2e-05, 0.0, 5e-05)

# One row a joint: body, what its joint's name says, parent, axis, place on the parent, mass,
# centre of mass, principal moments of inertia.
TRUNK = (
    ("waist_y", "base-to-waist-yaw", "pelvis", "z", (0, 0, 0.192),
     1.0, (0, 0, -0.07), (0.00173, 0.00173, 0.0032)),
    ("waist_p", "waist-yaw-to-waist-pitch", "waist_y", "y", (0, 0, 0),
     1.0, (0, 0, 0), (0.002425, 0.002425, 0.002425)),
    ("waist_r", "waist-pitch-to-waist-roll", "waist_p", "x", (0, 0, 0),
     10.0, (0.02, 0, 0.24), (0.157083, 0.101083, 0.1367)),
    ("neck_y", "waist-roll-to-neck-yaw", "waist_r", "z", (-0.003, 0, 0.453),
     0.5, (0, 0, -0.05), (0.000729167, 0.000729167, 0.000625)),
    ("neck_r", "neck-yaw-to-neck-roll", "neck_y", "x", (0, 0, 0),
     0.5, (0, 0, 0), (0.0005, 0.0005, 0.0005)),
    ("neck_p", "neck-roll-to-neck-pitch", "neck_r", "y", (0, 0, 0),
     2.0, (0.01, 0, 0.11), (0.00968, 0.00968, 0.00968)),
)  # fmt: skip

# The left leg, arm and hand; {} is the side. The right ones are their mirror images.
LEG = (
    ("{}_hip_p", "base-to-{}-hip-pitch", "pelvis", "y", (0, 0.096, 0),
     1.0, (0, 0, 0), (0.00196, 0.00196, 0.00196)),
    ("{}_hip_r", "{}-hip-pitch-to-hip-roll", "{}_hip_p", "x", (0, 0, 0),
     1.0, (0, 0, 0), (0.00196, 0.00196, 0.00196)),
    ("{}_hip_y", "{}-hip-roll-to-hip-yaw", "{}_hip_r", "z", (0, 0, 0),
     3.0, (0.01, 0, -0.22), (0.031925, 0.034525, 0.00865)),
    ("{}_knee", "{}-hip-yaw-to-knee", "{}_hip_y", "y", (-0.02, 0, -0.389),
     3.0, (0.04, 0, -0.16), (0.031925, 0.034525, 0.00865)),
    ("{}_ankle_r", "{}-knee-to-ankle-roll", "{}_knee", "x", (0.04, 0, -0.357),
     1.0, (0, 0, 0), (0.00064, 0.00064, 0.00064)),
    ("{}_ankle_p", "{}-ankle-roll-to-ankle-pitch", "{}_ankle_r", "y", (0, 0, 0),
     1.5, (0.03, 0, -0.07), (0.001417, 0.005617, 0.006217)),
)  # fmt: skip
ARM = (
    ("{}_shoulder_p", "waist-roll-to-{}-shoulder-pitch", "waist_r", "y", (0, 0.24, 0.33),
     1.0, (0, 0, 0), (0.00196, 0.00196, 0.00196)),
    ("{}_shoulder_r", "{}-shoulder-pitch-to-shoulder-roll", "{}_shoulder_p", "x", (0, 0, 0),
     1.0, (0, 0, 0), (0.00196, 0.00196, 0.00196)),
    ("{}_shoulder_y", "{}-shoulder-roll-to-shoulder-yaw", "{}_shoulder_r", "z", (0, 0, 0),
     2.0, (-0.01, 0, -0.19), (0.01365, 0.0146, 0.00635)),
    ("{}_elbow_p", "{}-shoulder-yaw-to-elbow-pitch", "{}_shoulder_y", "y", (0.004, 0, -0.305),
     1.0, (-0.02, 0, -0.1), (0.010675, 0.010675, 0.0027)),
    ("{}_elbow_y", "{}-elbow-pitch-to-elbow-yaw", "{}_elbow_p", "z", (-0.004, 0, -0.239),
     1.0, (0, 0, 0), (0.00064, 0.00064, 0.00064)),
    ("{}_wrist_r", "{}-elbow-yaw-to-wrist-roll", "{}_elbow_y", "x", (0, 0, 0),
     0.5, (0, 0, 0), (0.00032, 0.00032, 0.00032)),
)  # fmt: skip
HAND = (
    ("{}_wrist_y", "{}-wrist-roll-to-wrist-yaw", "{}_wrist_r", "z", (0, 0, 0),
     0.5, (0, -0.01, -0.06), (0.0004625, 0.0007625, 0.0004625)),
)  # fmt: skip

SIDES = {"left": 1, "right": -1}
CONTACTS = (
    ("left_toe_contact", "left_ankle_p", (0.1, 0.0, -0.041)),
    ("left_heel_contact", "left_ankle_p", (-0.05, 0.0, -0.041)),
    ("right_toe_contact", "right_ankle_p", (-0.1, 0.0, -0.041)),
    ("right_heel_contact", "right_ankle_p", (-0.05, 0.0, -0.041)),
    ("left_wrist_contact", "left_wrist_y", (0.0, 0.0, 0.0)),
    ("left_hand_contact", "left_wrist_y", (0.0, 0.0, -0.27)),
    ("right_wrist_contact", "right_wrist_y", (0.0, 0.0, 0.0)),
    ("right_hand_contact", "right_wrist_y", (0.0, 0.0, -0.27)),
)


@public
def jvrc1(rotors: bool = True) -> Model:
    """JVRC-1; `rotors=False` leaves its 32 rotors away."""
    b = ModelBuilder("jvrc1")
    add_base(
        b, BASE, "base", 10.0, (-0.01, 0.0, 0.034), (0.089583, 0.0, 0.0, 0.089583, 0.0, 0.1125)
    )
    _add_joints(b, TRUNK, "", 1, rotors)
    for table in (LEG, ARM, HAND):
        for side, sign in SIDES.items():
            _add_joints(b, table, side, sign, rotors)
    for name, body, xyz in CONTACTS:
        b.add_frame(name, body, xyz)
    return b.build()


def _add_joints(b: ModelBuilder, table, side: str, sign: int, rotors: bool) -> None:
    for body, joint, parent, axis, xyz, mass, com, moments in table:
        body, joint, parent = (text.format(side) for text in (body, joint, parent))
        ixx, iyy, izz = moments
        link = Part(axis, xyz, mass, com, (ixx, 0.0, 0.0, iyy, 0.0, izz)).mirrored(sign)
        add_part(b, body, joint, parent, link)
        if rotors:
            rotor = Part(axis, link.xyz, ROTOR_MASS, (0.0, 0.0, 0.0), ROTOR_INERTIA, physical=False)
            add_part(b, f"{body}_rotor", f"{joint}-rotor", parent, rotor)
            b.add_coupling(f"{body}_gear", f"{joint}-rotor", ratios={joint: RATIO})
        b.add_actuator(f"{body}_motor", f"{joint}-rotor" if rotors else joint)
