"""Driving a mechanism: between its independent coordinates and its actuators.

An actuator sits on any tree joint, dependent ones included (the rods of a parallel ankle). With the
joint's row of G times the gear, J = gear * G_row, by virtual work

    actuator velocity  w = J v,   acceleration  J a + gear * g_row,   tau = J' f

for actuator efforts f. J is block diagonal over clusters, so every solve below is one cluster's.
Where actuators are redundant the efforts of least norm are taken, and where they are too few those
that come nearest: J = F C with F a full-rank choice of its columns gives the pseudo-inverse without
a decision on values,

    f = F (F'F)⁻¹ (C C')⁻¹ C tau,   C = (F'F)⁻¹ F' J.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.linalg import LDL, joined, symmetric
from ..algebra.symbolic import is_symbolic
from ..algorithms.c_crba import c_crba
from ..algorithms.c_rnea import c_rnea
from ..algorithms.checks import check_given_with_a, checked, checked_forces
from ..arguments import public
from ..coordinates.partition import pivots, rank
from ..errors import InputError, ModelError, unknown
from ..model import Model, as_vector

if TYPE_CHECKING:
    from ..typing import ArrayLike, Floats, Forces

UNMET = 1e-6  # a generalized force, relative to the largest, that no actuator can give


class ActuatorState(NamedTuple):
    """Positions, velocities and accelerations of the actuators, in the order of `model.actuators`;
    velocities and accelerations are None where v or a was not given."""

    positions: np.ndarray
    velocities: np.ndarray | None
    accelerations: np.ndarray | None


class _Block(NamedTuple):
    """The actuators of one cluster: their places in the model's list, their columns among the
    cluster's spanning velocities, their gears, and the columns F of their map J."""

    cluster: int
    actuators: tuple[int, ...]
    columns: tuple[int, ...]
    gears: tuple[float, ...]
    full: tuple[int, ...]


@lru_cache(maxsize=128)
def actuator_blocks(model: Model) -> tuple[_Block, ...]:
    """The actuators by cluster; their number of independent ones is decided here, once."""
    _check_joints(model)
    blocks = []
    for cluster in model.clusters:
        joint = cluster.embedding
        own = [i for i, actuator in enumerate(model.actuators) if actuator.joint in cluster.bodies]
        if not own:
            continue
        columns = tuple(joint.columns[model.actuators[i].joint].start for i in own)
        gears = tuple(model.actuators[i].gear for i in own)
        block = _Block(cluster.index, tuple(own), columns, gears, ())
        blocks.append(block._replace(full=_full_columns(model, block)))
    return tuple(blocks)


def _full_columns(model: Model, block: _Block) -> tuple[int, ...]:
    """Columns of J of full rank, at the reference or, where that is singular, near it."""
    cluster = model.clusters[block.cluster]
    joint, best = cluster.embedding, ()
    for seed in (None, 0, 1, 2):
        positions = {i: model.reference[i] for i in cluster.bodies}
        if seed is not None:
            positions = joint.positions(model.random_state(seed)[0][cluster.q])
        J = _rows(block, joint.velocity_map(positions, None)[0])
        if is_symbolic(J):
            return tuple(range(min(J.shape)))
        columns = pivots(J, rank(J), [list(range(joint.nv))], prefer_last=False)
        best = max(best, tuple(sorted(columns)), key=len)
        if len(best) == min(J.shape):
            break
    return best


def _check_joints(model: Model) -> None:
    if not model.actuators:
        raise ModelError(f"'{model.name}' has no actuators: add them with add_actuator")
    for actuator in model.actuators:
        joint = model.bodies[actuator.joint].joint
        if joint.nv != 1:
            raise ModelError(
                f"actuator '{actuator.name}' sits on joint '{joint.name}', a {joint.kind} joint: "
                "actuators move joints of one degree of freedom"
            )


def _rows(block: _Block, G):
    return np.stack([gear * G[c] for c, gear in zip(block.columns, block.gears, strict=True)])


def _maps(model: Model, q, v=None):
    """(block, positions, J, drift) of each cluster with actuators; drift is None without v."""
    for block in actuator_blocks(model):
        cluster = model.clusters[block.cluster]
        joint = cluster.embedding
        positions = joint.positions(q[cluster.q])
        G, _, g = joint.velocity_map(positions, None if v is None else v[cluster.v])
        drift = None
        if v is not None:
            stacked = np.concatenate([g[body.index] for body in joint.bodies])
            drift = _rows(block, stacked)
        yield block, positions, _rows(block, G), drift


