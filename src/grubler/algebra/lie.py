"""Exponentials of rotation vectors and twists with their derivatives, accurate at every size.

A rotation vector w turns a frame by θ = ‖w‖ about its own axes, a twist x = [w; l] moves it along a
screw. With W = [w x], s = θ² and the scalars

    A = sin θ / θ,   B = (1 - cos θ) / θ²,   C = (θ - sin θ) / θ³,   B', C' = dB/dθ / θ, dC/dθ / θ

| function                | value                                                   |
|-------------------------|---------------------------------------------------------|
| `rotation(w)`           | exp W = 1 + A W + B W²                                  |
| `advance(w, l)`         | V l, the way of the origin, V = 1 + B W + C W²          |
| `rotation_jacobian(w)`  | J: exp(w + dw) = exp(w) exp(J dw), J = 1 - B W + C W²   |
| `rotation_jacobian_inverse(w)` | J⁻¹ = 1 + W/2 + c W²                             |
| `twist_jacobian(x)`     | the same of twists, (6, 6)                              |
| `twist_jacobian_inverse(x)` | its inverse                                         |

Where their closed forms cancel, below NEAR, scalars are power series in s. All functions take
floats and symbols.
"""

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from .spatial import cross, half_angle, skew

if TYPE_CHECKING:
    from ..typing import Array

NEAR = 0.25  # rad²: below, TERMS terms of the series are exact to the last digit
TERMS = 7  # NEAR**7 / 16! is 3e-18


def _series(coefficients, s):
    """sum_k coefficients[k] (-s)^k by Horner's rule."""
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = c - s * value
    return value


_C = [1.0 / factorial(2 * k + 3) for k in range(TERMS)]
# B' and C' are twice the derivatives by s, whose term of order k comes from order k + 1
_DB = [-2.0 * (k + 1) / factorial(2 * k + 4) for k in range(TERMS)]
_DC = [-2.0 * (k + 1) / factorial(2 * k + 5) for k in range(TERMS)]
# (1 - (θ/2) cot(θ/2)) / θ² = sum_k b_k s^k, from Bernoulli's numbers
_COT = [1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600]


def scalars(w: Array) -> tuple[Any, Array, Array]:
    """(A, B, C) of a rotation vector."""
    quarter, cosine, sine = half_angle(w)  # of θ/2; the sine over θ/2
    s = 4.0 * quarter
    near = s < NEAR
    C = np.where(near, _series(_C, s), (1.0 - sine * cosine) / np.where(near, 1.0, s))
    return 1.0 - s * C, 0.5 * (sine * sine), C


def rotation(w: Array) -> Any:
    """exp [w x] (3, 3), from the turned frame's coordinates to those before."""
    A, B, _ = scalars(w)
    W = skew(w)
    return np.eye(3) + A * W + B * (W @ W)


def advance(w: Array, l: Array) -> Array:
    """The way of the origin along a screw of one unit of time, in the axes before it (3,)."""
    _, B, C = scalars(w)
    wl = cross(w, l)
    return l + B * wl + C * cross(w, wl)


def advance_inverse(w: Array, d: Any) -> Any:
    """The linear part l of the twist whose rotation vector is w and whose origin goes by d (3,)."""
    wd = cross(w, d)
    return d - 0.5 * wd + _cotangent(w) * cross(w, wd)


def rotation_jacobian(w: Array) -> Array:
    """J (3, 3): a rotation vector w + dw turns as w does, and then by J dw."""
    _, B, C = scalars(w)
    W = skew(w)
    return np.eye(3) - B * W + C * (W @ W)


def rotation_jacobian_inverse(w: Array) -> Array:
    """J⁻¹ (3, 3)."""
    W = skew(w)
    return np.eye(3) + 0.5 * W + _cotangent(w) * (W @ W)


def twist_jacobian(x: Array) -> Array:
    """J (6, 6): a twist x + dx moves as x does, and then by J dx."""
    w, l = x[:3], x[3:]
    J = rotation_jacobian(w)
    return np.block([[J, np.zeros((3, 3))], [_mixed(w, l), J]])


def twist_jacobian_inverse(x: Array) -> Array:
    """J⁻¹ (6, 6)."""
    w, l = x[:3], x[3:]
    inverse = rotation_jacobian_inverse(w)
    return np.block([[inverse, np.zeros((3, 3))], [-(inverse @ _mixed(w, l) @ inverse), inverse]])


def _mixed(w, l):
    """How the way V l changes with w, in the turned axes: exp(W)' d(V l)/dw."""
    A, B, C = scalars(w)
    s = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    near = s < NEAR
    t = np.where(near, 1.0, s)
    dB = np.where(near, _series(_DB, s), (A - 2.0 * B) / t)
    dC = np.where(near, _series(_DC, s), (B - 3.0 * C) / t)
    W, L, wl = skew(w), skew(l), cross(w, l)
    slope = np.outer(dB * wl + dC * cross(w, wl), w) - B * L - C * (skew(wl) + W @ L)
    return (np.eye(3) - A * W + B * (W @ W)) @ slope


def _cotangent(w):
    """c = (1 - (θ/2) cot(θ/2)) / θ²."""
    s = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    near = s < NEAR
    t = np.where(near, 1.0, s)
    half = 0.5 * np.sqrt(t)
    return np.where(near, _series(_COT, -s), (1.0 - half * np.cos(half) / np.sin(half)) / t)
