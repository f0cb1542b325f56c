"""Proximal iterations for rank-deficient constraints, on the inverse operational-space inertia.

    (Λ⁻¹ + μ) Δλ = -(J a(λ) + l + R λ),  λ <- λ + Δλ

Each step is a proximal point step, and the fixed point does not depend on μ: redundant rows are
resolved with the multipliers of least norm, at a rate μ / (μ + σ) for an eigenvalue σ of Λ⁻¹. Rows
that no acceleration can satisfy are met in the sense of least squares; their part of the
multipliers, which moves nothing, then grows with the number of steps.

| code  | meaning                                                         |
|-------|-----------------------------------------------------------------|
| Y, y  | L⁻ᵀ J', L⁻ᵀ (tau - h), as in LTL                                |
| mu    | μ = `damping` times the mean diagonal of Λ⁻¹                    |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, symmetric
from ..errors import InputError
from .jacobian import by_block, softness
from .ltl import Leaves, joint_space
from .rows import gathered

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Wanted


def proximal(
    model: Model, q: Array, v: Array, tau: Array, constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None, desired: Wanted | None = None, damping: float = 1e-7,
    iterations: int = 6,
) -> Any:  # fmt: skip
    """(a, multipliers) after a fixed number of proximal steps."""
    whole = isinstance(iterations, (int, np.integer)) and iterations > 0
    if not (whole and isinstance(damping, (int, float)) and 0 < damping < np.inf):
        raise InputError(
            f"proximal takes damping > 0 and a number of iterations, not {damping} and {iterations}"
        )
    M, J, force, l, rows = joint_space(model, q, v, tau, constraints, f_ext, desired)
    factor = Leaves(M)
    y = factor.forward(force)
    if not rows:
        return factor.backward(y), np.zeros(0)
    Y = factor.forward(J.T)
    R = np.diag(softness(rows))
    inverse_osim = symmetric(Y.T @ factor.scale(Y)) + R
    n = inverse_osim.shape[0]
    mu = (damping / n) * sum((inverse_osim[i, i] for i in range(1, n)), inverse_osim[0, 0])
    damped = LDL(inverse_osim + mu * np.eye(n))
    right = -(l + Y.T @ factor.scale(y))
    multipliers = damped.solve(right)
    for _ in range(iterations - 1):
        multipliers = multipliers + damped.solve(right - inverse_osim @ multipliers)
    a = factor.backward(y + Y @ multipliers)
    return a, gathered(rows, by_block(rows, multipliers))