def _in_order(model: Model, blocks, values):
    """Values of the blocks' actuators, in the order of the model's."""
    by_actuator = {}
    for block, x in zip(blocks, values, strict=True):
        by_actuator |= {i: x[n] for n, i in enumerate(block.actuators)}
    return np.stack([by_actuator[i] for i in range(len(model.actuators))])


@public
def actuator_map(model: Model, q: ArrayLike) -> Floats:
    """J (actuators, nv): actuator velocities J v, generalized force J' f."""
    q = checked(model, q=q)
    blocks, padded = [], []
    for block, _, J, _ in _maps(model, q):
        v = model.clusters[block.cluster].v
        n = len(block.actuators)
        blocks.append(block)
        padded.append(
            np.concatenate([np.zeros((n, v.start)), J, np.zeros((n, model.nv - v.stop))], axis=1)
        )
    return _in_order(model, blocks, padded)


@public
def actuator_state(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None
) -> ActuatorState:
    """Position, velocity (given v) and acceleration (given v and a) of every actuator, in rad or m
    of the motor: gear times the joint's."""
    q, v, a = checked(model, q=q, v=v, a=a)
    check_given_with_a(v, a)
    blocks, where, rate, acceleration = [], [], [], []
    for block, positions, J, drift in _maps(model, q, v):
        cluster = model.clusters[block.cluster]
        blocks.append(block)
        joints = [model.actuators[i].joint for i in block.actuators]
        where.append([g * positions[i][0] for i, g in zip(joints, block.gears, strict=True)])
        if v is not None:
            rate.append(J @ v[cluster.v])
        if a is not None:
            acceleration.append(J @ a[cluster.v] + drift)
    return ActuatorState(
        _in_order(model, blocks, where),
        None if v is None else _in_order(model, blocks, rate),
        None if a is None else _in_order(model, blocks, acceleration),
    )


@public
def actuator_effort(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: Forces | None = None,
    *,
    allow_unactuated: bool = False,
) -> Floats:
    """The efforts, in N m or N, that give acceleration a in state (q, v).

    Of least norm where actuators are redundant. Where a coordinate that no actuator moves needs a
    force, an InputError names it; `allow_unactuated=True` leaves that force out (least squares), as
    for a floating base that contacts will carry. External forces as in `forward_dynamics`.
    """
    q, v, a = checked(model, q=q, v=v, a=a)
    tau = c_rnea(model, q, v, a, checked_forces(model, f_ext))
    return _efforts(model, q, tau, allow_unactuated)


@public
def effort_from_force(
    model: Model, q: ArrayLike, tau: ArrayLike, *, allow_unactuated: bool = False
) -> Floats:
    """The efforts that make up a generalized force tau: inverse statics."""
    q, tau = checked(model, q=q, tau=tau)
    return _efforts(model, q, tau, allow_unactuated)


def _efforts(model: Model, q, tau, allow_unactuated: bool):
    blocks, efforts, met = [], [], {}
    for block, _, J, _ in _maps(model, q):
        local = tau[model.clusters[block.cluster].v]
        F, C = _factors(block, J)
        f = F @ LDL(symmetric(F.T @ F)).solve(LDL(symmetric(C @ C.T)).solve(C @ local))
        blocks.append(block)
        efforts.append(f)
        met[block.cluster] = J.T @ f
    if not allow_unactuated:
        _refuse_unmet(model, tau, met)
    return _in_order(model, blocks, efforts)


def _factors(block: _Block, J):
    """F and C with J = F C, F a choice of columns of J."""
    if len(block.full) == J.shape[1]:
        return J, np.eye(J.shape[1])
    F = J[:, list(block.full)]
    return F, LDL(symmetric(F.T @ F)).solve(F.T @ J)


def _refuse_unmet(model: Model, tau, met: Mapping[Any, Any]) -> None:
    names = unactuated(model)
    if is_symbolic(tau):
        if names:
            raise InputError(
                f"no actuator of '{model.name}' moves '{names[0]}', and whether it needs a force "
                "cannot be told of symbols: pass allow_unactuated=True"
            )
        return
    scale = np.abs(tau).max(initial=0.0) + 1e-9
    for cluster in model.clusters:
        left = np.abs(tau[cluster.v] - met.get(cluster.index, 0.0))
        if left.max(initial=0.0) > UNMET * scale:
            i = int(np.argmax(left))
            raise InputError(
                f"coordinate '{model.v_names[cluster.v.start + i]}' needs a force of {left[i]:.3g} "
                "that no actuator can give: give the external forces that carry it (f_ext), or "
                "pass allow_unactuated=True to leave it out"
            )


