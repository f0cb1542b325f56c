"""Resolving one constraint row against one joint coordinate, by a reflection of the rows.

Rows K a + l = 0 and one coordinate with axis S: the reflection I - β w w' (65) turns ks = K S onto
one row, the pivot, so that this row alone, K̃ a + l̃ = 0, tells the coordinate's acceleration, and
the others, K̂ with K̂ S = 0, pass on (67), (68). Any row may be the pivot, also one with ks = 0
(Remark 7): nothing is chosen by the posture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..symbolic import is_symbolic


@dataclass
class Row:
    """K a + l = 0."""

    K: np.ndarray
    l: object


@dataclass
class Reflection:
    """
    | code    | paper    | meaning                                                         |
    |---------|----------|----------------------------------------------------------------|
    | y, e    |          | the resolved row: y a + e = 0 with y S = 1                      |
    | ks      | ks_i     | K S                                                             |
    | inverse | 1 / ks'ks | how far the joint has to move for the rows                    |
    | root    | |ks|     | with the sign of the pivot's ks: K̃ S = -root                    |
    | beta    | 2 / w'w  | the number 0.0 where ks has one element: no reflection          |
    | rows    | K̂, l̂     | the rows that pass on                                           |
    | pivot   |          | the row that is resolved                                        |
    """

    y: object
    e: object
    ks: list
    inverse: object
    root: object
    beta: object
    rows: list[Row]
    pivot: int

    def multipliers(self, resolved, passed) -> list:
        """λ of the rows as they came, from that of the resolved row and of those passed on (64)."""
        n, p = len(self.ks), self.pivot
        x = list(passed)
        x.insert(p, resolved)
        if isinstance(self.beta, float) and self.beta == 0.0:
            return x
        w = self.ks[p] + self.root
        others = [i for i in range(n) if i != p]
        t = self.beta * sum((self.ks[i] * x[i] for i in others), w * x[p])
        return [x[i] - t * (w if i == p else self.ks[i]) for i in range(n)]


def reflect(rows: list[Row], S, axis: int | None = None, least: float = 0.0) -> Reflection:
    """Resolve one of the rows against the coordinate with axis S, which moves them.

    `axis` is the only element of S that the rows meet, if so. Where it moves them by less than
    `least`, the pivot row counts as the one that is moved.
    """
    n = len(rows)
    ks = [row.K @ S for row in rows]
    pivot = _pivot(ks)
    square = _square(ks)
    if least:
        ks[pivot] = np.where(square < least**2, least, ks[pivot])
        square = _square(ks)
    inverse = 1.0 / square
    y = sum((k * row.K for k, row in zip(ks[1:], rows[1:])), ks[0] * rows[0].K) * inverse
    e = sum((k * row.l for k, row in zip(ks[1:], rows[1:])), ks[0] * rows[0].l) * inverse
    hit = np.ones(len(S))
    if axis is not None:  # y S = 1 and K̂ S = 0, known without computing
        hit[axis] = 0.0
        y = y * hit + (1.0 - hit) / S[axis]
    others = [i for i in range(n) if i != pivot]
    if all(not is_symbolic(ks[i]) and ks[i] == 0.0 for i in others):  # and a sign less
        return Reflection(y, e, ks, inverse, -ks[pivot], 0.0, [rows[i] for i in others], pivot)
    root = np.sqrt(square) * np.where(ks[pivot] < 0.0, -1.0, 1.0)
    share = 1.0 / (ks[pivot] + root)
    g = (y * root + rows[pivot].K) * share  # w' K / (|ks| + |ks_p|)
    h = (e * root + rows[pivot].l) * share
    left = [Row((rows[i].K - ks[i] * g) * hit, rows[i].l - ks[i] * h) for i in others]
    return Reflection(y, e, ks, inverse, root, share * (inverse * root), left, pivot)


def _square(ks):
    return sum((k * k for k in ks[1:]), ks[0] * ks[0])


def _pivot(ks) -> int:
    """Any row will do; numbers known before show which one leaves most of the others alone."""
    if any(is_symbolic(k) for k in ks):
        return 0
    return max(range(len(ks)), key=lambda i: abs(ks[i]))
