"""Derivatives of inverse and forward dynamics against independent ones, on every robot."""

import numpy as np
import pytest
from differences import by_q, by_vector, tangent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grubler as gb
from conftest import load, relative, states
from grubler.algebra.symbolic import Derivative, trace
from mechanisms import mobile

EXACT = 1e-12


def by_projection(model):
    """The derivatives of Gᵀ RNEA(spanning tree), found by differentiating its expressions."""
    nb = len(model.bodies)

    def tau(q, v, a, f):
        return (gb.inverse_dynamics(model, q, v, a, _rows(f, nb), method="projected"),)

    return Derivative(tau, (model.nq, model.nv, model.nv, 6 * nb), wrt=3)


def _rows(f, nb):
    return np.stack([f[6 * i : 6 * i + 6] for i in range(nb)])


def test_inverse_dynamics_equals_the_differentiated_projection(model):
    known, nb = by_projection(model), len(model.bodies)
    for q, v, a in states(model):
        f = np.random.default_rng(int(1e3 * abs(a[0]))).normal(size=(nb, 6))
        ((by_q, by_v, M),) = known(q, v, a, f.ravel())
        ours = gb.inverse_dynamics_derivatives(model, q, v, a, f)
        force = np.abs(gb.inverse_dynamics(model, q, v, a, f)).max(initial=0.0)
        for got, want in zip(ours, (by_q @ tangent(model, q), by_v, M), strict=True):
            # a parallelogram has no ∂tau/∂v at all
            size = max(np.abs(want).max(initial=0.0), 0.1 * force)
            assert np.abs(got - want).max(initial=0.0) <= EXACT * size


def test_forward_dynamics_is_the_inverse_of_it(model):
    f = np.random.default_rng(0).normal(size=(len(model.bodies), 6))
    for q, v, tau in states(model):
        a = gb.forward_dynamics(model, q, v, tau, f)
        dq, dv, M = gb.inverse_dynamics_derivatives(model, q, v, a, f)
        da_dq, da_dv, inverse = gb.forward_dynamics_derivatives(model, q, v, tau, f)
        eps = EXACT * max(1.0, np.linalg.cond(M) * 1e-3)
        assert relative(inverse, np.linalg.inv(M)) < eps
        assert np.array_equal(inverse, inverse.T)
        for got, rows in ((da_dq, dq), (da_dv, dv)):
            size = max(np.abs(got).max(initial=0.0), np.abs(a).max(initial=0.0))
            assert np.abs(got + np.linalg.solve(M, rows)).max(initial=0.0) <= eps * size


@given(model=mobile(), seed=st.integers(0, 100))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_random_mechanisms_against_differences(model, seed):
    q, v = model.random_state(seed)
    tau = np.random.default_rng(seed).uniform(-1, 1, model.nv)
    known = by_projection(model)
    a = gb.forward_dynamics(model, q, v, tau)
    ((by_q, by_v, M),) = known(q, v, a, np.zeros(6 * len(model.bodies)))
    ours = gb.inverse_dynamics_derivatives(model, q, v, a)
    force = np.abs(by_q).max() + np.abs(by_v).max() + np.abs(M @ a).max()
    for got, want in zip(ours, (by_q @ tangent(model, q), by_v, M), strict=True):
        assert np.abs(got - want).max() < 1e-11 * force


@pytest.mark.parametrize("name", ["four_bar", "six_bar", "planar_leg_linkage", "joint_sampler",
                                  "tello", "tello_explicit", "mini_cheetah"])  # fmt: skip
def test_forward_dynamics_against_differences(name):
    model = load(name)
    q, v = model.random_state(4)
    tau = np.random.default_rng(4).uniform(-5, 5, model.nv)
    v = v / 4
    da_dq, da_dv, _ = gb.forward_dynamics_derivatives(model, q, v, tau)
    known = by_q(model, lambda q: gb.forward_dynamics(model, q, v, tau), q)
    assert relative(da_dq, known) < 1e-7
    assert relative(da_dv, by_vector(lambda v: gb.forward_dynamics(model, q, v, tau), v)) < 1e-7


