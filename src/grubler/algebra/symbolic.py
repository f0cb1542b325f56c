"""Symbols that behave like NumPy arrays, and derivatives of NumPy functions.

The only module that imports CasADi. Algorithms are written against NumPy alone; handed the arrays
made here they build an expression graph instead of numbers, which the compiler turns into code.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import casadi
import numpy as np

from ..errors import InputError

VERSION = f"CasADi {casadi.__version__}"  # of what simplifies expressions while they are built

Array = np.ndarray  # a NumPy array, or a symbolic array with NumPy's semantics


def symbols(name: str, *shape: int) -> Array:
    """A symbolic array with NumPy's semantics, of the given shape (one or two axes)."""
    if len(shape) == 1:
        # casadi.array reads a column as one element: hand it a row.
        x = casadi.array(casadi.SX.sym(name, 1, shape[0]), ndim=1)
    else:
        x = casadi.array(casadi.SX.sym(name, *shape), ndim=len(shape))
    assert x.shape == shape, (x.shape, shape)
    return x


def is_symbolic(*arrays: Any) -> bool:
    """Whether any of the arguments carries symbols."""
    return any(isinstance(x, (casadi.ArrayInterface, casadi.SX)) for x in arrays)


def is_zero(x: Array | float) -> bool:
    """Whether a scalar is zero at every state: the number zero, or an expression without symbols
    that is zero."""
    return casadi.SX(x.to_casadi()).is_zero() if is_symbolic(x) else bool(x == 0.0)


def cross(a: Array, b: Array) -> Array:
    """The cross product of two 3-vectors with symbols, in one call."""
    return casadi.array(casadi.cross(to_sx(a), to_sx(b)).T, ndim=1)


def skew(p: Array) -> Array:
    """The matrix of the cross product of a 3-vector with symbols, in one call."""
    return casadi.array(casadi.densify(casadi.skew(to_sx(p))), ndim=2)


def symmetric(M: Any) -> Array:
    """A matrix with symbols, its lower triangle replaced by the mirrored upper one."""
    M = M.to_casadi()
    return casadi.array(casadi.densify(casadi.triu(M) + casadi.triu(M, False).T), ndim=2)


def constant(x: Array) -> np.ndarray | None:
    """The numbers of an array in which no symbol is left, or None."""
    if not is_symbolic(x):
        return np.asarray(x)
    matrix = casadi.densify(casadi.SX(x.to_casadi()))
    if not matrix.is_constant():
        return None
    return np.array(casadi.DM(matrix), dtype=float).reshape(x.shape)


# Angles made from a cosine and a sine, by the node of their expression (kept alive with them).
_angles: OrderedDict[int, tuple[Any, ...]] = OrderedDict()


def angle_of(angle: Array | float, cosine: Array | float, sine: Array | float) -> Array | float:
    """`angle`, whose cosine and sine are known: `cos_sin` gives them back without computing them.

    A closed form finds directions; joints want their cosine and sine, and few want the angle.
    """
    if is_symbolic(angle):
        node = casadi.SX(angle.to_casadi())
        _angles[node.element_hash()] = (node, cosine, sine)
        if len(_angles) > 4096:
            _angles.popitem(last=False)
    return angle


def cos_sin(angle: Array | float, offset: float = 0.0) -> tuple[Array | float, Array | float]:
    """The cosine and the sine of an angle, or of one that is `offset` further."""
    known = None
    if is_symbolic(angle):
        known = _angles.get(casadi.SX(angle.to_casadi()).element_hash())
    if known is None:
        angle = angle + offset if offset else angle
        return np.cos(angle), np.sin(angle)
    _, c, s = known
    if not offset:
        return c, s
    return c * np.cos(offset) - s * np.sin(offset), s * np.cos(offset) + c * np.sin(offset)


def to_sx(x: Array) -> casadi.SX:
    """The CasADi matrix of an array: a column for a 1-D array."""
    if not is_symbolic(x):
        return casadi.SX(casadi.DM(np.atleast_1d(np.asarray(x, dtype=float))))
    if isinstance(x, casadi.SX):
        return x
    matrix = casadi.SX(x.to_casadi())
    return casadi.reshape(matrix, x.size, 1) if x.ndim == 1 else matrix


def from_sx(matrix: casadi.SX, shape: tuple[int, ...]) -> Array:
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


