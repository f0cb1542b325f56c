"""The operations of a tape, a row each: everything that the compiler knows about an operation.

Passes and backends read this table; none of them names an operation's properties anywhere else. To
add an operation, add a row. An operation that no row describes cannot be traced, and the error says
so. Where its LLVM form is longer than a line, write a function of the emitter and put it in the
row, as `backends` do for the arctangent (`elementary.py`) and, for a GPU, for the exponential
(`gpu/elementary.py`).

    name         the operation on a tape, as CasADi spells it
    arity        the number of operands
    evaluate     its value on NumPy numbers: the reference for every backend
    llvm         (emitter, *operands) -> result, in scalars or vectors, as wide as the emitter is;
                 None for an operation that the C library computes (`library`) or simplify replaces
    ptx          the same on a GPU, where it differs
    library      True if the C library computes it, lane by lane, in double precision
    c            a C expression with {0}, {1}, {2} for the operands, or the name of a function of
                 math.h
    counted      the fields of `OperationCount` that it adds one to
    latency      cycles from operands to result, on recent processors within one or two
    condition    True if the result is a truth value: a bit in machine code, 1.0 or 0.0 as a number
    masks        how many of the operands, the first ones, are truth values
    commutative  True if the first two operands may be exchanged
    parity       for each operand "odd" or "even": what its negative makes of the result; "" if
                 neither
    signs        of a sum of two terms, 1 for each that is subtracted. With three operands the first
                 term is the product of the first two: a fused multiply-add
    signed_zero  True if the result depends on the sign of an operand that is zero
    becomes      (builder, *operands) -> the operations that simplify puts in its place
    slopes       for each operand a function (f, t, z, *operands) -> t ∂z/∂operand, where z is the
                 result, t a number, and f.name(...) applies an operation; None for an operand by
                 which the derivative is zero. Tangents and adjoints both come from this column
                 (`differentiate/`). None: the operation cannot be differentiated
    traced       other names of it in CasADi
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LEAVES = ("const", "input")  # instructions without operands: they read memory where they are used
NODES = ("loop", "branch", "result")  # control flow; LEAVES and NODES have no row
PAIR = ("sin", "cos")  # of one angle both come from one range reduction


@dataclass(frozen=True)
class Op:
    """A row of the table; the module's docstring says what each column means."""

    name: str
    arity: int
    evaluate: Callable[..., Any]
    c: str = ""
    llvm: Callable[..., str] | None = None
    ptx: Callable[..., str] | None = None
    library: bool = False
    counted: tuple[str, ...] = ("others",)
    latency: int = 4
    condition: bool = False
    masks: int = 0
    commutative: bool = False
    parity: tuple[str, ...] = ()
    signs: tuple[int, int] | None = None
    signed_zero: bool = False
    becomes: Callable[..., Any] | None = None
    slopes: tuple[Callable[..., Any] | None, ...] | None = None
    traced: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The name that operations share which differ in signs alone: "sum" or "fused"; of any
        other its own."""
        if self.signs is None:
            return self.name
        return "sum" if self.arity == 2 else "fused"

    @property
    def arithmetic(self) -> bool:
        """Whether it adds, multiplies or divides."""
        return bool({"additions", "multiplications", "divisions"} & set(self.counted))

    @property
    def choice(self) -> bool:
        """Whether a truth value chooses between the other operands."""
        return self.masks > 0 and not self.condition

    @property
    def on_vectors(self) -> bool:
        """Whether one instruction on a vector computes it, in LLVM."""
        return self.llvm is not None

    @property
    def c_on_vectors(self) -> bool:
        """Whether C's operators compute it on the vector types of GCC and Clang."""
        return bool(self.c) and set(self.c) <= set("{012} +-*/()")


OPS: dict[str, Op] = {}
_BY_SIGNS: dict[tuple[str, tuple[int, int]], str] = {}
_TRACED: dict[str, str] = {}


def add(*rows: Op) -> None:
    """Put rows into the table."""
    for row in rows:
        OPS[row.name] = row
        if row.signs is not None:
            _BY_SIGNS[row.kind, row.signs] = row.name
        _TRACED.update(dict.fromkeys((row.name, *row.traced), row.name))


def with_signs(kind: str, signs: tuple[int, ...]) -> str:
    """The sum or fused multiply-add of two terms with these signs."""
    return _BY_SIGNS[kind, signs]


def known_as(traced: str) -> str | None:
    """The operation that CasADi calls by this name, or None."""
    return _TRACED.get(traced)


