"""What PV-early knows of a robot's constraints before it sees a posture.

Which joints move the rows that come to them, how far as a rule, and where rows are carried.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algorithms.first_pass import first_pass, locate
from .closing import meeting, path
from .reflection import Row, reflect
from .rows import constraint_rows, independent_rows, posed

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked

FEW = 3  # rows at a free base that are cheaper carried across it than resolved, by counting
NEVER = 1e-12  # |K S|² of a joint that does not move a row
SHORT = 2e-6  # |K S|² of a joint that is never the one to take a row, by the longest lever
SHORT_ARM = 8  # joints whose mass matrix may have fewer numbers than the inertias of their links
POSTURES = 7  # random ones, at which things are found out


class Lever(NamedTuple):
    """What is known of |K S|² at a joint coordinate: its median, whether it is ever more than zero,
    and whether it is the same at all postures."""

    usual: float
    moves: bool
    constant: bool


@lru_cache(maxsize=256)
def levers(model: Model, constraints: Sequence[Checked]) -> dict[tuple[int, int], Lever]:
    """By (cluster, coordinate), from a few random postures.

    K is carried on by kinematics alone; an analytic function of the posture that has one value at
    several random ones is constant.
    """
    direct = tuple(c for c in constraints if c.softness is None and c.to is None)
    samples = [squares(model, direct, model.random_state(seed)[0]) for seed in range(POSTURES)]
    found = {}
    for key in samples[0]:
        values = np.array([sample[key] for sample in samples if key in sample])
        constant = np.ptp(values) < 1e-12 * values.max()
        found[key] = Lever(float(np.median(values)), values.max() > NEVER, constant)
    return found


@lru_cache(maxsize=256)
def carried_at(model: Model, constraints: Sequence[Checked], near: int = 0) -> frozenset[int]:
    """The clusters at which rows are no longer resolved but carried to the world, as in PV.

    A free base where there are few, or those of constraints between bodies; all from a joint on
    whose lever is short at every posture, such as that of pitch axes that are not quite parallel;
    and the first `near` coordinates on a fixed base, unless rows tell their motion.
    """
    roots = [c for c in model.clusters if c.parent is None and c.nv == 6]
    closing = {closing_cluster(model, c) for c in constraints if c.to is not None}
    count, known = row_counts(model, constraints), levers(model, constraints)
    late = {c.index for c in roots if count[c.index] <= FEW or c.index in closing}
    longest = max((x.usual for x in known.values()), default=0.0)
    for (k, _), lever in known.items():
        if lever.moves and lever.usual < SHORT * longest:
            late |= set(path(model, k))
    if near and not told(model, constraints):
        for k, _ in known:
            inward = [model.clusters[i] for i in path(model, k)]
            if inward[-1].nv < 6 and sum(cluster.nv for cluster in inward) <= near:
                late |= {cluster.index for cluster in inward}
    return frozenset(late)


def short_arm(model: Model, constraints: Sequence[Checked]) -> bool:
    """Whether all joints may be eliminated at once (at_once.py): few, on a fixed base, and hard
    rows with the world that the outer half of them takes."""
    hard = all(c.softness is None and c.to is None for c in constraints)
    fixed = all(c.nv < 6 for c in model.clusters if c.parent is None)
    few = 2 * sum(c.m for c in constraints) <= model.nv <= SHORT_ARM
    return hard and fixed and few and not carried_at(model, constraints)


@lru_cache(maxsize=256)
def row_counts(model: Model, constraints: Sequence[Checked]) -> dict[int, int]:
    """By cluster: how many rows wait there to be resolved."""
    known = levers(model, constraints)
    rows = {c.index: 0 for c in model.clusters}
    by_body: dict[int, int] = {}
    for c in constraints:
        if c.to is None and c.softness is None:
            by_body[c.frame.body] = min(6, by_body.get(c.frame.body, 0) + c.m)
    for body, m in by_body.items():
        rows[locate(model, body)[0]] += m
    for cluster in reversed(model.clusters):
        k = cluster.index
        taken = sum((k, j) in known and known[k, j].moves for j in range(cluster.nv))
        if cluster.parent is not None:
            rows[cluster.parent] += max(0, rows[k] - taken)
    return rows


@lru_cache(maxsize=256)
def told(model: Model, constraints: Sequence[Checked], near: int = 0) -> frozenset[int]:
    """The clusters whose motion rows tell, whatever their inertia, as that of their parents up to
    the world: an arm of six joints whose hand is welded, or a base that is held."""
    found: set[int] = set()
    if any(c.to is not None for c in constraints):
        return frozenset(found)
    known, count = levers(model, constraints), row_counts(model, constraints)
    late = carried_at(model, constraints, near)
    for cluster in model.clusters:
        k, up = cluster.index, cluster.parent
        moves = all((k, j) in known and known[k, j].moves for j in range(cluster.nv))
        if moves and count[k] >= cluster.nv and k not in late and (up is None or up in found):
            found.add(k)
    return frozenset(found)


def squares(model: Model, constraints: Sequence[Checked], q: Array) -> dict[tuple[int, int], float]:
    """|K S|² of the rows left, at every coordinate that rows pass."""
    states = first_pass(model, q, posed=posed(constraints))
    rows = independent_rows(model, constraint_rows(model, states, constraints), constraints)
    waiting: dict[int, list[Row]] = {}
    for block in rows:
        for k, F in block.ends.items():
            waiting.setdefault(k, []).extend(Row(F[:, i], 0.0) for i in range(block.m))
    out = {}
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        left = waiting.get(k, [])
        for j in range(state.cluster.nv):
            S = state.S[:, j]
            if left:
                out[k, j] = float(sum((row.K @ S) ** 2 for row in left))
                left = reflect(left, S).rows if out[k, j] > NEVER else left
        if up is not None and left:
            K = state.X.forces_back(np.stack([row.K for row in left]).T).T
            waiting.setdefault(up, []).extend(Row(k_, 0.0) for k_ in K)
    return out


def closing_cluster(model: Model, c: Any) -> int | None:
    """The cluster in which the ends of a constraint between two bodies meet."""
    return meeting(model, locate(model, c.frame.body)[0], locate(model, c.to.body)[0])
