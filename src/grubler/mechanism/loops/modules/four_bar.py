"""The planar four-bar, and every planar loop in which two revolute joints are solved for.

The two unknown joints move the ends of two bars of fixed length, which must meet: two circles

    |A| = |u|,  |B| = |w|,  A - B = t   =>   t . B = (|u|² - |t|² - |w|²) / 2 = h
    B = (h t + branch sqrt(|w|² |t|² - h²) t⊥) / |t|²

The branch is the side of t on which they meet: the open and the crossed assembly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .planar import PlanarClosure, add, angle_on, cross2, dot, quarter, scale

if TYPE_CHECKING:
    from ....typing import Array
    from .planar import Path


@dataclass(frozen=True, eq=False)
class FourBar(PlanarClosure):
    """Two revolute joints of a planar loop from the others."""

    module = "planar four-bar"

    def _meet(self, A, B, t):
        t2 = dot(t, t)
        h, w2 = _along(A, B, t)
        D = np.sqrt(w2 * t2 - h * h)
        end_B = scale(1.0 / t2, add(scale(h, t), scale(self.branch * D, quarter(t))))
        end_A = add(t, end_B)
        return angle_on(A, end_A, self.centre[0]), angle_on(B, end_B, self.centre[1])

    @staticmethod
    def branch_at(A: Path, B: Path, t: tuple[float, float], x: Array) -> int:
        """The branch on which the unknown joints have the positions x."""
        end_B = _end(B, x[1])
        return 1 if cross2(t, end_B) >= 0 else -1


def _along(A, B, t):
    w2 = dot(B.vec, B.vec)
    return (dot(A.vec, A.vec) - dot(t, t) - w2) / 2, w2


def _end(path, x):
    c, s = np.cos(x), path.sign * np.sin(x)
    return c * path.vec[0] - s * path.vec[1], c * path.vec[1] + s * path.vec[0]