# --- how LLVM spells a row ---


def _instruction(name: str) -> Callable[..., str]:
    return lambda e, a, b: e.binary(name, a, b)


def _intrinsic(name: str) -> Callable[..., str]:
    return lambda e, *values: e.call(name, *values)


def _comparison(predicate: str) -> Callable[..., str]:
    return lambda e, a, b: e.compare(predicate, a, b)


def _logical(name: str) -> Callable[..., str]:
    return lambda e, a, b: e.logical(name, a, b)


def _expansion(name: str) -> Callable[..., str]:
    """A function of the emitter's own library (`elementary.py`)."""
    return lambda e, *values: e.expanded(name, *values)


def _fused(signs: tuple[int, int]) -> Callable[..., str]:
    def spelled(e, a: str, b: str, c: str) -> str:
        product, other = signs
        a = e.unary("fneg", a) if product else a
        c = e.unary("fneg", c) if other else c
        return e.call("fma", a, b, c)

    return spelled


def _sign(e, x: str) -> str:
    one = e.call("copysign", e.number(1.0), x)
    return e.select(e.compare("one", x, e.number(0.0)), one, x)


# --- the rows ---

_erf = np.vectorize(math.erf, otypes=[float])


def _truth(x):
    return np.asarray(x) != 0


def _as_number(condition):
    return np.where(condition, 1.0, 0.0)[()]


# --- derivatives that several rows share ---


def _plus(f, t, z, *x):
    return t


def _minus(f, t, z, *x):
    return -t


def _by_first(f, t, z, x, y, *rest):
    return t * x


def _by_second(f, t, z, x, y, *rest):
    return t * y


def _minus_by_first(f, t, z, x, y, *rest):
    return -(t * x)


def _minus_by_second(f, t, z, x, y, *rest):
    return -(t * y)


_ONE_FLAT, _TWO_FLAT = (None,), (None, None)
_ERF_SLOPE = 2.0 / math.sqrt(math.pi)

_SUM, _PRODUCT, _QUOTIENT = ("additions",), ("multiplications",), ("divisions",)
_BOTH, _ANGLE = ("additions", "multiplications"), ("trigonometric",)
_ODD, _EVEN = ("odd",), ("even",)

# sums and products
add(
    Op("add", 2, np.add, "{0} + {1}", _instruction("fadd"), counted=_SUM, latency=3,
       commutative=True, signs=(0, 0), slopes=(_plus, _plus)),
    Op("sub", 2, np.subtract, "{0} - {1}", _instruction("fsub"), counted=_SUM, latency=3,
       signs=(0, 1), slopes=(_plus, _minus)),
    # b - a: limbs.py exchanges the operands of differences
    Op("from", 2, lambda a, b: b - a, "{1} - {0}", lambda e, a, b: e.binary("fsub", b, a),
       counted=_SUM, latency=3, signs=(1, 0), slopes=(_minus, _plus)),
    Op("mul", 2, np.multiply, "{0} * {1}", _instruction("fmul"), counted=_PRODUCT,
       commutative=True, parity=("odd", "odd"), slopes=(_by_second, _by_first)),
    Op("div", 2, np.divide, "{0} / {1}", _instruction("fdiv"), counted=_QUOTIENT, latency=14,
       parity=("odd", "odd"),
       slopes=(lambda f, t, z, x, y: t / y, lambda f, t, z, x, y: -(t / y * z))),
    Op("neg", 1, np.negative, "-{0}", lambda e, x: e.unary("fneg", x), counted=("negations",),
       latency=1, parity=_ODD, slopes=(_minus,)),
    Op("fma", 3, lambda a, b, c: a * b + c, "{0}*{1} + {2}", _fused((0, 0)), counted=_BOTH,
       commutative=True, signs=(0, 0), slopes=(_by_second, _by_first, _plus)),
    Op("fms", 3, lambda a, b, c: a * b - c, "{0}*{1} - {2}", _fused((0, 1)), counted=_BOTH,
       commutative=True, signs=(0, 1), slopes=(_by_second, _by_first, _minus)),
    Op("fnma", 3, lambda a, b, c: c - a * b, "{2} - {0}*{1}", _fused((1, 0)), counted=_BOTH,
       commutative=True, signs=(1, 0), slopes=(_minus_by_second, _minus_by_first, _plus)),
    Op("fnms", 3, lambda a, b, c: -(a * b) - c, "-({0}*{1}) - {2}", _fused((1, 1)), counted=_BOTH,
       commutative=True, signs=(1, 1), slopes=(_minus_by_second, _minus_by_first, _minus)),
    Op("sq", 1, lambda x: x * x, counted=_PRODUCT, parity=_EVEN,
       becomes=lambda b, x: b.make("mul", x, x), slopes=(lambda f, t, z, x: t * (x + x),)),
    Op("twice", 1, lambda x: x + x, counted=_PRODUCT, parity=_ODD,
       becomes=lambda b, x: b.make("mul", x, b.constant(2.0)), slopes=(lambda f, t, z, x: t + t,)),
    Op("inv", 1, lambda x: np.divide(1.0, x), counted=_QUOTIENT, latency=14, parity=_ODD,
       becomes=lambda b, x: b.make("div", b.constant(1.0), x),
       slopes=(lambda f, t, z, x: -(t * z * z),)),
)  # fmt: skip

