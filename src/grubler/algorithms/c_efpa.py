"""C-EFPA: the inverse operational-space inertia matrix by cluster force propagators (Sec. VIII).

| code | paper   | meaning                                               | shape     |
|------|---------|-------------------------------------------------------|-----------|
| J    | U_k, D_k | the joint of cluster k eliminated, see elimination.py (49) |       |
| P    | eχ_k'   | articulated force propagator from effector e (57),(62)| (6l, m)   |
| Y    | S_k' eχ_k' | force of effector e on the cluster joint           | (nv, m)   |
| Om   | Ω_ke⁻¹  | acceleration of cluster k per force at e (67)         | (6l, m)   |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import symmetric
from .elimination import eliminations
from .sweep import outward

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array, Frame


def c_efpa(model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> Any:
    """Ω⁻¹ (sum of rows, squared) for `frames`, a list of (Frame, rows): rows of [angular; linear]
    at the frame, in its axes."""
    sweep = outward(model, q, keep_frame=[frame.body for frame, _ in frames])
    J, tree = eliminations(sweep), model.tree
    ends = [tree.locate(frame.body) for frame, _ in frames]
    P, Y, Om = [], [], []  # by effector, then by cluster on its path to the base
    for (frame, rows), (end, place) in zip(frames, ends, strict=True):
        unit = frame.placement.forces_back(np.eye(6)[:, list(rows)])
        p, y, om = {end: sweep[end].on_body(place, unit)}, {}, {}  # (57)
        for k in tree.inward(end):
            y[k] = sweep[k].S.T @ p[k]
            if tree.parent[k] is not None:
                p[tree.parent[k]] = J[k].forces(p[k], y[k])  # (62)
        for k in tree.outward(end):
            om[k] = sweep[k].S @ J[k].D.solve(y[k])  # (67)
            if tree.parent[k] is not None:
                om[k] = om[k] + J[k].motions(om[tree.parent[k]])
        P.append(p)
        Y.append(y)
        Om.append(om)

    n = len(frames)
    blocks = [[None] * n for _ in range(n)]
    for e in range(n):
        # an effector with itself: (67) summed along its path, one rank-nv term a cluster
        blocks[e][e] = sum(J[k].D.quadratic(Y[e][k]) for k in tree.outward(ends[e][0]))
        for other in range(e + 1, n):
            j = tree.common(ends[e][0], ends[other][0])
            if j is None:
                blocks[e][other] = np.zeros((len(frames[e][1]), len(frames[other][1])))
            else:  # at the nearest common ancestor the rest of the way is the propagator's
                blocks[e][other] = P[e][j].T @ Om[other][j]
            blocks[other][e] = blocks[e][other].T
    return symmetric(np.block(blocks))
