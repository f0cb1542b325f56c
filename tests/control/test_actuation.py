"""Actuators on any joint: motion, effort and inertia, there and back."""

import numpy as np
import pytest

import grubler as gb
from conftest import ROBOTS, load
from grubler.control.actuation import (
    actuator_effort,
    actuator_inertia,
    actuator_map,
    actuator_state,
    effort_from_force,
    force_from_effort,
    motion_from_actuators,
    unactuated,
)
from grubler.model.exchange import analytic
from linkages import ankle, lambda_elbow, stewart

DRIVEN = [name for name in ROBOTS if load(name).actuators]
PARALLEL = {
    "lambda": lambda_elbow,
    "ankle": ankle,
    "ankle, closed form": lambda: analytic(ankle()),
    "cranks": lambda: ankle("rus"),
    "stewart": stewart,
}


@pytest.fixture(params=[*DRIVEN, *PARALLEL], scope="module")
def driven(request):
    return PARALLEL[request.param]() if request.param in PARALLEL else load(request.param)


def test_motion_is_that_of_the_joints(driven):
    q, v = driven.random_state(0)
    a = np.random.default_rng(0).uniform(-1, 1, driven.nv)
    state, span = actuator_state(driven, q, v, a), gb.spanning_state(driven, q, v, a)
    names = driven.spanning_names
    positions = driven.unpack(q)
    for i, actuator in enumerate(driven.actuators):
        column = names.index(driven.bodies[actuator.joint].joint.name)
        assert np.isclose(state.positions[i], actuator.gear * positions[actuator.joint][0])
        assert np.isclose(state.velocities[i], actuator.gear * span.velocities[column])
        assert np.isclose(state.accelerations[i], actuator.gear * span.accelerations[column])
    assert np.allclose(actuator_map(driven, q) @ v, state.velocities)
    short = actuator_state(driven, q)
    assert short.velocities is None and short.accelerations is None


def test_effort_gives_the_motion(driven):
    """Efforts of least norm that come nearest to the force; exact where everything is driven."""
    q, v = driven.random_state(1)
    a = np.random.default_rng(1).uniform(-1, 1, driven.nv)
    f = actuator_effort(driven, q, v, a, allow_unactuated=True)
    tau, J = gb.inverse_dynamics(driven, q, v, a), actuator_map(driven, q)
    exact = np.linalg.lstsq(J.T, tau, rcond=1e-10)[0]
    assert np.abs(f - exact).max() < 1e-9 * np.abs(exact).max()
    assert np.allclose(effort_from_force(driven, q, tau, allow_unactuated=True), f)
    if not unactuated(driven):
        assert np.allclose(force_from_effort(driven, q, f), tau, rtol=1e-9, atol=1e-9)
        assert np.allclose(actuator_effort(driven, q, v, a), f)
        named = {x.name: e for x, e in zip(driven.actuators, f)}
        assert np.allclose(force_from_effort(driven, q, named), tau, rtol=1e-9, atol=1e-9)


def test_inertia_is_exact(driven):
    q, _ = driven.random_state(2)
    J, M = actuator_map(driven, q), gb.mass_matrix(driven, q)
    seen = J @ np.linalg.solve(M, J.T)
    exact = np.linalg.pinv(seen, rcond=1e-11, hermitian=True)
    assert np.abs(actuator_inertia(driven, q) - exact).max() < 1e-8 * np.abs(exact).max()


def test_motion_and_back(driven):
    q, v = driven.random_state(3)
    a = np.random.default_rng(3).uniform(-1, 1, driven.nv)
    state = actuator_state(driven, q, v, a)
    back = motion_from_actuators(driven, q, state.velocities, state.accelerations)
    if not unactuated(driven):
        assert np.allclose(back[0], v, rtol=1e-8, atol=1e-9)
        assert np.allclose(back[1], a, rtol=1e-7, atol=1e-8)
    again = actuator_state(driven, q, *back)
    assert np.allclose(again.velocities, state.velocities, rtol=1e-8, atol=1e-9)
    assert np.allclose(again.accelerations, state.accelerations, rtol=1e-7, atol=1e-7)
    assert np.linalg.norm(back[0]) <= np.linalg.norm(v) * (1 + 1e-9)
    assert motion_from_actuators(driven, q, state.velocities)[1] is None


def test_power_is_the_same():
    model = ankle()
    q, v = model.random_state(0)
    f = np.array([3.0, -2.0])
    state = actuator_state(model, q, v)
    assert np.isclose(force_from_effort(model, q, f) @ v, f @ state.velocities)


