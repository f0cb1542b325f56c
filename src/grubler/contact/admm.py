"""The contact problem by ADMM, in NumPy: a reference that shares no code with the other solvers.

Each step solves a linear system with G + (ρ + η) 1 and projects onto the cones, with De Saxcé's
correction of the step before (Carpentier, Le Lidec and Montaut, From compliant to rigid contact
simulation, 2024). It does not mind a singular G, and takes tens to hundreds of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

RELAX = 1e-12  # η relative to the mean diagonal of G: keeps the system regular
BALANCE = 10.0  # primal and dual residuals further apart than this change ρ
EVERY = 10  # steps between two looks at the balance


def admm(
    G: np.ndarray, g: np.ndarray, friction: Any, count: int = 20_000, tolerance: float = 1e-12
) -> Any:
    """(λ (3 c,), residual in m/s, steps) of points with rows t1, t2, n and Coulomb's law."""
    mu = np.asarray(friction, dtype=float)
    size = np.trace(G) / len(G)
    rho = size
    x, y, z = np.zeros_like(g), np.zeros_like(g), np.zeros_like(g)
    residual, factor = np.inf, None
    eye = np.eye(len(g))
    for step in range(1, count + 1):
        u = G @ y + g
        if factor is None:
            factor = np.linalg.inv(G + (rho + RELAX * size) * eye)
        s = _correction(u, mu)
        x = factor @ (rho * y - z - g - s + RELAX * size * x)
        before, y = y, _cones(x + z / rho, mu)
        z = z + rho * (x - y)
        u = G @ y + g
        residual = np.abs(size * (y - _cones(y - (u + _correction(u, mu)) / size, mu))).max()
        if residual <= tolerance:
            break
        primal, dual = rho * np.abs(x - y).max(), rho * np.abs(y - before).max()
        if step % EVERY == 0 and not 1 / BALANCE < (primal + 1e-300) / (dual + 1e-300) < BALANCE:
            rho, factor = rho * (2.0 if primal > dual else 0.5), None
    return y, residual, step


def _correction(u, mu):
    out = np.zeros_like(u)
    out[2::3] = mu * np.hypot(u[0::3], u[1::3])
    return out


def _cones(x, mu):
    """The nearest point of the product of the cones."""
    out = np.array(x).reshape(-1, 3)
    for row, m in zip(out, mu, strict=True):
        t, n = np.hypot(row[0], row[1]), row[2]
        if t <= m * n:
            continue
        if m * t <= -n:
            row[:] = 0.0
            continue
        normal = (n + m * t) / (1 + m * m)
        row[:2] *= m * normal / t
        row[2] = normal
    return out.ravel()


__all__ = ["admm"]
