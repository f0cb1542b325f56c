"""What the robots of the zoo share: tables of moving parts, mirror images, geared motors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.builder import ModelBuilder

if TYPE_CHECKING:
    pass

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}

Vector = tuple[float, ...]


class Part(NamedTuple):
    """A body and where its revolute joint sits on the parent (m, kg, kg m², rad)."""

    axis: str
    xyz: Vector
    mass: float
    com: Vector
    inertia: Vector  # ixx, ixy, ixz, iyy, iyz, izz about the centre of mass
    rpy: Vector = (0.0, 0.0, 0.0)
    physical: bool = True

    def mirrored(self, side: int) -> Part:
        """The part itself for side = 1 (left), its image in the x-z plane for -1 (right)."""
        roll, pitch, yaw = self.rpy
        ixx, ixy, ixz, iyy, iyz, izz = self.inertia
        return self._replace(
            xyz=mirrored(self.xyz, side),
            com=mirrored(self.com, side),
            rpy=(side * roll, pitch, side * yaw),
            inertia=(ixx, side * ixy, ixz, iyy, side * iyz, izz),
        )


def mirrored(point: Vector, side: int) -> Vector:
    """A point for side = 1, its image in the x-z plane for side = -1."""
    return (point[0], side * point[1], point[2])


def rotor(
    axis: str,
    xyz: Vector,
    mass: float,
    axial: float,
    transverse: float,
    rpy: Any = (0.0, 0.0, 0.0),
) -> Any:
    """A rotor: a body symmetric about its own axis."""
    moments = {name: axial if name == axis else transverse for name in AXES}
    inertia = (moments["x"], 0.0, 0.0, moments["y"], 0.0, moments["z"])
    return Part(axis, xyz, mass, (0.0, 0.0, 0.0), inertia, rpy)


def add_part(
    b: ModelBuilder, body: str, joint: str, parent: str, part: Part, **options: Any
) -> None:
    """Add a body and the revolute joint that carries it."""
    b.add_body(body, part.mass, part.com, part.inertia, physical=part.physical)
    b.add_joint(
        joint,
        "revolute",
        parent,
        body,
        xyz=part.xyz,
        rpy=part.rpy,
        axis=AXES[part.axis],
        **options,
    )


def add_base(
    b: ModelBuilder, body: str, joint: str, mass: float, com: Vector, inertia: Vector
) -> None:
    """Add a body that floats freely in the world."""
    b.add_body(body, mass, com, inertia)
    b.add_joint(joint, "free", "world", body)
