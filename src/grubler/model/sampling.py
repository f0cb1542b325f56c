"""Random assembled states, one by one or as a batch through compiled code.

From a start near the reference, the independent joints of each cluster move by a random step, in a
few pieces so that the dependent ones follow on the branch of the reference. Where the loops cannot
follow, the partition comes near a singularity, or a joint leaves its limits, that cluster takes a
shorter step, or one the other way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..algebra.linalg import joined, solve_general, stacked
from ..compiler import compile_function, iterate
from ..coordinates import assembly
from ..coordinates.limits import clipped, excess, further_out
from ..coordinates.newton import equations, largest_entry, newton_step, reversal
from ..errors import ClosureError, InputError
from ..mechanism.parts import Body
from ..tolerances import LIMIT_SLACK, OPEN_LOOP, SAMPLED, SAMPLED_CONDITION
from . import Model
from .clusters import Cluster
from .fingerprint import fingerprint

# Factors of a step, tried one after the other until one is usable; then the start is taken.
# Where the start stands at a limit, half of the steps lead out of it: those are turned round.
FACTORS = (1, 1/2, 1/4, 1/8, -1/2, -1/4, -1/8, *(0.5 ** n for n in range(4, 12)))  # fmt: skip
MARGIN = 0.1  # share of a joint's range: the start keeps this far from its limits, if it can
PIECES = 4
LEAP = 1.0  # rad or m a piece: dependent joints that would move further are near a dead point
STEPS = 20  # Newton steps a piece


def random_state(model: Model, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(q, v), as `Model.random_state` describes it."""
    step, v = _draw(model, rng, None)
    positions = dict(_start(model))
    for cluster in model.clusters:
        positions |= _random_cluster(cluster, positions, step[cluster.span])
    return model.pack(positions), v


@lru_cache(maxsize=64)
def _start(model: Model) -> dict[Any, Any]:
    """Where random steps start, by body index: the reference, away from limits in a closed loop.

    Next to its limits a linkage can move in few directions, and most random steps would fail.
    """
    positions = dict(model.reference)
    for cluster in model.clusters:
        bodies = [_narrowed(body) for body in cluster.embedding.bodies]
        local = {i: positions[i] for i in cluster.bodies}
        if not cluster.embedding.implicit or not excess(bodies, local):
            continue
        moved = assembly.close(bodies, cluster.loops, clipped(bodies, local), restarts=0)
        if _usable(cluster.embedding, local, moved):
            positions |= moved
    return positions


def _narrowed(body: Body) -> Body:
    """The body with limits of its joint that leave a margin to the true ones."""
    low, high = body.joint.limits
    if not np.isfinite(high - low):
        return body
    margin = MARGIN * (high - low)
    return replace(body, joint=replace(body.joint, lower=low + margin, upper=high - margin))


def _draw(model: Model, rng: np.random.Generator, n: int | None):
    """Random steps of the spanning velocities from the start (zero for dependent ones) and
    random velocities, of one state or of n."""
    bodies = [model.bodies[i] for i in model.spanning_order]
    ranges = [_range(body, _start(model)[body.index]) for body in bodies]
    low, high = (np.concatenate([np.zeros(0), *(r[k] for r in ranges)]) for k in (0, 1))
    ones = np.ones(model.nv)
    low, high = np.concatenate([low, -ones]), np.concatenate([high, ones])
    drawn = rng.uniform(low, high, None if n is None else (n, len(low)))
    independent = joined(
        [np.isin(range(c.embedding.nv_span), c.embedding.independent) for c in model.clusters]
    )
    return drawn[..., : model.nv_span] * independent, drawn[..., model.nv_span :]


