"""Trigonometry in the generated code, and the calls that stand behind rarer functions.

Sine and cosine come from one reduction (Cody and Waite): n = rint(x 2/pi), r = x - n pi/2 with
pi/2 in three parts and fused multiply-adds, so that each step is exact or rounds once; then two
polynomials in r^2 (coefficients of fdlibm's kernels in fp64, minimax in fp32), swapped and signed
by the quadrant n mod 4. No branch, about 35 instructions for the pair, within 1.5 ulp.

Beyond LIMIT the spacing of floating-point angles reaches 1/32 rad and more, so that the
result would say nothing about a mechanism: it is NaN there, as for infinite and NaN arguments.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...ir.ops import OPS

if TYPE_CHECKING:
    from .emitter import Emitter

LIMIT = {"float64": 2.0**48, "float32": 2.0**19}

# Added to a number, rounds it to an integer, which the sum's last bits then are.
ROUNDING = {"float64": 1.5 * 2.0**52, "float32": 1.5 * 2.0**23}


@dataclass(frozen=True)
class _Coefficients:
    two_over_pi: float
    half_pi: tuple[float, ...]
    sine: tuple[float, ...]  # sin r = r + r z (s0 + s1 z + ...), z = r r
    cosine: tuple[float, ...]  # cos r = 1 + z (-1/2 + z (c0 + c1 z + ...))


def _parts_of_half_pi(dtype) -> tuple[float, ...]:
    """pi/2 as a sum of three numbers of the given precision."""
    digits = "1921FB54442D18469898CC51701B839A252049C1114CF98E"  # pi/2 = 1.921FB... in base 16
    rest, shift = int(digits, 16), 4 * (len(digits) - 1)
    parts = []
    for _ in range(3):
        parts.append(float(dtype(rest / 2**shift)))
        rest -= int(parts[-1] * 2.0**shift)
    return tuple(parts)


COEFFICIENTS = {
    "float64": _Coefficients(
        2.0 / np.pi,
        _parts_of_half_pi(np.float64),
        (
            -1.66666666666666324348e-01,
            8.33333333332248946124e-03,
            -1.98412698298579493134e-04,
            2.75573137070700676789e-06,
            -2.50507602534068634195e-08,
            1.58969099521155010221e-10,
        ),
        (
            4.16666666666666019037e-02,
            -1.38888888888741095749e-03,
            2.48015872894767294178e-05,
            -2.75573143513906633035e-07,
            2.08757232129817482790e-09,
            -1.13596475577881948265e-11,
        ),
    ),
    "float32": _Coefficients(
        float(np.float32(2.0 / np.pi)),
        _parts_of_half_pi(np.float32),
        (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
        (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
    ),
}


def literal(value: float | None, dtype: str) -> str:
    """A number as LLVM writes it: the bits of the double, rounded first where fp32."""
    with np.errstate(over="ignore"):
        value = float(np.float32(value)) if dtype == "float32" else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def sine_cosine(e: Emitter, x: str, want_sine: bool, want_cosine: bool) -> tuple[str, str]:
    """Emit sin x and cos x; what is not wanted is left out where it costs something."""
    c, magic = COEFFICIENTS[e.dtype], e.number(ROUNDING[e.dtype])
    shifted = e.call("fma", x, e.number(c.two_over_pi), magic)
    quadrant = e.last_bits(shifted)
    minus_n = e.binary("fsub", magic, shifted)
    r = x
    for part in c.half_pi:
        r = e.call("fma", minus_n, e.number(part), r)
    # In range or not is asked once, of r: NaN then reaches both results.
    inside = e.compare("ole", e.call("fabs", x), e.number(LIMIT[e.dtype]))
    r = e.select(inside, r, e.number(float("nan")))
    z = e.binary("fmul", r, r)
    s = _polynomial(e, z, c.sine)
    s = e.call("fma", e.binary("fmul", r, z), s, r)
    k = e.call("fma", z, _polynomial(e, z, c.cosine), e.number(-0.5))
    k = e.call("fma", z, k, e.number(1.0))
    odd = e.is_odd(quadrant)
    sine = cosine = ""
    if want_sine:
        sine = e.flipped(e.select(odd, k, s), quadrant)
    if want_cosine:
        cosine = e.flipped(e.select(odd, s, k), e.next_integer(quadrant))
    return sine, cosine


def _polynomial(e, z: str, coefficients: tuple[float, ...]) -> str:
    value = e.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = e.call("fma", z, value, e.number(coefficient))
    return value


# atan t = t - t z (a0 + a1 z + ...), z = t t, for |t| <= tan(pi/8): fdlibm and Cephes.
_ARCTANGENT = {
    "float64": (
        3.33333333333329318027e-01,
        -1.99999999998764832476e-01,
        1.42857142725034663711e-01,
        -1.11111104054623557880e-01,
        9.09088713343650656196e-02,
        -7.69187620504482999495e-02,
        6.66107313738753120669e-02,
        -5.83357013379057348645e-02,
        4.97687799461593236017e-02,
        -3.65315727442169155270e-02,
        1.62858201153657823623e-02,
    ),
    "float32": (3.33329491539e-1, -1.99777106478e-1, 1.38776856032e-1, -8.05374449538e-2),
}


def arctangent2(e: Emitter, y: str, x: str) -> str:
    """Emit atan2(y, x), within 2 ulp, right at zeros and infinities, NaN from NaN.

    The smaller side over the larger gives the angle to the nearer axis; beyond pi/8 it is measured
    from the diagonal instead: one division either way.
    """
    a, b = e.call("fabs", y), e.call("fabs", x)
    steep = e.compare("ogt", a, b)
    low, high = e.select(steep, b, a), e.select(steep, a, b)
    both = (e.compare("oeq", side, e.number(math.inf)) for side in (low, high))
    infinite = e.logical("and", *both)  # the diagonal
    low, high = (e.select(infinite, e.number(1.0), side) for side in (low, high))
    shrink = e.compare("ogt", high, e.number(_LARGE[e.dtype]))  # their sum must not overflow
    low, high = (
        e.select(shrink, e.binary("fmul", side, e.number(0.25)), side) for side in (low, high)
    )
    diagonal = e.compare("ogt", low, e.binary("fmul", high, e.number(math.tan(math.pi / 8))))
    over = e.select(diagonal, e.binary("fsub", low, high), low)
    under = e.select(diagonal, e.binary("fadd", low, high), high)
    # atan2(0, 0) is an angle of 0 or pi by the signs.
    under = e.select(e.compare("oeq", under, e.number(0.0)), e.number(1.0), under)
    t = e.quotient(over, under)
    z = e.binary("fmul", t, t)
    curve = e.binary("fmul", z, _polynomial(e, z, _ARCTANGENT[e.dtype]))
    angle = e.call("fma", e.unary("fneg", t), curve, t)
    half, rest = _parts_of_half_pi(_NUMPY[e.dtype])[:2]
    angle = e.select(diagonal, _shifted(e, angle, half / 2, rest / 2), angle)
    angle = e.select(steep, _shifted(e, e.unary("fneg", angle), half, rest), angle)
    one = e.call("copysign", e.number(1.0), x)  # tells -0 from 0
    behind = e.compare("olt", one, e.number(0.0))
    angle = e.select(behind, _shifted(e, e.unary("fneg", angle), 2 * half, 2 * rest), angle)
    return e.call("copysign", angle, y)


_NUMPY = {"float64": np.float64, "float32": np.float32}
_LARGE = {"float64": 2.0**1000, "float32": 2.0**120}


def _shifted(e, angle: str, shift: float, rest: float) -> str:
    """angle + shift, with the part of the shift below its last bit added first."""
    return e.binary("fadd", e.binary("fadd", angle, e.number(rest)), e.number(shift))


def arcsine(e: Emitter, x: str) -> str:
    """Emit asin x; NaN outside [-1, 1]."""
    return arctangent2(e, x, _other_side(e, x))


def arccosine(e: Emitter, x: str) -> str:
    """Emit acos x; NaN outside [-1, 1]."""
    return arctangent2(e, _other_side(e, x), x)


def _other_side(e, x: str) -> str:
    """sqrt(1 - x^2) without cancellation."""
    one = e.number(1.0)
    return e.root(e.binary("fmul", e.binary("fsub", one, x), e.binary("fadd", one, x)))


def library_wrapper(name: str, dtype: str, lanes: int) -> str:
    """An internal function that applies a C function to each lane."""
    scalar = {"float64": "double", "float32": "float"}[dtype]
    vector = scalar if lanes == 1 else f"<{lanes} x {scalar}>"
    operands = "xyz"[: OPS[name].arity]
    lines = [
        f"define internal {vector} @lanes_{name}"
        f"({', '.join(f'{vector} %{o}' for o in operands)}) noinline nounwind {{"
    ]
    result = "poison"
    for lane in range(lanes):
        arguments = []
        for o in operands:
            value = f"%{o}"
            if lanes > 1:
                lines.append(f"  %{o}{lane} = extractelement {vector} %{o}, i64 {lane}")
                value = f"%{o}{lane}"
            if dtype == "float32":
                lines.append(f"  %{o}d{lane} = fpext float {value} to double")
                value = f"%{o}d{lane}"
            arguments.append(f"double {value}")
        lines.append(f"  %r{lane} = call double @{name}({', '.join(arguments)})")
        value = f"%r{lane}"
        if dtype == "float32":
            lines.append(f"  %f{lane} = fptrunc double {value} to float")
            value = f"%f{lane}"
        if lanes == 1:
            result = value
        else:
            lines.append(
                f"  %v{lane} = insertelement {vector} {result}, {scalar} {value}, i64 {lane}"
            )
            result = f"%v{lane}"
    lines += [f"  ret {vector} {result}", "}"]
    signature = ", ".join(["double"] * OPS[name].arity)
    return "\n".join([f"declare double @{name}({signature}) nounwind", *lines])
