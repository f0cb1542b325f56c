"""One joint of the recursions: the articulated inertia and bias carried across it, as in C-ABA.

As there, accelerations are what the robot has beyond coasting, a = 0: what it has then, by its
velocities and gravity, is in the forces p and in the rows' l, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import LDL, symmetric
from ..algorithms.c_aba import force_across, joint_inertia, move_on, without_joint
from ..algorithms.c_rnea import net_forces
from ..algorithms.first_pass import first_pass, stacked
from .rows import constraint_rows, in_few_numbers, independent_rows

if TYPE_CHECKING:
    from ..algorithms.first_pass import ClusterState
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Rows, Wanted


class Crossing(NamedTuple):
    """What crossing a joint leaves for the rows and for the roll-out.

    | code | paper    | meaning                                                 | shape     |
    |------|----------|---------------------------------------------------------|-----------|
    | U, D | H S, D_i | articulated inertia along the joint, LDL' of D          | (6l, nv)  |
    | u    | S' f_i^A | tau - S' p                                              | (nv,)     |
    | W    | X' U     | U seen from the parent where it is `projected`, or None | (6l', nv) |
    """

    U: np.ndarray
    D: LDL
    u: np.ndarray
    W: np.ndarray | None


def prepared(
    model: Model,
    q: Array,
    v: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
) -> tuple[list[ClusterState], list[Array], list[Any], list[Rows]]:
    """States of the first pass, own inertias H and biases p, and the constraints' rows."""
    constraints, desired, bases, kept = in_few_numbers(
        model, q, constraints, desired, frozenset(f_ext or ())
    )
    states = first_pass(model, q, v, posed=kept)
    H = [block_diagonal(state.I) for state in states]
    moving, f, _ = net_forces(model, q, v, None, f_ext, kept)
    p = stacked(states, f)
    rows = constraint_rows(model, states, constraints, desired, moving)
    rows = [replace(block, basis=V) for block, V in zip(rows, bases, strict=True)]
    return states, H, p, independent_rows(model, rows, constraints)


def cross_joint(
    state: ClusterState, H: Array, p: Array, tau: Array
) -> tuple[Crossing, Array, Array]:
    """(Crossing, H and p seen from the parent): the sums' terms of (42a), (42b)."""
    S, X = state.S, state.X
    U = H @ S
    D = LDL(joint_inertia(state, U))
    u = tau - S.T @ p
    u = u if state.r is None else u - state.r
    if not state.projected:
        Ha = without_joint(state, H, U, D)
        pa = force_across(state, p, tau, U, D, u)
        return Crossing(U, D, u, None), X.congruence(Ha), X.force_back(pa)
    W = X.forces_back(U)
    Ha = symmetric(X.congruence(H) - D.quadratic(W.T))
    return Crossing(U, D, u, W), Ha, X.force_back(p) + W @ D.solve(u)


def cross_rows(state: ClusterState, crossing: Crossing, F: Array, dense: bool) -> Any:
    """Constraint forces F = K' carried across a joint.

    Returns F seen from the parent (42c), Y = S' F, Q and Z with Y' D⁻¹ Y = Q' Z, and what l gains
    (42d), None without velocities. Half a solve, Q = L⁻¹ Y, is cheaper where F is `dense`; a Y with
    zeros keeps them, Q = Y.
    """
    U, D, u, W = crossing
    half = D.half if dense else (lambda x: x)
    Y = state.S.T @ F
    Q = half(Y)
    Z = D.scale(Q) if dense else D.solve(Y)
    gain = None if u is None else Z.T @ half(u)
    if W is None:
        through = F - half(U.T).T @ Z
        return state.X.forces_back(through), Y, Q, Z, gain
    return state.X.forces_back(F) - half(W.T).T @ Z, Y, Q, Z, gain


def roll_out(
    state: ClusterState, crossing: Crossing, a_parent: Array, drive: Any = None
) -> tuple[Array, Array]:
    """(acceleration of the joint, stacked acceleration of the cluster) (41), (36b).

    `drive` is the force of the constraints on the joint, S' K' λ.
    """
    U, D, u, W = crossing
    u = u if drive is None else u + drive
    return move_on(state, D, u, U, W, a_parent)


def total(values: Any) -> int:
    """The sum of one or more arrays."""
    values = list(values)
    return sum(values[1:], values[0])