def unactuated(model: Model) -> list[str]:
    """The independent coordinates that no actuator moves, by name.

    In a cluster with fewer independent actuators than freedoms, those of its coordinates on which
    the actuators' motion does not depend; if it depends on all, those that it does not determine.
    """
    blocks = {b.cluster: b for b in actuator_blocks(model)} if model.actuators else {}
    names = []
    for cluster in model.clusters:
        own = blocks[cluster.index].full if cluster.index in blocks else ()
        missing = [i for i in range(cluster.nv) if i not in own]
        names += [model.v_names[cluster.v.start + i] for i in missing]
    return names


@public
def force_from_effort(
    model: Model, q: ArrayLike, efforts: Mapping[str, float] | ArrayLike
) -> Floats:
    """tau (nv,) of actuator efforts, an array in the order of `model.actuators` or a mapping by
    actuator name: J' f."""
    q = checked(model, q=q)
    f = _stacked(model, "efforts", efforts)
    tau = {c.index: np.zeros(c.nv) for c in model.clusters}
    for block, _, J, _ in _maps(model, q):
        tau[block.cluster] = J.T @ np.stack([f[i] for i in block.actuators])
    return joined([tau[c.index] for c in model.clusters])


@public
def motion_from_actuators(
    model: Model,
    q: ArrayLike,
    velocities: Mapping[str, float] | ArrayLike,
    accelerations: Mapping[str, float] | ArrayLike | None = None,
) -> tuple[Floats, Floats | None]:
    """(v, a) from the actuators' velocities and accelerations (a is None without them).

    Least squares where actuators are redundant; coordinates that no actuator moves stay at rest as
    far as the actuators allow (least norm).
    """
    q = checked(model, q=q)
    w = _stacked(model, "velocities", velocities)
    v = _lifted(model, q, w, None)
    if accelerations is None:
        return v, None
    return v, _lifted(model, q, _stacked(model, "accelerations", accelerations), v)


def _lifted(model: Model, q, w, v):
    out = {c.index: np.zeros(c.nv) for c in model.clusters}
    for block, _, J, drift in _maps(model, q, v):
        F, C = _factors(block, J)
        local = np.stack([w[i] for i in block.actuators])
        local = local if drift is None else local - drift
        y = LDL(symmetric(F.T @ F)).solve(F.T @ local)
        out[block.cluster] = C.T @ LDL(symmetric(C @ C.T)).solve(y)
    return joined([out[c.index] for c in model.clusters])


def _stacked(model: Model, what: str, values):
    names = [actuator.name for actuator in model.actuators]
    if isinstance(values, Mapping):
        for name in values:
            if name not in names:
                raise InputError(f"{what}: {unknown('actuator', name, names)}")
        values = [values.get(name, 0.0) for name in names]
    elif is_symbolic(values):
        return values
    return as_vector(what, values, len(names), tuple(names))


@public
def actuator_inertia(model: Model, q: ArrayLike) -> Floats:
    """The inertia matrix (actuators, actuators) that the actuators feel at q, exact.

    Half of w' Λ w is the kinetic energy of the motion with actuator velocities w in which the
    coordinates that no actuator moves are free: Λ = (J M⁻¹ J')⁻¹, and its pseudo-inverse where
    actuators are redundant. A diagonal entry is the inertia at one actuator, the others held.
    """
    q = checked(model, q=q)
    M = c_crba(model, q)
    blocks, P, lifts = [], [], []  # Λ = P W⁻¹ P', W = C M⁻¹ C'
    for block, _, J, _ in _maps(model, q):
        F, C = _factors(block, J)
        blocks.append(block)
        P.append(LDL(symmetric(F.T @ F)).solve(F.T).T)
        v = model.clusters[block.cluster].v
        n = C.shape[0]
        lifts.append(
            np.concatenate([np.zeros((n, v.start)), C, np.zeros((n, model.nv - v.stop))], axis=1)
        )
    P = _in_order(model, blocks, _padded(P))
    if P.shape[1] == model.nv:
        return symmetric(P @ M @ P.T)
    W = LDL(M[::-1, ::-1]).quadratic(np.concatenate(lifts).T[::-1])
    return LDL(W).quadratic(P.T)


def _padded(parts: list[Any]) -> list[Any]:
    """Blocks side by side, as rows of a block-diagonal matrix."""
    total, start, out = sum(p.shape[1] for p in parts), 0, []
    for p in parts:
        stop = start + p.shape[1]
        left, right = np.zeros((p.shape[0], start)), np.zeros((p.shape[0], total - stop))
        out.append(np.concatenate([left, p, right], axis=1))
        start = stop
    return out


__all__ = [
    "ActuatorState", "actuator_effort", "actuator_inertia", "actuator_map", "actuator_state",
    "effort_from_force", "force_from_effort", "motion_from_actuators", "unactuated",
]  # fmt: skip
