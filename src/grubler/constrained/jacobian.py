"""Jacobians of constraint rows, for the methods that work in joint space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import split
from ..algorithms.kinematics import path_jacobian

if TYPE_CHECKING:
    from ..typing import Array


def jacobian_and_drift(sweep: Any, rows: Any) -> tuple[Array, Array | None]:
    """J (m, nv) and l with J a + l + R λ = 0 over all blocks; l is None without velocities."""
    J, l = [], []
    for block in rows:
        columns: dict[Any, Any] = {}
        for k, F in block.ends.items():
            for j, part in path_jacobian(sweep, k, F).items():
                columns[j] = columns[j] + part if j in columns else part
        parts = [columns.get(c.index, np.zeros((block.m, c.nv))) for c in sweep.model.clusters]
        J.append(np.concatenate(parts, axis=1))
        l.append(block.l)
    return np.concatenate(J), None if any(x is None for x in l) else np.concatenate(l)


def softness(rows: Any) -> Array:
    """The diagonal R over all blocks, zero where hard."""
    return np.concatenate([np.zeros(b.m) if b.R is None else b.R for b in rows])


def by_block(rows: Any, x: Array) -> list[Any]:
    """A stacked vector by block."""
    return split(x, [block.m for block in rows])
