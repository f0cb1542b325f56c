"""Two robots that stand for every kind of joint and every kind of loop.

`joint_sampler` is a tree with one joint of each kind. `loop_sampler` carries, on one floating base,
a small mechanism for each kind of loop joint and coupling. Each mechanism is drawn in its closed
pose at q = 0, all bodies parallel to the base, so a loop is told by the point of the base where
its two frames meet.
"""

from __future__ import annotations

import math

from ..model import Model
from ..model.builder import ModelBuilder

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
SKEWED = (0.6, -0.3, 1.0)
SWING = {"lower": -0.45, "upper": 0.45}  # rad, within reach of a spatial four-bar's rods


def _add_box(b: ModelBuilder, name: str, size, mass: float, com) -> None:
    """A homogeneous box (side lengths in m) with its centre at `com`."""
    x, y, z = (side * side * mass / 12 for side in size)
    b.add_body(name, mass, com, (y + z, 0.0, 0.0, x + z, 0.0, x + y))


def joint_sampler() -> Model:
    """A tree with one joint of every kind: 20 degrees of freedom on three branches."""
    b = ModelBuilder("joint_sampler")
    _add_box(b, "base", (0.4, 0.3, 0.1), 5.0, (0.02, -0.01, 0.03))
    b.add_joint("free", "free", "world", "base")
    _add_sampled_arm(b)
    _add_sampled_pendulum(b)
    _add_sampled_puck(b)
    for name, body in (("hand", "piston"), ("foot", "sleeve"), ("rim", "valve")):
        b.add_frame(name, body, (0.05, 0.01, -0.02), (0.1, 0.2, -0.3))
    for joint in ("revolute", "prismatic", "helical", "continuous"):
        b.add_actuator(f"{joint}_motor", joint)
    return b.build()


def _add_sampled_arm(b: ModelBuilder) -> None:
    _add_box(b, "upper_arm", (0.3, 0.06, 0.05), 0.8, (0.15, 0.0, 0.01))
    _add_box(b, "wrist", (0.1, 0.05, 0.08), 0.4, (0.04, 0.02, 0.0))
    _add_box(b, "piston", (0.2, 0.03, 0.03), 0.3, (0.1, 0.0, 0.01))
    b.add_joint(
        "revolute",
        "revolute",
        "base",
        "upper_arm",
        xyz=(0.2, 0.1, 0.0),
        rpy=(0.3, -0.2, 0.5),
        axis=SKEWED,
    )
    b.add_joint(
        "universal",
        "universal",
        "upper_arm",
        "wrist",
        xyz=(0.3, 0.0, 0.02),
        axis=Y,
        axis2=(0.2, 0.1, 1.0),
    )
    b.add_joint(
        "prismatic", "prismatic", "wrist", "piston", xyz=(0.1, 0.0, 0.0), axis=(1.0, 0.2, -0.1)
    )  # fmt: skip


def _add_sampled_pendulum(b: ModelBuilder) -> None:
    b.add_body("pendulum", 0.6, (0.01, 0.02, -0.2), (0.004, 0.0005, -0.0003, 0.005, 0.0004, 0.003))
    _add_box(b, "screw", (0.05, 0.05, 0.2), 0.35, (0.01, 0.0, -0.1))
    _add_box(b, "sleeve", (0.06, 0.08, 0.1), 0.25, (0.0, 0.02, -0.03))
    b.add_joint(
        "spherical", "spherical", "base", "pendulum", xyz=(-0.1, -0.1, 0.05), rpy=(0.1, 0.2, 0.3)
    )
    b.add_joint(
        "helical",
        "helical",
        "pendulum",
        "screw",
        xyz=(0.0, 0.0, -0.3),
        rpy=(0.4, 0.0, 0.1),
        axis=Z,
        pitch=0.03,
    )
    b.add_joint(
        "cylindrical", "cylindrical", "screw", "sleeve", xyz=(0.0, 0.05, -0.2), axis=(0.3, 1.0, 0.2)
    )  # fmt: skip


