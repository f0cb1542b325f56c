"""MIT Mini Cheetah: a quadruped with a geared rotor behind each of its twelve joints.

Numbers: generalized_rbda v2.1.0, MIT licence, (c) 2023 Matthew Chignoli. The thigh's inertia there
violates the triangle inequality by 4 % and is kept as published.
"""

from __future__ import annotations

from ..arguments import public
from ..model import Model
from ..model.builder import ModelBuilder
from ._parts import Part, add_base, add_part, mirrored, rotor

BASE = "Floating Base"
TORSO_INERTIA = (0.011253, 0.0, 0.0, 0.036203, 0.0, 0.042673)
TORSO_CORNER = (0.19, 0.049, 0.05)
HALF_TURN = (0.0, 0.0, 3.14159265359)
MOTOR = {"mass": 0.055, "axial": 6.3e-5, "transverse": 3.3e-5}

# The front left leg: (joint, gear ratio, link, rotor), each link on the one before it.
LEG = (
    (
        "abad",
        6.0,
        Part(
            axis="x",
            xyz=(0.19, 0.049, 0.0),
            mass=0.54,
            com=(0.0, 0.036, 0.0),
            inertia=(0.000381, 5.8e-05, 4.5e-07, 0.00056, 9.5e-07, 0.000444),
        ),
        rotor("x", (0.125, 0.049, 0.0), **MOTOR),
    ),
    (
        "hip",
        6.0,
        Part(
            axis="y",
            xyz=(0.0, 0.062, 0.0),
            rpy=HALF_TURN,
            mass=0.634,
            com=(0.0, 0.016, -0.02),
            inertia=(0.001983, 0.000245, 1.3e-05, 0.002103, 1.5e-06, 0.000408),
            physical=False,
        ),
        rotor("y", (0.0, 0.04, 0.0), rpy=HALF_TURN, **MOTOR),
    ),
    (
        "knee",
        9.33,
        Part(
            axis="y",
            xyz=(0.0, 0.0, -0.209),
            mass=0.064,
            com=(0.0, 0.0, -0.061),
            inertia=(6e-06, 0.0, 0.0, 0.000248, 0.0, 0.000245),
        ),
        rotor("y", (0.0, 0.0, 0.0), **MOTOR),
    ),
)
LEGS = {"HR": (-1, -1), "HL": (-1, 1), "FR": (1, -1), "FL": (1, 1)}  # front or hind, left or right
LEG_CONTACTS = (
    ("hip", "hip_link", (0.0, 0.0, 0.0)),
    ("knee", "hip_link", (0.0, 0.0, -0.209)),
    ("foot", "knee_link", (0.0, -0.004, -0.195)),
)


@public
def mini_cheetah(rotors: bool = True) -> Model:
    """Mini Cheetah, 18 degrees of freedom; `rotors=False` leaves the twelve rotors away."""
    b = ModelBuilder("mini_cheetah" if rotors else "quadruped")
    add_base(b, BASE, "floating_base", 3.3, (0.0, 0.0, 0.0), TORSO_INERTIA)
    for leg, (front, side) in LEGS.items():
        _add_leg(b, leg, front, side, rotors)
    _add_contacts(b)
    return b.build()


def quadruped() -> Model:
    """A plain tree of 18 degrees of freedom: Mini Cheetah without its rotors."""
    return mini_cheetah(rotors=False)


def _add_leg(b: ModelBuilder, leg: str, front: int, side: int, rotors: bool) -> None:
    parent = BASE
    for joint, ratio, link, motor in LEG:
        name = f"{leg}_{joint}"
        link, motor = (_placed(part.mirrored(side), front) for part in (link, motor))
        add_part(b, f"{name}_link", f"{name}_link_joint", parent, link)
        if rotors:
            add_part(b, f"{name}_rotor", f"{name}_rotor_joint", parent, motor)
            b.add_coupling(
                f"{name}_gear", f"{name}_rotor_joint", ratios={f"{name}_link_joint": ratio}
            )
        b.add_actuator(f"{name}_motor", f"{name}_{'rotor' if rotors else 'link'}_joint")
        parent = f"{name}_link"


def _placed(part: Part, front: int) -> Part:
    x, y, z = part.xyz
    return part._replace(xyz=(front * x, y, z))


def _add_contacts(b: ModelBuilder) -> None:
    x, y, z = TORSO_CORNER
    corners = [(sx * x, sy * y, sz * z) for sz in (1, -1) for sy in (1, -1) for sx in (1, -1)]
    for i, corner in enumerate(corners, start=1):
        b.add_frame(f"torso-contact-{i}", BASE, corner)
    for leg, (_, side) in LEGS.items():
        for point, body, xyz in LEG_CONTACTS:
            b.add_frame(f"{leg}_{point}_contact", f"{leg}_{body}", mirrored(xyz, side))
