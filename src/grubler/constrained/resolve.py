"""A cluster's joint with constraint rows on it: coordinates eliminated one by one.

A coordinate's acceleration is told by a constraint row where there is one, and by the joint's own
inertia otherwise. Both have one form: with T = 1 - S y',

    qdd = -(y a + e),   H <- T' H T = H - y z' - z y',   z = U - (D/2) y,
    p <- p - U e + y (D e + u),

where y = K̃ / (K̃ S), e = l̃ / (K̃ S) by a row, and y = U / D, e = -u / D otherwise: the update
H + K̃' Σ⁻¹ K̃ of (63) and the propagation P H of (42a) at once, without D⁻¹ where a row is resolved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import symmetric
from .recursion import total
from .reflection import NONE, SURE, Reflection, Row, fewer, reflect, unfold


@dataclass
class Coordinate:
    """One eliminated coordinate: see the module's formulas; g = 1/D where no row is resolved, else
    0, tells what the rows still carried (`f` = F' S by block) move."""

    S: np.ndarray
    U: np.ndarray
    u: object
    y: np.ndarray
    z: np.ndarray
    e: object
    g: object
    f: dict
    reflection: Reflection | None


@dataclass
class Resolved:
    """A cluster whose coordinates are eliminated, and the rows that pass on to its parent."""

    coordinates: list[Coordinate]
    rows: list[Row]
    folded: list[Reflection]

    def roll_out(self, a, slots, multipliers):
        """(qdd (nv,), stacked acceleration, multipliers of the rows as they came).

        `a` is the acceleration without the joint's own, `slots` the multipliers of the rows passed
        on, `multipliers` those of carried blocks.
        """
        out, n = [None] * len(self.coordinates), len(a)
        if len(self.coordinates[0].S) > n:
            a = np.concatenate([a, np.zeros(len(out))])
        for j in reversed(range(len(out))):
            c = self.coordinates[j]
            push = total([c.f[b] @ multipliers[b] for b in c.f]) if c.f else 0.0
            out[j] = -(c.y @ a + c.e) + c.g * push
            a = a + c.S * out[j]
            if c.reflection is not None:
                force = c.U @ a - c.u - push
                slots = c.reflection.multipliers(-force / c.reflection.root, slots)  # (62)
        return np.stack(out), a[:n], unfold(self.folded, slots) if self.folded else slots


def resolve(state, H, p, tau, rows, carried, kinds, spares):
    """Eliminate a joint's coordinates; returns (Resolved, H and p seen from the parent).

    `carried` are the blocks that only pass through (their F, l and L are updated); `kinds` says of
    each coordinate what is known of K S, `spares` how many slots there are for rows that a singular
    posture leaves.
    """
    done: list[Coordinate] = []
    folded: list[Reflection] = []
    if len(rows) > state.S.shape[0] and state.cluster.parent is not None:
        rows, folded = fewer(rows)
    axes, H, p, rows = _with_armature(state, H, p, rows)
    left = np.ones(axes.shape[0])  # elements of the acceleration that H still feels
    aligned = _aligned(axes)
    for j in range(axes.shape[1]):
        S = axes[:, j]
        U = H @ S
        for d in done:
            U = U - d.y * (d.z @ S) - d.z * (d.y @ S)
        U = U * left
        D, u = S @ U, tau[j] - S @ p
        reflection = None
        if kinds[j] != NONE and rows:
            axis = _met(S, state)
            reflection = reflect(rows, S, kinds[j] == SURE, spares, axis)
            rows = reflection.rows
        y, e, g = _told(reflection, U, u, D)
        if reflection is None:
            z, p = 0.5 * U, p - U * e
        else:
            z, p = U - y * (0.5 * D), p - U * e + y * (D * e + u)
        f = carried.resolve(state, S, y, e, g)
        done.append(Coordinate(S, U, u, y, z, e, g, f, reflection))
        if aligned:
            left = left * (S == 0.0)
    carried.pass_on(state)
    n = state.S.shape[0]
    rows = [Row(row.K[:n], row.l + row.K[:n] @ state.c, row.spare) for row in rows]
    if state.cluster.parent is None:
        return Resolved(done, rows, folded), None, None
    outer = [(d.y[:n], d.z[:n]) for d in done]
    return Resolved(done, rows, folded), *_seen_from_parent(
        state, H[:n, :n], p[:n], outer, left[:n]
    )


def _with_armature(state, H, p, rows):
    """Axes, H, p and rows of a joint; armature is inertia that feels the joint's rate alone."""
    if state.R is None:
        return state.S, H, p, rows
    n, nv = state.S.shape
    axes = np.concatenate([state.S, np.eye(nv)])
    H = np.block([[H, np.zeros((n, nv))], [np.zeros((nv, n)), state.R]])
    rows = [Row(np.concatenate([row.K, np.zeros(nv)]), row.l, row.spare) for row in rows]
    return axes, H, np.concatenate([p, state.r]), rows


def _told(reflection, U, u, D):
    """y, e, g of a coordinate: by its row, by its inertia, or by whichever the posture allows."""
    if reflection is not None and reflection.ok is True:
        return reflection.y, reflection.e, 0.0
    inverse = 1.0 / D
    y, e = U * inverse, -u * inverse
    if reflection is None:
        return y, e, inverse
    ok = reflection.ok
    return np.where(ok, reflection.y, y), np.where(ok, reflection.e, e), inverse * (1.0 - ok)


def _seen_from_parent(state, H, p, outer, left):
    X, c = state.X, state.c
    if len(state.cluster.bodies) == 1:
        for y, z in outer:
            H = H - np.outer(y, z) - np.outer(z, y)
        H = symmetric(H) * np.outer(left, left)
        return X.congruence(H), X.force_back(p + H @ c)
    p = p + H @ c
    H = X.congruence(H)
    for y, z in outer:
        p = p - y * (z @ c) - z * (y @ c)
        y, z = X.force_back(y), X.force_back(z)
        H = H - np.outer(y, z) - np.outer(z, y)
    return symmetric(H), X.force_back(p)


def _aligned(S) -> bool:
    """Whether the joint's axes are coordinate axes: H S = 0 afterwards is then known."""
    return isinstance(S, np.ndarray) and bool(np.all((S != 0).sum(axis=0) == 1))


def _met(S, state) -> int | None:
    """The one element of S that the rows meet, if it is one: rotors carry no constraints."""
    if not isinstance(S, np.ndarray):
        return None
    sizes = state.X.sizes
    body = np.repeat(np.array(sizes) == 6, sizes)
    elements = np.flatnonzero((S[: len(body)] != 0) & body)
    return int(elements[0]) if len(elements) == 1 else None
