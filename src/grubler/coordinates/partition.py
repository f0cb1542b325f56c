"""Which joints are independent: generalized coordinate partitioning, cluster by cluster.

Rank decides how many rows of K are independent, pivoting which columns are solved for; a choice
made in the description (independent=True/False) is honoured where it works and refused where not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import TIE, largest, pivot_order
from ..errors import ClosureError, ModelError, PartitionError
from ..mechanism.layout import Layout
from ..mechanism.loops import LinearCoupling, Loop
from ..mechanism.loops.base import ExplicitLoop
from ..mechanism.loops.modules import recognise
from ..mechanism.parts import Body, frozen
from ..tolerances import OPEN_LOOP, PARTITION_CONDITION, PARTITION_RANK, ROUNDED_LOOP, WRONG_LOOP
from .assembly import close, residual
from .embedding import Embedding, ExplicitJoint, ImplicitJoint, OpenJoint, stack_rows
from .ranks import Rank, read_rank

if TYPE_CHECKING:
    from ..typing import Array


MARGIN = 4.0  # between the gap that was met by sampling and the gap that is let pass
KEEP = 0.5  # among columns within this share of the best pivot the last is solved for


def embed(
    bodies: tuple[Body, ...],
    loops: tuple[Loop, ...],
    reference: dict[Any, Any],
    analytic: bool = False,
) -> tuple[Embedding, dict[int, Array]] | None:
    """The embedding of a cluster and the positions at which it was found assembled.

    `analytic` takes the closed form of its loops, where `recognise` finds one.
    """
    if not loops:  # an ordinary joint, or several merged for the sake of the tree alone
        return OpenJoint(bodies, ()), reference
    steps = explicit_steps(bodies, loops)
    if steps is not None:
        joint = ExplicitJoint(bodies, loops, steps)
        q = np.concatenate([reference[body.index] for body in joint.coordinates])
        return joint, joint.positions(q)
    joint, assembled = implicit_joint(bodies, loops, reference)
    if not joint.dependent:  # rows without rank, such as a second pin on a hinge's own axis
        return OpenJoint(bodies, ()), assembled
    found = closed_form(joint, assembled) if analytic else None
    return found or joint, assembled


def closed_form(joint: Any, reference: Mapping[Any, Any]) -> ExplicitJoint | None:
    """The embedding of a cluster in closed form, or None where a loop of it has none.

    The joints that the present embedding solves for are preferred, so that v stays the same. Closed
    forms take geometry to be exact: where its round-off counts, there is none.
    """
    if joint.doubt:
        return None
    solved = {
        body.index
        for body in joint.bodies
        if set(range(joint.nv_span)[joint.columns[body.index]]) <= set(joint.dependent)
    }
    steps = recognise(joint.bodies, joint.loops, reference, prefer=solved)
    if steps is None:
        return None
    K, _ = stack_rows(joint.bodies, joint.loops, reference, None)
    found = ExplicitJoint(joint.bodies, joint.loops, steps, tuple(joint.kept))
    regular = rank(K[list(joint.kept)]) == len(joint.kept)
    return found if found.nv == joint.nv and regular else None


def explicit_steps(bodies: Sequence[Body], loops: Sequence[Loop]) -> tuple[Loop, ...] | None:
    """The loops in an order in which each one's inputs are known, or None."""
    if not all(isinstance(loop, ExplicitLoop) for loop in loops):
        return None
    solved = [body.index for loop in loops for body in loop.outputs]
    flags = {body.index: body.joint.independent for body in bodies}
    wanted = [i for i in solved if flags[i]]
    inputs = {body.index for body in bodies} - set(solved)
    refused = [i for i in inputs if flags[i] is False]
    sequential = len(set(solved)) == len(solved) and not wanted and not refused
    steps, known, waiting = [], set(inputs), list(loops)
    while sequential and waiting:
        ready = [loop for loop in waiting if all(b.index in known for b in loop.inputs)]
        if not ready:
            break
        steps.append(ready[0])
        known.update(body.index for body in ready[0].outputs)
        waiting.remove(ready[0])
    if sequential and not waiting:
        return tuple(steps)
    if all(isinstance(loop, LinearCoupling) for loop in loops):
        return linear_steps(bodies, loops)
    if wanted or refused:
        names = [
            bodies[i].joint.name for i in range(len(bodies)) if bodies[i].index in wanted + refused
        ]
        raise PartitionError(
            f"independent= of joint '{names[0]}' cannot be honoured: loop '{loops[0].name}' gives "
            f"{', '.join(body.joint.name for body in loops[0].outputs)} from "
            f"{', '.join(body.joint.name for body in loops[0].inputs)} and cannot be inverted; "
            "write it as an implicit constraint (phi=) instead"
        )
    return None


