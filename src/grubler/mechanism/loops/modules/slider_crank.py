"""The slider-crank, RRPR and lambda mechanisms: planar loops solved for a prismatic joint.

A line and a circle meet, with e the unit vector along the line:

    A = s e, |B| = |w|, A - B = t   =>   s = e . t + branch sqrt((e . t)² - |t|² + |w|²)

In the lambda mechanism (an elbow or a knee moved by a linear actuator) the slider turns with its
rod and the circle is that of the moved joint; in the slider-crank it is fixed. The branch says on
which side of the circle's centre the slider stands. Two unknown sliders meet in one point only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .planar import PlanarClosure, add, angle_on, cross2, dot, scale, sub

if TYPE_CHECKING:
    from ....typing import Array
    from .planar import Path


@dataclass(frozen=True, eq=False)
class SliderCrank(PlanarClosure):
    """A prismatic and a revolute joint of a planar loop from the others, or two prismatic ones."""

    module = "slider-crank"

    def _meet(self, A, B, t):
        if A.line and B.line:  # A.vec a - B.vec b = t
            inverse = 1.0 / cross2(A.vec, B.vec)
            return cross2(t, B.vec) * inverse, cross2(t, A.vec) * inverse
        if A.line:
            s = self._slide(A.vec, t, B.vec)
            return s, angle_on(B, sub(scale(s, A.vec), t), self.centre[1])
        s = self._slide(B.vec, scale(-1.0, t), A.vec)
        return angle_on(A, add(t, scale(s, B.vec)), self.centre[0]), s

    def _slide(self, e, t, bar):
        """s with |s e - t| = |bar|."""
        along = dot(e, t)
        return along + self.branch * np.sqrt(along * along - dot(t, t) + dot(bar, bar))

    @staticmethod
    def branch_at(A: Path, B: Path, t: tuple[float, float], x: Array) -> int:
        """The branch on which the unknown joints have the positions x."""
        if A.line and B.line:
            return 1
        along = dot(A.vec, t) if A.line else -dot(B.vec, t)
        return 1 if (x[0] if A.line else x[1]) - along >= 0 else -1
