"""Constraints between two bodies inside PV-early: carried as in PV until their ends have met.

In the cluster where both ends have come, K a + l + L λ = 0 with L from both branches. Eliminating
λ stiffens that cluster's inertia, and changes the rows that are carried on:

    H <- H + K' L⁻¹ K,   p <- p + K' L⁻¹ l                                                  (49)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL
from .carried import DENSE, Carried
from .reflection import Row

if TYPE_CHECKING:
    from ..algorithms.first_pass import ClusterState
    from ..typing import Array


class Closing(Carried):
    """Blocks with ends in two clusters on their way to where these meet.

    In the clusters of `carries` none closes: they go on to the world. `multipliers` by block once
    known. `masses` are those that the rows feel, the inverse pivots of L; if large, their
    sign is rounding error.
    """

    def __init__(self, tree: Any, rows: Any, carries: Any = ()):
        super().__init__(rows)
        self.blocks: list[int] = [b for b, block in enumerate(rows) if len(block.ends) == 2]
        self.F = {
            k: {b: F for b, F in here.items() if b in self.blocks} for k, here in self.F.items()
        }
        homes = {b: tree.common(*rows[b].ends) for b in self.blocks}
        self.home: dict[int, Any | None] = {
            b: None if k in carries else k for b, k in homes.items()
        }
        self.multipliers: dict[Any, Any] = {}
        self.masses: list[Any] = []
        self._closed: dict[Any, Any] = {}

    def take(self, k: int, rows: list[Row]) -> int:
        """Rows of cluster k as a block that is carried to the world; returns its number."""
        b = len(self.m)
        self.m.append(len(rows))
        self.l.append(np.stack([row.l for row in rows]))
        self._add(k, b, np.stack([row.K for row in rows]).T)
        self.home[b], self.crossed[b] = None, DENSE
        return b

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
                    self._move(a, b, np.outer(f[a] * g, f[b]))
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
        """H and p after eliminating the blocks whose ends meet in cluster k (49)."""
        here = self.at(k)
        closing = [b for b in here if self.home[b] == k]
        if not closing:
            return H, p
        others = [b for b in here if b not in closing]
        K = np.concatenate([here.pop(b) for b in closing], axis=1).T
        l = np.concatenate([self.l[b] for b in closing])
        factor = LDL(self.matrix(closing))
        coupled = {b: np.concatenate([self._pair(c, b) for c in closing]) for b in others}
        for b, L in coupled.items():
            moved = factor.solve(L).T
            here[b], self.l[b] = here[b] - (moved @ K).T, self.l[b] - moved @ l
            for other in others:
                if b <= other:
                    self._move(b, other, -(moved @ coupled[other]))
        self._closed[k] = closing, factor, K, l, coupled
        self.masses += [np.abs(g) for g in factor.inverse_pivots]
        return H + factor.quadratic(K), p + K.T @ factor.solve(l)

    def close_at_world(self) -> None:
        """Blocks whose ends meet at the world: all accelerations are known there."""
        closing = [b for b in self.at(None) if self.home[b] is None]
        if not closing:
            return
        factor = LDL(self.matrix(closing))
        self.masses += [np.abs(g) for g in factor.inverse_pivots]
        found = factor.solve(-np.concatenate([self.l[b] for b in closing]))
        self.multipliers |= self.split(closing, found)

    def open(self, k: int, a: Array) -> None:
        """The multipliers of the blocks closed in cluster k, from its acceleration."""
        if k in self._closed:
            closing, factor, K, l, coupled = self._closed[k]
            rest = K @ a + l
            for b, L in coupled.items():
                rest = rest + L @ self.multipliers[b]
            self.multipliers |= self.split(closing, -factor.solve(rest))
