"""Constraints on the cluster tree: rows on stacked accelerations, with their biases.

Where the recursions meet them, constraints read K a + l + R λ = 0 with `a` the stacked acceleration
of a cluster beyond coasting: what its velocities and gravity give it, and what is wanted, is in l.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.spatial import Transform, cross
from ..algebra.symbolic import is_symbolic
from ..algorithms.newton_euler import Motion
from ..algorithms.sweep import Sweep, base_acceleration
from ..mechanism.parts import WORLD, Frame
from ..reduction.reduced import oblique, reduced, spinners
from ..tolerances import ON_AXIS, ROW_RANK
from .constraints import Checked
from .relative import PointMotion, moved_place, relative_to

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class Rows:
    """A block of constraint rows.

    | code  | paper | meaning                                                       | shape      |
    |-------|-------|---------------------------------------------------------------|------------|
    | ends  | K_i'  | by cluster: constraint forces per multiplier, stacked         | (6l, m)    |
    | l     | -k_i  | the bias: K a + l + R λ = 0                                   | (m,)       |
    | R     | R_i   | softness, None where hard                                     | (m,)       |
    | index |       | where these rows stand among all multipliers                  |            |
    | basis | U^1   | redundant rows on a body are given by fewer: λ[index] = basis λ |          |
    """

    ends: dict[int, np.ndarray]
    l: np.ndarray | None
    R: np.ndarray | None
    index: tuple[int, ...]
    basis: np.ndarray | None = None

    @property
    def m(self) -> int:
        return len(self.index) if self.basis is None else self.basis.shape[1]


class Wanted(NamedTuple):
    """Run-time inputs of the rows: `acceleration` (m,) instead of those described, None for these;
    `motion` (3 d, 6) of the d driven places, None for at rest."""

    acceleration: np.ndarray | None = None
    motion: np.ndarray | None = None

    def by_constraint(self, constraints: Sequence[Checked]) -> list[Any]:
        """(acceleration (m,), motion (3, 6) or None) of each constraint."""
        out, row, place = [], 0, 0
        for c in constraints:
            k, motion = c.acceleration, None
            if self.acceleration is not None:
                k = self.acceleration[row : row + c.m]
            if c.driven:
                motion = None if self.motion is None else self.motion[place : place + 3]
                place += 3
            row += c.m
            out.append((k, motion))
        return out


def framed(constraints: Sequence[Checked]) -> list[int]:
    """The bodies that the constraints are on: they keep their frames."""
    bodies = [c.frame.body for c in constraints]
    return bodies + [c.to.body for c in constraints if c.to is not None]


@lru_cache(maxsize=256)
def in_new_frames(
    model: Model, constraints: Sequence[Checked], forced: frozenset[int] = frozenset()
) -> Any:
    """(the constraints on frames as the dynamics lays them, bodies that keep theirs): those with
    forces on them, rotors that are constrained, whose spin would not do, and all that constraints
    are on where frames only slide, since that would move their points off the axes."""
    on = frozenset(framed(constraints))
    kept = forced | (on & spinners(model.bodies) if oblique(model.bodies) else on)
    new = reduced(model, kept).frames

    def seen(frame: Frame | None) -> Frame | None:
        if frame is None or frame.body not in new:
            return frame
        placement = (frame.placement @ new[frame.body].inverse()).rounded()
        return Frame(frame.name, frame.body, placement)

    return tuple(replace(c, frame=seen(c.frame), to=seen(c.to)) for c in constraints), kept


class Poses:
    """Transforms between bodies, made of the clusters' own; computed where they are asked for."""

    model: Model
    sweep: Sweep

    def __init__(self, sweep: Sweep):
        self.model, self.sweep = sweep.model, sweep

    def up(self, body: int) -> tuple[int, Transform]:
        """The body that this one's cluster hangs on, and the transform from it."""
        k, i = self.model.tree.locate(body)
        state = self.sweep[k]
        X, parent = state.X, state.parent
        carrier = WORLD if parent is None else parent.cluster.bodies[X.outputs[i]]
        return carrier, X.blocks[i]

    def chain(self, body: int) -> list[int]:
        bodies = [body]
        while bodies[-1] != WORLD:
            bodies.append(self.up(bodies[-1])[0])
        return bodies

    def between(self, body: int, other: int) -> Transform:
        """X from `other` to `body`, through their nearest common carrier."""
        theirs = self.chain(other)
        common = next(b for b in self.chain(body) if b in theirs)
        down = self.from_carrier(body, common)
        return down if other == common else down @ self.from_carrier(other, common).inverse()

    def from_carrier(self, body: int, carrier: int) -> Transform:
        if body == carrier:
            return Transform.identity()
        above, X = self.up(body)
        return X if above == carrier else X @ self.from_carrier(above, carrier)

    def rest(self, body: int) -> Array | Any:
        """The acceleration (3,) that a body at rest has in the recursions, in its axes."""
        if body == WORLD:
            return base_acceleration(self.model)[3:]
        above, X = self.up(body)
        return X.E @ self.rest(above)


