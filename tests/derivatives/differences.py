"""Derivatives known otherwise: the tangent map, and differences along the closed manifold."""

from itertools import pairwise

import numpy as np


def tangent(model, q):
    """T (nq, nv) with q̇ = T v, by the joints' own rates."""
    columns = []
    for e in np.eye(model.nv):
        rate = []
        for k in model.clusters:
            positions = k.embedding.positions(q[k.q])
            _, rates, _ = k.embedding.velocity_map(positions, e[k.v])
            rate += [
                body.joint.motion.derivative(positions[body.index], rates[body.index])
                for body in k.embedding.coordinates
            ]
        columns.append(np.concatenate([np.zeros(0), *rate]))
    return np.stack(columns, axis=1)


def slope(move, h):
    """The derivative of `move(t)` at 0: central differences of four steps, extrapolated."""
    rows = [[(move(t) - move(-t)) / (2 * t) for t in (h / 2**k for k in range(4))]]
    for order in (4, 16, 64):
        rows.append([(order * b - a) / (order - 1) for a, b in pairwise(rows[-1])])
    return rows[-1][0]


def by_q(model, fn, q, h=0.01):
    """The derivative of fn(q) along each tangent coordinate."""
    return np.stack(
        [slope(lambda t, e=e: fn(model.integrate(q, e, t)), h) for e in np.eye(model.nv)], axis=-1
    )


def by_vector(fn, x, h=0.01):
    """The derivative of fn(x) by each entry of x."""
    return np.stack([slope(lambda t, e=e: fn(x + t * e), h) for e in np.eye(len(x))], axis=-1)
