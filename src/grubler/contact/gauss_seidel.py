"""Projected block Gauss-Seidel with the exact solve of each block.

A sweep solves block after block with the newest impulses of the others. With few points, at most
about one a body, it converges in a few sweeps from the impulses of the step before. On rigid
patches, where the rows of G depend on each other, and on stacks of unequal masses it takes
hundreds: there steps of Newton's method take over (`newton.py`).

The sweeps keep the root α of every slipping point (`cone.py`), so that one Newton step a sweep
follows it; where the sweeps converge, so does α.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import joined
from ..compiler import iterate
from . import splitting
from .cone import STEPS
from .newton import better, nearer
from .problem import Problem

if TYPE_CHECKING:
    pass

COLD, WARM, FOLLOW = 4, 2, 1  # Newton steps for α: first sweep without or with a guess; the others


def sweeps(
    problem: Problem, start: list[Any], count: int, roots: list[Any] | None = None,
    newton: int = 0,
) -> tuple[list[Any], Any, list[Any]]:  # fmt: skip
    """(impulses by block, modes (blocks,), roots) after a fixed number of sweeps, and of steps of
    Newton's method with a sweep between two: straight-line code. `roots` are those of the step
    before."""
    solvers = [problem.local(i) for i in range(len(problem.laws))]
    x, modes = list(start), []
    guess = [None] * len(solvers) if roots is None else list(roots)
    for k in range(count):
        follow = k > 0 or roots is not None
        steps = FOLLOW if k > 0 else WARM if follow else COLD
        x, guess, modes = _sweep(problem, solvers, x, guess, steps, follow)
    for k in range(newton):
        if k:
            x, guess, modes = _sweep(problem, solvers, x, guess, FOLLOW, follow=True)
        x = better(problem, x, guess, modes)
    return x, joined([np.stack([m]) for m in modes]), guess


def to_tolerance(
    problem: Problem, start: list[Any], counts: tuple[int, int, int], tolerance: float
) -> tuple[list[Any], Any, list[Any], Any]:
    """(impulses by block, modes, roots, iterations): one sweep, and more until the natural map is
    within the tolerance, in m/s: at most counts[0] sweeps alone, then counts[1] with a step of
    Newton's method after each (`newton.py`), then counts[2] steps of ADMM (`splitting.py`). Loops
    in the generated code, which take no step where the one before has converged."""
    n, m = len(problem.laws), problem.rows
    solvers = [problem.local(i) for i in range(n)]
    x, guess, modes = _sweep(problem, solvers, start, [None] * n, STEPS)
    G, g = problem.dense()
    bounds = [np.stack([law.low, law.high]) for law in problem.laws if law.rows == 1]
    parameters = joined([*(G[i] for i in range(m)), g, *bounds])

    def step(state, parameters, newton: bool = False):
        inside = _restored(problem, parameters)
        solvers = [inside.local(i) for i in range(n)]
        x = inside.split(state[:m])
        residual = inside.residual(x)
        x, roots, modes = _sweep(inside, solvers, x, [state[m + i] for i in range(n)], STEPS)
        if newton:
            x = better(inside, x, roots, modes)
        return _state(x, roots, modes), residual

    def with_newton(state, parameters):
        return step(state, parameters, newton=True)

    found, taken = _state(x, guess, modes), 1.0
    for one, count in zip((step, with_newton), counts[:2], strict=True):
        found, _, more = iterate(one, found, parameters, count=count, tolerance=tolerance)
        taken = taken + more
    x, modes = problem.split(found[:m]), found[m + n : m + 2 * n]
    split, _, more = iterate(
        lambda state, parameters: splitting.step(_restored(problem, parameters), state),
        splitting.first_state(problem, x, modes), parameters, count=counts[2], tolerance=tolerance,
    )  # fmt: skip
    best = nearer(problem, problem.split(split[:m]), x)
    chosen = [np.where(best, new, old) for new, old in zip(problem.split(split[:m]), x)]
    roots = [found[m + i] for i in range(n)]
    return chosen, np.where(best, split[3 * m + 1 :], modes), roots, taken + more


def _state(x, guess, modes):
    """What the loop hands on: impulses, roots, modes."""
    zero = 0.0 * x[0][0]
    roots = [zero if alpha is None else alpha + zero for alpha in guess]
    return joined([*x, np.stack(roots), np.stack([mode + zero for mode in modes])])


def _restored(problem: Problem, parameters) -> Problem:
    """The problem from its stacked numbers, inside a loop."""
    m, sizes = problem.rows, [law.rows for law in problem.laws]
    at = np.cumsum([0, *sizes])
    G: list[list[Any]] = [[None] * len(sizes) for _ in sizes]
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            if problem.G[i][j] is not None:
                rows = [
                    parameters[r * m + at[j] : r * m + at[j + 1]] for r in range(at[i], at[i + 1])
                ]
                G[i][j] = np.stack(rows)
    g = [parameters[m * m + at[i] : m * m + at[i + 1]] for i in range(len(sizes))]
    laws, start = [], m * m + m
    for law in problem.laws:
        if law.rows == 1:
            law = replace(law, low=parameters[start], high=parameters[start + 1])
            start += 2
        laws.append(law)
    return Problem(G, g, laws)


def _sweep(problem: Problem, solvers, x, guess, steps: int, follow: bool = False):
    x, guess, modes = list(x), list(guess), []
    sums = problem.gathered(x)
    for i, solve in enumerate(solvers):
        b, before = problem.velocity(i, x, sums, leave=i), x[i]
        x[i], mode, guess[i] = solve(b, before, guess[i], steps, follow)
        sums = problem.regathered(sums, i, x[i] - before)
        modes.append(mode)
    return x, guess, modes


__all__ = ["sweeps", "to_tolerance"]