def _add_sampled_puck(b: ModelBuilder) -> None:
    _add_box(b, "puck", (0.12, 0.1, 0.04), 0.5, (0.01, 0.0, 0.02))
    _add_box(b, "wheel", (0.2, 0.04, 0.2), 0.45, (0.0, 0.01, 0.0))
    _add_box(b, "valve", (0.02, 0.02, 0.03), 0.05, (0.0, 0.0, 0.01))
    b.add_joint(
        "planar", "planar", "base", "puck", xyz=(0.0, 0.1, 0.1), rpy=(0.0, 0.3, 0.0), axis=SKEWED
    )
    b.add_joint("continuous", "continuous", "puck", "wheel", xyz=(0.05, 0.05, 0.05), axis=Y)
    b.add_joint("fixed", "fixed", "wheel", "valve", xyz=(0.09, 0.02, 0.0), rpy=(0.0, 0.0, 0.7))


class _Mechanism:
    """Adds the bodies, joints and loops of one mechanism, placed by points of the base at q = 0."""

    def __init__(self, b: ModelBuilder, name: str):
        self.b, self.name, self.origin = b, name, {"base": (0.0, 0.0, 0.0)}

    def on(self, body: str, point):
        """A point of the base as a point of a body, at q = 0."""
        return tuple(p - o for p, o in zip(point, self.origin[body], strict=True))

    def _full(self, body: str) -> str:
        return body if body == "base" else f"{self.name}_{body}"

    def add(self, body: str, kind: str, parent: str, point, end, mass: float = 0.5, **options):
        """A bar from `point`, where its joint is, to `end`."""
        name, bar = self._full(body), [e - p for e, p in zip(end, point, strict=True)]
        self.origin[body] = tuple(point)
        _add_box(
            self.b, name, [abs(x) + 0.03 for x in bar], mass, tuple(0.5 * x + 0.004 for x in bar)
        )
        self.b.add_joint(
            name, kind, self._full(parent), name, xyz=self.on(parent, point), **options
        )

    def close(self, kind: str, predecessor: str, successor: str, point, **options):
        """A loop joint of `kind` between two bodies that meet at `point`."""
        self.b.add_loop(
            self.name,
            kind,
            self._full(predecessor),
            self._full(successor),
            predecessor_xyz=self.on(predecessor, point),
            successor_xyz=self.on(successor, point),
            **options,
        )


def loop_sampler() -> Model:
    """One small mechanism for every kind of loop joint and coupling, on a floating base."""
    b = ModelBuilder("loop_sampler")
    _add_box(b, "base", (0.8, 0.8, 0.1), 8.0, (0.0, 0.01, -0.02))
    b.add_joint("base", "free", "world", "base")
    for mechanism in (
        _slider_crank, _rccc, _strut, _wiper, _welded_four_bar, _rssr, _ball_rocker, _cam,
        _geared_four_bar, _pin_in_slot, _point_on_table,
    ):  # fmt: skip
        mechanism(b)
    return b.build()


def _slider_crank(b):
    """Crank, rod and slider: the slider slides on the base (prismatic, 5 rows of rank 2)."""
    m = _Mechanism(b, "slider_crank")
    m.add("crank", "revolute", "base", (0.0, 0.0, 0.1), (0.06, 0.0, 0.18), axis=Y, independent=True)
    m.add("rod", "revolute", "crank", (0.06, 0.0, 0.18), (0.3, 0.0, 0.1), axis=Y)
    m.add("slider", "revolute", "rod", (0.3, 0.0, 0.1), (0.35, 0.0, 0.1), axis=Y)
    m.close("prismatic", "base", "slider", (0.3, 0.0, 0.1), axis=X)
    b.add_actuator("slider_crank_motor", "slider_crank_crank")
    b.add_frame("slider_crank_end", "slider_crank_slider", (0.05, 0.0, 0.0))


