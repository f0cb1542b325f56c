"""C-EFPA: the inverse operational-space inertia matrix by cluster force propagators (Sec. VIII).

| code | paper   | meaning                                               | shape     |
|------|---------|-------------------------------------------------------|-----------|
| P    | eχ_k'   | articulated force propagator from effector e (57),(62)| (6l, m)   |
| Y    | S_k' eχ_k' | force of effector e on the cluster joint           | (nv, m)   |
| Om   | Ω_ke⁻¹  | acceleration of cluster k per force at e (67)         | (6l, m)   |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import LDL, symmetric
from .c_aba import joint_inertia, seen_from_parent
from .first_pass import first_pass, locate

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array, Frame
    from .first_pass import ClusterState


def c_efpa(model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> Any:
    """Ω⁻¹ (sum of rows, squared) for `frames`, a list of (Frame, rows): rows of [angular; linear]
    at the frame, in its axes."""
    posed = [frame.body for frame, _ in frames]
    states = first_pass(model, q, posed=posed)
    S, X = [s.S for s in states], [s.X for s in states]
    U, D = articulated(states)

    P, Y, path = [], [], []  # by effector: propagators and joint forces by cluster
    for frame, rows in frames:
        k, place = locate(model, frame.body)
        start = frame.placement.forces_back(np.eye(6)[:, list(rows)])
        sizes = states[k].X.sizes
        piece = [start if i == place else np.zeros((n, len(rows))) for i, n in enumerate(sizes)]
        propagators, forces = {k: np.concatenate(piece)}, {}  # (57)
        chain = [k]
        while True:
            forces[k] = S[k].T @ propagators[k]
            parent = model.clusters[k].parent
            if parent is None:
                break
            through = propagators[k] - U[k] @ D[k].solve(forces[k])
            propagators[parent] = X[k].forces_back(through)  # (62)
            k = parent
            chain.append(k)
        P.append(propagators)
        Y.append(forces)
        path.append(chain[::-1])

    Om = [_outward(model, path[e], S, X, U, D, Y[e]) for e in range(len(frames))]
    blocks = [[None] * len(frames) for _ in frames]
    for e in range(len(frames)):
        # an effector with itself: (67) summed along its path, one rank-nv term a cluster
        terms = [D[k].quadratic(Y[e][k]) for k in path[e]]
        blocks[e][e] = sum(terms[1:], terms[0])
        for other in range(e + 1, len(frames)):
            common = [k for k in path[e] if k in path[other]]
            if not common:
                blocks[e][other] = np.zeros((len(frames[e][1]), len(frames[other][1])))
            else:  # at the greatest common ancestor the rest of the way is the propagator's
                j = common[-1]
                blocks[e][other] = P[e][j].T @ Om[other][j]
            blocks[other][e] = blocks[e][other].T
    return symmetric(np.block(blocks))


def articulated(states: list[ClusterState]) -> tuple[dict[int, Array], dict[int, LDL]]:
    """U and D of every cluster from the articulated inertias alone (49), (55)."""
    IA = [block_diagonal(state.I) for state in states]
    U, D = {}, {}
    for state in reversed(states):
        k, p = state.cluster.index, state.cluster.parent
        U[k] = IA[k] @ state.S
        D[k] = LDL(joint_inertia(state, U[k]))
        if p is not None:
            IA[p] = IA[p] + seen_from_parent(state, IA[k], U[k], D[k])
    return U, D


def _outward(model, path, S, X, U, D, Y):
    """Ω_ke⁻¹ along the path from the base to the effector (67)."""
    Om: dict[Any, Any] = {}
    for k in path:
        Om[k] = S[k] @ D[k].solve(Y[k])
        parent = model.clusters[k].parent
        if parent is not None:
            carried = X[k].motions(Om[parent])
            Om[k] = Om[k] + carried - S[k] @ D[k].solve(U[k].T @ carried)
    return Om
