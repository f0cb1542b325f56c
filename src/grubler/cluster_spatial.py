"""Spatial vector algebra for clusters (Sec. V): stacked vectors, block matrices, transforms.

A cluster quantity stacks those of its bodies: motion and force vectors (6l,), motion subspaces
(6l, nv), inertias (6l, 6l). The world counts as a cluster of one body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .linalg import symmetric
from .spatial import Transform


def part(x, i: int):
    """The rows of the i-th body in a stacked cluster quantity."""
    return x[6 * i : 6 * i + 6]


def block_diagonal(blocks: Sequence):
    """block({Z_i}): the inertias of a cluster's bodies on the diagonal (14)."""
    n = len(blocks)
    if n == 1:
        return blocks[0]
    return np.block(
        [[blocks[i] if i == j else np.zeros((6, 6)) for j in range(n)] for i in range(n)]
    )


@dataclass(frozen=True, eq=False)
class ClusterTransform:
    """kX_λ(k), the motion transform from the parent cluster (17).

    Exactly one block of each row is not zero: `blocks[i]` leads from the output body of body i,
    the `outputs[i]`-th of the parent cluster, to body i. Nothing else is stored or multiplied.
    """

    blocks: tuple[Transform, ...]
    outputs: tuple[int, ...]
    parent_size: int

    def motion(self, m):
        """kX_λ(k) m: the parent's stacked motion, seen from this cluster's bodies."""
        return np.concatenate(
            [X.motion(part(m, j)) for X, j in zip(self.blocks, self.outputs, strict=True)]
        )

    def motions(self, M):
        """kX_λ(k) M for columns of stacked motions."""
        return np.concatenate(
            [X.motions(part(M, j)) for X, j in zip(self.blocks, self.outputs, strict=True)]
        )

    def force_back(self, f):
        """λ(k)X*_k f (18): forces collected on the parent's bodies."""
        return self._collect([X.force_back(part(f, i)) for i, X in enumerate(self.blocks)])

    def forces_back(self, F):
        """λ(k)X*_k F for columns of stacked forces."""
        return self._collect([X.forces_back(part(F, i)) for i, X in enumerate(self.blocks)])

    def _collect(self, pieces):
        zero = pieces[0] * 0.0
        rows = [zero] * self.parent_size
        for piece, j in zip(pieces, self.outputs, strict=True):
            rows[j] = piece if rows[j] is zero else rows[j] + piece
        return np.concatenate(rows)

    def congruence(self, I):
        """λ(k)X*_k I kX_λ(k) for a symmetric cluster inertia."""
        n = self.parent_size
        blocks = [[None] * n for _ in range(n)]

        def add(a, b, value):
            blocks[a][b] = value if blocks[a][b] is None else blocks[a][b] + value

        for i, (X, a) in enumerate(zip(self.blocks, self.outputs, strict=True)):
            rows = part(I, i)
            add(a, a, X.congruence(rows[:, 6 * i : 6 * i + 6]))
            for j in range(i + 1, len(self.blocks)):
                Y, b = self.blocks[j], self.outputs[j]
                mixed = X.sandwich(rows[:, 6 * j : 6 * j + 6], Y)
                add(a, b, mixed)
                add(b, a, mixed.T)
        filled = [[np.zeros((6, 6)) if z is None else z for z in row] for row in blocks]
        return symmetric(np.block(filled)) if n > 1 else symmetric(filled[0][0])
