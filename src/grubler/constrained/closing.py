"""Constraints between two bodies inside PV-early: carried as in PV until their ends have met.

In the cluster where both ends have come, K a + l + L λ = 0 with L from both branches; eliminating
λ row by row, L = C D C', stiffens that cluster's inertia:

    H <- H + K' L⁻¹ K,   p <- p + K' L⁻¹ l                                                  (49)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL
from .pv import DENSE, Carried
from .recursion import total
from .reflection import Row

if TYPE_CHECKING:
    from ..algorithms.first_pass import ClusterState
    from ..model.model import Model
    from ..typing import Array
    from .recursion import Crossing


class Closing(Carried):
    """Blocks with ends in two clusters on their way to where these meet.

    In the clusters of `late` none closes: they go on to the world. `multipliers` by block once
    known; `masses` are what its rows feel, the inverse pivots of L, whose sign is rounding error
    where they are large. `together`: of those that close at the world their product, 1 / det L.
    What is singular where the first joints of an arm tell rows apart may be shared by three pivots.
    """

    def __init__(self, model: Model, rows: Any, late: Any = (), together: bool = False):
        super().__init__(rows)
        self.together = together
        self.blocks: list[int] = [b for b, block in enumerate(rows) if len(block.ends) == 2]
        self.F = {
            k: {b: F for b, F in here.items() if b in self.blocks} for k, here in self.F.items()
        }
        homes = {b: meeting(model, *rows[b].ends) for b in self.blocks}
        self.home: dict[int, int | None] = {b: None if k in late else k for b, k in homes.items()}
        self.multipliers: dict[Any, Any] = {}
        self.masses: list[Any] = []
        self._Y: dict[Any, Any] = {}
        self._closed: dict[Any, Any] = {}

    def take(self, k: int, rows: list[Row]) -> int:
        """Rows of cluster k as a block that is carried to the world; returns its number."""
        K, l = np.stack([row.K for row in rows]), np.stack([row.l for row in rows])
        return self.take_block(k, K.T, l)

    def take_block(self, k: int, F: Array, l: Array) -> int:
        """The same of forces F at cluster k, K a + l = 0 with K = F'."""
        b = len(self.m)
        self.m.append(F.shape[1])
        self.l.append(l)
        self._add(k, b, F)
        self.home[b], self.crossed[b] = None, DENSE
        return b

    def add_row(self, k: int, b: int, K: Array, l: Array) -> None:
        """Add a row to a block of one."""
        self._add(k, b, np.stack([K]).T)
        self.l[b] = self.l[b] + l

    def cross(self, state: ClusterState, crossing: Crossing, F: Any) -> dict[Any, Any]:
        Y = self._Y[state.cluster.index] = super().cross(state, crossing, F)
        return Y

    def drive(self, k: int) -> int | None:
        """The force of the carried blocks on the joint of cluster k, once they are known."""
        Y = self._Y.get(k)
        return total([Y[b] @ self.multipliers[b] for b in Y]) if Y else None

    def resolve(self, k: int, S: Array, y: Array, e: Any, g: Array) -> dict[Any, Any]:
        """Update the carried blocks for a coordinate of cluster k, qdd = -(y a + e) + g f λ."""
        here = self.at(k)
        f = {b: F.T @ S for b, F in here.items()}
        for b in f:
            here[b] = here[b] - np.outer(y, f[b])
            self.l[b] = self.l[b] - f[b] * e
        for a in f:
            for b in f:
                if a <= b:
                    term = np.outer(f[a] * g, f[b])
                    self.L[a, b] = self.L[a, b] + term if (a, b) in self.L else term
        return f

    def enter(self, state: ClusterState) -> None:
        """Blocks at a cluster as forces on its parent and on its joint."""
        here = self.at(state.cluster.index)
        for b, F in here.items():
            here[b] = np.concatenate([state.X.forces_back(F), state.S.T @ F])

    def leave(self, state: ClusterState, n: int) -> None:
        """The parent's part of what `enter` made."""
        for b, F in self.at(state.cluster.index).items():
            self._add(state.cluster.parent, b, F[:n])

    def pass_on(self, state: ClusterState) -> None:
        """Carry blocks to the parent, their coordinates being eliminated."""
        for b, F in self.at(state.cluster.index).items():
            self._add(state.cluster.parent, b, state.X.forces_back(F))

    def close(self, k: int, H: Array, p: Array) -> tuple[Array, Array]:
        """H and p after eliminating the blocks whose ends meet in cluster k."""
        here = self.at(k)
        closing = [b for b in here if self.home[b] == k]
        if not closing:
            return H, p
        others = [b for b in here if b not in closing]
        table = Pivots(self, closing, others, {b: F.T for b, F in here.items()})
        for i in range(table.closing):
            H, p = table.eliminate(i, H, p)
        for b in closing:
            del here[b]
        for b, K in table.write_back(self, others).items():
            here[b] = K.T
        self._closed[k] = (closing, others, table)
        self.masses += [np.abs(g) for g in table.g]
        return H, p

    def close_at_world(self, full: dict[Any, Any] | None = None) -> dict[Any, Any]:
        """Blocks whose ends meet at the world: all accelerations are known there.

        `full` tells of blocks of one row whether there is one. Returns what these feel.
        """
        full = full or {}
        closing = [b for b in self.at(None) if self.home[b] is None and b not in full]
        first = sum(self.m[b] for b in closing)
        closing += full
        if not closing:
            return {}
        for b in full:
            self.L[b, b] = self._pair(b, b) + (1.0 - full[b])
        factor = LDL(self.matrix(closing))
        masses = [np.abs(g) for g in factor.inverse_pivots]
        together = self.together and first > 1
        self.masses += [np.prod(np.stack(masses[:first]))] if together else masses[:first]
        found = factor.solve(-np.concatenate([self.l[b] for b in closing]))
        self.multipliers |= self.split(closing, found)
        return dict(zip(full, masses[first:]))

    def open(self, k: int, a: Array) -> None:
        """The multipliers of the blocks closed in cluster k, from its acceleration."""
        if k not in self._closed:
            return
        closing, others, table = self._closed[k]
        known = [x for b in others for x in self.multipliers[b]]
        self.multipliers |= self.split(closing, np.stack(table.solve(a, known)))


