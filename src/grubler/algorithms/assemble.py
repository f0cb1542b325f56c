"""Closing loops in straight-line code: Newton on the dependent joints, the independent ones held,

    x_d <- x_d - K_d⁻¹ φ(x)

or on all joints, by steps of least norm, for guesses whose independent joints are out of reach:

    x <- x - Kᵀ (K Kᵀ)⁻¹ φ(x),

one traced step in a loop node, until converged, each state of a batch for itself. Steps are limited
to half a radian or metre a joint, so that a poor guess does not leap to another branch. For a guess
that is far off, singular, or has no independent joints to hold, `Model.assemble` tries harder.
"""

from __future__ import annotations

import numpy as np

from ..compiler import iterate
from ..linalg import LDL, joined, solve_general, symmetric

LIMIT = 0.5


def assemble(model, q, tolerance=1e-12, count=50, hold=True):
    """(q, gap): the configuration closed near q, and the largest residual left, in m or rad."""
    parts, gap = [], 0.0
    for cluster in model.clusters:
        x = q[cluster.q]
        if cluster.embedding.implicit:
            x, left, _ = iterate(
                lambda x, joint=cluster.embedding: newton_step(joint, x, hold), x,
                count=count, tolerance=tolerance,
            )  # fmt: skip
            for i in range(left.shape[0]):
                gap = np.maximum(gap, np.abs(left[i]))
            gap = np.maximum(gap, reversal(cluster, x))
        parts.append(x)
    return joined(parts), gap


def reversal(cluster, x):
    """Zero, or π where a loop is closed with its axes or frames half a turn off (rad)."""
    positions = cluster.embedding.positions(x)
    cosines = [loop.alignment(positions) for loop in cluster.loops]
    least = None
    for cosine in cosines:
        if cosine is not None:
            least = cosine if least is None else np.minimum(least, cosine)
    return 0.0 if least is None else np.where(least > 0.0, 0.0, np.pi)


def newton_step(joint, x, hold=True):
    """The next positions of an implicit cluster and the residual at the present ones."""
    positions = joint.positions(x)
    phi = np.concatenate([loop.equations(positions) for loop in joint.loops])
    K, _ = joint.constraint(positions, None)
    kept = list(joint.kept)
    K = K[kept]
    if hold:
        solved = solve_general(K[:, list(joint.dependent)], phi[kept], joint.order)
        move = joint._scatter(-solved, np.zeros(joint.nv))
    else:
        move = -(K.T @ LDL(symmetric(K @ K.T)).solve(phi[kept]))
    size = np.abs(move[0])
    for i in range(1, joint.nv_span):
        size = np.maximum(size, np.abs(move[i]))
    step = joint.split(move * (LIMIT / np.maximum(size, LIMIT)))
    moved = [
        body.joint.motion.integrate(positions[body.index], step[body.index])
        for body in joint.bodies
    ]
    return np.concatenate(moved), beyond_slack(joint.loops, phi)


def beyond_slack(loops, phi):
    """The residual without what round-off of the description leaves open of some rows."""
    slack = np.concatenate([np.broadcast_to(loop.slack, loop.rows) for loop in loops])
    if not slack.any():
        return phi
    rows = range(len(slack))
    return np.stack(
        [np.maximum(np.abs(phi[i]) - slack[i], 0.0) if slack[i] else phi[i] for i in rows]
    )
