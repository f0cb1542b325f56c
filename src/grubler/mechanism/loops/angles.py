"""Angles by which axes or frames differ, and their derivatives (floats only).

The sines in the rows of a loop joint vanish half a turn off, too. The angles here grow from zero to
π there, so that closing a loop from any start leads to the right assembly. Where the sine of an
angle is zero they are the sines, to second order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.spatial import cross, matrix_quaternion, quaternion_log, skew

if TYPE_CHECKING:
    pass


SMALL = 1e-4  # rad: below, the first terms of series are exact in double precision
OPPOSITE = 1e-6  # rad from half a turn, where every direction leads back


def alignment_angles(frame: np.ndarray, m: np.ndarray) -> np.ndarray:
    """The angle from an axis to a unit vector m, in the direction of m's components across it.

    Rows of `frame` are e1, e2 and the axis.
    """
    e1, e2, n = frame
    sines = np.array([e1 @ m, e2 @ m])
    sine, cosine = np.linalg.norm(sines), n @ m
    if sine < OPPOSITE and cosine < 0:
        return np.array([np.pi, 0.0])
    return sines * _ratio(sine, cosine)[0]


def alignment_moments(frame: np.ndarray, m: np.ndarray) -> list[np.ndarray]:
    """The rates of `alignment_angles` as vectors to multiply an angular velocity by."""
    e1, e2, n = frame
    sine, cosine = np.hypot(e1 @ m, e2 @ m), n @ m
    if sine < OPPOSITE and cosine < 0:
        return [e2, -e1]
    f, df = _ratio(sine, cosine)
    return [cross(m, f * e + df * (e @ m) * n) for e in (e1, e2)]


def _ratio(sine: Any, cosine: float) -> tuple[float, float]:
    """θ / sin θ, and its derivative by cos θ."""
    angle = np.arctan2(sine, cosine)
    if angle < SMALL:
        return 1.0 + angle**2 / 6, -1.0 / 3
    return angle / sine, (angle * cosine - sine) / sine**3


def rotation_angles(frame: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The rotation vector of R, its components along the rows of `frame`."""
    return frame @ quaternion_log(matrix_quaternion(R))


def rotation_moments(frame: np.ndarray, R: np.ndarray) -> list[np.ndarray]:
    """The rates of `rotation_angles` as vectors to multiply an angular velocity by."""
    x = quaternion_log(matrix_quaternion(R))
    half = np.linalg.norm(x) / 2
    c = 1 / 12 if half < SMALL else (1 - half / np.tan(half)) / (4 * half**2)
    return list(frame @ (np.eye(3) - skew(x) / 2 + c * skew(x) @ skew(x)))
