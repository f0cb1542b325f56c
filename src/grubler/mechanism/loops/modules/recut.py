"""Planar loops closed by a weld or by a slider: cut anew at a pin, and solved there.

Where a loop is closed by a fixed joint, or by a prismatic one, and the last joint c of one of its
chains is revolute, the same ring can be cut at c instead: c becomes the pin, a slider that closed
the loop becomes one more unknown joint. The ring then is a four-bar or a slider-crank, and c's
angle follows from the orientations, which add up to a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ....algebra.spatial import Transform
from ...joints import Prismatic
from ...parts import Body, TreeJoint
from ..joint import LoopJoint
from .base import ClosedForm
from .four_bar import FourBar
from .planar import (
    Link,
    PlanarClosure,
    Side,
    add,
    dot,
    planar_sides,
    sub,
    turn,
    turn_back,
    two_paths,
    walk,
)
from .slider_crank import SliderCrank

if TYPE_CHECKING:
    from ....typing import Array

HIDDEN = -2  # the body index of the slider that closes the loop


@dataclass(frozen=True, eq=False)
class Recut(ClosedForm):
    """A ring cut at a pin: `inner` solves it, `offset` is the sum of all angles round it.

    `outputs` are those of `inner` that are tree joints, then the pin's joint; `signs` are +1 for
    revolute joints that turn with the pin's, -1 for those against it, by body index."""

    inner: PlanarClosure
    signs: Mapping[int, float]
    offset: float

    @property
    def module(self) -> str:
        return self.inner.module

    def with_branch(self, branch: Any) -> Recut:
        return replace(self, branch=branch, inner=self.inner.with_branch(branch))

    def _rows(self, stacked) -> list[Any]:
        """The rows of inner's outputs that belong to tree joints."""
        return [stacked[i] for i, b in enumerate(self.inner.outputs) if b.index != HIDDEN]

    def value(self, x: Array) -> Array:
        solved = self._rows(self.inner.value(x))
        angles = {b.index: x[i] for i, b in enumerate(self.inputs)}
        angles |= {b.index: y for b, y in zip(self.outputs, solved, strict=False)}
        return np.stack([*solved, self.offset + self._sum(angles)])

    def jacobian(self, x: Array) -> Array:
        solved = self._rows(self.inner.jacobian(x))
        identity = np.eye(len(self.inputs))
        rows = {b.index: identity[i] for i, b in enumerate(self.inputs)}
        rows |= {b.index: y for b, y in zip(self.outputs, solved, strict=False)}
        return np.stack([*solved, self._sum(rows)])

    def curvature(self, x: Array, d: Array) -> Array:
        solved = self._rows(self.inner.curvature(x, d))
        bends = {b.index: y for b, y in zip(self.outputs, solved, strict=False)}
        return np.stack([*solved, self._sum(bends)])

    def _sum(self, values: Mapping[Any, Any]):
        terms = [s * values[i] for i, s in self.signs.items() if i in values]
        return sum(terms[1:], terms[0]) if terms else 0.0

    def conditioning(self, q: dict[int, Array]) -> float:
        """That of the ring at the pin; the slider's position does not matter to its direction."""
        return self.inner.conditioning({**q, HIDDEN: self._slide(q)})

    def _slide(self, q):
        return np.stack([_slide_of(self.inner.side_P, self.inner.side_S, q)])


def recut_candidates(loop: LoopJoint, reference: Mapping[Any, Any]) -> list[ClosedForm]:
    """Closed forms of a planar loop whose closing joint is a weld or a slider."""
    if loop.kind not in ("fixed", "prismatic"):
        return []
    sides = planar_sides(loop, reference, pins=False)
    if sides is None:
        return []
    found = []
    for flipped in (False, True):
        own, other = sides[::-1] if flipped else sides
        if own.links and own.links[-1].direction is None:
            found += _at_pin(loop, own, other, flipped, reference)
    return found


def _at_pin(
    loop: LoopJoint, own: Side, other: Side, flipped: bool, reference: Mapping[Any, Any]
) -> list[Any]:
    pin = own.links[-1]
    signs = {k.body.index: -k.sign for k in own.links[:-1] if k.direction is None}
    signs |= {k.body.index: k.sign for k in other.links if k.direction is None}
    total = sum(s * reference[i][0] for i, s in signs.items())
    delta = pin.sign * reference[pin.body.index][0] - total  # from the other end to the own one
    beyond = turn((np.cos(delta), np.sin(delta)), own.tip)
    short, ring = Side(own.links[:-1], pin.offset), _through(loop, other, beyond, flipped)
    members = [k.body for k in (*short.links, *ring.links)]
    q = dict(reference)
    if loop.kind == "prismatic":
        q[HIDDEN] = np.array([_slide_of(short, ring, reference)])
    out = []
    for pair in combinations(members, 2):
        if loop.kind == "prismatic" and pair[1].index != HIDDEN:
            continue
        inputs = tuple(body for body in members if body not in pair)
        if not inputs:
            continue
        A, B, t = two_paths(short, ring, *pair, q)
        kind = SliderCrank if A.line or B.line else FourBar
        centre = np.array([q[body.index][0] for body in pair])
        branch = kind.branch_at(A, B, t, centre)
        inner = kind(loop.name, inputs, pair, loop, branch, centre, short, ring)
        outputs = (*(b for b in pair if b.index != HIDDEN), pin.body)
        at = np.array([reference[body.index][0] for body in outputs])
        turns = {i: s * pin.sign for i, s in signs.items()}
        out.append(Recut(loop.name, inputs, outputs, loop, branch, at, inner, turns,
                         pin.sign * delta))  # fmt: skip
    return out


def _through(loop: LoopJoint, other: Side, beyond, flipped: bool) -> Side:
    """The other chain, through the closing joint, to the pin."""
    if loop.kind == "fixed":
        return Side(other.links, sub(other.tip, beyond))
    frame = loop.frame_P if flipped else loop.frame_S
    direction = _in_plane(other, frame.E.T @ loop.axis)
    joint = TreeJoint(f"{loop.name} (closing slider)", Prismatic(loop.axis), Transform.identity())
    body = Body(f"{loop.name} (closing slider)", HIDDEN, HIDDEN, joint, 0.0, np.zeros(3),
                np.zeros((3, 3)))  # fmt: skip
    link = Link(body, other.tip, 1.0, direction)
    return Side((*other.links, link), (-beyond[0], -beyond[1]))


def _in_plane(side: Side, vector) -> tuple[float, float]:
    """A direction of the last body of a side in the plane's coordinates there."""
    x, y = side.basis[:2] @ vector
    size = np.hypot(x, y)
    return float(x / size), float(y / size)


def _slide_of(short: Side, ring: Side, q) -> float:
    """How far the closing slider stands out, at positions of the tree joints."""
    end = walk(short.links, q)
    pin = add(end.end, turn(end.rotation, short.tip))
    if ring.links and ring.links[-1].body.index == HIDDEN:
        link = ring.links[-1]
        start = walk(ring.links[:-1], q)
        place = add(start.end, turn(start.rotation, add(link.offset, ring.tip)))
        return dot(turn_back(start.rotation, sub(pin, place)), link.direction)
    return 0.0
