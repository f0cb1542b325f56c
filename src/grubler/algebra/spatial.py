"""Spatial vectors in Featherstone's convention: angular part first, body coordinates.

Motion m = [w; v], force f = [n; f]. A `Transform` is the motion transform X_BA from frame A to
frame B, kept as its rotation and translation so that no zero of the 6x6 matrix is multiplied:

    X = [[E, 0], [-E rx, E]],   E: coordinates A -> B,   r: origin of B in A.

Every function takes floats or symbols; vectors are (6,), stacks of motion columns (6, n).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tolerances import ROUNDING
from . import symbolic
from .linalg import symmetric
from .symbolic import constant, is_symbolic

if TYPE_CHECKING:
    from ..typing import Array

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def skew(p: Array) -> Array:
    """The matrix of the cross product, skew(p) @ x = p x x."""
    if is_symbolic(p):
        return symbolic.skew(p)
    x, y, z = p
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def cross(a: Array, b: Array) -> Array:
    """The cross product of two 3-vectors."""
    if is_symbolic(a, b):
        return symbolic.cross(a, b)
    (a0, a1, a2), (b0, b1, b2) = a, b
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def cross_motion(v: Array, m: Array) -> Array:
    """v x m for motion vectors (5)."""
    w, l = v[:3], v[3:]
    return np.concatenate([cross(w, m[:3]), cross(w, m[3:]) + cross(l, m[:3])])


def cross_force(v: Array, f: Array) -> Array:
    """v x* f for a motion and a force vector (5)."""
    w, l = v[:3], v[3:]
    return np.concatenate([cross(w, f[:3]) + cross(l, f[3:]), cross(w, f[3:])])


def rigid_parts(I: Array) -> tuple[Array, float, Array]:
    """(Io, m, mc) of a rigid body's 6x6 inertia."""
    return I[:3, :3], I[5, 5], np.stack([I[2, 4], I[0, 5], I[1, 3]])


def spatial_inertia(mass: float, com: Array, inertia: Array) -> Array:
    """The 6x6 spatial inertia at the body origin, from mass, centre of mass and the rotational
    inertia about the centre of mass (Sec. III-D)."""
    c, first = skew(com), skew(mass * com)
    return np.block([[inertia - mass * (c @ c), first], [-first, mass * np.eye(3)]])


def rounded(x: np.ndarray, size: float = 1.0) -> np.ndarray:
    """Numbers of about a size, read-only, with exact zeros where they are zero to rounding."""
    x = np.where(np.abs(x) < ROUNDING * size, 0.0, x)
    x.flags.writeable = False
    return x


def axis_rotation(axis: Any, c: Array | float, s: Array | float) -> Array:
    """The rotation matrix about a constant unit axis, from the angle's cosine and sine."""
    one, K, square = _generators(*axis)
    return one + s * K + (1.0 - c) * square


