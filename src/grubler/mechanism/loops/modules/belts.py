"""Parallel belts: motors side by side that drive a chain of links through coaxial pulleys.

Motor i turns pulley i, which belts carry along the links before it, so every motor sees all the
links up to its own: rotor_i = gear_i * sum_{j <= i} belt_ij q_j. A linear map: G is constant, g is
zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....errors import ModelError
from ...parts import frozen
from ..base import ExplicitLoop

if TYPE_CHECKING:
    from ....typing import Array
    from ...parts import Body


@dataclass(frozen=True, eq=False)
class ParallelBelts(ExplicitLoop):
    """Several joints as a constant linear map of others: outputs = ratios @ inputs."""

    ratios: np.ndarray

    module = "parallel belts"

    def value(self, x: Array) -> Array:
        return self.ratios @ x

    def jacobian(self, x: Array) -> Array:
        return self.ratios

    def curvature(self, x: Array, d: Array) -> Array:
        return np.zeros(len(self.outputs))

    def describe(self) -> str:
        outputs = ", ".join(body.joint.name for body in self.outputs)
        return f"{self.module}: ({outputs}) from {', '.join(b.joint.name for b in self.inputs)}"


def parallel_belts(
    name: str,
    links: tuple[Body, Body],
    rotors: tuple[Body, Body],
    gears: Sequence[float],
    belts: list[list[float]] | None = None,
) -> ParallelBelts:
    """Rotor i on belts along the links up to the i-th: gear and, a row a rotor, belt ratios."""
    n = len(rotors)
    if len(links) != n or len(gears) != n:
        raise ModelError(
            f"belts '{name}': {len(links)} links, {n} rotors and {len(gears)} gear ratios: give as "
            "many of each"
        )
    rows = np.tril(np.ones((n, n)))
    for i, row in enumerate(belts or ()):
        if len(row) != i + 1:
            raise ModelError(
                f"belts '{name}': rotor {i + 1} runs along {i + 1} links, but {len(row)} belt "
                "ratios are given for it"
            )
        rows[i, : i + 1] = row
    ratios = frozen(np.asarray(gears, dtype=float)[:, None] * rows)
    return ParallelBelts(name, tuple(links), tuple(rotors), ratios)
