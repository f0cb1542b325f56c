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
from typing import Any, NamedTuple

from .c_crba import c_crba
from .c_rnea import c_rnea
from .checks import checked_forces
from .elimination import eliminations, pushed
from .projection import solve_from_leaves
from .sweep import outward


class Implied(NamedTuple):
    """The equation that a function solves."""

    residual: Callable[..., Any]
    inverse: Callable[..., Any]


def _residual(model, a, q, v, tau, f_ext=None, method=None):
    return c_rnea(model, q, v, a, checked_forces(model, f_ext)) - tau


def _by_elimination(model, q, v, tau, f_ext=None, method=None):
    """M⁻¹ b by C-ABA at rest and without gravity, in its notation."""
    joints = eliminations(outward(model, q))
    return lambda b: pushed(joints, tau=b)


def _by_factors(model, q, v, tau, f_ext=None, method=None):
    """M⁻¹ b by the factors of the mass matrix."""
    M = c_crba(model, q)
    return lambda b: solve_from_leaves(M, b)


_FORWARD_DYNAMICS = {
    "c_aba": Implied(_residual, _by_elimination),
    "mass_matrix": Implied(_residual, _by_factors),
}


def forward_dynamics_equation(options: Mapping[Any, Any]) -> Implied | None:
    """The equation of forward dynamics by a method; None where it is solved another way."""
    return _FORWARD_DYNAMICS.get(options.get("method", "c_aba"))
