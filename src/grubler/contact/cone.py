"""Coulomb's law of one contact point, solved exactly.

A point has the impulse λ = (λ_T, λ_n), two components in the tangent plane and one along the
normal, and the relative velocity u = A λ + b. With De Saxcé's correction the law is a
complementarity problem on the second-order cone K_μ = {‖λ_T‖ <= μ λ_n},

    K_μ ∋ λ ⊥ u + (0, 0, μ‖u_T‖) ∈ K_μ*,                                                  (1)

which says: the point opens (λ = 0, u_n >= 0), or it sticks (u = 0, ‖λ_T‖ <= μ λ_n), or it slips
(u_n = 0, ‖λ_T‖ = μ λ_n, λ_T opposite to u_T).

A slipping point has u_T = -A_nn α λ_T with some α > 0. Elimination of λ_n leaves one unknown, α:

    (S + α) λ_T = c,   λ_n = -b_n - a·λ_T,   ‖λ_T(α)‖ = μ λ_n(α)                            (2)

| code     | meaning                                                        | shape |
|----------|----------------------------------------------------------------|-------|
| a        | A_Tn / A_nn                                                    | (2,)  |
| S        | A_TT / A_nn - a a', the Schur complement of A_nn               | (2, 2)|
| c        | a b_n - b_T                                                    | (2,)  |
| N, D     | adj(S + α) c and det(S + α): λ_T = N / D                       |       |
| P, Q     | -μ (b_n D + a·N) and ‖N‖²: the root is where P = √Q             |       |

λ is scaled by A_nn in (2). A sticking point is α = 0: it sticks where P(0) >= √Q(0). Where it does
not, P - √Q is negative at 0 and positive at a known bound, so there is a root between them.
Newton's method on P/√Q - 1, which is linear in α where A is isotropic, takes three to five steps.
Uniqueness holds where the normal and the tangents are not coupled (a = 0); elsewhere any root
satisfies (1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..compiler import precision

if TYPE_CHECKING:
    pass

OPEN, STICK, SLIP = 0.0, 1.0, 2.0  # modes of a point
STEPS = 8  # Newton steps of the exact solve; bisection takes over where one leaves the bracket
TINY = {8: 1e-200, 4: 1e-30}  # added to squares that are divided by, in (m/s)²
LARGEST = {8: 1e30, 4: 1e8}  # α beyond which λ_T has the direction of c to rounding


class Point(NamedTuple):
    """The part of (2) that does not depend on b: computed once, used at every solve.

    `inverse` is 1 / A_nn, `adjugate` (S_11, S_00, -S_01), `trace` and `det` those of S.
    """

    inverse: np.ndarray
    a: tuple[Any, Any]
    adjugate: tuple[Any, Any, Any]
    trace: np.ndarray
    det: np.ndarray
    friction: Any


def tiny() -> float:
    """The smallest number that may be added to a square, in the precision of the code."""
    return TINY[_bytes()]


def _bytes() -> int:
    return 8 if precision() < 1e-10 else 4


def point(A: Any, friction: Any) -> Point:
    """The constants of a point with A (3, 3), symmetric and positive definite; rows t1, t2, n."""
    inverse = 1.0 / A[2, 2]
    a0, a1 = A[0, 2] * inverse, A[1, 2] * inverse
    S00, S11 = A[0, 0] * inverse - a0 * a0, A[1, 1] * inverse - a1 * a1
    S01 = A[0, 1] * inverse - a0 * a1
    return Point(
        inverse, (a0, a1), (S11, S00, -S01), S00 + S11, S00 * S11 - S01 * S01, friction
    )  # fmt: skip


def solve_point(
    p: Point, b: Any, alpha: Any = None, steps: int = STEPS, follow: bool = False
) -> tuple[Any, Any, Any]:
    """(λ (3,), mode, α) of the point whose velocity is b (3,) without its own impulse.

    `alpha` is a guess of the root, such as the one of a solve nearby. `follow=True` takes `steps`
    from there without a bracket, and leaves an error of α in the friction: for the inner solves of
    an iteration in which α converges, too.
    """
    closing = b[2] < 0.0
    if isinstance(p.friction, (int, float)) and p.friction == 0.0:
        normal = np.where(closing, -b[2] * p.inverse, 0.0)
        return np.stack([0.0 * normal, 0.0 * normal, normal]), np.where(closing, SLIP, OPEN), 0.0
    (a0, a1), mu, small = p.a, p.friction, tiny()
    approach = -np.abs(b[2])  # of an opening point any number will do
    c0, c1 = a0 * approach - b[0], a1 * approach - b[1]
    n0 = p.adjugate[0] * c0 + p.adjugate[2] * c1  # N = adj(S) c + α c
    n1 = p.adjugate[2] * c0 + p.adjugate[1] * c1
    # P = p0 + p1 α + p2 α², Q = q0 + 2 q1 α + q2 α²
    p2 = -mu * approach
    p1 = p2 * p.trace - mu * (a0 * c0 + a1 * c1)
    p0 = p2 * p.det - mu * (a0 * n0 + a1 * n1)
    q0, q1, q2 = n0 * n0 + n1 * n1, n0 * c0 + n1 * c1, c0 * c0 + c1 * c1
    sticks = np.logical_and(p0 >= 0.0, p0 * p0 >= q0)
    if follow:
        for _ in range(steps):
            alpha = _followed(alpha, (p0, p1, p2), (q0 + small, q1, q2), p.trace)
    else:
        alpha = _bracketed(alpha, (p0, p1, p2), (q0 + small, q1, q2), _bound(p, c0, c1, p2), steps)
    root = np.where(sticks, 0.0, alpha)
    inverse = 1.0 / ((root + p.trace) * root + p.det)
    t0, t1 = (n0 + root * c0) * inverse, (n1 + root * c1) * inverse
    normal = np.maximum(-approach - (a0 * t0 + a1 * t1), 0.0)
    scale = np.where(closing, p.inverse, 0.0)
    tangential = scale
    if not follow:  # onto the cone, exactly: the remaining error of α is not in the law's size
        length = np.sqrt(t0 * t0 + t1 * t1 + small)
        tangential = np.where(sticks, scale, scale * (mu * normal) / length)
    impulse = np.stack([t0 * tangential, t1 * tangential, normal * scale])
    mode = np.where(closing, np.where(sticks, STICK, SLIP), OPEN)
    return impulse, mode, np.where(closing, root, 0.0)


def _followed(alpha, p, q, trace):
    """A Newton step for P/√Q = 1 from a guess; to the right where the function does not rise."""
    excess, slope = _excess(alpha, p, q)
    rising = slope > 0.0
    following = alpha - excess / np.where(rising, slope, 1.0)
    return np.where(rising, np.maximum(following, 0.0), 2.0 * alpha + trace)


def _excess(alpha, p, q):
    """P/√Q - 1 and its derivative, both times Q √Q."""
    P, dP = (p[2] * alpha + p[1]) * alpha + p[0], 2.0 * p[2] * alpha + p[1]
    Q, dQ = (q[2] * alpha + 2.0 * q[1]) * alpha + q[0], q[2] * alpha + q[1]
    return (P - np.sqrt(Q)) * Q, dP * Q - P * dQ


def _bracketed(alpha, p, q, high, steps: int):
    """The root of P/√Q - 1 between 0 and a bound: Newton steps, bisection where one leaves it."""
    low = 0.0
    alpha = 0.0 * high if alpha is None else np.minimum(np.maximum(alpha, 0.0), high)
    for _ in range(steps):
        excess, slope = _excess(alpha, p, q)
        following = alpha - excess / np.where(slope > 0.0, slope, 1.0)
        low, high = np.where(excess < 0.0, alpha, low), np.where(excess < 0.0, high, alpha)
        inside = np.logical_and(following >= low, following <= high)
        inside = np.logical_and(slope > 0.0, inside)
        alpha = np.where(inside, following, 0.5 * (low + high))
    return alpha


def _bound(p: Point, c0, c1, p2):
    """An α at which P >= √Q: ‖λ_T‖ <= ‖c‖/α there, and λ_n >= -b_n - ‖a‖‖λ_T‖."""
    leverage = 1.0 + p.friction * (np.abs(p.a[0]) + np.abs(p.a[1]))
    size, most = (np.abs(c0) + np.abs(c1)) * leverage, LARGEST[_bytes()]
    return np.where(size < most * p2, size / np.where(p2 > 0.0, p2, 1.0), most)


def projected(x: Any, friction: Any) -> Any:
    """The point of K_μ that is nearest to x (3,)."""
    mu, t = friction, np.sqrt(x[0] * x[0] + x[1] * x[1] + tiny())
    normal = np.maximum((mu * t + x[2]) / (1.0 + mu * mu), 0.0)
    inside = np.logical_and(t <= mu * x[2], x[2] >= 0.0)
    share = np.where(inside, 1.0, mu * normal / t)
    return np.stack([share * x[0], share * x[1], np.where(inside, x[2], normal)])


def natural_map(impulse: Any, u: Any, friction: Any, size: Any) -> Any:
    """The residual (3,) of (1), in m/s: zero where Coulomb's law holds, and only there.

    `size` scales impulses to velocities, in 1/kg: a diagonal entry of A, or about that.
    """
    slip = np.sqrt(u[0] * u[0] + u[1] * u[1])
    corrected = np.stack([u[0], u[1], u[2] + friction * slip])
    scaled = impulse * size
    return scaled - projected(scaled - corrected, friction)


__all__ = ["OPEN", "SLIP", "STICK", "Point", "natural_map", "point", "projected", "solve_point"]
