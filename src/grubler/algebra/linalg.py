"""Small branch-free linear algebra that runs on floats and on symbols alike.

NumPy's own solvers pivot, so they cannot be traced into straight-line code. The matrices met in
the recursions are small and symmetric positive definite (joint-space inertias of a cluster) or
small and well partitioned (dependent columns of a loop), and need no pivoting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import symbolic
from .symbolic import is_symbolic, is_zero

if TYPE_CHECKING:
    from ..typing import Array


def joined(parts: Any, shape: tuple[int, ...] = (0,), axis: int = 0) -> Array:
    """Arrays one after the other; of none, an empty array of a shape (a model without joints)."""
    return np.concatenate(parts, axis=axis) if len(parts) else np.zeros(shape)


def stacked(parts: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """Equal arrays as rows of one; of none, an empty array of a shape."""
    return np.stack(parts) if len(parts) else np.zeros(shape)


def symmetric(M: Any) -> Array:
    """A symmetric matrix from the upper triangle of M.

    On symbols the lower entries fall out of the expression graph and are never computed; on
    floats this removes the rounding asymmetry.
    """
    if is_symbolic(M):
        return symbolic.symmetric(M)
    n = M.shape[0]
    upper, strict = np.triu(np.ones((n, n))), np.triu(np.ones((n, n)), 1)
    return M * upper + (M * strict).T


class LDL:
    """The factorization A = L D L' of a symmetric positive definite matrix, without pivoting.

    One reciprocal a pivot and no square root. Rows of L are kept as lists of scalars: what is
    structurally zero stays the number 0.0 and costs nothing when traced.
    """

    def __init__(self, A: Array):
        n = A.shape[0]
        self.L = [[0.0] * n for _ in range(n)]
        self.inverse_pivots: list[Any] = []
        scaled = [[0.0] * n for _ in range(n)]  # L_jk D_k
        for j in range(n):
            for k in range(j):
                entry = A[k, j] - sum(self.L[k][m] * scaled[j][m] for m in range(k))
                scaled[j][k] = entry
                self.L[j][k] = entry * self.inverse_pivots[k]
            pivot = A[j, j] - sum(self.L[j][m] * scaled[j][m] for m in range(j))
            self.inverse_pivots.append(1.0 / pivot)

    def _forward(self, b):
        """The rows of L⁻¹ b."""
        x = [b[i] for i in range(len(self.inverse_pivots))]
        for i in range(len(x)):
            x[i] = x[i] - sum((self.L[i][k] * x[k] for k in range(i)), 0.0)
        return x

    def half(self, b: Array) -> Array:
        """L⁻¹ b: with `scale`, B' A⁻¹ C = half(B)' scale(half(C))."""
        return np.stack(self._forward(b)) if self.inverse_pivots else b

    def scale(self, y: Array) -> Array:
        """D⁻¹ y."""
        return stacked([x * d for x, d in zip(y, self.inverse_pivots, strict=True)], y.shape)

    def quadratic(self, B: Array) -> Array:
        """B' A⁻¹ B, by half a solve; symmetric."""
        Y = self.half(B)
        return symmetric(Y.T @ self.scale(Y))

    def solve(self, b: Any) -> Array:
        """A⁻¹ b for a vector or for the columns of a matrix."""
        x = self._forward(b)
        n = len(x)
        x = [x[i] * self.inverse_pivots[i] for i in range(n)]
        for i in reversed(range(n)):
            x[i] = x[i] - sum((self.L[k][i] * x[k] for k in range(i + 1, n)), 0.0)
        return np.stack(x) if n else b


def solve_general(A: Array, B: Array, order: tuple[int, ...] | None = None) -> Array:
    """A⁻¹ B for a square matrix by elimination along the diagonal, without pivoting at run time.

    The caller orders rows and columns once, at a configuration where the matrix is well
    conditioned, so that the diagonal pivots are large there (`pivot_order`).
    """
    return eliminated(A, B, order)[0]


