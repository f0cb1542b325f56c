"""Symbols that behave like NumPy arrays, and derivatives of NumPy functions.

The only module that imports CasADi. Algorithms are written against NumPy alone; handed the arrays
made here they build an expression graph instead of numbers, which the compiler turns into code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import casadi
import numpy as np

from .errors import InputError

Array = np.ndarray  # a NumPy array, or a symbolic array with NumPy's semantics


def symbols(name: str, *shape: int):
    """A symbolic array with NumPy's semantics, of the given shape (one or two axes)."""
    if len(shape) == 1:
        # casadi.array reads a column as one element: hand it a row.
        x = casadi.array(casadi.SX.sym(name, 1, shape[0]), ndim=1)
    else:
        x = casadi.array(casadi.SX.sym(name, *shape), ndim=len(shape))
    assert x.shape == shape, (x.shape, shape)
    return x


def is_symbolic(*arrays) -> bool:
    """Whether any of the arguments carries symbols."""
    return any(isinstance(x, (casadi.ArrayInterface, casadi.SX)) for x in arrays)


def to_sx(x) -> casadi.SX:
    """The CasADi matrix of an array: a column for a 1-D array."""
    if not is_symbolic(x):
        return casadi.SX(casadi.DM(np.atleast_1d(np.asarray(x, dtype=float))))
    if isinstance(x, casadi.SX):
        return x
    matrix = casadi.SX(x.to_casadi())
    return matrix.T if x.ndim == 1 else matrix


def from_sx(matrix: casadi.SX, shape: tuple[int, ...]):
    """An array with NumPy's semantics and the given shape from a CasADi matrix."""
    matrix = casadi.densify(matrix)
    if len(shape) == 1:
        x = casadi.array(casadi.reshape(matrix, 1, shape[0]), ndim=1)
    elif len(shape) == 0:
        x = casadi.array(matrix, ndim=0)
    else:
        x = casadi.array(matrix, ndim=2)
    assert x.shape == shape, (x.shape, shape)
    return x


def trace(fn: Callable, shapes: Sequence[tuple[int, ...]], name: str = "f") -> casadi.Function:
    """The CasADi Function of a NumPy function: `fn` run once on symbols of the given shapes.

    One- and two-dimensional arguments; the outputs are those of `fn`, in order.
    """
    args = [symbols(f"x{i}", *shape) for i, shape in enumerate(shapes)]
    out = fn(*args)
    outputs = list(out) if isinstance(out, (tuple, list)) else [out]
    return casadi.Function(name, [to_sx(a) for a in args], [to_sx(o) for o in outputs])


class Differentiable:
    """A NumPy function R^n -> R^m with its value, Jacobian and directional second derivative.

    value(x) = f(x),  jacobian(x) = df/dx,  curvature(x, d) = d/dt (df/dx) d along dx/dt = d.
    Works on floats and on symbols alike; the derivatives are exact.
    """

    def __init__(self, fn: Callable, n: int):
        self.fn, self.n = fn, n

    @cached_property
    def _functions(self):
        x, d = casadi.SX.sym("x", self.n), casadi.SX.sym("d", self.n)
        try:
            f = to_sx(self.fn(from_sx(x, (self.n,))))
        except TypeError as error:
            raise InputError(
                f"the function {getattr(self.fn, '__name__', self.fn)!r} cannot be traced: {error}; "
                "build arrays with np.stack / np.concatenate instead of np.array, and use np.where "
                "instead of `if` on a value"
            ) from error
        J = casadi.jacobian(f, x)
        Jd = casadi.jtimes(f, x, d)
        curvature = casadi.jtimes(Jd, x, d)
        make = casadi.Function
        return make("f", [x], [f]), make("J", [x], [J]), make("c", [x, d], [curvature])

    @property
    def m(self) -> int:
        """The number of outputs."""
        return self._functions[0].size1_out(0)

    def value(self, x):
        return self._call(self._functions[0], (self.m,), x)

    def jacobian(self, x):
        return self._call(self._functions[1], (self.m, self.n), x)

    def curvature(self, x, d):
        return self._call(self._functions[2], (self.m,), x, d)

    @staticmethod
    def _call(function: casadi.Function, shape, *args):
        if is_symbolic(*args):
            return from_sx(function(*[to_sx(a) for a in args]), shape)
        return np.array(casadi.DM(function(*args)), dtype=float).reshape(shape)
