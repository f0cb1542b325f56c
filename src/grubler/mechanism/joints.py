"""Joint kinds: how a body may move relative to its parent.

Each kind gives, in the coordinates of the child (Sec. III-E):

| method            | meaning                                            | shape        |
|-------------------|----------------------------------------------------|--------------|
| `transform(q)`    | X_J, from the joint frame on the parent to the child | `Transform` |
| `subspace(q)`     | S, motion allowed by the joint: v_J = S qd         | (6, nv)      |
| `bias(q, v)`      | (dS/dt) qd in the child's moving coordinates       | (6,) or None |
| `derivative(q, v)`| dq/dt as a function of the velocity                | (nq,)        |
| `second(q, v)`    | d²q/dt² at zero acceleration                       | (nq,)        |
| `integrate(q, v, dt)` | the configuration after moving with v for dt   | (nq,)        |
| `difference(q0, q1)`  | the velocity that leads from q0 to q1 in unit time | (nv,)    |
| `bracket(u, v)`       | how the order of two small moves matters           | (nv,)        |
| `integrate_derivatives(x)` | A, B: q ⊕ x moves by A δ + B dx              | (nv, nv) each |
| `difference_derivatives(x)`| A, B: x = q1 ⊖ q0 changes by A δ0 + B δ1     | (nv, nv) each |

Positions in rad and m; axes are unit vectors in the joint frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..algebra.lie import (
    advance,
    advance_inverse,
    rotation,
    rotation_jacobian,
    rotation_jacobian_inverse,
    twist_jacobian,
    twist_jacobian_inverse,
)
from ..algebra.spatial import (
    Transform,
    Turn,
    axis_rotation,
    cross,
    cross_motion,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    skew,
)
from ..algebra.symbolic import cos_sin
from ..errors import ModelError

if TYPE_CHECKING:
    from ..typing import Array

ZERO = np.zeros(3)


def unit(axis: Array | tuple[float, ...] | None) -> np.ndarray:
    """A read-only unit vector along `axis`; entries below rounding become exact zeros."""
    axis = np.array(axis, dtype=float)
    length = np.linalg.norm(axis) if axis.shape == (3,) else 0.0
    if not np.isfinite(length) or length < 1e-9:
        raise ModelError(
            f"axis {axis.tolist()} is not a direction: give three numbers, not all zero"
        )
    axis = axis / length
    axis[np.abs(axis) < 1e-15] = 0.0
    axis.flags.writeable = False
    return axis


def perpendicular(axis: np.ndarray) -> np.ndarray:
    """Two unit vectors that complete `axis` to a right-handed frame, as rows."""
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = unit(np.cross(helper, axis))
    return np.stack([first, np.cross(axis, first)])


def mass_at_origin(I: np.ndarray) -> np.ndarray:
    """The part of an inertia that no rotation about the origin moves: the mass, put there."""
    return np.diag([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]) * I[5, 5]


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint whose velocity is the derivative of its position (q in R^nq, nv = nq)."""

    kind: ClassVar[str] = "abstract"
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    labels: ClassVar[tuple[str, ...]] = ("",)

    @property
    def position_labels(self) -> tuple[str, ...]:
        return self.labels

    def neutral(self) -> np.ndarray:
        return np.zeros(self.nq)

    def transform(self, q: Array) -> Transform:
        raise NotImplementedError

    def subspace(self, q: Array) -> Any:
        raise NotImplementedError

    def unfelt(self, I: np.ndarray) -> np.ndarray:
        """The part J of an inertia that the joint neither feels nor changes: J S = 0 and
        X_J' J X_J = J wherever the joint stands. It may as well belong to the parent."""
        return np.zeros((6, 6))

    def bias(self, q: Array, v: Array | None) -> Array | None:
        return None

    def derivative(self, q: Array, v: Array) -> Array:
        return v

    def second(self, q: Array, v: Array) -> Array:
        return np.zeros(self.nq)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        return q + v * dt

    def difference(self, q0: Array, q1: Array) -> Array:
        return q1 - q0

    def bracket(self, u: Array, v: Array) -> Array:
        self._is_flat()
        return np.zeros(self.nv)

    def integrate_derivatives(self, x: Array) -> tuple[Array, Array]:
        self._is_flat()
        return np.eye(self.nv), np.eye(self.nv)

    def difference_derivatives(self, x: Array) -> tuple[Array, Array]:
        self._is_flat()
        return -np.eye(self.nv), np.eye(self.nv)

    def _is_flat(self) -> None:
        """Refuse derivatives of a kind that does not move by q + v dt and does not define them."""
        cls = type(self)
        own = [n for n in ("derivative", "integrate", "difference")
               if getattr(cls, n) is not getattr(Joint, n)]  # fmt: skip
        if own:
            raise ModelError(
                f"joint kind '{self.kind}' defines {own[0]} but not its derivatives: give it "
                "integrate_derivatives, difference_derivatives and bracket"
            )