def constraint_rows(
    sweep: Any,
    constraints: Sequence[Checked],
    desired: Wanted | None = None,
    motion: Motion | None = None,
) -> list[Rows]:
    """The constraints as blocks of rows; without the coasting motion they have no biases."""
    poses, blocks, start = Poses(sweep), [], 0
    given = (desired or Wanted()).by_constraint(constraints)
    for c, (k, driven) in zip(constraints, given, strict=True):
        index = tuple(range(start, start + c.m))
        start += c.m
        X, place = held_at(poses, c, driven)
        K = c.rows.matrix(X)
        l = None
        if motion is not None:
            l = _bias(motion, poses, c, X, place, driven) - k
        blocks.append(Rows(_ends(poses, c, K), l, c.softness, index))
    return blocks


def in_few_numbers(
    model: Model,
    q: Array,
    constraints: Sequence[Checked],
    desired: Wanted | None = None,
    forced: frozenset[int] = frozenset(),
) -> tuple[tuple[Any, ...], Wanted, list[Any], frozenset[int]]:
    """(constraints, desired, V by constraint, bodies that keep their frames): rows that cost fewer
    operations, λ = V λ'.

    Whole triads with the world are given in the axes of their body: K = [1 0; -r× 1] is sparser
    than in those of a turned frame. A point on the axis of a hinge is one of the body that carries
    the hinge as well, and is held there.
    """
    moved = [_inward(model, c, tuple(framed(constraints))) for c in constraints]
    placed, kept = in_new_frames(model, tuple(c for c, _ in moved), forced)
    found, bases, wanted = [], [], [np.zeros(0)]
    desired = desired or Wanted()
    given = desired.by_constraint(constraints)
    for old, new, (_, crossed), (k, _) in zip(constraints, placed, moved, given, strict=True):
        new, V = _turned(new)
        for body in reversed(crossed):
            cluster = model.clusters[model.tree.locate(body)[0]]
            V = model.bodies[body].joint.transform(q[cluster.q]).E @ V
        V = old.frame.placement.E @ V if crossed else V
        found.append(new)
        bases.append(V)
        wanted.append(k if V is None else V.T @ k)
    return tuple(found), Wanted(np.concatenate(wanted), desired.motion), bases, kept


@lru_cache(maxsize=1024)
def _inward(model, c: Checked, bodies: tuple[int, ...]) -> tuple[Checked, list[int]]:
    """A constraint in the place of one, and the bodies whose hinges it has been moved across,
    outermost first. Where several are on one body, or on the next, none is moved: there they are
    seen to depend on each other."""
    crossed: list[int] = []
    alone = bodies.count(c.frame.body) == 1
    while alone and _on_axis(model, c) and model.bodies[c.frame.body].parent not in bodies:
        body = model.bodies[c.frame.body]
        X = Transform(np.eye(3), c.frame.placement.r) @ body.joint.placement
        crossed.append(body.index)
        c = replace(c, frame=Frame(c.frame.name, body.parent, Transform(np.eye(3), X.r)))
    return c, crossed


def _on_axis(model, c: Checked) -> bool:
    """Whether it holds a point on the axis of its body's hinge, which does not move it."""
    body = model.bodies[c.frame.body]
    joint, cluster = body.joint, model.clusters[model.tree.locate(body.index)[0]]
    if not _whole(c) or not c.rows.classical or c.held:
        return False
    if not joint.is_hinge or body.parent == WORLD or len(cluster.bodies) > 1:
        return False
    if is_symbolic(joint.placement.E, joint.placement.r):
        return False
    return bool(np.abs(cross(joint.motion.axis, c.frame.placement.r)).max() < ON_AXIS)


def _whole(c: Checked) -> bool:
    """Whether the rows are hard and whole triads with a fixed place in the world: they may be
    turned."""
    K = c.rows.K
    whole = np.array_equal(K, np.eye(6)) or np.array_equal(K, np.eye(6)[3:])
    return whole and c.to is None and c.softness is None and not c.driven


