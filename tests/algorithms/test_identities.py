"""The heavy test: every robot, twenty states each, every method against an independent one."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative, states
from grubler.algorithms.kinematics import kinematics as bodies_motion
from grubler.algorithms.spanning import loop_constraints

EXACT = ("projection", "lagrange", "mass_matrix")


def end_frames(model):
    """A few frames spread over the robot."""
    names = [f.name for f in model.frames if f.body >= 0] + [b.name for b in model.bodies]
    return [names[i] for i in sorted({0, len(names) // 2, len(names) - 1})]


def test_forward_dynamics_agrees_with_projection_and_multipliers(model):
    for q, v, tau in states(model):
        a = gb.forward_dynamics(model, q, v, tau)
        for method in EXACT:
            other = gb.forward_dynamics(model, q, v, tau, method=method)
            assert relative(other, a) < 1e-9, method


def test_inverse_dynamics_undoes_forward_dynamics(model):
    for q, v, tau in states(model):
        a = gb.forward_dynamics(model, q, v, tau)
        scale = np.abs(tau).max() + np.abs(gb.bias_force(model, q, v)).max()
        for method in ("c_rnea", "projected"):
            back = gb.inverse_dynamics(model, q, v, a, method=method)
            assert np.abs(back - tau).max() < 1e-9 * scale, method


def test_mass_matrix_is_symmetric_definite_and_the_projected_one(model):
    for q, _, _ in states(model):
        M = gb.mass_matrix(model, q)
        assert np.array_equal(M, M.T)
        assert np.linalg.eigvalsh(M).min() > 0
        assert relative(M, gb.mass_matrix(model, q, method="projected")) < 1e-11


def test_equation_of_motion_is_affine_in_acceleration(model):
    """M a + bias = tau ties CRBA and RNEA together."""
    for q, v, a in states(model, 5):
        tau = gb.inverse_dynamics(model, q, v, a)
        parts = gb.mass_matrix(model, q) @ a + gb.bias_force(model, q, v)
        assert np.abs(tau - parts).max() < 1e-11 * (1 + np.abs(tau).max())


def test_inverse_osim_agrees_with_the_dense_one(model):
    frames = end_frames(model)
    for q, _, _ in states(model):
        omega = gb.inverse_osim(model, q, frames)
        assert relative(gb.inverse_osim(model, q, frames, method="projected"), omega) < 1e-10
        J = np.concatenate([gb.frame_jacobian(model, q, f) for f in frames])
        dense = J @ np.linalg.solve(gb.mass_matrix(model, q), J.T)
        assert relative(dense, omega) < 1e-9
        some = gb.inverse_osim(model, q, [(f, (3, 5)) for f in frames])
        rows = [6 * i + r for i in range(len(frames)) for r in (3, 5)]
        assert relative(some, omega[np.ix_(rows, rows)]) < 1e-12


def test_spanning_acceleration_satisfies_the_loops(model):
    for q, v, tau in states(model):
        a = gb.forward_dynamics(model, q, v, tau)
        span = gb.spanning_state(model, q, v, a)
        K, k = loop_constraints(model, q, v)
        if len(k):
            scale = 1 + np.abs(span.accelerations).max()
            assert np.abs(K @ span.velocities).max() < 1e-10 * (1 + np.abs(span.velocities).max())
            assert np.abs(K @ span.accelerations - k).max() < 1e-10 * scale


def test_energy_rate_equals_power(model):
    """d(kinetic + potential)/dt = tau . v, by extrapolated central differences along the motion."""
    for q, v, tau in states(model):
        a = gb.forward_dynamics(model, q, v, tau)
        span = gb.spanning_state(model, q, v, a)
        rate = np.abs(span.velocities).max() + np.sqrt(np.abs(span.accelerations).max())
        h = 1e-3 / rate

        def energy_at(t, q=q, v=v, a=a):
            return sum(gb.energy(model, model.integrate(q, v + a * t / 2, t), v + a * t))

        coarse, fine = ((energy_at(t) - energy_at(-t)) / (2 * t) for t in (h, h / 2))
        scale = np.abs(tau * v).sum() + rate * gb.energy(model, q, v).kinetic
        assert abs((4 * fine - coarse) / 3 - tau @ v) < 1e-8 * scale


def test_external_forces_are_work_on_the_jacobian(model):
    """f_ext on a body shifts tau by J' f, for forward and inverse dynamics."""
    rng = np.random.default_rng(0)
    for q, v, tau in states(model, 3):
        forces = {b.name: rng.uniform(-1, 1, 6) for b in model.bodies}
        shift = sum(gb.frame_jacobian(model, q, n).T @ f for n, f in forces.items())
        a = gb.forward_dynamics(model, q, v, tau, forces)
        direct = gb.forward_dynamics(model, q, v, tau + shift)
        assert relative(a, direct) < 1e-10
        for method in EXACT:
            other = gb.forward_dynamics(model, q, v, tau, forces, method=method)
            assert relative(other, a) < 1e-9
        array = np.stack([forces[b.name] for b in model.bodies])
        tau_f = gb.inverse_dynamics(model, q, v, tau, forces)
        assert np.abs(tau_f - gb.inverse_dynamics(model, q, v, tau, array)).max() < 1e-12
        assert relative(tau_f, gb.inverse_dynamics(model, q, v, tau) - shift) < 1e-10


