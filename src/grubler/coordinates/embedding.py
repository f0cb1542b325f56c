"""How a cluster's independent coordinates move its tree joints: q = γ(y), qd = G v, qdd = G a + g.

Three ways, one interface (3): no loop at all (G = 1), loops with an explicit map (the independent
positions are the coordinates), and loops closed implicitly (the spanning positions are the
coordinates, and G, g come by generalized coordinate partitioning).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import eliminated, solve_general
from ..errors import PartitionError
from ..mechanism.layout import Layout
from ..mechanism.loops import Loop
from ..mechanism.loops.base import ExplicitLoop
from ..mechanism.parts import Body
from ..tolerances import DEAD_POINT, LOST_PIVOT

if TYPE_CHECKING:
    from ..algebra.spatial import Transform
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class Embedding(ABC):
    """The joint of a cluster: its bodies' tree joints with the loops between them."""

    bodies: tuple[Body, ...]
    loops: tuple[Loop, ...]

    implicit = False
    always_closed = False  # whether its loops close at every q

    @property
    def kept(self) -> tuple[int, ...]:
        """Rows of the stacked K that are independent; empty: all of them."""
        return ()

    @cached_property
    def spanning(self) -> Layout:
        """All tree joints of the cluster."""
        return Layout(self.bodies)

    @cached_property
    def layout(self) -> Layout:
        """The joints whose positions are the cluster's part of q."""
        return Layout(self.coordinates)

    @property
    def columns(self) -> dict[int, slice]:
        """Columns of each body's joint in the cluster's spanning velocities."""
        return self.spanning.v

    @property
    def nv_span(self) -> int:
        return self.spanning.nv

    @property
    @abstractmethod
    def independent(self) -> tuple[int, ...]:
        """Columns of the cluster's spanning velocities that are its coordinates v."""

    @property
    def independent_names(self) -> list[str]:
        return [self.spanning.v_names[c] for c in self.independent]

    @property
    def nv(self) -> int:
        return len(self.independent)

    @property
    def coordinates(self) -> tuple[Body, ...]:
        """The bodies whose joint positions are the cluster's part of q: all, unless explicit."""
        return self.bodies

    @property
    def nq(self) -> int:
        return self.layout.nq

    def positions(self, q: Array) -> dict[Any, Any]:
        """The position of every tree joint, by body index."""
        return self.layout.split_q(q)

    def reframed(self, bodies: Sequence[Body], new: dict[Any, Any]) -> Embedding:
        """The same where bodies have other frames, `new` from the old ones."""
        return self

    @abstractmethod
    def velocity_map(self, positions: Any, v: Array | None) -> tuple[Any, ...]:
        """G (nv_span, nv), the spanning velocities G v by body, and g by body (v may be None)."""

    def check(self, positions: dict[Any, Any]) -> None:
        """Refuse a configuration at which the embedding is singular (floats only)."""
        return None

    def condition(self, positions: dict[Any, Any]) -> float:
        """How badly velocities of the dependent joints are determined: 1 at best, infinite at a
        singularity (floats and symbols)."""
        return 1.0

    def split(self, spanning: Array) -> dict[Any, Any]:
        """Stacked spanning velocities by body index."""
        return self.spanning.split_v(spanning)


@dataclass(frozen=True, eq=False)
class OpenJoint(Embedding):
    """One body and no loop: an ordinary joint, G = 1, g = 0."""

    @property
    def independent(self) -> tuple[int, ...]:
        return tuple(range(self.nv_span))

    def velocity_map(self, positions: dict[int, Array], v: Array | None) -> tuple[Any, ...]:
        n = self.nv_span
        if v is None:
            return np.eye(n), None, None
        return np.eye(n), self.split(v), self.split(np.zeros(n))


@dataclass(frozen=True, eq=False)
class ExplicitJoint(Embedding):
    """Loops solved for their dependent joints, one after the other in `steps`.

    `kept` are the rows of the stacked K that are independent, where that is not all of them.
    """

    steps: tuple[ExplicitLoop, ...] = ()
    kept: tuple[int, ...] = ()

    @cached_property
    def always_closed(self) -> bool:
        return len(self.steps) == len(self.loops) and all(step.everywhere for step in self.steps)

    @cached_property
    def coordinates(self) -> tuple[Body, ...]:
        dependent = {body.index for step in self.steps for body in step.outputs}
        return tuple(body for body in self.bodies if body.index not in dependent)

    @cached_property
    def independent(self) -> tuple[int, ...]:
        return tuple(
            c for body in self.coordinates for c in range(self.nv_span)[self.columns[body.index]]
        )

    def positions(self, q: Array) -> dict[int, Array]:
        values = self.layout.split_q(q)
        for step in self.steps:
            values |= Layout(step.outputs).split_q(step.value(step._gather(values)))
        return values

    def velocity_map(self, positions: dict[int, Array], v: Array | None) -> tuple[Any, ...]:
        rows = self.layout.split_v(np.eye(self.nv))
        drift = {body.index: np.zeros(body.joint.nv) for body in self.coordinates}
        for step in self.steps:  # the chain rule, step by step
            x = step._gather(positions)
            J = step.jacobian(x)
            G = J @ np.concatenate([rows[body.index] for body in step.inputs])
            rows |= Layout(step.outputs).split_v(G)
            if v is not None:
                rate = np.concatenate([rows[body.index] for body in step.inputs]) @ v
                g = J @ step._gather(drift) + step.curvature(x, rate)
                drift |= Layout(step.outputs).split_v(g)
        G = self.spanning.stack(rows)
        return (G, None, None) if v is None else (G, self.split(G @ v), drift)

    def condition(self, positions: dict[Any, Any]) -> Any:
        worst = 1.0
        for step in self.steps:
            conditioning = getattr(step, "conditioning", None)
            if conditioning is not None:
                worst = np.maximum(worst, 1.0 / conditioning(positions))
        return worst

    def check(self, positions: dict[Any, Any]) -> None:
        """Refuse a dead point of a closed form, where positions give no velocities."""
        for step in self.steps:
            conditioning = getattr(step, "conditioning", None)
            if conditioning is not None and not conditioning(positions) > DEAD_POINT:
                raise PartitionError(
                    f"loop '{step.name}' is at a dead point at this q: joints "
                    f"{', '.join(body.joint.name for body in step.inputs)} do not determine the "
                    "others here; mark other joints independent=True"
                )


