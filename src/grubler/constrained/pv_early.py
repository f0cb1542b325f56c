"""PV-early: multipliers resolved on the way to the base (Sec. VIII), on clusters. O(n + m).

Every joint that a constraint passes takes one of its rows, and fewer and fewer rows are carried on.
A constraint with the world can be resolved at once; one between two bodies passes as in PV, with
its L, until its ends have met in one cluster. Which joints take rows is in the plan (plan.py).

| code    | paper         | meaning                                                  | shape    |
|---------|---------------|----------------------------------------------------------|----------|
| H, p    | H_i^A, -f_i^A | articulated inertia and bias force, rows resolved (63)   | (6l, 6l) |
| waiting | K̂_i^A, l̂_i    | by cluster: rows not yet resolved, K a + l = 0 (61b)     | (s, 6l)  |
| joints  | K̃, Σ, w       | the joint's elimination (62)-(68), see resolve.py        |          |
| slots   | λ̂_i^A         | multipliers of the rows that a cluster passes on (64)    | (s,)     |

Where rows determine the motion of all joints from the world on, those of an arm of six whose hand
is welded, no inertia is carried across them: accelerations come from the rows, and the multipliers
from the forces that these take.

Near a singular posture of a limb the joint barely moves the row that it takes. The row then adds a
very large reflected inertia D / |K S|² to H, and digits are lost: see guard.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.elimination import Elimination
from ..algorithms.sweep import parent_of
from .closing import Closing
from .equations import Equations, Solution
from .plan import Plan
from .reflection import Row
from .resolve import Resolved, resolve, space_of

if TYPE_CHECKING:
    from ..algorithms.sweep import Sweep
    from ..typing import Array
    from .rows import Rows


def resolved_early(equations: Equations, plan: Plan) -> Solution:
    """The solution without regard to the posture."""
    recursion = Recursion(equations, plan)
    recursion.inward()
    a = recursion.outward()
    multipliers, masses = recursion.multipliers(), recursion.row_masses
    return Solution(a, multipliers, recursion.acc, masses)


@dataclass
class Free:
    """A cluster's joint that takes no row: eliminated by its inertia, as in C-ABA."""

    J: Elimination
    u: np.ndarray


