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
TOLERANCE of a singular posture it counts as singular.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..algorithms.first_pass import base_acceleration, first_pass, locate, parent_of
from ..symbolic import is_symbolic
from .closing import Closing, meeting
from .recursion import cross_joint, prepared, roll_out
from .reflection import GUARD, NONE, SURE, Row, reflect
from .resolve import Resolved, resolve
from .rows import constraint_rows, gathered, independent_rows, posed


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
    carried = Closing(model, rows, regular)
    waiting = direct_rows(rows, H, p)
    crossings: dict = {}
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        H[k], p[k], left = carried.close(k, H[k], p[k])
        here = [row for _, rows_ in waiting.get(k, []) + left for row in rows_]
        tau_k = tau[state.cluster.v]
        if here:
            kind = [kinds.get((k, j), SURE if regular else GUARD) for j in range(state.cluster.nv)]
            slots = len(here) + 6 if up is None else spares  # the last joint leaves nothing out
            done, Ha, pa = resolve(state, H[k], p[k], tau_k, here, carried, kind, slots)
            if up is not None and done.rows:
                passed = seen_from_parent(state, done.rows)
                waiting.setdefault(up, []).append((("cluster", k), passed))
        else:
            done, Ha, pa = cross_joint(state, H[k], p[k], tau_k)
            carried.cross(state, done, carried.at(k))
        crossings[k] = done
        if up is not None:
            H[up], p[up] = H[up] + Ha, p[up] + pa
    carried.close_at_world(model)
    a, multipliers = rolled_out(model, states, rows, crossings, waiting, carried)
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


def rolled_out(model, states, rows, crossings, waiting, carried):
    """Accelerations from the base outward, and with them the multipliers (62), (64)."""
    acc, out, slots = [], [], {}
    for state in states:
        k = state.cluster.index
        a_parent = parent_of(acc, state.cluster, base_acceleration(model))
        if isinstance(crossings[k], Resolved):
            passed = slots.get(("cluster", k), [0.0] * len(crossings[k].rows))
            a = state.X.motion(a_parent) + state.c
            qdd, a, found = crossings[k].roll_out(a, passed, carried.multipliers)
            for source, came in waiting.get(k, []) + carried.left.get(k, []):
                slots[source], found = found[: len(came)], found[len(came) :]
        else:
            qdd, a = roll_out(state, crossings[k], a_parent, carried.drive(k))
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


@lru_cache(maxsize=256)
def known(model, constraints, regular: bool) -> dict:
    """What is known of |K S| before: by (cluster, coordinate), from a few random postures.

    K is carried on by kinematics alone; an analytic function of the posture that has one value at
    several random ones is constant.
    """
    if is_symbolic(*[x for loop in model.loops for x in getattr(loop, "ratios", ())]):
        return {}
    direct = tuple(c for c in constraints if c.softness is None and c.to is None)
    samples = [norms(model, direct, model.random_state(seed)[0]) for seed in range(3)]
    above = set() if regular else closures_below(model, constraints)
    kinds = {}
    for key in samples[0]:
        left, whole = np.stack([sample[key] for sample in samples]).T
        constant = regular or np.ptp(left) < 1e-12 * left.max()
        if key[0] in above:
            kinds[key] = GUARD
        elif (left if regular else whole).max() < 1e-12:
            kinds[key] = NONE
        else:
            kinds[key] = SURE if constant and left.max() > 1e-6 else GUARD
    return kinds


def norms(model, constraints, q) -> dict:
    """|K S|² of the rows left and of all rows, at every coordinate that rows pass."""
    states = first_pass(model, q, posed=posed(constraints))
    rows = independent_rows(model, constraint_rows(model, states, constraints), constraints)
    waiting: dict = {}
    for block in rows:
        for k, F in block.ends.items():
            here = [Row(F[:, i], 0.0) for i in range(block.m)]
            _extend(waiting, k, here, here)
    out = {}
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        if k not in waiting:
            continue
        left, whole = waiting[k]
        for j in range(state.cluster.nv):
            S = state.S[:, j]
            out[k, j] = np.stack([sum((row.K @ S) ** 2 for row in some) for some in (left, whole)])
            left = reflect(left, S, False, len(left) + 1).rows
        if up is not None:
            _extend(waiting, up, seen_from_parent(state, left), seen_from_parent(state, whole))
    return out


def _extend(waiting: dict, k: int, left, whole) -> None:
    for rows, more in zip(waiting.setdefault(k, ([], [])), (left, whole)):
        rows.extend(more)


def seen_from_parent(state, rows: list[Row]) -> list[Row]:
    """Rows on a cluster as rows on its parent."""
    K = state.X.forces_back(np.stack([row.K for row in rows]).T).T
    return [Row(K[i], row.l, row.spare) for i, row in enumerate(rows)]


def closures_below(model, constraints) -> set[int]:
    """The clusters in which, or below which, a constraint between two bodies closes."""
    above: set[int] = set()
    for c in constraints:
        if c.to is not None:
            k = meeting(model, locate(model, c.frame.body)[0], locate(model, c.to.body)[0])
            while k is not None:
                above.add(k)
                k = model.clusters[k].parent
    return above
