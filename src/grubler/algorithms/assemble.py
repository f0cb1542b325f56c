"""Closing loops in straight-line code: Newton on the dependent joints, the independent ones held,

    x_d <- x_d - K_d⁻¹ φ(x)

or on all joints, by steps of least norm, for guesses whose independent joints are out of reach:

    x <- x - Kᵀ (K Kᵀ)⁻¹ φ(x),

one traced step in a loop node, until converged, each state of a batch for itself. Steps are limited
to half a radian or metre a joint, so that a poor guess does not leap to another branch. For a guess
that is far off, singular, or has no independent joints to hold, `Model.assemble` tries harder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..algebra.linalg import joined
from ..compiler import iterate
from ..coordinates.newton import newton_step, reversal

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


def assemble(
    model: Model, q: Array, tolerance: float = 1e-12, count: int = 50, hold: bool = True
) -> tuple[Array, Array | float]:
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
            gap = np.maximum(gap, reversal(cluster.loops, cluster.embedding.positions(x)))
        parts.append(x)
    return joined(parts), gap


__all__ = ["assemble", "newton_step", "reversal"]