@pytest.mark.parametrize("name", ["mini_cheetah", "tello", "four_bar", "loop_sampler", "arm7"])
def test_traced_and_compiled_agree(name):
    model = load(name)
    q, v = model.random_state(2)
    tau = np.linspace(-1, 1, model.nv)
    f = np.linspace(0, 1, 6 * len(model.bodies)).reshape(-1, 6)
    want = gb.forward_dynamics_derivatives(model, q, v, tau, f)
    fn = gb.compile(gb.forward_dynamics_derivatives, model, inputs=["q", "v", "tau", "f_ext"])
    for got, expected in zip(fn(q, v, tau, f), want, strict=True):
        assert relative(got, expected) < 1e-11
    traced = trace(
        lambda q, v, a: gb.inverse_dynamics_derivatives(model, q, v, a),
        [q.shape, v.shape, v.shape],
    )(q, v, tau)
    for got, expected in zip(traced, gb.inverse_dynamics_derivatives(model, q, v, tau)):
        assert relative(np.array(got), expected) < 1e-11


def test_parameters_come_with_the_call():
    """Masses, ratios and gravity as inputs of the compiled derivatives."""
    model = load("mini_cheetah")
    q, v = model.random_state(1)
    tau = np.linspace(-1, 1, model.nv)
    names = ["gravity", "mass", "ratio"]
    values = [1.1 * gb.parameter_values(model, name) for name in names]
    fn = gb.compile(gb.forward_dynamics_derivatives, model, parameters=names)
    changed = gb.with_parameters(model, dict(zip(names, values)))
    for got, want in zip(
        fn(q, v, tau, *values), gb.forward_dynamics_derivatives(changed, q, v, tau), strict=True
    ):
        assert relative(got, want) < 1e-11


def test_a_free_base_with_armature():
    """Armature is inertia that gravity does not pull at: no column of the base is trivial then."""
    b = gb.ModelBuilder("armed")
    b.add_body("base", mass=2.0, com=(0.1, 0, 0.05), inertia=(0.1, 0, 0, 0.2, 0, 0.3))
    b.add_joint("root", "free", "world", "base", armature=0.3)
    b.add_body("link", mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0, 0, 0.02, 0, 0.03))
    b.add_joint("hinge", "revolute", "base", "link", axis=(0, 1, 0), xyz=(0.3, 0, 0))
    model = b.build()
    q, v = model.random_state(1)
    tau = np.linspace(-1, 1, model.nv)
    da_dq, da_dv, _ = gb.forward_dynamics_derivatives(model, q, v, tau)
    known = by_q(model, lambda q: gb.forward_dynamics(model, q, v, tau), q)
    assert relative(da_dq, known) < 1e-8
    assert relative(da_dv, by_vector(lambda v: gb.forward_dynamics(model, q, v, tau), v)) < 1e-8


def test_a_robot_without_freedom_has_empty_derivatives():
    b = gb.ModelBuilder("block")
    b.add_body("block", mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
    b.add_joint("fixed", "fixed", "world", "block")
    model = b.build()
    for out in (
        gb.inverse_dynamics_derivatives(model, [], [], []),
        gb.forward_dynamics_derivatives(model, [], [], []),
    ):
        assert all(x.shape == (0, 0) for x in out)


def test_a_singular_mass_matrix_is_refused():
    b = gb.ModelBuilder("light")
    b.add_body("link", mass=0.0, com=(0, 0, 0), inertia=np.zeros((3, 3)))
    b.add_joint("hinge", "revolute", "world", "link", axis=(0, 0, 1))
    with pytest.raises(gb.ModelError, match="moves no inertia"):
        gb.forward_dynamics_derivatives(b.build(), [0.0], [0.0], [1.0])
