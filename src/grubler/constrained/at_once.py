"""PV-early of few joints on a fixed base, all of them at once.

The same coordinates take the same rows in the same order (resolve.py), here of

    M a + h = tau + J' λ,   J a + l = 0.

Across every joint of a short arm the articulated inertia has more numbers than the mass matrix, and
it has to wait for the joint before; M is known at the start, and a joint that takes a row waits for
no division. What rows feel of the joints is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.c_crba import mass_matrix_of
from .closing import Closing
from .equations import Equations, Solution
from .jacobian import by_block, jacobian_and_drift
from .reflection import Row
from .resolve import resolve

if TYPE_CHECKING:
    from ..typing import Array


class Rooted:
    """The accelerations of all joints, in the order in which they are eliminated."""

    turn = cluster = None

    def __init__(self, n: int):
        self.axes: Any = np.eye(n)

    def enter(
        self, H: Array, p: Array, tau: Array, rows: Any, carried: Any
    ) -> tuple[Array, Array, Array, Any]:
        return H, p, tau, rows

    def leave(
        self, H: Array, p: Array, rows: Any, outer: Any, left: Any, carried: Any
    ) -> tuple[None, None, Any]:
        return None, None, rows

    def unmoved(self, a: Array) -> Array:
        return a

    def moved(self, a: Array, a_parent: Array, qdd: Array) -> Array:
        return a


def at_once(equations: Equations, plan: Any) -> Solution:
    """The solution, as by `resolved_early`."""
    sweep, blocks, model = equations.sweep, equations.rows, equations.sweep.model
    order = [i for c in reversed(model.clusters) for i in range(c.v.start, c.v.stop)]
    M, h = mass_matrix_of(sweep), joint_forces(sweep, equations.p)
    J, l = jacobian_and_drift(sweep, blocks)
    places = [(c.index, j) for c in reversed(model.clusters) for j in range(c.nv)]
    rows = [Row(K[order], l_) for K, l_ in zip(J, l)]
    done, _, _ = resolve(
        Rooted(model.nv), M[order][:, order], h[order], equations.tau[order], rows,
        Closing(model.tree, []), [place in plan.takes for place in places], False,
    )  # fmt: skip
    masses = [(k, c.mass) for (k, _), c in zip(places, done.coordinates) if c.reflection]
    masses += [(None, np.inf)] if done.rows else []  # more rows than freedom
    qdd, _, done.forces = done.roll_out(np.zeros(model.nv), {})
    found = by_block(blocks, np.stack(done.multipliers([0.0] * len(done.rows))))
    a = qdd[np.argsort(order)]
    return Solution(a, found, sweep.beyond_coasting(a), masses)


def joint_forces(sweep: Any, p: Any) -> Any:
    """h (nv,) of the coasting robot: the forces p on the clusters, projected onto the joints."""
    p, h = list(p), [None] * len(sweep)
    for state in reversed(sweep):
        k, up = state.cluster.index, state.cluster.parent
        h[k] = state.joint_bias(p[k])
        if up is not None:
            p[up] = p[up] + state.X.force_back(p[k])
    return np.concatenate(h)
