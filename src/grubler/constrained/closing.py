"""Constraints between two bodies inside PV-early: carried as in PV until their ends have met.

In the cluster where both ends have come, K a + l + L λ = 0 with L from both branches; eliminating
λ row by row, L = C D C', stiffens that cluster's inertia:

    H <- H + K' L⁻¹ K,   p <- p + K' L⁻¹ l                                                  (49)
"""

from __future__ import annotations

import numpy as np

from ..algebra.linalg import LDL
from .carried import DENSE, Carried
from .reflection import Row


class Closing(Carried):
    """Blocks with ends in two clusters on their way to where these meet.

    In the clusters of `carries` none closes: they go on to the world. `multipliers` by block once
    known. `masses` are those that the rows feel, the inverse pivots of L; if large, their
    sign is rounding error. `together`: of the rows that close at the world the product of masses,
    1 / det L, since a singularity of an arm's first joints may be shared by three pivots.
    """

    def __init__(self, tree, rows, carries=(), together: bool = False):
        super().__init__(rows)
        self.together = together
        self.blocks = [b for b, block in enumerate(rows) if len(block.ends) == 2]
        self.F = {
            k: {b: F for b, F in here.items() if b in self.blocks} for k, here in self.F.items()
        }
        homes = {b: tree.common(*rows[b].ends) for b in self.blocks}
        self.home = {b: None if k in carries else k for b, k in homes.items()}
        self.multipliers: dict = {}
        self.masses: list = []
        self._closed: dict = {}

    def take(self, k, rows: list[Row]) -> int:
        """Rows of cluster k as a block that is carried to the world; returns its number."""
        b = len(self.m)
        self.m.append(len(rows))
        self.l.append(np.stack([row.l for row in rows]))
        self._add(k, b, np.stack([row.K for row in rows]).T)
        self.home[b], self.crossed[b] = None, DENSE
        return b

    def resolve(self, k, S, y, e, g) -> dict:
        """Update the carried blocks for a coordinate of cluster k, qdd = -(y a + e) + g f λ."""
        here = self.at(k)
        f = {b: F.T @ S for b, F in here.items()}
        for b in f:
            here[b] = here[b] - np.outer(y, f[b])
            self.l[b] = self.l[b] - f[b] * e
        for a in f:
            for b in f:
                if a <= b:
                    self._move(a, b, np.outer(f[a] * g, f[b]))
        return f

    def enter(self, state) -> None:
        """Blocks at a cluster as forces on its parent and on its joint."""
        here = self.at(state.cluster.index)
        for b, F in here.items():
            here[b] = np.concatenate([state.X.forces_back(F), state.S.T @ F])

    def leave(self, state, n: int) -> None:
        """The parent's part of what `enter` made."""
        for b, F in self.at(state.cluster.index).items():
            self._add(state.cluster.parent, b, F[:n])

    def pass_on(self, state) -> None:
        """Carry blocks to the parent, their coordinates being eliminated."""
        for b, F in self.at(state.cluster.index).items():
            self._add(state.cluster.parent, b, state.X.forces_back(F))

    def close(self, k, H, p):
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

    def close_at_world(self) -> None:
        """Blocks whose ends meet at the world: all accelerations are known there."""
        closing = [b for b in self.at(None) if self.home[b] is None]
        if not closing:
            return
        factor = LDL(self.matrix(closing))
        masses = [np.abs(g) for g in factor.inverse_pivots]
        together = self.together and len(masses) > 1
        self.masses += [np.prod(np.stack(masses))] if together else masses
        found = factor.solve(-np.concatenate([self.l[b] for b in closing]))
        self.multipliers |= self.split(closing, found)

    def open(self, k, a) -> None:
        """The multipliers of the blocks closed in cluster k, from its acceleration."""
        if k not in self._closed:
            return
        closing, others, table = self._closed[k]
        known = [x for b in others for x in self.multipliers[b]]
        self.multipliers |= self.split(closing, np.stack(table.solve(a, known)))


class Pivots:
    """Rows K a + l + L λ = 0, those of `closing` blocks first, eliminated one by one."""

    def __init__(self, carried: Closing, closing, others, K):
        blocks = [*closing, *others]
        self.K = [K[b][i] for b in blocks for i in range(carried.m[b])]
        self.l = [carried.l[b][i] for b in blocks for i in range(carried.m[b])]
        L = carried.matrix(blocks)
        n = len(self.l)
        self.L = [[L[i, j] for j in range(n)] for i in range(n)]
        self.closing = sum(carried.m[b] for b in closing)
        self.g: list = []

    def eliminate(self, i, H, p):
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

    def solve(self, a, known) -> list:
        """Multipliers of the closing rows, given those of the others."""
        x = [None] * self.closing + list(known)
        for i in reversed(range(self.closing)):
            rest = sum((self.L[i][j] * x[j] for j in range(i + 1, len(x))), 0.0)
            x[i] = -self.g[i] * (self.K[i] @ a + self.l[i] + rest)
        return x[: self.closing]

    def write_back(self, carried: Closing, others) -> dict:
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
