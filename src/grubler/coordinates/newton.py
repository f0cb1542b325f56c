"""One Newton step towards closed loops, as straight-line code on floats and symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, solve_general, symmetric

if TYPE_CHECKING:
    from ..mechanism.loops.base import Loop
    from ..typing import Array
    from .embedding import Embedding

LIMIT = 0.5  # rad or m: no joint moves further in one step, so that a poor guess does not leap


def newton_step(joint: Embedding, x: Array, hold: bool = True) -> tuple[Array, Array]:
    """The next positions of an implicit cluster and the residual at the present ones.

    With `hold` the independent joints stay; otherwise all joints move, each as little as possible.
    """
    positions = joint.positions(x)
    phi = equations(joint.loops, positions)
    K, _ = joint.constraint(positions, None)
    kept = list(joint.kept)
    K = K[kept]
    if hold:
        solved = solve_general(K[:, list(joint.dependent)], phi[kept], joint.order)
        move = joint._scatter(-solved, np.zeros(joint.nv))
    else:
        move = -(K.T @ LDL(symmetric(K @ K.T)).solve(phi[kept]))
    size = largest_entry(move)
    moved = joint.spanning.integrate(positions, move * (LIMIT / np.maximum(size, LIMIT)))
    return joint.spanning.stack(moved), beyond_slack(joint.loops, phi)


def beyond_slack(loops: tuple[Loop, ...], phi: Array) -> Array:
    """The residual without what round-off of the description leaves open of some rows."""
    slack = np.concatenate([np.broadcast_to(loop.slack, loop.rows) for loop in loops])
    if not slack.any():
        return phi
    rows = range(len(slack))
    return np.stack(
        [np.maximum(np.abs(phi[i]) - slack[i], 0.0) if slack[i] else phi[i] for i in rows]
    )


def equations(loops: tuple[Loop, ...], positions: dict[int, Array]) -> Array:
    """The rows of all loops that K derives from; `reversal` tells false assemblies."""
    return np.concatenate([loop.equations(positions) for loop in loops])


def reversal(loops: Any, positions: dict[int, Array]) -> Array | float:
    """Zero, or π where a loop is closed with its axes or frames half a turn off (rad)."""
    cosines = [loop.alignment(positions) for loop in loops]
    least = None
    for cosine in cosines:
        if cosine is not None:
            least = cosine if least is None else np.minimum(least, cosine)
    return 0.0 if least is None else np.where(least > 0.0, 0.0, np.pi)


def largest_entry(x: Array) -> Array | float:
    """The largest |x_i| of a vector, on floats and symbols."""
    size = np.abs(x[0])
    for i in range(1, x.shape[0]):
        size = np.maximum(size, np.abs(x[i]))
    return size