@lru_cache(maxsize=1024)
def _turned(c: Checked) -> tuple[Checked, np.ndarray | None]:
    """A constraint on the same point in the axes of its body, and V with λ = V λ'."""
    if not _whole(c):
        return c, None
    E, r = c.frame.placement.E, c.frame.placement.r
    frame = Frame(c.frame.name, c.frame.body, Transform(np.eye(3), r))
    place = None if c.place is None else Transform(E.T, np.zeros(3)) @ c.place
    return replace(c, frame=frame, place=place), np.kron(np.eye(c.m // 3), E)


def independent_rows(
    model: Model, blocks: list[Rows], constraints: Sequence[Checked]
) -> list[Rows]:
    """Hard rows that are redundant on their body replaced by fewer (Remark 9).

    K = U^1 (U^1' K): an orthonormal basis of its columns keeps least squares least squares. On one
    body K is constant, so that this costs nothing.
    """
    by_body: dict[int, list[int]] = {}
    for i, c in enumerate(constraints):
        if c.to is None and c.softness is None and not c.rows.universal:
            by_body.setdefault(c.frame.body, []).append(i)
    merged, gone = {}, set()
    for body, members in by_body.items():
        k, _ = model.tree.locate(body)
        mine = [blocks[i] for i in members]
        F = np.concatenate([b.ends[k] for b in mine], axis=1)
        scale = np.linalg.norm(F, axis=0)
        _, sizes, _ = np.linalg.svd(F / scale)
        rank = int(np.sum(sizes > ROW_RANK * sizes[0]))
        if rank == F.shape[1]:
            continue
        V = np.linalg.svd(F)[2][:rank]
        l = None
        if mine[0].l is not None:
            l = V @ np.concatenate([b.l for b in mine])
        index = tuple(r for b in mine for r in b.index)
        turn = block_diagonal([np.eye(b.m) if b.basis is None else b.basis for b in mine])
        merged[members[0]] = Rows({k: F @ V.T}, l, None, index, turn @ V.T)
        gone |= set(members[1:])
    return [merged.get(i, block) for i, block in enumerate(blocks) if i not in gone]


def gathered(blocks: list[Rows], multipliers: list[Any]) -> Any | Array:
    """All multipliers in the order of the constraints."""
    rows: dict[int, object] = {}
    for block, x in zip(blocks, multipliers):
        full = x if block.basis is None else block.basis @ x
        rows |= {r: full[i] for i, r in enumerate(block.index)}
    return np.stack([rows[r] for r in range(len(rows))]) if rows else np.zeros(0)


def stacked(sweep: Any, body: int, F: Array) -> tuple[Any, Any]:
    """Columns of forces on one body as forces on its cluster: (cluster, (6l, m))."""
    k, place = sweep.model.tree.locate(body)
    return k, sweep[k].on_body(place, F)


def _ends(poses: Poses, c: Checked, K) -> dict[int, np.ndarray]:
    """Forces Kᵀ at the frame's origin, and the opposite ones at the same point of the other."""
    first, F = stacked(poses.sweep, c.frame.body, c.frame.placement.forces_back(K.T))
    ends = {first: F}
    if c.to is not None:
        back = into_frame(poses, c).forces_back(K.T)
        second, F = stacked(poses.sweep, c.to.body, -back)
        ends[second] = ends[second] + F if second in ends else F
    return ends


def into_frame(poses: Poses, c: Checked) -> Transform:
    """X into the frame from the body that it is held on, the world without one."""
    return c.frame.placement @ poses.between(c.frame.body, WORLD if c.to is None else c.to.body)


def held_at(
    poses: Poses, c: Checked, motion: Any = None
) -> tuple[Transform | None, Transform | None]:
    """(X from the place where the frame is held into the frame, the same from where a driven place
    rests). Both are None for rows with the world that use no pose."""
    if c.to is None and not (c.held or c.driven or c.rows.universal):
        return None, None
    return from_place(c, into_frame(poses, c), motion)


def from_place(c: Checked, X: Transform, motion: Any = None) -> tuple[Transform, Transform]:
    """The same two of X, into the frame from the body that it is held on."""
    place = c.place if c.to is None else c.to.placement
    rest = X if place is None else X @ place.inverse()
    return (rest if motion is None else rest @ moved_place(motion).inverse()), rest


def _bias(motion: Motion, poses: Poses, c: Checked, X, rest, driven):
    """d/dt (K V) of the coasting robot."""
    own = _coasting(motion, c.frame.body, c.frame.placement)
    if c.to is None:
        gravity = c.frame.placement.E @ poses.rest(c.frame.body)
        return rate_of_rows(c, replace(own, a=own.a - gravity), None, X, rest, driven)
    return rate_of_rows(c, own, _coasting(motion, c.to.body, into_frame(poses, c)), X, rest, driven)


def rate_of_rows(
    c: Checked, own: PointMotion, carrier: PointMotion | None, X: Transform, rest: Any, driven: Any
) -> Array | Any | Array:
    """d/dt (K V) with Baumgarte's terms (Sec. IX-A), from the motions of the frame and of the body
    that it is held on, None for the world; X and `rest` as by `from_place`."""
    v, a = relative_to(own, carrier, rest, driven, c.rows.classical)
    K = c.rows.matrix(X)
    out = K @ a
    if c.rows.universal:
        out = out + c.rows.turning(X, v[:3])
    if c.period is not None:
        out = out + (2.0 * c.damping / c.period) * (K @ v)
    if c.held:
        out = out + (1.0 / c.period**2) * c.rows.error(X)
    return out


def _coasting(motion: Motion, body: int, X: Transform) -> PointMotion:
    """The motion at a = 0, with -gravity, of a body's point at the origin of the frame that X leads
    to, in that frame's axes."""
    k, place = motion.sweep.model.tree.locate(body)
    state, seen = motion.sweep[k], motion.bodies[body]
    v = X.motion(state.split(state.v)[place])
    return PointMotion(v, X.E @ seen.dw, X.E @ (seen.A + seen.U @ X.r))
