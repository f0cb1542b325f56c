"""Exponentials, logarithms and their kin for a GPU, which has no C library to call.

Straight-line code on the emitter's own arithmetic, the same in fp32 and fp64 but for constants and
the lengths of polynomials; a slow path would cost a whole warp. Three kernels carry the rest:

    exp        x = n ln 2 + r: 2^n (1 + p), p = e^r - 1 as a polynomial
    expm1      half of it, 2^(n-1) p + (2^(n-1) - 1/2), so that sinh and cosh reach their ends
    log        x = 2^k m, m about 1: fdlibm's form in s = (m - 1) / (m + 1), which forgives an
               error of s; with what 1 + x lost in rounding added, log1p

Within 3 ulp, erf and pow within 6; infinities and NaN as in C.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from ..llvm.elementary import _polynomial
from .formats import FORMATS

if TYPE_CHECKING:
    from ..llvm.emitter import Emitter


class _Math:
    """The functions of one precision, written through an emitter of scalars."""

    def __init__(self, e):
        self.e, self.f = e, FORMATS[e.dtype]
        self.integer = f"i{self.f.bits}"

    # --- arithmetic, by name ---

    def number(self, value: float | None) -> str:
        return self.e.number(value)

    def add(self, a, b):
        return self.e.binary("fadd", a, b)

    def sub(self, a, b):
        return self.e.binary("fsub", a, b)

    def mul(self, a, b):
        return self.e.binary("fmul", a, b)

    def neg(self, a):
        return self.e.unary("fneg", a)

    def fma(self, a, b, c):
        return self.e.call("fma", a, b, c)

    def fabs(self, a):
        return self.e.call("fabs", a)

    def is_(self, predicate, a, b):
        """A comparison; a number may stand on its right."""
        return self.e.compare(predicate, a, b if isinstance(b, str) else self.number(b))

    def where(self, mask, a, b):
        a, b = (x if isinstance(x, str) else self.number(x) for x in (a, b))
        return self.e.select(mask, a, b)

    def both(self, a, b):
        return self.e.logical("and", a, b)

    def either(self, a, b):
        return self.e.logical("or", a, b)

    def signed(self, value, x):
        return self.e.call("copysign", value, x)

    # --- powers of two ---

    def power_of_two(self, n: str) -> str:
        """2^n for a whole number n within the exponents."""
        e, kind = self.e, self.integer
        whole = e.define(f"fptosi {e.type} {n} to {kind}")
        biased = e.define(f"add {kind} {whole}, {self.f.bias}")
        shifted = e.define(f"shl {kind} {biased}, {self.f.fraction}")
        return e.define(f"bitcast {kind} {shifted} to {e.type}")

    def split(self, x: str) -> tuple[str, str]:
        """k and m with x = 2^k m, sqrt(1/2) <= m < sqrt(2), for an ordinary x > 0."""
        e, kind = self.e, self.integer
        root = self.f.bias << self.f.fraction  # the bits of one, less half a binade in m
        root -= int((1 - (math.sqrt(0.5) - 0.5) * 2) * 2**self.f.fraction)
        bits = e.define(f"bitcast {e.type} {x} to {kind}")
        above = e.define(f"sub {kind} {bits}, {root}")
        k = e.define(f"ashr {kind} {above}, {self.f.fraction}")
        shift = e.define(f"shl {kind} {k}, {self.f.fraction}")
        m = e.define(f"sub {kind} {bits}, {shift}")
        m = e.define(f"bitcast {kind} {m} to {e.type}")
        return e.define(f"sitofp {kind} {k} to {e.type}"), m

    # --- kernels ---

    def reduced(self, x: str, rest: str | None = None) -> tuple[str, str]:
        """n and e^r - 1 with x + rest = n ln 2 + r."""
        high, low = self.f.ln2
        n = self.e.call("rint", self.mul(x, self.number(1 / math.log(2))))
        minus = self.neg(n)
        r = self.fma(minus, self.number(high), x)
        r = self.fma(minus, self.number(low), r)
        if rest is not None:
            r = self.add(r, rest)
        coefficients = [1 / math.factorial(k) for k in range(2, self.f.terms + 1)]
        p = _polynomial(self.e, r, tuple(coefficients))
        return n, self.fma(self.mul(r, r), p, r)

    def within(self, x: str, low: float, high: float) -> str:
        """x, or the bound that it passes; NaN stays."""
        x = self.where(self.is_("ogt", x, high), high, x)
        return self.where(self.is_("olt", x, low), low, x)

    def exponential(self, x: str, rest: str | None = None) -> str:
        x = self.within(x, -self.f.overflow, self.f.overflow)
        n, p = self.reduced(x, rest)
        half = self.e.call("floor", self.mul(n, self.number(0.5)))
        value = self.add(p, self.number(1.0))
        value = self.mul(value, self.power_of_two(self._whole(half)))
        return self.mul(value, self.power_of_two(self._whole(self.sub(n, half))))

    def _whole(self, n: str) -> str:
        """n, with NaN as zero: converting it would be undefined, and it is in the value already."""
        return self.where(self.is_("ord", n, n), n, 0.0)

    def half_expm1(self, x: str) -> str:
        """(e^x - 1) / 2."""
        x = self.within(x, -60.0, (self.f.bias + 2.1) * math.log(2))
        n, p = self.reduced(x)
        quarter = self.power_of_two(self._whole(self.sub(n, self.number(2.0))))
        value = self.fma(quarter, p, self.sub(quarter, self.number(0.25)))
        return self.add(value, value)

    def logarithm(self, u: str, more: str | None = None, small: str | None = None) -> str:
        """log(u + more) for u >= 0, `more` below its last bit; `small` is u + more - 1 where that
        is small."""
        f = self.f
        tiny = self.is_("olt", u, 2.0 ** (1 - f.bias))
        lift = 2 + f.fraction
        k, m = self.split(self.where(tiny, self.mul(u, self.number(2.0**lift)), u))
        k = self.where(tiny, self.sub(k, self.number(float(lift))), k)
        x = self.sub(m, self.number(1.0))
        if small is not None:
            near = self.is_("oeq", k, 0.0)
            x = self.where(near, small, x)
            more = self.where(near, 0.0, more)
        half = self.mul(self.mul(x, x), self.number(0.5))
        s = self.e.quotient(x, self.add(x, self.number(2.0)))
        z = self.mul(s, s)
        tail = self.fma(z, _polynomial(self.e, z, f.logarithm), half)
        low = self.mul(k, self.number(f.ln2[1]))
        if more is not None:
            low = self.add(low, more)
        value = self.sub(half, self.fma(s, tail, low))
        value = self.fma(k, self.number(f.ln2[0]), self.neg(self.sub(value, x)))
        value = self.where(self.is_("oeq", u, math.inf), u, value)
        value = self.where(self.is_("oeq", u, 0.0), -math.inf, value)
        return self.where(self.is_("oge", u, 0.0), value, math.nan)

    # --- the functions of a tape ---

    def exp(self, x):
        return self.exponential(x)

    def log(self, x):
        return self.logarithm(x)

    def expm1(self, x):
        half = self.half_expm1(x)
        return self.add(half, half)

    def log1p(self, x):
        one = self.number(1.0)
        u = self.add(x, one)
        wide = self.is_("ogt", self.fabs(x), 1.0)
        lost = self.where(wide, self.add(self.sub(x, u), one), self.add(self.sub(one, u), x))
        lost = self.where(self.is_("olt", self.fabs(x), self.f.large**2), lost, 0.0)
        return self.logarithm(u, self.e.quotient(lost, u), x)

    def tanh(self, x):
        a = self.within(self.fabs(x), 0.0, 22.0)
        half = self.half_expm1(self.add(a, a))
        return self.signed(self.e.quotient(half, self.add(half, self.number(1.0))), x)

    def sinh(self, x):
        a = self.fabs(x)
        half = self.half_expm1(a)
        ratio = self.e.quotient(half, self.fma(half, self.number(2.0), self.number(1.0)))
        ratio = self.where(self.is_("ogt", a, 50.0), 0.5, ratio)
        return self.signed(self.add(half, ratio), x)

    def cosh(self, x):
        half = self.add(self.half_expm1(self.fabs(x)), self.number(0.5))
        return self.add(half, self.e.quotient(self.number(0.25), half))

    def asinh(self, x):
        a = self.fabs(x)
        z = self.mul(a, a)
        root = self.e.root(self.add(z, self.number(1.0)))
        y = self.add(a, self.e.quotient(z, self.add(root, self.number(1.0))))
        return self.signed(self._area(a, y), x)

    def acosh(self, x):
        t = self.sub(x, self.number(1.0))
        root = self.e.root(self.fma(t, t, self.add(t, t)))
        value = self._area(x, self.add(t, root))
        return self.where(self.is_("oge", x, 1.0), value, math.nan)

    def _area(self, x, y):
        """log(1 + y), or log(2 x) where x is large and y would overflow."""
        large = self.is_("ogt", x, self.f.large)
        value = self.log1p(self.where(large, self.sub(x, self.number(1.0)), y))
        return self.where(large, self.add(value, self.number(math.log(2))), value)

    def atanh(self, x):
        a = self.fabs(x)
        t = self.add(a, a)
        over = self.e.quotient(self.mul(t, a), self.sub(self.number(1.0), a))
        half = self.mul(self.log1p(self.add(t, over)), self.number(0.5))
        return self.signed(half, x)

    def erf(self, x):
        a = self.fabs(x)
        z = self.mul(a, a)
        near = self.mul(a, _polynomial(self.e, z, self.f.error_near))
        w = self.sub(self.within(a, 1.0, self.f.error_end), self.number(2.5))
        far = self.exponential(self.neg(_polynomial(self.e, w, self.f.error_far)))
        far = self.sub(self.number(1.0), far)
        return self.signed(self.where(self.is_("ole", a, 1.0), near, far), x)

    def hypot(self, x, y):
        a, b = self.fabs(x), self.fabs(y)
        big = self.where(self.is_("ogt", a, b), a, b)
        half = 2.0 ** (self.f.bias // 2)
        up, down = self.is_("olt", big, 1 / half), self.is_("ogt", big, half)
        scale = self.where(up, half, self.where(down, 1 / half, 1.0))
        back = self.where(up, 1 / half, self.where(down, half, 1.0))
        a, b = self.mul(a, scale), self.mul(b, scale)
        value = self.mul(self.e.root(self.fma(a, a, self.mul(b, b))), back)
        infinite = self.either(self.is_("oeq", a, math.inf), self.is_("oeq", b, math.inf))
        return self.where(infinite, math.inf, value)

    def pow(self, x, y):
        a = self.fabs(x)
        high, low = self._precise_logarithm(a)
        product = self.mul(y, high)
        rest = self.fma(y, high, self.neg(product))
        rest = self.fma(y, low, rest)
        end = self.is_("ogt", self.fabs(product), 2 * self.f.overflow)
        value = self.exponential(product, self.where(end, 0.0, rest))
        value = self.where(self.is_("oeq", a, 1.0), 1.0, value)
        whole = self.is_("oeq", self.e.call("floor", y), y)
        half = self.mul(y, self.number(0.5))
        odd = self.both(whole, self.is_("une", self.e.call("floor", half), half))
        minus = self.is_("olt", self.signed(self.number(1.0), x), 0.0)
        value = self.where(self.both(minus, odd), self.neg(value), value)
        # A negative number to a broken power; infinities have none, zeros no matter.
        ordinary = self.both(self.is_("olt", x, 0.0), self.is_("olt", a, math.inf))
        broken = self.both(ordinary, self.is_("une", self.e.call("floor", y), y))
        value = self.where(broken, math.nan, value)
        value = self.where(self.is_("uno", x, y), math.nan, value)
        certain = self.either(self.is_("oeq", x, 1.0), self.is_("oeq", y, 0.0))
        return self.where(certain, 1.0, value)

    def _precise_logarithm(self, a: str) -> tuple[str, str]:
        """log a for a >= 0 as a sum of two numbers, to a few bits less than both hold.

        2 s + 2/3 s^3 + ... with s, its square and 2/3 in two parts each; what follows is small.
        """
        f = self.f
        tiny = self.is_("olt", a, 2.0 ** (1 - f.bias))
        lift = 2 + f.fraction
        k, m = self.split(self.where(tiny, self.mul(a, self.number(2.0**lift)), a))
        k = self.where(tiny, self.sub(k, self.number(float(lift))), k)
        x = self.sub(m, self.number(1.0))
        d = self.add(x, self.number(2.0))
        s = self.e.quotient(x, d)
        left = self.fma(self.neg(s), d, x)
        left = self.fma(self.neg(s), self.sub(x, self.sub(d, self.number(2.0))), left)
        s_low = self.e.quotient(left, d)
        z = self.mul(s, s)
        z_low = self.fma(s, s, self.neg(z))
        z_low = self.fma(self.add(s, s), s_low, z_low)
        count = 11 if f.bits == 64 else 5
        series = tuple(2 / (2 * i + 1) for i in range(2, count))
        thirds = _parts(Fraction(2, 3), f.fraction)
        t, t_low = self._sum(self.number(thirds[0]), self.mul(z, _polynomial(self.e, z, series)))
        t_low = self.add(t_low, self.number(thirds[1]))
        cube, cube_low = self._product(z, z_low, t, t_low)
        cube, cube_low = self._product(s, s_low, cube, cube_low)
        first, first_low = self._sum(self.add(s, s), cube)
        first_low = self.add(self.fma(self.number(2.0), s_low, cube_low), first_low)
        start, start_low = self._sum(self.mul(k, self.number(f.ln2[0])), first)
        # ln 2 beyond its two parts, and the second part's own product, are below what we keep.
        third = _third_of_ln2(f.ln2)
        start_low = self.add(self.fma(k, self.number(third), start_low), first_low)
        second = self.mul(k, self.number(f.ln2[1]))
        second_low = self.fma(k, self.number(f.ln2[1]), self.neg(second))
        high, low = self._sum(start, second)
        low = self.add(low, self.add(start_low, second_low))
        high, low = self._sum(high, low)
        for value, result in ((math.inf, math.inf), (0.0, -math.inf)):
            there = self.is_("oeq", a, value)
            high, low = self.where(there, result, high), self.where(there, 0.0, low)
        return high, low

    def _sum(self, a, b):
        """a + b and what its rounding lost."""
        total = self.add(a, b)
        of_b = self.sub(total, a)
        lost = self.add(self.sub(a, self.sub(total, of_b)), self.sub(b, of_b))
        return total, lost

    def _product(self, a, a_low, b, b_low):
        """The product of two sums, again as a sum."""
        product = self.mul(a, b)
        low = self.fma(a, b, self.neg(product))
        return product, self.fma(a, b_low, self.fma(a_low, b, low))

    def fmod(self, x, y):
        """Long division, a bit at a time: exact, and quick where the quotient is small."""
        e = self.e
        a, b = self.fabs(x), self.fabs(y)
        usable = self.both(self.is_("olt", a, math.inf), self.is_("ogt", b, 0.0))  # NaN is not
        endless = self.is_("oeq", b, math.inf)
        whole, a = a, self.where(usable, a, 0.0)
        b = self.where(usable, self.where(endless, 1.0, b), 1.0)
        a = self.where(endless, 0.0, a)
        before, up, head, body, done = (
            e.label, *(e.new_label(stem) for stem in ("double", "divide", "bit", "divided"))
        )  # fmt: skip
        limit = self.mul(a, self.number(0.5))
        e.line(f"br label %{up}")
        e.start_block(up)
        d, twice = e.name(), e.name()
        e.line(f"{d} = phi {e.type} [ {b}, %{before} ], [ {twice}, %{up} ]")
        e.line(f"{twice} = fadd {e.type} {d}, {d}")
        more = e.define(f"fcmp ole {e.type} {d}, {limit}")
        e.line(f"br i1 {more}, label %{up}, label %{head}")
        e.start_block(head)
        r, by, left, half = (e.name() for _ in range(4))
        e.line(f"{r} = phi {e.type} [ {a}, %{up} ], [ {left}, %{body} ]")
        e.line(f"{by} = phi {e.type} [ {d}, %{up} ], [ {half}, %{body} ]")
        again = e.define(f"fcmp oge {e.type} {by}, {b}")
        e.line(f"br i1 {again}, label %{body}, label %{done}")
        e.start_block(body)
        fits = e.define(f"fcmp oge {e.type} {r}, {by}")
        less = e.define(f"fsub {e.type} {r}, {by}")
        e.line(f"{left} = select i1 {fits}, {e.type} {less}, {e.type} {r}")
        e.line(f"{half} = fmul {e.type} {by}, {self.number(0.5)}")
        e.line(f"br label %{head}")
        e.start_block(done)
        r = self.where(endless, whole, r)
        return self.signed(self.where(usable, r, math.nan), x)


def _parts(value: Fraction, fraction: int) -> tuple[float, float]:
    """A number as the sum of two of the given precision."""

    def rounded(x: Fraction) -> Fraction:
        scale = Fraction(2) ** (fraction - math.frexp(float(x))[1] + 1)
        return round(x * scale) / scale

    high = rounded(value)
    return float(high), float(rounded(value - high))


def _third_of_ln2(parts: tuple[float, float]) -> float:
    ln2 = Fraction(0xB17217F7D1CF79ABC9E3B39803F2F6AF, 2**128)
    return float(ln2 - Fraction(parts[0]) - Fraction(parts[1]))


def emit(e: Emitter, name: str, *arguments: str) -> str:
    """Emit a function of the C library on scalars."""
    return getattr(_Math(e), name)(*arguments)
