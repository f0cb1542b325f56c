"""Passive forces of tree joints: damping, friction loss, springs, smooth limits.

They act on any joint, dependent ones too, and reach the coordinates by virtual work, Gᵀ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.spanning import spanning_map
from ..errors import InputError
from ..model import Model

if TYPE_CHECKING:
    from ..typing import Array


@dataclass(frozen=True)
class Passive:
    """Forces by joint name, in N m or N.

    `damping`: viscous, per rad/s or m/s. `friction`: Coulomb loss, smoothed over `friction_speed`.
    `spring`: (stiffness, rest position). `limit_stiffness` (N m/rad) and `limit_damping` push back
    into the limits that the model's joints have, growing quadratically from zero at the limit.
    Springs and limits take joints of one degree of freedom.
    """

    damping: Mapping[str, float] = field(default_factory=dict)
    friction: Mapping[str, float] = field(default_factory=dict)
    spring: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    friction_speed: float = 1e-2
    limit_stiffness: float = 0.0
    limit_damping: float = 0.0

    @classmethod
    def of(cls, model: Model, **options: Any) -> Passive:
        """What the joints of a model have by their description (damping, friction, springs);
        `options` are the others of this class, such as limit_stiffness."""
        joints = model.joints
        return cls(
            damping={j.name: j.damping for j in joints if j.damping},
            friction={j.name: j.friction for j in joints if j.friction},
            spring={j.name: (j.stiffness, j.rest) for j in joints if j.stiffness},
            **options,
        )

    def checked(self, model: Model) -> Passive:
        """Refuse unknown joints, springs on joints of several freedoms, and what is no number."""
        for field_name in ("damping", "friction", "spring"):
            given = getattr(self, field_name)
            if not isinstance(given, Mapping):
                raise InputError(f"{field_name} is {given!r}: give {{joint: number}}")
            for name, value in given.items():
                model.body_of_joint(name)
                _check_entry(field_name, name, value)
        for name in self.spring:
            if model.joint(name).nq != 1:
                raise InputError(f"joint '{name}' has {model.joint(name).nv} freedoms: no spring")
        for field_name in ("limit_stiffness", "limit_damping", "friction_speed"):
            _check_number(field_name, getattr(self, field_name))
        if self.friction_speed <= 0:
            raise InputError(
                "friction_speed must be > 0: it is the speed of full friction, in rad/s"
            )
        return self

    @property
    def empty(self) -> bool:
        return not (self.damping or self.friction or self.spring or self.limit_stiffness)

    def force(self, model: Model, q: Array, v: Array) -> Any:
        """tau (nv,) of all passive forces."""
        G, _ = spanning_map(model, q)
        rates, positions = G @ v, model.unpack(q)
        forces = []
        for index, rate in model.spanning.split_v(rates).items():
            joint = model.bodies[index].joint
            f = -self.damping.get(joint.name, 0.0) * rate
            if joint.name in self.friction:
                f = f - self.friction[joint.name] * np.tanh(rate / self.friction_speed)
            if joint.name in self.spring:
                k, rest = self.spring[joint.name]
                f = f - k * (positions[index] - rest)
            if self.limit_stiffness and joint.nq == 1:
                f = f + self._limits(joint, positions[index], rate)
            forces.append(f)
        return G.T @ np.concatenate(forces)

    def _limits(self, joint, position, rate):
        force = np.zeros(1)
        for bound, sign in ((joint.lower, 1.0), (joint.upper, -1.0)):
            if bound is None:
                continue
            depth = np.maximum(sign * (bound - position), 0.0)
            # smooth at the limit: stiffness and damping both grow with the depth
            push = self.limit_stiffness * depth * depth / (depth + 1e-2)
            force = force + sign * push - self.limit_damping * rate * depth / (depth + 1e-2)
        return force


def _check_entry(field_name: str, joint: str, value) -> None:
    """Refuse a coefficient of a joint that is no finite number; of a spring, no pair of them."""
    what = f"{field_name} of joint '{joint}'"
    if field_name != "spring":
        _check_number(what, value)
        return
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise InputError(f"{what} is {value!r}: give (stiffness, rest position)")
    for part, x in zip(("stiffness", "rest position"), value, strict=True):
        _check_number(f"{what}, {part}", x)


def _check_number(what: str, value) -> None:
    number = isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_))
    if not (number and np.isfinite(float(value))):
        raise InputError(f"{what} is {value!r}: give a finite number")
