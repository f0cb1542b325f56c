"""Idle degrees of freedom: rods that spin about themselves and move nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Model
from ..rigid import carriers_outside, idle_motions


@dataclass(frozen=True)
class Idle:
    """A motion of `bodies` alone: "spins" about an axis of theirs, or "slides" along one."""

    bodies: tuple[str, ...]
    motion: str
    loop: str


def idle_freedoms(model: Model, positions: dict) -> list[Idle]:
    """The idle degrees of freedom at assembled positions that are not singular."""
    found = []
    for cluster in model.clusters:
        carriers = carriers_outside(model.bodies, cluster.bodies)
        for idle in idle_motions(cluster.embedding, positions, carriers):
            bodies = tuple(model.bodies[i].name for i in idle.bodies)
            found.append(Idle(bodies, "spins" if idle.spins else "slides", idle.loop))
    return found
