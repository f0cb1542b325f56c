"""Coriolis matrix, inverse inertia, gravity, frames and the centre of mass, on every robot."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative, states

AXES = ("local", "world", "world_aligned")


def rate(model, q, v, a, fn):
    """dfn/dt along the motion with acceleration a, by extrapolated central differences."""

    def at(t):
        return fn(gb.integrate(model, q, t * v + 0.5 * t * t * a), v + t * a)

    def central(h):
        return (at(h) - at(-h)) / (2 * h)

    coarse, middle, fine = (central(4e-3), central(2e-3), central(1e-3))
    once = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * once[1] - once[0]) / 15


def tips(model):
    names = model.frame_names
    return [names[i] for i in sorted({0, len(names) // 2, len(names) - 1})]


def test_coriolis_matrix(model):
    """C v is the force at a = 0 without gravity, and dM/dt - 2 C is skew-symmetric: dM/dt exactly,
    by automatic differentiation."""
    slope = gb.casadi_function(gb.mass_matrix, model).jacobian()
    for q, v, _ in states(model, 10):
        C = gb.coriolis_matrix(model, q, v)
        bias = gb.bias_force(model, q, v) - gb.gravity_force(model, q)
        # a parallelogram's C is zero to rounding
        size = max(np.abs(C).max(), np.abs(gb.mass_matrix(model, q)).max() * np.abs(v).max())
        assert np.abs(C @ v - bias).max() < 1e-12 * (size + np.abs(bias).max())
        dM = np.array(slope(q, 0)) @ (gb.tangent_map(model, q) @ v)
        N = dM.reshape(model.nv, model.nv) - 2 * C
        assert np.abs(N + N.T).max() < 1e-12 * size


def test_coriolis_matrix_is_linear_in_velocity(model):
    for q, v, _ in states(model, 3):
        w = np.random.default_rng(0).uniform(-1, 1, model.nv)
        C, D, E = (gb.coriolis_matrix(model, q, x) for x in (v, w, 0.5 * v - 2.0 * w))
        assert np.abs(0.5 * C - 2.0 * D - E).max() < 1e-12 * (1 + np.abs(E).max())


def test_inverse_of_the_mass_matrix(model):
    """Columns are what forward dynamics makes of unit forces."""
    for q, _, _ in states(model, 3):
        inverse, rest = gb.mass_matrix_inverse(model, q), np.zeros(model.nv)
        assert np.array_equal(inverse, inverse.T)
        hold = gb.gravity_force(model, q)
        units = np.eye(model.nv)
        found = [gb.forward_dynamics(model, q, rest, hold + unit) for unit in units]
        assert relative(np.stack(found, axis=1), inverse) < 1e-10


def test_gravity_force_is_the_slope_of_the_potential(model):

    def potential(model, q):
        return gb.energy(model, q, np.zeros(model.nv)).potential

    slope = gb.casadi_function(potential, model).jacobian()
    for q, _, _ in states(model, 5):
        known = np.array(slope(q, 0)).ravel() @ gb.tangent_map(model, q)
        force = gb.gravity_force(model, q)
        assert np.abs(force - known).max() < 1e-11 * (1 + np.abs(force).max())


@pytest.mark.parametrize("axes", AXES)
def test_frames(model, axes):
    """J v, J a + dJ/dt v, and the derivatives by time of pose and velocity."""
    for (q, v, a), frame in zip(states(model, 3), tips(model)):
        velocity = gb.frame_velocity(model, q, v, frame, axes=axes)
        acceleration = gb.frame_acceleration(model, q, v, a, frame, axes=axes)
        J = gb.frame_jacobian(model, q, frame, axes=axes)
        drift = gb.frame_acceleration_bias(model, q, v, frame, axes=axes)
        size = 1 + np.abs(acceleration).max()
        assert np.abs(J @ v - velocity).max() < 1e-12 * size
        assert np.abs(J @ a + drift - acceleration).max() < 1e-12 * size
        found = rate(
            model, q, v, a, lambda q, v, f=frame: gb.frame_velocity(model, q, v, f, axes=axes)
        )
        assert np.abs(found - acceleration).max() < 1e-7 * size
        if axes == "world_aligned":
            found = rate(model, q, v, a, lambda q, v, f=frame: gb.frame_pose(model, q, f)[1])
            assert np.abs(found - velocity[3:]).max() < 1e-8 * size


def test_centre_of_mass(model):
    for q, v, a in states(model, 3):
        whole = gb.centroidal(model, q, v)
        assert np.array_equal(gb.com(model, q), whole.com)
        velocity = gb.com_velocity(model, q, v)
        assert np.abs(velocity * model.mass - whole.momentum[3:]).max() < 1e-11 * model.mass
        assert np.abs(gb.com_jacobian(model, q) @ v - velocity).max() < 1e-12
        found = rate(model, q, v, a, lambda q, v: gb.com(model, q))
        assert np.abs(found - velocity).max() < 1e-8 * (1 + np.abs(velocity).max())
        found = rate(model, q, v, a, lambda q, v: gb.com_velocity(model, q, v))
        acceleration = gb.com_acceleration(model, q, v, a)
        assert np.abs(found - acceleration).max() < 1e-7 * (1 + np.abs(acceleration).max())


def test_momentum_of_a_floating_robot():
    """Without forces from outside, the rate of its momentum is its weight."""
    model = load("mini_cheetah")
    for q, v, tau in states(model, 5):
        tau[:6] = 0.0
        a = gb.forward_dynamics(model, q, v, tau)
        assert np.abs(gb.com_acceleration(model, q, v, a) - model.gravity).max() < 1e-10


@pytest.mark.parametrize("name", ["mini_cheetah", "tello", "joint_sampler", "loop_sampler"])
def test_compiled(name):
    model = load(name)
    (q, v, a), *_ = states(model, 1)
    frame = model.frame_names[-1]
    for fn, arguments, options in (
        (gb.coriolis_matrix, (q, v), {}),
        (gb.mass_matrix_inverse, (q,), {}),
        (gb.gravity_force, (q,), {}),
        (gb.com, (q,), {}),
        (gb.com_velocity, (q, v), {}),
        (gb.com_acceleration, (q, v, a), {}),
        (gb.com_jacobian, (q,), {}),
        (gb.frame_velocity, (q, v), {"frame": frame, "axes": "world"}),
        (gb.frame_acceleration, (q, v, a), {"frame": frame, "axes": "world_aligned"}),
        (gb.frame_jacobian, (q,), {"frame": frame, "axes": "world"}),
    ):
        compiled = gb.compile(fn, model, **options)
        expected = fn(model, *arguments, **options)
        assert relative(compiled(*arguments), expected) < 1e-11, fn.__name__
        batch = compiled(*(np.stack([x] * 3) for x in arguments))
        assert all(relative(row, expected) < 1e-11 for row in batch), fn.__name__


def test_what_a_model_has():
    model = load("mini_cheetah")
    assert model.mass == pytest.approx(sum(body.mass for body in model.bodies))
    assert model.lower.shape == model.upper.shape == (model.nq,)
    assert np.all(np.isinf(model.lower[:7]))
    with pytest.raises(ValueError, match="read-only"):
        model.lower[0] = 0.0
    for name in model.frame_names:
        assert model.frame(name).name == name
    limited = load("four_bar")
    for i, name in enumerate(limited.q_names):
        assert (limited.lower[i], limited.upper[i]) == limited.joint(name).limits


def test_wrong_arguments():
    model = load("four_bar")
    q, v = model.random_state(0)
    frame = model.frame_names[0]
    with pytest.raises(gb.InputError, match="did you mean 'world'"):
        gb.frame_jacobian(model, q, frame, axes="wrld")
    with pytest.raises(gb.InputError, match="known: local, world, world_aligned"):
        gb.frame_velocity(model, q, v, frame, axes=3)
    with pytest.raises(gb.ModelError, match="no frame named 'crnk': did you mean 'crank'"):
        gb.frame_velocity(model, q, v, "crnk")
    with pytest.raises(gb.InputError, match=r"v has shape \(2,\)"):
        gb.coriolis_matrix(model, q, np.zeros(2))
    b = gb.ModelBuilder("nothing")
    b.add_body("ghost", 0.0, (0, 0, 0), (0, 0, 0, 0, 0, 0))
    b.add_joint("j", "revolute", "world", "ghost")
    ghost = b.build()
    with pytest.raises(gb.ModelError, match="no moving mass"):
        gb.com(ghost, np.zeros(1))
    with pytest.raises(gb.ModelError, match="singular: coordinate 'j'"):
        gb.mass_matrix_inverse(ghost, np.zeros(1))
