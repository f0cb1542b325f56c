"""The spanning tree under construction: a checked graph, ordered, its fixed joints welded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algebra.spatial import Transform, rounded
from ..errors import ModelError, unknown
from ..mechanism.joints import Fixed
from ..mechanism.parts import WORLD, Body, Frame, TreeJoint, check_inertia, lump


@dataclass
class Mass:
    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass
class Edge:
    parent: str
    child: str
    joint: TreeJoint


class SpanningTree:
    """The spanning tree: bodies in the order given, parents first, fixed joints welded."""

    def __init__(self, masses: dict[Any, Any], edges: dict[Any, Any], joint_names: dict[Any, Any]):
        self._check_graph(masses, edges)
        self._masses, self._edges, self._joint_names = masses, edges, joint_names
        # every body's moving root and the transform from that root into the body
        self._weld: dict[str, tuple[str, Transform]] = {"world": ("world", Transform.identity())}
        order = self._order(masses, edges)
        for name in order:
            edge = edges[name]
            if isinstance(edge.joint.motion, Fixed):
                root, X = self._weld[edge.parent]
                self._weld[name] = (root, (edge.joint.placement @ X).rounded())
            else:
                self._weld[name] = (name, Transform.identity())
        moving = [name for name in order if self._weld[name][0] == name]
        self._welded: dict[str, list[str]] = {}  # by moving root, itself included
        for name, (root, _) in self._weld.items():
            self._welded.setdefault(root, []).append(name)
        self._index = {name: i for i, name in enumerate(moving)} | {"world": WORLD}
        self.bodies: tuple[Body, ...] = tuple(self._body(name) for name in moving)

    @staticmethod
    def _check_graph(masses: dict[Any, Any], edges: dict[Any, Any]) -> None:
        for edge in edges.values():
            for end in (edge.parent, edge.child):
                if end != "world" and end not in masses:
                    raise ModelError(f"joint '{edge.joint.name}': {unknown('body', end, masses)}")
            if edge.child == "world":
                raise ModelError(
                    f"joint '{edge.joint.name}' carries the world: swap parent and child"
                )
        connected = {"world"}
        for name in masses:
            if name not in edges:
                raise ModelError(
                    f"body '{name}' is not connected: add_joint(..., child='{name}'), of kind "
                    "'free' for a floating base"
                )
            seen, here = {}, name  # a dict keeps the order
            while here not in connected:
                if here in seen:
                    names = list(seen)
                    raise ModelError(
                        f"joints form a cycle: {' -> '.join([*names[names.index(here) :], here])}; "
                        "make one of them a loop with add_loop"
                    )
                seen[here] = None
                if here not in edges:
                    break
                here = edges[here].parent
            connected.update(seen)

    @staticmethod
    def _order(masses: dict[Any, Any], edges: dict[Any, Any]) -> list[str]:
        """The order in which bodies were added, parents first."""
        placed = {"world"}
        order: list[str] = []

        def place(name: str) -> None:
            chain = []
            while name not in placed:
                chain.append(name)
                name = edges[name].parent
            for link in reversed(chain):
                placed.add(link)
                order.append(link)

        for name in masses:
            place(name)
        return order

    def _body(self, name: str) -> Body:
        edge = self._edges[name]
        root, X = self._weld[edge.parent]
        joint = replace(edge.joint, placement=(edge.joint.placement @ X).rounded())
        mass, com, inertia = self._lumped(name)
        check_inertia(name, mass, com, inertia, physical=False)
        com, inertia = rounded(com), rounded(inertia, np.abs(inertia).max())
        return Body(name, self._index[name], self._index[root], joint, mass, com, inertia)

    def _lumped(self, name: str):
        """Mass, centre of mass and inertia of a body with all that is welded to it: exact."""
        parts = [(self._masses[n], self._weld[n][1]) for n in self._welded[name]]
        if len(parts) == 1:
            own = parts[0][0]
            return own.mass, own.com, own.inertia
        return lump((m.mass, m.com, m.inertia, X) for m, X in parts)

    def welded_frames(self) -> list[Frame]:
        """Bodies that were welded to another stay known as frames on it."""
        return [
            Frame(name, self._index[root], X)
            for name, (root, X) in self._weld.items()
            if name not in (root, "world")
        ]

    def place(self, user: str, body: str) -> tuple[int, Transform]:
        """The moving body that carries `body`, and the transform from it."""
        if body not in self._weld:
            raise ModelError(f"'{user}': {unknown('body', body, self._weld)}")
        root, X = self._weld[body]
        return self._index[root], X

    def joints(self, user: str, names: Any) -> tuple[Body, ...]:
        for name in names:
            if name not in self._joint_names:
                raise ModelError(f"'{user}': {unknown('joint', name, self._joint_names)}")
            if self._joint_names[name] not in self._index:
                raise ModelError(f"'{user}' uses joint '{name}', which is fixed and cannot move")
        return tuple(self.bodies[self._index[self._joint_names[name]]] for name in names)

    def paths(self, name: str, a: int, b: int) -> tuple[tuple[Body, ...], tuple[Body, ...]]:
        """The bodies from the nearest common ancestor (excluded) to a and to b."""
        up_a, up_b = self._up(a), self._up(b)
        common = set(up_a) & set(up_b)
        path = [[self.bodies[i] for i in reversed(up) if i not in common] for up in (up_a, up_b)]
        return tuple(path[0]), tuple(path[1])

    def _up(self, i: int) -> list[int]:
        chain = []
        while i != WORLD:
            chain.append(i)
            i = self.bodies[i].parent
        return chain
