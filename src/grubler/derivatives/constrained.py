"""Derivatives of constrained forward dynamics: of the acceleration and of the multipliers.

a and λ solve ID(q, v, a) - Jᵀλ = tau and c(q, v, a) + R λ = 0, where c is what the acceleration
leaves of the rows: d/dt (K V) - k with Baumgarte's terms. Differentiated,

    [M  -Jᵀ] [∂a]     [∂(ID - Jᵀλ)]
    [J   R ] [∂λ] = - [    ∂c     ]   at constant a and λ.

A constraint pushes with Kᵀλ, constant in its frame's axes: ∂(ID - Jᵀλ) is that of inverse dynamics
with this as an external force. Forces on a second body turn with the relative pose, and so does
the first row of "universal"; these add -J'ᵀ ∂w. c and the wrenches w depend on the pose and motion
of the two frames alone (`Pair`), whose derivatives are those of `kinematics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, joined, symmetric
from ..algebra.spatial import Transform, cross, skew
from ..algebra.symbolic import Derivative, is_symbolic
from ..constrained.constraints import Checked
from ..constrained.ltl import Leaves, ltl
from ..constrained.relative import PointMotion
from ..constrained.rows import Rows, Wanted, from_place, independent_rows, rate_of_rows
from ..errors import InputError
from ..mechanism.parts import WORLD
from .inverse import c_rnea_derivatives
from .kinematics import Motion, body_motions

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array

REDUNDANT = 1e12  # condition of J M⁻¹ Jᵀ + R above which multipliers have no derivative


def constrained_derivatives(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Any,
    f_ext: Mapping[int, Array] | None = None,
    wanted: Any = None,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """(∂a/∂q, ∂a/∂v, ∂a/∂tau, ∂λ/∂q, ∂λ/∂v, ∂λ/∂tau), in tangent coordinates of q."""
    wanted = wanted or Wanted()
    a, multipliers = ltl(model, q, v, tau, constraints, f_ext, wanted)
    bodies = {end.body for c in constraints for end in (c.frame, c.to) if end is not None}
    motions = body_motions(model, q, v, a, bodies)
    force, turned, parts, start = dict(f_ext or {}), np.zeros((model.nv, model.nv)), [], 0
    for c, (k, motion) in zip(constraints, wanted.by_constraint(constraints), strict=True):
        pair = Pair(c, motions)
        part, wrenches, change = pair.derivatives(multipliers[start : start + c.m], k, motion)
        start += c.m
        parts.append(part)
        turned = turned + change
        for body, wrench in wrenches.items():
            force[body] = force[body] + wrench if body in force else wrench
    dq, dv, M = c_rnea_derivatives(model, q, v, a, force)
    c_q, c_v, J = (joined([part[i] for part in parts], (0, model.nv)) for i in range(3))
    return solved(model, constraints, M, J, (dq - turned, dv), (c_q, c_v))


def solved(
    model: Model, constraints: Any, M: Array, J: Array, forces: Any, rows: Any
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The six derivatives, from those of ID - Jᵀλ and c by q and by v."""
    n, m = model.nv, J.shape[0]
    right = np.concatenate([-forces[0], -forces[1], np.eye(n)], axis=1)
    factor = Leaves(M)
    z = factor.forward(right)
    if m == 0:
        return (*_thirds(factor.backward(z), n), *_thirds(np.zeros((0, 3 * n)), n))
    N, R = independent(model, constraints)
    J = N.T @ J
    left = N.T @ np.concatenate([rows[0], rows[1], np.zeros((m, n))], axis=1)
    Y = factor.forward(J.T)
    A = symmetric(Y.T @ factor.scale(Y)) + np.diag(R)
    if not is_symbolic(A) and not np.linalg.cond(A) < REDUNDANT:
        raise InputError(
            f"the constraints depend on each other at this q of '{model.name}': their multipliers "
            "have no derivative; leave redundant rows out, or give them softness"
        )
    change = LDL(A).solve(-(left + Y.T @ factor.scale(z)))
    return (*_thirds(factor.backward(z + Y @ change), n), *_thirds(N @ change, n))


def _thirds(x, n: int):
    return x[:, :n], x[:, n : 2 * n], x[:, 2 * n :]


