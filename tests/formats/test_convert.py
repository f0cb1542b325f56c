"""States in Pinocchio's and MuJoCo's layouts and back."""

import numpy as np
import pytest
from shared_models import error, path, quiet, shared

import grubler as gb
from grubler.errors import InputError
from grubler.formats import convert, load
from grubler.formats.write_urdf import urdf_text

pin = pytest.importorskip("pinocchio")


def mixed() -> gb.Model:
    """A free base, continuous and prismatic joints, and a planar one."""
    b = gb.ModelBuilder("mixed")
    kinds = ("free", "continuous", "prismatic", "revolute", "planar")
    for i, kind in enumerate(kinds):
        b.add_body(f"b{i}", 1.0, (0.1, 0, 0), (0.1, 0.01, 0, 0.12, 0.02, 0.15))
        xyz = (0, 0, 0) if i == 0 else (0.3, 0, 0.1)
        name = "root_joint" if i == 0 else f"q{i}"
        b.add_joint(name, kind, f"b{i - 1}" if i else "world", f"b{i}", xyz=xyz, axis=(0, 0, 1))
    return b.build()


@pytest.mark.parametrize("seed", range(3))
def test_pinocchio_tree(seed):
    model = mixed()
    text = urdf_text(model)
    other = pin.buildModelFromXML(text)
    data = other.createData()
    q, v = model.random_state(seed)
    a = np.random.default_rng(seed).uniform(-1, 1, model.nv)
    tau = gb.inverse_dynamics(model, q, v, a)
    state = convert.to_pinocchio(model, other, q, v, a, tau)
    assert error(pin.rnea(other, data, state.q, state.v, state.a), state.tau) < 1e-10
    back = convert.from_pinocchio(model, other, *state)
    for x, known in zip(back, (q, v, a, tau), strict=True):
        np.testing.assert_allclose(x, known, atol=1e-9)


def test_pinocchio_spanning_tree_of_a_robot_with_loops():
    """Dependent joints follow; forces on all joints come back as those of the independent ones."""
    model = shared("grbda_urdfplus/mini_cheetah.urdf")
    other = pin.buildModelFromUrdf(str(path("grbda_urdfplus/mini_cheetah.urdf")))
    q, v = model.random_state(0)
    a = np.random.default_rng(0).uniform(-1, 1, model.nv)
    state = convert.to_pinocchio(model, other, q, v, a)
    assert len(state.v) == model.nv_span
    force = pin.rnea(other, other.createData(), *state[:3])
    back = convert.from_pinocchio(model, other, *state[:3], force)
    assert error(back.tau, gb.inverse_dynamics(model, q, v, a)) < 1e-10
    np.testing.assert_allclose(back.a, a, atol=1e-9)


def test_mujoco_of_a_robot_with_loops():
    mujoco = pytest.importorskip("mujoco")
    from grubler.formats.write_mjcf import mjcf_text

    model = gb.robots.load("four_bar")
    other = mujoco.MjModel.from_xml_string(mjcf_text(model))
    q, v = model.random_state(1)
    state = convert.to_mujoco(model, other, q, v, np.ones(1), np.ones(1))
    assert state.q.shape == (3,) and state.tau[0] == 1.0
    back = convert.from_mujoco(model, other, *state)
    for x, known in zip(back, (q, v, np.ones(1), np.ones(1)), strict=True):
        np.testing.assert_allclose(x, known, atol=1e-9)
    with pytest.raises(gb.ClosureError, match="open by"):
        convert.from_mujoco(model, other, state.q + np.array([0, 0.1, 0]))


def test_what_is_not_given_stays_none():
    model = mixed()
    other = pin.buildModelFromXML(urdf_text(model))
    state = convert.to_pinocchio(model, other, model.neutral())
    assert (state.v, state.a, state.tau) == (None, None, None)


def test_unknown_joints_are_named():
    model = quiet(urdf_text(mixed()).replace('"q3"', '"q3x"'))
    other = pin.buildModelFromXML(urdf_text(mixed()))
    with pytest.raises(InputError, match="no joint named 'q3': did you mean 'q3x'"):
        convert.to_pinocchio(model, other, model.neutral())
    with pytest.raises(InputError, match=r"q has shape \(3,\)"):
        convert.from_pinocchio(load(urdf_text(mixed())), other, np.zeros(3))
