"""What every loop can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.spatial import Transform
from ...errors import ModelError
from ..parts import Body

if TYPE_CHECKING:
    from ...typing import Array

Positions = Mapping[int, np.ndarray]  # body index -> position of its tree joint


@dataclass(frozen=True, eq=False)
class Loop(ABC):
    """A constraint between tree joints.

    `linearize` gives the blocks of K by body index and k, so that the loop reads sum_i K_i qd_i = 0
    and sum_i K_i qdd_i = k: the derivatives of `equations`. `residual` has the same derivatives
    where the loop is closed, and vanishes there and nowhere else; `slopes` are the blocks of its
    derivative anywhere. `bodies` are the bodies whose joints appear in the loop.
    """

    name: str
    # m or rad, for each row: what round-off of the description leaves open
    slack: float | np.ndarray = field(default=0.0, kw_only=True)

    geometric = False  # whether the rows are lengths and angles of bodies, not of the user's making

    @property
    @abstractmethod
    def bodies(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def rows(self) -> int: ...

    @property
    def lengths(self) -> tuple[bool, ...]:
        """For each row whether it is a length."""
        return (False,) * self.rows

    @abstractmethod
    def residual(self, q: Positions) -> Array: ...

    def opening(self, q: Positions) -> float:
        """How far the loop is open beyond its slack, m or rad."""
        beyond = np.abs(self.residual(q)) - self.slack
        return float(np.maximum(beyond, 0.0).max(initial=0.0))  # NaN stays

    def equations(self, q: Positions) -> Array:
        """The rows that K and k derive from; they may vanish at a false assembly, too."""
        return self.residual(q)

    def slopes(self, q: Positions) -> dict[Any, Any]:
        """The derivative of `residual` by body index (floats only)."""
        return self.linearize(q, None)[0]

    @abstractmethod
    def linearize(
        self, q: Positions, v: Positions | None
    ) -> tuple[dict[int, Array], Array | None]: ...

    @abstractmethod
    def describe(self) -> str:
        """One line for a person: what is coupled to what."""

    def reframed(self, bodies: Sequence[Body], new: Mapping[int, Transform]) -> Loop:
        """The same loop where bodies have other frames, `new` from the old ones."""
        return self

    def gap(self, q: Positions) -> str:
        """How far the loop is from closed, in words with a unit."""
        return f"{np.abs(self.residual(q)).max():.3g}"

    def alignment(self, q: Positions) -> Array | float | None:
        """The cosine of the angle by which directions that must agree differ; None without any."""
        return None

    def turned_round(self) -> Loop | None:
        """The same loop with one of its axes the other way round, None without an axis."""
        return None

    def on_branch(self, q: Positions) -> bool:
        """False where the loop is nearer to being closed the wrong way round."""
        cosine = self.alignment(q)
        return cosine is None or bool(cosine > 0)


@dataclass(frozen=True, eq=False)
class ExplicitLoop(Loop):
    """A loop that gives the positions of its dependent joints from those of others (3).

    `value`, `jacobian` and `curvature` are γ, dγ/dx and the second derivative along a direction;
    the implicit rows φ = q_dependent - γ(q_inputs) follow from them.
    """

    inputs: tuple[Body, ...]
    outputs: tuple[Body, ...]

    everywhere = False  # whether all positions of the inputs can be served

    def __post_init__(self) -> None:
        for body in (*self.inputs, *self.outputs):
            if (body.joint.nq, body.joint.nv) != (1, 1):
                raise ModelError(
                    f"coupling '{self.name}' uses joint '{body.joint.name}', a {body.joint.kind} "
                    "joint: couplings take joints of one degree of freedom"
                )
        names = [body.joint.name for body in (*self.inputs, *self.outputs)]
        if len(set(names)) < len(names):
            raise ModelError(f"coupling '{self.name}' names a joint twice: {', '.join(names)}")

    @abstractmethod
    def value(self, x: Array) -> Array: ...

    @abstractmethod
    def jacobian(self, x: Array) -> Array: ...

    @abstractmethod
    def curvature(self, x: Array, d: Array) -> Array: ...

    @property
    def bodies(self) -> tuple[int, ...]:
        return tuple(body.index for body in (*self.inputs, *self.outputs))

    @property
    def rows(self) -> int:
        return len(self.outputs)

    @property
    def lengths(self) -> tuple[bool, ...]:
        return tuple(body.joint.kind == "prismatic" for body in self.outputs)

    def _gather(self, values: Positions):
        return np.concatenate([values[body.index] for body in self.inputs])

    def residual(self, q: Positions) -> Array:
        out = np.concatenate([q[body.index] for body in self.outputs])
        return out - self.value(self._gather(q))

    def linearize(self, q: Positions, v: Positions | None) -> tuple[dict[int, Array], Array | None]:
        x = self._gather(q)
        J = self.jacobian(x)
        blocks = {body.index: -J[:, i : i + 1] for i, body in enumerate(self.inputs)}
        identity = np.eye(self.rows)
        blocks |= {body.index: identity[:, i : i + 1] for i, body in enumerate(self.outputs)}
        k = None if v is None else self.curvature(x, self._gather(v))
        return blocks, k
