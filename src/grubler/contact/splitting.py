"""A step of ADMM for the contact problem: slow, but it minds neither a singular G nor cycles.

    x = (G + ρ)⁻¹ (ρ y - z - g - s),   y = prox(x + z/ρ),   z = z + ρ (x - y)

with De Saxcé's correction s = μ‖u_T‖ on normal rows, of the step before, and the law's proximal
map: the projection onto the cone, or a joint's law against a body of inertia 1/ρ. ρ follows the
ratio of the residuals. It takes tens to hundreds of steps, and is the last resort, where sweeps and
Newton's steps have not converged: rigid patches at the edge of sticking, points that sweeps turn in
circles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, joined
from .cone import OPEN, SLIP, STICK, projected
from .problem import JointLaw, Problem, solve_joint

if TYPE_CHECKING:
    pass

UNEQUAL, CHANGE = 10.0, 1.2  # squared residuals further apart than the first change ρ
EDGE = 1e-6  # of μ λ_n: an impulse that near to the cone's surface counts as slipping


def first_state(problem: Problem, x: list[Any], modes: Any) -> Any:
    """The state of the loop: y, x, z, ρ, modes."""
    y = joined(x)
    size = sum((problem.size(i) for i in range(len(problem.laws))), 0.0)
    rho = np.stack([size * (1.0 / len(problem.laws)) + 0.0 * y[0]])
    return joined([y, y, 0.0 * y, rho, modes])


def step(problem: Problem, state: Any) -> tuple[Any, Any]:
    """(the next state, the residual of this one)."""
    m, n = problem.rows, len(problem.laws)
    y, z = problem.split(state[:m]), state[2 * m : 3 * m]
    rho = state[3 * m]
    G, g = problem.dense()
    residual = problem.residual(y)
    s = joined(
        [_correction(law, u) for law, u in zip(problem.laws, problem.velocities(y), strict=True)]
    )
    x = LDL(G + rho * np.eye(m)).solve(rho * state[:m] - z - g - s)
    wanted = problem.split(x + z * (1.0 / rho))
    following = [_prox(law, w, rho) for law, w in zip(problem.laws, wanted, strict=True)]
    modes = [_mode(law, own) for law, own in zip(problem.laws, following, strict=True)]
    new = joined(following)
    primal, dual = x - new, new - state[:m]
    primal, dual = primal @ primal, dual @ dual
    grown = np.where(primal > UNEQUAL * dual, CHANGE, 1.0)
    changed = rho * np.where(dual > UNEQUAL * primal, 1.0 / CHANGE, grown)
    return joined([new, x, z + rho * (x - new), np.stack([changed]), np.stack(modes[:n])]), residual


def _correction(law, u):
    if isinstance(law, JointLaw):
        return 0.0 * u
    slip = law.friction * np.sqrt(u[0] * u[0] + u[1] * u[1])
    return np.stack([0.0 * slip, 0.0 * slip, slip])


def _prox(law, w, rho):
    if isinstance(law, JointLaw):
        return np.stack([solve_joint(law, rho, 1.0 / rho, -rho * w[0])[0]])
    return projected(w, law.friction)


def _mode(law, x):
    if isinstance(law, JointLaw):
        return np.where(np.abs(x[0]) > 0.0, STICK, OPEN)
    t2, most = x[0] * x[0] + x[1] * x[1], law.friction * x[2]
    inside = t2 < (1.0 - EDGE) * most * most
    return np.where(x[2] > 0.0, np.where(inside, STICK, SLIP), OPEN)


__all__ = ["first_state", "step"]
