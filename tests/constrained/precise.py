"""Constrained dynamics in more digits than a double has: what PV-early is measured against.

`Ltl` is compiled: LTL as it is, and LTL with one step of iterative refinement. `in_fifty_digits`
evaluates the whole of M, J and the biases with mpmath, from q, v and tau on, and solves the dense
KKT system. Neither shares a step with PV-early but the first pass over positions.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np

from grubler import compiler
from grubler.algebra.linalg import LDL, symmetric
from grubler.compiler.ir.tape import Tape
from grubler.constrained.equations import prepared
from grubler.constrained.jacobian import by_block
from grubler.constrained.ltl import Leaves, joint_space
from grubler.constrained.plan import planned
from grubler.constrained.pv_early import resolved_early
from grubler.constrained.rows import gathered

POOL = 300  # assembled configurations, from which clusters are drawn independently
CONDITION = 1e6  # of J M⁻¹ J': up to here rows count as independent
FACTOR, FLOOR = 100.0, 1e-12  # times LTL's error, or this, whichever is larger, is allowed
FIFTY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "sq": lambda a: a * a,
    "twice": lambda a: 2 * a, "inv": lambda a: 1 / a, "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c, "fnma": lambda a, b, c: c - a * b,
    "fnms": lambda a, b, c: -a * b - c, "sqrt": mp.sqrt, "sin": mp.sin, "cos": mp.cos,
    "tan": mp.tan, "fabs": abs, "sign": mp.sign, "asin": mp.asin, "acos": mp.acos,
    "atan": mp.atan, "atan2": mp.atan2, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "select": lambda c, a, b: a if c else b, "if_else_zero": lambda c, a: a if c else mp.mpf(0),
}  # fmt: skip


class Ltl:
    """The joint-space equations of one robot under hard, independent constraints."""

    def __init__(self, model, checked):
        self.model, self.checked = model, checked
        self.shapes = [(model.nq,), (model.nv,), (model.nv,)]
        self.compiled = compiler.compile_function(self.solve, self.shapes)
        self._tape: Tape | None = None

    def equations(self, q, v, tau):
        """M, J, tau - h, l and the rows."""
        return joint_space(self.model, q, v, tau, self.checked, None, None)

    def solve(self, q, v, tau):
        """(a, multipliers, J M⁻¹ J') refined once, and (a, multipliers) of LTL as it is."""
        M, J, force, l, rows = self.equations(q, v, tau)
        factor = Leaves(M)
        Y = factor.forward(J.T)
        osim = symmetric(Y.T @ factor.scale(Y))
        inverse = LDL(osim)

        def step(force, l):
            y = factor.forward(force)
            multipliers = inverse.solve(-(l + Y.T @ factor.scale(y)))
            return factor.backward(y + Y @ multipliers), multipliers

        a, x = step(force, l)
        da, dx = step(force + J.T @ x - M @ a, l + J @ a)
        return a + da, self._all(rows, x + dx), osim, a, self._all(rows, x)

    def in_fifty_digits(self, q, v, tau):
        """(a, multipliers) of one state."""
        if self._tape is None:
            equations = lambda q, v, tau: self.equations(q, v, tau)[:4]  # noqa: E731
            self._tape = compiler.trace(equations, self.shapes)
        with mp.workdps(50):
            M, J, force, l = evaluated(self._tape, q, v, tau)
            n, m = len(force), len(l)
            A, b = mp.matrix(n + m), mp.matrix(n + m, 1)
            for i in range(n):
                b[i] = force[i]
                for j in range(n):
                    A[i, j] = M[i * n + j]
                for j in range(m):
                    A[i, n + j], A[n + j, i] = -J[j * n + i], J[j * n + i]
            for j in range(m):
                b[n + j] = -l[j]
            x = np.array([float(value) for value in mp.lu_solve(A, b)])
        return x[:n], self._all(self.equations(q, v, tau)[4], x[n:])

    def _all(self, rows, x):
        return gathered(rows, by_block(rows, x))


def evaluated(tape: Tape, *arguments) -> list[list]:
    """The outputs of a tape without loops and branches, in the precision that mpmath is set to."""
    values: list = []
    for op, *rest in tape.instructions:
        if op == "const":
            values.append(mp.mpf(rest[0]))
        elif op == "input":
            values.append(mp.mpf(float(arguments[rest[0]][rest[1]])))
        else:
            values.append(FIFTY[op](*(values[k] for k in rest)))
    return [[values[k] for k in result] for result in tape.results]


def off(x, expected):
    """The largest difference of each state, in terms of its largest number."""
    return np.abs(x - expected).max(axis=-1) / np.abs(expected).max(axis=-1)


def error(found, expected):
    """The larger one of accelerations and of multipliers; not a number counts as 1e300."""
    worst = np.maximum(*(off(x, y) for x, y in zip(found, expected, strict=True)))
    return np.where(np.isfinite(worst), worst, 1e300)


def random_states(model, count: int, rng):
    """(q, v, tau) of many states, each cluster's posture drawn by itself; closed ones and
    quaternions from a pool."""
    pool = np.array([model.random_state(rng)[0] for _ in range(min(POOL, count))])
    q = np.empty((count, model.nq))
    for cluster in model.clusters:
        mine = pool[:, cluster.q]
        low, high = mine.min(axis=0), mine.max(axis=0)
        drawn = cluster.embedding.implicit or mine.shape[1] != cluster.nv
        uniform = rng.uniform(low, high, (count, mine.shape[1]))
        q[:, cluster.q] = mine[rng.integers(len(pool), size=count)] if drawn else uniform
    v = rng.uniform(-1, 1, (count, model.nv))
    return q, v, rng.uniform(-5, 5, (count, model.nv))


def near_singular(model, checked, states, rng):
    """The states moved to where a joint hardly moves the row that it takes: most of the way, from
    nine tenths on, of a Newton step on its lever 1 / √mass."""

    def levers(q, v, tau):
        plan = planned(model, checked)
        early = resolved_early(prepared(model, q, v, tau, checked), plan)
        return np.stack([1.0 / np.sqrt(mass) for _, mass in early.row_masses])

    shapes = [(model.nq,), (model.nv,), (model.nv,)]
    code, (q, v, tau) = compiler.compile_function(levers, shapes), states
    free = [i for c in model.clusters for i in range(c.q.start, c.q.stop)
            if not c.embedding.implicit and c.q.stop - c.q.start == c.nv]  # fmt: skip
    every = np.arange(len(q))
    lever = code(q, v, tau)
    some = np.median(lever, axis=0) > 0
    lever, usual = lever[:, some], np.median(lever, axis=0)[some]
    chosen = np.argsort(lever / usual, axis=1)[:, :2]
    chosen = chosen[every, rng.integers(chosen.shape[1], size=len(q))]
    slope, h = np.zeros_like(q), 1e-6
    for i in free:
        moved = q + h * (np.arange(q.shape[1]) == i)
        slope[:, i] = (code(moved, v, tau)[:, some] - lever)[every, chosen] / h
    step = -lever[every, chosen] / np.maximum((slope**2).sum(axis=1), 1e-12)
    part = 1.0 - 10.0 ** rng.uniform(-6, -1, len(q))
    return q + np.clip((part * step)[:, None] * slope, -1.0, 1.0), v, tau


def compared(ltl: Ltl, found, states):
    """(error, what is allowed, whether the rows are independent) of every state."""
    a, x, osim, plain_a, plain_x = ltl.compiled(*states)
    allowed = np.maximum(FLOOR, FACTOR * error((plain_a, plain_x), (a, x)))
    sizes = np.linalg.eigvalsh(np.where(np.isfinite(osim), osim, 0.0))
    return error(found, (a, x)), allowed, sizes[:, 0] * CONDITION > sizes[:, -1]
