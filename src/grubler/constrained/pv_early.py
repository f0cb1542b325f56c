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

Near a singular posture of a limb the joint barely moves the row that it takes. The row then adds a
very large reflected inertia D / |K S|² to H, and the elimination loses as many digits as that is
larger than the other inertias. Where an estimate of the loss is too large (accuracy.py), one step
of iterative refinement brings the digits back. Where the correction of that step is not small, at
the singular posture itself and where rows depend on each other, which no joint takes (Remarks 8 and
9), all rows are carried to the world, as in PV, and met there in the sense of least squares. In
compiled code these are branches, the second inside the first.

Where rows determine the motion of all joints from the world on, those of an arm of six whose hand
is welded, no inertia is carried across them: accelerations come from the rows, and the multipliers
from the forces that these take.

Next to a fixed base few rows are left, and few joints to carry them across. Compiled code carries
them there as in PV where that is quicker (`NEAR`), and a humanoid's arm hanging straight, whose
shoulder does not move its row, is no singular posture then. Or it eliminates all joints of a short
arm at once, in joint space (at_once.py).

Without any row there is nothing to resolve. PV is C-ABA then, and an arm of a few joints is quicker
by factorizing its mass matrix: compiled code takes the quicker of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.symbolic import is_symbolic
from ..algorithms import FORWARD, forward_dynamics
from ..algorithms.first_pass import parent_of
from ..compiled.problem import quickest
from ..compiler import estimate_cycles, otherwise
from .accuracy import EXACT, Early, accurate, close, corrected
from .at_once import at_once
from .closing import Closing
from .pv import carried_to_base
from .recursion import cross_joint, prepared, roll_out
from .reflection import Row
from .resolve import Resolved, resolve, space_of
from .rows import gathered
from .structure import POSTURES, carried_at, levers, short_arm, told

if TYPE_CHECKING:
    from ..algorithms.first_pass import ClusterState
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Wanted

OFTEN = 0.5  # refining always takes less time where fewer states than this part do without
HEAVIEST = 1e8  # times the least mass that rows feel of joints; from 1e16 on, it is rounding error
NEAR = (0, 3, 4)  # coordinates on a fixed base at which rows may be carried


def pv_early(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
    regular: bool = False,
) -> Any:
    """(a, multipliers).

    `regular=True` leaves out the branches: smaller code, and lost digits or NaN at singular
    postures and for redundant rows.
    """
    if not constraints:
        method = quickest(forward_dynamics, model.nominal) if is_symbolic(q) else "c_aba"
        return FORWARD[method](model, q, v, tau, f_ext), np.zeros(0)
    ready = prepared(model, q, v, constraints, f_ext, desired)
    near = quickest_near(model.nominal, constraints) if is_symbolic(q) else 0
    early = resolved_early(model, ready, tau, constraints, near)
    if regular or not early.masses:
        return together(early, ready, constraints)
    way, heaviest = suited(model.nominal, constraints, near)
    if way == "carry":
        return carried_to_base(ready, tau, redundant="always")
    bounded = early.mass <= heaviest

    def refined():
        better, change = refined_early(model, ready, tau, constraints, near, early)
        both = np.concatenate(together(better, ready, constraints))
        return otherwise(np.logical_and(bounded, close(change, better)), both, carried)

    def carried():
        return np.concatenate(carried_to_base(ready, tau, redundant="always"))

    if way == "refine":
        both = refined()
    else:
        both = np.concatenate(together(early, ready, constraints))
        both = otherwise(np.logical_and(bounded, accurate(model, early)), both, refined)
    return both[: model.nv], both[model.nv :]


def together(early: Early, ready: Any, constraints: Sequence[Checked]) -> Any:
    """(a, multipliers in the order of the constraints)."""
    return early.a, gathered(ready[3], early.multipliers, sum(c.m for c in constraints))


def refined_early(
    model: Model, ready: Any, tau: Array, constraints: Sequence[Checked], near: Any, early: Early
) -> tuple[Early, Early]:
    """The solution after one step of iterative refinement, and its change in that step."""
    change = resolved_early(model, *corrected(ready, tau, early), constraints, near)
    return early + change, change


@lru_cache(maxsize=256)
def quickest_near(model: Model, constraints: Sequence[Checked]) -> int | None:
    """Of `NEAR`, and of all joints at once (None), what is estimated to take a CPU the fewest
    cycles."""
    different = {carried_at(model, constraints, near): near for near in reversed(NEAR)}
    ways = [*different.values(), *([None] if short_arm(model, constraints) else [])]

    def cycles(near: int | None) -> float:
        def fn(q, v, tau):
            ready = prepared(model, q, v, constraints)
            return together(
                resolved_early(model, ready, tau, constraints, near), ready, constraints
            )

        return estimate_cycles(fn, [model.nq, model.nv, model.nv])

    return min(ways, key=cycles) if len(ways) > 1 else 0