def linear_steps(bodies: Sequence[Body], loops: Sequence[Loop]) -> tuple[LinearCoupling, ...]:
    """Linear couplings solved for other joints than they name, or with redundant rows."""
    zero = {body.index: np.zeros(1) for body in bodies}
    K, _ = stack_rows(bodies, loops, zero, None)
    constant = residual(loops, zero)
    kept, dependent = choose(bodies, loops, K, rank(K))
    independent = [c for c in range(len(bodies)) if c not in dependent]
    Kd = K[np.ix_(kept, dependent)]
    G = -np.linalg.solve(Kd, K[np.ix_(kept, independent)])
    offset = -np.linalg.solve(Kd, constant[kept])
    at_zero = np.zeros(len(bodies))
    at_zero[list(dependent)] = offset
    gap = np.abs(K @ at_zero + constant)
    if gap.max() > 1e-9 * (1 + np.abs(offset).max()):
        names = ", ".join(f"'{loop.name}'" for loop in loops)
        raise ClosureError(
            f"couplings {names} contradict each other: no positions satisfy them all"
        )
    if not independent:
        positions = {body.index: at_zero[c : c + 1] for c, body in enumerate(bodies)}
        raise RigidCluster(OpenJoint(tuple(bodies), tuple(loops)), positions)
    inputs = tuple(bodies[c] for c in independent)
    return tuple(
        LinearCoupling(
            f"{bodies[c].joint.name} solved", inputs, (bodies[c],), frozen(G[i]), float(offset[i])
        )
        for i, c in enumerate(dependent)
    )


def implicit_joint(
    bodies: tuple[Body, ...], loops: tuple[Loop, ...], reference: dict[Any, Any]
) -> tuple[Embedding, dict[int, Array]] | None:
    """Assemble, count the rank, choose rows and columns (at an assembled configuration)."""
    jammed, assembling = None, loops
    try:
        assembled = close(bodies, loops, reference)
    except ClosureError as error:  # rows that repeat each other but for round-off cannot all close
        jammed, assembling = error, [_with_slack(loop, WRONG_LOOP) for loop in loops]
        try:
            assembled = close(bodies, assembling, reference, restarts=3)
        except ClosureError:
            raise error from None
    samples = _neighbours(bodies, assembling, assembled)
    reading = read_rank(bodies, loops, samples)
    if reading.other is None and jammed is None:
        joint, at = _joint(bodies, loops, samples, reading.rank)
    else:
        joint, at = _doubtful_joint(bodies, loops, samples, reading, jammed)
        if jammed is not None:
            assembled = close(bodies, joint.loops, assembled, joint.independent)
    if joint.nv == 0:
        raise RigidCluster(joint, assembled)
    try:
        if joint.dependent:
            joint.check(assembled)
    except PartitionError:
        assembled = at  # the assembled guess is singular: start from the generic one
    return joint, assembled


def _joint(
    bodies, loops, samples: list[dict[Any, Any]], r: int
) -> tuple[ImplicitJoint, dict[Any, Any]]:
    """The embedding for a rank, and the sample at which its rows and columns were chosen."""
    Ks = [stack_rows(bodies, loops, positions, None)[0] for positions in samples]
    sizes = [np.append(np.linalg.svd(K, compute_uv=False), 0.0)[max(r, 1) - 1] for K in Ks]
    i = next(i for i, size in enumerate(sizes) if size >= 0.1 * max(sizes))
    kept, dependent = choose(bodies, loops, Ks[i], r)
    order = pivot_order(Ks[i][np.ix_(kept, dependent)])
    return ImplicitJoint(bodies, loops, tuple(kept), tuple(dependent), order), samples[i]


