"""From the graph of bodies and loops to the tree of body clusters (Sec. IV).

Bodies whose joints meet in one loop must move together: they are merged. Merging goes on, with as
few bodies as possible, until the clusters form a tree: no cycle between clusters, and every
cluster hangs from one parent cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .embedding import Embedding
from .loops import Loop
from .parts import WORLD, Body


@dataclass(frozen=True, eq=False)
class Cluster:
    """A node of the cluster connectivity tree, with the joint that carries it.

    `bodies` are body indices in regular order. For the i-th of them, `inner[i]` is the place of its
    parent body inside the cluster (or None), and `output[i]` the place of its output body Λ(i)
    inside the parent cluster (or None for the world). `q`, `v` are its slices of the model's
    coordinates; `span_q`, `span_v` those of its bodies in the spanning coordinates.
    """

    index: int
    parent: int | None
    bodies: tuple[int, ...]
    inner: tuple[int | None, ...]
    output: tuple[int | None, ...]
    loops: tuple[Loop, ...]
    embedding: Embedding
    q: slice
    v: slice
    span_q: tuple[slice, ...]
    span_v: tuple[slice, ...]

    @property
    def nv(self) -> int:
        return self.v.stop - self.v.start


def group_bodies(bodies: Sequence[Body], loops: Sequence[Loop]) -> list[list[int]]:
    """The smallest clusters that make a tree, in regular order (parents first).

    Merging by loops comes first. Then, while the clusters do not form a tree: a cycle of clusters
    becomes one; of a cluster with two parents, the lower parent joins the cluster when it descends
    from the other, and otherwise the two parents, which lie on different branches, join each other.
    """
    group = np.arange(len(bodies))

    def merge(*members: int):
        labels = {group[m] for m in members}
        group[np.isin(group, list(labels))] = min(labels)

    for loop in loops:
        merge(*loop.bodies)
    while True:
        reach = _reachability(bodies, group)
        cyclic = np.argwhere(reach & reach.T & ~np.eye(len(bodies), dtype=bool))
        cyclic = [(a, b) for a, b in cyclic if group[a] != group[b]]
        if cyclic:
            merge(*cyclic[0])
            continue
        conflict = _two_parents(bodies, group)
        if conflict is None:
            break
        child, a, b = conflict
        if a == WORLD or b == WORLD:
            merge(child, a if b == WORLD else b)
        elif reach[a, b] or reach[b, a]:
            merge(child, b if reach[a, b] else a)
        else:
            merge(a, b)
    return _ordered(bodies, group)


def _reachability(bodies: Sequence[Body], group: np.ndarray) -> np.ndarray:
    """reach[i, j]: the cluster of body j descends from that of body i (or is the same)."""
    reach = group[:, None] == group[None, :]
    for body in bodies:
        if body.parent != WORLD:
            reach |= np.outer(group == group[body.parent], group == group[body.index])
    while True:
        further = reach @ reach
        if (further == reach).all():
            return reach
        reach = further


def _two_parents(bodies: Sequence[Body], group: np.ndarray):
    """A body whose cluster hangs from two clusters, with a body of each (or WORLD), or None."""
    parent_of: dict[int, int] = {}
    for body in bodies:
        label = group[body.index]
        if body.parent != WORLD and group[body.parent] == label:
            continue
        known = parent_of.setdefault(label, body.parent)
        same = known == body.parent or (
            WORLD not in (known, body.parent) and group[known] == group[body.parent]
        )
        if not same:
            return body.index, known, body.parent
    return None


def _ordered(bodies: Sequence[Body], group: np.ndarray) -> list[list[int]]:
    """Clusters by their first body, but never before their parent."""
    members: dict[int, list[int]] = {}
    for body in bodies:
        members.setdefault(group[body.index], []).append(body.index)
    placed: list[list[int]] = []
    done = {WORLD}
    waiting = list(members.values())
    while waiting:
        ready = next(
            m for m in waiting if all(bodies[i].parent in done or bodies[i].parent in m for i in m)
        )
        waiting.remove(ready)
        placed.append(ready)
        done.update(ready)
    return placed


def build_clusters(
    bodies: Sequence[Body], groups: list[list[int]], embeddings: Sequence[Embedding]
) -> tuple[Cluster, ...]:
    """The cluster tree with its coordinates laid out cluster by cluster."""
    place = {body: (k, i) for k, members in enumerate(groups) for i, body in enumerate(members)}
    clusters = []
    q = v = span_q = span_v = 0
    for k, (members, embedding) in enumerate(zip(groups, embeddings, strict=True)):
        inner, output, parent = [], [], None
        for i in members:
            up = bodies[i].parent
            inner.append(place[up][1] if up in members else None)
            while up in members:
                up = bodies[up].parent
            if up != WORLD:
                parent = place[up][0]
            output.append(None if up == WORLD else place[up][1])
        slices_q, slices_v = [], []
        for i in members:
            joint = bodies[i].joint
            slices_q.append(slice(span_q, span_q + joint.nq))
            slices_v.append(slice(span_v, span_v + joint.nv))
            span_q, span_v = span_q + joint.nq, span_v + joint.nv
        clusters.append(
            Cluster(
                index=k,
                parent=parent,
                bodies=tuple(members),
                inner=tuple(inner),
                output=tuple(output),
                loops=embedding.loops,
                embedding=embedding,
                q=slice(q, q + embedding.nq),
                v=slice(v, v + embedding.nv),
                span_q=tuple(slices_q),
                span_v=tuple(slices_v),
            )
        )
        q, v = q + embedding.nq, v + embedding.nv
    return tuple(clusters)
