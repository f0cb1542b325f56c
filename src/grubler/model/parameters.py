"""Numbers of a model as inputs: the same compiled code for every mass, payload or gear ratio.

| name    | shape    | meaning                                                      |
|---------|----------|--------------------------------------------------------------|
| gravity | (3,)     | m/s², world axes                                             |
| mass    | (nb,)    | kg, in body order                                            |
| com     | (nb, 3)  | centre of mass in body axes, m                               |
| inertia | (nb, 6)  | ixx, ixy, ixz, iyy, iyz, izz about the centre of mass, kg m² |
| ratio   | (nr,)    | ratios of all linear couplings, in the order of `ratio_names`|
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.symbolic import is_symbolic
from ..arguments import is_numbers, public, shown
from ..errors import InputError, ModelError, unknown
from ..mechanism.loops import LinearCoupling
from . import Model

NAMES = ("gravity", "mass", "com", "inertia", "ratio")


@public
def parameter_values(model: Model, name: str) -> np.ndarray:
    """The model's own values of a parameter, in the shape that compiled code takes: numbers, or
    symbols where `with_parameters` has put them."""
    if name == "gravity":
        return _stacked(list(model.gravity))
    if name == "mass":
        return _stacked([body.mass for body in model.bodies])
    if name == "com":
        return _stacked([body.com for body in model.bodies])
    if name == "inertia":
        rows, columns = np.triu_indices(3)
        upper = list(zip(rows.tolist(), columns.tolist(), strict=True))
        return _stacked([_stacked([body.inertia[ij] for ij in upper]) for body in model.bodies])
    if name == "ratio":
        return _stacked([r for loop in _couplings(model) for r in loop.ratios])
    raise InputError(unknown("parameter", name, NAMES))


def _stacked(values: list[Any]):
    return np.stack(values) if is_symbolic(*values) else np.array(values)


def ratio_names(model: Model) -> tuple[str, ...]:
    """Which ratio is which: 'coupling: dependent/leader'."""
    return tuple(
        f"{loop.name}: {loop.outputs[0].joint.name}/{body.joint.name}"
        for loop in _couplings(model)
        for body in loop.inputs
    )


@public
def with_parameters(model: Model, values: dict[Any, Any]) -> Model:
    """The same mechanism with other numbers, floats or symbols; its clusters stay as they are."""
    values = {name: _checked(model, name, x) for name, x in values.items()}
    bodies = model.bodies
    if {"mass", "com", "inertia"} & set(values):
        bodies = tuple(_body(body, values) for body in bodies)
    clusters, loops = model.clusters, model.loops
    if "ratio" in values:
        renewed = _renewed(model, values["ratio"])
        clusters = tuple(_cluster(cluster, renewed) for cluster in clusters)
        loops = tuple(renewed.get(id(loop), loop) for loop in loops)
    new = replace(
        model, gravity=values.get("gravity", model.gravity), bodies=bodies, clusters=clusters,
        loops=loops,
    )  # fmt: skip
    if is_symbolic(*values.values()):
        new.__dict__["nominal"] = model.nominal
    return new


def _checked(model: Model, name: str, x):
    """A parameter's values in the shape that they have in the model, finite."""
    shape = parameter_values(model, name).shape
    if not is_symbolic(x):
        if not is_numbers(x):
            raise InputError(f"{name} is {shown(x)}: give finite real numbers, shape {shape}")
        x = np.asarray(x, dtype=float)
    if x.shape != shape:
        raise InputError(f"{name} has shape {x.shape}, expected {shape}")
    return x


def _couplings(model: Model) -> list[LinearCoupling]:
    return [loop for loop in model.loops if isinstance(loop, LinearCoupling)]


def _body(body, values: dict[Any, Any]):
    i = body.index
    changes = {}
    if "mass" in values:
        changes["mass"] = values["mass"][i]
    if "com" in values:
        changes["com"] = values["com"][i]
    if "inertia" in values:
        x = values["inertia"][i]
        changes["inertia"] = np.stack(
            [
                np.stack([x[0], x[1], x[2]]),
                np.stack([x[1], x[3], x[4]]),
                np.stack([x[2], x[4], x[5]]),
            ]
        )
    new = replace(body, **changes)
    # Another mass leaves a body symmetric about its axis; another com or inertia may not.
    kept = body.symmetric_about_joint and set(changes) <= {"mass"}
    new.__dict__["symmetric_about_joint"] = kept
    return new


def _renewed(model: Model, ratios) -> dict[Any, Any]:
    """New linear couplings by the identity of the old ones."""
    renewed, start = {}, 0
    for loop in _couplings(model):
        stop = start + len(loop.inputs)
        renewed[id(loop)] = replace(loop, ratios=ratios[start:stop])
        start = stop
    return renewed


def _cluster(cluster, renewed: dict[Any, Any]):
    joint = cluster.embedding
    steps = getattr(joint, "steps", ())
    solved = [step.name for step in steps if isinstance(step, LinearCoupling)]
    if any(id(step) not in renewed for step in steps if isinstance(step, LinearCoupling)):
        raise ModelError(
            f"the ratios of {', '.join(solved)} cannot be parameters: they are solved for "
            "other joints than they name; couple the dependent joint to the independent one"
        )
    loops = tuple(renewed.get(id(loop), loop) for loop in cluster.loops)
    changes = {"loops": loops}
    if steps:
        changes["steps"] = tuple(renewed.get(id(step), step) for step in steps)
    return replace(cluster, loops=loops, embedding=replace(joint, **changes))
