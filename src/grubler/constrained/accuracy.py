"""How accurate PV-early's solution is, and one step of iterative refinement.

A joint that takes a row and barely moves it feels the mass D / |K S|² there. Rounding errors of the
row's acceleration, precision times that of the joint's carrier, become errors of the multipliers
times this mass. So the estimate of the relative error is precision × mass × acceleration / force.

Refinement solves for what the equations of motion and the rows leave of a solution, with the same
factors. What they leave is known to the precision of the forces on single bodies, where no inertia
is added to a much larger one: all digits come back that the first solution has lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..compiler import precision
from .closing import path
from .recursion import total

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array

# Mass × acceleration / force above which a solution is refined: with the acceleration of a free
# base, and with those of links on a fixed base. Errors beyond 1e-12 in double precision were seen
# from 1.7e3 and from 9e2 on (a dozen robots, 1e5 states each, nearly singular ones among them).
TRUSTED, TRUSTED_FIXED = 1e3, 3e2
# Squares of the relative change in refinement, in terms of the precision. What is left after a
# change of 1e-7 in double precision is below 1e-12, and in most cases its square.
HALF = 45.0
EXACT = 4.5e-11  # a change of 1e-13: a solution as accurate as that need not be refined


class Early(NamedTuple):
    """A solution of the constrained dynamics.

    | code        | meaning                                                          | shape    |
    |-------------|------------------------------------------------------------------|----------|
    | a           | acceleration                                                     | (nv,)    |
    | multipliers | by block of rows                                                 | (m,)     |
    | acc         | by cluster: stacked acceleration of its bodies beyond coasting   | (6l,)    |
    | masses      | what rows feel of the joints that take them, where that changes, |          |
    |             | with the joint's cluster; None for rows between bodies           |          |
    """

    a: np.ndarray
    multipliers: list[Any]
    acc: list[Any]
    masses: list[Any]

    @property
    def mass(self) -> int:
        """The masses together."""
        return total(mass for _, mass in self.masses)

    def __add__(self, change: Early) -> Early:
        multipliers = [x + y for x, y in zip(self.multipliers, change.multipliers)]
        acc = [x + y for x, y in zip(self.acc, change.acc)]
        return Early(self.a + change.a, multipliers, acc, self.masses)


def accurate(model: Model, early: Early) -> bool:
    """Whether the estimate of the error is small enough."""
    reach = square(early.acc[k] for k in carriers(model, early))
    free = all(c.nv == 6 for c in model.clusters if c.parent is None)
    limit = TRUSTED if free else TRUSTED_FIXED
    return early.mass * early.mass * reach <= limit**2 * square(early.multipliers)


def carriers(model: Model, early: Early) -> list[int]:
    """The clusters whose acceleration the rows feel of the world: a free base, and on a fixed base
    what carries a joint that takes a row."""
    found = {c.index for c in model.clusters if c.parent is None}
    for k, _ in early.masses:
        inward = [] if k is None else path(model, k)
        if inward and model.clusters[inward[-1]].nv < 6:
            found |= set(inward[1:2])
    return sorted(found)


def close(change: Early, solution: Early, part: float = HALF) -> Any:
    """Whether the relative change in refinement, which is the error before it, was small."""
    part = part * precision()
    small = square([change.a]) <= part * square([solution.a])
    return np.logical_and(small, square(change.multipliers) <= part * square(solution.multipliers))


def square(vectors: Any) -> int:
    """The sum of the squares of all elements."""
    return total(x @ x for x in vectors)


def corrected(
    ready: Any, tau: Array, early: Early
) -> tuple[tuple[Any, Any, list[Any], list[Any]], Array]:
    """(ready, tau) of the same equations for what a solution leaves of them."""
    states, H, p, rows = ready
    forces = [I @ a + b for I, a, b in zip(H, early.acc, p)]
    left = []
    for block, x in zip(rows, early.multipliers, strict=True):
        l = block.l if block.R is None else block.l + block.R * x
        for k, F in block.ends.items():
            forces[k] = forces[k] - F @ x
            l = l + F.T @ early.acc[k]
        left.append(replace(block, l=l))
    torques = [tau[state.cluster.v] for state in states]
    for k, state in enumerate(states):
        if state.R is not None:
            torques[k] = torques[k] - state.R @ early.a[state.cluster.v]
    return (states, H, forces, left), np.concatenate(torques)
