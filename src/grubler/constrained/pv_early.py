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

A joint that hardly moves its row, near a singular posture, has to move far for it: what the row
feels of the joint, D / |K S|², drowns the inertia H that it is added to. Where that is `HEAVY` all
rows are carried to the world, as in PV. Of more than a `FEW` only those are that are heavy
(passing.py), two of each limb; where that is not enough, and for rows that depend on each other,
which no joint takes (Remarks 8 and 9), all are again. They are met there in the sense of least
squares. Of a limb with at most two joints whose levers change, such as a leg of three, 1 / |K S|²
of both together says as much (`strained`): kinematics alone, computed before all else, so that a
straight leg costs nothing but what it needs. In compiled code these are branches, each inside the
one before: of random postures one in a hundred takes the first, up to nine with hands on short
arms, and hardly any the last.

Where rows tell the motion of all joints from the world on, those of an arm of six whose hand is
welded, no inertia is carried across them: accelerations come from the rows, and the multipliers
from the forces that these take.

Next to a fixed base few rows are left, and few joints to carry them across. Compiled code carries
them there as in PV where that is quicker (`NEAR`), and a humanoid's arm hanging straight, whose
shoulder does not move its row, is no singular posture then. Or it eliminates all joints of a short
arm at once, in joint space (at_once.py).

Without any row there is nothing to resolve. PV is C-ABA then, and an arm of a few joints is quicker
by factorizing its mass matrix: compiled code takes the quicker of the two.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import mul

import numpy as np

from ..algorithms import forward_dynamics
from ..algorithms.first_pass import parent_of
from ..compiled import quickest
from ..compiler import estimate_cycles, otherwise, precision
from ..symbolic import is_symbolic
from .at_once import at_once
from .closing import Closing
from .passing import Passing
from .pv import carried_to_base
from .recursion import cross_joint, prepared, roll_out
from .reflection import Row
from .resolve import Resolved, resolve, space_of
from .rows import gathered
from .structure import POSTURES, carried_at, levers, limbs, short_arm, told

# What a row feels of a joint, in terms of what is usual. Errors stay below it times the precision:
# 1e-10, and 4e-4 of code in single precision, whose postures count as singular the sooner.
HEAVY, LOST = 3e5, 4e-4
FEW = 9  # rows that are all carried in less time than it takes to choose among them
PASSES = 3e3  # the same where a row passes its joint: once others do, all that gain digits may
NEAR = (0, 3, 4)  # coordinates on a fixed base at which rows may be carried


def pv_early(model, q, v, tau, constraints, f_ext=None, desired=None, regular=False):
    """(a, multipliers).

    `regular=True` leaves out the branch: smaller code, and lost digits or NaN at singular postures
    and for redundant rows.
    """
    if not constraints:
        method = quickest(forward_dynamics, model.nominal) if is_symbolic(q) else "c_aba"
        return forward_dynamics(model, q, v, tau, f_ext, method=method), np.zeros(0)
    ready = prepared(model, q, v, constraints, f_ext, desired)
    near = quickest_near(model.nominal, constraints) if is_symbolic(q) else 0
    usual = None if regular else usually(model.nominal, constraints, near)
    if not regular and usual is None:
        return carried_to_base(ready, tau, redundant="always")
    a, multipliers, masses, joints = resolved_early(model, ready, tau, constraints, near)
    if regular or not masses:
        return a, multipliers
    heavy = min(HEAVY, LOST / precision())
    limits, strains = ([heavy * x for x in least] for least in usual)

    choosing = joints and sum(block.m for block in ready[3]) > FEW

    def with_passing():
        a, multipliers, light, _ = resolved_early(
            model, ready, tau, constraints, near, limits, min(1.0, PASSES / heavy)
        )
        return otherwise(light, np.concatenate([a, multipliers]), all_carried)

    def all_carried():
        redundant = "always" if choosing else "seldom"
        return np.concatenate(carried_to_base(ready, tau, redundant=redundant))

    light = within(strained(model, masses, joints), strains)
    both = np.concatenate([a, multipliers])
    both = otherwise(light, both, with_passing if choosing else all_carried)
    return both[: model.nv], both[model.nv :]


def within(masses, limits, *conditions):
    """Whether no mass is beyond its limit, and all conditions hold."""
    light = [x < y for x, y in zip(masses, limits, strict=True)]
    return reduce(np.logical_and, [*light, *conditions])


@lru_cache(maxsize=256)
def quickest_near(model, constraints) -> int | None:
    """Of `NEAR`, and of all joints at once (None), what is estimated to take a CPU the fewest
    cycles."""
    different = {carried_at(model, constraints, near): near for near in reversed(NEAR)}
    ways = [*different.values(), *([None] if short_arm(model, constraints) else [])]

    def cycles(near: int | None) -> float:
        def fn(q, v, tau):
            ready = prepared(model, q, v, constraints)
            return resolved_early(model, ready, tau, constraints, near)[:2]

        return estimate_cycles(fn, [model.nq, model.nv, model.nv])

    return min(ways, key=cycles) if len(ways) > 1 else 0


