"""Constrained dynamics: motion constraints on frames, on top of the loops inside the clusters.

constraints = [Constraint("left_foot"), Constraint("right_foot"), Constraint("hand", "point")]
a, multipliers, residual = constrained_forward_dynamics(model, q, v, tau, constraints)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..algebra.symbolic import is_symbolic
from ..algorithms import OSIM as CLUSTER_OSIM
from ..algorithms.c_rnea import c_rnea
from ..algorithms.checks import checked, checked_forces, checked_frames, exact, pick
from ..algorithms.newton_euler import accelerated
from ..algorithms.sweep import outward
from ..arguments import public
from ..errors import InputError
from ..model import as_vector
from ..tolerances import RESOLVED
from . import guard, kkt, ltl, osim, proximal, pv, pv_soft
from .closed_chain import ClosedChain, Closure
from .constraints import (
    Checked,
    Constraint,
    checked_constraints,
    checked_motion,
    names,
    require_softness,
)
from .jacobian import jacobian_and_drift, softness
from .operators import SpatialOperators
from .rows import Wanted, constraint_rows, framed

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array, ArrayLike, Floats, Forces, Frames

METHODS: dict[Any, Any] = {
    "pv": pv.pv,
    "pv_early": guard.pv_early,
    "pv_soft": pv_soft.pv_soft,
    "ltl": ltl.ltl,
    "ltl_soft": ltl.ltl_soft,
    "proximal": proximal.proximal,
    "kkt": kkt.kkt,
}
OSIM: dict[Any, Any] = {
    **CLUSTER_OSIM,
    "efpa": CLUSTER_OSIM["c_efpa"],
    "projection": CLUSTER_OSIM["projected"],
    "pv_osim": osim.pv_osim,
    "pv_osim_fast": lambda model, q, frames: osim.pv_osim_fast(model, q, frames).inverse(),
    "kjr": osim.kjr,
    "ltl_osim": osim.ltl_osim,
}
SOFT = ("pv_soft", "ltl_soft")
REGULAR = ("pv", "ltl")  # need independent rows
Constraints: TypeAlias = "Described | Iterable[Described]"
Described: TypeAlias = Constraint | str | tuple[str, Any]  # a frame's name: weld it


class Constrained(NamedTuple):
    """`a` (nv,); `multipliers` (m,) with M a + h = tau + Jᵀ λ, in N m and N; `residual` (m,) is
    J a + J̇ v - k + R λ, zero where the constraints are met; None when traced."""

    a: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray | None


@public
@exact("pv_early", "pv", "ltl")
def constrained_forward_dynamics(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, constraints: Constraints,
    f_ext: Forces | None = None, desired: ArrayLike | None = None, motion: ArrayLike | None = None,
    *, method: str = "pv_early", **options: Any,
) -> Constrained:  # fmt: skip
    """The acceleration under generalized force tau and motion constraints, and their multipliers.

    `constraints` are `Constraint`s, names of welded frames, or (name, rows); `desired` (m,) gives
    their accelerations instead of those described, f_ext as in `forward_dynamics`.
    `motion` (3 d, 6) moves the places of the d constraints that are `driven`: for each, in rows,
    [rotation vector; position], [angular velocity; velocity] and [angular acceleration;
    acceleration], seen from its target (without one, from `to` or the world). None: the places
    rest there.

    Hard methods: "pv_early" (the default, O(n + m)), "pv", "ltl", "proximal", and "kkt" (dense,
    floats only); soft ones, for constraints that all have a softness: "pv_soft", "ltl_soft". Soft
    and hard constraints may be mixed in the hard methods.

    Redundant and infeasible constraints: "pv_early", "proximal" and "kkt" give the acceleration
    that meets the rows in the sense of least squares, with the smallest multipliers (proximal: only
    where the rows are consistent), and the residual tells what could not be met. "pv" and "ltl"
    need rows that are independent at q; where they are not, an error names the remedy (compiled
    code cannot raise one, and returns numbers that are not finite or a large residual).

    `options` of "pv_early": regular=True, smaller code and no care for singular postures; of
    "proximal": damping=1e-7 and iterations=6.
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    constraints, wanted = checked_wanted(model, constraints, desired, motion)
    solve = pick("constrained_forward_dynamics", METHODS, method, options)
    if method in SOFT:
        require_softness(constraints, method)
    if method == "kkt" and is_symbolic(q):
        raise InputError("method 'kkt' is for numbers only: compile 'pv_early' or 'proximal'")
    m = sum(c.m for c in constraints)
    _check_count(model, constraints, method)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a, multipliers = solve(
            model, q, v, tau, constraints, checked_forces(model, f_ext), wanted, **options
        )
    if is_symbolic(a):
        return Constrained(a, multipliers, None)
    if not np.all(np.isfinite(a)):
        raise InputError(_dependent(model, constraints, method))
    gap, J = residual(model, q, v, a, multipliers, constraints, wanted)
    if method in REGULAR and m:
        force = tau + J.T @ multipliers
        balance = c_rnea(model, q, v, a, checked_forces(model, f_ext)) - force
        off = np.abs(gap).max() > RESOLVED * (1 + np.abs(a).max())
        if off or np.abs(balance).max() > RESOLVED * (1 + np.abs(force).max()):
            raise InputError(_dependent(model, constraints, method))
    return Constrained(a, multipliers, gap)


