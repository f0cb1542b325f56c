"""Adjoints of loops.

A loop of fixed count is unrolled where that is short. Else its states are computed again on the way
back: in segments of about √n steps, the starts of all segments kept, and the states inside one
segment at a time. So n steps cost two more runs forward, and the memory of 2 √n states.

A loop to a tolerance has the adjoints of its fixed point (`fixed_point.py`); where these depend on
the way there, a branch takes it as a loop of fixed count, whose state stays once it is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np

from ..frontend.trace import iterate, trace
from ..ir.tape import Loop
from .fixed_point import settled_adjoints
from .forward import dense, spread
from .replay import array, branched, f, in_loop, outputs_varying, pieces, replay, scalars

UNROLLED = 500  # instructions of all steps up to which a loop is unrolled: few beside a robot's


def loop_adjoints(
    reverse: Callable[..., Any], loop: Loop, start: list[Any], done: list[Any],
    marks: Sequence[bool], weights: list[Any], rows: int,
) -> list[Any]:  # fmt: skip
    """The adjoints of the values that a loop starts from, for those that are marked; `done` are
    the loop's results and `weights` theirs, `reverse` is what gives adjoints of its step."""
    inside, _ = in_loop(loop, marks)
    step = _Step(reverse, loop, inside, rows)
    n = loop.state_size
    x, p = start[:n], start[n:]
    w = dense(weights[:n], inside[0], rows)
    if loop.tolerance is None:
        dx, dp = _fixed_count(step, loop.count, x, p, w)
    else:
        at_end, dp = step.residual_adjoints(done[:n], p, weights[n : n + loop.residual_size])
        w = [a + b for a, b in zip(w, at_end)]
        dx, more, alone = settled_adjoints(step, x, done[:n], p, w)
        dp = [a + b for a, b in zip(dp, more)]
        dx, dp = _through_all(step, alone, x, p, dx, dp)
    parameters = [mark for part in inside[1:] for mark in part]
    return [*spread(dx, inside[0], rows), *spread(dp, parameters, rows)]


