"""Resolving one constraint row against one joint coordinate, by a reflection of the rows.

Rows K a + l = 0 and one coordinate with axis S: the reflection I - β w w' (65) turns ks = K S onto
one row, the pivot, so that this row alone, K̃ a + l̃ = 0, tells the coordinate's acceleration, and
the others, K̂ with K̂ S = 0, pass on (67), (68). Any row may be the pivot, also one with ks = 0
(Remark 7): nothing is chosen by the posture.

Where S moves two rows the reflection is written out, with the direction (c, s) of ks: fewer
operations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..symbolic import constant, is_symbolic


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
    | root    | ±|ks|    | K̃ S = -root; of three rows and more with the sign of the pivot's ks |
    | beta    | 2 / w'w  | None where it is not needed: ks has one element, or two         |
    | turn    |          | the other of two rows, and (c, s), ks / root of pivot and other |
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
    turn: tuple | None = None

    def multipliers(self, resolved, passed) -> list:
        """λ of the rows as they came, from that of the resolved row and of those passed on (64)."""
        n, p = len(self.ks), self.pivot
        x = list(passed)
        x.insert(p, resolved)
        if self.turn is not None:
            o, c, s = self.turn
            x[p], x[o] = -c * x[p] - s * x[o], c * x[o] - s * x[p]
        if self.beta is None:
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
    ks = [_moved(row, S) for row in rows]
    pivot = _pivot(ks)
    square = _square(ks)
    if least:
        ks[pivot] = np.where(square < least**2, least, ks[pivot])
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
    if not moved:  # and a sign less
        return Reflection(y, e, ks, inverse, -ks[p], None, [rows[i] for i in others], p)
    root = np.sqrt(square)
    if len(moved) == 1:
        (o,) = moved
        c, s = ks[p] * (inverse * root), ks[o] * (inverse * root)
        K, l = (c * rows[o].K - s * row.K) * hit, c * rows[o].l - s * row.l
        left = [Row(K, l) if i == o else rows[i] for i in others]
        return Reflection(y, e, ks, inverse, root, None, left, p, (o, c, s))
    root = root * np.where(ks[p] < 0.0, -1.0, 1.0)
    share = 1.0 / (ks[p] + root)
    g, h = (y * root + row.K) * share, (e * root + row.l) * share  # w' K / (|ks| + |ks_p|)
    left = [Row((rows[i].K - ks[i] * g) * hit, rows[i].l - ks[i] * h) for i in others]
    return Reflection(y, e, ks, inverse, root, share * (inverse * root), left, p)


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
