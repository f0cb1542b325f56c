"""Tangent calculus: configurations moved by tangent vectors, and the tangent vectors between them.

A tangent vector ξ (nv,) has the coordinates of a velocity. q ⊕ ξ is the configuration after one
unit of time at the velocity ξ, q1 ⊖ q0 the ξ with q0 ⊕ ξ = q1:

| cluster          | q ⊕ ξ                                                                    |
|------------------|--------------------------------------------------------------------------|
| without loops    | the joint's exponential: sums, quaternions, screws of free bodies        |
| closed explicitly| the same of its independent joints                                       |
| closed implicitly| x_i = ξ for the independent columns of the increments x of all its tree  |
|                  | joints, the dependent ones x_d from φ(q ⊕ x) = 0 by Newton steps from G ξ |

Derivatives are by tangent vectors as well: with q ⊕ δ in place of q, q ⊕ ξ moves by A δ. A and its
counterparts by ξ, q0 and q1 are (nv, nv). Joints that are not flat (quaternions) have the A and B
of their group; the increments of a closed cluster follow from K (A G δ + B dx) = 0.

| code  | meaning                                                      | shape            |
|-------|--------------------------------------------------------------|------------------|
| x     | increments of a cluster's tree joints                        | (nv_span,)       |
| A, B  | how q ⊕ x changes with q and with x                          | (nv_span, nv_span)|
| T     | q̇ = T(q) v                                                   | (nq, nv)         |

Newton steps from G ξ may end on another assembly. They have passed a singularity of the partition
then: det K_d changes its sign. Such a configuration is refused, as one that stays open is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import joined, solve_general
from ..algebra.symbolic import is_symbolic
from ..compiler import iterate, precision
from ..coordinates.newton import LIMIT, beyond_slack, equations, largest_entry, reversal
from ..errors import ClosureError

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array

STEPS = 25  # Newton steps at most; 3 to 6 are usual
SINGLE = 1e-10  # relative spacing of numbers above which they are single precision
CLOSURE = {False: 1e-13, True: 1e-6}  # m or rad: Newton steps end here, in double and single
CLOSED = {False: 1e-10, True: 1e-5}  # m or rad: what stays open beyond it has not been closed


def integrate(model: Model, q: Array, xi: Array) -> Array:
    """q ⊕ ξ (nq,)."""
    parts = []
    for cluster in model.clusters:
        joint, own = cluster.embedding, q[cluster.q]
        x = xi[cluster.v]
        if joint.implicit:
            G, _, _ = joint.velocity_map(joint.positions(own), None)
            parts.append(closed(joint, own, G @ x))
        else:
            parts.append(moved(joint, own, x))
    return joined(parts)


def difference(model: Model, q0: Array, q1: Array) -> Array:
    """q1 ⊖ q0 (nv,)."""
    parts = []
    for cluster in model.clusters:
        joint = cluster.embedding
        x = increments(joint, q0[cluster.q], q1[cluster.q])
        if joint.implicit:
            x = x[list(joint.independent)]
        parts.append(x)
    return joined(parts)


def interpolate(model: Model, q0: Array, q1: Array, t: Any) -> Array:
    """q0 ⊕ t (q1 ⊖ q0) (nq,); Newton steps begin at the same share of every joint's increment."""
    parts = []
    for cluster in model.clusters:
        joint, own = cluster.embedding, q0[cluster.q]
        x = t * increments(joint, own, q1[cluster.q])
        parts.append(closed(joint, own, x) if joint.implicit else moved(joint, own, x))
    return joined(parts)


def tangent_map(model: Model, q: Any) -> Array:
    """T (nq, nv)."""
    blocks = []
    for cluster in model.clusters:
        joint = cluster.embedding
        positions = joint.positions(q[cluster.q])
        T = block_diagonal(
            [rates_map(b.joint.motion, positions[b.index]) for b in joint.coordinates]
        )
        if joint.implicit:
            T = T @ joint.velocity_map(positions, None)[0]
        blocks.append(T)
    return block_diagonal(blocks)


def integrate_derivatives(model: Model, q: Array, xi: Array) -> tuple[Array, Array]:
    """(A, B), each (nv, nv): q ⊕ ξ changes by A δ + B dξ."""
    by_q, by_xi = [], []
    for cluster in model.clusters:
        joint, own, x = cluster.embedding, q[cluster.q], xi[cluster.v]
        if joint.implicit:
            A, B = _closed_derivatives(joint, own, x)
        else:
            A, B = group_blocks(joint.coordinates, x, "integrate_derivatives")
        by_q.append(A)
        by_xi.append(B)
    return block_diagonal(by_q), block_diagonal(by_xi)


def difference_derivatives(model: Model, q0: Array, q1: Array) -> tuple[Array, Array]:
    """(A, B), each (nv, nv): q1 ⊖ q0 changes by A δ0 + B δ1."""
    by_q0, by_q1 = [], []
    for cluster in model.clusters:
        joint = cluster.embedding
        ends = q0[cluster.q], q1[cluster.q]
        x = increments(joint, *ends)
        if joint.implicit and not whole(joint):
            chosen = list(joint.independent)
            blocks = group_blocks(joint.bodies, x, "difference_derivatives")
            maps = [joint.velocity_map(joint.positions(end), None)[0] for end in ends]
            A, B = (D[chosen] @ G for D, G in zip(blocks, maps))
        else:
            bodies = independent_bodies(joint) if joint.implicit else joint.coordinates
            x = x[list(joint.independent)] if joint.implicit else x
            A, B = group_blocks(bodies, x, "difference_derivatives")
        by_q0.append(A)
        by_q1.append(B)
    return block_diagonal(by_q0), block_diagonal(by_q1)


