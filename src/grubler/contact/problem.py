"""The contact problem: find impulses λ so that u = G λ + g and λ obey the law of every block.

A block is a point with Coulomb's law (three rows: t1, t2, n), or a joint (one row) whose velocity
stays in [low, high] and which dry friction holds with an impulse of up to `hold`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..algebra.linalg import joined
from ..compiler import precision
from .cone import OPEN, SLIP, STICK, natural_map, point, solve_point

if TYPE_CHECKING:
    pass

PROXIMAL = 0.1  # times the square root of the precision, times the mean diagonal of a block's G


@dataclass(frozen=True, eq=False)
class PointLaw:
    """Coulomb's law with a coefficient of friction."""

    friction: float
    rows: ClassVar[int] = 3


@dataclass(frozen=True, eq=False)
class JointLaw:
    """low <= u <= high with impulses only at the bounds, and dry friction, |impulse| <= hold.

    Modes: open, impulse 0; sticking, u is held at 0 by friction or at a bound; slipping, friction
    does all that it can."""

    low: np.ndarray
    high: np.ndarray
    hold: float
    rows: ClassVar[int] = 1


@dataclass(frozen=True, eq=False)
class Problem:
    """G as a table of blocks (None where zero), g and the laws by block; with `trunks`, what blocks
    feel of each other through the base is in these factors, and G holds the rest."""

    G: list[Any]
    g: list[Any]
    laws: list[Any]
    trunks: list[Any] | None = None

    @property
    def rows(self) -> int:
        return sum(law.rows for law in self.laws)

    def split(self, x: Any) -> list[Any]:
        """A stacked vector by block."""
        out, start = [], 0
        for law in self.laws:
            out.append(x[start : start + law.rows])
            start += law.rows
        return out

    def velocities(self, impulses: list[Any]) -> list[Any]:
        """u by block from the impulses by block."""
        sums = self.gathered(impulses)
        return [self.velocity(i, impulses, sums) for i in range(len(self.laws))]

    def velocity(
        self, i: int, impulses: list[Any], sums: dict[int, Any], leave: int | None = None
    ) -> Any:
        """u of block i, without the impulses of block `leave`."""
        u = self.g[i]
        for j, x in enumerate(impulses):
            if j != leave and self.G[i][j] is not None:
                u = u + self.G[i][j] @ x
        trunk = self.trunks[i] if self.trunks else None
        if trunk is not None:
            u = u + trunk.scaled.T @ sums[trunk.root] - trunk.own @ impulses[i]
        return u

    def gathered(self, impulses: list[Any]) -> dict[int, Any]:
        """By base: what all impulses on it are there, through the factors of the trunks."""
        sums: dict[int, Any] = {}
        for trunk, x in zip(self.trunks or (), impulses):
            if trunk is not None:
                sums[trunk.root] = sums.get(trunk.root, 0.0) + trunk.half @ x
        return sums

    def regathered(self, sums: dict[int, Any], i: int, change: Any) -> dict[int, Any]:
        """The same after a change of the impulse of block i."""
        trunk = self.trunks[i] if self.trunks else None
        if trunk is None:
            return sums
        return {**sums, trunk.root: sums[trunk.root] + trunk.half @ change}

    def size(self, i: int) -> Any:
        """The mean diagonal of block i of G, in 1/kg or 1/(kg m²); 1 where nothing moves it."""
        A = self.G[i][i]
        n = self.laws[i].rows
        mean = sum((A[k, k] for k in range(n)), 0.0) * (1.0 / n)
        return np.where(mean > 0.0, mean, 1.0)

    def dense(self) -> tuple[Any, Any]:
        """(G, g) as one matrix and one vector, of a problem without trunks."""
        n = [law.rows for law in self.laws]
        rows = [
            np.concatenate([np.zeros((a, b)) if M is None else M for M, b in zip(row, n)], axis=1)
            for row, a in zip(self.G, n)
        ]
        return joined(rows, (0, 0)), joined(self.g)

    def residual(self, impulses: list[Any]) -> Any:
        """The natural map of all blocks, stacked (rows,), in m/s or rad/s."""
        found = [np.zeros(0)]
        for i, (u, x, law) in enumerate(zip(self.velocities(impulses), impulses, self.laws)):
            if isinstance(law, PointLaw):
                found.append(natural_map(x, u, law.friction, self.size(i)))
            else:
                found.append(_joint_map(law, x, u, self.size(i)))
        return joined(found)

    def local(self, i: int) -> Callable[..., tuple[Any, Any, Any]]:
        """The solver of block i: (b, impulse before, guess) -> (impulse, mode, guess).

        A proximal term R (λ - λ_before) keeps the solution unique where G is singular. It vanishes
        where a sequence of solves converges, so that it changes nothing of the result.
        """
        A, law = self.G[i][i], self.laws[i]
        soft = PROXIMAL * precision() ** 0.5 * self.size(i)
        A = A + soft * np.eye(law.rows)
        if isinstance(law, JointLaw):
            inverse = 1.0 / A[0, 0]

            def joint(b, before, guess, steps, follow):
                found = solve_joint(law, A[0, 0], inverse, (b - soft * before)[0])
                return np.stack([found[0]]), *found[1:]

            return joint
        constants = point(A, law.friction)

        def of_point(b, before, guess, steps, follow):
            return solve_point(constants, b - soft * before, guess, steps, follow)

        return of_point


def solve_joint(law: JointLaw, A: Any, inverse: Any, b: Any) -> tuple[Any, Any, Any]:
    """(impulse, mode, u of a joint whose mode is STICK)."""
    held, u, sticks = 0.0 * b, b, None
    if not (isinstance(law.hold, (int, float)) and law.hold == 0.0):
        wanted = -b * inverse
        held = np.minimum(np.maximum(wanted, -law.hold), law.hold)
        u = b + A * held
        sticks = np.abs(wanted) < law.hold
    within = np.minimum(np.maximum(u, law.low), law.high)
    stop = (within - u) * inverse
    stopped = np.abs(stop) > 0.0
    fixed = stopped if sticks is None else np.logical_or(sticks, stopped)
    mode = np.where(fixed, STICK, np.where(np.abs(held) > 0.0, SLIP, OPEN))
    return held + stop, mode, within


def _joint_map(law: JointLaw, impulse, u, A):
    """Zero where the joint's law holds: the impulse is what one solve would give, in velocity."""
    expected, _, _ = solve_joint(law, A, 1.0 / A, (u - A * impulse)[0])
    return A * (impulse - expected)


__all__ = ["JointLaw", "PointLaw", "Problem", "solve_joint"]