# elementary functions
add(
    Op("sqrt", 1, np.sqrt, "sqrt", _intrinsic("sqrt"), counted=("square_roots",), latency=18,
       slopes=(lambda f, t, z, x: t * (0.5 / z),)),
    Op("sin", 1, np.sin, "sin", lambda e, x: e.sine_cosine(x)[0], counted=_ANGLE, latency=60,
       parity=_ODD, slopes=(lambda f, t, z, x: t * f.cos(x),)),
    Op("cos", 1, np.cos, "cos", lambda e, x: e.sine_cosine(x)[1], counted=_ANGLE, latency=60,
       parity=_EVEN, slopes=(lambda f, t, z, x: -(t * f.sin(x)),)),
    Op("tan", 1, np.tan, "tan", lambda e, x: e.binary("fdiv", *e.sine_cosine(x)), counted=_ANGLE,
       parity=_ODD, slopes=(lambda f, t, z, x: t * (1.0 + z * z),)),
    Op("asin", 1, np.arcsin, "asin", _expansion("arcsine"), counted=_ANGLE, parity=_ODD,
       slopes=(lambda f, t, z, x: t / f.sqrt((1.0 - x) * (1.0 + x)),)),
    Op("acos", 1, np.arccos, "acos", _expansion("arccosine"), counted=_ANGLE,
       slopes=(lambda f, t, z, x: -(t / f.sqrt((1.0 - x) * (1.0 + x))),)),
    Op("atan", 1, np.arctan, "atan", lambda e, x: e.expanded("arctangent2", x, e.number(1.0)),
       counted=_ANGLE, parity=_ODD, slopes=(lambda f, t, z, x: t / (1.0 + x * x),)),
    Op("atan2", 2, np.arctan2, "atan2", _expansion("arctangent2"), counted=_ANGLE,
       signed_zero=True, slopes=(lambda f, t, z, y, x: t * (x / (x * x + y * y)),
               lambda f, t, z, y, x: -(t * (y / (x * x + y * y))))),
    Op("exp", 1, np.exp, "exp", library=True, slopes=(lambda f, t, z, x: t * z,)),
    Op("log", 1, np.log, "log", library=True, slopes=(lambda f, t, z, x: t / x,)),
    Op("expm1", 1, np.expm1, "expm1", library=True, slopes=(lambda f, t, z, x: t * (z + 1.0),)),
    Op("log1p", 1, np.log1p, "log1p", library=True, slopes=(lambda f, t, z, x: t / (1.0 + x),)),
    Op("pow", 2, np.power, "pow", library=True, traced=("constpow",),
       slopes=(lambda f, t, z, x, y: t * (y * f.pow(x, y - 1.0)),
               lambda f, t, z, x, y: t * (z * f.log(x)))),
    Op("sinh", 1, np.sinh, "sinh", library=True, parity=_ODD,
       slopes=(lambda f, t, z, x: t * f.cosh(x),)),
    Op("cosh", 1, np.cosh, "cosh", library=True, parity=_EVEN,
       slopes=(lambda f, t, z, x: t * f.sinh(x),)),
    Op("tanh", 1, np.tanh, "tanh", library=True, parity=_ODD,
       slopes=(lambda f, t, z, x: t * (1.0 - z * z),)),
    Op("asinh", 1, np.arcsinh, "asinh", library=True, parity=_ODD,
       slopes=(lambda f, t, z, x: t / f.sqrt(x * x + 1.0),)),
    Op("acosh", 1, np.arccosh, "acosh", library=True,
       slopes=(lambda f, t, z, x: t / f.sqrt((x - 1.0) * (x + 1.0)),)),
    Op("atanh", 1, np.arctanh, "atanh", library=True, parity=_ODD,
       slopes=(lambda f, t, z, x: t / ((1.0 - x) * (1.0 + x)),)),
    Op("erf", 1, lambda x: _erf(x)[()], "erf", library=True, parity=_ODD,
       slopes=(lambda f, t, z, x: t * (_ERF_SLOPE * f.exp(-(x * x))),)),
    Op("hypot", 2, np.hypot, "hypot", library=True, commutative=True, parity=("even", "even"),
       slopes=(lambda f, t, z, x, y: t * (x / z), lambda f, t, z, x, y: t * (y / z))),
    Op("fmod", 2, np.fmod, "fmod", library=True, parity=("odd", "even"),
       slopes=(_plus, lambda f, t, z, x, y: -(t * f.sign(x / y) * f.floor(f.fabs(x / y))))),
)  # fmt: skip

