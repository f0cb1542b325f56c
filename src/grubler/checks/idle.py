"""Idle degrees of freedom: rods that spin about themselves and move nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model import Model
from ..model.rigid import carriers_outside, idle_motions


@dataclass(frozen=True)
class Idle:
    """A motion of `bodies` alone: "spins" about an axis of theirs, or "slides" along one."""

    bodies: tuple[str, ...]
    motion: str
    loop: str


def idle_freedoms(model: Model, positions: dict[Any, Any]) -> list[tuple[Idle, int, np.ndarray]]:
    """The idle degrees of freedom at assembled positions that are not singular, each with its
    cluster and its motion: that cluster's independent velocities."""
    found = []
    for cluster in model.clusters:
        carriers = carriers_outside(model.bodies, cluster.bodies)
        for idle in idle_motions(cluster.embedding, positions, carriers):
            bodies = tuple(model.bodies[i].name for i in idle.bodies)
            own = Idle(bodies, "spins" if idle.spins else "slides", idle.loop)
            moved = np.zeros(cluster.embedding.nv_span)
            for i, rates in idle.rates.items():
                moved[cluster.embedding.columns[i]] = rates
            found.append((own, cluster.index, moved[list(cluster.embedding.independent)]))
    return found
