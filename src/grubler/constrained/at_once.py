"""PV-early of few joints on a fixed base, all of them at once.

The same coordinates take the same rows in the same order (resolve.py), here of

    M a + h = tau + J' λ,   J a + l = 0.

Across every joint of a short arm the articulated inertia has more numbers than the mass matrix, and
it has to wait for the joint before; M is known at the start, and a joint that takes a row waits for
no division. What rows feel of the joints is the same.
"""

from __future__ import annotations

import numpy as np

from ..algorithms.c_crba import mass_matrix_of
from .accuracy import Early
from .closing import Closing
from .jacobian import jacobian_and_drift, split
from .reflection import Row
from .resolve import resolve
from .structure import levers


class Rooted:
    """The accelerations of all joints, in the order in which they are eliminated."""

    turn = cluster = None

    def __init__(self, n: int):
        self.axes = np.eye(n)

    def enter(self, H, p, tau, rows, carried):
        return H, p, tau, rows

    def leave(self, H, p, rows, outer, left, carried):
        return None, None, rows

    def unmoved(self, a):
        return a

    def moved(self, a, a_parent, qdd):
        return a


def at_once(model, ready, tau, constraints) -> Early:
    """The solution, as by `resolved_early`."""
    states, _, p, blocks = ready
    order = [i for c in reversed(model.clusters) for i in range(c.v.start, c.v.stop)]
    M, h = mass_matrix_of(states), joint_forces(states, p)
    J, l = jacobian_and_drift(states, blocks)
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
    return Early(a, found, states.beyond_coasting(a), masses)


def joint_forces(states, p):
    """What the joints feel of the forces p on the clusters: h of the coasting robot."""
    p, h = list(p), [None] * len(states)
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        h[k] = state.joint_bias(p[k])
        if up is not None:
            p[up] = p[up] + state.X.force_back(p[k])
    return np.concatenate(h)
