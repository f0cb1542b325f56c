"""Derivatives of loops to a tolerance: those of the fixed point x = s(x, p) that the loop ends at.

    dx = A dx + B dp,   A = ∂s/∂x, B = ∂s/∂p   at the fixed point

A may have the eigenvalue 1. Coordinates that a step does not change, such as the independent joints
while loops are closed, keep the derivative dx_0 that they started with. The equation is therefore
solved by its own iteration,

    dx ← A dx + B dp   from dx_0;        backwards   λ ← Aᵀ λ from x̄,  p̄ = Σ Bᵀ λ,  x̄_0 = λ

which converges where the loop does. For a step of Newton's method A is zero except for unchanged
coordinates, and one iteration is enough. A and B are evaluated one step after the loop's last: the
state there is more exact than the loop's tolerance.

Derivatives are NaN where this iteration does not converge, since the step does not contract, and
where one more step of the loop still moves its state: it has ended somewhere else.

The fixed point may depend on the start by more than the unchanged coordinates. Examples are steps
of least norm from an open loop, and a ball joint that is partly independent, since rotations do not
commute. Tangents are exact there, too: they pass through the loop's own steps before the iteration.
Adjoints check at the start that Aᵀ λ = λ and Bᵀ λ = 0. Where these fail, a branch goes back through
the steps one by one (`loops.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..frontend.trace import iterate, precision
from .replay import array, f, pieces, replay, scalars

if TYPE_CHECKING:
    from ...algebra.symbolic import Scalar

# Powers of the precision, for changes relative to the largest entry:
SETTLED = 0.85  # one that ends the iteration
ACCEPTED = 0.55  # one that is accepted where it does not get that far
LEFT_ALONE = 0.8  # one at the start up to which a step leaves λ alone
AT_REST = 0.25  # a change of the state by one more step, relative to its largest entry or 1


def _steps(loop) -> int:
    """A linear iteration converges as fast as the loop, from a change of order one."""
    return 2 * loop.count + 20


def settled_tangents(
    step: Any, start: list[Any], x: list[Any], dx: list[Any], p: list[Any], dp: list[Any]
) -> list[Any]:
    """The limit of dx ← A dx + B dp from the loop's last tangents; `start` are its first ones."""
    if not dx:
        return dx
    further = replay(step.loop.step, pieces(step.loop, [*x, *p]))[0]  # one step more
    k = step.directions

    def linear(dx, x, p, dp, scale):
        before, scale = scalars(dx), scalars(scale)
        _, (after, *_) = step.tangents(scalars(x), before, scalars(p), scalars(dp))
        return array(after), _changes(before, after, scale)

    dx, left, _ = iterate(
        linear, array(dx), array(further), array(p), array(dp), _sizes(start, k),
        count=_steps(step.loop), tolerance=precision() ** SETTLED,
    )  # fmt: skip
    return _accepted(scalars(dx), scalars(left), _at_rest(x, further))


def settled_adjoints(
    step: Any, x0: list[Any], x: list[Any], p: list[Any], weights: list[Any]
) -> tuple[list[Any], Any, bool] | tuple[list[Any], list[Any], Any | Scalar | Any]:
    """(λ, Σ Bᵀ λ, whether x̄_0 = λ) from weights on the state: the limit of λ ← Aᵀ λ."""
    zeros = [np.float64(0.0)] * step.parameter_size
    if not weights:
        return weights, zeros, True
    further = replay(step.loop.step, pieces(step.loop, [*x, *p]))[0]  # one step more
    n, k = len(weights), step.directions

    def linear(both, x, p, scale):
        both, scale = scalars(both), scalars(scale)
        before, total = both[:n], both[n:]
        after, more = step.adjoints(scalars(x), scalars(p), before)
        total = [a + b for a, b in zip(total, more)]
        return array([*after, *total]), _changes(before, after, scale)

    scale = _sizes(weights, k)
    done, left, _ = iterate(
        linear, array([*weights, *zeros]), array(further), array(p), scale,
        count=_steps(step.loop), tolerance=precision() ** SETTLED,
    )  # fmt: skip
    done = scalars(done)
    at_start, more = step.adjoints(x0, p, done[:n])
    moved = scalars(_changes(done[:n], at_start, scalars(scale)))
    sizes = [f.fmax(a, b) for a, b in zip(scalars(scale), scalars(_sizes(done[n:], k)))]
    passed = [_ratio(a, b) for a, b in zip(scalars(_sizes(more, k)), sizes)]
    done = _accepted(done, scalars(left), _at_rest(x, further))
    alone = [f.le(f.fmax(a, b), precision() ** LEFT_ALONE) for a, b in zip(moved, passed)]
    return done[:n], done[n:], _all(alone)


def _at_rest(x: list[Any], further: list[Any]):
    """Whether the loop's state is where one more step leaves it."""
    (moved,) = scalars(_changes(x, further, [np.float64(1.0)]))
    return f.le(moved, precision() ** AT_REST)


def _changes(before: list[Any], after: list[Any], scale: list[Any]):
    """The largest change in each direction, relative to the largest entry, at least `scale`."""
    k = len(scale)
    moved = scalars(_sizes([b - a for a, b in zip(before, after)], k))
    sizes = scalars(_sizes(after, k))
    return array([_ratio(x, f.fmax(y, z)) for x, y, z in zip(moved, sizes, scale)])


def _sizes(x: list[Any], k: int):
    """The largest entry in each of k directions."""
    sizes = [np.float64(0.0)] * k
    for i, value in enumerate(x):
        size = f.fabs(value)
        sizes[i % k] = size if i < k else f.fmax(sizes[i % k], size)
    return array(sizes)


def _all(conditions: list[Any]):
    first, *rest = conditions
    for condition in rest:
        first = f.make("and", first, condition)
    return first


def _ratio(x, y):
    """x / y, and 0 where both are 0."""
    return x / f.select(f.eq(y, 0.0), 1.0, y)


def _accepted(values: list[Any], left: list[Any], at_rest) -> list[Any]:
    """Values of several directions, NaN where more is left of a direction than is accepted, and
    everywhere unless the state is at rest."""
    good = [f.make("and", at_rest, f.le(x, precision() ** ACCEPTED)) for x in left]
    k = len(good)
    return [f.select(good[i % k], x, np.float64(np.nan)) for i, x in enumerate(values)]