@dataclass(frozen=True, eq=False)
class ImplicitJoint(Embedding):
    """Loops closed implicitly: G = [1; -K_d⁻¹ K_i], g = [0; K_d⁻¹ k] on the kept rows of K.

    `kept` are the rows of the stacked K that are independent, `dependent` the columns solved for,
    `order` the order in which the kept rows are eliminated. `doubt` says in words where the rank
    can be read in two ways, and is empty where it cannot.
    """

    kept: tuple[int, ...] = ()
    dependent: tuple[int, ...] = ()
    order: tuple[int, ...] = field(default=())
    doubt: str = field(default="", metadata={"fingerprint": False})

    implicit = True

    @cached_property
    def independent(self) -> tuple[int, ...]:
        return tuple(c for c in range(self.nv_span) if c not in self.dependent)

    def reframed(self, bodies: tuple[Body, ...], new: dict[int, Transform]) -> Embedding:
        return replace(self, loops=tuple(loop.reframed(bodies, new) for loop in self.loops))

    def constraint(
        self, positions: Any, velocities: dict[Any, Any] | None
    ) -> tuple[Array, Array | None]:
        """The stacked K (rows, nv_span) and k of all loops (2)."""
        return stack_rows(self.bodies, self.loops, positions, velocities)

    def velocity_map(self, positions: dict[int, Array], v: Array | None) -> tuple[Any, ...]:
        K, _ = self.constraint(positions, None)
        kept = list(self.kept)
        K = K[kept]
        Kd, Ki = K[:, list(self.dependent)], K[:, list(self.independent)]
        Gd = -solve_general(Kd, Ki, self.order)
        G = self._scatter(Gd, np.eye(self.nv))
        if v is None:
            return G, None, None
        velocities = self.split(G @ v)
        _, k = self.constraint(positions, velocities)
        g = self._scatter(solve_general(Kd, k[kept], self.order), np.zeros(self.nv))
        return G, velocities, self.split(g)

    def pivots(
        self, positions: Mapping[int, Array]
    ) -> tuple[list[Array | float], list[Array | float]]:
        """The pivots of the elimination of K_d in its order, and their inverses: some pivot is
        small near a singularity of the partition."""
        K, _ = self.constraint(positions, None)
        K = K[list(self.kept)]
        Kd, Ki = K[:, list(self.dependent)], K[:, list(self.independent)]
        _, pivots, inverses = eliminated(Kd, Ki, self.order)
        return pivots, inverses

    def _scatter(self, dependent, independent):
        """Rows of dependent and independent columns in the cluster's own order."""
        rows = [None] * self.nv_span
        for i, c in enumerate(self.dependent):
            rows[c] = dependent[i]
        for i, c in enumerate(self.independent):
            rows[c] = independent[i]
        return np.stack(rows)

    def condition(self, positions: dict[Any, Any]) -> Any:
        """‖K_d‖ ‖K_d⁻¹‖ in the Frobenius norm, by the elimination that velocities use: large, too,
        where its fixed order meets a small pivot."""
        K = self.constraint(positions, None)[0][list(self.kept)]
        Kd = K[:, list(self.dependent)]
        inverse = solve_general(Kd, np.eye(len(self.kept)), self.order)
        return np.sqrt(np.sum(Kd * Kd) * np.sum(inverse * inverse))

    def check(self, positions: dict[Any, Any]) -> None:
        """Refuse a configuration at which the dependent columns lose rank (floats only)."""
        K, _ = self.constraint(positions, None)
        Kd = K[np.ix_(self.kept, self.dependent)]
        sizes = np.linalg.svd(Kd, compute_uv=False)
        if sizes[-1] < LOST_PIVOT * max(sizes[0], 1e-300):
            names = ", ".join(f"'{loop.name}'" for loop in self.loops)
            raise PartitionError(
                f"the partition of loop {names} is singular at this q (smallest pivot "
                f"{sizes[-1]:.1e}): the independent joints {', '.join(self.independent_names)} do "
                "not determine the others here; mark other joints independent=True"
            )


def stack_rows(
    bodies: Sequence[Body],
    loops: Sequence[Loop],
    positions: Any,
    velocities: dict[int, Array] | None,
) -> tuple[Array, Array | None]:
    """K over the joints of `bodies` and k, the rows of all loops stacked (k None without v)."""
    layout = Layout(bodies)
    rows, biases = [], []
    for loop in loops:
        blocks, k = loop.linearize(positions, velocities)
        rows.append(side_by_side(blocks, layout.v, loop.rows, layout.nv))
        biases.append(k)
    return np.concatenate(rows), None if velocities is None else np.concatenate(biases)


def side_by_side(
    blocks: dict[Any, Any], columns: dict[int, slice], height: int, width: int
) -> Array:
    """The blocks of one loop at their columns, zeros between them."""
    row, end = [], 0
    for i in sorted(blocks, key=lambda i: columns[i].start):
        if columns[i].start > end:
            row.append(np.zeros((height, columns[i].start - end)))
        row.append(blocks[i])
        end = columns[i].stop
    return np.concatenate([*row, np.zeros((height, width - end))], axis=1)