@pytest.mark.parametrize("name", ["ankle", "ankle, closed form", "lambda"])
def test_compiled(name):
    model = PARALLEL[name]()
    q, v = model.random_state(0)
    a = np.ones(model.nv)
    effort = gb.compile(actuator_effort, model, allow_unactuated=True)
    exact = actuator_effort(model, q, v, a, allow_unactuated=True)
    assert np.allclose(effort(q, v, a), exact, rtol=1e-9)
    inertia = gb.compile(actuator_inertia, model)
    assert np.allclose(inertia(q), actuator_inertia(model, q), rtol=1e-9)
    state = gb.compile(actuator_state, model, inputs=["q", "v", "a"])
    for x, y in zip(state(q, v, a), actuator_state(model, q, v, a)):
        assert np.allclose(x, y, rtol=1e-9, atol=1e-12)


def redundant():
    """One freedom, two motors with different gears, and a joint that nothing drives."""
    b = gb.ModelBuilder("redundant")
    for name in ("link", "left", "right", "tail"):
        b.add_body(name, 1.0, (0.1, 0, 0), (0.01, 0, 0, 0.02, 0, 0.02))
        parent = "link" if name == "tail" else "world"
        b.add_joint(name, "revolute", parent, name, axis=(0, 1, 0))
    b.add_coupling("gear left", "left", {"link": 2.0})
    b.add_coupling("gear right", "right", {"link": -3.0})
    for side in ("left", "right"):
        b.add_actuator(side, side, gear=5.0)
    return b


class TestTooManyAndTooFew:
    def test_least_norm(self):
        model = redundant().build()
        q, _ = model.random_state(0)
        assert unactuated(model) == ["tail"]
        tau = np.zeros(2)
        tau[model.v_names.index("link")] = 1.0
        f = effort_from_force(model, q, tau)
        ratios = 5.0 * np.array([2.0, -3.0])
        assert np.allclose(f, ratios / (ratios @ ratios))

    def test_unactuated_coordinate_needs_a_force(self):
        model = redundant().build()
        q, v = model.random_state(0)
        with pytest.raises(gb.InputError, match="coordinate 'tail' needs a force of"):
            actuator_effort(model, q, v, np.zeros(2))
        f = actuator_effort(model, q, v, np.zeros(2), allow_unactuated=True)
        tau = force_from_effort(model, q, f)
        assert tau[model.v_names.index("tail")] == 0.0

    def test_a_force_that_carries_it(self):
        """With the external force that holds a floating base no base force is left."""
        model = load("mini_cheetah")
        q, v = model.random_state(0)
        tau = gb.inverse_dynamics(model, q, v, np.zeros(model.nv))
        base = model.bodies[0].name
        f_ext = {base: tau[:6]}
        f = actuator_effort(model, q, v, np.zeros(model.nv), f_ext)
        assert np.allclose(force_from_effort(model, q, f)[6:], tau[6:])

    def test_symbols_cannot_be_judged(self):
        with pytest.raises(gb.InputError, match="cannot be told of symbols"):
            gb.compile(actuator_effort, redundant().build())

    def test_inertia_of_redundant_motors(self):
        model = redundant().build()
        q, _ = model.random_state(0)
        L = actuator_inertia(model, q)
        assert np.linalg.matrix_rank(L, tol=1e-12) == 1
        w = actuator_map(model, q) @ np.eye(2)[model.v_names.index("link")]
        M = gb.mass_matrix(model, q)
        i = model.v_names.index("link")
        free = 1 / np.linalg.inv(M)[i, i]  # the tail is free to move
        assert np.isclose(w @ L @ w, free)


class TestErrors:
    def test_no_actuators(self):
        b = gb.ModelBuilder("bare")
        b.add_body("a", 1.0, inertia=(1, 0, 0, 1, 0, 1))
        b.add_joint("a", "revolute", "world", "a")
        with pytest.raises(gb.ModelError, match="has no actuators"):
            actuator_state(b.build(), [0.0])

    def test_joint_of_several_freedoms(self):
        b = gb.ModelBuilder("ball")
        b.add_body("a", 1.0, inertia=(1, 0, 0, 1, 0, 1))
        b.add_joint("a", "spherical", "world", "a")
        b.add_actuator("m", "a")
        with pytest.raises(gb.ModelError, match="'m' sits on joint 'a', a spherical joint"):
            actuator_state(b.build(), [1.0, 0, 0, 0])

    def test_wrong_shapes_and_names(self):
        model = lambda_elbow()
        q = model.neutral()
        with pytest.raises(gb.InputError, match="efforts has shape"):
            force_from_effort(model, q, [1.0, 2.0])
        with pytest.raises(gb.InputError, match="did you mean 'motor'"):
            force_from_effort(model, q, {"motr": 1.0})