@lru_cache(maxsize=1024)
def _generators(x: float, y: float, z: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """1, K and K² of Rodrigues' formula for an axis, read-only."""
    K = skew(np.array([x, y, z]))
    return tuple(rounded(M, 0.0) for M in (np.eye(3), K, K @ K))


def rpy_matrix(roll: float, pitch: float, yaw: float) -> Array:
    """URDF's fixed-axis angles: Rz(yaw) Ry(pitch) Rx(roll), floats only.

    Angles within 1e-10 of a multiple of 90° give exact zeros and ones: a description writes them
    with few digits, and an exact zero costs nothing in generated code.
    """

    def snapped(angle):
        k = round(angle / (np.pi / 2))
        if abs(angle - k * np.pi / 2) < 1e-10:
            return float([1, 0, -1, 0][k % 4]), float([0, 1, 0, -1][k % 4])
        return np.cos(angle), np.sin(angle)

    x, y, z = np.eye(3)
    return (
        axis_rotation(z, *snapped(yaw))
        @ axis_rotation(y, *snapped(pitch))
        @ axis_rotation(x, *snapped(roll))
    )


def quaternion_matrix(q: Array) -> Array:
    """The rotation matrix (body to world coordinates) of a unit quaternion, scalar first."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]),
        ]
    )


def quaternion_product(a: Array, b: Array) -> Array:
    """The Hamilton product of two quaternions, scalar first."""
    return np.stack(
        [
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        ]
    )


def half_angle(w: Array) -> tuple[Any, Array, Array]:
    """(h², cos h, sin h / h) for half the angle h of a rotation vector, accurate at zero."""
    half2 = (w[0] * w[0] + w[1] * w[1] + w[2] * w[2]) / 4.0
    small = half2 < 1e-8
    h = np.sqrt(np.where(small, 1.0, half2))
    c = np.where(small, 1.0 - half2 / 2 + half2 * half2 / 24, np.cos(h))
    s = np.where(small, 1.0 - half2 / 6 + half2 * half2 / 120, np.sin(h) / h)
    return half2, c, s


def quaternion_exp(w: Array) -> Array:
    """The unit quaternion of a rotation vector, accurate at zero, without a branch on values."""
    _, c, s = half_angle(w)
    return np.stack([c, s * w[0] / 2, s * w[1] / 2, s * w[2] / 2])


def quaternion_log(q: Array) -> Array:
    """The rotation vector of a unit quaternion, |result| <= pi; of the two of half a turn, that
    along the quaternion's vector part."""
    n2 = q[1] * q[1] + q[2] * q[2] + q[3] * q[3]
    small = n2 < 1e-8
    n = np.sqrt(np.where(small, 1.0, n2))
    sign = np.where(q[0] < 0.0, -1.0, 1.0)
    near = sign * (2.0 + n2 / 3 + 3 * n2 * n2 / 20)  # 2 arcsin(n) / n
    scale = np.where(small, near, 2.0 * np.arctan2(sign * n, np.abs(q[0])) / n)
    return np.stack([scale * q[1], scale * q[2], scale * q[3]])


def matrix_quaternion(R: np.ndarray) -> np.ndarray:
    """The unit quaternion, scalar first and non-negative, of a rotation matrix (floats only)."""
    trace = np.trace(R)
    candidates = np.array([trace, R[0, 0], R[1, 1], R[2, 2]])
    i = int(np.argmax(candidates))
    q = np.empty(4)
    if i == 0:
        q[0] = 1 + trace
        q[1:] = [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]
    else:
        j, k = (i % 3), ((i + 1) % 3)
        i -= 1
        q[0] = R[k, j] - R[j, k]
        q[1 + i] = 1 + R[i, i] - R[j, j] - R[k, k]
        q[1 + j] = R[j, i] + R[i, j]
        q[1 + k] = R[k, i] + R[i, k]
    q /= np.linalg.norm(q)
    return q if q[0] >= 0 else -q


@dataclass(frozen=True, eq=False)
class Transform:
    """The motion transform X_BA, from coordinates in frame A to coordinates in frame B."""

    E: np.ndarray
    r: np.ndarray
    size = 6

    @staticmethod
    def identity() -> Transform:
        return Transform(np.eye(3), np.zeros(3))

    @staticmethod
    def from_placement(R: Array, p: Array) -> Transform:
        """The transform into a frame placed with rotation R (frame to parent) at p."""
        return Transform(R.T, p)

    def rounded(self) -> Transform:
        """Numbers that are zero or one to rounding as such, which costs nothing in generated code.
        A description that a program wrote, or composed of several, has 1e-17 instead of zero."""
        one = np.abs(np.abs(self.E) - 1.0) < ROUNDING
        return Transform(rounded(np.where(one, np.sign(self.E), self.E)), rounded(self.r))

    def rotate(self, x: Array) -> Array:
        """E x: a 3-vector, or columns of them, from A's axes to B's."""
        return self.E @ x

    def rotate_back(self, x: Array) -> Array:
        """E' x: from B's axes to A's."""
        return self.E.T @ x

    def motion(self, m: Array) -> Array:
        """X m for a motion vector."""
        w = m[:3]
        return np.concatenate([self.rotate(w), self.rotate(m[3:] - cross(self.r, w))])

    def motions(self, M: Array) -> Array:
        """X M for columns of motion vectors."""
        W = M[:3]
        return np.concatenate([self.rotate(W), self.rotate(M[3:] - skew(self.r) @ W)])

    def force_back(self, f: Any) -> Array:
        """X' f: a force from B's coordinates to A's."""
        F = self.rotate_back(f[3:])
        return np.concatenate([self.rotate_back(f[:3]) + cross(self.r, F), F])

    def forces_back(self, F: Array) -> Array:
        """X' F for columns of force vectors."""
        L = self.rotate_back(F[3:])
        return np.concatenate([self.rotate_back(F[:3]) + skew(self.r) @ L, L])

    def congruence(self, I: Array) -> Array:
        """X' I X for a symmetric 6x6 inertia, upper triangle only: rotate, then shift."""
        E, rx = self.E, skew(self.r)
        turn = Turn.of(E)
        if turn is not None:
            I = turn.congruence(I)
            A, B, C = I[:3, :3], I[:3, 3:], I[3:, 3:]
        else:
            A = symmetric(E.T @ I[:3, :3] @ E)
            B = E.T @ I[:3, 3:] @ E
            C = symmetric(E.T @ I[3:, 3:] @ E)
        shifted = B + rx @ C
        A = symmetric(A + rx @ B.T - shifted @ rx)
        return np.block([[A, shifted], [shifted.T, C]])

    def rigid_congruence(self, I: Array) -> Array:
        """X' I X for the inertia of a rigid body or composite: mass, first moment, Io alone."""
        Io, m, h = rigid_parts(I)
        rotated = self._rotated(Io)
        h = self.rotate_back(h)
        moved = h + m * self.r
        rx = skew(self.r)
        Io = symmetric(rotated - rx @ skew(h) - skew(moved) @ rx)
        hx = skew(moved)
        return np.block([[Io, hx], [-hx, m * np.eye(3)]])

    def _rotated(self, A):
        """E' A E, symmetric."""
        turn = Turn.of(self.E)
        return symmetric(self.E.T @ A @ self.E) if turn is None else turn._rotated(A)

    def rotated_back(self, M: Array) -> Array | Array:
        """E' M E of any 3x3 matrix."""
        turn = Turn.of(self.E)
        return self.E.T @ M @ self.E if turn is None else turn.rotated_back(M)

    def sandwich(self, M: Array, other: Any) -> Array:
        """X' M Y for a general 6x6 block between two bodies."""
        return self.forces_back(other.forces_back(M.T).T)

    def __matmul__(self, other: Transform) -> Transform:
        """X_CB @ X_BA = X_CA."""
        return Transform(self.E @ other.E, other.r + other.E.T @ self.r)

    def after(self, placement: Transform) -> Transform:
        """X_CB @ X_BA, remembering its two parts where that saves operations."""
        return self @ placement

    def inverse(self) -> Transform:
        return Transform(self.E.T, -(self.E @ self.r))

    def matrix(self) -> Array:
        """The 6x6 matrix."""
        return np.block([[self.E, np.zeros((3, 3))], [-self.E @ skew(self.r), self.E]])


class Turn(Transform):
    """A rotation about a coordinate axis, with a cheaper congruence.

    In the plane of the rotation R B R' moves only along w = s (B_ii - B_jj) + c (B_ij + B_ji): the
    trace and B_ij - B_ji stay as they are, so 11 operations do what two matrix products do in 24.
    """

    def __init__(self, axis: int, cosine: Array | float, sine: Array | float, sign: float = 1.0):
        R = axis_rotation(AXES[axis], cosine, sign * sine)
        super().__init__(R.T, np.zeros(3))
        object.__setattr__(
            self, "turn", ((axis + 1) % 3, (axis + 2) % 3, axis, cosine, sign * sine)
        )

    @staticmethod
    def of(E: Array) -> Turn | None:
        """A matrix of numbers that turns about one coordinate axis, and is not trivial, as such."""
        if isinstance(E, np.ndarray) and np.count_nonzero(E) == 5:
            for k in range(3):
                i, j = (k + 1) % 3, (k + 2) % 3
                if E[k, k] == 1.0 and E[i, i] != 0.0:
                    return Turn(k, E[i, i], E[i, j])
        return None

    @property
    def symbolic(self) -> bool:
        """Whether the angle is not a number."""
        return is_symbolic(self.turn[3])

    def congruence(self, I: Array) -> Array:
        A = self._rotate(I[:3, :3], symmetric=True)
        B = self._rotate(I[:3, 3:], symmetric=False)
        C = self._rotate(I[3:, 3:], symmetric=True)
        return np.block([[A, B], [B.T, C]])

    def _rotated(self, A):
        return self._rotate(A, symmetric=True)

    def rotated_back(self, M: Array) -> Array:
        return self._rotate(M, symmetric=False)

    def _rotate(self, M, symmetric: bool):
        """E' M E."""
        i, j, k, c, s = self.turn
        w = s * (M[i, i] - M[j, j])
        w = w + ((2.0 * c) * M[i, j] if symmetric else c * (M[i, j] + M[j, i]))
        sw, cw = s * w, c * w
        out = [[M[k, k]] * 3 for _ in range(3)]
        out[i][i], out[j][j] = M[i, i] - sw, M[j, j] + sw
        out[i][j] = cw - (M[i, j] if symmetric else M[j, i])
        out[j][i] = out[i][j] if symmetric else cw - M[i, j]
        out[i][k], out[j][k] = c * M[i, k] - s * M[j, k], s * M[i, k] + c * M[j, k]
        if symmetric:
            out[k][i], out[k][j] = out[i][k], out[j][k]
        else:
            out[k][i], out[k][j] = c * M[k, i] - s * M[k, j], s * M[k, i] + c * M[k, j]
        return np.stack([np.stack(row) for row in out])

    def after(self, placement: Transform) -> Transform:
        if isinstance(placement, OnFixedOrigin):
            return TurnThenShift(self.after(Transform(placement.E, np.zeros(3))), placement.r)
        return _TurnedAfter(self, placement)


class OnFixedOrigin(Transform):
    """A placement on a body whose origin does not move: see `TurnThenShift`."""


class TurnThenShift(Transform):
    """A turn, and from there to a body's origin, seen in the body's axes.

    Cheaper than shift and turn where the parent's origin rests: of what comes back from the body
    the moments alone count there, and those alone are turned.
    """

    def __init__(self, turned: Transform, r: Array):
        super().__init__(turned.E, r)
        object.__setattr__(self, "turned", turned)
        object.__setattr__(self, "lever", Transform(np.eye(3), turned.rotate(r)))

    def rotate(self, x: Array) -> Array:
        return self.turned.rotate(x)

    def rotate_back(self, x: Array) -> Any:
        return self.turned.rotate_back(x)

    def rotated_back(self, M: Array) -> Any:
        return self.turned.rotated_back(M)

    def motion(self, m: Array) -> Any:
        return self.lever.motion(self.turned.motion(m))

    def motions(self, M: Array) -> Array:
        return self.lever.motions(self.turned.motions(M))

    def force_back(self, f: Any) -> Array:
        return self.turned.force_back(self.lever.force_back(f))

    def forces_back(self, F: Array) -> Array:
        return self.turned.forces_back(self.lever.forces_back(F))

    def congruence(self, I: Array) -> Array:
        return self.turned.congruence(self.lever.congruence(I))

    def rigid_congruence(self, I: Array) -> Array:
        return self.turned.rigid_congruence(self.lever.rigid_congruence(I))


class _TurnedAfter(Transform):
    """A turn after a constant placement: inertias are turned first, then placed.

    Vectors too, where the placement turns about one axis; their product is dense.
    """

    def __init__(self, turn: Turn, placement: Transform):
        super().__init__(turn.E @ placement.E, placement.r)
        object.__setattr__(self, "parts", (turn, placement))

    @cached_property
    def stages(self) -> bool:
        """Whether the placement turns about one axis at most."""
        return np.count_nonzero(self.parts[1].E) <= 5

    def _rotated(self, A):
        turn, placement = self.parts
        return placement._rotated(turn._rotated(A))

    def rotated_back(self, M):
        turn, placement = self.parts
        return placement.rotated_back(turn.rotated_back(M))

    def rotate(self, x):
        turn, placement = self.parts
        return turn.E @ (placement.E @ x) if self.stages else self.E @ x

    def rotate_back(self, x):
        turn, placement = self.parts
        return placement.E.T @ (turn.E.T @ x) if self.stages else self.E.T @ x

    def congruence(self, I):
        turn, placement = self.parts
        if turn.symbolic and not self.stages:
            numbers = constant(I)
            if numbers is not None:
                return self._harmonics(numbers)
        return placement.congruence(turn.congruence(I))

    def _harmonics(self, I: np.ndarray):
        """X' I X of constant numbers: C0 + C1 cos + C2 sin + C3 cos² + C4 cos sin."""
        turn, placement = self.parts
        *_, axis, c, s = turn.turn
        angles = 2 * np.pi * np.arange(5) / 5
        samples = [
            placement.congruence(Turn(axis, np.cos(x), np.sin(x)).congruence(I)) for x in angles
        ]
        C, S = np.cos(angles), np.sin(angles)
        terms = np.linalg.solve(
            np.stack([np.ones(5), C, S, C * C, C * S], axis=1), np.stack(samples).reshape(5, 36)
        )
        terms = np.where(np.abs(terms) < 1e-15 * np.abs(I).max(), 0.0, terms)
        C0, C1, C2, C3, C4 = terms.reshape(5, 6, 6)
        return symmetric(C0 + c * C1 + s * C2 + (c * c) * C3 + (c * s) * C4)
