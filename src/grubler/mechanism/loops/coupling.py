"""Couplings between joint positions: gears, belts, mimic joints, cams."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .base import ExplicitLoop

if TYPE_CHECKING:
    from ...typing import Array


@dataclass(frozen=True, eq=False)
class LinearCoupling(ExplicitLoop):
    """q_d = sum_j ratio_j q_j + offset: a gear, a belt, a mimic joint, a linear differential."""

    ratios: np.ndarray
    offset: float = 0.0

    everywhere = True

    def value(self, x: Array) -> Array:
        return self.jacobian(x) @ x + self.offset

    @cached_property
    def _row(self):
        return np.stack([self.ratios])

    def jacobian(self, x: Array) -> Array:
        return self._row

    def curvature(self, x: Array, d: Array) -> Array:
        return np.zeros(1)

    def describe(self) -> str:
        terms = " + ".join(
            f"{r:g} {body.joint.name}" for r, body in zip(self.ratios, self.inputs, strict=True)
        )
        offset = f" + {self.offset:g}" if self.offset else ""
        return f"{self.outputs[0].joint.name} = {terms}{offset}"


@dataclass(frozen=True, eq=False)
class PolynomialCoupling(ExplicitLoop):
    """q_d = a0 + a1 x + a2 x² + ...: a cam, or MJCF's quartic joint equality."""

    coefficients: np.ndarray

    everywhere = True

    @staticmethod
    def _horner(coefficients, x):
        value = 0.0
        for c in coefficients[::-1]:
            value = value * x + c
        return value

    def _derivative(self, order: int):
        return np.polynomial.polynomial.polyder(self.coefficients, order)

    def value(self, x: Array) -> Array:
        return np.stack([self._horner(self.coefficients, x[0])])

    def jacobian(self, x: Array) -> Array:
        return np.stack([np.stack([self._horner(self._derivative(1), x[0])])])

    def curvature(self, x: Array, d: Any) -> Array:
        return np.stack([self._horner(self._derivative(2), x[0]) * d[0] * d[0]])

    def describe(self) -> str:
        x = self.inputs[0].joint.name
        terms = [
            f"{c:g}" + (f" {x}^{i}" if i else "") for i, c in enumerate(self.coefficients) if c
        ]
        return f"{self.outputs[0].joint.name} = {' + '.join(terms) or '0'}"