def checked_wanted(
    model: Model, constraints: Sequence[Checked], desired: Wanted | None, motion: Any
) -> tuple[tuple[Checked, ...], Wanted]:
    """The constraints and the run-time inputs of their rows, checked."""
    constraints = checked_constraints(model, constraints)
    if desired is not None and not is_symbolic(desired):
        desired = as_vector("desired", desired, sum(c.m for c in constraints))
    if motion is not None:
        motion = checked_motion("motion", motion, _driven(constraints))
    return constraints, Wanted(desired, motion)


def residual(
    model: Model,
    q: Array,
    v: Array,
    a: Array,
    multipliers: Array,
    constraints: Sequence[Checked],
    desired: Wanted | None = None,
) -> tuple[Array, Array]:
    """(J a + J̇ v - k + R λ, J) by kinematics: what an acceleration leaves of the constraints."""
    if not constraints:
        return np.zeros(0), np.zeros((0, model.nv))
    sweep = outward(model, q, v, keep_frame=framed(constraints))
    rows = constraint_rows(sweep, constraints, desired, accelerated(sweep))
    J, l = jacobian_and_drift(sweep, rows)
    return J @ a + l + softness(rows) * multipliers, J


def _driven(constraints) -> int:
    """How many places are driven."""
    count = sum(c.driven for c in constraints)
    if not count:
        raise InputError("motion is given, but no constraint is driven: say driven=True of it")
    return count


def _check_count(model, constraints, method: str) -> None:
    hard = sum(c.m for c in constraints if c.softness is None)
    if method in REGULAR and hard > model.nv:
        raise InputError(
            f"{hard} hard constraint rows on {model.nv} degrees of freedom: some are redundant; "
            f"use method='pv_early' or 'proximal', or softness, instead of '{method}'"
        )


def _dependent(model, constraints, method: str) -> str:
    if method not in REGULAR:
        return (
            f"'{model.name}' has no finite acceleration at this q under the constraints "
            f"({', '.join(names(constraints)[:4])}, ...): a joint moves no inertia, or the numbers "
            "overflow; gb.check(model) says which body to give a mass"
        )
    return (
        f"the constraints ({', '.join(names(constraints)[:4])}, ...) depend on each other or "
        f"cannot be met at this q of '{model.name}': method '{method}' needs independent rows and "
        "bodies with inertia; use method='pv_early' or 'proximal' and read the residual, or give "
        "them softness"
    )


@public
def operators(model: Model, q: ArrayLike) -> SpatialOperators:
    """The spatial operators of the model at q: φ, ψ, H, M, P, D, G, K, Ω, Υ and their kin."""
    return SpatialOperators(model, checked(model, q=q))


@public
@exact("c_efpa", "projected", "pv_osim", "ltl_osim")
def inverse_osim(model: Model, q: ArrayLike, frames: Frames, *, method: str = "c_efpa") -> Floats:
    """The inverse operational-space inertia matrix J M⁻¹ Jᵀ of one or more frames.

    Six rows a frame, [angular; linear] at the frame in its axes, in the order given; a pair
    (name, rows) takes only some of them, (name, (3, 4, 5)) a point contact. Exact methods: "c_efpa"
    or "efpa" (Cluster EFPA), "pv_osim", "pv_osim_fast", "kjr", "ltl_osim", and "projected" or
    "projection"; for comparison: "approximate".
    """
    q = checked(model, q=q)
    return pick("inverse_osim", OSIM, method)(model, q, checked_frames(model, frames))


@public
def solve_osim(
    model: Model, q: ArrayLike, b: ArrayLike, frames: Frames, *, method: str = "pv_osim_fast"
) -> Floats:
    """(J M⁻¹ Jᵀ)⁻¹ b: the forces at the frames that cause the acceleration b there.

    "pv_osim_fast" never forms the dense inverse inertia where the frames are on branches of a free
    base that can move them without it; any method of `inverse_osim` serves otherwise. Frames as in
    `inverse_osim`. Where J M⁻¹ Jᵀ, or with "pv_osim_fast" a branch, is singular at q, an error
    names the remedy (compiled code cannot raise one, and returns numbers that are not finite).
    """
    q, frames = checked(model, q=q), tuple(checked_frames(model, frames))
    size = sum(len(rows) for _, rows in frames)
    b = b if is_symbolic(b) else as_vector("b", b, size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if method == "pv_osim_fast":
            out = osim.pv_osim_fast(model, q, frames).solve(b)
        else:
            out = osim.dense_solve(pick("solve_osim", OSIM, method)(model, q, frames), b)
    if not is_symbolic(out):
        gap = osim.pv_osim(model, q, frames) @ out - b if np.all(np.isfinite(out)) else np.inf
        if np.abs(gap).max() > RESOLVED * np.abs(b).max():
            raise InputError(
                f"the frames ({', '.join(frame.name for frame, _ in frames)}) cannot be moved "
                f"independently at this q of '{model.name}': solve_osim with method '{method}' "
                "needs the inverse of their inertia (of every branch's, for 'pv_osim_fast'); try "
                "method='pv_osim', leave redundant rows out, or use "
                "constrained_forward_dynamics with method='pv_early'"
            )
    return out


__all__ = [
    "ClosedChain",
    "Closure",
    "Constrained",
    "Constraint",
    "SpatialOperators",
    "constrained_forward_dynamics",
    "inverse_osim",
    "operators",
    "solve_osim",
]