class Recursion:
    """One run to the base and back."""

    sweep: Sweep
    tau: Array
    rows: list[Rows]
    p: list[Any]
    plan: Any

    def __init__(self, equations: Equations, plan: Plan):
        self.sweep, self.tau, self.rows = equations.sweep, equations.tau, equations.rows
        self.H, self.p, self.plan = list(equations.H), list(equations.p), plan
        self.closing = Closing(self.sweep.model.tree, self.rows, plan.carries)
        self.waiting: dict[Any, Any] = {}  # by cluster: (source, rows)
        self.joints: dict[Any, Any] = {}  # by cluster: Free or Resolved
        self.taken: dict[int, Any] = {}  # by cluster: the rows that it carries to the world
        self.row_masses: list[Any] = []
        self.acc: list[Any] = []
        self.qdd: list[Any] = []
        for b, block in enumerate(self.rows):
            if len(block.ends) == 1:
                self._place(b, block)

    def _place(self, b: int, block) -> None:
        """Rows on one cluster wait there; soft ones stiffen it at once (52)."""
        ((k, F),) = block.ends.items()
        if block.R is None:
            here = [Row(F[:, i], block.l[i]) for i in range(block.m)]
            self.waiting.setdefault(k, []).append((("rows", b), here))
        else:
            self.H[k] = self.H[k] + (F / block.R) @ F.T
            self.p[k] = self.p[k] + F @ (block.l / block.R)

    def inward(self) -> None:
        """Eliminate all joints, leaves first (62)-(68)."""
        for state in reversed(self.sweep):
            k, up = state.cluster.index, state.cluster.parent
            self.H[k], self.p[k] = self.closing.close(k, self.H[k], self.p[k])  # (49)
            here = [row for _, rows in self.waiting.get(k, []) for row in rows]
            if here and k in self.plan.carries:
                self.taken[k] = self.closing.take(k, here)
                here = []
            Ha, pa = self._resolve(state, here) if here else self._free(state)
            if up is not None and k not in self.plan.determined:
                self.H[up], self.p[up] = self.H[up] + Ha, self.p[up] + pa
        self.closing.close_at_world()
        self.row_masses += [(None, mass) for mass in self.closing.masses]

    def _free(self, state):
        k, tau = state.cluster.index, self.tau[state.cluster.v]
        J = Elimination(state, self.H[k])
        u = J.joint_force(self.p[k], tau)
        seen = (None, None)
        if state.parent is not None:
            seen = J.inertia(), J.bias(self.p[k], tau, u)  # (42a), (42b)
        self.closing.cross(J, u)  # (42c), (42d), (42e)
        self.joints[k] = Free(J, u)
        return seen

    def _resolve(self, state, here: list[Row]):
        k, up, tau = state.cluster.index, state.cluster.parent, self.tau[state.cluster.v]
        takes = [(k, j) in self.plan.takes for j in range(state.cluster.nv)]
        joint, Ha, pa = resolve(
            space_of(state), self.H[k], self.p[k], tau, here, self.closing, takes,
            k in self.plan.determined,
        )  # fmt: skip
        self.row_masses += [(k, c.mass) for c in joint.coordinates if c.reflection]
        if joint.rows and up is None:
            self.row_masses.append((k, np.inf))  # more rows than freedom
        elif joint.rows:
            self.waiting.setdefault(up, []).append((("cluster", k), joint.rows))
        self.joints[k] = joint
        return Ha, pa

    def outward(self) -> Array:
        """The joints' accelerations (nv,), and those of the clusters, from the base outward."""
        for state in self.sweep:
            k, joint = state.cluster.index, self.joints[state.cluster.index]
            if isinstance(joint, Resolved):
                a_parent = parent_of(self.acc, state.cluster, np.zeros(6))
                qdd, a, joint.forces = joint.roll_out(a_parent, self.closing.multipliers)
            else:
                drive = self.closing.drive(k, self.closing.multipliers)
                force = joint.u if drive is None else joint.u + drive
                qdd, a = joint.J.motion(force, parent_of(self.acc, state.cluster, None))
            self.closing.open(k, a)
            self.qdd.append(qdd)
            self.acc.append(a)
        return np.concatenate(self.qdd)

    def multipliers(self) -> list[Any]:
        """By block of rows, from the base outward (62), (64)."""
        self._balance_determined()
        slots: dict[Any, Any] = {}
        for state in self.sweep:
            k, joint = state.cluster.index, self.joints[state.cluster.index]
            if isinstance(joint, Resolved):
                found = joint.multipliers(slots.get(("cluster", k), [0.0] * len(joint.rows)))
            else:
                found = list(self.closing.multipliers[self.taken[k]]) if k in self.taken else []
            for source, came in self.waiting.get(k, []):
                slots[source], found = found[: len(came)], found[len(came) :]
        out = []
        for b, block in enumerate(self.rows):
            if b in self.closing.multipliers:
                out.append(self.closing.multipliers[b])
            elif block.R is None:
                out.append(np.stack(slots["rows", b]))
            else:
                ((k, F),) = block.ends.items()
                out.append(-(F.T @ self.acc[k] + block.l) / block.R)
        return out

    def _balance_determined(self) -> None:
        """The forces that rows withstand where they determine the motion: inverse dynamics."""
        below: dict[Any, Any] = {}
        for state in reversed(self.sweep):
            k, up = state.cluster.index, state.cluster.parent
            if k in self.plan.determined:
                f = self.H[k] @ self.acc[k] + self.p[k]
                f = f + below[k] if k in below else f
                self.joints[k].forces, force = self.joints[k].balance(f, self.qdd[k])
                below[up] = below[up] + force if up in below else force