def _range(body: Body, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The range of a joint's random step: between its limits, half a turn or metre each way at
    most, or one radian or metre each way where it has none."""
    n, (low, high) = body.joint.nv, body.joint.limits
    if not np.isfinite([low, high]).any():
        return -np.ones(n), np.ones(n)
    at = float(position[0])
    if not np.isfinite(high - low):
        low, high = max(low, at - 1.0), min(high, at + 1.0)
    elif max(low, -np.pi) < min(high, np.pi):
        low, high = max(low, -np.pi), min(high, np.pi)
    return np.array([low - at]), np.array([max(low, high) - at])


def _random_cluster(cluster: Cluster, begin: dict[Any, Any], step: np.ndarray) -> dict[Any, Any]:
    """Positions of a cluster's joints after a step from the start, or a shorter one."""
    joint = cluster.embedding
    start = {i: begin[i] for i in cluster.bodies}
    for factor in FACTORS:
        positions = start
        try:
            for _ in range(PIECES):
                own = step * (factor / PIECES)
                if joint.implicit and joint.nv:
                    own = _along(joint, positions, own)
                positions = joint.spanning.integrate(positions, own)
                if joint.implicit:
                    positions = assembly.close(
                        joint.bodies, cluster.loops, positions, joint.independent, 0, limits=False
                    )
        except ClosureError:
            continue
        if not joint.implicit:
            q = np.concatenate([positions[body.index] for body in joint.coordinates])
            with np.errstate(invalid="ignore"):
                positions = joint.positions(q)
        if _usable(joint, start, positions):
            return positions
    return start


def _along(joint, positions, step):
    """A step of all joints of an implicit cluster from that of its independent ones (floats and
    symbols): along the tangent, which keeps to the branch, unless a dependent joint would leap."""
    own = np.stack([step[c] for c in joint.independent])
    K = joint.constraint(positions, None)[0][list(joint.kept)]
    with np.errstate(all="ignore"):
        pulled = K[:, list(joint.independent)] @ own
        follow = -solve_general(K[:, list(joint.dependent)], pulled, joint.order)
        tangent = joint._scatter(follow, own)
        return np.where(largest_entry(tangent) < LEAP, tangent, step)


def _usable(joint, start: dict[Any, Any], positions: dict[Any, Any]) -> bool:
    """Within reach of the loops, within limits, and in the same aspect as the start: no singularity
    of the partition lies between, where branches meet."""
    if not all(np.all(np.isfinite(x)) for x in positions.values()):
        return False
    if further_out(joint.bodies, start, positions):
        return False
    if not joint.implicit:
        return True
    Kd = _pivots(joint, positions)
    return bool(_regular(Kd[None], _side(joint, start))[0])


def _pivots(joint, positions):
    """K_d of an implicit cluster (floats and symbols)."""
    K = joint.constraint(positions, None)[0][list(joint.kept)]
    return K[:, list(joint.dependent)]


def _side(joint, start: dict[Any, Any]) -> float:
    """The sign of det K_d: it changes where assemblies of a linkage meet."""
    return np.linalg.slogdet(_pivots(joint, start))[0]


def _regular(Kd: np.ndarray, side: float) -> np.ndarray:
    """Which of a stack of matrices K_d are well conditioned and on the given side."""
    finite = np.isfinite(Kd).all(axis=(1, 2))
    Kd = np.where(finite[:, None, None], Kd, 0.0)
    return finite & (np.linalg.cond(Kd) < SAMPLED_CONDITION) & (np.linalg.slogdet(Kd)[0] == side)


def random_states(model: Model, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) of n states, as `Model.random_states` describes it."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 0:
        raise InputError(f"the number of random states is {n!r}: give a whole number, at least 0")
    step, v = _draw(model, rng, int(n))
    q = np.tile(model.pack(_start(model)), (n, 1))
    watched = _watched(model)
    sizes = [c.embedding.nv_span for c in model.clusters]
    left = np.ones((n, len(model.clusters)), dtype=bool)  # clusters that still need a shorter step
    sample = _compiled(model)
    for factor in FACTORS:
        rows = np.flatnonzero(left.any(axis=1))
        if not len(rows):
            break
        scale = np.repeat(left[rows] * factor, sizes, axis=1)
        found, gaps, values, *pivots = sample(step[rows] * scale)
        good = _good(model, gaps, values, pivots, watched) & left[rows]
        for cluster in model.clusters:
            taken = rows[good[:, cluster.index]]
            q[taken, cluster.q] = found[good[:, cluster.index], cluster.q]
        left[rows] &= ~good
    return q, v


def _watched(model: Model) -> list[tuple[int, Body]]:
    """Joints with limits, each with its cluster, in the order of the sample's values."""
    return [
        (cluster.index, body)
        for cluster in model.clusters
        for body in cluster.embedding.bodies
        if np.isfinite(body.joint.limits).any()
    ]


def _good(model: Model, gaps, values, pivots, watched) -> np.ndarray:
    """Which clusters of which states are usable, (n, clusters); the batch's `_usable`."""
    good = gaps <= OPEN_LOOP  # NaN is not
    for (cluster, body), x in zip(watched, values.T[1:], strict=True):
        beyond = _further_out(body, _start(model)[body.index][0], x)
        good[:, cluster] &= ~beyond
    implicit = [c for c in model.clusters if c.embedding.implicit and c.nv]
    for cluster, Kd in zip(implicit, pivots, strict=True):
        side = _side(cluster.embedding, {i: _start(model)[i] for i in cluster.bodies})
        good[:, cluster.index] &= _regular(Kd, side)
    return good


def _further_out(body: Body, start: float, x: np.ndarray) -> np.ndarray:
    """Whether positions of one joint are beyond its limits, and further than its start."""
    low, high = body.joint.limits
    allowed = max(low - start, start - high, 0.0)
    return ~(np.maximum(low - x, x - high) <= allowed + LIMIT_SLACK)


@lru_cache(maxsize=32)
def _compiled(model: Model):
    def sample(step):
        return _sample(model, step)

    return compile_function(
        sample, [(model.nv_span,)], names=["step"], name="random_states",
        key=fingerprint(_sample, model),
    )  # fmt: skip


def _sample(model: Model, step):
    """q after a step from the start, each cluster's gap, the positions of joints with limits,
    and K_d of each implicit cluster (traced)."""
    q, gaps, values, pivots = [], [], [0.0], []
    watched = _watched(model)
    for cluster in model.clusters:
        joint, own = cluster.embedding, step[cluster.span]
        at = [np.array(_start(model)[body.index]) for body in joint.coordinates]
        if joint.implicit and joint.nv:
            x = np.concatenate([*at, np.zeros(1)])
            x = iterate(lambda x, s, joint=joint: _piece(joint, x, s), x, own * (1 / PIECES),
                        count=PIECES)  # fmt: skip
            positions, gap = joint.positions(x[:-1]), x[-1]
            pivots.append(_pivots(joint, positions))
        else:
            moved = joint.split(own)
            bodies = zip(joint.coordinates, at, strict=True)
            x = [b.joint.motion.integrate(x, moved[b.index]) for b, x in bodies]
            positions, gap = joint.positions(np.concatenate(x)), 0.0
            if joint.loops and not joint.always_closed:
                gap = _gap(joint, positions, equations(joint.loops, positions))
        q += [positions[body.index] for body in joint.coordinates]
        gaps.append(gap)
        values += [positions[body.index][0] for c, body in watched if c == cluster.index]
    return joined(q), stacked(gaps, (0,)), np.stack(values), *pivots


def _piece(joint, x, step):
    """Positions of an implicit cluster, and the largest gap so far, a piece of the way further."""
    positions = joint.positions(x[:-1])
    moved = joint.spanning.integrate(positions, _along(joint, positions, step))
    moved = joint.spanning.stack(moved)
    closed, left, _ = iterate(
        lambda x: newton_step(joint, x), moved, count=STEPS, tolerance=SAMPLED
    )
    gap = np.maximum(x[-1], _gap(joint, joint.positions(closed), left))
    return np.concatenate([closed, np.stack([gap])])


def _gap(joint, positions, phi):
    """The largest of a cluster's equations, beyond their slack; π where one is closed reversed."""
    slack = np.concatenate([np.broadcast_to(loop.slack, loop.rows) for loop in joint.loops])
    gap = largest_entry(np.maximum(np.abs(phi) - slack, 0.0))
    return np.maximum(gap, reversal(joint.loops, positions))
