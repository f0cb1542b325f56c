"""Idle degrees of freedom: rods that spin about themselves and move nothing else.

In a loop, a link (or a few links in a row, a strut and its piston) between two ball joints may turn
about the line between them. The motions of a cluster in which only those links move, all with one
and the same twist, are such freedoms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..clusters import Cluster
from ..loops import LoopJoint
from ..model import Model
from ..parts import WORLD
from ..spatial import Transform

LONGEST = 3  # links in a row that may spin together
ZERO = 1e-8


@dataclass(frozen=True)
class Idle:
    """A motion of `bodies` alone: "spins" about an axis of theirs, or "slides" along one."""

    bodies: tuple[str, ...]
    motion: str
    loop: str


def idle_freedoms(model: Model, positions: dict) -> list[tuple[Idle, int, np.ndarray]]:
    """The idle degrees of freedom at assembled positions that are not singular, each with its
    cluster and its motion: that cluster's independent velocities."""
    return [
        (idle, cluster.index, motion)
        for cluster in model.clusters
        if cluster.nv and any(isinstance(loop, LoopJoint) for loop in cluster.loops)
        for idle, motion in _of_cluster(model, cluster, positions)
    ]


def _of_cluster(model: Model, cluster: Cluster, positions: dict) -> list[tuple[Idle, np.ndarray]]:
    twists = _twists(model, cluster, positions)
    carriers = {
        body.parent for body in model.bodies if body.index not in cluster.bodies
    } - {WORLD}  # fmt: skip
    found: list[tuple[frozenset, Idle, np.ndarray]] = []
    for loop, chain in _chains(cluster):
        names = frozenset(chain)
        if names & carriers or any(known <= names for known, *_ in found):
            continue
        others = [twists[i] for i in cluster.bodies if i not in names]
        motions = _null_space(np.concatenate(others)) if others else np.eye(cluster.nv)
        for z in motions.T:
            moved = [twists[i] @ z for i in chain]
            size = np.linalg.norm(moved[0])
            same = all(np.linalg.norm(m - moved[0]) < ZERO * size for m in moved)
            if size < ZERO or not same:
                continue
            spins = np.linalg.norm(moved[0][:3]) > ZERO * size
            bodies = tuple(model.bodies[i].name for i in sorted(chain))
            found.append((names, Idle(bodies, "spins" if spins else "slides", loop.name), z))
    return [(idle, z) for _, idle, z in found]


def _chains(cluster: Cluster) -> Iterator[tuple[LoopJoint, tuple[int, ...]]]:
    """Links in a row of each loop, the shortest rows first."""
    for length in range(1, LONGEST + 1):
        for loop in cluster.loops:
            if isinstance(loop, LoopJoint):
                ring = [b.index for b in loop.path_P] + [b.index for b in reversed(loop.path_S)]
                for start in range(len(ring) - length + 1):
                    if length < len(ring):
                        yield loop, tuple(ring[start : start + length])


def _twists(model: Model, cluster: Cluster, positions: dict) -> dict[int, np.ndarray]:
    """The velocity of each body of a cluster (6, nv), its parent at rest, in the parent's axes."""
    joint = cluster.embedding
    G, _, _ = joint.velocity_map({i: positions[i] for i in cluster.bodies}, None)
    into, twists = {}, {}
    for body in joint.bodies:
        X = body.joint.transform(positions[body.index])
        up = body.parent
        into[body.index] = X @ into.get(up, Transform.identity())
        own = body.joint.motion.subspace(positions[body.index]) @ G[joint.columns[body.index]]
        own = into[body.index].inverse().motions(own)
        twists[body.index] = own + twists[up] if up in twists else own
    return twists


def _null_space(A: np.ndarray) -> np.ndarray:
    _, s, Vt = np.linalg.svd(A)
    size = s[0] if len(s) and s[0] > 0 else 1.0
    return Vt[int(np.sum(s > ZERO * size)) :].T
