"""Distance to the ground: a plane, or a height field.

| code | symbol    | meaning                                                        | shape |
|------|-----------|----------------------------------------------------------------|-------|
| p    | p         | a point                                                        | (3,)  |
| h, g | h, ∇h     | height and its slope at (x, y)                                 | (), (2,) |
| n    | n         | normal, (−∇h, 1) / √(1 + |∇h|²)                                | (3,)  |
| d    | d         | distance to the tangent plane: n·(p − foot)                    | ()    |

On a plane the distance is exact. On a height field it is that to the tangent plane at the foot of
the point. The foot is found by fixed-point steps, p − d n, from the tangent plane before it: exact
on slopes, an error of order (κ d)^(2 k + 2) d after k steps on ground of curvature κ.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..algebra.symbolic import Differentiable
from ..mechanism.geometry import HeightField, Plane
from ..typing import Array
from .placed import Placed, Touch

if TYPE_CHECKING:
    from ..typing import Array

STEPS = 1  # fixed-point steps to the foot of a point that is not on the surface itself


def touch(ground: Placed, point: Array, radius: float = 0.0) -> Touch:
    """Where a ball of some radius (0: a point) touches a plane or a height field first."""
    d, n = distance(ground, point, STEPS if radius else 0)
    gap = d - radius
    return Touch(gap, point - (radius + gap / 2) * n, n)


def distance(ground: Placed, point: Array, steps: int = 0) -> tuple[Array, Array]:
    """The distance (negative below) of a point from the ground, and the ground's normal."""
    shape, R, c = ground.shape, ground.R, ground.p
    if isinstance(shape, Plane):
        n = R[:, 2]
        return n @ (point - c), n
    p = R.T @ (point - c)
    x, y = p[0], p[1]
    for k in range(steps + 1):
        h, g = height(shape, x, y)
        scale = 1.0 / np.sqrt(1.0 + g[0] * g[0] + g[1] * g[1])
        d = scale * (p[2] - h - g[0] * (p[0] - x) - g[1] * (p[1] - y))
        if k < steps:
            x, y = p[0] + d * scale * g[0], p[1] + d * scale * g[1]
    return d, R @ np.stack([-scale * g[0], -scale * g[1], scale])


def height(field: HeightField, x: Array, y: Array) -> tuple[Array, Array]:
    """The height of a field above (x, y), and its slope (2,)."""
    if field.function is not None:
        f, at = _differentiable(field.function), np.stack([x, y])
        return f.value(at)[0], f.jacobian(at)[0]
    nx, ny = field.heights.shape
    wx, dx = _weights(x, nx, field.size[0])
    wy, dy = _weights(y, ny, field.size[1])
    # the products are written out: a matrix product of NumPy's would round otherwise than a trace
    row = [sum(wx[i] * field.heights[i, j] for i in range(nx)) for j in range(ny)]
    slope = [sum(dx[i] * field.heights[i, j] for i in range(nx)) for j in range(ny)]
    h = sum(a * w for a, w in zip(row, wy))
    gx = sum(a * w for a, w in zip(slope, wy))
    gy = sum(a * w for a, w in zip(row, dy))
    return h, np.stack([gx, gy])


def _weights(x, n: int, length: float):
    """Of n heights along an edge the weights at x, and their derivatives: two are not zero."""
    step = length / (n - 1)
    u = (x + length / 2) / step
    inside = np.logical_and(u >= 0.0, u <= n - 1.0)
    u = np.minimum(np.maximum(u, 0.0), n - 1.0)
    k = np.minimum(np.floor(u), n - 2.0)
    f = u - k
    slope = np.where(inside, 1.0 / step, 0.0)
    first = [np.where(k == i, 1.0, 0.0) for i in range(n - 1)]
    zero = [0.0]
    weights = [(1.0 - f) * a + f * b for a, b in zip(first + zero, zero + first)]
    slopes = [slope * (b - a) for a, b in zip(first + zero, zero + first)]
    return weights, slopes


@lru_cache(maxsize=64)
def _differentiable(function) -> Differentiable:
    return Differentiable(lambda p: np.stack([function(p[0], p[1])]), 2)
