"""The tree of body clusters (Sec. IV), with the coordinates laid out cluster by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..coordinates.embedding import Embedding
from ..mechanism.loops import Loop
from ..mechanism.parts import WORLD, Body


@dataclass(frozen=True, eq=False)
class Cluster:
    """A node of the cluster connectivity tree, with the joint that carries it.

    `bodies` are body indices in regular order. For the i-th of them, `inner[i]` is the place of its
    parent body inside the cluster (or None), and `output[i]` the place of its output body Λ(i)
    inside the parent cluster (or None for the world). `q`, `v` are its slices of the model's
    coordinates, `span` that of the spanning velocities.
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
    span: slice

    @property
    def nv(self) -> int:
        return self.v.stop - self.v.start


def build_clusters(
    bodies: Sequence[Body], groups: list[list[int]], embeddings: Sequence[Embedding]
) -> tuple[Cluster, ...]:
    """The cluster tree with its coordinates laid out cluster by cluster."""
    place = {body: (k, i) for k, members in enumerate(groups) for i, body in enumerate(members)}
    clusters = []
    q = v = span = 0
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
                span=slice(span, span + embedding.nv_span),
            )
        )
        q, v, span = q + embedding.nq, v + embedding.nv, span + embedding.nv_span
    return tuple(clusters)
