"""PV-early: multipliers resolved on the way to the base (Sec. VIII), on clusters. O(n + m).

Every joint that a constraint passes takes one of its rows, and fewer and fewer rows are carried on.
A constraint with the world can be resolved at once; one between two bodies passes as in PV, with
its L, until its ends have met in one cluster.

| code  | paper        | meaning                                                    | shape    |
|-------|--------------|------------------------------------------------------------|----------|
| H, p  | H_i^A, -f_i^A | articulated inertia and bias force, rows resolved (63)    | (6l, 6l) |
| K, l  | K̂_i^A, l̂_i   | rows not yet resolved: K a + l = 0 (61b)                   | (s, 6l)  |
| done  | K̃, Σ, w      | the joint's elimination (62)-(68), see resolve.py          |          |
| slots | λ̂_i^A        | multipliers of the rows that a cluster passes on (64)      | (s,)     |

Without branches: whether a joint resolves a row is known before, once and for all, where |K S| does
not depend on the posture (`SURE`), and else chosen by np.where (`GUARD`), the row passing on
where the posture is singular. What remains at the world was redundant: its l is the residual, zero
where the constraints are consistent, and otherwise the least in the sense of least squares, for all
transformations of rows are orthogonal (those of constraints between bodies are not). Within
TOLERANCE of a singular posture it counts as singular; near it, rounding errors grow with 1/|K S|².

Where resolving costs more than carrying, by structure, rows are carried to the world as in PV and
resolved there (`carried_at`): the spare ones, and a few at a free base.
"""

from __future__ import annotations

import numpy as np

from ..algorithms.first_pass import parent_of
from .closing import Closing
from .recursion import cross_joint, prepared, roll_out
from .reflection import GUARD, SURE, Row
from .resolve import Resolved, resolve
from .rows import gathered
from .structure import carried_at, known


def pv_early(
    model, q, v, tau, constraints, f_ext=None, desired=None, spares=1, regular=False
):  # fmt: skip
    """(a, multipliers).

    `spares` is the number of rows that a branch may leave unresolved at a singular posture: what is
    beyond is not met, and shows in the residual. `regular=True` leaves out all guards: fewer
    operations, and NaN at singular postures and for redundant rows.
    """
    states, H, p, rows = prepared(model, q, v, constraints, f_ext, desired)
    kinds = known(model, constraints, regular)
    late = carried_at(model, constraints, regular, spares)
    carried = Closing(model, rows, regular, late)
    waiting = direct_rows(rows, H, p)
    crossings: dict = {}
    taken: dict = {}
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        H[k], p[k], left = carried.close(k, H[k], p[k])
        here = [row for _, rows_ in waiting.get(k, []) + left for row in rows_]
        tau_k = tau[state.cluster.v]
        if here and k in late:
            taken[k] = carried.take(k, here)
            here = []
        if here:
            kind = [kinds.get((k, j), SURE if regular else GUARD) for j in range(state.cluster.nv)]
            joint = state.robot.bodies[state.cluster.bodies[0]].joint
            slots = len(here) + 6 if up is None else spares  # the last joint leaves nothing out
            done, Ha, pa = resolve(state, joint, H[k], p[k], tau_k, here, carried, kind, slots)
            if up is not None and done.rows:
                waiting.setdefault(up, []).append((("cluster", k), done.rows))
        else:
            done, Ha, pa = cross_joint(state, H[k], p[k], tau_k)
            carried.cross(state, done, carried.at(k))
        crossings[k] = done
        if up is not None:
            H[up], p[up] = H[up] + Ha, p[up] + pa
    carried.close_at_world(model)
    a, multipliers = rolled_out(model, states, rows, crossings, waiting, carried, taken)
    return a, gathered(rows, multipliers, sum(c.m for c in constraints))


def direct_rows(rows, H, p) -> dict:
    """Rows in one cluster, by cluster, as (source, rows); soft ones stiffen it at once (52)."""
    waiting: dict = {}
    for b, block in enumerate(rows):
        if len(block.ends) == 2:
            continue
        ((k, F),) = block.ends.items()
        if block.R is None:
            here = [Row(F[:, i], block.l[i]) for i in range(block.m)]
            waiting.setdefault(k, []).append((("rows", b), here))
        else:
            H[k], p[k] = H[k] + (F / block.R) @ F.T, p[k] + F @ (block.l / block.R)
    return waiting


def rolled_out(model, states, rows, crossings, waiting, carried, taken):
    """Accelerations from the base outward, and with them the multipliers (62), (64)."""
    acc, out, slots = [], [], {}
    for state in states:
        k = state.cluster.index
        a_parent = parent_of(acc, state.cluster, np.zeros(6))
        if isinstance(crossings[k], Resolved):
            passed = slots.get(("cluster", k), [0.0] * len(crossings[k].rows))
            qdd, a, found = crossings[k].roll_out(state, a_parent, passed, carried.multipliers)
        else:
            qdd, a = roll_out(state, crossings[k], a_parent, carried.drive(k))
            found = list(carried.multipliers[taken[k]]) if k in taken else []
        for source, came in waiting.get(k, []) + carried.left.get(k, []):
            slots[source], found = found[: len(came)], found[len(came) :]
        carried.open(k, a, slots)
        out.append(qdd)
        acc.append(a)
    multipliers = []
    for b, block in enumerate(rows):
        if b in carried.multipliers:
            multipliers.append(carried.multipliers[b])
        elif block.R is None:
            multipliers.append(np.stack(slots["rows", b]))
        else:
            ((k, F),) = block.ends.items()
            multipliers.append(-(F.T @ acc[k] + block.l) / block.R)
    return np.concatenate(out), multipliers
