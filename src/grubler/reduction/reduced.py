"""The same robot in numbers that cost fewer operations: exact, and known before any state is.

Rearrangements that leave every joint force and acceleration as it is:

- frames (`reframed`): a hinge's frame may be turned about and shifted along its axis. Where the
  description has placements that turn about two axes and more, frames are laid by the rules of
  Denavit and Hartenberg: a placement is then a turn about x alone and a shift without y.
  Elsewhere they slide along their axes (`slide_frames`). Loops go through the same frames;
- placements on a body whose origin rests, such as the shoulder of an arm, are marked
  (`mark_fixed_origins`);
- inertia that a joint does not feel (`inertias`) belongs to the parent as well as to the body;
- rotors (`spinners`) are then known by one number, their moment about the axis.

Where masses, centres of mass or inertias come with each call, the model's usual numbers
(`Model.nominal`) choose the frames: any frame is exact. Base parameters then cost operations at
each call, which pay where a placement turns no axis, or exchanges axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import symmetric
from ..algebra.spatial import OnFixedOrigin, Transform, axis_rotation, rounded, spatial_inertia
from ..algebra.symbolic import is_symbolic
from ..coordinates.embedding import Embedding
from ..mechanism.joints import Joint, TurnedHinge, perpendicular
from ..mechanism.parts import WORLD, Body
from ..model import Model

if TYPE_CHECKING:
    from ..typing import Array

# An inertia of no symmetry, on which claims of joints are tried where the numbers come later.
SAMPLE = spatial_inertia(1.0, np.array([0.3, -0.5, 0.2]), np.diag([0.5, 0.7, 0.9]) + 0.1)
AXES = 3  # nonzero entries of a rotation matrix that exchanges axes, or of 1
TURN = 5  # nonzero entries of a rotation matrix about one coordinate axis


@dataclass(frozen=True, eq=False)
class Reduced:
    """A model's bodies in frames of their own, their inertias, and those that only spin."""

    bodies: tuple[Body, ...]
    I: tuple[Any, ...]
    spin_only: frozenset[int]
    embeddings: tuple[Embedding, ...]  # of the clusters
    frames: dict[int, Transform]  # by body from its frame as described, empty where all are

    def felt_by(self, i: int, force: Array, q: Array) -> list[tuple[int, Array]] | list[Any]:
        """[(body, force on it)] of an external force on body i whose joint is at q.

        A rotor is known by its spin: it feels the moment about its axis, its carrier the rest.
        """
        body = self.bodies[i]
        if i in self.frames:
            force = self.frames[i].inverse().rounded().force_back(force)
        if i not in self.spin_only:
            return [(i, force)]
        axis = body.joint.motion.axis
        along = axis @ force[:3]
        across = np.concatenate([force[:3] - along * axis, force[3:]])
        carried = body.joint.transform(q).force_back(across)
        return [(i, np.stack([along])), (body.parent, carried)]


@lru_cache(maxsize=256)
def unreduced(model: Model) -> Reduced:
    """The model as it is, each body with its own frame and inertia."""
    embeddings = tuple(cluster.embedding for cluster in model.clusters)
    inertias = tuple(body.spatial for body in model.bodies)
    return Reduced(model.bodies, inertias, frozenset(), embeddings, {})


@lru_cache(maxsize=256)
def reduced(model: Model, keep_frame: frozenset[int]) -> Reduced:
    """The model in fewer numbers; those in `keep_frame` keep their frame and six coordinates."""
    moved, new = reframed(model.nominal.bodies, keep_frame)
    if model.nominal is not model:
        moved = tuple(
            _numbers_moved(body, chosen, new[body.index])
            for body, chosen in zip(model.bodies, moved, strict=True)
        )
    bodies = mark_fixed_origins(moved)
    spin_only = spinners(moved) - keep_frame
    embeddings = tuple(
        cluster.embedding.reframed(moved, new) if new else cluster.embedding
        for cluster in model.clusters
    )
    return Reduced(bodies, tuple(inertias(bodies, spin_only)), spin_only, embeddings, new)


def spinners(bodies: Sequence[Body]) -> frozenset[int]:
    """Leaf bodies symmetric about their joint axis: every rotor."""
    parents = {body.parent for body in bodies}
    return frozenset(
        body.index
        for body in bodies
        if body.index not in parents and body.parent >= 0 and body.symmetric_about_joint
    )


def spin_row(body: Body) -> np.ndarray:
    """The joint axis in the frame of the body that carries the rotor."""
    return body.joint.placement.rotate_back(body.joint.motion.axis)


