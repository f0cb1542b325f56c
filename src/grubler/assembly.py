"""Closing loops: damped Newton steps on the joints' manifolds, one cluster at a time (floats)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from .embedding import side_by_side
from .errors import ClosureError
from .loops import Loop, LoopJoint
from .parts import Body

CLOSED = 1e-12  # what assembly aims at, m or rad
TOLERANCE = 1e-7  # an open loop beyond this is an error: round-off of CAD files stays below
RESTARTS = 30
YIELDING = 1e-4  # weight of rows that round-off keeps from closing, once the others are closed
EXPLAINED = (
    5  # restarts to find out whether an axis points the wrong way; searches with fewer do not
)


def residual(loops: Sequence[Loop], positions: dict) -> np.ndarray:
    """How far loops are from closed, m and rad; zero where they are closed and nowhere else."""
    return np.concatenate([loop.residual(positions) for loop in loops])


def slopes(bodies: Sequence[Body], loops: Sequence[Loop], positions: dict) -> np.ndarray:
    """The derivative of `residual` by the stacked spanning velocities."""
    rows = [side_by_side(bodies, loop, loop.slopes(positions)) for loop in loops]
    return np.concatenate(rows)


def move(bodies: Sequence[Body], positions: dict, step: np.ndarray) -> dict:
    """Positions after a step of the stacked spanning velocities."""
    moved, start = {}, 0
    for body in bodies:
        n = body.joint.nv
        moved[body.index] = body.joint.motion.integrate(
            positions[body.index], step[start : start + n]
        )
        start += n
    return moved


def newton(
    bodies: Sequence[Body], loops: Sequence[Loop], positions: dict, held: Iterable[int] = ()
) -> tuple[dict, float]:
    """Levenberg-Marquardt on the residual from a guess, and the gap that is left; `held` columns do
    not move.

    Rows with slack cannot all be met. They lead to the assembly, and yield to the others there.
    """
    slack = np.concatenate([np.broadcast_to(loop.slack, loop.rows) for loop in loops])
    found, gap = _marquardt(bodies, loops, positions, held, np.ones(len(slack)))
    if slack.any():
        found, _ = _marquardt(bodies, loops, found, held, np.where(slack > 0, YIELDING, 1.0))
        gap = max(loop.opening(found) for loop in loops)
    return found, gap


def _marquardt(bodies, loops, positions: dict, held: Iterable[int], weights: np.ndarray):
    """Levenberg-Marquardt on the weighted residual, and the largest entry of it that is left."""
    n = sum(body.joint.nv for body in bodies)
    free = np.setdiff1d(np.arange(n), np.fromiter(held, dtype=int))
    phi = weights * residual(loops, positions)
    damping, slow = 1e-3, 0
    for _ in range(200):
        gap = np.abs(phi).max(initial=0.0)
        if gap < CLOSED * 1e-2 or damping > 1e12 or slow > 12:
            break
        K = weights[:, None] * slopes(bodies, loops, positions)[:, free]
        U, s, Vt = np.linalg.svd(K, full_matrices=False)
        scale = s[0] if len(s) and s[0] > 0 else 1.0
        s = np.where(s > 1e-7 * scale, s, 0.0)  # round-off of redundant rows
        # near the solution the damping fades and the step is Newton's, of least norm
        mu = damping * scale * min(1.0, gap / scale)
        step = np.zeros(n)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(s > 0, s / (s**2 + mu**2), 0.0)
        step[free] = -Vt.T @ (gain * (U.T @ phi))
        step *= min(1.0, 1.0 / (np.abs(step).max(initial=0.0) + 1e-300))
        moved = move(bodies, positions, step)
        phi_moved = weights * residual(loops, moved)
        before, after = np.linalg.norm(phi), np.linalg.norm(phi_moved)
        slow = slow + 1 if after > 0.999 * before else 0
        if after < before:
            positions, phi, damping = moved, phi_moved, damping * 0.1
        elif gap < CLOSED:
            break
        else:
            damping = max(damping, 1e-6) * 10
    return positions, float(np.abs(phi).max(initial=0.0))


def close(
    bodies: Sequence[Body],
    loops: Sequence[Loop],
    guess: dict,
    held: Iterable[int] = (),
    restarts: int = RESTARTS,
) -> dict:
    """Positions that close the loops, near the guess where that works.

    A guess at a singularity (a straight linkage) or on the wrong branch is left by seeded random
    steps of growing size, `restarts` times at most.
    """
    held = list(held)
    closed, best = _search(bodies, loops, guess, held, restarts)
    if closed is None:
        reverse = restarts >= EXPLAINED and _closes_reversed(bodies, loops, guess, best, held)
        raise ClosureError(_cannot_close(loops, best, bool(held), reverse))
    return closed


def _search(bodies, loops, guess: dict, held: list[int], restarts: int) -> tuple[dict | None, dict]:
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
            start = move(bodies, guess, step)
        positions, gap = newton(bodies, loops, start, held)
        if _closed(loops, positions, gap):
            return positions, positions
        stalled = stalled + 1 if gap > TOLERANCE and 0.99 < gap / best_gap < 1.01 else 0
        if gap < best_gap:
            best, best_gap = positions, gap
        if stalled >= 4:  # start after start ends with the same gap: out of reach
            break
    return None, best


def _closed(loops: Sequence[Loop], positions: dict, gap: float) -> bool:
    return gap < TOLERANCE and all(loop.on_branch(positions) for loop in loops)


def _without_orientation(loops: Sequence[Loop]) -> list[Loop] | None:
    """The loops with welds as ball joints, or None where there is no weld."""
    welds = [isinstance(loop, LoopJoint) and loop.kind == "fixed" for loop in loops]
    if not any(welds):
        return None
    balls = [
        replace(x, kind="ball", slack=0.0) if w else x for x, w in zip(loops, welds, strict=True)
    ]
    return balls


def _worst(loops: Sequence[Loop], positions: dict) -> Loop:
    return max(loops, key=lambda loop: np.abs(loop.residual(positions)).max())


def _closes_reversed(bodies, loops: Sequence[Loop], guess: dict, best: dict, held) -> bool:
    """Whether the loops close with an axis of the worst loop turned round."""
    worst = _worst(loops, best)
    if (turned := worst.turned_round()) is None:
        return False
    others = [turned if loop is worst else loop for loop in loops]
    return _search(bodies, others, guess, held, EXPLAINED)[0] is not None


def _cannot_close(loops: Sequence[Loop], positions: dict, held: bool, reverse: bool) -> str:
    worst = _worst(loops, positions)
    if reverse:
        return (
            f"loop '{worst.name}' closes only with its axes reversed: turn one axis round, "
            "or give a guess nearer to the assembled configuration"
        )
    fix = "free some of the fixed joints" if held else "check its frames, axes and link lengths"
    return f"loop '{worst.name}' cannot be closed: still open by {worst.gap(positions)}; {fix}"


def check_closed(loops: Sequence[Loop], positions: dict) -> None:
    """Refuse positions that do not close, naming the loop and its gap."""
    for loop in loops:
        if not all(np.all(np.isfinite(positions[i])) for i in loop.bodies):
            raise ClosureError(
                f"loop '{loop.name}' cannot be closed at this q: its joints are out of reach"
            )
        if not loop.opening(positions) <= TOLERANCE:
            raise ClosureError(
                f"loop '{loop.name}' is open by {loop.gap(positions)} at this q: "
                "use model.assemble(q)"
            )
