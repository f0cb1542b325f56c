"""How PV-early resolves the constraints of a model: a `Plan`, made before any posture is known.

The rows that come to a joint coordinate have a lever there, |K S|. A coordinate that moves them
takes one. Where levers are short at every posture, or few rows are left at a free base, it is
better to carry rows on to the world, as in PV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algorithms.sweep import outward
from ..tolerances import NO_LEVER, SHORT_LEVER
from .reflection import Row, reflect
from .rows import constraint_rows, framed, independent_rows

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked

FEW = 3  # rows at a free base that are cheaper carried across it than resolved, by counting
POSTURES = 7  # random ones, at which levers and accuracies are sampled


@dataclass(frozen=True)
class Plan:
    """
    | field      | meaning                                                                        |
    |------------|--------------------------------------------------------------------------------|
    | takes      | the joint coordinates (cluster, index) that take a row where one comes         |
    | carries    | the clusters at which rows are no longer resolved but carried to the world     |
    | determined | the clusters whose motion rows determine, as that of their parents up to the   |
    |            | world: no inertia is carried across them                                       |
    | joints     | the name of each cluster's first joint, for printing                           |
    """

    takes: frozenset[tuple[int, int]]
    carries: frozenset[int]
    determined: frozenset[int]
    joints: tuple[str, ...]

    def __str__(self) -> str:
        lines = []
        for k, joint in enumerate(self.joints):
            count = sum(cluster == k for cluster, _ in self.takes)
            if k in self.carries:
                lines.append(f"{joint}: rows pass, carried to the world")
            elif count:
                known = ", which determine its motion" if k in self.determined else ""
                lines.append(f"{joint}: takes {count} row{'s' * (count > 1)}{known}")
        return "\n".join(lines)


@lru_cache(maxsize=256)
def planned(model: Model, constraints: Sequence[Checked]) -> Plan:
    """The plan of a model under checked constraints."""
    return Plan(
        frozenset(key for key, lever in row_levers(model, constraints).items() if lever.moves),
        carried_at(model, constraints),
        row_determined(model, constraints),
        tuple(model.bodies[cluster.bodies[0]].joint.name for cluster in model.clusters),
    )


class Lever(NamedTuple):
    """|K S|² at a joint coordinate: its median, and True if it is ever more than zero."""

    usual: float
    moves: bool


@lru_cache(maxsize=256)
def row_levers(model: Model, constraints: Sequence[Checked]) -> dict[tuple[int, int], Lever]:
    """By (cluster, coordinate), from a few random postures; K is carried on by kinematics alone."""
    direct = tuple(c for c in constraints if c.softness is None and c.to is None)
    samples = [squares(model, direct, model.random_state(seed)[0]) for seed in range(POSTURES)]
    found = {}
    for key in samples[0]:
        values = np.array([sample[key] for sample in samples if key in sample])
        found[key] = Lever(float(np.median(values)), bool(values.max() > NO_LEVER))
    return found


@lru_cache(maxsize=256)
def carried_at(model: Model, constraints: Sequence[Checked]) -> frozenset[int]:
    """The clusters at which rows are no longer resolved but carried to the world, as in PV.

    A free base where there are few, or those of constraints between bodies; and all from a joint on
    whose lever is short at every posture, such as that of pitch axes that are not quite parallel.
    """
    roots = [c for c in model.clusters if c.parent is None and c.nv == 6]
    closing = {closing_cluster(model, c) for c in constraints if c.to is not None}
    count, known = row_counts(model, constraints), row_levers(model, constraints)
    late = {c.index for c in roots if count[c.index] <= FEW or c.index in closing}
    longest = max((x.usual for x in known.values()), default=0.0)
    for (k, _), lever in known.items():
        if lever.moves and lever.usual < SHORT_LEVER * longest:
            late |= set(model.tree.inward(k))
    return frozenset(late)


@lru_cache(maxsize=256)
def row_counts(model: Model, constraints: Sequence[Checked]) -> dict[int, int]:
    """By cluster: how many rows wait there to be resolved."""
    known = row_levers(model, constraints)
    rows = {c.index: 0 for c in model.clusters}
    by_body: dict[int, int] = {}
    for c in constraints:
        if c.to is None and c.softness is None:
            by_body[c.frame.body] = min(6, by_body.get(c.frame.body, 0) + c.m)
    for body, m in by_body.items():
        rows[model.tree.locate(body)[0]] += m
    for cluster in reversed(model.clusters):
        k = cluster.index
        taken = sum((k, j) in known and known[k, j].moves for j in range(cluster.nv))
        if cluster.parent is not None:
            rows[cluster.parent] += max(0, rows[k] - taken)
    return rows


@lru_cache(maxsize=256)
def row_determined(model: Model, constraints: Sequence[Checked]) -> frozenset[int]:
    """The clusters whose motion rows determine, whatever their inertia, as that of their parents up
    to the world: an arm of six joints whose hand is welded, or a base that is held."""
    found: set[int] = set()
    if any(c.to is not None for c in constraints):
        return frozenset(found)
    known, count = row_levers(model, constraints), row_counts(model, constraints)
    late = carried_at(model, constraints)
    for cluster in model.clusters:
        k, up = cluster.index, cluster.parent
        moves = all((k, j) in known and known[k, j].moves for j in range(cluster.nv))
        if moves and count[k] >= cluster.nv and k not in late and (up is None or up in found):
            found.add(k)
    return frozenset(found)


def squares(model: Model, constraints: Sequence[Checked], q: Array) -> dict[tuple[int, int], float]:
    """|K S|² of the rows left, at every coordinate that rows pass."""
    sweep = outward(model, q, keep_frame=framed(constraints))
    rows = independent_rows(model, constraint_rows(sweep, constraints), constraints)
    waiting: dict[int, list[Row]] = {}
    for block in rows:
        for k, F in block.ends.items():
            waiting.setdefault(k, []).extend(Row(F[:, i], 0.0) for i in range(block.m))
    out = {}
    for state in reversed(sweep):
        k, up = state.cluster.index, state.cluster.parent
        left = waiting.get(k, [])
        for j in range(state.cluster.nv):
            S = state.S[:, j]
            if left:
                out[k, j] = float(sum((row.K @ S) ** 2 for row in left))
                left = reflect(left, S).rows if out[k, j] > NO_LEVER else left
        if up is not None and left:
            K = state.X.forces_back(np.stack([row.K for row in left]).T).T
            waiting.setdefault(up, []).extend(Row(k_, 0.0) for k_ in K)
    return out


def closing_cluster(model: Model, c: Any) -> int | None:
    """The cluster in which the ends of a constraint between two bodies meet."""
    return model.tree.common(*(model.tree.locate(x.body)[0] for x in (c.frame, c.to)))
