"""Branches of linkages: the ways in which loops close at the same independent coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import public
from ..coordinates import assembly
from ..coordinates.limits import clipped, excess, unwound
from ..errors import InputError
from ..mechanism.layout import Layout
from ..mechanism.parts import Body, frozen
from ..tolerances import OPEN_LOOP
from . import Model, as_position, as_vector
from .clusters import Cluster

if TYPE_CHECKING:
    from ..typing import ArrayLike

TRIES = 60  # random guesses of the dependent joints of one cluster


@public
def assemblies(
    model: Model, q: ArrayLike | None = None, *, limits: bool = True, tries: int = TRIES
) -> dict[str, list[Any]]:
    """All assemblies found at the independent coordinates of q, by the name of a loop.

    The keys are the first loop of each cluster that is closed implicitly. A value is a list of
    configurations (nq,): q itself (default: neutral), then those with that cluster assembled in
    another way, the nearest first. With `limits`, only those in which every joint of the cluster is
    within its limits. They are looked for from `tries` seeded random guesses: a list may be short
    of one that is hard to find. `grubler.with_reference` makes one the model's own.

    A cluster in closed form has one assembly, its branch; `numeric(model)` has them all.
    """
    if not isinstance(tries, (int, np.integer)) or isinstance(tries, bool) or tries < 1:
        raise InputError(f"tries is {tries!r}: give a whole number, at least 1")
    if not isinstance(limits, (bool, np.bool_)):
        raise InputError(f"limits is {limits!r}: give True or False")
    q = model.neutral() if q is None else as_vector("q", q, model.nq, model.q_names)
    positions = _closed_positions(model, q)
    found = {}
    for cluster in model.clusters:
        if cluster.embedding.implicit:
            local = {i: positions[i] for i in cluster.bodies}
            ways = _ways(cluster, local, limits, tries)
            found[cluster.loops[0].name] = [model.pack(positions | way) for way in ways]
    return found


def _closed_positions(model: Model, q: np.ndarray) -> dict[int, np.ndarray]:
    """Joint positions at q, quaternions of unit length; refuses a q at which a loop is open."""
    with np.errstate(invalid="ignore"):
        positions = {i: as_position(model.bodies[i], x) for i, x in model.unpack(q).items()}
    for cluster in model.clusters:
        assembly.check_closed(cluster.loops, positions)
    return positions


def _ways(
    cluster: Cluster, start: dict[Any, Any], limits: bool, tries: int
) -> list[dict[Any, Any]]:
    joint = cluster.embedding
    held = list(joint.independent)
    rng = np.random.default_rng(3)
    ways = [start]
    for _ in range(tries):
        guess = _random_guess(joint.bodies, start, held, rng)
        if limits:
            guess = clipped(joint.bodies, guess, _held_bodies(joint))
        positions, gap = assembly.newton(joint.bodies, cluster.loops, guess, held, limits)
        if not gap < OPEN_LOOP or not all(l.on_branch(positions) for l in cluster.loops):
            continue
        positions = unwound(joint.bodies, cluster.loops, positions)
        if limits and excess(joint.bodies, positions).keys() - excess(joint.bodies, start).keys():
            continue
        if not any(assembly.same_pose(joint.bodies, positions, way) for way in ways):
            ways.append(positions)
    return [start, *sorted(ways[1:], key=lambda way: _distance(joint.bodies, start, way))]


def _held_bodies(joint) -> set[int]:
    """Bodies all of whose coordinates are independent."""
    return {
        i
        for i, columns in joint.columns.items()
        if set(range(joint.nv_span)[columns]) <= set(joint.independent)
    }


def _random_guess(
    bodies: Sequence[Body], start: dict[Any, Any], held: list[int], rng
) -> dict[Any, Any]:
    """Dependent joints anywhere: hinges within a full turn, sliders between their limits or about
    a metre away, balls in any orientation."""
    step = []
    for body in bodies:
        low, high = body.joint.limits
        if body.joint.is_hinge:
            step.append(rng.uniform(-np.pi, np.pi, 1))
        elif np.isfinite(high - low):
            step.append(rng.uniform(low, high, 1) - start[body.index])
        else:
            step.append(rng.standard_normal(body.joint.nv) * np.pi / 2)
    step = np.concatenate(step)
    step[held] = 0.0
    return Layout(bodies).integrate(start, step)


def _distance(bodies: Sequence[Body], a: dict[Any, Any], b: dict[Any, Any]) -> float:
    moves = [body.joint.motion.difference(a[body.index], b[body.index]) for body in bodies]
    return float(np.linalg.norm(np.concatenate(moves)))


@public
def with_reference(model: Model, q: ArrayLike) -> Model:
    """The same model with q as its neutral configuration, near which random states, assembly and
    `analytic` stay: the way to choose a branch. q must be closed."""
    q = as_vector("q", q, model.nq, model.q_names)
    positions = _closed_positions(model, q)
    return replace(model, reference={i: frozen(x) for i, x in positions.items()})


__all__ = ["assemblies", "with_reference"]