class Scalar:
    """An element of a symbolic array, for code that computes with thousands of them: its operators
    go to CasADi directly, seven times as fast as those of CasADi's own scalars."""

    __array_ufunc__ = None  # NumPy's numbers leave the operation to it
    __slots__ = ("node",)

    def __init__(self, node: casadi.SX):
        self.node: Any = node

    def __add__(self, other: Any) -> Scalar:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Scalar:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Scalar:
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> Scalar:
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return apply("mul", other, self)

    def __truediv__(self, other: Any) -> Scalar:
        return apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return apply("div", other, self)

    def __neg__(self) -> Scalar:
        return apply("neg", self)


def apply(op: str, *operands: Any) -> Scalar:
    """One of CasADi's operations, by its name, on one or two scalars or numbers."""
    nodes = [x.node if isinstance(x, Scalar) else float(x) for x in operands]
    make = casadi.SX.unary if len(nodes) == 1 else casadi.SX.binary
    return Scalar(make(_OPERATION_CODES[op], *nodes))


def elements(x: Array) -> list[Scalar]:
    """The elements of a symbolic array, row by row."""
    matrix = casadi.densify(casadi.SX(x.to_casadi()))
    matrix = matrix.T if x.ndim == 2 else matrix
    return [Scalar(node) for node in matrix.elements()]


def assembled(scalars: Sequence[Any], shape: tuple[int, ...]) -> Array | Array:
    """The array of a shape whose elements, row by row, are scalars or numbers."""
    if not any(isinstance(x, Scalar) for x in scalars):
        return np.array(scalars, dtype=float).reshape(shape)
    nodes = [x.node if isinstance(x, Scalar) else casadi.SX(float(x)) for x in scalars]
    column = casadi.vertcat(*nodes)
    return from_sx(casadi.reshape(column, *shape[::-1]).T if len(shape) == 2 else column, shape)


