"""Real descriptions beside the repository, and what tests of formats compare by."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import grubler as gb
from grubler.algorithms.spanning import loop_constraints
from grubler.formats import FormatWarning, load
from grubler.model.derived import spanning_tree

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"


def path(name: str) -> Path:
    """A file of ../shared/models, or a skipped test."""
    found = MODELS / name
    if not found.exists():
        pytest.skip(f"no {name}: ../shared/models is not beside the repository")
    return found


def quiet(source, **options) -> gb.Model:
    """A model without the warnings about what its file says beyond the dynamics."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        return load(source, **options)


@cache
def shared(name: str, base: str | None = None) -> gb.Model:
    return quiet(path(name), base=base)


def error(actual, expected) -> float:
    """The largest difference over the largest expected entry."""
    scale = np.abs(expected).max(initial=0.0)
    return float(np.abs(np.asarray(actual) - expected).max(initial=0.0) / (scale or 1.0))


def saddle_point(model: gb.Model, q, v, tau) -> np.ndarray:
    """Accelerations by Lagrange multipliers, spanning masses of zero allowed (dense)."""
    tree, G = spanning_tree(model), gb.spanning_map(model, q)[0]
    span = gb.spanning_state(model, q).positions
    H = gb.mass_matrix(tree, span)
    c = gb.bias_force(tree, span, G @ v)
    K, k = loop_constraints(model, q, v)
    columns = [model.spanning_names.index(n) for n in model.v_names]
    force = np.zeros(model.nv_span)
    force[columns] = tau
    A = np.block([[H, -K.T], [K, np.zeros((len(K), len(K)))]])
    return np.linalg.solve(A, np.concatenate([force - c, k]))[columns]


def labels(model: gb.Model, by_body: bool) -> list[str]:
    """Names of the spanning velocities, under the name of the joint or of its body."""
    found = []
    for i in model.spanning_order:
        body = model.bodies[i]
        given = body.joint.names(body.joint.motion.labels)
        tails = [name[len(body.joint.name) :] for name in given]
        found += [(body.name if by_body else body.joint.name) + tail for tail in tails]
    return found


def same_dynamics(a: gb.Model, b: gb.Model, seed: int, by_body: bool = False) -> float:
    """The largest relative difference of all joint accelerations under torques on all joints."""
    q, v = a.random_state(seed)
    names_a, names_b = labels(a, by_body), labels(b, by_body)
    assert sorted(names_a) == sorted(names_b)
    force = np.random.default_rng(seed).uniform(-1, 1, a.nv_span)
    expected = _accelerations(a, q, v, force)
    order = [names_a.index(n) for n in names_b]
    velocity = gb.spanning_state(a, q, v).velocities[order]
    q_b = b.pack(_positions(a, q, b, by_body))
    v_b = velocity[[b.spanning_names.index(n) for n in b.v_names]]
    return error(_accelerations(b, q_b, v_b, force[order]), expected[order])


def _accelerations(model: gb.Model, q, v, force):
    a = gb.forward_dynamics(model, q, v, gb.generalized_force(model, q, force))
    return gb.spanning_state(model, q, v, a).accelerations


def _positions(a: gb.Model, q, b: gb.Model, by_body: bool) -> dict:
    """Joint positions of a, for the joints of b; joints of several freedoms may be split in b."""
    found = {}
    for body in a.bodies:
        x, name = a.unpack(q)[body.index], body.name if by_body else body.joint.name
        parts = {name: x}
        if not by_body and name not in {j.name for j in b.joints}:
            given = body.joint.names(body.joint.motion.position_labels)
            parts = {n: x[i : i + 1] for i, n in enumerate(given)}
        for n, value in parts.items():
            found[(b.body(n) if by_body else b.body_of_joint(n)).index] = value
    return found
