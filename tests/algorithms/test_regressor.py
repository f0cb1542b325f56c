"""The regressor times the parameters is inverse dynamics; what of them can be told apart."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative, states


def test_regressor_times_parameters_is_inverse_dynamics(model):
    parameters = gb.regressor_parameters(model)
    for q, v, a in states(model, 5):
        tau = gb.inverse_dynamics(model, q, v, a)
        Y = gb.regressor(model, q, v, a)
        assert Y.shape == (model.nv, len(parameters)) == (model.nv, len(gb.regressor_names(model)))
        assert np.abs(Y @ parameters - tau).max() < 1e-11 * (1 + np.abs(tau).max())


def test_friction_columns_are_the_losses(model):
    """Against the passive forces of a simulation, with friction as good as Coulomb's."""
    rng = np.random.default_rng(0)
    n = len(model.bodies)
    damping, loss = rng.uniform(0, 1, (2, n))
    names = [joint.name for joint in model.joints]
    passive = gb.Passive(
        damping=dict(zip(names, damping)), friction=dict(zip(names, loss)), friction_speed=1e-12
    )
    for q, v, a in states(model, 3):
        Y = gb.regressor(model, q, v, a, friction=True)[:, -2 * n :]
        force = passive.force(model, q, v)
        assert relative(Y @ np.concatenate([damping, loss]), -force) < 1e-11


def test_base_parameters_give_the_same_torques():
    for name in ("four_bar", "arm7", "joint_sampler", "mit_humanoid_leg", "six_bar"):
        model = load(name)
        base = gb.base_parameters(model)
        assert base.matrix.shape == (len(base.independent), len(gb.regressor_names(model)))
        values = base.values(gb.regressor_parameters(model))
        for q, v, a in states(model, 5):
            tau = gb.inverse_dynamics(model, q, v, a)
            Y = gb.regressor(model, q, v, a)
            assert np.abs(Y[:, base.independent] @ values - tau).max() < 1e-10 * np.abs(tau).max()
            assert relative(Y[:, base.independent] @ base.matrix, Y) < 1e-9


def test_the_number_of_base_parameters():
    """A Panda arm has 43 (published), here with 6 armatures more; a pendulum about a level axis has
    3 with its armature, about a vertical one 1."""
    assert len(gb.base_parameters(load("arm7")).independent) == 43 + 6
    for axis, names in (
        ((0, 1, 0), ("mx of bob", "mz of bob", "Iyy of bob + armature of hinge")),
        ((0, 0, 1), ("Izz of bob + armature of hinge",)),
    ):
        b = gb.ModelBuilder("pendulum")
        b.add_body("bob", 1.0, (0.1, 0.2, 0.3), (1, 0, 0, 1, 0, 1))
        b.add_joint("hinge", "revolute", "world", "bob", axis=axis)
        assert gb.base_parameters(b.build()).names == names


def test_what_base_parameters_leave_out_is_not_felt():
    """Moved along what they do not see, parameters give the same torques."""
    model = load("mit_humanoid_leg")
    base, parameters = gb.base_parameters(model), gb.regressor_parameters(model)
    unseen = np.random.default_rng(0).standard_normal(len(parameters))
    unseen -= np.linalg.pinv(base.matrix) @ (base.matrix @ unseen)
    assert np.abs(unseen).max() > 0.1
    for q, v, a in states(model, 5):
        Y = gb.regressor(model, q, v, a)
        assert np.abs(Y @ unseen).max() < 1e-8 * np.abs(Y).max()


@pytest.mark.parametrize("name", ["four_bar", "joint_sampler", "mini_cheetah"])
def test_compiled(name):
    model = load(name)
    for friction in (False, True):
        compiled = gb.compile(gb.regressor, model, friction=friction)
        for q, v, a in states(model, 2):
            expected = gb.regressor(model, q, v, a, friction=friction)
            assert relative(compiled(q, v, a), expected) < 1e-11


def test_nothing_to_identify():
    model = gb.ModelBuilder("empty").build()
    none = np.zeros(0)
    assert gb.regressor(model, none, none, none).shape == (0, 0)
    assert gb.base_parameters(model).names == ()


def test_wrong_arguments():
    model = load("four_bar")
    q, v = model.random_state(0)
    with pytest.raises(gb.InputError, match=r"a has shape \(4,\)"):
        gb.regressor(model, q, v, np.zeros(4))
    with pytest.raises(gb.InputError, match="give a Model"):
        gb.base_parameters("four_bar")
