"""The dense reference: the Karush-Kuhn-Tucker system, solved in the sense of least squares.

    [M  -J'] [a]   [tau - h ]
    [J   R ] [λ] = [k - J̇ v]

By the singular values of M^(-1/2) J': those of J M⁻¹ J', their squares, have lost twice as many
digits. Floats only. Redundant rows get the multipliers of least norm; rows that no acceleration can
satisfy are met in the sense of least squares, among all accelerations that the multipliers can
cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.c_crba import c_crba
from ..algorithms.c_rnea import c_rnea
from ..algorithms.newton_euler import accelerated
from ..algorithms.sweep import outward
from ..tolerances import KKT_RANK
from .jacobian import jacobian_and_drift, softness
from .rows import constraint_rows, framed

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Wanted


def kkt(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
) -> Any:
    """(a, multipliers) by dense linear algebra."""
    m = sum(c.m for c in constraints)
    try:
        root = np.linalg.cholesky(c_crba(model, q))
    except np.linalg.LinAlgError:  # a joint that moves no inertia: no number, as the others give
        return np.full(model.nv, np.nan), np.full(m, np.nan)
    force = tau - c_rnea(model, q, v, np.zeros(model.nv), f_ext)
    free = np.linalg.solve(root.T, np.linalg.solve(root, force))
    if m == 0:
        return free, np.zeros(0)
    sweep = outward(model, q, v, keep_frame=framed(constraints))
    rows = constraint_rows(sweep, constraints, desired, accelerated(sweep))
    J, drift = jacobian_and_drift(sweep, rows)
    B = np.concatenate([np.linalg.solve(root, J.T), np.diag(np.sqrt(softness(rows)))])
    U, sizes, V = np.linalg.svd(B, full_matrices=False)
    least = KKT_RANK * sizes[0]
    inverse = np.where(sizes > least, 1.0 / np.maximum(sizes, least), 0.0)
    moved = inverse * (V @ -(drift + J @ free))
    return free + np.linalg.solve(root.T, (U @ moved)[: model.nv]), V.T @ (inverse * moved)
