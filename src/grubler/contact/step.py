"""The contact part of a simulation step: velocities, the correction of positions, a record.

Velocities obey Coulomb's law at the end of the step (Moreau's time stepping). Penetration, which
rounding and the curvature of paths leave, is taken out by a second velocity w that moves positions
alone and is then forgotten: it never enters the kinetic energy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import joined
from ..errors import InputError
from ..model import Model
from .candidates import checked_plan
from .dynamics import TOLERANCE, largest, lifted, placed, rebound, solve, with_gap
from .gauss_seidel import sweeps
from .problem import JointLaw, PointLaw, Problem
from .system import System

if TYPE_CHECKING:
    from ..typing import Array

BEYOND = 1e6  # rad/s or m/s: the bound of a joint's velocity where it has no limit on that side


@dataclass(frozen=True)
class ContactSolver:
    """How a simulation solves its contacts.

    `iterations` fixes the number of Gauss-Seidel sweeps a step, for the shortest code, and `newton`
    that of steps of Newton's method after them, which several points on one body need; None
    iterates until the natural map is within `tolerance`, in m/s. `error_above` stops a run at the
    first step whose residual is larger, in m/s; None counts such steps (`Trajectory.unconverged`).
    `limits=True` adds the limits of joints as rows of the same problem. `correction` is the share
    of a penetration beyond `slop`, in m, that a step takes out. Points that approach more slowly
    than `rebound_above`, in m/s, do not rebound.
    """

    iterations: int | None = None
    newton: int = 0
    tolerance: float = TOLERANCE
    error_above: float | None = None
    limits: bool = False
    correction: float = 0.2
    slop: float = 0.0
    rebound_above: float = 0.05

    def checked(self) -> ContactSolver:
        """Refuse numbers that no solver can use."""
        n = self.iterations
        if n is not None and (not isinstance(n, (int, np.integer)) or n < 1):
            raise InputError(f"iterations is {n!r}: give a whole number, at least 1, or None")
        if not isinstance(self.newton, (int, np.integer)) or self.newton < 0:
            raise InputError(f"newton is {self.newton!r}: give a whole number, at least 0")
        if self.newton and n is None:
            raise InputError("newton counts steps after fixed iterations: give iterations, too")
        for name, low, high in (("tolerance", 0.0, np.inf), ("correction", 0.0, 1.0),
                                ("slop", 0.0, np.inf), ("rebound_above", 0.0, np.inf)):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"{name} is {value!r}: give a number from {low:g} to {high:g}")
        return self


@dataclass(frozen=True, eq=False)
class Contacting:
    """The contacts of a simulated model: candidate points, then rows of joints.

    `damping` is implicit, by body index; `friction` are the dry friction torques of joints, by body
    index, in N m or N. The state that travels from step to step is `record` numbers: the impulses,
    the modes and roots of all blocks, the residual, the number of iterations; the largest residual
    and the number of steps above the tolerance so far.
    """

    model: Model
    plan: object
    solver: ContactSolver
    dt: float
    damping: dict[Any, Any] = field(default_factory=dict)
    friction: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_plan(self.model, self.plan)
        self.solver.checked()

    @property
    def joints(self) -> tuple[int, ...]:
        """Bodies whose tree joints have a row: a limit, or dry friction."""
        found = [
            body.index for body in self.model.bodies
            if body.joint.nv == 1 and (body.index in self.friction or self._limited(body.joint))
        ]  # fmt: skip
        return tuple(found)

    def _limited(self, joint) -> bool:
        return self.solver.limits and bool(np.isfinite(joint.limits).any())

    @property
    def points(self) -> int:
        return len(self.plan.points)

    @property
    def rows(self) -> int:
        return 3 * self.points + len(self.joints)

    @property
    def record(self) -> int:
        return self.rows + 2 * (self.points + len(self.joints)) + 4

    def velocities(
        self, model: Model, q: Array, v: Array, tau: Array, record: Any
    ) -> tuple[Array, Any, Array]:
        """(v⁺ - v, w, record) of a step; `model` may be in other coordinates than the own one."""
        dt, solver, n = self.dt, self.solver, self.points + len(self.joints)
        system = System(model, q, v, tau, dt, None, self.plan.bodies, self.damping)
        where, blocks = self._rows(system)
        carried = system.carry(blocks)
        G, free = system.delassus(blocks, carried)
        before = [block.velocity for block in blocks]
        hit, g = self._allowed(where, before, free)
        laws = [PointLaw(p.friction) for p in self.plan.points]
        laws += [self._joint_law(system, index) for index in self.joints]
        problem = Problem(G, g, laws)
        start = problem.split(record[: self.rows])
        roots = record[self.rows + n : self.rows + 2 * n]
        roots = [roots[i] for i in range(n)]
        x, modes, roots, taken = solve(
            problem, start, solver.iterations, solver.tolerance, roots, solver.newton
        )
        residual = largest(problem.residual(x))
        final = x
        if any(point.restitution for point in self.plan.points):
            final = self._rebounding(G, free, g, x, laws, hit)
        change = system.change(carried, final)
        w = self._correction(system, where, carried, G, free, final, laws)
        roots = np.stack([0.0 * residual if root is None else root + 0.0 for root in roots])
        above = np.where(residual <= solver.tolerance, 0.0, 1.0)  # 1 where it is NaN, too
        worst, count = record[self.record - 2], record[self.record - 1]
        told = [residual, taken + 0.0 * residual, np.maximum(worst, residual), count + above]
        kept = joined([*x, modes, roots, np.stack(told)])
        return change, w, kept

    def _rows(self, system: System):
        where = placed(system, self.plan)
        return where, [*where.blocks, *(system.joint_row(index) for index in self.joints)]

    def _allowed(self, where, before, free):
        """(by point: whether it is hit so that it rebounds, or False; g with the gaps).

        A rebounding point counts as touching as soon as it would touch within the step: arrested at
        gap / dt first, it would lose the velocity that it is to give back.
        """
        hit, g = [], []
        for point, gap, u0, u in zip(self.plan.points, where.gaps, before, free):
            if not point.restitution:
                hit.append(False)
                g.append(with_gap(u, gap, self.dt))
                continue
            reached = np.maximum(gap, 0.0) + self.dt * u[2] < 0.0
            fast = np.logical_and(reached, u0[2] < -self.solver.rebound_above)
            hit.append(fast)
            room = np.where(fast, 0.0, np.maximum(gap, 0.0) * (1.0 / self.dt))
            g.append(lifted(u, room))
        return hit, [*g, *free[len(where.gaps) :]]

    def _rebounding(self, G, free, g, x, laws, hit):
        apart = [a[2] - b[2] for a, b in zip(g, free)][: self.points]
        s = self.solver
        return rebound(G, free, apart, x, self.plan, laws, s.iterations, s.tolerance, hit)

    def _joint_law(self, system: System, index: int) -> JointLaw:
        joint = self.model.bodies[index].joint
        low, high = joint.limits if self.solver.limits else (-np.inf, np.inf)
        position = self._position(system, index)
        bounds = []
        for limit, sign in ((low, -1.0), (high, 1.0)):
            room = BEYOND
            if np.isfinite(limit):
                room = np.maximum(sign * (limit - position), 0.0) * (1.0 / self.dt)
            bounds.append(sign * room + 0.0 * position)
        return JointLaw(*bounds, self.friction.get(index, 0.0) * self.dt)

    def _position(self, system: System, index: int):
        k, place = self.model.tree.locate(index)
        return system.sweep[k].joints[place].q[0]

    def _correction(self, system, where, carried, G, free, x, laws):
        """w (nv,): where shapes overlap after the step, a share of it is taken out. Normal rows
        alone, without friction; a limit that is passed is a row, too."""
        problem = Problem(G, free, laws)
        after, n = problem.velocities(x), self.points
        rows, left = [], []
        for i in range(len(laws)):
            last = laws[i].rows - 1
            if i < n:
                left.append([where.gaps[i] + self.dt * after[i][last], None])
            else:
                left.append(self._left(system, self.joints[i - n], after[i][0]))
            rows.append(last)
        scalar = [
            [None if G[i][j] is None else G[i][j][a : a + 1, b : b + 1]
             for j, b in enumerate(rows)]
            for i, a in enumerate(rows)
        ]  # fmt: skip
        bounds = [JointLaw(*self._restored(low, high), 0.0) for low, high in left]
        zero = [np.zeros(1) for _ in laws]
        push, *_ = sweeps(Problem(scalar, zero, bounds), zero, CORRECTION_SWEEPS)
        columns = [
            {k: Y[:, row : row + 1] for k, Y in by_cluster.items()}
            for by_cluster, row in zip(carried, rows, strict=True)
        ]
        return system.change(columns, push, free=False)

    def _left(self, system, index: int, rate):
        """[above the lower limit, below the upper one] after the step; None where there is none."""
        low, high = self.model.bodies[index].joint.limits
        position = self._position(system, index) + self.dt * rate
        if not self.solver.limits:
            return [None, None]
        return [
            position - low if np.isfinite(low) else None,
            high - position if np.isfinite(high) else None,
        ]

    def _restored(self, low, high):
        bounds = []
        for gap, sign in ((low, -1.0), (high, 1.0)):
            if gap is None:
                bounds.append(sign * BEYOND)
                continue
            deep = np.maximum(-gap - self.solver.slop, 0.0) * (self.solver.correction / self.dt)
            bounds.append(sign * (np.maximum(gap, 0.0) * (1.0 / self.dt) - deep))
        return bounds


CORRECTION_SWEEPS = 4  # of the rows that correct positions: what is left is taken out in next steps

__all__ = ["ContactSolver", "Contacting"]
