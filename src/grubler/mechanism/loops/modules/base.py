"""What every analytic module can do: a loop joint solved for some of its joints in closed form.

A module takes the place of the numeric closing of one loop joint: it gives γ, its Jacobian and its
curvature (the explicit form of Table I of Kumar et al.) of the `outputs` from the `inputs`, the
other joints of the loop. The rows of the implicit form stay those of the loop itself, so that a
module is checked against the loop that it closes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....algebra.symbolic import angle_of
from ....errors import ModelError
from ...layout import Layout
from ..base import ExplicitLoop
from ..joint import LoopJoint

if TYPE_CHECKING:
    from ....typing import Array
    from ..base import Positions


@dataclass(frozen=True, eq=False)
class ClosedForm(ExplicitLoop):
    """A loop joint and the closed form of its `outputs`, joints of any kind.

    `branch` is +1 or -1, the assembly of the two that the same inputs allow; `centre` holds the
    outputs at the reference: of the angles of one pose, those within half a turn of it are taken.
    """

    loop: LoopJoint
    branch: int
    centre: np.ndarray

    module = "closed form"

    def __post_init__(self) -> None:
        if self.branch not in (1, -1):
            raise ModelError(
                f"branch of loop '{self.name}' is {self.branch!r}: give +1 or -1, the two ways in "
                "which it can be assembled"
            )

    @abstractmethod
    def value(self, x: Array) -> Array:
        """γ: the stacked positions of the outputs at the stacked positions of the inputs."""

    @property
    def bodies(self) -> tuple[int, ...]:
        return self.loop.bodies

    @property
    def rows(self) -> int:
        return self.loop.rows

    @property
    def lengths(self) -> tuple[bool, ...]:
        return self.loop.lengths

    def residual(self, q: Positions) -> Array:
        return self.loop.residual(q)

    def linearize(self, q: Positions, v: Positions | None) -> tuple[dict[int, Array], Array | None]:
        return self.loop.linearize(q, v)

    def gap(self, q: dict[int, Array]) -> str:
        return self.loop.gap(q)

    def equations(self, q: Positions) -> Array:
        return self.loop.equations(q)

    def alignment(self, q: Positions) -> float | None:
        return self.loop.alignment(q)

    def with_branch(self, branch: Any) -> ClosedForm:
        """The same module on a branch."""
        return replace(self, branch=branch)

    def describe(self) -> str:
        outputs = ", ".join(body.joint.name for body in self.outputs)
        inputs = ", ".join(body.joint.name for body in self.inputs)
        return f"{self.loop.describe()}; {self.module}: ({outputs}) = γ({inputs})"

    def _gather(self, values):
        return np.concatenate([values[body.index] for body in self.inputs])

    def _spread(self, bodies, x, velocities: bool = False) -> dict[Any, Any]:
        """Stacked positions (or velocities) by body index."""
        layout = Layout(bodies)
        return layout.split_v(x) if velocities else layout.split_q(x)


def angle_between(
    cosine: Array | float, sine: Array | float, length: Array | float, centre: float
) -> Array | float:
    """The angle of the direction (cosine, sine) / length within half a turn of `centre`."""
    c, s = float(np.cos(centre)), float(np.sin(centre))
    angle = centre + np.arctan2(sine * c - cosine * s, cosine * c + sine * s)
    inverse = 1.0 / length
    return angle_of(angle, cosine * inverse, sine * inverse)
