"""Resolving one constraint row against one joint coordinate, by a reflection of the rows.

Rows K a + l = 0 and one coordinate with axis S: the reflection I - β w w' (65) turns ks = K S onto
one row, the pivot, so that this row alone, K̃ a + l̃ = 0, tells the coordinate's acceleration, and
the others, K̂ with K̂ S = 0, pass on (67), (68). Any row may be the pivot, also one with ks = 0
(Remark 7). Where all of ks is zero, at a singular posture or for redundant rows, β is zero, and the
rows pass on whole (Remark 8): the pivot then takes a spare slot, which is zero otherwise. Where ks
is not zero but too small to divide by, the reflected pivot passes on as the joint's inertia lets it
move, K̃ - (K̃ S) U'/D; what is left out is its own L = (K̃ S)²/D, below TOLERANCE² / D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..symbolic import is_symbolic

TOLERANCE = 1e-6  # with |ks| below this a joint resolves no row
ZERO = 1e-14  # |ks| below this is none at all
SURE, GUARD, NONE = "sure", "guard", "none"


@dataclass
class Row:
    """K a + l = 0; a spare one is zero unless the posture is singular."""

    K: np.ndarray
    l: object
    spare: bool = False


@dataclass
class Reflection:
    """
    | code  | paper    | meaning                                                          |
    |-------|----------|------------------------------------------------------------------|
    | ok    |          | whether the coordinate resolves a row; True where it is sure     |
    | y, e  |          | the resolved row: y a + e = 0 with y S = 1                       |
    | ks    | ks_i     | K S                                                              |
    | root  | |ks|     | with the sign of the pivot's ks: K̃ S = -root                     |
    | beta  | 2 / w'w  | the number 0.0 where ks has one element: no reflection           |
    | rows  | K̂, l̂     | the rows that pass on                                            |
    | pivot |          | the row that is resolved                                         |
    | swap  |          | a spare row whose slot the pivot's takes; None                   |
    """

    ok: object
    y: object
    e: object
    ks: list
    root: object
    beta: object
    rows: list[Row]
    pivot: int
    swap: int | None = None

    def push(self, passed):
        """K̃ S λ of a pivot that passes on: what it pushes the coordinate with."""
        if self.ok is True:
            return 0.0
        before = self.swap is not None and self.swap < self.pivot
        return -self.root * passed[self.pivot - before]

    def multipliers(self, resolved, passed) -> list:
        """λ of the rows as they came, from that of the resolved row and of those passed on (64)."""
        n, p = len(self.ks), self.pivot
        x = list(passed)
        if self.ok is True:
            x.insert(p, resolved)
        elif self.swap is None:
            x[p] = np.where(self.ok, resolved, x[p])
        else:
            x.insert(self.swap, 0.0)
            x[self.swap] = np.where(self.ok, x[p], 0.0)
            x[p] = np.where(self.ok, resolved, x[p])
        if isinstance(self.beta, float) and self.beta == 0.0:
            return x
        w = self.ks[p] + self.root
        others = [i for i in range(n) if i != p]
        t = self.beta * sum((self.ks[i] * x[i] for i in others), w * x[p])
        return [x[i] - t * (w if i == p else self.ks[i]) for i in range(n)]


def reflect(
    rows: list[Row], S, sure: bool, spares: int, axis: int | None = None, inertial=None
) -> Reflection:
    """Resolve one of the rows against the coordinate with axis S.

    `sure` says that ks never vanishes. Otherwise a row that cannot be resolved takes a spare slot:
    a new one as long as there are fewer than `spares`, else that of a spare row, which is free
    unless the branch is singular twice. `axis` is the only element of S that the rows meet, if so.
    `inertial` is (y, e) of the coordinate told by its own inertia.
    """
    n = len(rows)
    ks = [row.K @ S for row in rows]
    spare = [i for i in range(n) if rows[i].spare]
    pivot = _pivot(ks, [i for i in range(n) if i not in spare])
    swap = None
    if not sure and len(spare) >= spares and pivot not in spare and spare:
        swap = spare[0]
    square = sum((k * k for k in ks[1:]), ks[0] * ks[0])
    ok = some = True
    if not sure:
        ok, some = square > TOLERANCE**2, square > ZERO**2
        square = np.where(some, square, ZERO**2)
    inverse = 1.0 / square
    y = sum((k * row.K for k, row in zip(ks[1:], rows[1:])), ks[0] * rows[0].K) * inverse
    e = sum((k * row.l for k, row in zip(ks[1:], rows[1:])), ks[0] * rows[0].l) * inverse
    hit = np.ones(len(S))
    if axis is not None:  # y S = 1 and K̂ S = 0, known without computing
        hit[axis] = 0.0
        y = y * hit + (1.0 - hit) / S[axis]
    alone = all(not is_symbolic(k) and k == 0.0 for i, k in enumerate(ks) if i != pivot)
    if alone:  # no reflection, and a sign less
        root, beta, moved = -ks[pivot], 0.0, {i: rows[i] for i in range(n) if i != pivot}
        root = root if sure else np.where(some, root, ZERO)
    else:
        root = np.sqrt(square) * np.where(ks[pivot] < 0.0, -1.0, 1.0)
        share = 1.0 / (ks[pivot] + root)
        share = share if sure else share * (1.0 * some)
        beta = share * (inverse * root)
        g = (y * root + rows[pivot].K) * share  # w' K / (|ks| + |ks_p|)
        h = (e * root + rows[pivot].l) * share
        moved = {
            i: Row((rows[i].K - ks[i] * g) * hit, rows[i].l - ks[i] * h, rows[i].spare)
            for i in range(n)
            if i != pivot
        }
    whole = rows[pivot]
    if not sure:  # K̃ - (K̃ S) y of its inertia, with K̃ S = -root
        own = (0.0, 0.0) if inertial is None else inertial
        K = np.where(some, (own[0] - y) * root, whole.K)
        whole = Row(K, np.where(some, (own[1] - e) * root, whole.l))
    kept = _kept(whole, moved, pivot, swap, ok, hit)
    return Reflection(ok, y, e, ks, root, beta, kept, pivot, swap)


def _pivot(ks, candidates) -> int:
    """Any row will do; numbers known before show which one leaves most of the others alone."""
    if not candidates:
        return 0
    known = [i for i in candidates if not is_symbolic(ks[i])]
    if len(known) == len(candidates):
        return max(candidates, key=lambda i: abs(ks[i]))
    return candidates[0]


def fewer(rows: list[Row]) -> tuple[list[Row], list[Reflection]]:
    """At most as many rows as they have columns, by reflections (Remark 9), and these.

    What is left over has K = 0: redundant, and its l is part of the residual.
    """
    kept, steps = [], []
    for axis in np.eye(len(rows[0].K)):
        step = reflect(rows, axis, False, len(rows) + 1, int(np.flatnonzero(axis)[0]))
        scale = -step.root * (1.0 * step.ok)
        kept.append(Row(step.y * scale, step.e * scale))
        steps.append(step)
        rows = step.rows
    return kept, steps


def unfold(steps: list[Reflection], multipliers) -> list:
    """λ of all rows from those of the fewer."""
    x = [0.0] * len(steps[-1].rows)
    for step, resolved in zip(reversed(steps), reversed(list(multipliers))):
        x = step.multipliers(resolved, x)
    return x


def _kept(whole, moved, pivot, swap, ok, hit) -> list[Row]:
    if ok is not True:
        if swap is None:
            # A product, not np.where: CasADi would carry the condition into all that follows.
            stays = 1.0 - ok
            moved[pivot] = Row(whole.K * (stays * hit), whole.l * stays, True)
        else:
            other = moved.pop(swap)
            K = np.where(ok, other.K, whole.K * hit)
            moved[pivot] = Row(K, np.where(ok, other.l, whole.l), True)
    return [moved[i] for i in sorted(moved)]
