"""Tello's two differentials: two motors that move two joints together, in closed form.

The motor's angle, behind the gear, enters each loop equation as A sin y + B cos y = C with A, B, C
functions of the link angles (a, b):

    y = atan2(A C - branch B D, B C + branch A D),   D² = A² + B² - C²

Differentiating the equation itself gives the Jacobian and the curvature without differentiating
the arc tangent. Numbers: generalized_rbda v0.1.0, MIT licence, (c) 2023 Matthew Chignoli.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ....algebra.symbolic import Differentiable
from ....errors import ModelError
from ..base import ExplicitLoop

if TYPE_CHECKING:
    from ....typing import Array
    from ...parts import Body


def hip_coefficients(x: Array) -> Array:
    """A, B, C of both motors of the hip, for gimbal angle x[0] and thigh angle x[1]."""
    ca, sa, cb, sb = np.cos(x[0]), np.sin(x[0]), np.cos(x[1]), np.sin(x[1])
    rows = []
    for s in (1.0, -1.0):
        rows.append(57 / 2500 - 8 / 625 * ca * sb - s * 7 / 625 * sa)
        rows.append(-8 / 625 * cb)
        rows.append(
            49 / 5000 * ca
            + s * 399 / 20000 * sa
            + 57 / 2500 * ca * sb
            - s * 7 / 625 * sa * sb
            - 3021 / 160000
        )
    return np.stack(rows)


def ankle_coefficients(x: Array) -> Array:
    """A, B, C of half the difference of the knee-ankle's motors (less a constant), for foot angle
    x[1]; their mean is the shin angle x[0]."""
    beta = x[1] + np.deg2rad(180 - 66)
    c9, s9 = float(np.cos(np.pi / 9)), float(np.sin(np.pi / 9))
    cb, sb = np.cos(beta), np.sin(beta)
    A = -21 / 6250 * s9 - 7 / 2500 * sb
    B = 13 / 625 - 21 / 6250 * c9 - 7 / 2500 * cb
    C = 273 / 12500 * c9 + 91 / 5000 * cb - 147 / 50000 * (c9 * cb + s9 * sb) - 163349 / 6250000
    return np.stack([A, B, C])


ANKLE_OFFSET = float(np.deg2rad(180 - 59.16))


@dataclass(frozen=True, eq=False)
class Differential(ExplicitLoop):
    """Motor angles = ratio * (mix @ [a, y - offset]): y the roots of A sin y + B cos y = C.

    `coefficients` gives A, B, C of each root from the link angles; `mix` puts roots and link angles
    together.
    """

    coefficients: Callable[..., Any]
    branch: int
    offset: float
    mix: np.ndarray
    ratio: float

    module = "differential"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.branch not in (1, -1):
            raise ModelError(f"branch of differential '{self.name}' is {self.branch!r}: +1 or -1")
        if (len(self.inputs), len(self.outputs)) != (2, 2):
            raise ModelError(
                f"differential '{self.name}' couples two motors to two links: "
                f"{len(self.outputs)} and {len(self.inputs)} joints given"
            )

    def with_branch(self, branch: Any) -> Differential:
        return replace(self, branch=branch)

    @cached_property
    def _function(self) -> Differentiable:
        return Differentiable(self.coefficients, 2)

    def _roots(self, x):
        """(y, sin y, cos y) of each equation."""
        rows = self._function.value(x)
        out = []
        for A, B, C in (rows[i : i + 3] for i in range(0, self._function.m, 3)):
            D = self.branch * np.sqrt(A * A + B * B - C * C)
            inverse = 1.0 / (A * A + B * B)
            sine, cosine = (A * C - B * D) * inverse, (B * C + A * D) * inverse
            out.append((np.arctan2(sine, cosine), sine, cosine, A * cosine - B * sine))
        return out

    def value(self, x: Array) -> Array:
        roots = np.stack([y - self.offset for y, *_ in self._roots(x)])
        return self.ratio * (self.mix @ np.concatenate([x, roots]))

    def _slopes(self, x):
        """dy/dx (roots, 2): (C' - A' sin y - B' cos y) / (A cos y - B sin y)."""
        J = self._function.jacobian(x)
        return np.stack(
            [
                (J[3 * i + 2] - J[3 * i] * sine - J[3 * i + 1] * cosine) / pivot
                for i, (_, sine, cosine, pivot) in enumerate(self._roots(x))
            ]
        )

    def jacobian(self, x: Array) -> Array:
        return self.ratio * (self.mix @ np.concatenate([np.eye(2), self._slopes(x)]))

    def curvature(self, x: Array, d: Any) -> Array:
        rows, J = self._function.value(x), self._function.jacobian(x)
        second, rates = self._function.curvature(x, d), self._slopes(x) @ d
        out = []
        for i, (_, sine, cosine, pivot) in enumerate(self._roots(x)):
            A, B, C = (3 * i + n for n in range(3))
            w = rates[i]
            turning = (J[A] @ d) * cosine - (J[B] @ d) * sine
            bend = second[C] - second[A] * sine - second[B] * cosine
            bend = bend - 2 * turning * w + (rows[A] * sine + rows[B] * cosine) * w * w
            out.append(bend / pivot)
        return self.ratio * (self.mix @ np.concatenate([np.zeros(2), np.stack(out)]))

    def describe(self) -> str:
        outputs = ", ".join(body.joint.name for body in self.outputs)
        return f"{self.module}: ({outputs}) = γ({', '.join(b.joint.name for b in self.inputs)})"


def tello_hip(
    name: str,
    links: tuple[Body, Body],
    motors: tuple[Body, Body],
    ratio: float = 6.0,
    branch: int = 1,
) -> Differential:
    """Tello's hip: `links` the gimbal's and the thigh's joints, `motors` its two motors'."""
    mix = np.eye(4)[2:]
    return Differential(
        name, tuple(links), tuple(motors), hip_coefficients, branch, 0.0, mix, ratio
    )


def tello_knee(
    name: str, links: Any, motors: Any, ratio: float = 6.0, branch: int = -1
) -> Differential:
    """Tello's knee and ankle: `links` the shin's and the foot's joints, `motors` its motors'."""
    mix = np.array([[1.0, 0.0, -1.0], [1.0, 0.0, 1.0]])
    return Differential(
        name, tuple(links), tuple(motors), ankle_coefficients, branch, ANKLE_OFFSET, mix, ratio
    )
