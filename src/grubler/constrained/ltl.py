"""LTL: constrained dynamics by Featherstone's sparse factorization of the mass matrix (Sec. II-C).

M = Lᵀ D L is factorized leaves first, without fill-in; the constraints' Jacobian keeps its sparsity
in Y. O(n d² + m² d + m³).

| code | paper | meaning                                          | shape   |
|------|-------|--------------------------------------------------|---------|
| M    | M     | joint-space inertia, reordered leaves first      | (n, n)  |
| Y    | Y'    | L⁻ᵀ J' (7)                                       | (n, m)  |
| y    |       | L⁻ᵀ (tau - h)                                    | (n,)    |

Soft constraints enter the mass matrix instead, M + J' R⁻¹ J, whose pattern is that of M as long as
every constraint is with the world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, symmetric
from ..algorithms.c_crba import mass_matrix_of
from ..algorithms.c_rnea import joint_forces, net_forces
from ..algorithms.newton_euler import accelerated
from ..algorithms.projection import solve_from_leaves
from ..algorithms.sweep import outward
from .jacobian import by_block, jacobian_and_drift, softness
from .rows import constraint_rows, gathered, in_new_frames, independent_rows

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Wanted


def ltl(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
) -> Any:
    """(a, multipliers) by Y and the inverse operational-space inertia."""
    M, J, force, l, rows = joint_space(model, q, v, tau, constraints, f_ext, desired)
    if not rows:
        return solve_from_leaves(M, force), np.zeros(0)
    factor = Leaves(M)
    Y, y = factor.forward(J.T), factor.forward(force)  # (7)
    inverse_osim = symmetric(Y.T @ factor.scale(Y))  # (8)
    right = -(l + Y.T @ factor.scale(y))  # (5)
    multipliers = LDL(inverse_osim + np.diag(softness(rows))).solve(right)
    a = factor.backward(y + Y @ multipliers)
    return a, gathered(rows, by_block(rows, multipliers))


def ltl_soft(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
) -> Any:
    """(a, multipliers) of the soft Gauss principle in joint space."""
    M, J, force, l, rows = joint_space(model, q, v, tau, constraints, f_ext, desired)
    weight = 1.0 / softness(rows)
    weighted = np.stack([J[i] * weight[i] for i in range(len(weight))])
    M = symmetric(M + J.T @ weighted)
    a = solve_from_leaves(M, force - weighted.T @ l)
    multipliers = -weight * (J @ a + l)
    return a, gathered(rows, by_block(rows, multipliers))


def joint_space(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None,
    desired: Wanted | None,
) -> Any:
    """M, J, tau - h, l and the rows."""
    constraints, kept = in_new_frames(model, constraints, frozenset(f_ext or ()))
    sweep = outward(model, q, v, keep_frame=kept)
    motion = accelerated(sweep)
    rows = constraint_rows(sweep, constraints, desired, motion)
    rows = independent_rows(model, rows, constraints)
    force = tau - joint_forces(motion, net_forces(motion, f_ext))
    M = mass_matrix_of(sweep)
    if not rows:
        return M, None, force, None, rows
    J, l = jacobian_and_drift(sweep, rows)
    return M, J, force, l, rows


class Leaves:
    """M = Lᵀ D L, eliminated from the last coordinate: branches cause no fill-in (6)."""

    def __init__(self, M: Array):
        self.ldl: LDL = LDL(M[::-1, ::-1])

    def forward(self, b: Any) -> Any:
        """L⁻ᵀ b, in the order of elimination."""
        return self.ldl.half(b[::-1])

    def scale(self, y: Array) -> Any:
        """D⁻¹ y."""
        return self.ldl.scale(y)

    def backward(self, y: Array) -> Any:
        """L⁻¹ D⁻¹ y, in the order of the coordinates."""
        x = list(self.ldl.scale(y))
        for i in reversed(range(len(x))):
            x[i] = x[i] - sum((self.ldl.L[k][i] * x[k] for k in range(i + 1, len(x))), 0.0)
        return np.stack(x[::-1])
