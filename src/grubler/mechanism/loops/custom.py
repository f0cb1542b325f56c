"""A user's own constraint, written once in NumPy; its derivatives come by differentiation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.symbolic import Differentiable
from ...errors import ModelError
from ..layout import Layout
from ..parts import Body
from .base import ExplicitLoop, Loop

if TYPE_CHECKING:
    from ...typing import Array
    from .base import Positions


@dataclass(frozen=True, eq=False)
class ImplicitConstraint(Loop):
    """φ(q) = 0 over the stacked positions of the named joints, of any kind."""

    involved: tuple[Body, ...]
    phi: Callable[..., Any]

    @cached_property
    def _function(self) -> Differentiable:
        return Differentiable(self.phi, sum(body.joint.nq for body in self.involved))

    @property
    def bodies(self) -> tuple[int, ...]:
        return tuple(body.index for body in self.involved)

    @property
    def rows(self) -> int:
        return self._function.m

    def residual(self, q: Positions) -> Array:
        return self._function.value(np.concatenate([q[body.index] for body in self.involved]))

    def linearize(self, q: Positions, v: Positions | None) -> tuple[dict[int, Array], Array | None]:
        """K = dφ/dq dq/dt(v), column by column; k = -d/dt(K) v (after (3))."""
        stacked = np.concatenate([q[body.index] for body in self.involved])
        J = self._function.jacobian(stacked)
        blocks, places = {}, Layout(self.involved).q
        for body in self.involved:
            motion = body.joint.motion
            columns = [motion.derivative(q[body.index], e) for e in np.eye(motion.nv)]
            blocks[body.index] = J[:, places[body.index]] @ np.stack(columns, axis=1)
        if v is None:
            return blocks, None
        rate = [b.joint.motion.derivative(q[b.index], v[b.index]) for b in self.involved]
        drift = [b.joint.motion.second(q[b.index], v[b.index]) for b in self.involved]
        curvature = self._function.curvature(stacked, np.concatenate(rate))
        return blocks, -(curvature + J @ np.concatenate(drift))

    def describe(self) -> str:
        return f"φ({', '.join(body.joint.name for body in self.involved)}) = 0, {self.rows} rows"


@dataclass(frozen=True, eq=False)
class ExplicitConstraint(ExplicitLoop):
    """q_dependent = γ(y), the closed form of a mechanism's dependent joints."""

    gamma: Callable[..., Any]

    @cached_property
    def _function(self) -> Differentiable:
        function = Differentiable(self.gamma, len(self.inputs))
        if function.m != len(self.outputs):
            raise ModelError(
                f"constraint '{self.name}': gamma returns {function.m} values for "
                f"{len(self.outputs)} dependent joints"
            )
        return function

    def value(self, x: Array) -> Array:
        return self._function.value(x)

    def jacobian(self, x: Array) -> Array:
        return self._function.jacobian(x)

    def curvature(self, x: Array, d: Any) -> Array:
        return self._function.curvature(x, d)

    def describe(self) -> str:
        outputs = ", ".join(body.joint.name for body in self.outputs)
        return f"({outputs}) = γ({', '.join(body.joint.name for body in self.inputs)})"
