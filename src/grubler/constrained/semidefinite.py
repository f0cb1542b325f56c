"""Least-squares solution of a symmetric semidefinite system.

A = C D C' with C unit lower triangular, whose columns are zero where a pivot vanishes. With
G = C'C the pseudo-inverse is A⁺ = C G⁻¹ D⁺ G⁻¹ C': of all λ that leave the least of A λ - b the
smallest. Which rows depend on each other is decided by the pivots, without pivoting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL
from ..compiler import precision
from ..tolerances import PIVOT, PIVOT_NOISE

if TYPE_CHECKING:
    from ..typing import Array


REFINED = 2  # times: each gains all digits but those that a pivot is small by


class Semidefinite:
    """A = C D C' of rank possibly less than its size; `alive` (n) zero for rows to leave out."""

    def __init__(self, A: Array, alive: Any):
        self.n: Any = A.shape[0]
        n, tolerance = self.n, max(PIVOT, PIVOT_NOISE * precision())
        self.C = [[0.0] * n for _ in range(n)]
        self.inverse_pivots: list[Any] = []
        scaled = [[0.0] * n for _ in range(n)]  # C_jk D_k
        ok = []
        for j in range(n):
            for k in range(j):
                entry = A[k, j] - sum(self.C[k][m] * scaled[j][m] for m in range(k))
                scaled[j][k] = entry * ok[k]
                self.C[j][k] = entry * self.inverse_pivots[k]
            pivot = A[j, j] - sum(self.C[j][m] * scaled[j][m] for m in range(j))
            good = pivot * alive[j] > tolerance * A[j, j]
            ok.append(1.0 * good)
            self.C[j][j] = ok[j]
            self.inverse_pivots.append(ok[j] / np.where(good, pivot, 1.0))
        self.ok: Any = ok

    def solve(self, b: Any, product: Any) -> Array:
        """A⁺ b, refined: pivots are not chosen, some may be small. `product` is A x, with digits
        that A itself has not where rows nearly depend on each other."""
        gram = LDL(_gram(self.C, self.ok))
        x = self._once(b, gram)
        for _ in range(REFINED):
            x = x + self._once(b - product(x), gram)
        return x

    def _once(self, b, gram: LDL):
        C, n = self.C, self.n
        w = [b[j] + sum((C[i][j] * b[i] for i in range(j + 1, n)), 0.0) for j in range(n)]
        w = gram.solve(np.stack(w))
        w = gram.solve(np.stack([w[j] * self.inverse_pivots[j] for j in range(n)]))
        return np.stack(
            [C[i][i] * w[i] + sum((C[i][j] * w[j] for j in range(i)), 0.0) for i in range(n)]
        )


def _gram(C, ok):
    """C'C, with ones for the columns that are zero."""
    n = len(C)
    G = [[None] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            # C_jj is 1 where column j counts; C_ji is 0 where column i does not
            first = 1.0 if i == j else C[j][i] * ok[j]
            G[i][j] = G[j][i] = sum((C[k][i] * C[k][j] for k in range(j + 1, n)), first)
    return np.stack([np.stack(row) for row in G])