def moved(joint: Any, q: Array, x: Array) -> Array:
    """A cluster's part of q after increments x of the joints whose positions it holds."""
    parts, i, j = [], 0, 0
    for body in joint.coordinates:
        motion = body.joint.motion
        parts.append(motion.integrate(q[i : i + motion.nq], x[j : j + motion.nv]))
        i, j = i + motion.nq, j + motion.nv
    return joined(parts)


def increments(joint: Any, q0: Array, q1: Array) -> Array:
    """The increments of the joints whose positions are a cluster's part of q."""
    parts, i = [], 0
    for body in joint.coordinates:
        motion = body.joint.motion
        parts.append(motion.difference(q0[i : i + motion.nq], q1[i : i + motion.nq]))
        i += motion.nq
    return joined(parts)


def closed(joint: Any, q: Array, x: Array) -> Array:
    """A closed implicit cluster's part of q near q ⊕ x, its independent increments kept.

    If its loops cannot be closed, floats raise a ClosureError and compiled code returns NaN."""
    single, n = precision() > SINGLE, q.shape[0]

    def newton(x, q):
        positions = joint.positions(moved(joint, q, x))
        phi = equations(joint.loops, positions)
        K = joint.constraint(positions, None)[0][list(joint.kept)]
        if any(b.joint.nq != b.joint.nv for b in joint.bodies):
            K = K @ group_blocks(joint.bodies, x, "integrate_derivatives")[1]
        solved = solve_general(K[:, list(joint.dependent)], phi[list(joint.kept)], joint.order)
        step = joint._scatter(-solved, np.zeros(joint.nv))
        step = step * (LIMIT / np.maximum(largest_entry(step), LIMIT))
        return x + step, beyond_slack(joint.loops, phi)

    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        x, gap, _ = iterate(newton, x, q, count=STEPS, tolerance=CLOSURE[single])
        found = moved(joint, q, x)
        before, after = joint.positions(q), joint.positions(found)
        good = np.logical_and(
            largest_entry(gap) <= CLOSED[single], reversal(joint.loops, after) < 1.0
        )
        good = np.logical_and(good, side(joint, before) * side(joint, after) > 0.0)
    if is_symbolic(good):
        return found + np.where(good, np.zeros(n), np.full(n, np.nan))
    if not good:
        raise ClosureError(
            f"loop '{joint.loops[0].name}' cannot be closed that far from q, or only beyond a "
            "singularity of its independent joints: take smaller steps, or other independent "
            "joints by model.repartition(q)"
        )
    return found


def side(joint: Any, positions: Mapping[int, Array]) -> float | Array:
    """The sign of det K_d, up to that of the order of elimination."""
    pivots, _ = joint.pivots(positions)
    sign = 1.0
    for pivot in pivots:
        sign = sign * np.where(pivot < 0.0, -1.0, 1.0)
    return sign


def whole(joint: Any) -> bool:
    """Whether each joint is independent or dependent in all its coordinates."""
    return sum(body.joint.nv for body in independent_bodies(joint)) == joint.nv


def independent_bodies(joint: Any) -> list[Any]:
    """The bodies all of whose joint's columns are independent."""
    chosen, columns = set(joint.independent), range(joint.nv_span)
    return [b for b in joint.bodies if chosen.issuperset(columns[joint.columns[b.index]])]


def group_blocks(bodies: Any, x: Array, method: str) -> tuple[Any, ...]:
    """(A, B) of joints one after the other at their increments, block diagonal."""
    pairs, start = [], 0
    for body in bodies:
        n = body.joint.nv
        pairs.append(getattr(body.joint.motion, method)(x[start : start + n]))
        start += n
    return tuple(block_diagonal([pair[i] for pair in pairs]) for i in range(2))


def _closed_derivatives(joint, q, xi):
    """(A, B) of a cluster closed implicitly."""
    if whole(joint):
        return group_blocks(independent_bodies(joint), xi, "integrate_derivatives")
    free, bound = list(joint.independent), list(joint.dependent)
    G, _, _ = joint.velocity_map(joint.positions(q), None)
    following = closed(joint, q, G @ xi)
    A, B = group_blocks(joint.bodies, increments(joint, q, following), "integrate_derivatives")
    K = joint.constraint(joint.positions(following), None)[0][list(joint.kept)]
    moves = np.concatenate([A @ G, B[:, free]], axis=1)
    solved = solve_general((K @ B)[:, bound], K @ moves, joint.order)
    moves = (moves - B[:, bound] @ solved)[free]
    return moves[:, : joint.nv], moves[:, joint.nv :]


def rates_map(motion: Any, q: Array) -> Array:
    """A joint's own T (nq, nv)."""
    return np.stack([motion.derivative(q, e) for e in np.eye(motion.nv)], axis=1)