def trace(
    fn: Callable[..., Any], shapes: Sequence[tuple[int, ...]], name: str = "f"
) -> casadi.Function:
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

    fn: Callable[..., Any]
    n: int

    def __init__(self, fn: Callable[..., Any], n: int):
        self.fn, self.n = fn, n

    @cached_property
    def _functions(self):
        x, d = casadi.SX.sym("x", self.n), casadi.SX.sym("d", self.n)
        try:
            f = to_sx(self.fn(from_sx(x, (self.n,))))
        except TypeError as error:
            raise InputError(
                f"the function {getattr(self.fn, '__name__', self.fn)!r} is untraceable: {error}; "
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

    def value(self, x: Array) -> Array | None:
        return self._call(self._functions[0], (self.m,), x)

    def jacobian(self, x: Array) -> Array:
        return self._call(self._functions[1], (self.m, self.n), x)

    def curvature(self, x: Array, d: Array) -> Array:
        return self._call(self._functions[2], (self.m,), x, d)

    @staticmethod
    def _call(function: casadi.Function, shape, *args):
        if is_symbolic(*args):
            return from_sx(function(*[to_sx(a) for a in args]), shape)
        return np.array(casadi.DM(function(*args)), dtype=float).reshape(shape)


class Derivative:
    """Jacobians of a NumPy function of several vectors by the first `wrt` of them, exact.

    `fn(*vectors)` returns a tuple of vectors; a call returns, for each output, its Jacobians (m, n)
    by these arguments. Works on floats and on symbols alike. `constant` is True where no output has
    a derivative by the first argument.
    """

    def __init__(self, fn: Callable[..., Any], sizes: Sequence[int], wrt: int = 1):
        self.arguments: list[Any] = [casadi.SX.sym(f"x{i}", n) for i, n in enumerate(sizes)]
        outputs = fn(*[from_sx(x, (n,)) for x, n in zip(self.arguments, sizes, strict=True)])
        columns = [to_sx(out) for out in outputs]
        self.shapes: list[list[tuple[Any, int]]] = [
            [(c.size1(), n) for n in sizes[:wrt]] for c in columns
        ]
        self.jacobians: list[list[Any]] = [
            [casadi.jacobian(c, x) for x in self.arguments[:wrt]] for c in columns
        ]
        self.constant: bool = all(row[0].nnz() == 0 for row in self.jacobians)
        self._function = casadi.Function(
            "jacobians", self.arguments, [J for row in self.jacobians for J in row],
            {"allow_free": True},
        )  # fmt: skip

    def __call__(self, *arguments: Any) -> list[list[Array] | list[Array]]:
        flat = [J for row in self.jacobians for J in row]
        shapes = [shape for row in self.shapes for shape in row]
        if is_symbolic(*arguments) or self._function.has_free():
            found = casadi.substitute(flat, self.arguments, [to_sx(x) for x in arguments])
            values = [from_sx(J, shape) for J, shape in zip(found, shapes, strict=True)]
        else:
            found = self._function.call([casadi.DM(np.asarray(x)) for x in arguments])
            values = [
                np.array(J, dtype=float).reshape(s) for J, s in zip(found, shapes, strict=True)
            ]
        wrt = len(self.shapes[0])
        return [values[i : i + wrt] for i in range(0, len(values), wrt)]


def function_of(inputs: Sequence[Any], outputs: Sequence[Any], name: str = "f") -> casadi.Function:
    """The CasADi Function from symbolic arrays (pure symbols) to arrays built from them."""
    options = {"allow_free": True}  # reported by `free_symbols`, with a message of our own
    return casadi.Function(name, [to_sx(a) for a in inputs], [to_sx(o) for o in outputs], options)


def free_symbols(function: casadi.Function) -> list[str]:
    """The names of symbols that a Function uses without receiving them."""
    return [str(s) for s in function.free_sx()] if function.has_free() else []


def received_from_around(inputs: Sequence[Any], outputs: Sequence[Any]) -> Array | Array:
    """A symbolic array of the symbols that outputs are built from besides the inputs."""
    function = function_of(inputs, outputs)
    free = list(function.free_sx()) if function.has_free() else []
    return assembled([Scalar(node) for node in free], (len(free),))


def external(name: str, library: Any) -> casadi.Function:
    """A Function of a shared library with CasADi's C interface, loaded."""
    return casadi.external(name, str(library))


_OPERATION_NAMES = {
    getattr(casadi, name): name[3:].lower() for name in dir(casadi) if name.startswith("OP_")
}
_OPERATION_CODES = {name: code for code, name in _OPERATION_NAMES.items()}


def instructions_of(function: casadi.Function) -> Iterator[tuple[float | str, ...]]:
    """The instruction list of an SX Function, one tuple an instruction, work registers as written.

    ("input", register, argument, element), ("output", output, element, register),
    ("const", register, value), (operation, register, operand registers...); elements are counted
    row by row, as NumPy does.
    """
    into = [_row_major(function.sparsity_in(i)) for i in range(function.n_in())]
    out = [_row_major(function.sparsity_out(i)) for i in range(function.n_out())]
    for k in range(function.n_instructions()):
        name = _OPERATION_NAMES[function.instruction_id(k)]
        if name == "const":
            yield name, function.instruction_output(k)[0], function.instruction_constant(k)
            continue
        operands = function.instruction_input(k)
        results = function.instruction_output(k)
        if name == "input":
            argument, element = operands
            yield name, results[0], argument, into[argument][element]
        elif name == "output":
            output, element = results
            yield name, output, out[output][element], operands[0]
        else:
            yield name, results[0], *operands


def _row_major(sparsity: casadi.Sparsity) -> list[int]:
    """For each nonzero of a CasADi matrix its position in the row-major dense array."""
    columns = sparsity.size2()
    return [r * columns + c for r, c in zip(*sparsity.get_triplet())]


@contextmanager
def only_pure_operations() -> Iterator[Any]:
    """Turn what CasADi would do silently or wrongly on symbols into a TypeError.

    `float(symbol)` is NaN there, so that `math.sin(x)` and `zeros[0] = x` would compile to
    nonsense; a write into a symbolic array does not reach the arrays that share its memory.
    """
    cls = casadi.ArrayInterface
    saved = {name: cls.__dict__.get(name) for name in _IMPURE}

    def refuse_number(method):
        def convert(self):
            if not self.to_casadi().is_constant():
                raise TypeError("a symbol was converted to a Python number")
            return method(self)

        return convert

    def refuse_write(self, *_):
        raise TypeError("in-place write into a symbolic array")

    def refuse_augmented(self, *_):
        # A scalar is immutable in NumPy too: Python then falls back to s = s + x.
        if self.ndim == 0:
            return NotImplemented
        raise TypeError("in-place write into a symbolic array")

    with _tracing_lock:
        for name in _IMPURE:
            if name in ("__float__", "__int__"):
                replacement = refuse_number(saved[name])
            else:
                replacement = refuse_write if name == "__setitem__" else refuse_augmented
            setattr(cls, name, replacement)
        try:
            yield
        finally:
            for name, method in saved.items():
                if method is None:
                    delattr(cls, name)
                else:
                    setattr(cls, name, method)


_IMPURE = (
    "__float__",
    "__int__",
    "__setitem__",
    "__iadd__",
    "__isub__",
    "__imul__",
    "__itruediv__",
)
_tracing_lock = threading.RLock()  # the class is shared: one trace at a time