def eliminated(
    A: Array, B: Array, order: tuple[int, ...] | None = None
) -> tuple[Array, list[Array | float], list[Array | float]]:
    """A⁻¹ B as by `solve_general`, the pivots in the order of elimination, and their inverses."""
    n = A.shape[0]
    rows = range(n) if order is None else order
    a, x = [A[i] for i in rows], [B[i] for i in rows]
    pivots, inverse = [], []
    for k in range(n):  # a[i] holds row i from column k on
        pivots.append(a[k][0])
        inverse.append(1.0 / pivots[k])
        a[k] = a[k][1:]
        for i in range(k + 1, n):
            if is_zero(a[i][0]):
                a[i] = a[i][1:]
                continue
            factor = a[i][0] * inverse[k]
            a[i] = a[i][1:] - factor * a[k]
            x[i] = x[i] - factor * x[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            entry = a[k][j - k - 1]
            if not is_zero(entry):
                x[k] = x[k] - entry * x[j]
        x[k] = x[k] * inverse[k]
    return stacked(x, B.shape), pivots, inverse


class RowSpace:
    """The LQ factors of K (m, n), m <= n, by Householder reflections: K = [L 0] Q'.

    No pivots: the orthonormal bases of the row space and of the null space are accurate wherever K
    has full row rank, in straight-line code.
    """

    n: Any
    L: Any

    def __init__(self, K: Any):
        m, self.n = K.shape
        rows = [[K[i, j] for j in range(self.n)] for i in range(m)]
        self.L, self._reflections = [], []
        for k in range(m):
            x = rows[k][k:]
            norm = np.sqrt(sum((y * y for y in x[1:]), x[0] * x[0]))
            sign = np.where(x[0] >= 0.0, 1.0, -1.0)
            h = [x[0] + sign * norm, *x[1:]]
            reflection = (k, h, 1.0 / (norm * (norm + sign * x[0])))
            for i in range(k + 1, m):
                rows[i] = _reflect(reflection, rows[i])
            self.L.append([*rows[k][:k], -sign * norm])
            self._reflections.append(reflection)

    def distances(self) -> Array:
        """Of each row the squared distance to the span of the rows before it, (m,): one is 0 where
        K loses rank."""
        return np.stack([row[-1] * row[-1] for row in self.L])

    def null_space(self) -> Array:
        """An orthonormal basis N (n, n - m) of the null space: K N = 0."""
        m = len(self.L)
        columns = [self._back([0.0] * j + [1.0] + [0.0] * (self.n - j - 1))
                   for j in range(m, self.n)]  # fmt: skip
        return np.stack([np.stack([c[i] for c in columns]) for i in range(self.n)])

    def coefficients(self, b: Array) -> Array:
        """The y for which K' y is nearest to b: its coefficients on the rows of K."""
        x = [b[i] for i in range(self.n)]
        for reflection in self._reflections:
            x = _reflect(reflection, x)
        m = len(self.L)
        y: list[Any] = [None] * m
        for k in reversed(range(m)):
            rest = sum((self.L[j][k] * y[j] for j in range(k + 1, m)), 0.0)
            y[k] = (x[k] - rest) / self.L[k][k]
        return stacked(y, (0,))

    def least_norm(self, b: Array) -> Array:
        """The shortest x with K x = b."""
        y = []
        for k, row in enumerate(self.L):
            y.append((b[k] - sum(row[j] * y[j] for j in range(k))) / row[k])
        return np.stack(self._back([*y, *[0.0] * (self.n - len(y))]))

    def _back(self, x: list[Any]) -> list[Any]:
        for reflection in reversed(self._reflections):
            x = _reflect(reflection, x)
        return x


def _reflect(reflection, x: list[Any]) -> list[Any]:
    """x - β h (h'x) for h that begins at element k."""
    k, h, beta = reflection
    along = beta * sum(a * b for a, b in zip(h, x[k:]))
    return [*x[:k], *(b - along * a for a, b in zip(h, x[k:]))]


def determinant(A: Array) -> float:
    """det A of a small square matrix, by its first row's minors."""
    n = A.shape[0]
    if n == 1:
        return A[0, 0]
    minors = [
        determinant(A[1:][:, [k for k in range(n) if k != j]]) * (-1.0) ** j for j in range(n)
    ]
    return sum(A[0, j] * minors[j] for j in range(n))


TIE = 1.0 - 1e-9  # of the largest: symmetric mechanisms have many that differ in rounding alone


def largest(x: np.ndarray) -> int:
    """Where the largest number is, by size; of equal ones the first."""
    x = np.abs(x)
    return int(np.flatnonzero(x >= TIE * x.max())[0])


def pivot_order(A: np.ndarray) -> tuple[int, ...]:
    """The row order by which `solve_general` meets the pivots that partial pivoting would pick."""
    A = np.array(A, dtype=float)
    n = len(A)
    order = list(range(n))
    for k in range(n):
        best = k + largest(A[k:, k])
        A[[k, best]] = A[[best, k]]
        order[k], order[best] = order[best], order[k]
        A[k + 1 :] -= np.outer(A[k + 1 :, k] / A[k, k], A[k])
    return tuple(order)