class _Step:
    """A loop's step backwards, for what varies in it, in lists without gaps."""

    def __init__(self, reverse: Callable[..., Any], loop: Loop, marks: list[Any], rows: int):
        self.reverse, self.loop = reverse, loop
        self.marks, self.directions = marks, rows
        self.parameter_size = rows * sum(sum(part) for part in marks[1:])

    def adjoints(
        self, x: list[Any], p: list[Any], weights: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """(x̄, p̄) from weights on the next state."""
        given = [spread(weights, self.marks[0], self.directions)]
        given += [None] * (len(self.loop.step.outputs) - 1)
        return self._back(x, p, given)

    def residual_adjoints(
        self, x: list[Any], p: list[Any], weights: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """(x̄, p̄) from weights on the residual."""
        marked = outputs_varying(self.loop.step, self.marks)[1]
        weights = [w if mark else None for w, mark in zip(weights, marked)]
        return self._back(x, p, [None, weights])

    def _back(self, x: list[Any], p: list[Any], weights: list[Any]) -> tuple[list[Any], list[Any]]:
        parts = pieces(self.loop, [*x, *p])
        _, found = self.reverse(self.loop.step, parts, weights, self.marks, self.directions)
        packed = [dense(t, mark, self.directions) for t, mark in zip(found, self.marks)]
        return packed[0], list(chain(*packed[1:]))


def _through_all(
    step: _Step, alone, x: list[Any], p: list[Any], dx: list[Any], dp: list[Any]
) -> tuple[list[Any], list[Any]]:
    """(x̄, p̄) of a loop to a tolerance from the adjoints of its end: those where `alone`."""
    loop, n = step.loop, len(dx)
    shapes = [given.shape for given in loop.step.inputs]

    def once(x, *parameters):
        parts = [scalars(x), *map(scalars, parameters)]
        following, residual = replay(loop.step, parts)[:2]
        going = [f.lt(loop.tolerance, f.fabs(r)) for r in residual]
        open_still = reduce(lambda a, b: f.make("or", a, b), going, np.float64(0.0))
        return array([f.select(open_still, a, b) for a, b in zip(following, parts[0])])

    def backwards() -> list[Any]:
        stepwise = Loop(trace(once, shapes), loop.count)
        along = _Step(step.reverse, stepwise, step.marks, step.directions)
        back, more = _fixed_count(along, loop.count, x, p, dx)
        return [*back, *[a + b for a, b in zip(dp, more)]]

    done = branched(alone, [*dx, *dp], backwards)
    return done[:n], done[n:]


def _fixed_count(
    step: _Step, count: int, x: list[Any], p: list[Any], w: list[Any]
) -> tuple[list[Any], list[Any]]:
    """(x̄, p̄) of a state after `count` steps."""
    zeros = [np.float64(0.0)] * step.parameter_size
    if count * step.loop.step.total <= UNROLLED or count <= 2:
        return _unrolled(step, count, x, p, w)
    inner = math.isqrt(count)
    segments, rest = divmod(count, inner)
    starts = _states(step, segments, inner, x, p)
    back = _segment(step, rest, starts[0], p, [*w, *zeros]) if rest else [*w, *zeros]
    n, m = len(x), len(back)

    def segment(state, p):
        state, p = scalars(state), scalars(p)
        back, starts = state[:m], state[m:]
        return array([*_segment(step, inner, starts[:n], p, back), *starts[n:], *starts[:n]])

    kept = [value for state in starts[1:] for value in state]
    done = scalars(iterate(segment, array([*back, *kept]), array(p), count=segments))
    return done[: len(w)], done[len(w) : m]


def _states(step: _Step, number: int, inner: int, x: list[Any], p: list[Any]) -> list[list[Any]]:
    """The state after `number` times `inner` steps, and those before each, the latest first."""
    n = len(x)

    def further(states, p):
        states, p = scalars(states), scalars(p)
        x = scalars(_forward(step, inner, states[:n], p))
        return array([*x, *states[:-n]])

    start = [*x, *[np.float64(0.0)] * (n * number)]
    flat = scalars(iterate(further, array(start), array(p), count=number))
    return [flat[i : i + n] for i in range(0, len(flat), n)]


def _forward(step: _Step, count: int, x: list[Any], p: list[Any]):
    def once(x, p):
        return array(replay(step.loop.step, pieces(step.loop, [*scalars(x), *scalars(p)]))[0])

    return (
        once(array(x), array(p)) if count == 1 else iterate(once, array(x), array(p), count=count)
    )


def _segment(step: _Step, count: int, x: list[Any], p: list[Any], back: list[Any]) -> list[Any]:
    """x̄ and p̄ before `count` steps from state x, from those after them, one list each."""
    n, m, size = len(x), len(back), len(back) - step.parameter_size
    states = _states(step, count, 1, x, p)

    def backwards(state, p):
        state, p = scalars(state), scalars(p)
        back, states = state[:m], state[m:]
        dx, more = step.adjoints(states[:n], p, back[:size])
        total = [a + b for a, b in zip(back[size:], more)]
        return array([*dx, *total, *states[n:], *states[:n]])

    kept = [value for state in states[1:] for value in state]
    return scalars(iterate(backwards, array([*back, *kept]), array(p), count=count))[:m]


def _unrolled(
    step: _Step, count: int, x: list[Any], p: list[Any], w: list[Any]
) -> tuple[list[Any], list[Any]]:
    total = [np.float64(0.0)] * step.parameter_size
    states = [x]
    for _ in range(count - 1):
        states.append(replay(step.loop.step, pieces(step.loop, [*states[-1], *p]))[0])
    for x in reversed(states[:count]):
        w, more = step.adjoints(x, p, w)
        total = [a + b for a, b in zip(total, more)]
    return w, total
