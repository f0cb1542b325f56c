"""Resolving one constraint row against one joint coordinate, by a reflection of the rows.

Rows K a + l = 0 and one coordinate with axis S: the reflection I - β w w' (65) turns ks = K S onto
one row, the pivot. This row alone determines the coordinate's acceleration, y a + e = 0, and the
others, K̂ with K̂ S = 0, pass on (67), (68). Any row may be the pivot, also one with ks = 0 (Remark
7): nothing is chosen by the posture.

The paper's has w = ks + |ks| at the pivot, and K̂ = K - ks (|ks| y + K_p) / (ks_p + |ks|). That is
zero along S with any length in place of |ks|, and well conditioned with any near it: here with the
sum of the elements' sizes, |ks| to √m |ks|. Every joint up to the base waits for it, and a square
root takes as long as five sums.

Where S moves two rows the reflection is written out, with the direction of ks: fewer operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.symbolic import constant, is_symbolic

if TYPE_CHECKING:
    from ..typing import Array


@dataclass
class Row:
    """K a + l = 0."""

    K: np.ndarray
    l: object


@dataclass
class Reflection:
    """
    | code    | paper     | meaning                                                        |
    |---------|-----------|----------------------------------------------------------------|
    | y, e    |           | the resolved row: y a + e = 0 with y S = 1                     |
    | ks      | ks_i      | K S                                                            |
    | inverse | 1 / ks'ks | how far the joint has to move for the rows                     |
    | size    | ±|ks|     | the sum of sizes, of three rows and more with the pivot's sign |
    | share   |           | 1 / (ks_p + size), None where S moves one row, or two          |
    | rows    | K̂, l̂      | the rows that pass on                                          |
    | pivot   |           | the row that is resolved                                       |
    | turn    |           | the other of two rows that S moves, and ks size / ks'ks        |
    """

    y: object
    e: object
    ks: list[Any]
    inverse: object
    size: object
    share: object
    rows: list[Row]
    pivot: int
    turn: tuple[Any, ...] | None = None

    def multipliers(self, resolved: Any, passed: Any) -> list[Any]:
        """λ of the rows as they came, from that of the resolved row and of those passed on (64)."""
        p, x = self.pivot, list(passed)
        x.insert(p, 0.0)
        if self.turn is not None:
            o, c, s = self.turn
            along = resolved * self.inverse
            x[p], x[o] = self.ks[p] * along - s * x[o], self.ks[o] * along + c * x[o]
            return x
        if self.share is None:
            x[p] = resolved / self.ks[p]
            return x
        t = sum(k * value for k, value in zip(self.ks, x, strict=True))
        along = resolved * self.inverse - (self.size * self.share * self.inverse) * t
        x[p] = -(self.share * t)
        return [value + k * along for k, value in zip(self.ks, x, strict=True)]


def reflect(rows: list[Row], S: Array, axis: int | None = None) -> Reflection:
    """Resolve one of the rows against the coordinate with axis S, which moves them.

    `axis` is the only element of S that the rows meet, if so.
    """
    ks = [_moved(row, S) for row in rows]
    pivot = _pivot(ks)
    square = _square(ks)
    others = [i for i in range(len(rows)) if i != pivot]
    moved = [i for i in others if is_symbolic(ks[i]) or ks[i] != 0.0]
    p, row, hit = pivot, rows[pivot], np.ones(len(S))
    if moved:
        inverse = 1.0 / square
        y = sum((ks[i] * rows[i].K for i in moved), ks[p] * row.K) * inverse
        e = sum((ks[i] * rows[i].l for i in moved), ks[p] * row.l) * inverse
    else:
        y, e, inverse = row.K / ks[p], row.l / ks[p], 1.0 / ks[p] / ks[p]
    if axis is not None:  # y S = 1 and K̂ S = 0, known without computing
        hit[axis] = 0.0
        y = y * hit + (1.0 - hit) / S[axis]
    if not moved:
        return Reflection(y, e, ks, inverse, ks[p], None, [rows[i] for i in others], p)
    size = sum(np.abs(ks[i]) for i in [p, *moved])
    if len(moved) == 1:
        (o,) = moved
        c, s = ks[p] * (inverse * size), ks[o] * (inverse * size)
        K, l = (c * rows[o].K - s * row.K) * hit, c * rows[o].l - s * row.l
        left = [Row(K, l) if i == o else rows[i] for i in others]
        return Reflection(y, e, ks, inverse, size, None, left, p, (o, c, s))
    size = size * np.where(ks[p] < 0.0, -1.0, 1.0)
    share = 1.0 / (ks[p] + size)
    g, h = (y * size + row.K) * share, (e * size + row.l) * share
    left = [Row((rows[i].K - ks[i] * g) * hit, rows[i].l - ks[i] * h) for i in others]
    return Reflection(y, e, ks, inverse, size, share, left, p)


def _moved(row: Row, S):
    """K S: a number where it is known, zero as a rule."""
    ks = row.K @ S
    known = constant(ks)
    return ks if known is None else known[()]


def _square(ks):
    return sum((k * k for k in ks[1:]), ks[0] * ks[0])


def _pivot(ks) -> int:
    """Any row will do; numbers known before show which one leaves most of the others alone, zeros
    which one may be the only one."""
    moved = [i for i, k in enumerate(ks) if is_symbolic(k) or k != 0.0]
    if any(is_symbolic(k) for k in ks):
        return moved[0]
    return max(range(len(ks)), key=lambda i: abs(ks[i]))