# magnitudes and roundings; NaN passes through fmin and fmax, as in np.minimum: C's would hide it
add(
    Op("fabs", 1, np.abs, "fabs", _intrinsic("fabs"), parity=_EVEN,
       slopes=(lambda f, t, z, x: t * f.sign(x),)),
    Op("sign", 1, np.sign, "grubler_sign({0})", _sign, parity=_ODD, slopes=_ONE_FLAT),
    Op("floor", 1, np.floor, "floor", _intrinsic("floor"), slopes=_ONE_FLAT),
    Op("ceil", 1, np.ceil, "ceil", _intrinsic("ceil"), slopes=_ONE_FLAT),
    Op("copysign", 2, np.copysign, "copysign", _intrinsic("copysign"), parity=("even", "odd"),
       signed_zero=True, slopes=(lambda f, t, z, x, y: t * f.sign(x) * f.copysign(1.0, y), None)),
    Op("fmin", 2, np.minimum, "grubler_min({0}, {1})", _intrinsic("minimum"), commutative=True,
       slopes=(lambda f, t, z, x, y: f.if_else_zero(f.le(x, y), t),
               lambda f, t, z, x, y: f.if_else_zero(f.lt(y, x), t))),
    Op("fmax", 2, np.maximum, "grubler_max({0}, {1})", _intrinsic("maximum"), commutative=True,
       slopes=(lambda f, t, z, x, y: f.if_else_zero(f.le(y, x), t),
               lambda f, t, z, x, y: f.if_else_zero(f.lt(x, y), t))),
)  # fmt: skip

# truth values, and choices by them
add(
    Op("lt", 2, lambda a, b: _as_number(a < b), "{0} < {1}", _comparison("olt"), condition=True,
       slopes=_TWO_FLAT),
    Op("le", 2, lambda a, b: _as_number(a <= b), "{0} <= {1}", _comparison("ole"), condition=True,
       slopes=_TWO_FLAT),
    Op("eq", 2, lambda a, b: _as_number(a == b), "{0} == {1}", _comparison("oeq"), condition=True,
       commutative=True, slopes=_TWO_FLAT),
    Op("ne", 2, lambda a, b: _as_number(a != b), "{0} != {1}", _comparison("une"), condition=True,
       commutative=True, slopes=_TWO_FLAT),
    Op("not", 1, lambda a: _as_number(~_truth(a)), "{0} == 0",
       lambda e, a: e.logical("xor", a, e.true()), condition=True, masks=1, slopes=_ONE_FLAT),
    Op("and", 2, lambda a, b: _as_number(_truth(a) & _truth(b)), "{0} != 0 && {1} != 0",
       _logical("and"), condition=True, masks=2, commutative=True, slopes=_TWO_FLAT),
    Op("or", 2, lambda a, b: _as_number(_truth(a) | _truth(b)), "{0} != 0 || {1} != 0",
       _logical("or"), condition=True, masks=2, commutative=True, slopes=_TWO_FLAT),
    Op("if_else_zero", 2, lambda c, a: np.where(_truth(c), a, 0.0)[()], "{0} != 0 ? {1} : 0",
       lambda e, c, a: e.select(c, a, e.number(0.0)), masks=1,
       slopes=(None, lambda f, t, z, c, x: f.if_else_zero(c, t))),
    Op("select", 3, lambda c, a, b: np.where(_truth(c), a, b)[()], "{0} != 0 ? {1} : {2}",
       lambda e, c, a, b: e.select(c, a, b), masks=1,
       slopes=(None, lambda f, t, z, c, x, y: f.if_else_zero(c, t),
               lambda f, t, z, c, x, y: f.if_else_zero(f.make("not", c), t))),
)  # fmt: skip