class Pivots:
    """Rows K a + l + L λ = 0, those of `closing` blocks first, eliminated one by one."""

    def __init__(self, carried: Closing, closing: Any, others: Any, K: Any):
        blocks = [*closing, *others]
        self.K = [K[b][i] for b in blocks for i in range(carried.m[b])]
        self.l: list[Any] = [carried.l[b][i] for b in blocks for i in range(carried.m[b])]
        L = carried.matrix(blocks)
        n = len(self.l)
        self.L = [[L[i, j] for j in range(n)] for i in range(n)]
        self.closing: int = sum(carried.m[b] for b in closing)
        self.g: list[Any] = []

    def eliminate(self, i: int, H: Array, p: Array) -> tuple[Array, Any]:
        g = 1.0 / self.L[i][i]
        self.g.append(g)
        n = len(self.l)
        for j in range(i + 1, n):
            f = self.L[i][j] * g
            self.K[j] = self.K[j] - f * self.K[i]
            self.l[j] = self.l[j] - f * self.l[i]
            for c in range(j, n):
                self.L[j][c] = self.L[j][c] - f * self.L[i][c]
        weighted = self.K[i] * g
        return H + np.outer(weighted, self.K[i]), p + weighted * self.l[i]

    def solve(self, a: Array, known: Any) -> list[Any]:
        """Multipliers of the closing rows, given those of the others."""
        x = [None] * self.closing + list(known)
        for i in reversed(range(self.closing)):
            rest = sum((self.L[i][j] * x[j] for j in range(i + 1, len(x))), 0.0)
            x[i] = -self.g[i] * (self.K[i] @ a + self.l[i] + rest)
        return x[: self.closing]

    def write_back(self, carried: Closing, others: Any) -> dict[Any, Any]:
        """l and L of the blocks that are carried on; returns their K."""
        K, start, place = {}, self.closing, {}
        for b in others:
            place[b] = range(start, start + carried.m[b])
            start += carried.m[b]
        for b in others:
            K[b] = np.stack([self.K[i] for i in place[b]])
            carried.l[b] = np.stack([self.l[i] for i in place[b]])
        for a in others:
            for b in others:
                if a <= b:
                    rows = [[self.L[min(i, j)][max(i, j)] for j in place[b]] for i in place[a]]
                    carried.L[a, b] = np.stack([np.stack(row) for row in rows])
        return K


def meeting(model: Model, a: int, b: int) -> int | None:
    """The lowest cluster on both paths to the base, None where these meet at the world only."""
    upward = path(model, a)
    return next((k for k in path(model, b) if k in upward), None)


def path(model: Model, k: int) -> list[int]:
    """The clusters from this one to the base."""
    upward = [k]
    while model.clusters[upward[-1]].parent is not None:
        upward.append(model.clusters[upward[-1]].parent)
    return upward
