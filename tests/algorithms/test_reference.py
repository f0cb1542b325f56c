"""The fast algorithms against the papers' own, on every robot and on random mechanisms."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import grubler as gb
from conftest import load, relative, states
from grubler.algorithms.reference import c_aba, c_efpa, c_rnea, pv_osim
from mechanisms import mobile

SLOW = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def forces(model, seed=0):
    rng = np.random.default_rng(seed)
    return {body.name: rng.uniform(-3, 3, 6) for body in model.bodies[::2]}


def check_dynamics(model, count):
    for q, v, tau in states(model, count):
        f_ext = forces(model)
        a = c_aba.forward_dynamics(model, q, v, tau, f_ext)
        assert relative(gb.forward_dynamics(model, q, v, tau, f_ext), a) < 1e-9
        expected = c_rnea.inverse_dynamics(model, q, v, a, f_ext)
        scale = np.abs(tau).max() + np.abs(gb.bias_force(model, q, v)).max()
        assert np.abs(expected - tau).max() < 1e-9 * scale
        found = gb.inverse_dynamics(model, q, v, a, f_ext)
        assert np.abs(found - expected).max() < 1e-11 * scale


def check_inertias(model, count):
    names = [body.name for body in model.bodies]
    frames = [names[-1], (names[len(names) // 2], (5, 0)), names[0]]
    for q, _, _ in states(model, count):
        expected = c_efpa.inverse_osim(model, q, frames)
        assert relative(pv_osim.inverse_osim(model, q, frames), expected) < 1e-9
        for method in ("c_efpa", "pv_osim", "kjr", "ltl_osim"):
            found = gb.inverse_osim(model, q, frames, method=method)
            assert relative(found, expected) < 1e-9, method


def test_forward_and_inverse_dynamics_are_those_of_the_paper(model):
    check_dynamics(model, 4)


def test_inverse_inertias_of_frames_are_those_of_the_papers(model):
    check_inertias(model, 2)


@given(model=mobile())
@settings(max_examples=40, **SLOW)
def test_random_mechanisms(model):
    check_dynamics(model, 1)
    check_inertias(model, 1)


def test_what_cannot_be_meant_is_an_error():
    model = load("four_bar")
    q, v, tau = next(states(model))
    with pytest.raises(gb.InputError, match="q has shape"):
        c_aba.forward_dynamics(model, q[1:], v, tau)
    with pytest.raises(gb.ClosureError):
        c_rnea.inverse_dynamics(model, q + 0.1, v, tau)
    with pytest.raises(gb.ModelError, match="no body named 'wing'"):
        c_rnea.inverse_dynamics(model, q, v, tau, {"wing": np.zeros(6)})
