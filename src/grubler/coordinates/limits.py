"""Joint limits: which joints stand beyond theirs, and how far each may still move (floats)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..mechanism.loops import Loop, LoopJoint
from ..mechanism.parts import Body
from ..tolerances import LIMIT_SLACK


def room(bodies: Sequence[Body], positions: Mapping[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """How far each spanning velocity may move its joint down (<= 0) and up (>= 0), in rad or m.

    Infinite for joints without limits. A joint beyond a limit may move back, but not further out.
    """
    down, up = [], []
    for body in bodies:
        low, high = body.joint.limits
        at = positions[body.index][0] if body.joint.nv == 1 else 0.0
        down += [min(low - at, 0.0)] * body.joint.nv
        up += [max(high - at, 0.0)] * body.joint.nv
    return np.array(down), np.array(up)


def excess(bodies: Iterable[Body], positions: Mapping[Any, Any]) -> dict[int, float]:
    """How far joints stand beyond their limits in rad or m, by body index; empty within limits."""
    found = {}
    for body in bodies:
        low, high = body.joint.limits
        if low == -np.inf and high == np.inf:
            continue
        at = float(positions[body.index][0])
        beyond = max(low - at, at - high)
        if not beyond <= LIMIT_SLACK:
            found[body.index] = beyond
    return found


def further_out(
    bodies: Iterable[Body], before: Mapping[Any, Any], after: Mapping[Any, Any]
) -> list[Body]:
    """Joints that stand beyond a limit in `after`, and further than in `before`."""
    bodies = list(bodies)
    start, end = excess(bodies, before), excess(bodies, after)
    return [b for b in bodies if end.get(b.index, 0.0) > start.get(b.index, 0.0) + LIMIT_SLACK]


def clipped(
    bodies: Sequence[Body], positions: Mapping[Any, Any], keep: Iterable[int] = ()
) -> dict[Any, Any]:
    """Positions with each joint at the nearest position within its limits, but for `keep`."""
    keep = set(keep)
    return {
        body.index: positions[body.index]
        if body.index in keep
        else body.joint.within_limits(positions[body.index])
        for body in bodies
    }


def unwound(
    bodies: Sequence[Body], loops: Sequence[Loop], positions: Mapping[Any, Any]
) -> dict[Any, Any]:
    """The same pose with hinges beyond their limits turned back by whole turns where that helps.

    Hinges whose angle itself enters a coupling or a user's loop stay as they are.
    """
    counted = {i for loop in loops if not isinstance(loop, LoopJoint) for i in loop.bodies}
    turned = dict(positions)
    beyond = excess(bodies, positions)
    for body in bodies:
        if body.index not in beyond or not body.joint.is_hinge or body.index in counted:
            continue
        low, high = body.joint.limits
        turn = 2 * np.pi
        at = positions[body.index]
        # the lowest one above the lower limit, and the highest below the upper one
        up = at + turn * np.ceil((low - LIMIT_SLACK - at) / turn)
        down = at - turn * np.ceil((at - high - LIMIT_SLACK) / turn)
        moved = up if np.isfinite(low) else down
        if low - LIMIT_SLACK <= moved[0] <= high + LIMIT_SLACK:
            turned[body.index] = np.clip(moved, low, high)
    return turned
