"""C-EFPA: the inverse operational-space inertia matrix by cluster force propagators (Sec. VIII).

| code | paper   | meaning                                               | shape     |
|------|---------|-------------------------------------------------------|-----------|
| P    | eχ_k'   | articulated force propagator from effector e (57),(62)| (6l, m)   |
| Y    | S_k' eχ_k' | force of effector e on the cluster joint           | (nv, m)   |
| Om   | Ω_ke⁻¹  | acceleration of cluster k per force at e (67)         | (6l, m)   |
"""

from __future__ import annotations

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import LDL, symmetric
from .c_aba import joint_inertia, seen_from_parent
from .first_pass import first_pass


def c_efpa(model, q, frames):
    """Ω⁻¹ (sum of rows, squared) for `frames`, a list of (Frame, rows): rows of [angular; linear]
    at the frame, in its axes."""
    posed = [frame.body for frame, _ in frames]
    states = first_pass(model, q, posed=posed)
    S, X = [s.S for s in states], [s.X for s in states]
    U, D = articulated(states)

    P, Y, path = [], [], []  # by effector: propagators and joint forces by cluster
    for frame, rows in frames:
        home, place = model.tree.locate(frame.body)
        unit = frame.placement.forces_back(np.eye(6)[:, list(rows)])
        propagators, forces = {home: states[home].on_body(place, unit)}, {}  # (57)
        for k in model.tree.inward(home):
            forces[k] = S[k].T @ propagators[k]
            parent = model.tree.parent[k]
            if parent is not None:
                through = propagators[k] - U[k] @ D[k].solve(forces[k])
                propagators[parent] = X[k].forces_back(through)  # (62)
        P.append(propagators)
        Y.append(forces)
        path.append(model.tree.outward(home))

    Om = [_outward(model, path[e], S, X, U, D, Y[e]) for e in range(len(frames))]
    blocks = [[None] * len(frames) for _ in frames]
    for e in range(len(frames)):
        # an effector with itself: (67) summed along its path, one rank-nv term a cluster
        terms = [D[k].quadratic(Y[e][k]) for k in path[e]]
        blocks[e][e] = sum(terms[1:], terms[0])
        for other in range(e + 1, len(frames)):
            j = model.tree.common(path[e][-1], path[other][-1])
            if j is None:
                blocks[e][other] = np.zeros((len(frames[e][1]), len(frames[other][1])))
            else:  # at the greatest common ancestor the rest of the way is the propagator's
                blocks[e][other] = P[e][j].T @ Om[other][j]
            blocks[other][e] = blocks[e][other].T
    return symmetric(np.block(blocks))


def articulated(states):
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
    Om: dict = {}
    for k in path:
        Om[k] = S[k] @ D[k].solve(Y[k])
        parent = model.clusters[k].parent
        if parent is not None:
            carried = X[k].motions(Om[parent])
            Om[k] = Om[k] + carried - S[k] @ D[k].solve(U[k].T @ carried)
    return Om
