"""MIT Humanoid: 24 degrees of freedom, a rotor behind each of its 18 joints; the ankle rotor sits
in the thigh and drives the ankle through two belts, past the knee.

Numbers: generalized_rbda v2.1.0, MIT licence, (c) 2023 Matthew Chignoli.
"""

from __future__ import annotations

from ..arguments import public
from ..errors import InputError
from ..model import Model
from ..model.builder import ModelBuilder
from ._parts import Part, add_base, add_part, mirrored, rotor

BASE = "Floating Base"
TORSO_MASS = 8.52
TORSO_COM = (0.009896, 0.004771, 0.100522)
TORSO_INERTIA = (0.172699, 0.001419, 0.004023, 0.105949, -0.001672, 0.091906)
TORSO_CORNER = (0.05, 0.082, 0.15196)
SMALL_MOTOR = {"mass": 0.05, "axial": 1.6841e-4, "transverse": 1.084e-4}
LARGE_MOTOR = {"mass": 0.1, "axial": 5.548e-4, "transverse": 3.443e-4}
HIP_Z_TILT = (0.0, -0.174533, 0.0)
HIP_X_TILT = (0.0, 0.436332, 0.0)
HIP_Y_TILT = (0.0, -0.261799, 0.0)

# The left arm: (joint, gear ratio, link, rotor), each link on the one before it.
ARM = (
    (
        "shoulder_ry",
        6.0,
        Part(
            axis="y",
            xyz=(0.01346, 0.17608, 0.24657),
            mass=0.788506,
            com=(0.009265, 0.052623, -0.0001249),
            inertia=(0.0013678, 2.66e-05, 2.1e-06, 0.0007392, -1.2e-06, 0.000884),
        ),
        rotor("y", (0.01346, 0.16, 0.24657), **SMALL_MOTOR),
    ),
    (
        "shoulder_rx",
        6.0,
        Part(
            axis="x",
            xyz=(0.0, 0.0575, 0.0),
            mass=0.80125,
            com=(0.0006041, 0.0001221, -0.082361),
            inertia=(0.0011524, 7e-07, 3.96e-05, 0.0011921, 1.4e-06, 0.0012386),
        ),
        rotor("x", (0.0, 0.0575, 0.0), **SMALL_MOTOR),
    ),
    (
        "shoulder_rz",
        6.0,
        Part(
            axis="z",
            xyz=(0.0, 0.0, -0.1025),
            mass=0.905588,
            com=(0.0001703, -0.016797, -0.06),
            inertia=(0.0012713, 1e-06, -8e-06, 0.0017477, -2.25e-05, 0.0008191),
        ),
        rotor("z", (0.0, 0.0, -0.1025), **SMALL_MOTOR),
    ),
    (
        "elbow",
        9.0,
        Part(
            axis="y",
            xyz=(0.0, 0.0, -0.1455),
            mass=0.34839,
            com=(-0.0059578, 0.000111, -0.0426735),
            inertia=(0.00157, 2e-07, 3.35e-05, 0.0016167, 3e-06, 6.19e-05),
        ),
        rotor("y", (0.0, -0.0325, -0.06), **SMALL_MOTOR),
    ),
)

# The left hip, laid out like the arm.
HIP = (
    (
        "hip_rz",
        6.0,
        Part(
            axis="z",
            xyz=(-0.00565, 0.082, -0.05735),
            rpy=HIP_Z_TILT,
            mass=0.84563,
            com=(-0.064842, -3.6e-05, -0.06309),
            inertia=(0.0015373, 1.1e-06, 0.0005578, 0.0014252, 2.4e-06, 0.0012028),
        ),
        rotor("z", (-0.00842837, 0.082, -0.041593), rpy=HIP_Z_TILT, **SMALL_MOTOR),
    ),
    (
        "hip_rx",
        6.0,
        Part(
            axis="x",
            xyz=(-0.06435, 0.0, -0.07499),
            rpy=HIP_X_TILT,
            mass=1.20868,
            com=(0.067232, -0.013018, 0.0001831),
            inertia=(0.0017535, -6.3e-06, -8e-05, 0.003338, -1.3e-05, 0.0019927),
        ),
        rotor("x", (-0.0827, 0.0, -0.066436), rpy=HIP_X_TILT, **SMALL_MOTOR),
    ),
    (
        "hip_ry",
        6.0,
        Part(
            axis="y",
            xyz=(0.071, -0.0018375, 0.0),
            rpy=HIP_Y_TILT,
            mass=2.64093,
            com=(0.0132054, 0.0269864, -0.096021),
            inertia=(0.0243761, 9.96e-05, 0.0006548, 0.0259015, 0.0026713, 0.0038929),
        ),
        rotor("y", (0.071, -0.024, 0.0), rpy=HIP_Y_TILT, **LARGE_MOTOR),
    ),
)

# The left knee and ankle: both rotors sit in the thigh, gear 6 and belt 2 in front of each.
KNEE_RATIO = ANKLE_RATIO = 12.0
KNEE = Part(
    axis="y",
    xyz=(0.0, 0.0, -0.267),
    mass=0.35435,
    com=(0.00528, 0.0014762, -0.13201),
    inertia=(0.003051, 0.0, 8.73e-05, 0.003033, 3.93e-05, 0.0002529),
)
KNEE_ROTOR = rotor("y", (0.013, 0.0497, -0.0178), **LARGE_MOTOR)
ANKLE = Part(
    axis="y",
    xyz=(0.0, 0.0, -0.2785),
    mass=0.280951,
    com=(0.022623, 0.0, -0.012826),
    inertia=(8.42e-05, 0.0, -4.88e-05, 0.0007959, 0.0, 0.0007681),
)
ANKLE_ROTOR = rotor("y", (0.01563, 0.0454, -0.13354), **SMALL_MOTOR)