def inertias(bodies: Sequence[Body], spin_only: frozenset[int]) -> list[Any]:
    """The inertia of each body, less what its joint does not feel: that is its parent's.

    Mass and first moment on a hinge's axis, say, and an equal moment of inertia across it, move
    the same whatever the angle. Carried to the parent they change no joint force and no
    acceleration, and leave zeros behind: these are the base parameters of Gautier and Khalil
    (1990). Of a rotor nothing is left but its moment J about the axis.
    """
    I = [body.spatial for body in bodies]
    for body in reversed(bodies):
        i = body.index
        if i in spin_only:
            axis = np.concatenate([body.joint.motion.axis, np.zeros(3)])
            J = axis @ (I[i] @ axis)
            rest = I[i] - J * np.outer(axis, axis)
            I[i] = np.stack([np.stack([J])])
        elif isinstance(I[i], np.ndarray) or np.count_nonzero(body.joint.placement.E) == AXES:
            rest = _unfelt(body.joint.motion, I[i])
            I[i] = I[i] - rest
        else:
            continue  # turning numbers that come with each call would cost more than it saves
        if body.parent != WORLD:
            I[body.parent] = I[body.parent] + body.joint.placement.congruence(rest)
    return I


def _unfelt(motion: Joint, I: np.ndarray) -> np.ndarray:
    """What the joint does not feel of an inertia; nothing where a joint of the user's inherits a
    claim that its own motion does not keep."""
    sample = SAMPLE if is_symbolic(I) else I
    J, rng = motion.unfelt(sample), np.random.default_rng(0)
    for _ in range(2):
        q = motion.integrate(motion.neutral(), rng.uniform(-1.0, 1.0, motion.nv))
        off = motion.transform(q).congruence(J) - J
        if np.abs(off).max() + np.abs(J @ motion.subspace(q)).max() > 1e-12 * np.abs(sample).max():
            return np.zeros((6, 6))
    return motion.unfelt(I)


# frames


def reframed(
    bodies: tuple[Body, ...], keep_frame: frozenset[int]
) -> tuple[tuple[Body, ...], dict[Any, Any]]:
    """The bodies in frames that make placements sparse, where some are not; and the transforms
    from each one's frame to its new one, none where placements come with each call."""
    if not all(_numeric(body) for body in bodies):
        return bodies, {}
    turned = oblique(bodies)
    if not turned:
        return slide_frames(bodies, keep_frame)
    turned |= {bodies[i].parent for i in turned}
    main, new = _main_children(bodies), {WORLD: Transform.identity()}
    for body in bodies:
        if body.parent in turned:
            turned.add(body.index)  # on a turned parent: what its placement gains, its joint takes
        if body.joint.is_hinge and body.index in turned - keep_frame:
            new[body.index] = _frame(body, main.get(body.index), new[body.parent])
        else:
            turned.discard(body.index)
            new[body.index] = Transform.identity()
    return tuple(_moved(body, new, body.index in turned) for body in bodies), new


def oblique(bodies: Sequence[Body]) -> set[int]:
    """Bodies with placements that turn about two axes and more."""
    return {
        body.index
        for body in bodies
        if body.parent != WORLD and np.count_nonzero(body.joint.placement.E) > TURN
    }


def slide_frames(
    bodies: tuple[Body, ...], keep_frame: frozenset[int]
) -> tuple[tuple[Body, ...], dict[Any, Any]]:
    """The bodies with hinges' frames shifted along their axes, where that leaves fewer numbers.

    A hinge's origin may go to where the shift from its parent has no part along the axis; its own
    children's shifts, and products of inertia, may gain. On a tie it goes to a point that does not
    move, such as the centre of a shoulder: inertias count there by their moments alone. On a tie
    again, within a limb, to where no single shift has many numbers: fewer operations in a row.
    """
    new, resting = {WORLD: Transform.identity()}, {WORLD}
    children: dict[int, list[Body]] = {}
    for body in bodies:
        children.setdefault(body.parent, []).append(body)
    for body in bodies:
        up, choices = new[body.parent], []
        within = body.parent != WORLD and bodies[body.parent].joint.is_hinge
        for T in (Transform.identity(), _slide(body, up, keep_frame)):
            own = _moved(body, {body.parent: up, body.index: T}, False)
            moved = [own]
            for child in children.get(body.index, []):
                places = {body.index: T, child.index: _slide(child, T, keep_frame)}
                moved.append(_moved(child, places, False))
            shifts = [np.count_nonzero(x.joint.placement.r) for x in moved]
            numbers = sum(shifts) + sum(_products(x) for x in moved)
            rests = body.parent in resting and shifts[0] == 0
            choices.append((numbers, not rests, within * max(shifts), T))
        best = min(choices, key=lambda choice: choice[:3])
        new[body.index] = best[3]
        if body.joint.is_hinge and (body.parent == WORLD or not best[1]):
            resting.add(body.index)
    return tuple(_moved(body, new, False) for body in bodies), new


