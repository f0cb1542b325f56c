"""Paths and places in the tree of clusters."""

from __future__ import annotations

from collections.abc import Sequence

from .clusters import Cluster


class Tree:
    """The tree of a model's clusters, by index; the world is None."""

    def __init__(self, clusters: Sequence[Cluster]):
        self.parent: list[int | None] = [cluster.parent for cluster in clusters]
        self.roots: list[int] = [k for k, parent in enumerate(self.parent) if parent is None]
        self._places = {
            body: (cluster.index, i)
            for cluster in clusters
            for i, body in enumerate(cluster.bodies)
        }

    def locate(self, body: int) -> tuple[int, int]:
        """The cluster of a body and its place in it."""
        return self._places[body]

    def inward(self, k: int) -> list[int]:
        """The clusters on the path from k to the base, both included."""
        path = [k]
        while (parent := self.parent[path[-1]]) is not None:
            path.append(parent)
        return path

    def outward(self, k: int) -> list[int]:
        """The clusters on the path from the base to k, both included."""
        return self.inward(k)[::-1]

    def common(self, a: int, b: int) -> int | None:
        """The nearest common ancestor, None where the paths meet at the world only."""
        passed = self.inward(a)
        return next((k for k in self.inward(b) if k in passed), None)

    def between(self, ancestor: int, k: int) -> list[int]:
        """The clusters on the path from an ancestor (excluded) to k (included)."""
        path = self.outward(k)
        return path[path.index(ancestor) + 1 :]