@dataclass(frozen=True, eq=False)
class Revolute(Joint):
    """Rotation about an axis."""

    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    kind = "revolute"

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit(self.axis))

    def transform(self, q: Array) -> Transform:
        c, s = cos_sin(q[0])
        if self._along is not None:
            return Turn(self._along, c, s, sign=float(self.axis[self._along]))
        return Transform(axis_rotation(self.axis, c, s).T, ZERO)

    @cached_property
    def _along(self) -> int | None:
        """The coordinate axis that the joint's axis lies on, if it lies on one."""
        along = np.flatnonzero(self.axis)
        return int(along[0]) if len(along) == 1 else None

    @cached_property
    def _S(self):
        return np.concatenate([self.axis, ZERO])[:, None]

    def subspace(self, q: Array) -> Array:
        return self._S

    def unfelt(self, I: Array) -> Array:
        """Mass and first moment on the axis, and a moment of inertia equal across it."""
        across = perpendicular(self.axis)[0]
        first = self.axis @ np.stack([I[2, 4], I[0, 5], I[1, 3]])
        moment = (across @ I[:3, :3] @ across) * (np.eye(3) - np.outer(self.axis, self.axis))
        shift = skew(first * self.axis)
        return np.block([[moment, shift], [-shift, I[5, 5] * np.eye(3)]])


@dataclass(frozen=True, eq=False)
class Continuous(Revolute):
    """Rotation about an axis without limits."""

    kind = "continuous"


@dataclass(frozen=True, eq=False)
class TurnedHinge(Revolute):
    """Rotation about z by q + offset: what a hinge is in a frame turned about its axis."""

    offset: float = 0.0

    def transform(self, q: Array) -> Transform:
        return Turn(2, *cos_sin(q[0], self.offset))


@dataclass(frozen=True, eq=False)
class Prismatic(Revolute):
    """Translation along an axis."""

    kind = "prismatic"

    def transform(self, q: Array) -> Transform:
        return Transform(np.eye(3), q[0] * self.axis)

    @cached_property
    def _S(self):
        return np.concatenate([ZERO, self.axis])[:, None]

    def unfelt(self, I: Array) -> Array:
        """All rotational inertia."""
        return np.block([[I[:3, :3], np.zeros((3, 3))], [np.zeros((3, 6))]])


@dataclass(frozen=True, eq=False)
class Helical(Revolute):
    """A screw: rotation about an axis with `pitch` metres of advance a radian."""

    pitch: float = 0.0
    kind = "helical"

    def transform(self, q: Array) -> Transform:
        E = axis_rotation(self.axis, np.cos(q[0]), np.sin(q[0])).T
        return Transform(E, (self.pitch * q[0]) * self.axis)

    @cached_property
    def _S(self):
        return np.concatenate([self.axis, self.pitch * self.axis])[:, None]

    unfelt = Joint.unfelt


