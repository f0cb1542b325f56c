"""C-RNEA: inverse dynamics by the cluster-based recursive Newton-Euler algorithm (Sec. VI).

| code | paper      | meaning                                  | shape |
|------|------------|------------------------------------------|-------|
| a    | a_k        | stacked body accelerations (33)          | (6l,) |
| f    | f_k^J      | force across the cluster joint (35)      | (6l,) |
"""

from __future__ import annotations

import numpy as np

from .first_pass import base_acceleration, first_pass, net_forces, parent_of


def c_rnea(model, q, v, a, f_ext=None):
    """The generalized force tau (nv,) that gives acceleration a in state (q, v)."""
    states = first_pass(model, q, v, posed=f_ext or ())
    acc = []
    for state in states:
        k = state.cluster
        up = parent_of(acc, k, base_acceleration(model))
        acc.append(state.X.motion(up) + state.c + state.S @ a[k.v])  # (33)
    f = net_forces(model, states, f_ext, acc)  # (34)
    tau = [None] * len(states)
    for state in reversed(states):
        k = state.cluster
        tau[k.index] = state.S.T @ f[k.index]  # (31)
        if state.R is not None:
            tau[k.index] = tau[k.index] + state.R @ a[k.v] + state.r
        if k.parent is not None:
            f[k.parent] = f[k.parent] + state.X.force_back(f[k.index])  # (35)
    return np.concatenate(tau)