def independent(model: Model, constraints: Any) -> tuple[Array, Array]:
    """(N, R): rows Nᵀ c that are independent on each body, and their softness.

    Redundant rows on a body, such as four points of a foot, share their force in the sense of least
    squares, λ = N λ'.
    """
    blocks, start = [], 0
    for c in constraints:
        index = tuple(range(start, start + c.m))
        start += c.m
        cluster, _ = model.tree.locate(c.frame.body)
        F = c.frame.placement.forces_back(c.rows.K.T)
        blocks.append(Rows({cluster: F}, None, c.softness, index))
    columns, R = [], []
    for block in independent_rows(model, blocks, constraints):
        N = np.zeros((start, block.m))
        N[list(block.index)] = np.eye(block.m) if block.basis is None else block.basis
        columns.append(N)
        R.append(np.zeros(block.m) if block.R is None else block.R)
    return np.concatenate(columns, axis=1), np.concatenate(R)


class Pair:
    """A constraint's frame and what it is held on, with their motions."""

    def __init__(self, c: Checked, motions: dict[int, Motion]):
        self.c = c
        self.own: Any = motions[c.frame.body].at(c.frame.placement)
        self.other: Any = motions[WORLD if c.to is None else c.to.body]
        self.X = self.own.X @ self.other.X.inverse()

    def derivatives(
        self, multipliers: Array, k: int, motion: Any
    ) -> tuple[tuple[Array, Array, Array], dict[int, Array], Array]:
        """((∂c/∂q, ∂c/∂v, J), wrench by body in its axes, Σ Jᵀ ∂w)."""
        own, other, X, c = self.own, self.other, self.X, self.c
        arguments = [_flat(X.E), X.r, own.V, own.A, other.V, other.A, multipliers]
        arguments += [] if motion is None else [_flat(motion)]
        w_own, w_other = wrenches(c, X, multipliers, motion)
        local = _local(c, motion is not None)
        error, on_own, on_other = local(*arguments)
        E, r, V, A, V_other, A_other = error
        apart = own.J - X.motions(other.J)  # the relative displacement, in the frame's axes
        dE, dr = turned_matrix(X.E) @ apart[:3], X.E.T @ apart[3:]
        c_q = E @ dE + r @ dr + V @ own.Vq + A @ own.Aq + V_other @ other.Vq + A_other @ other.Aq
        c_v = V @ own.J + A @ own.Av + V_other @ other.J + A_other @ other.Av
        J = A @ own.J + A_other @ other.J
        change = own.J.T @ (on_own[0] @ dE + on_own[1] @ dr)
        change = change + other.J.T @ (on_other[0] @ dE + on_other[1] @ dr)
        forces = {c.frame.body: c.frame.placement.force_back(w_own)}
        if c.to is not None:
            forces[c.to.body] = w_other
        return (c_q, c_v, J), forces, change


def wrenches(c: Checked, X: Transform, multipliers: Array, motion: Any) -> tuple[Array, Array]:
    """The constraint's force on its frame, in the frame's axes, and on the other body, in its."""
    w = c.rows.matrix(from_place(c, X, motion)[0]).T @ multipliers
    return w, -X.force_back(w)


@lru_cache(maxsize=256)
def _local(c: Checked, driven: bool) -> Derivative:
    """Derivatives of c and both wrenches by the relative pose and both motions."""

    def fn(E, r, V, A, V_other, A_other, multipliers, *motion):
        X = Transform(np.stack([E[:3], E[3:6], E[6:]]), r)
        moved = np.stack([motion[0][6 * i : 6 * i + 6] for i in range(3)]) if driven else None
        carrier = None if c.to is None else _point(X.motion(V_other), X.motion(A_other))
        out = rate_of_rows(c, _point(V, A), carrier, *from_place(c, X, moved), moved)
        return (out, *wrenches(c, X, multipliers, moved))

    sizes = (9, 3, 6, 6, 6, 6, c.m, *((18,) if driven else ()))
    return Derivative(fn, sizes, wrt=6)


def _point(V, A) -> PointMotion:
    return PointMotion(V, A[:3], A[3:] + cross(V[:3], V[3:]))


def turned_matrix(E: Array) -> Array:
    """∂E by small turns δ of the frame about its axes, (9, 3) row by row: δE = -[δ x] E."""
    columns = [skew(E[:, k]) for k in range(3)]
    return np.stack([columns[k][i] for i in range(3) for k in range(3)])


def _flat(M):
    return np.concatenate([M[i] for i in range(M.shape[0])])
