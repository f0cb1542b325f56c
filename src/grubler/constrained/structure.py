"""What PV-early knows of a robot's constraints before it sees a posture.

Which joints resolve a row always, sometimes or never, and from which clusters on rows are carried.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..algorithms.first_pass import first_pass, locate
from ..symbolic import is_symbolic
from .closing import meeting
from .reflection import GUARD, NONE, SURE, Row, reflect
from .rows import constraint_rows, independent_rows, posed

FEW = 3  # rows at a free base that are cheaper carried across it than resolved, by counting


@lru_cache(maxsize=256)
def known(model, constraints, regular: bool) -> dict:
    """What is known of |K S| before: by (cluster, coordinate), from a few random postures.

    K is carried on by kinematics alone; an analytic function of the posture that has one value at
    several random ones is constant.
    """
    if is_symbolic(*[x for loop in model.loops for x in getattr(loop, "ratios", ())]):
        return {}
    direct = tuple(c for c in constraints if c.softness is None and c.to is None)
    samples = [norms(model, direct, model.random_state(seed)[0]) for seed in range(3)]
    above = set() if regular else closures_below(model, constraints)
    kinds = {}
    for key in samples[0]:
        left, whole = np.stack([sample[key] for sample in samples]).T
        constant = regular or np.ptp(left) < 1e-12 * left.max()
        if key[0] in above:
            kinds[key] = GUARD
        elif (left if regular else whole).max() < 1e-12:
            kinds[key] = NONE
        else:
            kinds[key] = SURE if constant and left.max() > 1e-6 else GUARD
    return kinds


@lru_cache(maxsize=256)
def carried_at(model, constraints, regular: bool, spares: int) -> frozenset[int]:
    """The clusters at which rows are no longer resolved but carried to the world, as in PV.

    Where all rows of a branch have been resolved, only spare ones are left, zero at most postures,
    and carrying a row costs about half of resolving it; and few rows at a free base, or those of
    constraints between bodies, are cheaper carried across it than resolved there. Once carried, a
    row has an L and cannot be resolved any more: what hangs below a joint that resolves is never
    carried.
    """
    count = row_counts(model, constraints, regular, spares)
    closing = {closing_cluster(model, c) for c in constraints if c.to is not None}
    late: set[int] = set()
    for cluster in model.clusters:
        rows, spare = count[cluster.index]
        if cluster.parent is None and cluster.nv == 6:
            carry = rows + spare <= FEW or cluster.index in closing
        else:
            carry = rows == 0 and (cluster.parent is None or cluster.parent in late)
        if carry:
            late.add(cluster.index)
    return frozenset(late)


def row_counts(model, constraints, regular: bool, spares: int) -> dict:
    """By cluster: how many rows wait there to be resolved, and how many spare ones."""
    kinds = known(model, constraints, regular)
    rows, spare = ({c.index: 0 for c in model.clusters} for _ in range(2))
    by_body: dict[int, int] = {}
    for c in constraints:
        if c.to is not None:
            k = closing_cluster(model, c)
            if k is not None and not regular:
                spare[k] += c.m
        elif c.softness is None:
            by_body[c.frame.body] = min(6, by_body.get(c.frame.body, 0) + c.m)
    for body, m in by_body.items():
        rows[locate(model, body)[0]] += m
    count = {}
    for cluster in reversed(model.clusters):
        k, up = cluster.index, cluster.parent
        n, s = count[k] = rows[k], spare[k]
        for j in range(cluster.nv):
            kind = kinds.get((k, j), SURE if regular else GUARD)
            if kind != NONE and n:
                n -= 1
                s += kind == GUARD and s < spares
        if up is not None:
            rows[up] += n
            spare[up] += s
    return count


def norms(model, constraints, q) -> dict:
    """|K S|² of the rows left and of all rows, at every coordinate that rows pass."""
    states = first_pass(model, q, posed=posed(constraints))
    rows = independent_rows(model, constraint_rows(model, states, constraints), constraints)
    waiting: dict = {}
    for block in rows:
        for k, F in block.ends.items():
            here = [Row(F[:, i], 0.0) for i in range(block.m)]
            _extend(waiting, k, here, here)
    out = {}
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        if k not in waiting:
            continue
        left, whole = waiting[k]
        for j in range(state.cluster.nv):
            S = state.S[:, j]
            out[k, j] = np.stack([sum((row.K @ S) ** 2 for row in some) for some in (left, whole)])
            left = reflect(left, S, False, len(left) + 1).rows
        if up is not None:
            _extend(waiting, up, seen_from_parent(state, left), seen_from_parent(state, whole))
    return out


def _extend(waiting: dict, k: int, left, whole) -> None:
    for rows, more in zip(waiting.setdefault(k, ([], [])), (left, whole)):
        rows.extend(more)


def seen_from_parent(state, rows: list[Row]) -> list[Row]:
    """Rows on a cluster as rows on its parent."""
    K = state.X.forces_back(np.stack([row.K for row in rows]).T).T
    return [Row(K[i], row.l, row.spare) for i, row in enumerate(rows)]


def closures_below(model, constraints) -> set[int]:
    """The clusters in which, or below which, a constraint between two bodies closes."""
    above: set[int] = set()
    for c in constraints:
        if c.to is not None:
            k = closing_cluster(model, c)
            while k is not None:
                above.add(k)
                k = model.clusters[k].parent
    return above


def closing_cluster(model, c) -> int | None:
    """The cluster in which the ends of a constraint between two bodies meet."""
    return meeting(model, locate(model, c.frame.body)[0], locate(model, c.to.body)[0])