@lru_cache(maxsize=256)
def usually(model, constraints, near: int | None) -> tuple[list[float], list[float]] | None:
    """What rows feel of the joints that resolve them, and how strained limbs are, the least of some
    random postures.

    None where, at most of these, rows cannot be resolved early.
    """
    samples, strains = [], []
    for seed in range(POSTURES):
        q, v = model.random_state(seed)
        ready = prepared(model, q, v, constraints)
        with np.errstate(all="ignore"):
            _, _, masses, joints = resolved_early(
                model, ready, np.zeros(model.nv), constraints, near
            )
            strains.append(strained(model, masses, joints))
        samples.append(np.nan_to_num(np.array(masses, dtype=float), nan=np.inf, posinf=np.inf))
    usual = np.min(samples, axis=0)
    regular = [np.all(x < HEAVY * usual) for x in samples]
    return (list(usual), list(np.nanmin(strains, axis=0))) if np.mean(regular) > 0.5 else None


def strained(model, masses, joints) -> list:
    """By limb how strained it is: how far its joints have to move for their rows, all together,
    which is known before any inertia is. Of limbs of more than two such joints, in which that says
    too much, what rows feel of each; and what those between bodies do."""
    out = list(masses[len(joints) :])
    for limb in limbs(model, [at for at, _ in joints]):
        moves = [joints[i][1] for i in limb]
        short = len(limb) <= 2 and all(x is not None for x in moves)
        out += [reduce(mul, moves)] if short else [masses[i] for i in limb]
    return out


def resolved_early(model, ready, tau, constraints, near, limits=None, part=1.0):
    """(a, multipliers, what rows feel of the joints that resolve them, where that changes, and of
    rows between bodies, the joints). near=None: all joints at once. A joint is (its cluster and
    coordinate, how far it has to move for its row; None where the row does not wait for inertia).

    With limits of that, rows may pass (passing.py) from a part of them on, and the third is
    whether none that has not is beyond.
    """
    if near is None:
        return at_once(model, ready, tau, constraints)
    states, H, p, rows = ready[0], list(ready[1]), list(ready[2]), ready[3]
    known, late = levers(model.nominal, constraints), carried_at(model.nominal, constraints, near)
    carried, waiting = Closing(model, rows, late, near > 0), direct_rows(rows, H, p)
    passing = None if limits is None else Passing(carried, limits, part)
    kinematic = told(model.nominal, constraints, near)
    crossings, taken, masses, joints = {}, {}, [], []
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
            offered = places(lever, len(here), len(masses)) if passing else ()
            done, Ha, pa = resolve(
                space_of(state), H[k], p[k], tau_k, here, carried, moves, k in kinematic, passing,
                offered,
            )  # fmt: skip
            for j, (c, x) in enumerate(zip(done.coordinates, lever)):
                if c.reflection and not x.constant:
                    masses.append(c.mass)
                    joints.append(((k, j), None if k in kinematic else c.reflection.inverse))
            if done.rows and up is None:
                masses.append(np.inf)  # more rows than freedom
                joints.append(((k, None), np.inf))
            elif done.rows:
                waiting.setdefault(up, []).append((("cluster", k), done.rows))
        else:
            done, Ha, pa = cross_joint(state, H[k], p[k], tau_k)
            carried.cross(state, done, carried.at(k))
        crossings[k] = done
        if up is not None and (passing or k not in kinematic):
            H[up], p[up] = H[up] + Ha, p[up] + pa
    if passing is None:
        carried.close_at_world()
    closed = passing.close() if passing else []
    inertias = {} if passing else {k: (H[k], p[k]) for k in kinematic}
    a, multipliers = rolled_out(states, rows, crossings, waiting, carried, taken, inertias)
    found = gathered(rows, multipliers, sum(c.m for c in constraints))
    masses += carried.masses
    return a, found, masses if limits is None else within(masses, limits, *closed), joints


def places(lever, rows: int, first: int) -> list[int | None]:
    """By coordinate the place of its row's mass among all, None where none is told: as many take
    one as there are rows, and levers that are the same at all postures are long enough."""
    out: list[int | None] = []
    for x in lever:
        takes = x is not None and x.moves and rows > 0
        rows -= takes
        changing = takes and not x.constant
        out.append(first if changing else None)
        first += changing
    return out


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


def rolled_out(states, rows, crossings, waiting, carried, taken, inertias):
    """Accelerations from the base outward, and then the multipliers (62), (64).

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
            found = crossings[k].multipliers(forces[k], passed, carried.multipliers)
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
    return np.concatenate(out), multipliers


def forces_inward(states, crossings, inertias, acc, out) -> dict:
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
