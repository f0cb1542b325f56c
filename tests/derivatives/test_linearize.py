"""The linearization of a step against differences of the step itself."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative

CASES = {
    "four_bar": {"integrator": "rk4"},
    "mini_cheetah": {"integrator": "semi_implicit"},
    "joint_sampler": {"integrator": "semi_implicit"},
    "planar_leg_linkage": {"integrator": "semi_implicit", "substeps": 3},
}


def differences(simulator, q, v, tau, h=1e-5):
    model, columns = simulator.model, []
    q_0, _ = simulator.step(q, v, tau)

    def after(x, u):
        n = model.nv
        q_1, v_1 = simulator.step(model.integrate(q, x[:n]), v + x[n:], tau + u)
        return np.concatenate([gb.difference(model, q_0, q_1), v_1])

    zero, n = np.zeros(2 * model.nv), model.nv
    for e in np.eye(3 * n):
        x, u = h * e[: 2 * n], h * e[2 * n :]
        columns.append((after(x, u) - after(zero - x, -u)) / (2 * h))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("robot", CASES)
def test_a_step(robot):
    model = load(robot)
    simulator = gb.Simulator(model, 1e-3, **CASES[robot])
    q, v = model.random_state(3)
    tau = np.random.default_rng(3).uniform(-1, 1, model.nv)
    A, B = gb.linearize(simulator, q, v, tau)
    assert (A.shape, B.shape) == ((2 * model.nv,) * 2, (2 * model.nv, model.nv))
    assert relative(np.concatenate([A, B], axis=1), differences(simulator, q, v, tau)) < 1e-7


def test_contacts_are_refused():
    """At rest on the ground a step has no derivative by the height of the robot."""
    model = load("mini_cheetah")
    contacts = gb.Contacts(model, shapes={"HR_foot_contact": gb.Sphere(0.02)})
    simulator = gb.Simulator(model, 1e-3, contacts=contacts, solver=gb.ContactSolver(iterations=1))
    with pytest.raises(gb.InputError, match="without contacts"):
        gb.linearize(simulator, *model.random_state(0))


def test_what_it_needs():
    with pytest.raises(gb.InputError, match="needs a Simulator"):
        gb.linearize(load("four_bar"), [0.0], [0.0])
