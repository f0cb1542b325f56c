"""Hypothesis draws mechanisms; the identities of the dynamics must hold on each."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grubler as gb
from conftest import relative
from grubler.algorithms.spanning import loop_constraints
from mechanisms import mobile


@given(model=mobile(), seed=st.integers(0, 100))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_identities(model, seed):
    q, v = model.random_state(seed)
    tau = np.random.default_rng(seed).uniform(-1, 1, model.nv)
    assert model.loop_gap(q) < 1e-11
    a = gb.forward_dynamics(model, q, v, tau)
    for method in ("projection", "lagrange", "mass_matrix"):
        assert relative(gb.forward_dynamics(model, q, v, tau, method=method), a) < 1e-9, method
    force = np.abs(tau).max() + np.abs(gb.bias_force(model, q, v)).max()
    for method in ("c_rnea", "projected"):
        back = gb.inverse_dynamics(model, q, v, a, method=method)
        assert np.abs(back - tau).max() < 1e-9 * force, method
    M = gb.mass_matrix(model, q)
    assert np.linalg.eigvalsh(M).min() > 0
    assert relative(M, gb.mass_matrix(model, q, method="projected")) < 1e-10
    K, k = loop_constraints(model, q, v)
    span = gb.spanning_state(model, q, v, a)
    if len(k):
        assert np.abs(K @ span.accelerations - k).max() < 1e-10 * (
            1 + np.abs(span.accelerations).max()
        )
    frames = [model.bodies[i].name for i in {0, len(model.bodies) - 1}]
    dense = gb.inverse_osim(model, q, frames, method="projected")
    assert relative(gb.inverse_osim(model, q, frames), dense) < 1e-9


@given(model=mobile())
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_energy_is_conserved_to_first_order(model):
    """No force, no gravity work: the energy rate along the motion vanishes."""
    q, v = model.random_state(0)
    v = v / 4
    a = gb.forward_dynamics(model, q, v, np.zeros(model.nv))
    span = gb.spanning_state(model, q, v, a)
    rate = np.abs(span.velocities).max() + np.sqrt(np.abs(span.accelerations).max())
    h = 1e-3 / rate

    def energy_at(t):
        return sum(gb.energy(model, model.integrate(q, v + a * t / 2, t), v + a * t))

    coarse, fine = ((energy_at(t) - energy_at(-t)) / (2 * t) for t in (h, h / 2))
    potential_rate = abs(v @ gb.bias_force(model, q, np.zeros(model.nv)))
    scale = rate * gb.energy(model, q, v).kinetic + potential_rate
    assert abs((4 * fine - coarse) / 3) < 1e-7 * scale
