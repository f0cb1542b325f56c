"""What each operation of a tape means, on NumPy numbers.

The reference for every backend, and the arithmetic by which constants are folded.
"""

from __future__ import annotations

import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[float])


def _truth(x):
    return np.asarray(x) != 0


def _as_number(condition):
    return np.where(condition, 1.0, 0.0)[()]


FUNCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sq": lambda x: x * x,
    "twice": lambda x: x + x,
    "inv": lambda x: np.divide(1.0, x),
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
    "fnms": lambda a, b, c: -(a * b) - c,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "exp": np.exp,
    "log": np.log,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "pow": np.power,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": lambda x: _erf(x)[()],
    "hypot": np.hypot,
    "fmod": np.fmod,
    "fabs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "copysign": np.copysign,
    # NaN passes through, as in np.minimum, np.maximum and np.clip: C's fmin would hide it.
    "fmin": np.minimum,
    "fmax": np.maximum,
    "lt": lambda a, b: _as_number(a < b),
    "le": lambda a, b: _as_number(a <= b),
    "eq": lambda a, b: _as_number(a == b),
    "ne": lambda a, b: _as_number(a != b),
    "not": lambda a: _as_number(~_truth(a)),
    "and": lambda a, b: _as_number(_truth(a) & _truth(b)),
    "or": lambda a, b: _as_number(_truth(a) | _truth(b)),
    "if_else_zero": lambda c, a: np.where(_truth(c), a, 0.0)[()],
    "select": lambda c, a, b: np.where(_truth(c), a, b)[()],
}

COMMUTATIVE = {"add", "mul", "eq", "ne", "and", "or", "fmin", "fmax", "hypot"}
