"""Jacobians of constraint rows, for the methods that work in joint space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..algorithms.first_pass import ClusterState
    from ..model.model import Model
    from ..typing import Array


def jacobian_and_drift(
    model: Model, states: list[ClusterState], rows: Any
) -> tuple[Array, Array | None]:
    """J (m, nv) and l with J a + l + R λ = 0 over all blocks; l is None without velocities."""
    J, l = [], []
    for block in rows:
        columns: dict[Any, Any] = {}
        for k, F in block.ends.items():
            for j, part in path_jacobian(model, states, k, F).items():
                columns[j] = columns[j] + part if j in columns else part
        parts = [columns.get(c.index, np.zeros((block.m, c.nv))) for c in model.clusters]
        J.append(np.concatenate(parts, axis=1))
        l.append(block.l)
    return np.concatenate(J), None if any(x is None for x in l) else np.concatenate(l)


def path_jacobian(model: Model, states: list[ClusterState], k: int, F: Array) -> dict[Any, Any]:
    """By cluster: the rows F' on cluster k as functions of the joints on its path to the base."""
    columns = {}
    while True:
        columns[k] = F.T @ states[k].S
        parent = model.clusters[k].parent
        if parent is None:
            return columns
        F, k = states[k].X.forces_back(F), parent


def softness(rows: Any) -> Array:
    """The diagonal R over all blocks, zero where hard."""
    return np.concatenate([np.zeros(b.m) if b.R is None else b.R for b in rows])


def split(rows: Any, x: Array | None) -> list[Any]:
    """A stacked vector by block."""
    out, start = [], 0
    for block in rows:
        out.append(x[start : start + block.m])
        start += block.m
    return out
