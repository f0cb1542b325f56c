"""PV-early of few joints on a fixed base, all of them at once.

The same coordinates take the same rows in the same order (resolve.py), here of

    M a + h = tau + J' λ,   J a + l = 0.

Across every joint of a short arm the articulated inertia has more numbers than the mass matrix, and
it has to wait for the joint before; M is known at the start, and a joint that takes a row waits for
no division. What rows feel of the joints is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.c_crba import mass_matrix_of
from ..algorithms.first_pass import parent_of
from .accuracy import Early
from .closing import Closing
from .jacobian import jacobian_and_drift, split
from .reflection import Row
from .resolve import resolve
from .structure import levers

if TYPE_CHECKING:
    from ..algorithms.first_pass import ClusterState
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked


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


def at_once(model: Model, ready: Any, tau: Array, constraints: Sequence[Checked]) -> Early:
    """The solution, as by `resolved_early`."""
    states, _, p, blocks = ready
    order = [i for c in reversed(model.clusters) for i in range(c.v.start, c.v.stop)]
    M, h = mass_matrix_of(model, states), joint_forces(states, p)
    J, l = jacobian_and_drift(model, states, blocks)
    known = levers(model.nominal, constraints)
    places = [(c.index, j) for c in reversed(model.clusters) for j in range(c.nv)]
    lever = [known.get(at) for at in places]
    rows = [Row(K[order], l_) for K, l_ in zip(J, l)]
    done, _, _ = resolve(
        Rooted(model.nv), M[order][:, order], h[order], tau[order], rows, Closing(model, []),
        [x is not None and x.moves for x in lever], False,
    )  # fmt: skip
    masses = [(k, c.mass) for (k, _), c in zip(places, done.coordinates) if c.reflection]
    masses += [(None, np.inf)] if done.rows else []  # more rows than freedom
    qdd, _, forces = done.roll_out(np.zeros(model.nv), {})
    found = split(blocks, np.stack(done.multipliers(forces, [0.0] * len(done.rows))))
    a = qdd[np.argsort(order)]
    return Early(a, found, accelerations(states, a), masses)


def accelerations(states: list[ClusterState], a: Array | None) -> list[Any]:
    """The stacked accelerations of the clusters, beyond coasting, from those of the joints."""
    acc: list[Any] = []
    for state in states:
        up = parent_of(acc, state.cluster, np.zeros(6))
        acc.append(state.X.motion(up) + state.S @ a[state.cluster.v])
    return acc


def joint_forces(states: list[ClusterState], p: Array) -> Any:
    """What the joints feel of the forces p on the clusters: h of the coasting robot."""
    p, h = list(p), [None] * len(states)
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        h[k] = state.S.T @ p[k] if state.r is None else state.S.T @ p[k] + state.r
        if up is not None:
            p[up] = p[up] + state.X.force_back(p[k])
    return np.concatenate(h)
