"""Velocities after contact, and the impulses that give them: the public functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.linalg import joined
from ..algebra.symbolic import is_symbolic
from ..algorithms.checks import checked, checked_forces, checked_result
from ..arguments import public
from ..errors import InputError
from ..model import Model, as_vector
from .candidates import checked_plan, tangents
from .gauss_seidel import sweeps, to_tolerance
from .problem import JointLaw, PointLaw, Problem
from .system import Block, System

if TYPE_CHECKING:
    pass

# Where a tolerance decides: sweeps of Gauss-Seidel alone, then those with a step of Newton's
# method, then steps of ADMM.
COUNTS = 20, 30, 1000
TOLERANCE = 1e-10  # m/s of the natural map at which the sweeps end


class ContactResult(NamedTuple):
    """`v` (nv,) after the step, in the axes that the bodies have before it (a floating base has
    turned since); `impulse` (3 c,) of each candidate point, in N s, along two
    tangents and the normal; `residual` the largest entry of the natural map, in m/s, zero where
    Coulomb's law holds exactly; `iterations` of the solver; `modes` (c,): 0 open, 1 sticking,
    2 slipping."""

    v: np.ndarray
    impulse: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray
    modes: np.ndarray


class Placed(NamedTuple):
    """The candidate points at a posture: their gaps and their rows."""

    gaps: list[Any]
    blocks: list[Block]


def placed(system: System, plan: Any) -> Placed:
    """The candidate points with their rows in the axes (t1, t2, n) of each."""
    gaps, blocks = [], []
    for candidate, found in zip(plan.points, plan.located(system.pose), strict=True):
        gaps.append(found.gap)
        blocks.append(
            system.point_rows(candidate.body, candidate.other, found.point, tangents(found.normal))
        )
    return Placed(gaps, blocks)


def solve(
    problem: Problem, start: list[Any], iterations: int | None, tolerance: float,
    roots: list[Any] | None = None, newton: int = 0,
) -> tuple[list[Any], Any, list[Any], Any]:  # fmt: skip
    """(impulses by block, modes, roots, iterations): as many sweeps and steps of Newton's method as
    given, or to a tolerance."""
    if iterations is None:
        return to_tolerance(problem, start, COUNTS, tolerance)
    x, modes, roots = sweeps(problem, start, iterations, roots, newton)
    return x, modes, roots, np.float64(iterations + newton)


@public
def contact_dynamics(
    model: Model, q: Any, v: Any, tau: Any, dt: float, contacts: Any, impulse: Any = None,
    f_ext: Any = None, *, iterations: int | None = None, tolerance: float = TOLERANCE,
) -> ContactResult:  # fmt: skip
    """The velocity after a step of dt seconds under generalized force tau, with Coulomb's law at
    the candidate points of `contacts`.

    A point that touches, or would do so within the step, may not approach faster than gap / dt.
    The law holds for the velocities after the step, plastically: no rebound (see
    `impulse_dynamics`). `impulse` (3 c,) starts the solver: the impulses of the step before.
    `iterations` fixes the number of sweeps, for the shortest code; None iterates to `tolerance`,
    in m/s. The residual tells how exactly the law holds.
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)
    _check(model, contacts, dt)
    system = System(model, q, v, tau, dt, checked_forces(model, f_ext), contacts.bodies)
    where = placed(system, contacts)
    carried = system.carry(where.blocks)
    G, free, _ = system.delassus(where.blocks, carried)
    g = [with_gap(u, gap, dt) for u, gap in zip(free, where.gaps, strict=True)]
    problem = Problem(G, g, _laws(contacts))
    x, modes, _, taken = solve(problem, _start(problem, impulse), iterations, tolerance)
    after = checked_result(model, v + system.change(carried, x))
    return ContactResult(after, joined(x), largest(problem.residual(x)), taken, modes)


