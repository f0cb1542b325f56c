"""The Coriolis matrix C(q, v) (Echeandia and Wensing 2021, here of clusters).

C v is the Coriolis and centrifugal force, and dM/dt - 2 C is skew-symmetric. With the Jacobian J_i
of each body and its rate of change as an absolute vector, seen in the body's axes,

    C = sum_i J_i' (I_i dJ_i + B_i J_i),   B_i = ½ [(v ×*) I - I (v ×) + (I v) ×̄*]

which on the spanning tree is Gᵀ C_span G + Gᵀ M_span Ġ. Composite I and B are carried as in the
composite rigid body algorithm.

| code | meaning                                                      | shape    |
|------|--------------------------------------------------------------|----------|
| S    | motion subspace of a cluster, by body                        | (6l, nv) |
| dS   | its rate of change as absolute vectors                       | (6l, nv) |
| dG   | Ġ, the rate of the cluster's map to spanning velocities      | (n, nv)  |
| I, B | composite inertia and Coriolis factor of a body's subtree    | 6x6      |

Joints and loops give second derivatives along one direction, S̊ v and Ġ v. The matrices follow by
polarization: the symmetric half of Ġ(u) w is ¼ [g(u + w) - g(u - w)], the other half is what the
order of two moves makes, ½ (G [Gu, Gw]_i - [Gu, Gw]) with the bracket of the joints' groups, and
[..]_i its entries at the independent columns. For a joint's own subspace it is
½ (S [u, w] - S u × S w).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import joined
from ..algebra.spatial import cross_motion, skew
from ..arguments import public
from .c_crba import composite_inertias
from .checks import checked
from .sweep import outward

if TYPE_CHECKING:
    from ..model import Model
    from ..typing import Array, ArrayLike, Floats
    from .sweep import ClusterState


@public
def coriolis_matrix(model: Model, q: ArrayLike, v: ArrayLike) -> Floats:
    """C (nv, nv): C v is the Coriolis and centrifugal force, dM/dt - 2 C is skew-symmetric."""
    q, v = checked(model, q=q, v=v)
    sweep = outward(model, q, v, keep_frame=None)
    IC, BC = composite_inertias(sweep), composite_factors(sweep)
    rates, n = [subspace_rate(state, v) for state in sweep], [c.nv for c in model.clusters]
    C = [[np.zeros((i, j)) for j in n] for i in n]
    for state in sweep:
        k, (dS, armature) = state.cluster.index, rates[state.cluster.index]
        parts = list(zip(state.cluster.bodies, state.split(state.S), state.split(dS)))
        momentum = np.concatenate([IC[b] @ S for b, S, _ in parts])
        force = np.concatenate([IC[b] @ dS + BC[b] @ S for b, S, dS in parts])
        turned = np.concatenate([BC[b].T @ S for b, S, _ in parts])
        C[k][k] = state.S.T @ force
        if armature is not None:
            C[k][k] = C[k][k] + armature
        while state.parent is not None:
            momentum, force, turned = (state.X.forces_back(F) for F in (momentum, force, turned))
            state = state.parent
            j = state.cluster.index
            C[j][k] = state.S.T @ force
            C[k][j] = momentum.T @ rates[j][0] + turned.T @ state.S
    return np.block(C) if n else np.zeros((0, 0))


def composite_factors(sweep: Any) -> dict[Any, Any]:
    """B by body, the children's subtrees added leaves first."""
    B = {}
    for state in sweep:
        for body, I, v in zip(state.cluster.bodies, state.I, state.split(state.v), strict=True):
            B[body] = coriolis_factor(I, v)
    for state in reversed(sweep):
        if state.parent is None:
            continue
        for X, j, body in zip(state.X.blocks, state.X.outputs, state.cluster.bodies, strict=True):
            up = state.parent.cluster.bodies[j]
            B[up] = B[up] + X.sandwich(B[body], X)
    return B


def coriolis_factor(I: Array, v: Array) -> Array:
    """B (6, 6) of one body: B v = v ×* I v, and B + B' the rate of I."""
    V = np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])
    h = I @ v
    n, f = skew(h[:3]), skew(h[3:])
    VI = V.T @ I  # v ×* = -V'
    return -0.5 * (VI + VI.T + np.block([[n, f], [f, np.zeros((3, 3))]]))


def subspace_rate(state: ClusterState, v: Array) -> tuple[Array, Array | None]:
    """(dS stacked by body, Gᵀ R Ġ of the armature R or None) of a cluster."""
    k, embedding = state.cluster, state.sweep.robot.embeddings[state.cluster.index]
    positions = {joint.body.index: joint.q for joint in state.joints}
    G = np.concatenate([joint.G for joint in state.joints])
    dG, out, armature = map_rate(embedding, positions, G, v[k.v]), [], None
    for joint, inside, u in zip(state.joints, k.inner, state.split(state.v)):
        rows = dG[embedding.columns[joint.body.index]]
        dS = joint.S @ rows + columns(lambda m, u=u: cross_motion(u, m), joint.S @ joint.G)
        turning = joint_rate(joint)
        dS = dS if turning is None else dS + turning @ joint.G
        out.append(dS if inside is None else joint.X.motions(out[inside]) + dS)
        if joint.body.joint.armature:
            term = joint.body.joint.armature * (joint.G.T @ rows)
            armature = term if armature is None else armature + term
    return np.concatenate(out), armature


def map_rate(
    joint: Any, positions: Mapping[int, Array], G: Array, y: Array
) -> Array | Array | Array:
    """Ġ (nv_span, nv) of a cluster that moves with its velocities y."""
    if not joint.loops:
        return np.zeros(G.shape)
    curved = [b for b in joint.bodies if b.joint.nq != b.joint.nv]

    def drift(y):
        _, _, g = joint.velocity_map(positions, y)
        return joined([g[b.index] for b in joint.bodies])

    def rate(e):
        out = 0.25 * (drift(y + e) - drift(y - e))
        if not curved:
            return out
        u, w = joint.split(G @ y), joint.split(G @ e)
        z = joined([b.joint.motion.bracket(u[b.index], w[b.index]) for b in joint.bodies])
        return out + 0.5 * (G @ z[list(joint.independent)] - z)

    return columns(rate, np.eye(joint.nv), G.shape[0])


def joint_rate(joint: Any) -> Array | Array | None:
    """S̊ (6, nv): how a joint's subspace changes in its own axes; None where it does not."""
    if joint.bias is None:
        return None
    motion, q, S, u = joint.body.joint.motion, joint.q, joint.S, joint.rate

    def rate(e):
        out = 0.25 * (motion.bias(q, u + e) - motion.bias(q, u - e))
        return out + 0.5 * (S @ motion.bracket(u, e) - cross_motion(S @ u, S @ e))

    return columns(rate, np.eye(motion.nv))


def columns(fn: Any, M: Array, height: int = 6) -> Array | Array:
    """fn of each column, side by side."""
    if M.shape[1] == 0:
        return np.zeros((height, 0))
    return np.stack([fn(M[:, i]) for i in range(M.shape[1])], axis=1)
