"""The parts of a mechanism: bodies with their tree joints, frames and actuators. Frozen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import Transform, skew, spatial_inertia
from ..errors import ModelError
from .joints import Continuous, Joint, Revolute, TurnedHinge

if TYPE_CHECKING:
    from ..typing import Array

WORLD = -1  # index of the fixed base
LARGEST = 1e40  # of any number of a mechanism, in SI: m r² and its square stay far from overflow


def frozen(x: Any, dtype: type[Any] = float) -> np.ndarray:
    """A read-only copy."""
    x = np.array(x, dtype=dtype)
    x.flags.writeable = False
    return x


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """A joint of the spanning tree: it carries its body.

    `placement` is the constant transform X_T from the parent body to the joint frame, `motion`
    what the joint allows from there. Limits in rad or m, rad/s or m/s, N m or N. `armature` (kg m²
    or kg) is inertia felt by the joint's own velocity alone, added to the diagonal of the spanning
    mass matrix. `damping`, `friction`, `stiffness` and `rest` (of the spring) are what the
    description says of passive forces: no algorithm adds them, `Passive.of(model)` does.
    """

    name: str
    motion: Joint
    placement: Transform
    independent: bool | None = None
    lower: float | None = None
    upper: float | None = None
    velocity_limit: float | None = None
    effort_limit: float | None = None
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0

    @property
    def kind(self) -> str:
        return self.motion.kind

    @property
    def nq(self) -> int:
        return self.motion.nq

    @property
    def nv(self) -> int:
        return self.motion.nv

    @property
    def is_hinge(self) -> bool:
        """Whether it turns about its axis and does nothing else; a user's own kind may do more."""
        return type(self.motion) in (Revolute, Continuous, TurnedHinge)

    @property
    def limits(self) -> tuple[float, float]:
        """(lower, upper) in rad or m, infinite where there is none.

        Only a joint with one position has limits, and only where the lower one is below the upper:
        descriptions write lower = upper for "not given"."""
        low = -np.inf if self.lower is None else float(self.lower)
        high = np.inf if self.upper is None else float(self.upper)
        return (low, high) if self.nq == self.nv == 1 and low < high else (-np.inf, np.inf)

    def within_limits(self, position: np.ndarray) -> np.ndarray:
        """The position of the joint that is nearest to the given one and within its limits."""
        return np.clip(position, *self.limits) if self.nq == self.nv == 1 else position

    def transform(self, q: Array) -> Transform:
        """X_i,λ(i) from the parent body to this body (Algorithm 1, line 6)."""
        return self.motion.transform(q).after(self.placement)

    def names(self, labels: tuple[str, ...]) -> list[str]:
        return [f"{self.name}:{label}" if label else self.name for label in labels]


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body and the joint that carries it. Inertia about the centre of mass, in SI."""

    name: str
    index: int
    parent: int
    joint: TreeJoint
    mass: float
    com: np.ndarray
    inertia: np.ndarray

    @cached_property
    def spatial(self) -> np.ndarray:
        """The 6x6 spatial inertia at the body origin."""
        return spatial_inertia(self.mass, self.com, self.inertia)

    @cached_property
    def symmetric_about_joint(self) -> bool:
        """Whether turning the joint leaves the inertia unchanged, as it does for every rotor."""
        if not self.joint.is_hinge:
            return False
        scale = np.abs(self.spatial).max() + 1e-300
        return all(
            np.abs(X.congruence(self.spatial) - self.spatial).max() < 1e-13 * scale
            for X in (self.joint.motion.transform(np.array([angle])) for angle in (0.7, 2.1))
        )


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame on a body (or the world); `placement` leads from the body into the frame."""

    name: str
    body: int
    placement: Transform


@dataclass(frozen=True, eq=False)
class Actuator:
    """A motor on a tree joint: joint effort = gear * actuator effort."""

    name: str
    joint: int
    gear: float = 1.0
    effort_limit: float | None = None


def inertia_matrix(name: str, inertia: Array | tuple[float, ...] | list[float]) -> np.ndarray:
    """A 3x3 inertia from six numbers (ixx, ixy, ixz, iyy, iyz, izz) or nine."""
    inertia = np.asarray(inertia, dtype=float)
    if inertia.shape == (6,):
        xx, xy, xz, yy, yz, zz = inertia
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if inertia.shape != (3, 3):
        raise ModelError(
            f"inertia of body '{name}' has shape {inertia.shape}: give six numbers "
            "(ixx, ixy, ixz, iyy, iyz, izz) or a 3x3 matrix"
        )
    return inertia


def check_inertia(
    name: str, mass: float, com: Array, inertia: np.ndarray, physical: bool, moments: bool = True
) -> None:
    """Refuse what no body can have: negative mass, indefinite inertia, triangle inequality.

    `moments=False` leaves the principal moments unchecked, of a part of a body.
    """
    largest = np.abs(np.concatenate([[mass], np.ravel(com), np.ravel(inertia)])).max()
    if not largest <= LARGEST:  # nor is NaN
        what = f"beyond {LARGEST:g}" if np.isfinite(largest) else "that is not finite"
        raise ModelError(f"body '{name}' has a mass, com or inertia {what}")
    if mass < 0:
        raise ModelError(f"body '{name}' has negative mass {mass:g} kg: masses are >= 0")
    scale = np.abs(inertia).max() + 1e-300
    if np.abs(inertia - inertia.T).max() > 1e-9 * scale:
        raise ModelError(f"inertia of body '{name}' is not symmetric: use (I + I.T) / 2")
    if not moments:
        return
    principal = np.linalg.eigvalsh(inertia)
    if principal[0] < -1e-9 * scale - 1e-15:
        raise ModelError(
            f"inertia of body '{name}' is not positive: principal moments "
            f"{np.array2string(principal, precision=4)} kg m²; take it about the centre of mass"
        )
    if physical and principal[0] + principal[1] < principal[2] * (1 - 1e-6) - 1e-15:
        raise ModelError(
            f"inertia of body '{name}' is not physical: principal moments "
            f"{np.array2string(principal, precision=4)} kg m² violate the triangle inequality "
            "(the two smaller ones must sum to at least the largest); correct it, or pass "
            "physical=False for a deliberate idealisation such as a planar link"
        )


def lump(
    parts: Iterable[tuple[float, np.ndarray, np.ndarray, Transform]],
) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia of bodies welded together, each given by its own and the
    transform from the common frame into it."""
    parts = list(parts)
    mass = sum(m for m, *_ in parts)
    centres = [X.r + X.E.T @ com for _, com, _, X in parts]
    com = np.zeros(3)
    if mass > 0:
        com = sum(m * c for (m, *_), c in zip(parts, centres, strict=True)) / mass
    inertia = np.zeros((3, 3))
    for (m, _, own, X), centre in zip(parts, centres, strict=True):
        d = skew(centre - com)
        inertia = inertia + X.E.T @ own @ X.E - m * (d @ d)
    return mass, com, inertia