def _rccc(b):
    """Four skew axes, one of them a loop: revolute, cylindrical, cylindrical, cylindrical."""
    m = _Mechanism(b, "rccc")
    m.add("input", "revolute", "base", (0.0, 0.3, 0.1), (0.1, 0.35, 0.2), axis=Z, independent=True)
    m.add("first", "cylindrical", "input", (0.1, 0.35, 0.2), (0.2, 0.3, 0.3), axis=(0.2, 1.0, 0.3))
    m.add("second", "cylindrical", "first", (0.2, 0.3, 0.3), (0.3, 0.35, 0.1), axis=(1.0, 0.1, 0.5))
    m.close("cylindrical", "base", "second", (0.3, 0.35, 0.1), axis=(0.3, -0.4, 1.0))
    b.add_frame("rccc_end", "rccc_second", (0.05, 0.02, 0.0))


def _strut(b):
    """A flap held by a telescopic strut: ball joint at the flap, universal joint at the base."""
    m = _Mechanism(b, "strut")
    m.add("flap", "revolute", "base", (-0.3, 0.0, 0.1), (-0.3, 0.05, 0.4), axis=(0.1, 1.0, 0.0))
    m.add("rod", "spherical", "flap", (-0.28, 0.05, 0.35), (-0.2, 0.08, 0.25))
    m.add(
        "cylinder", "prismatic", "rod", (-0.2, 0.08, 0.25), (-0.12, 0.11, 0.15),
        axis=(0.08, 0.03, -0.1), independent=True, lower=-0.08, upper=0.08,
    )  # fmt: skip
    m.close("universal", "base", "cylinder", (-0.12, 0.11, 0.15), axis=X, axis2=Y)
    b.add_actuator("strut_motor", "strut_cylinder")
    b.add_frame("strut_end", "strut_flap", (0.0, 0.05, 0.3))


def _wiper(b):
    """A plate that an elbow keeps flat on a slanted plane of the base (planar, 3 rows)."""
    m = _Mechanism(b, "wiper")
    m.add("upper", "revolute", "base", (-0.3, 0.3, 0.1), (-0.2, 0.3, 0.25), axis=Y)
    m.add("lower", "revolute", "upper", (-0.2, 0.3, 0.25), (-0.1, 0.32, 0.12), axis=(0.0, 1.0, 0.2))
    m.add("plate", "spherical", "lower", (-0.1, 0.32, 0.12), (-0.05, 0.34, 0.12))
    m.close("planar", "base", "plate", (-0.1, 0.32, 0.12), axis=(0.1, 0.2, 1.0))
    b.add_frame("wiper_end", "wiper_plate", (0.05, 0.02, 0.0))


def _welded_four_bar(b):
    """A four-bar with all four pins in the tree, closed by a weld (6 rows of rank 3)."""
    m = _Mechanism(b, "welded")
    m.add(
        "crank", "revolute", "base", (0.0, -0.3, 0.1), (0.03, -0.3, 0.2), axis=Y, independent=True
    )
    m.add("coupler", "revolute", "crank", (0.03, -0.3, 0.2), (0.25, -0.3, 0.28), axis=Y)
    m.add("rocker", "revolute", "coupler", (0.25, -0.3, 0.28), (0.3, -0.3, 0.1), axis=Y)
    m.add("foot", "revolute", "rocker", (0.3, -0.3, 0.1), (0.34, -0.3, 0.1), axis=Y)
    m.close("fixed", "base", "foot", (0.32, -0.3, 0.1))
    b.add_actuator("welded_motor", "welded_crank")


def _rssr(b):
    """Two rockers on crossed axes and a massless rod of fixed length between them (1 row)."""
    m = _Mechanism(b, "rod")
    tip, other = (-0.3, -0.25, 0.3), (-0.05, -0.1, 0.25)
    m.add("first", "revolute", "base", (-0.3, -0.35, 0.1), tip, axis=X, independent=True, **SWING)
    m.add("second", "revolute", "base", (-0.1, -0.1, 0.1), other, axis=Y)
    b.add_loop(
        "rod",
        "distance",
        "rod_first",
        "rod_second",
        predecessor_xyz=m.on("first", tip),
        successor_xyz=m.on("second", other),
        distance=math.dist(tip, other),
    )