def test_kinematics_jacobian_and_bias_agree(model):
    for q, v, a in states(model, 3):
        motion = gb.kinematics(model, q, v, a)
        for body in model.bodies:
            J = gb.frame_jacobian(model, q, body.name)
            bias = gb.frame_acceleration_bias(model, q, v, body.name)
            scale = 1 + np.abs(motion.acceleration[body.index]).max()
            assert np.abs(J @ v - motion.velocity[body.index]).max() < 1e-11 * scale
            assert np.abs(J @ a + bias - motion.acceleration[body.index]).max() < 1e-11 * scale


def test_jacobian_is_the_derivative_of_the_pose(model):
    h = 1e-6
    q, v, _ = next(iter(states(model, 1)))
    before, after = (gb.kinematics(model, model.integrate(q, v, t)) for t in (-h, h))
    here = bodies_motion(model, q, v)
    for i in range(len(model.bodies)):
        linear = (after.position[i] - before.position[i]) / (2 * h)
        spin = (after.rotation[i] - before.rotation[i]) / (2 * h) @ here.rotation[i].T
        w = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        R = here.rotation[i]
        assert np.abs(R @ here.velocity[i][3:] - linear).max() < 1e-6
        assert np.abs(R @ here.velocity[i][:3] - w).max() < 1e-5


def test_centroidal_momentum_is_the_sum_over_bodies(model):
    for q, v, _ in states(model, 3):
        motion, c = gb.kinematics(model, q, v), gb.centroidal(model, q, v)
        momentum = np.zeros(6)
        for body in model.bodies:
            i = body.index
            h = body.spatial @ motion.velocity[i]
            R = motion.rotation[i]
            linear = R @ h[3:]
            moment = R @ h[:3] + np.cross(motion.position[i] - c.com, linear)
            momentum += np.concatenate([moment, linear])
        assert np.abs(c.momentum - momentum).max() < 1e-11 * (1 + np.abs(momentum).max())
        assert np.abs(c.matrix @ v - c.momentum).max() < 1e-12 * (1 + np.abs(momentum).max())


@pytest.mark.parametrize("method", ["approximate", "unconstrained"])
def test_approximations_are_exact_without_loops(method):
    for name in ("arm7", "quadruped", "joint_sampler"):
        model = load(name)
        for q, v, tau in states(model, 2):
            a = gb.forward_dynamics(model, q, v, tau)
            assert relative(gb.forward_dynamics(model, q, v, tau, method=method), a) < 1e-12
            assert relative(gb.inverse_dynamics(model, q, v, a, method=method), tau) < 1e-9


def test_approximate_methods_agree_with_each_other():
    """Approximate ABA, RNEA and EFPA share one model: each must invert the other."""
    for name in ("mini_cheetah", "mit_humanoid", "tello_explicit", "jvrc1"):
        model = load(name)
        for q, v, tau in states(model, 2):
            a = gb.forward_dynamics(model, q, v, tau, method="approximate")
            back = gb.inverse_dynamics(model, q, v, a, method="approximate")
            assert np.abs(back - tau).max() < 1e-9 * (1 + np.abs(gb.bias_force(model, q, v)).max())
            exact = gb.forward_dynamics(model, q, v, tau)
            assert relative(a, exact) > 1e-6  # it is an approximation


def test_tello_implicit_and_closed_form_agree():
    implicit, explicit = load("tello"), load("tello_explicit")
    rng = np.random.default_rng(3)
    for seed in range(10):
        q_x, v_x = explicit.random_state(seed)
        span = gb.spanning_state(explicit, q_x, v_x)
        names = [explicit.bodies[i].joint for i in explicit.spanning_order]
        positions, velocities, at_q, at_v = {}, {}, 0, 0
        for joint in names:
            positions[joint.name] = span.positions[at_q : at_q + joint.nq]
            velocities[joint.name] = span.velocities[at_v : at_v + joint.nv]
            at_q, at_v = at_q + joint.nq, at_v + joint.nv
        q_i, v_i = gb.from_spanning(implicit, positions, velocities)
        torques = {n: rng.uniform(-3, 3) for n in implicit.v_names if ":" not in n}
        acc = []
        for model, q, v in ((implicit, q_i, v_i), (explicit, q_x, v_x)):
            tau = gb.generalized_force(model, q, torques)
            a = gb.forward_dynamics(model, q, v, tau)
            acc.append(gb.spanning_state(model, q, v, a).accelerations)
        assert implicit.spanning_names == explicit.spanning_names
        assert relative(acc[0], acc[1]) < 1e-9
