"""Spatial vector algebra for clusters (Sec. V): stacked vectors, block matrices, transforms.

A cluster quantity stacks those of its bodies: motion and force vectors, motion subspaces, inertias.
A body takes six rows, a rotor that only spins (`SpinAxis`) one. The world counts as a cluster of
one body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .linalg import symmetric
from .spatial import Transform

if TYPE_CHECKING:
    from ..typing import Array


def split(x: Array | None, sizes: Sequence[int]) -> list[Any]:
    """The rows of each body in a stacked cluster quantity."""
    parts, start = [], 0
    for size in sizes:
        parts.append(x[start : start + size])
        start += size
    return parts


def block_diagonal(blocks: Sequence[Any]) -> Array:
    """block({Z_i}): matrices of any shape on the diagonal, such as a cluster's inertias (14)."""
    if len(blocks) < 2:
        return blocks[0] if blocks else np.zeros((0, 0))
    return np.block(
        [
            [
                b if i == j else np.zeros((b.shape[0], other.shape[1]))
                for j, other in enumerate(blocks)
            ]
            for i, b in enumerate(blocks)
        ]
    )


@dataclass(frozen=True, eq=False)
class SpinAxis:
    """The motion transform into a body that is known by its spin alone: a row of six numbers.

    A leaf symmetric about its joint axis has kinetic energy ½ v'(I - J e e')v + ½ J σ², where v is
    its carrier's velocity, J its moment about the axis, e the axis as a row, and σ = e v + qd its
    absolute spin. The first part belongs to the carrier, exactly and whatever the angle; the second
    is a body with one coordinate, one unit of inertia J, and e as its transform.
    """

    row: np.ndarray
    size = 1

    def motion(self, m: Array) -> Array:
        return np.stack([self.row @ m])

    def motions(self, M: Array) -> Array:
        return np.stack([self.row @ M])

    def force_back(self, f: Any) -> Array:
        return self.row * f[0]

    def forces_back(self, F: Array) -> Array:
        return np.outer(self.row, F[0])

    def congruence(self, I: Array) -> Array:
        return np.outer(self.row, self.row) * I[0, 0]

    rigid_congruence = congruence

    def sandwich(self, M: Array, other: Any) -> Array:
        return self.forces_back(other.forces_back(M.T).T)

    def __matmul__(self, X: Transform) -> SpinAxis:
        return SpinAxis(X.force_back(self.row))


@dataclass(frozen=True, eq=False)
class ClusterTransform:
    """kX_λ(k), the motion transform from the parent cluster (17).

    Exactly one block of each row is not zero: `blocks[i]` leads from the output body of body i,
    the `outputs[i]`-th of the parent cluster, to body i. Nothing else is stored or multiplied.
    """

    blocks: tuple[Transform | SpinAxis, ...]
    outputs: tuple[int, ...]
    parent_sizes: tuple[int, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(block.size for block in self.blocks)

    def motion(self, m: Array) -> Array:
        """kX_λ(k) m: the parent's stacked motion, seen from this cluster's bodies."""
        parts = split(m, self.parent_sizes)
        return np.concatenate(
            [X.motion(parts[j]) for X, j in zip(self.blocks, self.outputs, strict=True)]
        )

    def motions(self, M: Array) -> Array:
        """kX_λ(k) M for columns of stacked motions."""
        parts = split(M, self.parent_sizes)
        return np.concatenate(
            [X.motions(parts[j]) for X, j in zip(self.blocks, self.outputs, strict=True)]
        )

    def force_back(self, f: Any) -> Array:
        """λ(k)X*_k f (18): forces collected on the parent's bodies."""
        parts = split(f, self.sizes)
        return self._collect([X.force_back(p) for X, p in zip(self.blocks, parts, strict=True)], ())

    def forces_back(self, F: Array) -> Array:
        """λ(k)X*_k F for columns of stacked forces."""
        parts = split(F, self.sizes)
        pieces = [X.forces_back(p) for X, p in zip(self.blocks, parts, strict=True)]
        return self._collect(pieces, (F.shape[1],))

    def _collect(self, pieces, columns: tuple[int, ...]):
        rows: list[Any] = [None] * len(self.parent_sizes)
        for piece, j in zip(pieces, self.outputs, strict=True):
            rows[j] = piece if rows[j] is None else rows[j] + piece
        return np.concatenate(
            [
                np.zeros((size, *columns)) if row is None else row
                for row, size in zip(rows, self.parent_sizes, strict=True)
            ]
        )

    def congruence(self, I: Array) -> Array:
        """λ(k)X*_k I kX_λ(k) for a symmetric cluster inertia."""
        n = len(self.parent_sizes)
        blocks: list[list[Any]] = [[None] * n for _ in range(n)]

        def add(a, b, value):
            blocks[a][b] = value if blocks[a][b] is None else blocks[a][b] + value

        for i, (X, a, rows) in enumerate(
            zip(self.blocks, self.outputs, split(I, self.sizes), strict=True)
        ):
            columns = split(rows.T, self.sizes)
            add(a, a, X.congruence(columns[i].T))
            for j in range(i + 1, len(self.blocks)):
                Y, b = self.blocks[j], self.outputs[j]
                mixed = X.sandwich(columns[j].T, Y)
                add(a, b, mixed)
                add(b, a, mixed.T)
        sizes = self.parent_sizes
        filled = [
            [
                np.zeros((sizes[i], sizes[j])) if blocks[i][j] is None else blocks[i][j]
                for j in range(n)
            ]
            for i in range(n)
        ]
        return symmetric(np.block(filled) if n > 1 else filled[0][0])
