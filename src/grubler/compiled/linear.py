"""A function's outputs with tangents and adjoints, on lists of elements.

    push    ẏ = J ẋ        pull    x̄ = Jᵀ ȳ        several directions or rows at once

Its variables are arguments, then parameters, then the tangent coordinates ξ of its configurations:
f(q ⊕ ξ, v, ..., mass, ...), and derivatives by a configuration are those by its ξ.

A function y = f(x) that solves an equation r(x, y) = 0 has the derivatives of the equation,

    ẏ = -(∂r/∂y)⁻¹ (∂r/∂x) ẋ        x̄ = -(∂r/∂x)ᵀ (∂r/∂y)⁻ᵀ ȳ,

in fewer operations where r is much shorter: forward dynamics solve inverse dynamics' equation,
with ∂r/∂y = M (`algorithms/implied.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import compiler
from ..algorithms.implied import Implied
from ..algorithms.retraction import retraction
from ..compiler.differentiate import forward, reverse
from ..compiler.differentiate.replay import array, scalars
from ..compiler.ir.tape import Tape
from ..compiler.passes.simplify import simplify
from .problem import Problem

if TYPE_CHECKING:
    from ..typing import Array


def traced(fn: Callable[..., Any], shapes: Any, names: Any) -> tuple[Tape, list[Any]]:
    """A function's tape, in few instructions, and the values of a trace around it as its last
    argument, where it uses any."""
    around: list[Any] = []
    tape = simplify(compiler.trace(fn, shapes, names, around=around))
    return tape, [scalars(values) for values in around]


def linear(problem: Problem, moved: Sequence[int], order: int) -> Linear:
    """The function of a problem, whose arguments at the places `moved` are configurations that
    derivatives are taken by; exact to first or second order in ξ."""
    given = getattr(problem.fn, "implied_by", None)
    implied = given and given(problem.options)
    return Solved(problem, moved, order, implied) if implied else Linear(problem, moved, order)


class Linear:
    """A function by its own tape."""

    moved: tuple[int, ...]
    order: int
    tape: Tape
    around: list[Any]

    def __init__(self, problem: Problem, moved: Sequence[int], order: int):
        self.moved, self.order = tuple(moved), order
        self.shapes: list[Any] = [*problem.shapes, *[(problem.model.nv,)] * len(moved)]
        self.sizes: list[int] = [int(np.prod(shape, dtype=int)) for shape in self.shapes]
        self._trace(problem)
        self.closed: bool = not self.around  # whether it can be kept: it uses no trace around it

    def _trace(self, problem: Problem) -> None:
        def fn(*arrays):
            return problem(*self.arguments(problem, arrays))

        fn.__name__ = problem.name
        self.tape, self.around = traced(fn, self.shapes, None)
        self.outputs: tuple[Array, ...] = self.tape.outputs

    def arguments(self, problem: Problem, arrays: Sequence[Any]) -> list[Any]:
        """The arguments of the problem from the variables: configurations moved by their ξ."""
        n = len(problem.names)
        found = list(arrays[:n])
        for i, xi in zip(self.moved, arrays[n:]):
            found[i] = retraction(problem.model, found[i], xi, self.order)
        return found

    def push(
        self, problem: Problem, x: list[Any], tangents: Sequence[Any], directions: int
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """(outputs, their tangents) from those of the variables."""
        given = [*tangents, *[None] * len(self.around)]
        return forward(self.tape, [*x, *self.around], given, directions)

    def pull(
        self, problem: Problem, x: list[Any], weights: Sequence[Any], places: Any, rows: int
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """(outputs, adjoints of the variables at some places) from weights on the outputs."""
        outputs, found = reverse(
            self.tape, [*x, *self.around], weights, self._wanted(places, self.tape), rows
        )
        return outputs, [found[place] for place in places]

    @staticmethod
    def _wanted(places, tape: Tape) -> list[list[bool]]:
        return [[i in places] * given.size for i, given in enumerate(tape.inputs)]


class Solved(Linear):
    """A function by the tape of the equation that it solves, the last variable is the solution."""

    tape: Tape
    around: list[Any]

    def __init__(self, problem: Problem, moved: Sequence[int], order: int, implied: Implied):
        self.implied = implied
        super().__init__(problem, moved, order)

    def _trace(self, problem: Problem) -> None:
        def residual(*arrays):
            *arrays, y = arrays
            return problem.call(self.implied.residual, self.arguments(problem, arrays), a=y)

        residual.__name__ = problem.name
        shape = (problem.model.nv,)
        self.tape, self.around = traced(residual, [*self.shapes, shape], None)
        self.outputs: tuple[Array, ...] = self.tape.outputs

    def push(
        self, problem: Problem, x: list[Any], tangents: Sequence[Any], directions: int
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        arguments, y = self._solution(problem, x)
        given = [*tangents, None, *[None] * len(self.around)]
        _, (rates,) = forward(self.tape, [*x, y, *self.around], given, directions)
        return [y], [self._solved(problem, arguments, rates, directions)]

    def pull(
        self, problem: Problem, x: list[Any], weights: Sequence[Any], places: Any, rows: int
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        arguments, y = self._solution(problem, x)
        mu = self._solved(problem, arguments, weights[0] or [None] * len(y), rows)
        wanted = self._wanted(places, self.tape)
        _, found = reverse(self.tape, [*x, y, *self.around], [mu], wanted, rows)
        return [y], [found[place] for place in places]

    def _solution(self, problem: Problem, x: list[Any]) -> tuple[list[Any], list[Any]]:
        arrays = [array(values, shape) for values, shape in zip(x, self.shapes)]
        arguments = self.arguments(problem, arrays)
        return arguments, scalars(problem(*arguments))

    def _solved(
        self, problem: Problem, arguments: list[Any], b: list[Any], columns: int
    ) -> list[Any]:
        """-(∂r/∂y)⁻¹ b of each column, element by element: ∂r/∂y is symmetric."""
        solve, solutions = problem.call(self.implied.inverse, arguments), []
        for i in range(columns):
            column = [None if t is None else t[i] for t in b]
            if all(value is None for value in column):
                solutions.append([None] * len(b))
                continue
            column = [np.float64(0.0) if value is None else -value for value in column]
            solutions.append(scalars(solve(array(column))))
        found = [list(row) for row in zip(*solutions)]
        return [None if all(v is None for v in row) else row for row in found]
