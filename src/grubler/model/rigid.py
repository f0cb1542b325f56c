"""Parts of a mechanism that cannot move against each other, and motions that move nothing else.

A rigid sub-loop (a triangle of bars on an arm) has joints that never move: they become fixed where
they are. An idle freedom (a rod between two balls that spins about itself) can be locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import Transform
from ..coordinates.assembly import close
from ..coordinates.embedding import Embedding
from ..errors import ClosureError
from ..mechanism.joints import KINDS, perpendicular
from ..mechanism.loops import Loop, LoopJoint
from ..mechanism.parts import WORLD, Body, TreeJoint
from ..tolerances import RIGID

if TYPE_CHECKING:
    from ..typing import Array

LONGEST = 3  # links in a row that may spin together
TRIALS = 4  # neighbours at which a joint must rest that is said never to move


def rigid_loops(joint: Embedding, positions: Mapping[Any, Any]) -> tuple[Loop, ...]:
    """The loops of a cluster none of whose joints ever moves."""
    if not joint.implicit or joint.nv == 0:
        return joint.loops if joint.nv == 0 else ()
    resting = _resting(joint, positions)
    found = tuple(loop for loop in joint.loops if resting >= set(loop.bodies))
    if not found:
        return ()
    near = neighbours(joint, positions, TRIALS)
    if not near:
        return ()
    resting = set.intersection(*(_resting(joint, x) for x in near))
    return tuple(loop for loop in found if resting >= set(loop.bodies))


def neighbours(joint: Embedding, positions: Mapping[Any, Any], count: int) -> list[dict[Any, Any]]:
    """Assembled positions of a cluster that are some tenths of a radian or metre away."""
    rng, found = np.random.default_rng(0), []
    for _ in range(3 * count):
        step = np.zeros(joint.nv_span)
        step[list(joint.independent)] = rng.uniform(-0.3, 0.3, joint.nv)
        try:
            moved = joint.spanning.integrate(positions, step)
            moved = close(joint.bodies, joint.loops, moved, joint.independent, restarts=0)
        except ClosureError:
            continue
        found.append(moved)
        if len(found) == count:
            break
    return found


def _resting(joint: Embedding, positions: Mapping[Any, Any]) -> set[int]:
    """Bodies whose tree joints do not move at these positions."""
    G, _, _ = joint.velocity_map(positions, None)
    size = np.abs(G).max(initial=1.0)
    return {i for i, columns in joint.columns.items() if np.abs(G[columns]).max() < RIGID * size}


@dataclass(frozen=True)
class Changes:
    """New tree joints by name of their body, and names of loops that are no longer needed."""

    joints: dict[str, TreeJoint] = field(default_factory=dict)
    loops: frozenset[str] = frozenset()


def welded(
    bodies: Sequence[Body], loops: Sequence[Loop], rigid: Sequence[Loop],
    positions: Mapping[Any, Any], notes: list[str],
) -> Changes:  # fmt: skip
    """The joints of rigid loops fixed where they are, which `notes` then say.

    A joint that a coupling outside these loops names stays, and so do the loops through it.
    """
    while True:
        names = {loop.name for loop in rigid}
        others = [x for x in loops if x.name not in names and not isinstance(x, LoopJoint)]
        needed = {i for loop in others for i in loop.bodies}
        free = [loop for loop in rigid if needed.isdisjoint(loop.bodies)]
        if len(free) == len(rigid):
            break
        rigid = free
    if not rigid:
        return Changes()
    members = sorted({i for loop in rigid for i in loop.bodies})
    notes.append(
        f"rigid: loop {_quoted(loop.name for loop in rigid)} leaves no motion to joint "
        f"{_quoted(bodies[i].joint.name for i in members)}, now fixed"
    )
    joints = {bodies[i].name: fixed(bodies[i].joint, positions[i]) for i in members}
    return Changes(joints, frozenset(names))


def fixed(joint: TreeJoint, position: Array) -> TreeJoint:
    """The joint held at a position for good."""
    return TreeJoint(joint.name, KINDS["fixed"](), joint.transform(position).rounded())


def locked(
    bodies: Sequence[Body], groups: Sequence[Sequence[int]], embeddings: Sequence[Embedding],
    positions: Mapping[Any, Any], notes: list[str],
) -> Changes:  # fmt: skip
    """Joints that lock the idle freedoms, which `notes` then say."""
    changed: dict[str, TreeJoint] = {}
    for members, embedding in zip(groups, embeddings, strict=True):
        # the reference may be singular; which joints take part, and about which axes, is the same
        near = neighbours(embedding, positions, 1) if embedding.implicit else []
        at = near[0] if near else positions
        for idle in idle_motions(embedding, at, carriers_outside(bodies, members)):
            who = f"idle: {_quoted(bodies[i].name for i in idle.bodies)}"
            how = f"{'spins' if idle.spins else 'slides'} alone (loop '{idle.loop}')"
            i, joint = lock(bodies, idle, positions)
            if joint is None:
                note = f"{who} {how} and has no joint that could be locked"
                notes += [] if note in notes else [note]
            elif bodies[i].name not in changed:
                changed[bodies[i].name] = joint
                was = bodies[i].joint.kind
                notes.append(f"{who} {how}; locked: joint '{joint.name}', {was}, is {joint.kind}")
    return Changes(changed)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


@dataclass(frozen=True)
class IdleMotion:
    """A motion of `bodies` (indices) alone. `rates` are those of the joints that take part, by body
    index; `spins` is False where the bodies slide."""

    bodies: tuple[int, ...]
    loop: str
    spins: bool
    rates: Mapping[int, np.ndarray]


def idle_motions(
    joint: Embedding, positions: Mapping[Any, Any], carriers: Iterable[int] = ()
) -> list[IdleMotion]:
    """The idle freedoms of a cluster at assembled positions that are not singular.

    In a loop, a link (or a few links in a row, a strut and its piston) between two ball joints may
    turn about the line between them: motions in which only those links move, all with one and the
    same twist. Bodies in `carriers` carry other clusters, so that they are not idle.
    """
    if not joint.nv or not any(isinstance(loop, LoopJoint) for loop in joint.loops):
        return []
    G, _, _ = joint.velocity_map({body.index: positions[body.index] for body in joint.bodies}, None)
    twists, found, carriers = _twists(joint, positions, G), [], set(carriers)
    for loop, chain in _chains(joint):
        names = frozenset(chain)
        if names & carriers or any(set(known.bodies) <= names for known in found):
            continue
        others = [twists[body.index] for body in joint.bodies if body.index not in names]
        motions = _null_space(np.concatenate(others)) if others else np.eye(joint.nv)
        for z in motions.T:
            moved = [twists[i] @ z for i in chain]
            size = np.linalg.norm(moved[0])
            same = all(np.linalg.norm(m - moved[0]) < RIGID * size for m in moved)
            if size < RIGID or not same:
                continue
            spins = bool(np.linalg.norm(moved[0][:3]) > RIGID * size)
            rates = {i: G[columns] @ z for i, columns in joint.columns.items()}
            rates = {i: x for i, x in rates.items() if np.abs(x).max() > RIGID}
            found.append(IdleMotion(tuple(sorted(chain)), loop.name, spins, rates))
    return found


def lock(
    bodies: Sequence[Body], idle: IdleMotion, positions: Mapping[Any, Any]
) -> tuple[int, TreeJoint | None]:
    """A body that takes part in an idle motion and the joint that locks it, or None for the joint.

    Of joints of one degree of freedom the one that moves most becomes fixed. Otherwise a joint of
    two keeps the one that moves less, and a spherical joint becomes a universal one, its two axes
    across the axis of the spin.
    """
    single = [i for i in idle.rates if bodies[i].joint.nv == 1]
    if single:
        i = max(single, key=lambda i: abs(idle.rates[i][0]))
        return i, fixed(bodies[i].joint, positions[i])
    for i, rate in idle.rates.items():
        joint = bodies[i].joint
        if joint.nv == 2:
            left = joint.motion.subspace(positions[i])[:, int(np.argmin(np.abs(rate)))]
            turns = np.linalg.norm(left[:3]) > RIGID
            kind = KINDS["revolute" if turns else "prismatic"]
            motion = kind(axis=left[:3] if turns else left[3:])
        elif joint.kind == "spherical":
            first, second = perpendicular(rate / np.linalg.norm(rate))
            motion = KINDS["universal"](axis=first, axis2=second)
        else:
            continue
        return i, replace(joint, placement=joint.transform(positions[i]).rounded(), motion=motion)
    return min(idle.rates), None


def _chains(joint: Embedding) -> Iterator[tuple[LoopJoint, tuple[int, ...]]]:
    """Links in a row of each loop, the shortest rows first."""
    for length in range(1, LONGEST + 1):
        for loop in joint.loops:
            if isinstance(loop, LoopJoint):
                ring = [b.index for b in loop.path_P] + [b.index for b in reversed(loop.path_S)]
                for start in range(len(ring) - length + 1):
                    if length < len(ring):
                        yield loop, tuple(ring[start : start + length])


def _twists(joint: Embedding, positions: Mapping[Any, Any], G: np.ndarray) -> dict[int, np.ndarray]:
    """The velocity of each body of a cluster (6, nv), its parent at rest, in the parent's axes."""
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
    return Vt[int(np.sum(s > RIGID * size)) :].T


def carriers_outside(bodies: Sequence[Body], members: Iterable[int]) -> set[int]:
    """Bodies that carry a body which is not among the members."""
    inside = set(members)
    return {body.parent for body in bodies if body.index not in inside} - {WORLD}
