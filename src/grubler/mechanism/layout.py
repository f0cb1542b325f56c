"""Where joints stand in stacked coordinates: slices by body index, and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .parts import Body

if TYPE_CHECKING:
    from ..typing import Array


class Layout:
    """The tree joints of some bodies, their coordinates stacked one joint after the other.

    `q` and `v` are the slices of each joint's positions and velocities by body index, `nq` and `nv`
    the lengths of the stacked arrays.
    """

    q: dict[int, slice[Any, Any, Any]]
    nq: int
    v: dict[int, slice[Any, Any, Any]]
    nv: int

    def __init__(self, bodies: Sequence[Body]):
        self.bodies: tuple[Body, ...] = tuple(bodies)
        self.q, self.nq = _slices((b.index, b.joint.nq) for b in self.bodies)
        self.v, self.nv = _slices((b.index, b.joint.nv) for b in self.bodies)

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        joints = [body.joint for body in self.bodies]
        return tuple(n for joint in joints for n in joint.names(joint.motion.position_labels))

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        joints = [body.joint for body in self.bodies]
        return tuple(n for joint in joints for n in joint.names(joint.motion.labels))

    @cached_property
    def quaternions(self) -> dict[str, slice]:
        """The place of each quaternion in the stacked positions, by joint name."""
        rotating = [b for b in self.bodies if b.joint.nq != b.joint.nv]
        ends = {b.joint.name: self.q[b.index].stop for b in rotating}
        return {name: slice(end - 4, end) for name, end in ends.items()}

    def split_q(self, x: Array) -> dict[Any, Any]:
        """Stacked positions by body index."""
        return {i: x[place] for i, place in self.q.items()}

    def split_v(self, x: Array) -> dict[Any, Any]:
        """Stacked velocities, or rows of a matrix, by body index."""
        return {i: x[place] for i, place in self.v.items()}

    def stack(self, by_body: Any) -> Array | Array:
        """The values of all joints one after the other, from values by body index."""
        parts = [by_body[body.index] for body in self.bodies]
        return np.concatenate(parts) if parts else np.zeros(0)

    def integrate(self, positions: Mapping[int, Array], step: Any) -> dict[Any, Any]:
        """Positions by body index after a step (nv,) along the tangents of the joints."""
        return {
            b.index: b.joint.motion.integrate(positions[b.index], step[self.v[b.index]])
            for b in self.bodies
        }


def _slices(sizes) -> tuple[dict[int, slice], int]:
    """(slice by key of arrays one after the other, their length together)."""
    places, start = {}, 0
    for key, size in sizes:
        places[key] = slice(start, start + size)
        start += size
    return places, start