def _doubtful_joint(bodies, loops, samples, reading: Rank, jammed: ClosureError | None):
    """The embedding where round-off of the description counts, which its `doubt` says in words.

    Of two readings the lower is right if the mechanism moves so: if its loops stay closed up to
    round-off while the freedoms in question take finite steps. `jammed` is the error of loops that
    do not close to the last digit: the higher reading cannot be right then.
    """
    low, *higher = sorted({reading.rank, reading.other} - {None})
    names = ", ".join(f"'{loop.name}'" for loop in loops)
    if not higher or reading.rank == low:
        joint, at = _joint(bodies, loops, samples, low)
        open_by = _open_by(joint, samples[0])
        if open_by < ROUNDED_LOOP:
            slack = MARGIN * max(open_by, OPEN_LOOP)
            taken = f"loop {names}: round-off of its description leaves {slack:.1e} m or rad open"
            if higher:
                taken += f"; {_two_readings(joint, reading, low, higher[0])}"
            return replace(joint, loops=_yielding(joint, slack), doubt=taken), at
    if jammed is not None:
        raise jammed
    joint, at = _joint(bodies, loops, samples, higher[0])
    words = f"loop {names}: {_two_readings(joint, reading, higher[0], low)}"
    return replace(joint, doubt=words), at


def _two_readings(joint: ImplicitJoint, reading: Rank, chosen: int, other: int) -> str:
    n, first = joint.nv_span, reading.sizes[min(chosen, other)]
    return (
        f"its rank can be read as {chosen} (mobility {n - chosen}), as here, or as {other} "
        f"(mobility {n - other}): scaled singular values from {first:.1e} down are round-off or "
        "constraints"
    )


def _yielding(joint: ImplicitJoint, slack: float) -> tuple[Loop, ...]:
    """The loops with rows that are not kept open by up to `slack`, m or rad."""
    loops, start = [], 0
    for loop in joint.loops:
        dropped = [start + i not in joint.kept for i in range(loop.rows)]
        loops.append(_with_slack(loop, slack * np.array(dropped)))
        start += loop.rows
    return tuple(loops)


def _with_slack(loop: Loop, slack) -> Loop:
    return replace(loop, slack=frozen(np.broadcast_to(slack, loop.rows)))


def _open_by(joint: ImplicitJoint, start: dict[Any, Any]) -> float:
    """The largest residual, m or rad, while the independent joints of a cluster take steps up to
    one radian or metre; infinite if no such step can be taken."""
    rng, found, loops = np.random.default_rng(2), [], _yielding(joint, ROUNDED_LOOP)
    for size in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0):
        step = np.zeros(joint.nv_span)
        step[list(joint.independent)] = size * rng.uniform(-1, 1, joint.nv)
        try:
            moved = joint.spanning.integrate(start, step)
            moved = close(joint.bodies, loops, moved, joint.independent, restarts=0)
        except ClosureError:
            continue
        found.append(float(np.abs(residual(loops, moved)).max()))
    return max(found, default=np.inf)


def rank(K: np.ndarray) -> int:
    """The rank of a matrix of exact numbers, at one configuration."""
    s = np.linalg.svd(K, compute_uv=False)
    return int(np.sum(s > PARTITION_RANK * max(s[0], 1e-300))) if s.size else 0


def _neighbours(bodies, loops, assembled: dict[Any, Any]) -> list[dict[Any, Any]]:
    """The assembled configuration and some near it: at a singularity (a straight leg) rank reads
    too low."""
    rng = np.random.default_rng(1)
    joints, samples = Layout(bodies), [assembled]
    for size in (0.1, 0.2, 0.4, 0.4):
        try:
            moved = joints.integrate(assembled, size * rng.standard_normal(joints.nv))
            samples.append(close(bodies, loops, moved, restarts=1))
        except ClosureError:
            continue
    return samples