def mark_fixed_origins(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
    """The bodies with placements marked that lead away from an origin at rest, such as a shoulder.

    A shift by one number is cheaper as it is, and so is one from a body that turns about one axis.
    """
    resting, out = set(), []
    for body in bodies:
        place, first = body.joint.placement, body.parent == WORLD
        numbers = np.count_nonzero(place.r) if isinstance(place.r, np.ndarray) else 3
        if body.joint.is_hinge and (first or (body.parent in resting and not numbers)):
            resting.add(body.index)
        elif body.parent in resting and bodies[body.parent].parent != WORLD and numbers > 1:
            body = replace(
                body, joint=replace(body.joint, placement=OnFixedOrigin(place.E, place.r))
            )
        out.append(body)
    return tuple(out)


def _slide(body: Body, parent: Transform, keep_frame: frozenset[int]) -> Transform:
    """A hinge's frame moved along its axis, next to the origin of its parent's new one."""
    if not body.joint.is_hinge or body.index in keep_frame or body.parent == WORLD:
        return Transform.identity()
    axis, place = body.joint.motion.axis, body.joint.placement @ parent.inverse()
    return Transform(np.eye(3), -axis * (axis @ (place.E @ place.r)))


def _numbers_moved(body: Body, chosen: Body, T: Transform) -> Body:
    """A body whose numbers come with each call, on the joint of `chosen`: the same body with its
    usual numbers, in the frame that these suggest. T leads there from the described frame."""
    com, inertia = chosen.com, chosen.inertia
    if is_symbolic(body.com, body.inertia):
        T = T.rounded()
        com = T.rotate(body.com - T.r)
        inertia = symmetric(T.E @ body.inertia @ T.E.T)
    out = replace(body, joint=chosen.joint, com=com, inertia=inertia)
    out.__dict__["symmetric_about_joint"] = body.symmetric_about_joint
    return out


def _products(body: Body) -> int:
    """Products of inertia that are not zero."""
    return np.count_nonzero(np.triu(body.spatial, 1)[:3, :3])


def _numeric(body: Body) -> bool:
    placement = body.joint.placement
    return all(isinstance(x, np.ndarray) for x in (placement.E, placement.r, body.spatial))


def _main_children(bodies: Sequence[Body]) -> dict[int, Body]:
    """Of each body that carries hinged ones, the hinged child that carries the most."""
    carried, chosen = [1] * len(bodies), {}
    for body in reversed(bodies):
        if body.parent != WORLD:
            carried[body.parent] += carried[body.index]
    for body in bodies:
        rival = chosen.get(body.parent)
        heavier = rival is None or carried[body.index] > carried[rival.index]
        if body.joint.is_hinge and heavier:
            chosen[body.parent] = body
    return chosen


def _frame(body: Body, child: Body | None, parent: Transform) -> Transform:
    """The transform from a hinged body's frame to its new one.

    z is the joint's axis, x the common normal with the axis of the main child. The origin lies
    where the parent's x crosses the axis, or nearest to it; the shift from the parent's origin
    then has no part along the parent's y.
    """
    axis = body.joint.motion.axis
    x = perpendicular(axis)[0]
    if child is None:  # a leaf: the centre of mass above x
        normal = body.com - axis * (axis @ body.com)
        if np.linalg.norm(normal) > 1e-9:
            x = normal / np.linalg.norm(normal)
    else:
        towards = child.joint.placement.rotate_back(child.joint.motion.axis)
        normal = np.cross(axis, towards)
        if np.linalg.norm(normal) < 1e-9:  # parallel: towards the other axis
            normal = child.joint.placement.r - axis * (axis @ child.joint.placement.r)
        if np.linalg.norm(normal) > 1e-9:
            x = normal / np.linalg.norm(normal)
    place = body.joint.placement @ parent.inverse()  # from the parent's new frame
    z = place.rotate_back(axis)
    k = 1 if abs(z[1]) > 0.1 else int(np.argmax(np.abs(z)))  # no far origin on a parallel axis
    along = -place.r[k] / z[k]
    return Transform(np.stack([x, np.cross(axis, x), axis]), along * axis)


def _moved(body: Body, new: dict[int, Transform], hinge: bool) -> Body:
    """A body in its new frame, on a parent in its new frame."""
    T = new[body.index]
    place = T @ body.joint.placement @ new[body.parent].inverse()
    motion = body.joint.motion
    if hinge:
        # E = Rz(offset) Rx(b) Rz(c), the first of them taken into the joint's angle
        sine, cosine = place.E[:2, 2]
        if np.hypot(sine, cosine) < 1e-9:  # parallel axes: all of it is in the angle
            cosine, sine = place.E[0, :2]
        offset = float(np.arctan2(sine, cosine))
        motion = TurnedHinge(np.array([0.0, 0.0, 1.0]), offset)
        place = Transform(
            axis_rotation(motion.axis, np.cos(offset), np.sin(offset)) @ place.E, place.r
        )
    joint = replace(body.joint, motion=motion, placement=place.rounded())
    back = T.inverse()
    com = rounded(T.E @ (body.com - T.r))
    inertia = rounded(back.E.T @ body.inertia @ back.E, np.abs(body.inertia).max())
    return replace(body, joint=joint, com=com, inertia=inertia)
