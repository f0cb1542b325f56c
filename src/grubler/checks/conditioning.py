"""How well the independent joints of each cluster determine the others, and how near it comes to a
singularity over random assembled configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..coordinates.embedding import ExplicitJoint, stack_rows
from ..mechanism.loops.modules import module_name
from ..model import Model
from ..model.clusters import Cluster
from ..tolerances import POOR_CONDITION


@dataclass(frozen=True)
class Partition:
    """The partition of one cluster with loops.

    `condition` is that of K_d at the reference, `typical` and `worst` its median and largest over
    the samples. `distance` is the smallest singular value of K met, over its largest: how near the
    mechanism itself comes to a singularity, whatever the partition.
    """

    cluster: int
    loops: tuple[str, ...]
    closing: str
    independent: tuple[str, ...]
    rows: int
    rank: int
    condition: float
    typical: float
    worst: float
    distance: float

    @property
    def poor(self) -> bool:
        return not self.worst < POOR_CONDITION


def partitions(model: Model, samples: Sequence[dict[Any, Any]]) -> list[Partition]:
    """The partitions of all clusters with loops; the first sample is the reference."""
    return [
        _partition(cluster, model.v_names[cluster.v], samples)
        for cluster in model.clusters
        if cluster.loops
    ]


def _partition(cluster: Cluster, names, samples: Sequence[dict[Any, Any]]) -> Partition:
    joint = cluster.embedding
    dependent = [c for c in range(joint.nv_span) if c not in joint.independent]
    conditions, distances = [], []
    rows = sum(loop.rows for loop in cluster.loops)
    kept = list(getattr(joint, "kept", ())) or None
    for positions in samples:
        K, _ = stack_rows(joint.bodies, cluster.loops, positions, None)
        kept = list(range(len(K))) if kept is None else kept
        sizes = np.linalg.svd(K[kept], compute_uv=False)
        pivots = np.linalg.svd(K[np.ix_(kept, dependent)], compute_uv=False)
        conditions.append(pivots[0] / max(pivots[len(dependent) - 1], 1e-300))
        distances.append(sizes[len(dependent) - 1] / max(sizes[0], 1e-300))
    return Partition(
        cluster.index,
        tuple(loop.name for loop in cluster.loops),
        _closing(joint),
        tuple(names),
        rows,
        len(dependent),
        float(conditions[0]),
        float(np.median(conditions)),
        float(np.max(conditions)),
        float(np.min(distances)),
    )


def _closing(joint) -> str:
    if joint.implicit:
        return "numeric"
    return module_name(joint.steps) if isinstance(joint, ExplicitJoint) else "open"
