"""How a cluster's joints move with its coordinates, to second order: what constant G leaves out.

With τ = Gᵀ λ of spanning forces λ, q̇ = G v and q̈ = G a + g, a change of the coordinates adds

    ∂(G v)/∂y,   ∂(G a + g)/∂y,   ∂g/∂v,   ∂(Gᵀ λ)/∂y

to the derivatives of the spanning tree. They are zero for gears and belts. For loops closed
implicitly they follow from K G = 0 and K q̈ = k, by the elimination that G itself needs:

    K ∂(G v) = -∂K[G] q̇,   K ∂q̈ = ∂k[G] - ∂K[G] q̈,   ∂(Gᵀ λ) = -Gᵀ ∂(Kᵀ μ)[G],   K_dᵀ μ = λ_d,

where ∂K[G] is the derivative of K along the closed manifold. A joint whose motion subspace depends
on its position (universal, planar) adds the derivatives of S in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import solve_general
from ..algebra.symbolic import Derivative
from ..algorithms.sweep import JointState
from ..algorithms.tangent import rates_map
from ..coordinates.embedding import Embedding
from ..mechanism.layout import Layout

if TYPE_CHECKING:
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class Curvature:
    """Derivatives of one cluster's spanning motion, n columns, one a tangent coordinate.

    | code | meaning                                   | shape        |
    |------|-------------------------------------------|--------------|
    | Vq   | ∂(G v)/∂y                                 | (nv_span, n) |
    | Aq   | ∂(G a + g)/∂y                             | (nv_span, n) |
    | Av   | ∂g/∂v                                     | (nv_span, n) |
    | Fq   | ∂(Gᵀ λ)/∂y at constant λ                  | (n, n)       |
    """

    Vq: np.ndarray
    Aq: np.ndarray
    Av: np.ndarray
    Fq: np.ndarray | None

    def rows(self, joint: slice) -> Curvature:
        """Those of one joint, without the forces."""
        return Curvature(self.Vq[joint], self.Aq[joint], self.Av[joint], None)


def curvature(embedding: Embedding, q: Array, v: Array, a: Array, force: Array) -> Curvature | None:
    """The derivatives above, given the cluster's q, v, a and the forces on its tree joints;
    None where G is constant."""
    if not embedding.loops:
        return None
    if embedding.implicit:
        return _implicit(embedding, q, v, a, force)
    return _explicit(embedding, q, v, a, force)


def _explicit(embedding, q, v, a, force):
    second = _explicit_derivative(embedding)
    if second.constant:
        return None
    (velocity, _), (acceleration, by_rate), (generalized, _) = second(q, v, a, force)
    T = tangent(embedding.coordinates, q)
    return Curvature(velocity @ T, acceleration @ T, by_rate, generalized @ T)


@lru_cache(maxsize=256)
def _explicit_derivative(embedding) -> Derivative:
    def motion(q, v, a, force):
        G, _, drifts = embedding.velocity_map(embedding.positions(q), v)
        drift = np.concatenate([drifts[body.index] for body in embedding.bodies])
        return G @ v, G @ a + drift, G.T @ force

    n = embedding.nv
    return Derivative(motion, (embedding.nq, n, n, embedding.nv_span), wrt=2)


def _implicit(embedding, q, v, a, force):
    positions = embedding.positions(q)
    G, _, drifts = embedding.velocity_map(positions, v)
    g = np.concatenate([drifts[body.index] for body in embedding.bodies])
    K = embedding.constraint(positions, None)[0][list(embedding.kept)]
    Kd = K[:, list(embedding.dependent)]

    def dependent(rows):
        solved = -solve_general(Kd, rows, embedding.order)
        return embedding._scatter(solved, np.zeros((embedding.nv, rows.shape[1])))

    order = list(embedding.order) if embedding.order else list(range(len(embedding.kept)))
    mu = _transposed_solve(Kd, force[list(embedding.dependent)], order)
    second = _implicit_derivative(embedding)
    (speed, _), (rows, by_rate), (pull, _) = second(q, G @ v, G @ a + g, mu)
    along = tangent(embedding.bodies, q) @ G
    Vq = dependent(speed @ along)
    Aq = dependent(rows @ along + by_rate @ Vq)
    Av = dependent(by_rate @ G)
    return Curvature(Vq, Aq, Av, -(G.T @ (pull @ along)))


def _transposed_solve(A, b, order):
    """A⁻ᵀ b with the pivots of `order`: rows of A in that order meet large pivots, so columns of
    its transpose do."""
    P = A[order]
    n = len(order)
    x = solve_general(P.T, np.stack([np.stack([b[i]]) for i in range(n)]))
    where = {row: k for k, row in enumerate(order)}
    return np.stack([x[where[i], 0] for i in range(n)])


@lru_cache(maxsize=256)
def _implicit_derivative(embedding) -> Derivative:
    kept = list(embedding.kept)

    def rows(q, rate, acceleration, mu):
        positions = embedding.positions(q)
        K, k = embedding.constraint(positions, embedding.split(rate))
        K, k = K[kept], k[kept]
        return K @ rate, K @ acceleration - k, K.T @ mu

    n = embedding.nv_span
    return Derivative(rows, (embedding.nq, n, n, len(kept)), wrt=2)


def tangent(bodies: Any, q: Array) -> Array:
    """T (nq, nv), q̇ = T v, of the joints of some bodies; q stacks their positions."""
    places = Layout(bodies).q
    return block_diagonal([rates_map(b.joint.motion, q[places[b.index]]) for b in bodies])


def body_curvature(joint: JointState, own: Any, acceleration: Array, f: Array) -> Curvature | None:
    """The same of the motion of one body, six rows in its axes: v_J = S q̇, a_J = S q̈ + bias, and
    Gᵀ Sᵀ f. `own` is that of its tree joint, None where G is constant."""
    S, second = joint.S, _subspace_derivative(joint.body.joint.motion)
    if second.constant:
        return None if own is None else Curvature(S @ own.Vq, S @ own.Aq, S @ own.Av, None)
    (speed, _), (gain, by_rate), (turn, _) = second(joint.q, joint.rate, acceleration, f)
    along = tangent([joint.body], joint.q) @ joint.G
    Vq, Aq, Av = speed @ along, gain @ along, by_rate @ joint.G
    if own is not None:
        Vq, Aq, Av = Vq + S @ own.Vq, Aq + S @ own.Aq + by_rate @ own.Vq, Av + S @ own.Av
    return Curvature(Vq, Aq, Av, joint.G.T @ (turn @ along))


@lru_cache(maxsize=1024)
def _subspace_derivative(motion) -> Derivative:
    """Derivatives of (S q̇, S q̈ + bias, Sᵀ f) of a tree joint by its position and q̇."""

    def joint(q, rate, acceleration, f):
        S, bias = motion.subspace(q), motion.bias(q, rate)
        aJ = S @ acceleration
        return S @ rate, aJ if bias is None else aJ + bias, S.T @ f

    return Derivative(joint, (motion.nq, motion.nv, motion.nv, 6), wrt=2)