@lru_cache(maxsize=256)
def suited(model: Model, constraints: Sequence[Checked], near: int | None) -> tuple[str, float]:
    """What suits a robot, judged by some random postures: to resolve rows early and "check", to
    "refine" always where that is needed often, or to "carry" all rows always; and the most that
    rows may feel of joints."""
    resolvable, enough, masses = [], [], []
    for seed in range(POSTURES):
        q, v = model.random_state(seed)
        ready, tau = prepared(model, q, v, constraints), np.zeros(model.nv)
        with np.errstate(all="ignore"):
            early = resolved_early(model, ready, tau, constraints, near)
            better, change = refined_early(model, ready, tau, constraints, near, early)
            masses.append(early.mass)
            resolvable.append(close(change, better) and early.mass < np.inf)
            enough.append(accurate(model, early) and close(change, better, EXACT))
    if np.mean(resolvable) < 0.5:
        return "carry", 0.0
    way = "check" if np.mean(enough) > OFTEN else "refine"
    return way, HEAVIEST * 10.0 ** np.ceil(np.log10(np.nanmin(masses)))


def resolved_early(
    model: Model, ready: Any, tau: Array, constraints: Sequence[Checked], near: Any
) -> Early:
    """The solution without regard to the posture. near=None: all joints at once."""
    if near is None:
        return at_once(model, ready, tau, constraints)
    states, H, p, rows = ready[0], list(ready[1]), list(ready[2]), ready[3]
    known, late = levers(model.nominal, constraints), carried_at(model.nominal, constraints, near)
    carried, waiting = Closing(model, rows, late, near > 0), direct_rows(rows, H, p)
    kinematic = told(model.nominal, constraints, near)
    crossings, taken, masses = {}, {}, []
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        H[k], p[k] = carried.close(k, H[k], p[k])
        here = [row for _, rows_ in waiting.get(k, []) for row in rows_]
        tau_k = tau[state.cluster.v]
        if here and k in late:
            taken[k] = carried.take(k, here)
            here = []
        if here:
            lever = [known.get((k, j)) for j in range(state.cluster.nv)]
            moves = [x is not None and x.moves for x in lever]
            done, Ha, pa = resolve(
                space_of(state), H[k], p[k], tau_k, here, carried, moves, k in kinematic
            )
            masses += [(k, c.mass) for c in done.coordinates if c.reflection]
            if done.rows and up is None:
                masses.append((k, np.inf))  # more rows than freedom
            elif done.rows:
                waiting.setdefault(up, []).append((("cluster", k), done.rows))
        else:
            done, Ha, pa = cross_joint(state, H[k], p[k], tau_k)
            carried.cross(state, done, carried.at(k))
        crossings[k] = done
        if up is not None and k not in kinematic:
            H[up], p[up] = H[up] + Ha, p[up] + pa
    carried.close_at_world()
    inertias = {k: (H[k], p[k]) for k in kinematic}
    a, acc, multipliers = rolled_out(states, rows, crossings, waiting, carried, taken, inertias)
    masses += [(None, mass) for mass in carried.masses]
    return Early(a, multipliers, acc, masses)


def direct_rows(rows: Any, H: Any, p: Any) -> dict[Any, Any]:
    """Rows in one cluster, by cluster, as (source, rows); soft ones stiffen it at once (52)."""
    waiting: dict[Any, Any] = {}
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


def rolled_out(
    states: list[ClusterState],
    rows: Any,
    crossings: Any,
    waiting: Any,
    carried: Any,
    taken: Any,
    inertias: Any,
) -> Any:
    """Accelerations from the base outward, of joints and of clusters, and then the multipliers
    (62), (64), by block.

    `inertias` are H and p of the clusters that are told, without those that hang on them so.
    """
    acc, out, forces, slots = [], [], {}, {}
    for state in states:
        k = state.cluster.index
        a_parent = parent_of(acc, state.cluster, np.zeros(6))
        if isinstance(crossings[k], Resolved):
            qdd, a, forces[k] = crossings[k].roll_out(a_parent, carried.multipliers)
        else:
            qdd, a = roll_out(state, crossings[k], a_parent, carried.drive(k))
        carried.open(k, a)
        out.append(qdd)
        acc.append(a)
    forces |= forces_inward(states, crossings, inertias, acc, out)
    for state in states:
        k = state.cluster.index
        if isinstance(crossings[k], Resolved):
            passed = slots.get(("cluster", k), [0.0] * len(crossings[k].rows))
            found = crossings[k].multipliers(forces[k], passed)
        else:
            found = list(carried.multipliers[taken[k]]) if k in taken else []
        for source, came in waiting.get(k, []):
            slots[source], found = found[: len(came)], found[len(came) :]
    multipliers = []
    for b, block in enumerate(rows):
        if b in carried.multipliers:
            multipliers.append(carried.multipliers[b])
        elif block.R is None:
            multipliers.append(np.stack(slots["rows", b]))
        else:
            ((k, F),) = block.ends.items()
            multipliers.append(-(F.T @ acc[k] + block.l) / block.R)
    return np.concatenate(out), acc, multipliers


def forces_inward(
    states: list[ClusterState], crossings: Any, inertias: Any, acc: Any, out: Any
) -> dict[Any, Any]:
    """The forces that rows withstand, of the clusters that are told: inverse dynamics of these."""
    forces, below = {}, {}
    for state in reversed(states):
        k, up = state.cluster.index, state.cluster.parent
        if k in inertias:
            H, p = inertias[k]
            f = H @ acc[k] + p
            f = f + below[k] if k in below else f
            forces[k], force = crossings[k].balance(f, out[k])
            below[up] = below[up] + force if up in below else force
    return forces
