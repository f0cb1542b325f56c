"""Tello: a humanoid whose hips and knee-ankles are two-motor differentials.

Numbers and constraints: generalized_rbda v2.1.0, MIT licence, (c) 2023 Matthew Chignoli, with the
differentials in the form of its v0.1.0. Two models of one robot:

- `tello`: the differentials implicit, phi(q) = 0, the motors' angles independent;
- `tello_explicit`: their closed form, the links' angles independent, the motors' angles gamma(y).

In both, y1 and y2 are the output angles of the two gearboxes, motor angle / 6, and (a, b) the
angles of the two links that they move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..model import Model
from ..model.builder import ModelBuilder
from ._parts import Part, add_base, add_part, rotor
from .mit_humanoid import ARM

if TYPE_CHECKING:
    from ..typing import Array

BASE = "torso"
RATIO = 6.0
MOTOR = {"mass": 0.07, "axial": 5.1512e-5, "transverse": 2.5984e-5}
QUARTER, HALF = 1.570796326795, 3.14159265359

CLAMP = Part(
    axis="z",
    xyz=(0.0, 0.126, -0.087),
    mass=1.3289,
    com=(-0.001, 0.0, -0.0069),
    inertia=(0.0032, 0.0, 0.0001, 0.0033, 0.0, 0.0027),
)
CLAMP_ROTOR = rotor("z", (0.0, 0.126, -0.026), rpy=(HALF, 0.0, 0.0), **MOTOR)
HIP_ROTORS = (
    rotor("z", (0.0, 0.04, 0.0), rpy=(QUARTER, 0.0, HALF), **MOTOR),
    rotor("z", (0.0, -0.04, 0.0), rpy=(QUARTER, 0.0, 0.0), **MOTOR),
)
GIMBAL = Part(
    axis="x",
    xyz=(0.0, 0.0, -0.1425),
    mass=0.4433,
    com=(-0.0027, 0.0, 0.0258),
    inertia=(0.0018, 0.0, 0.0, 0.0017, 0.0, 0.0015),
)
THIGH = Part(
    axis="y",
    xyz=(0.0, 0.0, 0.0),
    mass=1.5424,
    com=(0.003, -0.0001, -0.0323),
    inertia=(0.0103, 0.0, -0.0005, 0.0097, 0.0, 0.0027),
)
KNEE_ROTORS = (
    rotor("z", (0.0, 0.02655, 0.0), rpy=(QUARTER, 0.0, 0.0), **MOTOR),
    rotor("z", (0.0, -0.02655, 0.0), rpy=(QUARTER, 0.0, HALF), **MOTOR),
)
SHIN = Part(
    axis="y",
    xyz=(0.0, 0.0, -0.2268),
    mass=0.3072,
    com=(0.0047, -0.0003, -0.1043),
    inertia=(0.0054, 0.0, -0.0002, 0.0054, 0.0, 0.0001),
)
FOOT = Part(
    axis="y",
    xyz=(0.0, 0.0, -0.26),
    mass=0.1025,
    com=(0.0042, 0.0, -0.0251),
    inertia=(9.4e-05, 0.0, -3.8e-06, 0.0001773, 0.0, 9.01e-05),
)

SIDES = {"left": 1, "right": -1}
# The joints of the arm of the MIT Humanoid under Tello's names: body, rotor, and what the joint's
# name says about both of its ends.
ARM_NAMES = (
    ("shoulder-ry", "torso", "shoulder-ry"),
    ("shoulder-rx", "shoulder-ry", "shoulder-rx"),
    ("shoulder-rz-link", "shoulder-rx", "shoulder-rz"),
    ("elbow-link", "shoulder-rz", "elbow"),
)
CONTACTS = (
    ("left-toe_contact", "left-foot", (0.1, 0.0, -0.041)),
    ("left-heel_contact", "left-foot", (-0.05, 0.0, -0.041)),
    ("right-toe_contact", "right-foot", (-0.1, 0.0, -0.041)),
    ("right-heel_contact", "right-foot", (-0.05, 0.0, -0.041)),
    ("left-elbow-contact", "left-elbow-link", (0.0, 0.0, 0.0)),
    ("left-hand-contact", "left-elbow-link", (0.0, 0.0, -0.27)),
    ("right-elbow-contact", "right-elbow-link", (0.0, 0.0, 0.0)),
    ("right-hand-contact", "right-elbow-link", (0.0, 0.0, -0.27)),
)


def hip_phi(q: Array) -> Array:
    """The hip differential: zero for motor angles q[0], q[1], gimbal q[2] and thigh q[3]."""
    y1, y2, a, b = q[0] / RATIO, q[1] / RATIO, q[2], q[3]
    return np.stack([_hip_row(y1, a, b, 1.0), _hip_row(y2, a, b, -1.0)])


def _hip_row(y, a, b, s):
    return (
        57 / 2500 * np.sin(y)
        - 49 / 5000 * np.cos(a)
        - s * 399 / 20000 * np.sin(a)
        - 8 / 625 * np.cos(y) * np.cos(b)
        - 57 / 2500 * np.cos(a) * np.sin(b)
        - s * 7 / 625 * np.sin(y) * np.sin(a)
        + s * 7 / 625 * np.sin(a) * np.sin(b)
        - 8 / 625 * np.cos(a) * np.sin(y) * np.sin(b)
        + 3021 / 160000
    )


def hip_gamma(y: Array) -> Array:
    """The motor angles of the hip differential at gimbal angle y[0] and thigh angle y[1]."""
    return RATIO * np.stack([_hip_motor(y[0], y[1], 1.0), _hip_motor(y[0], y[1], -1.0)])


def _hip_motor(a, b, s):
    A = 57 / 2500 - 8 / 625 * np.cos(a) * np.sin(b) - s * 7 / 625 * np.sin(a)
    B = -8 / 625 * np.cos(b)
    C = (
        49 / 5000 * np.cos(a)
        + s * 399 / 20000 * np.sin(a)
        + 57 / 2500 * np.cos(a) * np.sin(b)
        - s * 7 / 625 * np.sin(a) * np.sin(b)
        - 3021 / 160000
    )
    D = np.sqrt(A * A + B * B - C * C)
    return np.arctan2(A * C - B * D, B * C + A * D)


def knee_phi(q: Array) -> Array:
    """The knee-ankle differential: zero for motor angles q[0], q[1], shin q[2] and foot q[3]."""
    y1, y2, a, b = q[0] / RATIO, q[1] / RATIO, q[2], q[3]
    d = (y1 - y2) / 2
    ankle = (
        21 / 6250 * np.cos(d + 1979 * np.pi / 4500)
        - 13 / 625 * np.cos(d + 493 * np.pi / 1500)
        - 273 / 12500 * np.cos(np.pi / 9)
        - 7 / 2500 * np.sin(d + b + 231 * np.pi / 500)
        + 91 / 5000 * np.sin(b + 2 * np.pi / 15)
        - 147 / 50000 * np.sin(b + np.pi / 45)
        + 163349 / 6250000
    )
    return np.stack([ankle, a - (y1 + y2) / 2])


def knee_gamma(y: Array) -> Array:
    """The motor angles of the knee-ankle differential at shin angle y[0] and foot angle y[1]."""
    a, beta = y[0], y[1] + np.deg2rad(180 - 66)
    c9, s9 = np.cos(np.pi / 9), np.sin(np.pi / 9)
    A = -21 / 6250 * s9 - 7 / 2500 * np.sin(beta)
    B = 13 / 625 - 7 / 2500 * np.cos(beta) - 21 / 6250 * c9
    C = (
        273 / 12500 * c9
        + 91 / 5000 * np.cos(beta)
        - 147 / 50000 * (c9 * np.cos(beta) + s9 * np.sin(beta))
        - 163349 / 6250000
    )
    D = np.sqrt(A * A + B * B - C * C)
    half = np.arctan2(B * D + A * C, B * C - A * D) - np.deg2rad(180 - 59.16)
    return RATIO * np.stack([a - half, a + half])


def tello() -> Model:
    """Tello with implicit differentials: the coordinates of its legs are the motor angles."""
    return _tello("tello", explicit=False)


def tello_explicit() -> Model:
    """Tello with its differentials in closed form: the coordinates are the link angles."""
    return _tello("tello_explicit", explicit=True)


def _tello(name: str, explicit: bool) -> Model:
    b = ModelBuilder(name)
    com, inertia = (0.0073, -0.0013, -0.0023), (0.0366, 0.0, -0.0006, 0.0142, -0.0002, 0.0291)
    add_base(b, BASE, "torso-to-ground", 2.3008, com, inertia)
    reference: dict[str, float] = {}
    for side in SIDES:
        reference |= _add_leg(b, side, explicit)
    for side in SIDES:
        _add_arm(b, side)
    for contact, body, xyz in CONTACTS:
        b.add_frame(contact, body, xyz)
    return b.build(reference=None if explicit else reference)


def _add_leg(b: ModelBuilder, side: str, explicit: bool) -> dict[str, float]:
    """Add a leg; return the motor angles that put its links at zero."""
    clamp, thigh = f"{side}-hip-clamp", f"{side}-thigh"
    _add_geared(
        b,
        clamp,
        f"{clamp}-rotor",
        f"torso-to-{clamp}",
        BASE,
        CLAMP,
        CLAMP_ROTOR,
        RATIO,
        SIDES[side],
    )

    hip = [f"{clamp}-to-hip-rotor-1", f"{clamp}-to-hip-rotor-2"]
    hip_links = [f"{clamp}-to-gimbal", f"{side}-gimbal-to-thigh"]
    for i in (0, 1):
        name = f"{side}-hip-rotor-{i + 1}"
        add_part(b, name, hip[i], clamp, HIP_ROTORS[i], independent=not explicit)
    add_part(b, f"{side}-gimbal", hip_links[0], clamp, GIMBAL)
    add_part(b, thigh, hip_links[1], f"{side}-gimbal", THIGH)

    knee = [f"{thigh}-to-knee-ankle-rotor-1", f"{thigh}-to-knee-ankle-rotor-2"]
    knee_links = [f"{thigh}-to-shin", f"{side}-shin-to-foot"]
    for i in (0, 1):
        name = f"{side}-knee-ankle-rotor-{i + 1}"
        add_part(b, name, knee[i], thigh, KNEE_ROTORS[i], independent=not explicit)
    add_part(b, f"{side}-shin", knee_links[0], thigh, SHIN)
    add_part(b, f"{side}-foot", knee_links[1], f"{side}-shin", FOOT)

    loops = (
        (f"{side}-hip-differential", hip, hip_links, hip_phi, hip_gamma),
        (f"{side}-knee-ankle-differential", knee, knee_links, knee_phi, knee_gamma),
    )
    reference = {}
    for name, motors, links, phi, gamma in loops:
        if explicit:
            b.add_constraint(name, gamma=gamma, independent=links, dependent=motors)
        else:
            b.add_constraint(name, phi=phi, joints=motors + links)
        for i, angle in enumerate(gamma(np.zeros(2))):
            reference[motors[i]] = float(angle)
            b.add_actuator(f"{name}-motor-{i + 1}", motors[i])
    return reference


def _add_arm(b: ModelBuilder, side: str) -> None:
    parent = BASE
    for (_, ratio, link, motor), (body, start, end) in zip(ARM, ARM_NAMES):
        body, rotor_body = f"{side}-{body}", f"{side}-{end}-rotor"
        joint = f"torso-to-{side}-{end}" if start == "torso" else f"{side}-{start}-to-{end}"
        light = motor._replace(mass=0.0)
        _add_geared(b, body, rotor_body, joint, parent, link, light, ratio, SIDES[side])
        parent = body


def _add_geared(b, body, rotor_body, joint, parent, link, motor, ratio, side) -> None:
    add_part(b, body, joint, parent, link.mirrored(side))
    add_part(b, rotor_body, f"{joint}-rotor", parent, motor.mirrored(side))
    b.add_coupling(f"{body}-gear", f"{joint}-rotor", ratios={joint: ratio})
    b.add_actuator(f"{body}-motor", f"{joint}-rotor")
