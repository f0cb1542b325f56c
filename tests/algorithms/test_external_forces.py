"""External forces on bodies, in the frames that the dynamics lays: against virtual work."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler import compiler
from grubler.constrained import Constraint, constrained_forward_dynamics


def forces_on_all(model, seed=0):
    return np.random.default_rng(seed).uniform(-3, 3, (len(model.bodies), 6))


def by_virtual_work(model, q, forces):
    """Σ Jᵀ f: what forces on bodies are on the coordinates, by the kinematics alone."""
    jacobians = [gb.frame_jacobian(model, q, body.name) for body in model.bodies]
    return sum(J.T @ f for J, f in zip(jacobians, forces, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_forces_on_all_bodies_do_the_work_of_their_motions(model, seed):
    """Rotors among them, which the dynamics knows by their spin alone."""
    q, v = model.random_state(seed)
    a = np.random.default_rng(seed).uniform(-2, 2, model.nv)
    forces = forces_on_all(model, seed)
    tau = by_virtual_work(model, q, forces)
    free = gb.inverse_dynamics(model, q, v, a)
    assert relative(gb.inverse_dynamics(model, q, v, a, forces), free - tau) < 1e-12
    assert relative(gb.forward_dynamics(model, q, v, free - tau, forces), a) < 1e-8
    for method in ("projection", "lagrange", "mass_matrix"):
        found = gb.forward_dynamics(model, q, v, free - tau, forces, method=method)
        assert relative(found, a) < 1e-8


@pytest.mark.parametrize("robot", ["mini_cheetah", "robot_a", "arm7", "tello"])
def test_a_force_on_one_body_is_a_row_of_the_array(robot):
    model = load(robot)
    q, v = model.random_state(0)
    a = np.zeros(model.nv)
    for body in model.bodies:
        force = np.array([0.5, -1.0, 2.0, 3.0, -0.7, 0.2])
        array = np.zeros((len(model.bodies), 6))
        array[body.index] = force
        one = gb.inverse_dynamics(model, q, v, a, {body.name: force})
        assert relative(one, gb.inverse_dynamics(model, q, v, a, array)) < 1e-12


@pytest.mark.parametrize("robot", ["mini_cheetah", "robot_b", "loop_sampler"])
def test_compiled_forces_are_those_of_numpy(robot):
    model = load(robot)
    q, v = model.random_state(1)
    tau, forces = np.linspace(-1, 1, model.nv), forces_on_all(model)

    def fn(q, v, tau, f_ext):
        return gb.forward_dynamics(model, q, v, tau, f_ext)

    tape = compiler.trace(fn, [model.nq, model.nv, model.nv, forces.shape])
    found = compiler.evaluate(tape, q, v, tau, forces)[0]
    assert relative(found, gb.forward_dynamics(model, q, v, tau, forces)) < 1e-10


def test_forces_beside_constraints():
    model = load("mini_cheetah")
    q, v = model.random_state(2)
    forces, zero = forces_on_all(model), np.zeros(model.nv)
    feet = [Constraint(f"{leg}_foot_contact", "point") for leg in ("HR", "FL")]
    tau = by_virtual_work(model, q, forces)
    expected = constrained_forward_dynamics(model, q, v, tau, feet)
    for method in ("pv_early", "ltl", "kkt"):
        found = constrained_forward_dynamics(model, q, v, zero, feet, forces, method=method)
        assert relative(found.a, expected.a) < 1e-9
        assert relative(found.multipliers, expected.multipliers) < 1e-9


@pytest.mark.parametrize(
    "robot, most", [("arm7", 6), ("humanoid", 8), ("jvrc1", 12), ("robot_a", 21), ("robot_b", 20)]
)
def test_forces_on_all_bodies_leave_the_dynamics_its_few_numbers(robot, most):
    """A force costs its change of frame and its sum; `most` operations a body."""
    model = load(robot)
    free = gb.count_operations(gb.forward_dynamics, model).total
    inputs = ["q", "v", "tau", "f_ext"]
    forced = gb.count_operations(gb.forward_dynamics, model, inputs=inputs).total
    assert forced < free + most * len(model.bodies)
