"""Placements as files write them, and joints whose axis does not pass through the body's origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import Transform, matrix_quaternion, rpy_matrix
from ..mechanism.joints import perpendicular, unit
from ..model.builder import ModelBuilder
from ._xml import Element

if TYPE_CHECKING:
    from ..typing import Array

CENTRED = ("fixed", "prismatic", "free")  # kinds for which the place of the axis does not matter
AXIAL = ("revolute", "continuous", "helical", "cylindrical")  # its distance from the origin does


def origin(element: Element, tag: str = "origin") -> tuple[Array, Array]:
    """The position and the rotation matrix that a URDF <origin> gives, or none at all."""
    found = element.child(tag)
    if found is None:
        return np.zeros(3), np.eye(3)
    return found.numbers("xyz", 3, "0 0 0"), rpy_matrix(*found.numbers("rpy", 3, "0 0 0"))


def placed(position: Array, rotation: Array) -> Transform:
    """The transform into a frame at a position with a rotation matrix."""
    return Transform.from_placement(np.asarray(rotation, float), np.asarray(position, float))


def pose_vector(X: Transform) -> np.ndarray:
    """A transform from the world as the position of a free joint: [x y z, qw qx qy qz]."""
    return np.concatenate([X.r, matrix_quaternion(X.E.T)])


def turn(a: Array, b: Array) -> np.ndarray:
    """The smallest rotation that takes direction a to direction b."""
    a, b = unit(a), unit(b)
    c = float(a @ b)
    if c < -1 + 1e-12:
        n = perpendicular(a)[0]
        return 2 * np.outer(n, n) - np.eye(3)
    v = np.cross(a, b)
    K = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + K + K @ K / (1 + c)


def rpy_of(R: np.ndarray) -> tuple[float, float, float]:
    """Roll, pitch and yaw whose matrix is R to rounding, at gimbal lock too."""
    roll = float(np.arctan2(R[2, 1], R[2, 2]))
    c, s = np.cos(roll), np.sin(roll)
    without_roll = R @ np.array([[1, 0, 0], [0, c, s], [0, -s, c]])  # Rz(yaw) Ry(pitch)
    pitch = float(np.arctan2(-without_roll[2, 0], without_roll[2, 2]))
    yaw = float(np.arctan2(-without_roll[0, 1], without_roll[1, 1]))
    return roll, pitch, yaw


def carrier_name(child: str, joint: str) -> str:
    """The name of the massless body that a joint off the child's origin moves."""
    return f"{child}/{joint}"


def add_offset_joint(
    b: ModelBuilder, name: str, kind: str, parent: str, child: str, X: Transform, anchor: Any,
    axis: Any=None, **options: Any,
) -> None:  # fmt: skip
    """A joint to `child`, placed by X in `parent` at zero; anchor and axis in the child's frame.

    Where the axis misses the child's origin, a massless body at the anchor moves and the child is
    welded to it, so that the frame named after the child stays the file's.
    """
    if axis is not None:
        options["axis"] = axis
    R, anchor = X.E.T, np.asarray(anchor, float)
    off = anchor
    if kind in CENTRED:
        off = np.zeros(3)
    elif kind in AXIAL:
        n = unit(axis)
        off = anchor - n * (n @ anchor)
    if np.abs(off).max() < 1e-12:
        b.add_joint(name, kind, parent, child, xyz=X.r, R=R, **options)
        return
    carrier = carrier_name(child, name)
    b.add_body(carrier)
    b.add_joint(name, kind, parent, carrier, xyz=X.r + R @ anchor, R=R, **options)
    b.add_joint(f"{name}/weld", "fixed", carrier, child, xyz=-anchor)