@dataclass(frozen=True, eq=False)
class Cylindrical(Revolute):
    """Rotation about and translation along one axis: q = (angle, distance)."""

    kind = "cylindrical"
    nq = nv = 2
    labels: ClassVar[tuple[str, ...]] = ("angle", "distance")

    def transform(self, q: Array) -> Transform:
        E = axis_rotation(self.axis, np.cos(q[0]), np.sin(q[0])).T
        return Transform(E, q[1] * self.axis)

    @cached_property
    def _S(self):
        return np.block(
            [[self.axis[:, None], np.zeros((3, 1))], [np.zeros((3, 1)), self.axis[:, None]]]
        )

    unfelt = Joint.unfelt


@dataclass(frozen=True, eq=False)
class Universal(Joint):
    """Rotation about `axis` (fixed in the parent), then about `axis2` (fixed in the child)."""

    axis: np.ndarray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    axis2: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    kind = "universal"
    nq = nv = 2
    labels: ClassVar[tuple[str, ...]] = ("1", "2")

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit(self.axis))
        object.__setattr__(self, "axis2", unit(self.axis2))
        if np.linalg.norm(np.cross(self.axis, self.axis2)) < 1e-6:
            raise ModelError("the two axes of a universal joint are parallel: give two directions")

    def _second(self, q):
        return axis_rotation(self.axis2, *cos_sin(q[1]))

    def transform(self, q: Array) -> Transform:
        R = axis_rotation(self.axis, *cos_sin(q[0])) @ self._second(q)
        return Transform(R.T, ZERO)

    def subspace(self, q: Array) -> Array:
        first = np.concatenate([self._second(q).T @ self.axis, ZERO])
        return np.stack([first, np.concatenate([self.axis2, ZERO])], axis=1)

    def unfelt(self, I: Array) -> Array:
        return mass_at_origin(I)

    def bias(self, q: Array, v: Array | None) -> Array:
        moved = self._second(q).T @ self.axis
        return np.concatenate([(-v[0] * v[1]) * cross(self.axis2, moved), ZERO])


@dataclass(frozen=True, eq=False)
class Planar(Joint):
    """Translation in a plane and rotation about its normal `axis`: q = (x, y, angle).

    x and y are measured along `axis_x` and `axis` x `axis_x`, fixed in the parent.
    """

    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    axis_x: np.ndarray | None = None
    kind = "planar"
    nq = nv = 3
    labels: ClassVar[tuple[str, ...]] = ("x", "y", "angle")

    def __post_init__(self) -> None:
        axis = unit(self.axis)
        first = self.axis_x if self.axis_x is not None else self._default_x(axis)
        first = unit(first - axis * (np.asarray(first, dtype=float) @ axis))
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "axis_x", first)

    @staticmethod
    def _default_x(axis):
        return np.array([1.0, 0, 0]) if abs(axis[2]) == 1.0 else perpendicular(axis)[0]

    @cached_property
    def _plane(self):
        return np.stack([self.axis_x, np.cross(self.axis, self.axis_x)], axis=1)  # (3, 2)

    def _E(self, q):
        return axis_rotation(self.axis, np.cos(q[2]), np.sin(q[2])).T

    def transform(self, q: Array) -> Transform:
        return Transform(self._E(q), self._plane @ q[:2])

    def subspace(self, q: Array) -> Array:
        top = np.concatenate([np.zeros((3, 2)), self.axis[:, None]], axis=1)
        return np.concatenate(
            [top, np.concatenate([self._E(q) @ self._plane, np.zeros((3, 1))], axis=1)]
        )

    def bias(self, q: Array, v: Array | None) -> Array:
        moved = self._E(q) @ (self._plane @ v[:2])
        return np.concatenate([ZERO, -v[2] * cross(self.axis, moved)])