def choose(bodies: Any, loops: Any, K: np.ndarray, r: int) -> tuple[list[int], list[int]]:
    """r independent rows of K and the columns to solve for, by greedy pivoting."""
    kept = sorted(pivots(K.T, r, [list(range(len(K)))], prefer_last=False))
    flags = [body.joint.independent for body in bodies for _ in range(body.joint.nv)]
    names = [n for body in bodies for n in body.joint.names(body.joint.motion.labels)]
    declared = {
        c
        for c, body in enumerate(b for b in bodies for _ in range(b.joint.nv))
        if any(isinstance(loop, ExplicitLoop) and body in loop.outputs for loop in loops)
    }
    columns = range(len(flags))
    stages = [
        [c for c in columns if flags[c] is False],
        [c for c in columns if flags[c] is None and c in declared],
        [c for c in columns if flags[c] is None and c not in declared],
        [c for c in columns if flags[c]],
    ]
    dependent = pivots(K[kept], r, stages, prefer_last=True)
    _refuse_choice(loops, names, flags, dependent, K[np.ix_(kept, dependent)])
    return kept, dependent


def pivots(A: np.ndarray, count: int, stages: list[list[int]], prefer_last: bool) -> list[int]:
    """`count` independent columns of A, the earlier stages first, by pivoted orthogonalisation."""
    A = np.array(A, dtype=float)
    floor = PARTITION_RANK * np.linalg.norm(A, axis=0).max(initial=0.0)
    chosen: list[int] = []
    for stage in stages:
        candidates = list(stage)
        while len(chosen) < count and candidates:
            sizes = np.linalg.norm(A[:, candidates], axis=0)
            if sizes.max() <= floor:
                break
            near = np.flatnonzero(sizes >= KEEP * TIE * sizes.max())
            pick = candidates[near[-1] if prefer_last else largest(sizes)]
            direction = A[:, pick] / np.linalg.norm(A[:, pick])
            A -= np.outer(direction, direction @ A)
            candidates.remove(pick)
            chosen.append(pick)
    return chosen


def _refuse_choice(loops, names, flags, dependent, Kd) -> None:
    loop = loops[0].name
    forced = [names[c] for c in dependent if flags[c]]
    if forced:
        raise PartitionError(
            f"joint '{forced[0]}' cannot be independent: loop '{loop}' cannot be solved for the "
            f"others (mobility {len(names) - len(dependent)}, {sum(1 for f in flags if f)} joints "
            "marked independent); mark fewer or other joints independent=True"
        )
    left = [n for c, n in enumerate(names) if c not in dependent and flags[c] is False]
    if left:
        raise PartitionError(
            f"joint '{left[0]}' cannot be dependent: loop '{loop}' leaves mobility "
            f"{len(names) - len(dependent)} and the other joints do not determine it; "
            "remove independent=False"
        )
    if len(dependent) and np.linalg.cond(Kd) > PARTITION_CONDITION:
        raise PartitionError(
            f"the independent joints chosen for loop '{loop}' do not determine the others "
            f"(condition {np.linalg.cond(Kd):.1e}): mark other joints independent=True"
        )


class RigidCluster(ModelError):
    """A cluster of loops that leaves no freedom, with the positions at which it is assembled."""

    loops: Any
    positions: dict[Any, Any]

    def __init__(self, joint: Embedding, positions: Mapping[Any, Any]):
        names = ", ".join(f"'{loop.name}'" for loop in joint.loops)
        rows = sum(loop.rows for loop in joint.loops)
        super().__init__(
            f"the cluster of loop {names} has mobility 0: its joints give {joint.nv_span} degrees "
            f"of freedom and {rows} rows of constraint take them all; remove a loop, or weld the "
            "bodies with a fixed joint"
        )
        self.loops, self.positions = joint.loops, dict(positions)
