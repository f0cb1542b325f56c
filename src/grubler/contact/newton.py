"""A step of Newton's method for the contact problem, in the modes that a sweep has found.

With the modes given, the law of every point is an equation W u + V λ = r, and u = G λ + g:

| mode  | equations                                                                    |
|-------|------------------------------------------------------------------------------|
| open  | λ = 0                                                                        |
| stick | u + R (λ - λ_before) = 0                                                     |
| slip  | u_n = 0, d·λ_T = μ λ_n, e·u_T + (‖u_T‖ / ‖λ_T‖) e·λ_T = 0                     |

d is the direction of λ_T, e the one across. The last equation is the derivative of Coulomb's law
by the direction of slip: friction across it is viscous, with ‖u_T‖ / ‖λ_T‖ = α A_nn (`cone.py`). So
the steps converge quadratically where the modes are right. R is proximal: it makes the impulses of
a rigid patch unique, those next to the impulses before, and vanishes where they no longer change.

A step is taken only where it lowers the natural map, or else the sweep's result stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import joined, solve_general
from ..compiler import precision
from .cone import OPEN, SLIP, tiny
from .problem import JointLaw, Problem

if TYPE_CHECKING:
    pass

PROXIMAL = 1e-2  # times the square root of the precision, times the mean diagonal of a block's G


def better(problem: Problem, x: list[Any], roots: list[Any], modes: Any) -> list[Any]:
    """The impulses by block after a step, or those given where these are nearer to the solution.

    Two steps are tried: the whole one, and as far as no sticking point leaves its cone. The second
    one finds which points of a rigid patch slip, where not all of them can stick: their impulses
    against each other grow until one is at the edge.
    """
    whole = _solved(problem, x, roots, modes)
    share = 1.0
    for law, old, new, mode in zip(problem.laws, x, whole, modes, strict=True):
        if not isinstance(law, JointLaw):
            sticks = np.logical_and(mode > OPEN, mode < SLIP)
            share = np.minimum(share, np.where(sticks, _inside(law.friction, old, new - old), 1.0))
    part = [old + share * (new - old) for old, new in zip(x, whole, strict=True)]
    best = x
    for found in (whole, part):
        ahead = nearer(problem, found, best)
        best = [np.where(ahead, new, old) for new, old in zip(found, best, strict=True)]
    return best


def _inside(mu, x, d):
    """The largest t <= 1 with x + t d in the cone, for an x in it: a t² + 2 b t + c >= 0."""
    a = mu * mu * (d[2] * d[2]) - d[0] * d[0] - d[1] * d[1]
    b = mu * mu * (x[2] * d[2]) - x[0] * d[0] - x[1] * d[1]
    c = np.maximum(mu * mu * (x[2] * x[2]) - x[0] * x[0] - x[1] * x[1], 0.0)
    discriminant = b * b - a * c
    below = np.sqrt(np.maximum(discriminant, 0.0)) - b
    meets = np.logical_and(discriminant >= 0.0, below > c)
    return np.where(meets, c / np.where(meets, below, 1.0), 1.0)


def nearer(problem: Problem, found: list[Any], than: list[Any]) -> Any:
    """Whether impulses leave less of the natural map; false where they are not finite."""
    new, old = problem.residual(found), problem.residual(than)
    return new @ new < old @ old


def _solved(problem: Problem, x, roots, modes):
    """The impulses by block that solve the equations of the modes."""
    W, V, r = [], [], []
    for i, law in enumerate(problem.laws):
        equations = _joint if isinstance(law, JointLaw) else _point
        size = problem.size(i)
        soft = PROXIMAL * precision() ** 0.5 * size
        for rows, new in zip((W, V, r), equations(law, x[i], roots[i], modes[i], size, soft)):
            rows.append(new)
    G, _ = problem.dense()
    G = problem.split(G)
    sizes = [law.rows for law in problem.laws]
    matrix, right = [], []
    for i, (w, v, target) in enumerate(zip(W, V, r, strict=True)):
        own = [v if j == i else np.zeros((sizes[i], n)) for j, n in enumerate(sizes)]
        matrix.append(w @ G[i] + np.concatenate(own, axis=1))
        right.append(target - w @ problem.g[i])
    return problem.split(solve_general(np.concatenate(matrix), joined(right)))


def _point(law, x, root, mode, size, soft):
    """(W, V, r) of a point, its slip rows written in the axes t1, t2 so that pivots stay large."""
    opened, slips = mode <= OPEN, mode >= SLIP
    length = np.sqrt(x[0] * x[0] + x[1] * x[1] + tiny())
    d = np.stack([x[0], x[1]]) * (1.0 / length)
    along = np.stack([np.stack([d[0] * d[0], d[0] * d[1]]), np.stack([d[0] * d[1], d[1] * d[1]])])
    across = np.eye(2) - along
    zero = np.zeros((2, 2))
    W_T = np.where(opened, zero, np.where(slips, across, np.eye(2)))
    viscous = size * along + (root * size) * across
    V_T = np.where(opened, size * np.eye(2), np.where(slips, viscous, soft * np.eye(2)))
    pull = np.where(slips, -law.friction * size * d, np.zeros(2))
    sticks = np.logical_not(np.logical_or(opened, slips))
    r_T = np.where(sticks, soft * x[:2], np.zeros(2))
    W_n, V_n = np.where(opened, 0.0, 1.0), np.where(opened, size, soft)
    r_n = np.where(opened, 0.0, soft * x[2])
    W = np.stack([joined([W_T[0], np.zeros(1)]), joined([W_T[1], np.zeros(1)]),
                  np.stack([0.0, 0.0, 1.0]) * W_n])  # fmt: skip
    V = np.stack([joined([V_T[k], np.stack([pull[k]])]) for k in range(2)]
                 + [np.stack([0.0, 0.0, 1.0]) * V_n])  # fmt: skip
    return W, V, joined([r_T, np.stack([r_n])])


def _joint(law, x, held, mode, size, soft):
    """A joint's velocity is fixed, or its impulse is."""
    fixed = np.logical_and(mode > OPEN, mode < SLIP)
    W, V = np.where(fixed, 1.0, 0.0), np.where(fixed, soft, size)
    r = np.where(fixed, held + soft * x[0], size * x[0])
    return np.stack([np.stack([W])]), np.stack([np.stack([V])]), np.stack([r])


__all__ = ["better", "nearer"]