def _ball_rocker(b):
    """Two rockers on crossed axes and a rod with mass: universal joint, ball (3 rows)."""
    m = _Mechanism(b, "link")
    start, end = (0.1, -0.1, 0.1), (0.1, -0.05, 0.25)
    m.add("first", "revolute", "base", start, end, axis=X, independent=True, **SWING)
    m.add("rod", "universal", "first", (0.1, -0.05, 0.25), (0.3, 0.05, 0.28), axis=Z, axis2=Y)
    m.add("second", "revolute", "base", (0.25, 0.05, 0.1), (0.3, 0.05, 0.28), axis=Y)
    m.close("ball", "rod", "second", (0.3, 0.05, 0.28))


def _pin_in_slot(b):
    """A pin on an elbow that runs in a straight slot of the base (inline, 2 rows)."""
    m = _Mechanism(b, "slot")
    start, elbow, pin = (0.0, 0.4, 0.1), (0.05, 0.4, 0.2), (0.2, 0.42, 0.15)
    m.add("upper", "revolute", "base", start, elbow, axis=Y, independent=True, **SWING)
    m.add("swivel", "revolute", "upper", elbow, (0.1, 0.4, 0.2), axis=Z)
    m.add("lower", "revolute", "swivel", (0.1, 0.4, 0.2), pin, axis=Y)
    m.close("inline", "base", "lower", pin, axis=(1.0, 0.1, 0.0))


def _point_on_table(b):
    """The tip of an arm that stays on a slanted table of the base (inplane, 1 row)."""
    m = _Mechanism(b, "table")
    start, elbow, tip = (0.0, -0.4, 0.1), (0.05, -0.4, 0.25), (0.2, -0.42, 0.15)
    m.add("upper", "revolute", "base", start, elbow, axis=Y, independent=True, **SWING)
    m.add("lower", "revolute", "upper", elbow, tip, axis=Y)
    m.close("inplane", "base", "lower", tip, axis=(0.1, 0.0, 1.0))


def _cam(b):
    """A cam and its follower: lift = 0.01 + 0.02 x + 0.015 x² - 0.004 x³."""
    m = _Mechanism(b, "cam")
    m.add("disc", "revolute", "base", (0.0, 0.15, 0.1), (0.05, 0.15, 0.12), axis=Y)
    m.add("follower", "prismatic", "base", (0.05, 0.15, 0.2), (0.05, 0.15, 0.3), axis=Z)
    b.add_coupling("cam", "cam_follower", leader="cam_disc", polynomial=(0.01, 0.02, 0.015, -0.004))
    b.add_actuator("cam_motor", "cam_disc")


def _geared_four_bar(b):
    """A four-bar whose crank is geared to a rotor: a loop and a coupling in one cluster."""
    m = _Mechanism(b, "geared")
    m.add("rotor", "revolute", "base", (-0.2, -0.2, 0.1), (-0.2, -0.2, 0.1), 0.1, axis=Y)
    m.add(
        "crank", "revolute", "base", (-0.2, -0.2, 0.1), (-0.2, -0.2, 0.2), axis=Y, independent=True
    )
    m.add("coupler", "revolute", "crank", (-0.2, -0.2, 0.2), (0.0, -0.2, 0.3), axis=Y)
    m.add("rocker", "revolute", "base", (0.05, -0.2, 0.1), (0.0, -0.2, 0.3), axis=Y)
    m.close("revolute", "coupler", "rocker", (0.0, -0.2, 0.3), axis=Y)
    b.add_coupling("geared_rotor", "geared_rotor", ratios={"geared_crank": 8.0})
    b.add_actuator("geared_motor", "geared_rotor")
