"""C-ABA: forward dynamics by the cluster-based articulated-body algorithm (Sec. VII, Algorithm 1).

| code | paper      | meaning                                              | shape    |
|------|------------|------------------------------------------------------|----------|
| S, X | S_k, kX_λ  | motion subspace of a cluster's joint, its transform  |          |
| IA   | I_k^A      | articulated inertia (55)                             | (6l, 6l) |
| pA   | p_k^A      | articulated bias force (55)                          | (6l,)    |
| J    | U_k, D_k   | the joint eliminated, see elimination.py (49)        |          |
| u    | u_k        | force left to accelerate the joint (49)              | (nv,)    |
| qdd  | ÿ_k        | acceleration of the joint (52)                       | (nv,)    |

Accelerations are what the robot has beyond coasting, a = 0. What velocities and gravity do is in
the net forces of C-RNEA's first pass, and the paper's c_k is nowhere else: fewer operations than
carrying it through both passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import joined
from .c_rnea import net_forces
from .elimination import Elimination
from .newton_euler import accelerated
from .sweep import outward, parent_of

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


def c_aba(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """The acceleration a (nv,) under generalized force tau in state (q, v)."""
    sweep = outward(model, q, v)
    IA = [block_diagonal(state.I) for state in sweep]  # line 20
    pA = sweep.stack(net_forces(accelerated(sweep), f_ext))  # line 21
    J, u, a, qdd = {}, {}, [], []
    for state in reversed(sweep):
        k, up = state.cluster.index, state.cluster.parent
        J[k] = Elimination(state, IA[k])  # (49)
        u[k] = J[k].joint_force(pA[k], tau[state.cluster.v])
        if up is not None:
            IA[up] = IA[up] + J[k].inertia()  # (55), (56)
            pA[up] = pA[up] + J[k].bias(pA[k], tau[state.cluster.v], u[k])
    for state in sweep:
        k = state.cluster.index
        own, moved = J[k].motion(u[k], parent_of(a, state.cluster, None))  # (52)
        qdd.append(own)
        a.append(moved)
    return joined(qdd)
