"""Constraint rows carried to the base next to the articulated inertias (42c)-(42e).

| code  | paper     | meaning                                                      | shape   |
|-------|-----------|--------------------------------------------------------------|---------|
| F     | K_i^A'    | constraint forces propagated to a cluster, by block (42c)    | (6l, m) |
| l     | l_i       | desired constraint accelerations, propagated (42d)           | (m,)    |
| L     | L_i^A     | what the multipliers move already, by pairs of blocks (42e)  | (m, m') |
| Y     | S' K_i^A' | constraint forces on the joint                               | (nv, m) |
| Q, Z  |           | Y' D⁻¹ Y = Q' Z                                              | (nv, m) |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import split
from ..algebra.linalg import LDL, symmetric
from ..algorithms.elimination import Elimination
from ..tolerances import MOVED_ROW
from .jacobian import softness
from .semidefinite import Semidefinite

if TYPE_CHECKING:
    from ..typing import Array

DENSE = 3  # joints after which forces of a constraint have no zeros left, as a rule


class Carried:
    """Blocks of rows on their way to the base: F by cluster and block, l by block, L by pairs."""

    def __init__(self, rows: Any):
        self.m: list[Any] = [block.m for block in rows]
        self.R = [softness([block]) for block in rows]
        self.F: dict[int, dict[Any, Any]] = {}
        self.l: list[Any] = [block.l for block in rows]
        self.L: dict[tuple[int, int], object] = {}
        self.Y: dict[int, dict[Any, Any]] = {}  # by cluster and block
        self.crossed: dict[int, int] = {}  # joints that a block has come through
        self._parts: list[
            tuple[dict[Any, Any], dict[Any, Any]]
        ] = []  # by joint Q and Z of each block: L = sum Q' Z
        for b, block in enumerate(rows):
            for k, F in block.ends.items():
                self._add(k, b, F)
            if block.R is not None:
                self.L[b, b] = np.diag(block.R)

    def _add(self, k, b, F):
        here = self.F.setdefault(k, {})
        here[b] = here[b] + F if b in here else F

    def at(self, k: int | None) -> dict[Any, Any]:
        """Blocks at cluster k, None at the world: forces by block."""
        return self.F.get(k, {})

    def cross(self, J: Elimination, u: Array | None) -> None:
        """Carry the blocks of a cluster across its joint (42c)-(42e), given its u (None without
        velocities)."""
        k, F = J.state.cluster.index, self.at(J.state.cluster.index)
        Y, Q, Z = {}, {}, {}
        dense = sum(self.m[b] for b in F) > 1  # half a solve pays for two columns or more
        dense = dense and all(self.crossed.get(b, 0) >= DENSE for b in F)
        half = J.D.half if dense else (lambda x: x)
        for b in F:
            Y[b] = J.state.S.T @ F[b]
            Q[b] = half(Y[b])  # a Y with zeros keeps them
            Z[b] = J.D.scale(Q[b]) if dense else J.D.solve(Y[b])
            if J.W is None:
                up = J.state.X.forces_back(F[b] - half(J.U.T).T @ Z[b])
            else:
                up = J.state.X.forces_back(F[b]) - half(J.W.T).T @ Z[b]
            self._add(J.state.cluster.parent, b, up)
            self.crossed[b] = self.crossed.get(b, 0) + 1
            if self.l[b] is not None:
                self.l[b] = self.l[b] + Z[b].T @ half(u)
        for a in F:
            for b in F:
                if a <= b:
                    self._move(a, b, Q[a].T @ Z[b])
        self._parts.append((Q, Z))
        self.Y[k] = Y

    def _move(self, a, b, term):
        self.L[a, b] = self.L[a, b] + term if (a, b) in self.L else term

    def drive(self, k: int, multipliers: Any) -> int | None:
        """Y λ, the force of the rows on the joint of cluster k; None without any."""
        Y = self.Y.get(k)
        return sum(Y[b] @ multipliers[b] for b in Y) if Y else None

    def matrix(self, blocks: Any) -> Array:
        """L of some blocks."""
        return symmetric(np.block([[self._pair(a, b) for b in blocks] for a in blocks]))

    def _pair(self, a, b):
        if (a, b) in self.L:
            return self.L[a, b]
        if (b, a) in self.L:
            return self.L[b, a].T
        return np.zeros((self.m[a], self.m[b]))

    def split(self, blocks: Any, x: Array) -> dict[Any, Any]:
        """A stacked vector by block."""
        return dict(zip(blocks, split(x, [self.m[b] for b in blocks])))

    def solve(self, redundant: bool) -> list[Any]:
        """The multipliers by block, once all rows have come to the world (43), (47).

        `redundant` rows are met in the sense of least squares; one that no joint moves, at a
        singular posture, is left out.
        """
        blocks = list(range(len(self.m)))
        if not blocks:
            return []
        L, l = self.matrix(blocks), np.concatenate(self.l)
        if redundant:
            alive = np.concatenate([self._moved(b) for b in blocks])
            x = Semidefinite(L, alive).solve(-l, self._product)
        else:
            x = LDL(L).solve(-l)
        return list(self.split(blocks, x).values())

    def _product(self, x):
        """L x by the parts that L is made of: where rows nearly depend on each other, L itself has
        lost twice as many digits."""
        x = list(self.split(range(len(self.m)), x).values())
        out = [y * R for y, R in zip(x, self.R)]
        for Q, Z in self._parts:
            moved = sum(Z[b] @ x[b] for b in Z) if Z else None
            for b in Q:
                out[b] = out[b] + Q[b].T @ moved
        return np.concatenate(out)

    def _moved(self, b: int):
        """One where a row of block b counts, zero where no joint moves it."""
        if np.any(self.R[b]):
            return np.ones(self.m[b])
        Y = [Y[b] for Y in self.Y.values() if b in Y]
        return 1.0 * (sum((y * y).sum(axis=0) for y in Y) > MOVED_ROW**2)

    def components(self) -> list[list[int]]:
        """Blocks that L couples, directly or through others."""
        groups = [{b} for b in range(len(self.m))]
        for a, b in self.L:
            joined = [g for g in groups if a in g or b in g]
            groups = [g for g in groups if g not in joined] + [set().union(*joined)]
        return [sorted(g) for g in groups]
