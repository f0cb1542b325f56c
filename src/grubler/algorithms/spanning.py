"""Maps between independent and spanning coordinates: q = γ(y), qd = G v, qdd = G a + g (3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.linalg import joined

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


class SpanningState(NamedTuple):
    """Positions, velocities and accelerations of every tree joint, stacked cluster by cluster.

    `names` are the joints in that order, `position_slices` and `velocity_slices` their places;
    velocities and accelerations are None where v or a was not given.
    """

    positions: np.ndarray
    velocities: np.ndarray | None
    accelerations: np.ndarray | None


def spanning_map(
    model: Model, q: Array | None, v: Array | None = None
) -> tuple[Array, Array | None]:
    """G (nv_span, nv) of the whole model, block diagonal over clusters, and g (None without v)."""
    blocks, drift = [], []
    for cluster in model.clusters:
        joint = cluster.embedding
        positions = joint.positions(q[cluster.q])
        G, _, g = joint.velocity_map(positions, None if v is None else v[cluster.v])
        left, right = np.zeros((joint.nv_span, cluster.v.start)), model.nv - cluster.v.stop
        blocks.append(np.concatenate([left, G, np.zeros((joint.nv_span, right))], axis=1))
        if v is not None:
            drift += [g[body.index] for body in joint.bodies]
    return joined(blocks, (0, 0)), joined(drift) if v is not None else None


def spanning_state(
    model: Model, q: Array, v: Array | None = None, a: Array | None = None
) -> SpanningState:
    """Every tree joint's position, velocity (given v) and acceleration (given v and a)."""
    positions = model.unpack(q)
    stacked = model.spanning.stack(positions)
    if v is None:
        return SpanningState(stacked, None, None)
    G, g = spanning_map(model, q, v)
    return SpanningState(stacked, G @ v, None if a is None else G @ a + g)


def generalized_force(model: Model, q: Any, torques: Any) -> Array:
    """tau = G' torques, the torques of all spanning velocities in order (virtual work)."""
    tau = []
    for cluster in model.clusters:
        joint = cluster.embedding
        G, _, _ = joint.velocity_map(joint.positions(q[cluster.q]), None)
        tau.append(G.T @ torques[cluster.span])
    return joined(tau)


def loop_constraints(model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """K (rows, nv_span) and k of all loops (2), the redundant rows of each cluster left out."""
    from ..coordinates.embedding import stack_rows

    G, _ = spanning_map(model, q)
    velocities = G @ v
    rows, bias = [], []
    for cluster in model.clusters:
        if not cluster.loops:
            continue
        joint = cluster.embedding
        local = joint.split(velocities[cluster.span])
        K, k = stack_rows(joint.bodies, cluster.loops, joint.positions(q[cluster.q]), local)
        kept = list(joint.kept) or list(range(K.shape[0]))
        left = np.zeros((len(kept), cluster.span.start))
        right = np.zeros((len(kept), model.nv_span - cluster.span.stop))
        rows.append(np.concatenate([left, K[kept], right], axis=1))
        bias.append(k[kept])
    if not rows:
        return np.zeros((0, model.nv_span)), np.zeros(0)
    return np.concatenate(rows), np.concatenate(bias)


def independent_columns(model: Model) -> list[int]:
    """The columns of the spanning velocities that are the model's v."""
    return [c.span.start + i for c in model.clusters for i in c.embedding.independent]