@public
def impulse_dynamics(
    model: Model, q: Any, v: Any, contacts: Any, *, iterations: int | None = None,
    tolerance: float = TOLERANCE,
) -> ContactResult:  # fmt: skip
    """The velocity after an impact at all points of `contacts` that touch (gap <= 0).

    The law of impact follows Moreau, by way of Poisson's hypothesis:

    1. compression: impulses λ with Coulomb's law for the velocities at its end, a plastic impact;
    2. expansion: every point gives back the share e of its own impulse, normal and tangential;
    3. where step 2 presses a point into another one, a plastic impact again.

    With one restitution e for all points and without step 3 this is Moreau's law: the normal
    velocity is reversed, u_n⁺ = -e u_n⁻, where only one point is hit, and (u⁺ + e u⁻) / (1 + e)
    obeys Coulomb's law. The kinetic energy never rises: steps 1 and 3 dissipate, and step 2 takes
    the largest share of the restitution, at most all, with which steps 1 and 2 together do not add
    energy. That share is below 1 only where the points' restitutions differ.

    Newton's law, u_n⁺ = -e u_n⁻ at every point with Coulomb's law for u_T⁺, is not offered: with
    friction it can raise the energy (Kane's paradox: a double pendulum that hits a rough table
    with e near 1 leaves it faster than it came).

    `impulse` is the sum of all steps; residual, modes and iterations are those of the compression.
    """
    q, v = checked(model, q=q, v=v)
    _check(model, contacts, 1.0)
    at_rest = np.zeros(model.nv)
    system = System(model, q, v, at_rest, 1.0, None, contacts.bodies)
    where = placed(system, contacts)
    carried = system.carry(where.blocks)
    G, _, _ = system.delassus(where.blocks, carried)
    before = [block.velocity for block in where.blocks]
    laws = _laws(contacts)
    apart = [np.where(gap > 0.0, FAR, 0.0) for gap in where.gaps]
    compression = Problem(G, [lifted(u, a) for u, a in zip(before, apart, strict=True)], laws)
    zero = [np.zeros(3) for _ in laws]
    x, modes, _, taken = solve(compression, zero, iterations, tolerance)
    residual = largest(compression.residual(x))
    if any(point.restitution for point in contacts.points):
        x = rebound(G, before, apart, x, contacts, laws, iterations, tolerance)
    after = checked_result(model, v + system.change(carried, x, free=False))
    return ContactResult(after, joined(x), residual, taken, modes)


FAR = 1e6  # m/s added to the normal velocity of a point that does not take part


def rebound(
    G: list[Any], before: list[Any], apart: list[Any], x: list[Any], contacts: Any,
    laws: list[Any], iterations: int | None, tolerance: float, hit: list[Any] | None = None,
) -> list[Any]:  # fmt: skip
    """The impulses after expansion: those of a compression x from velocities `before`.

    `hit` says which points were hit; None: all that took part. Blocks after the points are joints:
    they give nothing back.
    """
    e = [point.restitution for point in contacts.points]
    if hit is not None:
        e = [np.where(h, share, 0.0) for h, share in zip(hit, e, strict=True)]
    e += [0.0] * (len(laws) - len(e))
    apart = [*apart, *[None] * (len(laws) - len(apart))]
    back = [share * impulse for share, impulse in zip(e, x, strict=True)]
    problem = Problem(G, before, laws)
    compressed = problem.velocities(x)
    # T(s) - T(0) = x·(u⁻ + u_c)/2 + s (back·u_c) + s²/2 (back·G back) <= 0 for the step s
    spent = _dot(x, [0.5 * (a + b) for a, b in zip(before, compressed, strict=True)])
    rate = _dot(back, compressed)
    bend = _dot(back, Problem(G, [0.0 * u for u in before], laws).velocities(back))
    free = spent + rate + 0.5 * bend <= 0.0
    root = np.sqrt(np.maximum(rate * rate - 2.0 * bend * spent, 0.0))
    most = (root - rate) / np.where(free, 1.0, bend)
    share = np.where(free, 1.0, np.minimum(np.maximum(most, 0.0), 1.0))
    x = [impulse + share * more for impulse, more in zip(x, back, strict=True)]
    expanded = problem.velocities(x)
    g = [u if a is None else lifted(u, a) for u, a in zip(expanded, apart, strict=True)]
    once = [replace(law, hold=0.0) if isinstance(law, JointLaw) else law for law in laws]
    zero = [np.zeros(law.rows) for law in laws]
    more, *_ = solve(Problem(G, g, once), zero, iterations, tolerance)
    return [a + b for a, b in zip(x, more, strict=True)]


def _dot(a, b):
    terms = [p @ q for p, q in zip(a, b, strict=True)]
    return sum(terms[1:], terms[0])


def lifted(u: Any, by: Any) -> Any:
    """A velocity (3,) with its normal component raised."""
    return np.stack([u[0], u[1], u[2] + by])


def with_gap(u: Any, gap: Any, dt: float) -> Any:
    """The velocity with what the gap allows: u_n + gap / dt >= 0; a penetration is no velocity."""
    return lifted(u, np.maximum(gap, 0.0) * (1.0 / dt))


def largest(x: Any) -> Any:
    """The largest size of an entry; NaN stays NaN."""
    found = np.abs(x[0])
    for i in range(1, x.shape[0]):
        found = np.maximum(found, np.abs(x[i]))
    return found


def _laws(contacts) -> list[Any]:
    return [PointLaw(point.friction) for point in contacts.points]


def _start(problem: Problem, impulse) -> list[Any]:
    if impulse is None:
        return [np.zeros(law.rows) for law in problem.laws]
    if not is_symbolic(impulse):
        impulse = as_vector("impulse", impulse, problem.rows)
    return problem.split(impulse)


def _check(model, contacts, dt) -> None:
    if not isinstance(model, Model):
        raise InputError(f"contact needs a Model, not {type(model).__name__}")
    if not (isinstance(dt, (int, float, np.number)) and np.isfinite(dt) and dt > 0):
        raise InputError(f"dt is {dt!r}: give the step in seconds, greater than zero")
    checked_plan(model, contacts)


__all__ = ["ContactResult", "contact_dynamics", "impulse_dynamics"]
