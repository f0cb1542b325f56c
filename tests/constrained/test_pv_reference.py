"""Constrained dynamics against Popov and Vereshchagin's solver as the paper prints it."""

import numpy as np
import pytest
from cases import CASES, hanging, state

import grubler as gb
from conftest import load, relative
from grubler.algorithms.reference import c_aba, c_rnea, pv


def forces(model, seed=0):
    rng = np.random.default_rng(seed)
    return {body.name: rng.uniform(-3, 3, 6) for body in model.bodies[::2]}


def described(model, q, v, constraints):
    """Constraints as the paper has them: K and k of the frame's spatial acceleration."""
    out = []
    for c in constraints:
        K = np.eye(6)
        if isinstance(c.rows, str):
            K = K[3:] if c.rows == "point" else K
        else:
            K = np.asarray(c.rows, dtype=float) if np.ndim(c.rows) == 2 else K[list(c.rows)]
        k = np.zeros(len(K)) if c.acceleration is None else np.asarray(c.acceleration, dtype=float)
        if isinstance(c.rows, str) and c.rows == "point":  # r'' = a + w x v
            motion = gb.frame_jacobian(model, q, c.frame) @ v
            k = k - np.cross(motion[:3], motion[3:])
        out.append((c.frame, K, k))
    return out


WITH_THE_WORLD = [
    name
    for name, (_, constraints) in CASES.items()
    if all(c.to is None and c.softness is None for c in constraints)
]


@pytest.mark.parametrize("name", WITH_THE_WORLD)
def test_constrained_dynamics_are_those_of_the_paper(name):
    robot, constraints = CASES[name]
    model = load(robot)
    for seed in range(2):
        q, v, tau = state(model, seed)
        f_ext = forces(model, seed)
        a, multipliers = pv.constrained_forward_dynamics(
            model, q, v, tau, described(model, q, v, constraints), f_ext
        )
        for method in ("pv", "pv_early", "ltl"):
            found = gb.constrained_forward_dynamics(
                model, q, v, tau, constraints, f_ext, method=method
            )
            assert relative(found.a, a) < 1e-9, method
            assert np.abs(found.multipliers - multipliers).max(initial=0.0) < 1e-9 * (
                np.abs(multipliers).max(initial=0.0) + np.abs(tau).max()
            )


def test_armature_is_felt():
    """An arm on a rail with armature, which the paper's algorithms know, too."""
    model = hanging()
    q, v, tau = state(model)
    a = c_aba.forward_dynamics(model, q, v, tau, forces(model))
    assert relative(gb.forward_dynamics(model, q, v, tau, forces(model)), a) < 1e-11
    assert relative(c_rnea.inverse_dynamics(model, q, v, a, forces(model)), tau) < 1e-11
    found = gb.constrained_forward_dynamics(model, q, v, tau, [("hand", (3, 4))])
    expected, multipliers = pv.constrained_forward_dynamics(
        model, q, v, tau, [("hand", np.eye(6)[3:5], np.zeros(2))]
    )
    assert relative(found.a, expected) < 1e-10
    assert relative(found.multipliers, multipliers) < 1e-10


def test_a_row_without_its_number_is_an_error():
    model = load("arm7")
    with pytest.raises(gb.InputError, match="k of"):
        rows = [(model.bodies[0].name, np.eye(6)[:2], 0.0)]
        pv.constrained_forward_dynamics(model, *state(model), rows)
