"""Algorithms that solve an equation, and the equation: derivatives are shorter by it.

Forward dynamics solve r(a) = ID(q, v, a) - tau = 0, with ∂r/∂a = M:

    ȧ = -M⁻¹ (∂r/∂x) ẋ        x̄ = -(∂r/∂x)ᵀ M⁻¹ ā        x = q, v, tau, f_ext, parameters

| code     | meaning                                                       |
|----------|---------------------------------------------------------------|
| residual | r(model, a, q, v, tau, f_ext) (nv,)                           |
| inverse  | (model, q, v, tau, f_ext) -> the function that gives M⁻¹ b    |

Both take the options of the algorithm.
Articulated inertias are those of C-ABA at the same q: traced together they are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import LDL, joined, symmetric
from .c_aba import force_across, joint_inertia, move_on, without_joint
from .c_crba import c_crba
from .c_rnea import c_rnea
from .checks import checked_forces
from .first_pass import first_pass
from .projection import solve_from_leaves


class Implied(NamedTuple):
    """The equation that a function solves."""

    residual: Callable
    inverse: Callable


def _residual(model, a, q, v, tau, f_ext=None, method=None):
    return c_rnea(model, q, v, a, checked_forces(model, f_ext)) - tau


def _by_elimination(model, q, v, tau, f_ext=None, method=None):
    """M⁻¹ b by C-ABA at rest and without gravity, in its notation."""
    states = first_pass(model, q)
    IA = [block_diagonal(state.I) for state in states]
    U, D, W = {}, {}, {}
    for state in reversed(states):
        k, p, X = state.cluster.index, state.cluster.parent, state.X
        U[k] = IA[k] @ state.S  # (49)
        D[k] = LDL(joint_inertia(state, U[k]))
        if p is None:
            continue
        if state.projected:
            W[k] = X.forces_back(U[k])
            IA[p] = IA[p] + symmetric(X.congruence(IA[k]) - D[k].quadratic(W[k].T))
        else:
            IA[p] = IA[p] + X.congruence(without_joint(state, IA[k], U[k], D[k]))  # (55)

    def solve(b):
        pA = [np.zeros(state.S.shape[0]) for state in states]
        u, acc, out = {}, [], []
        for state in reversed(states):
            k, p, X = state.cluster.index, state.cluster.parent, state.X
            own = b[state.cluster.v]
            u[k] = own - state.S.T @ pA[k]
            if p is None:
                continue
            if state.projected:
                pA[p] = pA[p] + X.force_back(pA[k]) + W[k] @ D[k].solve(u[k])
            else:
                pa = force_across(state, pA[k], own, U[k], D[k], u[k])
                pA[p] = pA[p] + X.force_back(pa)  # (56)
        for state in states:
            k, p = state.cluster.index, state.cluster.parent
            parent = None if p is None else acc[p]
            own, a = move_on(state, D[k], u[k], U[k], W.get(k), parent)
            out.append(own)
            acc.append(a)
        return joined(out)

    return solve


def _by_factors(model, q, v, tau, f_ext=None, method=None):
    """M⁻¹ b by the factors of the mass matrix."""
    M = c_crba(model, q)
    return lambda b: solve_from_leaves(M, b)


_FORWARD_DYNAMICS = {
    "c_aba": Implied(_residual, _by_elimination),
    "mass_matrix": Implied(_residual, _by_factors),
}


def forward_dynamics_equation(options: Mapping) -> Implied | None:
    """The equation of forward dynamics by a method; None where it is solved another way."""
    return _FORWARD_DYNAMICS.get(options.get("method", "c_aba"))
