"""The dense reference: the Karush-Kuhn-Tucker system, solved in the sense of least squares.

    [M  -J'] [a]   [tau - h ]
    [J   R ] [λ] = [k - J̇ v]

Floats only. Redundant rows get the multipliers of least norm; rows that no acceleration can satisfy
are met in the sense of least squares, among all accelerations that the multipliers can cause.
"""

from __future__ import annotations

import numpy as np

from ..algorithms.c_crba import c_crba
from ..algorithms.c_rnea import c_rnea, net_forces
from ..algorithms.first_pass import first_pass
from .jacobian import jacobian_and_drift, softness
from .rows import constraint_rows, posed

RANK = 1e-10


def kkt(model, q, v, tau, constraints, f_ext=None, desired=None):
    """(a, multipliers) by dense linear algebra."""
    M = c_crba(model, q)
    free = np.linalg.solve(M, tau - c_rnea(model, q, v, np.zeros(model.nv), f_ext))
    m = sum(c.m for c in constraints)
    if m == 0:
        return free, np.zeros(0)
    bodies = posed(constraints)
    states = first_pass(model, q, v, posed=bodies)
    moving, _, _ = net_forces(model, q, v, None, None, bodies)
    rows = constraint_rows(model, states, constraints, desired, moving)
    J, drift = jacobian_and_drift(model, states, rows)
    R = softness(rows)
    MinvJt = np.linalg.solve(M, J.T)
    inverse = J @ MinvJt + np.diag(R)
    multipliers = np.linalg.lstsq(inverse, -(drift + J @ free), rcond=RANK)[0]
    return free + MinvJt @ multipliers, multipliers
