"""The equations of constrained motion that the recursions solve, and a solution of them.

    M a + h = τ + J' λ,   J a + l + R λ = 0

Accelerations of bodies are those beyond coasting, as in C-ABA: what velocities and gravity do is
in the forces p and in the rows' l.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algorithms.c_rnea import net_forces
from ..algorithms.newton_euler import accelerated
from ..algorithms.sweep import Sweep, outward
from .rows import Rows, constraint_rows, gathered, in_few_numbers, independent_rows

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Wanted


@dataclass(frozen=True, eq=False)
class Equations:
    """
    | code  | meaning                                             | shape              |
    |-------|-----------------------------------------------------|--------------------|
    | sweep | states of the clusters                              |                    |
    | H     | inertia of each cluster's bodies                    | (6l, 6l)           |
    | p     | forces that the coasting bodies take, by cluster    | (6l,)              |
    | tau   | generalized force                                   | (nv,)              |
    | rows  | constraint rows, in blocks                          |                    |
    """

    sweep: Sweep
    H: list[Any]
    p: list[Any]
    tau: np.ndarray
    rows: list[Rows]

    def left_by(self, solution: Solution) -> Equations:
        """The same equations for what a solution leaves of them."""
        forces = [I @ a + b for I, a, b in zip(self.H, solution.acc, self.p)]
        left = []
        for block, x in zip(self.rows, solution.multipliers, strict=True):
            l = block.l if block.R is None else block.l + block.R * x
            for k, F in block.ends.items():
                forces[k] = forces[k] - F @ x
                l = l + F.T @ solution.acc[k]
            left.append(replace(block, l=l))
        torques = [self.tau[state.cluster.v] for state in self.sweep]
        for k, state in enumerate(self.sweep):
            if state.R is not None:
                torques[k] = torques[k] - state.R @ solution.a[state.cluster.v]
        return replace(self, p=forces, tau=np.concatenate(torques), rows=left)


class Solution(NamedTuple):
    """
    | code        | meaning                                                        | shape |
    |-------------|----------------------------------------------------------------|-------|
    | a           | acceleration                                                   | (nv,) |
    | multipliers | by block of rows                                               | (m,)  |
    | acc         | by cluster: stacked acceleration of its bodies beyond coasting | (6l,) |
    | row_masses  | (cluster, mass that a row feels of the joint that takes it),   |       |
    |             | where that changes; cluster None for rows between bodies       |       |
    """

    a: np.ndarray
    multipliers: list[Any]
    acc: list[Any]
    row_masses: list[Any]

    @property
    def row_mass(self) -> int:
        """The sum of the row masses."""
        return sum(mass for _, mass in self.row_masses)

    def outputs(self, equations: Equations) -> tuple[Array, Any | Array]:
        """(a, multipliers in the order of the constraints)."""
        return self.a, gathered(equations.rows, self.multipliers)

    def __add__(self, change: Solution) -> Solution:
        multipliers = [x + y for x, y in zip(self.multipliers, change.multipliers)]
        acc = [x + y for x, y in zip(self.acc, change.acc)]
        return Solution(self.a + change.a, multipliers, acc, self.row_masses)


def prepared(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
) -> Equations:
    """The equations in a state; `constraints` are checked ones."""
    constraints, desired, bases, kept = in_few_numbers(
        model, q, constraints, desired, frozenset(f_ext or ())
    )
    sweep = outward(model, q, v, keep_frame=kept)
    motion = accelerated(sweep)
    H = [block_diagonal(state.I) for state in sweep]
    p = sweep.stack(net_forces(motion, f_ext))
    rows = constraint_rows(sweep, constraints, desired, motion)
    rows = [replace(block, basis=V) for block, V in zip(rows, bases, strict=True)]
    return Equations(sweep, H, p, tau, independent_rows(model, rows, constraints))
