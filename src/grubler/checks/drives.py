"""Actuators against mobility, and the inertia that each of them feels over the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..algorithms.c_crba import c_crba
from ..control.actuation import actuator_blocks, actuator_inertia, actuator_map, unactuated
from ..coordinates.partition import pivots, rank
from ..errors import ModelError
from ..model import Model
from ..model.derived import independent_tree


@dataclass(frozen=True)
class Drive:
    """One actuator, with the inertia that it feels, the others held (kg m² or kg, at the motor).

    `exact` at the reference, `least` and `most` over the samples; `armature` is what the tree of
    independent joints with a constant armature gives at the reference and `armature_error` its
    worst relative error (None where there is no such tree).
    """

    name: str
    joint: str
    gear: float
    dependent: bool
    exact: float
    least: float
    most: float
    armature: float | None
    armature_error: float | None

    @property
    def variation(self) -> float:
        return self.most / self.least if self.least > 0 else float("inf")


@dataclass(frozen=True)
class Drives:
    """`status` is "none", "fully", "under" or "over" actuated, or "both" under and over;
    `unactuated` names the coordinates that no actuator moves, `missing` those of them that are
    neither a free body's nor moved by an idle freedom."""

    status: str
    count: int
    independent: int
    mobility: int
    unactuated: tuple[str, ...]
    missing: tuple[str, ...]
    actuators: tuple[Drive, ...] = field(default=())


def drives(model: Model, configurations: Sequence[np.ndarray], idle: Sequence[Any] = ()) -> Drives:
    """All actuators; the first configuration is the reference. `idle` are the idle freedoms at the
    second one (`idle_freedoms`), or at the first if it is alone."""
    if not model.actuators:
        return Drives("none", 0, 0, model.nv, model.v_names, ())
    independent = sum(len(block.full) for block in actuator_blocks(model))
    under, over = independent < model.nv, len(model.actuators) > independent
    status = {(0, 0): "fully", (1, 0): "under", (0, 1): "over", (1, 1): "both"}[under, over]
    exact = np.array([np.diag(actuator_inertia(model, q)) for q in configurations])
    rough = _with_armature(model, configurations)
    columns = _dependent_joints(model)
    out = []
    for i, actuator in enumerate(model.actuators):
        mine = exact[:, i]
        armature = error = None
        if rough is not None:
            armature = float(rough[0, i])
            error = float(np.max(np.abs(rough[:, i] - mine) / np.abs(mine)))
        out.append(
            Drive(
                actuator.name, model.bodies[actuator.joint].joint.name, actuator.gear,
                actuator.joint in columns, float(mine[0]), float(mine.min()), float(mine.max()),
                armature, error,
            )
        )  # fmt: skip
    return Drives(
        status, len(model.actuators), independent, model.nv, tuple(unactuated(model)),
        tuple(_missing(model, configurations[min(1, len(configurations) - 1)], idle)), tuple(out),
    )  # fmt: skip


def _missing(model: Model, q: np.ndarray, idle: Sequence[Any]) -> list[str]:
    """Unactuated coordinates without those of free bodies, which external forces move, and without
    one for each idle freedom, whose motion says which it may be."""
    J = actuator_map(model, q)
    J = J / max(np.abs(J).max(), 1e-300)
    driven = {block.cluster: block for block in actuator_blocks(model)}
    names = []
    for cluster in model.clusters:
        if not cluster.loops and any(b.joint.kind == "free" for b in cluster.embedding.bodies):
            continue
        block = driven.get(cluster.index)
        rows = [J[i, cluster.v] for i in block.actuators] if block else []
        spins = [z / np.linalg.norm(z) for _, index, z in idle if index == cluster.index]
        own = list(block.full) if block else []
        left = [i for i in range(cluster.nv) if i not in own]
        if spins:
            A = np.stack([*rows, *spins])
            moved = pivots(A, rank(A), [own, left], prefer_last=False)
            left = [i for i in left if i not in moved]
        names += [model.v_names[cluster.v.start + i] for i in left]
    return names


def _dependent_joints(model: Model) -> set[int]:
    """Bodies whose joints are solved for."""
    return {
        body.index
        for cluster in model.clusters
        for body in cluster.embedding.bodies
        if not set(range(cluster.embedding.nv_span)[cluster.embedding.columns[body.index]])
        & set(cluster.embedding.independent)
    }


def _with_armature(model: Model, configurations) -> np.ndarray | None:
    """The same inertias with the mass matrix of the independent tree and its constant armature."""
    try:
        tree = independent_tree(model)
    except ModelError:
        return None
    out = []
    for q in configurations:
        M = c_crba(tree.model, q[tree.select]) + np.diag(tree.armature)
        J = actuator_map(model, q)
        with np.errstate(all="ignore"):
            try:
                seen = J @ np.linalg.solve(M, J.T)
            except np.linalg.LinAlgError:
                return None
        out.append(np.diag(np.linalg.pinv(seen, rcond=1e-10, hermitian=True)))
    return np.array(out)