SIDES = {"right": -1, "left": 1}
ARM_CONTACTS = (
    ("elbow", "elbow_link", (0.0, 0.0, 0.0)),
    ("hand", "elbow_link", (0.0, 0.0, -0.27)),
)
LEG_CONTACTS = (
    ("knee", "hip_ry_link", (0.0, 0.0, -0.267)),
    ("toe", "ankle_link", (0.1, 0.0, -0.041)),
    ("heel", "ankle_link", (-0.05, 0.0, -0.041)),
)


@public
def mit_humanoid(rotors: bool = True) -> Model:
    """The MIT Humanoid; `rotors=False` leaves its 18 rotors away."""
    b = ModelBuilder("mit_humanoid" if rotors else "humanoid")
    add_base(b, BASE, "floating_base", TORSO_MASS, TORSO_COM, TORSO_INERTIA)
    for name, side in SIDES.items():
        _add_chain(b, f"{name}_", side, BASE, ARM, rotors)
        _add_leg(b, f"{name}_", side, BASE, rotors)
    x, y, z = TORSO_CORNER
    corners = [(sx * x, sy * y, sz * z) for sz in (1, -1) for sy in (1, -1) for sx in (1, -1)]
    for i, corner in enumerate(corners, start=1):
        b.add_frame(f"torso-contact-{i}", BASE, corner)
    for name, side in SIDES.items():
        _add_contacts(b, f"{name}_", side, ARM_CONTACTS + LEG_CONTACTS)
    return b.build()


def humanoid() -> Model:
    """A plain tree of 24 degrees of freedom: the MIT Humanoid without its rotors."""
    return mit_humanoid(rotors=False)


@public
def mit_humanoid_leg(side: str = "right", rotors: bool = True, rotor_mass: bool = False) -> Model:
    """One leg of the MIT Humanoid on a fixed base, 5 degrees of freedom.

    Its rotors have inertia but no mass, as in the accuracy experiment of Chignoli et al.;
    `rotor_mass=True` gives them the mass they have on the whole robot.
    """
    if not isinstance(side, str) or side not in SIDES:
        raise InputError(f"a leg is 'left' or 'right', not {side!r}")
    b = ModelBuilder("mit_humanoid_leg")
    _add_leg(b, "", SIDES[side], "world", rotors, rotor_mass)
    _add_contacts(b, "", SIDES[side], LEG_CONTACTS)
    return b.build()


def _add_chain(b, prefix, side, parent, chain, rotors, rotor_mass=True) -> str:
    """Add geared joints one on the other; return the last link's name."""
    for joint, ratio, link, motor in chain:
        name = f"{prefix}{joint}"
        add_part(b, f"{name}_link", f"{name}_link_joint", parent, link.mirrored(side))
        if rotors:
            motor = _weighed(motor.mirrored(side), rotor_mass)
            add_part(b, f"{name}_rotor", f"{name}_rotor_joint", parent, motor)
            b.add_coupling(
                f"{name}_gear", f"{name}_rotor_joint", ratios={f"{name}_link_joint": ratio}
            )
        b.add_actuator(f"{name}_motor", f"{name}_{'rotor' if rotors else 'link'}_joint")
        parent = f"{name}_link"
    return parent


def _add_leg(b, prefix, side, parent, rotors, rotor_mass=True) -> None:
    thigh = _add_chain(b, prefix, side, parent, HIP, rotors, rotor_mass)
    knee, ankle = f"{prefix}knee", f"{prefix}ankle"
    parts = {
        f"{ankle}_rotor": (thigh, _weighed(ANKLE_ROTOR, rotor_mass)),
        f"{knee}_link": (thigh, KNEE),
        f"{knee}_rotor": (thigh, _weighed(KNEE_ROTOR, rotor_mass)),
        f"{ankle}_link": (f"{knee}_link", ANKLE),
    }
    for body, (on, part) in parts.items():
        if rotors or not body.endswith("rotor"):
            add_part(b, body, f"{body}_joint", on, part.mirrored(side))
    if rotors:
        knee_joint, ankle_joint = f"{knee}_link_joint", f"{ankle}_link_joint"
        b.add_coupling(f"{knee}_belt", f"{knee}_rotor_joint", ratios={knee_joint: KNEE_RATIO})
        both = {knee_joint: ANKLE_RATIO, ankle_joint: ANKLE_RATIO}
        b.add_coupling(f"{ankle}_belt", f"{ankle}_rotor_joint", ratios=both)
    for name in (knee, ankle):
        b.add_actuator(f"{name}_motor", f"{name}_{'rotor' if rotors else 'link'}_joint")


def _weighed(motor: Part, rotor_mass: bool) -> Part:
    return motor if rotor_mass else motor._replace(mass=0.0)


def _add_contacts(b, prefix, side, contacts) -> None:
    for point, body, xyz in contacts:
        b.add_frame(f"{prefix}{point}_contact", f"{prefix}{body}", mirrored(xyz, side))
