"""Closing loops: damped Newton steps on the joints' manifolds, one cluster at a time (floats)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ClosureError
from ..mechanism.layout import Layout
from ..mechanism.loops import Loop, LoopJoint
from ..mechanism.parts import Body
from ..tolerances import ASSEMBLED, OPEN_LOOP
from .embedding import Embedding, side_by_side
from .limits import clipped, excess, room, unwound

RESTARTS = 30
YIELDING = 1e-4  # weight of rows that round-off keeps from closing, once the others are closed
EXPLAINED = (
    5  # restarts to find out whether an axis points the wrong way; searches with fewer do not
)
RESTARTS_IN_LIMITS = 12  # random guesses from which a closure within all limits is looked for

Accept = Callable[[dict], bool] | None


def residual(loops: Sequence[Loop], positions: dict[Any, Any]) -> np.ndarray:
    """How far loops are from closed, m and rad; zero where they are closed and nowhere else."""
    return np.concatenate([loop.residual(positions) for loop in loops])


def slopes(bodies: Sequence[Body], loops: Sequence[Loop], positions: dict[Any, Any]) -> np.ndarray:
    """The derivative of `residual` by the stacked spanning velocities."""
    joints = Layout(bodies)
    rows = [side_by_side(loop.slopes(positions), joints.v, loop.rows, joints.nv) for loop in loops]
    return np.concatenate(rows)


def newton(
    bodies: Sequence[Body],
    loops: Sequence[Loop],
    positions: dict[Any, Any],
    held: Iterable[int] = (),
    limits: bool = False,
) -> tuple[dict[Any, Any], float]:
    """Levenberg-Marquardt on the residual from a guess, and the gap that is left; `held` columns do
    not move.

    Rows with slack cannot all be met. They lead to the assembly, and yield to the others there.
    With `limits` no joint passes a limit: one that stands at its limit is held while the step would
    take it beyond.
    """
    slack = np.concatenate([np.broadcast_to(loop.slack, loop.rows) for loop in loops])
    found, gap = _marquardt(bodies, loops, positions, held, np.ones(len(slack)), limits)
    if slack.any():
        weights = np.where(slack > 0, YIELDING, 1.0)
        found, _ = _marquardt(bodies, loops, found, held, weights, limits)
        gap = max(loop.opening(found) for loop in loops)
    return found, gap


def _marquardt(
    bodies, loops, positions: dict[Any, Any], held: Iterable[int], weights: np.ndarray, limits: bool
) -> tuple[dict[Any, Any], float]:
    """Levenberg-Marquardt on the weighted residual, and the largest entry of it that is left."""
    n = sum(body.joint.nv for body in bodies)
    free = np.setdiff1d(np.arange(n), np.fromiter(held, dtype=int))
    phi = weights * residual(loops, positions)
    damping, slow = 1e-3, 0
    for _ in range(200):
        gap = np.abs(phi).max(initial=0.0)
        if gap < ASSEMBLED * 1e-2 or damping > 1e12 or slow > 12:
            break
        K = weights[:, None] * slopes(bodies, loops, positions)
        step = _step(K, phi, free, damping, gap)
        if limits:
            step = _step_within(K, phi, free, damping, gap, step, room(bodies, positions))
        step *= min(1.0, 1.0 / (np.abs(step).max(initial=0.0) + 1e-300))
        moved = Layout(bodies).integrate(positions, step)
        phi_moved = weights * residual(loops, moved)
        before, after = np.linalg.norm(phi), np.linalg.norm(phi_moved)
        slow = slow + 1 if after > 0.999 * before else 0
        if after < before:
            positions, phi, damping = moved, phi_moved, damping * 0.1
        elif gap < ASSEMBLED:
            break
        else:
            damping = max(damping, 1e-6) * 10
    return positions, float(np.abs(phi).max(initial=0.0))


def _step(K, phi, free, damping: float, gap: float) -> np.ndarray:
    """A damped Newton step of the free columns, of least norm where they are redundant."""
    U, s, Vt = np.linalg.svd(K[:, free], full_matrices=False)
    scale = s[0] if len(s) and s[0] > 0 else 1.0
    s = np.where(s > 1e-7 * scale, s, 0.0)  # round-off of redundant rows
    # near the solution the damping fades and the step is Newton's, of least norm
    mu = damping * scale * min(1.0, gap / scale)
    step = np.zeros(K.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(s > 0, s / (s**2 + mu**2), 0.0)
    step[free] = -Vt.T @ (gain * (U.T @ phi))
    return step


def _step_within(K, phi, free, damping: float, gap: float, step, ways) -> np.ndarray:
    """The step of those columns that it does not take beyond a limit at which they stand."""
    down, up = ways
    while True:
        stuck = ((down > -ASSEMBLED) & (step < 0)) | ((up < ASSEMBLED) & (step > 0))
        if not stuck.any():
            return np.clip(step, down, up)
        free = np.setdiff1d(free, np.flatnonzero(stuck))
        step = _step(K, phi, free, damping, gap)


def close(
    bodies: Sequence[Body],
    loops: Sequence[Loop],
    guess: dict[Any, Any],
    held: Iterable[int] = (),
    restarts: int = RESTARTS,
    limits: bool = True,
    accept: Accept = None,
) -> dict[Any, Any]:
    """Positions that close the loops, near the guess where that works.

    A guess at a singularity (a straight linkage) or on the wrong branch is left by seeded random
    steps of growing size, `restarts` times at most. With `limits`, joints that end beyond their
    limits are brought back where the loops allow that, but for those `held` and those whose guess
    is beyond. `accept` refuses closed positions, of another branch for example.
    """
    held = list(held)
    closed = _close(bodies, loops, guess, held, restarts, accept)
    if not limits or not excess(bodies, closed):
        return closed
    kept = {body.index for c, body in enumerate(_by_column(bodies)) if c in held}
    kept |= excess(bodies, guess).keys()
    closed = unwound(bodies, loops, closed)
    if excess(bodies, closed).keys() <= kept:
        return closed
    restarts = min(restarts, RESTARTS_IN_LIMITS)
    return _close_within(bodies, loops, guess, closed, held, kept, restarts, accept)


def close_cluster(
    joint: Embedding, guess: dict[Any, Any], held: Iterable[int] = (), named: Iterable[int] = ()
) -> dict[Any, Any]:
    """Closed positions of a cluster's joints near a guess, as its embedding gives them.

    Loops solved explicitly give the dependent joints from the independent ones. Where that leaves
    open what is `held` (columns), or `named` (bodies whose guess counts), passes a limit, or is out
    of reach, all joints are moved, as they are where loops are closed implicitly.
    """
    held = list(held)
    if not joint.loops:
        return guess
    if joint.implicit:
        return close(joint.bodies, joint.loops, guess, held)

    def accept(positions: dict[Any, Any]) -> bool:
        return same_pose(joint.bodies, positions, _solved(joint, positions))

    solved = _solved(joint, guess)
    finite = all(np.all(np.isfinite(x)) for x in solved.values())
    if not finite or max(loop.opening(solved) for loop in joint.loops) > OPEN_LOOP:
        return close(joint.bodies, joint.loops, guess, held, accept=accept)
    wanted = {body.index for c, body in enumerate(_by_column(joint.bodies)) if c in held}
    wanted |= set(named)
    guess, beyond = solved | {i: guess[i] for i in wanted}, excess(joint.bodies, solved)
    if any(np.abs(solved[i] - guess[i]).max() > ASSEMBLED for i in wanted):
        return close(joint.bodies, joint.loops, guess, held, accept=accept)
    kept = wanted | {body.index for body in joint.coordinates if body.index in beyond}
    if beyond.keys() <= kept:
        return solved
    return _close_within(joint.bodies, joint.loops, guess, solved, held, kept, 0, accept)


def _solved(joint: Embedding, positions: dict[Any, Any]) -> dict[Any, Any]:
    """All positions of a cluster from those of its coordinates."""
    with np.errstate(invalid="ignore"):
        return joint.positions(np.concatenate([positions[b.index] for b in joint.coordinates]))


def same_pose(
    bodies: Sequence[Body], a: Any, b: dict[Any, Any], tolerance: float = OPEN_LOOP
) -> bool:
    """Whether every joint places its body equally; turns by 2π count as equal, NaN as different."""
    for body in bodies:
        X, Y = (body.joint.motion.transform(x[body.index]) for x in (a, b))
        if not max(np.abs(X.E - Y.E).max(), np.abs(X.r - Y.r).max()) <= tolerance:
            return False
    return True


def _by_column(bodies: Sequence[Body]):
    """The body of each spanning velocity."""
    return (body for body in bodies for _ in range(body.joint.nv))


def _close_within(
    bodies, loops, guess, closed, held: list[Any], kept: set[Any], restarts: int, accept: Accept
) -> dict[Any, Any]:
    """Closed positions within all limits, or those that leave the fewest joints beyond theirs.

    `closed` are positions that close without regard to limits, `kept` the bodies that are held.
    """
    rng = np.random.default_rng(2)
    best, fewest = closed, _beyond(bodies, closed, kept)
    for attempt in range(restarts + 2):
        start = closed if attempt == 1 else guess
        if attempt > 1:
            start = _random_within(bodies, guess, held, rng, min(1.5, 0.2 * attempt))
        start = clipped(bodies, start, kept)
        positions, gap = newton(bodies, loops, start, held, limits=True)
        if gap > OPEN_LOOP and attempt < 2:
            # some limit cannot be kept: joints that stop the closure at a limit may pass it
            positions, gap = newton(bodies, loops, positions, held)
        if not _closed(loops, positions, gap, accept):
            continue
        positions = unwound(bodies, loops, positions)
        left = _beyond(bodies, positions, kept)
        if left < fewest:
            best, fewest = positions, left
        if not left[0]:
            break
    return best


def _beyond(bodies, positions, kept: set[Any]) -> tuple[int, float]:
    """How many joints stand beyond their limits, and by how much altogether."""
    found = [x for i, x in excess(bodies, positions).items() if i not in kept]
    return len(found), sum(found)


def _random_within(
    bodies, guess: dict[Any, Any], held: list[Any], rng, size: float
) -> dict[Any, Any]:
    """A random guess: anywhere between two limits, a step of a given size elsewhere."""
    n = sum(body.joint.nv for body in bodies)
    step, share = size * rng.standard_normal(n), rng.uniform(0, 1, n)
    for c, body in enumerate(_by_column(bodies)):
        low, high = body.joint.limits
        if np.isfinite(high - low):
            step[c] = low + share[c] * (high - low) - guess[body.index][0]
    step[held] = 0.0
    return Layout(bodies).integrate(guess, step)


def _close(
    bodies, loops, guess: dict[Any, Any], held: list[Any], restarts: int, accept: Accept
) -> dict[Any, Any]:
    """Positions that close the loops near the guess, without regard to limits."""
    closed, best = _search(bodies, loops, guess, held, restarts, accept)
    if closed is None:
        reverse = restarts >= EXPLAINED and _closes_reversed(bodies, loops, guess, best, held)
        raise ClosureError(_cannot_close(loops, best, bool(held), reverse))
    return closed


def _search(
    bodies, loops, guess: dict[Any, Any], held: list[int], restarts: int, accept: Accept = None
) -> tuple[dict[Any, Any] | None, dict[Any, Any]]:
    """Positions that close the loops, or None; and the best that were met."""
    positions, gap = newton(bodies, loops, guess, held)
    if not _closed(loops, positions, gap) and (loose := _without_orientation(loops)) is not None:
        # frames that start far apart in angle meet first in position, then turn
        guess = newton(bodies, loose, guess, held)[0]
    rng = np.random.default_rng(0)
    n = sum(body.joint.nv for body in bodies)
    best, best_gap, stalled = guess, np.inf, 0
    for attempt in range(restarts + 1):
        start = guess
        if attempt:
            step = rng.standard_normal(n) * min(2.0, 0.05 * attempt)
            step[held] = 0.0
            start = Layout(bodies).integrate(guess, step)
        positions, gap = newton(bodies, loops, start, held)
        if _closed(loops, positions, gap, accept):
            return positions, positions
        stalled = stalled + 1 if gap > OPEN_LOOP and 0.99 < gap / best_gap < 1.01 else 0
        if gap < best_gap:
            best, best_gap = positions, gap
        if stalled >= 4:  # start after start ends with the same gap: out of reach
            break
    return None, best


def _closed(
    loops: Sequence[Loop], positions: dict[Any, Any], gap: float, accept: Accept = None
) -> bool:
    closed = gap < OPEN_LOOP and all(loop.on_branch(positions) for loop in loops)
    return closed and (accept is None or accept(positions))


def _without_orientation(loops: Sequence[Loop]) -> list[Loop] | None:
    """The loops with welds as ball joints, or None where there is no weld."""
    welds = [isinstance(loop, LoopJoint) and loop.kind == "fixed" for loop in loops]
    if not any(welds):
        return None
    balls = [
        replace(x, kind="ball", slack=0.0) if w else x for x, w in zip(loops, welds, strict=True)
    ]
    return balls


def _worst(loops: Sequence[Loop], positions: dict[Any, Any]) -> Loop:
    return max(loops, key=lambda loop: np.abs(loop.residual(positions)).max())


def _closes_reversed(
    bodies, loops: Sequence[Loop], guess: dict[Any, Any], best: dict[Any, Any], held
) -> bool:
    """Whether the loops close with an axis of the worst loop turned round."""
    worst = _worst(loops, best)
    if (turned := worst.turned_round()) is None:
        return False
    others = [turned if loop is worst else loop for loop in loops]
    return _search(bodies, others, guess, held, EXPLAINED)[0] is not None


def _cannot_close(
    loops: Sequence[Loop], positions: dict[Any, Any], held: bool, reverse: bool
) -> str:
    worst = _worst(loops, positions)
    if reverse:
        return (
            f"loop '{worst.name}' closes only with its axes reversed: turn one axis round, "
            "or give a guess nearer to the assembled configuration"
        )
    if _closed(loops, positions, max(loop.opening(positions) for loop in loops)):
        names = ", ".join(f"'{loop.name}'" for loop in loops)
        return (
            f"loop {names} closes here only on another branch than that of its closed form: "
            "free some of the fixed joints, or assemble grubler.numeric(model)"
        )
    fix = "free some of the fixed joints" if held else "check its frames, axes and link lengths"
    return f"loop '{worst.name}' cannot be closed: still open by {worst.gap(positions)}; {fix}"


def check_closed(loops: Sequence[Loop], positions: Any) -> None:
    """Refuse positions that do not close, naming the loop and its gap."""
    for loop in loops:
        if not all(np.all(np.isfinite(positions[i])) for i in loop.bodies):
            raise ClosureError(
                f"loop '{loop.name}' cannot be closed at this q: its joints are out of reach"
            )
        if not loop.opening(positions) <= OPEN_LOOP:
            raise ClosureError(
                f"loop '{loop.name}' is open by {loop.gap(positions)} at this q: "
                "use model.assemble(q)"
            )