@dataclass(frozen=True, eq=False)
class Spherical(Joint):
    """A ball joint: q a unit quaternion, scalar first; v the angular velocity in the child."""

    kind = "spherical"
    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    labels: ClassVar[tuple[str, ...]] = ("wx", "wy", "wz")

    @property
    def position_labels(self) -> tuple[str, ...]:
        return ("qw", "qx", "qy", "qz")

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def transform(self, q: Array) -> Transform:
        return Transform(quaternion_matrix(q).T, ZERO)

    def subspace(self, q: Array) -> Array:
        return np.eye(6)[:, :3]

    def unfelt(self, I: Array) -> Array:
        return mass_at_origin(I)

    def derivative(self, q: Array, v: Array) -> Array:
        return quaternion_product(q, np.concatenate([np.zeros(1), v[:3]])) * 0.5

    def second(self, q: Array, v: Array) -> Array:
        return q * (-0.25 * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]))

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        q = quaternion_product(q, quaternion_exp(v * dt))
        return q / np.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])

    def difference(self, q0: Array, q1: Array) -> Array:
        return quaternion_log(quaternion_product(q0 * np.array([1.0, -1, -1, -1]), q1))

    def bracket(self, u: Array, v: Array) -> Array:
        return cross(u, v)

    def integrate_derivatives(self, x: Array) -> tuple[Any, Array]:
        return rotation(x).T, rotation_jacobian(x)

    def difference_derivatives(self, x: Array) -> tuple[Array, Array]:
        inverse = rotation_jacobian_inverse(x)
        return -inverse.T, inverse


@dataclass(frozen=True, eq=False)
class Free(Joint):
    """Six degrees of freedom: q = [x y z, qw qx qy qz] (position in the parent, scalar-first
    quaternion), v = [wx wy wz, vx vy vz] in the child's axes."""

    kind = "free"
    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    labels: ClassVar[tuple[str, ...]] = ("wx", "wy", "wz", "vx", "vy", "vz")
    _ball = Spherical()

    @property
    def position_labels(self) -> tuple[str, ...]:
        return ("x", "y", "z", "qw", "qx", "qy", "qz")

    def neutral(self) -> Array:
        return np.array([0.0, 0, 0, 1, 0, 0, 0])

    def transform(self, q: Array) -> Transform:
        return Transform(quaternion_matrix(q[3:]).T, q[:3])

    def subspace(self, q: Array) -> Array:
        return np.eye(6)

    def derivative(self, q: Array, v: Array) -> Array:
        return np.concatenate([quaternion_matrix(q[3:]) @ v[3:], self._ball.derivative(q[3:], v)])

    def second(self, q: Array, v: Array) -> Array:
        linear = quaternion_matrix(q[3:]) @ cross(v[:3], v[3:])
        return np.concatenate([linear, self._ball.second(q[3:], v)])

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        """Along the screw of constant body velocity (the exponential of SE(3))."""
        step = advance(v[:3] * dt, v[3:] * dt)
        position = q[:3] + quaternion_matrix(q[3:]) @ step
        return np.concatenate([position, self._ball.integrate(q[3:], v[:3], dt)])

    def difference(self, q0: Array, q1: Array) -> Array:
        w = self._ball.difference(q0[3:], q1[3:])
        way = quaternion_matrix(q0[3:]).T @ (q1[:3] - q0[:3])
        return np.concatenate([w, advance_inverse(w, way)])

    def bracket(self, u: Array, v: Array) -> Array:
        return cross_motion(u, v)

    def integrate_derivatives(self, x: Array) -> tuple[Array, Array]:
        moved = Transform(rotation(x[:3]).T, advance(x[:3], x[3:]))
        return moved.matrix(), twist_jacobian(x)

    def difference_derivatives(self, x: Array) -> tuple[Array, Array]:
        return -twist_jacobian_inverse(-x), twist_jacobian_inverse(x)


@dataclass(frozen=True, eq=False)
class Fixed(Joint):
    """No motion. Bodies joined by it become one when the model is built."""

    kind = "fixed"
    nq = nv = 0
    labels: ClassVar[tuple[str, ...]] = ()

    def transform(self, q: Array) -> Transform:
        return Transform.identity()

    def subspace(self, q: Array) -> Array:
        return np.zeros((6, 0))


KINDS: dict[str, type[Joint]] = {
    cls.kind: cls
    for cls in (
        Revolute, Continuous, Prismatic, Helical, Cylindrical,
        Universal, Spherical, Planar, Free, Fixed,
    )
}  # fmt: skip
