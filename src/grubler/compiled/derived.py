"""A derivative of a function, in the convention of the algorithms: fn(model, q, v, ...)."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import compiler
from ..algebra.symbolic import is_symbolic
from ..algorithms.checks import check_configuration
from ..arguments import is_numbers, shown
from ..compiler.differentiate import NoDerivative, forward
from ..compiler.differentiate.replay import array, scalars
from ..errors import InputError
from ..model import Model
from ..model.parameters import parameter_values
from .linear import Linear, linear, traced
from .problem import Problem


@dataclass(frozen=True, eq=False)
class Product:
    """A derivative of a function, in the convention of the algorithms."""

    kind: str
    fn: Callable[..., Any]
    names: tuple[str, ...]
    wrt: tuple[str, ...]
    configurations: tuple[str, ...]
    shapes: dict[str, tuple[int, ...]]
    options: dict[Any, Any]
    value: bool
    mode: str
    weights: tuple[str, ...] = ()
    _kept: weakref.WeakKeyDictionary = field(
        default_factory=weakref.WeakKeyDictionary, repr=False, metadata={"fingerprint": False}
    )

    @property
    def __name__(self) -> str:
        return f"{self.kind}_{getattr(self.fn, '__name__', 'f')}"

    @property
    def __doc__(self) -> str:
        of = getattr(self.fn, "__name__", "f")
        return f"The {self.kind} of {of} by {', '.join(self.wrt)}: see grubler.{self.kind}."

    def __repr__(self) -> str:
        return f"<{self.kind} of {getattr(self.fn, '__name__', 'f')} by {', '.join(self.wrt)}>"

    def __getstate__(self) -> dict[Any, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_kept"}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        self.__dict__.update(state, _kept=weakref.WeakKeyDictionary())

    @property
    def derivative_of(self) -> tuple[Any, ...]:
        """What a compiled function's key must tell apart."""
        return (self,)

    @property
    def directions(self) -> tuple[str, ...]:
        """The arguments that are directions."""
        if self.kind not in ("jvp", "hvp"):
            return ()
        prefix, taken = "d", {*self.names, *self.weights}
        while any(f"{prefix}_{name}" in taken for name in self.wrt):
            prefix += "d"
        return tuple(f"{prefix}_{name}" for name in self.wrt)

    @property
    def __signature__(self) -> inspect.Signature:
        names = ["model", *self.names, *self.weights, *self.directions]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in names])

    def derivative_shapes(self, model: Model) -> dict[str, tuple[int, ...]]:
        """The shapes of its arguments, by name."""
        problem = self._problem(model)
        known = dict(zip(problem.names, problem.shapes))
        tangents = {n: (model.nv,) if n in self.configurations else known[n] for n in self.wrt}
        found = {name: known[name] for name in self.names}
        found |= dict(zip(self.directions, (tangents[name] for name in self.wrt)))
        if self.weights:
            outputs = self._linear(model, problem, 1).outputs
            found |= {n: out.shape or (1,) for n, out in zip(self.weights, outputs)}
        return found

    def __call__(self, model: Model, *arrays: Any, **named: Any) -> Any | Any | tuple[Any, ...]:
        """The derivative at the arguments given: numbers, or symbols."""
        try:
            given = self.__signature__.bind(model, *arrays, **named).arguments
        except TypeError as error:
            names = ", ".join(self.__signature__.parameters)
            raise InputError(f"{self.__name__}({names}): {error}") from None
        shapes = self.derivative_shapes(model)
        given = {name: self._checked(model, name, x, shapes[name]) for name, x in given.items()
                 if name != "model"}  # fmt: skip
        x = [scalars(given[name]) for name in self.names]
        x += [scalars(parameter_values(model, name)) for name in self._parameters]
        x += [[np.float64(0.0)] * model.nv for _ in self._moved]
        w = [scalars(given[name]) for name in self.weights]
        d = [scalars(given[name]) for name in self.directions]
        problem = self._problem(model)
        try:
            fn = self._linear(model, problem, 1)
            outputs, found = getattr(self, f"_{self.kind}")(problem, fn, x, w, d)
        except NoDerivative as error:
            raise NoDerivative(f"'{problem.name}' has no {self.kind}: {error}") from None
        if self.value:
            shapes = [out.shape for out in (fn.outputs if self.kind != "hvp" else ())]
            shapes = shapes or [fn.shapes[p] for p in self._places()]
            found = [*map(_shaped, outputs, shapes), *found]
        return found[0] if len(found) == 1 else tuple(found)

    # the function as a tape of arguments, parameters, tangent coordinates

    @property
    def _parameters(self) -> list[str]:
        return [name for name in self.wrt if name not in self.names]

    @property
    def _moved(self) -> list[str]:
        """The configurations among `wrt`."""
        return [name for name in self.wrt if name in self.names and name in self.configurations]

    def _problem(self, model: Model) -> Problem:
        return Problem(
            self.fn, model, self.names, self._parameters, self.shapes, dict(self.options)
        )

    def _places(self) -> list[int]:
        """Where the variables that `wrt` names stand among the tape's arguments."""
        names = [*self.names, *self._parameters]
        moved = [len(names) + i for i in range(len(self._moved))]
        return [moved[self._moved.index(n)] if n in self._moved else names.index(n)
                for n in self.wrt]  # fmt: skip

    def _linear(self, model: Model, problem: Problem, order: int) -> Linear:
        key = order, compiler.precision()
        known = self._kept.setdefault(model, {})
        if key not in known:
            moved = [self.names.index(name) for name in self._moved]
            found = linear(problem, moved, order)
            if not found.closed:
                return found
            known[key] = found
        return known[key]

    # the four products

    def _jvp(self, problem, fn, x, w, d):
        tangents = _at(self._places(), [[[t] for t in direction] for direction in d], len(x))
        outputs, rates = fn.push(problem, x, tangents, 1)
        return outputs, [_shaped(_first(t), out.shape) for t, out in zip(rates, fn.outputs)]

    def _vjp(self, problem, fn, x, w, d):
        places = self._places()
        weights = [[[t] for t in given] for given in w] or [[[np.float64(1.0)]]]
        outputs, found = fn.pull(problem, x, weights, places, 1)
        return outputs, [_shaped(_first(t), fn.shapes[p]) for p, t in zip(places, found)]

    def _hvp(self, problem, fn, x, w, d):
        tape, around = self._gradient(problem, fn)
        directions = [[[t] for t in direction] for direction in d]
        tangents = _at(self._places(), directions, len(tape.inputs))
        outputs, rates = forward(tape, [*x, *w, *around], tangents, 1)
        found = [_shaped(_first(t), out.shape) for t, out in zip(rates, tape.outputs)]
        return outputs, found

    def _gradient(self, problem: Problem, fn: Linear) -> tuple[Any, ...]:
        """The gradient as a tape of the variables and the weights, exact to first order in ξ since
        the function is to second, and the values of a trace around it."""
        known, key = self._kept.setdefault(problem.model, {}), ("gradient", compiler.precision())
        if key in known:
            return known[key]
        second, n = self._linear(problem.model, problem, 2), len(fn.shapes)

        def gradient(*arrays):
            lists = [scalars(a) for a in arrays]
            return tuple(self._vjp(problem, second, lists[:n], lists[n:], ())[1])

        shapes = [*fn.shapes, *[out.shape or (1,) for _, out in zip(self.weights, fn.outputs)]]
        found = traced(gradient, shapes, None)
        if not found[1]:
            known[key] = found
        return found

    def _jacobian(self, problem, fn, x, w, d):
        places = self._places()
        columns = [fn.sizes[p] for p in places]
        rows = [out.size for out in fn.outputs]
        backwards = self.mode == "reverse" or (self.mode == "auto" and sum(columns) > sum(rows))
        if backwards:
            outputs, found = fn.pull(problem, x, _units(rows), places, sum(rows))
        else:
            tangents = _at(places, _units(columns), len(x))
            outputs, found = fn.push(problem, x, tangents, sum(columns))
        blocks = []
        for i, out in enumerate(fn.outputs):
            for j, width in enumerate(columns):
                a, b = sum(rows[:i]), sum(columns[:j])
                block = [_entry(found[j][c], a + r) if backwards else _entry(found[i][r], b + c)
                         for r in range(rows[i]) for c in range(width)]  # fmt: skip
                blocks.append(_shaped(block, (rows[i], width) if out.shape else (width,)))
        return outputs, blocks

    def _with_weights(self, model: Model) -> Product:
        """The same with a weight for each output; for none where the output is one number, and a
        Hessian is asked for."""
        outputs = self._linear(model, self._problem(model), 1).outputs
        if self.kind == "hvp" and [out.shape for out in outputs] == [()]:
            return self
        taken = {*self.names}
        names = ["w"] if len(outputs) == 1 else [f"w{i}" for i in range(len(outputs))]
        while taken & set(names):
            names = [f"w{name}" for name in names]
        fields = {k: v for k, v in self.__dict__.items() if k != "weights"}
        return Product(**fields, weights=tuple(names))

    def _checked(self, model: Model, name: str, x, shape: tuple[int, ...]):
        if not is_symbolic(x):
            if not is_numbers(x):
                raise InputError(f"{name} is {shown(x)}: give finite real numbers, shape {shape}")
            x = np.asarray(x, dtype=float)
            x = x.reshape(1) if shape == (1,) and x.shape == () else x
        if tuple(x.shape) != shape:
            raise InputError(f"{self.__name__}: {name} has shape {x.shape}, expected {shape}")
        if name in self.configurations and not is_symbolic(x):
            check_configuration(model, x)
        return x


def _at(places: list[int], values: list[Any], n: int) -> list[Any]:
    """A list of n, None but for values at their places."""
    found = dict(zip(places, values))
    return [found.get(i) for i in range(n)]


def _units(sizes: list[int]) -> list[list[Any]]:
    """For each element of arrays of these sizes the unit vector of all elements, None for 0."""
    total, at, out = sum(sizes), 0, []
    for size in sizes:
        one = [[np.float64(1.0) if j == at + i else None for j in range(total)]
               for i in range(size)]  # fmt: skip
        out.append(one)
        at += size
    return out


def _entry(found: list[Any] | None, i: int):
    return np.float64(0.0) if found is None or found[i] is None else found[i]


def _first(found: list[Any]) -> list[Any]:
    """The derivatives of one direction, zero where nothing depends."""
    return [_entry(t, 0) for t in found]


def _shaped(elements: list[Any], shape: tuple[int, ...]):
    out = array(elements, shape)
    return out if shape or is_symbolic(out) else out[()]
