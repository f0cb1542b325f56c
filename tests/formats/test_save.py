"""What is written reads back as the same dynamics; what cannot be written is named."""

import warnings

import numpy as np
import pytest
from shared_models import quiet, same_dynamics, shared

import grubler as gb
from grubler.errors import InputError, ModelError
from grubler.formats import FormatWarning, save

# Robots of the zoo that a format cannot take, and why.
NOT_URDF = {
    "tello": "cannot say what loop 'left-hip-differential' is",
    "tello_explicit": "cannot say what loop 'left-hip-differential' is",
    "gt_chain": "URDF has no gravity",
    "pbt_chain": "URDF has no gravity",
    "joint_sampler": "URDF has no universal joint",
    "loop_sampler": "URDF has no cylindrical joint",
}
NOT_MJCF = {
    "tello": "cannot say what loop 'left-hip-differential' is",
    "tello_explicit": "cannot say what loop 'left-hip-differential' is",
    "mini_cheetah": "HR_hip_link.*triangle inequality",
    "quadruped": "HR_hip_link.*triangle inequality",
    "jvrc1": "neck_p_rotor.*triangle inequality",
    "mit_humanoid_leg": "'ankle_rotor' has 0 kg",
    "gt_chain": "without mass or inertia: 'link-0'",
    "pbt_chain": "without mass or inertia: 'link-A-0'",
    "planar_leg_linkage": "without mass or inertia: 'thigh'",
    "joint_sampler": "MJCF has no helical joint",
    "loop_sampler": "cannot say what loop 'slider_crank' is",
}


def saved(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        save(model, path)
    return quiet(path)


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
@pytest.mark.parametrize("name", gb.robots.names())
def test_robots_of_the_zoo(name, suffix, tmp_path):
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    model, path = gb.robots.load(name), tmp_path / f"{name}{suffix}"
    refused = (NOT_URDF if suffix == ".urdf" else NOT_MJCF).get(name)
    if refused:
        with pytest.raises(ModelError, match=refused):
            save(model, path)
        assert not path.exists()
        return
    back = saved(model, path)
    assert (back.name, back.nv) == (model.name, model.nv)
    for seed in range(3):
        assert same_dynamics(model, back, seed) < 1e-12
    assert {f.name for f in model.frames} <= {f.name for f in back.frames}
    assert [a.name for a in back.actuators] == [a.name for a in model.actuators]


REAL = {
    ("cassie_dairlib_urdf/cassie_full_model.urdf", ".urdf"): "free",
    ("gepetto_robot_delta/robot.yaml", ".urdf"): None,
    ("robotiq_2f85_mjcf/2f85.xml", ".xml"): None,
    ("cassie_mjcf/cassie.xml", ".xml"): None,
    ("rh5_manus_hyrodyn/model/submechanisms_urdf/Head.urdf", ".xml"): None,
    ("grbda_urdfplus/six_bar.urdf", ".xml"): None,
    ("iit_softfoot_mjcf/softfoot.xml", ".xml"): None,
    ("ufactory_xarm7_hand_mjcf/hand.xml", ".xml"): None,
    ("gepetto_5bar_linkage/robot.yaml", ".xml"): None,
    ("reachy_mini_mjcf/reachy_mini.xml", ".urdf"): None,
}


@pytest.mark.parametrize("case", REAL, ids=lambda c: c[0].rsplit("/", 1)[-1] + c[1])
def test_real_robots(case, tmp_path):
    model = shared(case[0], REAL[case])
    path = tmp_path / f"out{case[1]}"
    start = {b.joint.name: model.reference[b.index] for b in model.bodies}
    assert model.loops
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        save(model, path)
    back = quiet(path, reference=start)
    assert back.nv == model.nv
    for seed in range(3):
        assert same_dynamics(model, back, seed) < 1e-12


def mechanism(add) -> gb.Model:
    """A chain of four bodies with whatever `add` adds."""
    b = gb.ModelBuilder("m")
    parent = "world"
    for i in range(4):
        b.add_body(f"b{i}", 1.0, (0.1, 0, 0), (0.1, 0.01, 0, 0.12, 0.02, 0.15))
        b.add_joint(f"q{i}", "revolute", parent, f"b{i}", xyz=(0.3, 0, 0), rpy=(0.1, 1.5707, i),
                    axis=(0, 1, i))  # fmt: skip
        parent = f"b{i}"
    add(b)
    return b.build()


def two_inputs(b):
    b.add_coupling("sum", "q3", ratios={"q0": 2.0, "q1": -3.0}, offset=0.2)


def quartic(b):
    b.add_coupling("cam", "q3", leader="q0", polynomial=(0.1, 2, 0.3, -0.1, 0.05))


def ball_joint(b):
    b.add_body("ball", 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.12, 0, 0.15))
    b.add_joint("ball", "spherical", "b3", "ball", xyz=(0, 0.1, 0))


def planar_and_more(b):
    b.add_body("p", 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.12, 0, 0.15))
    b.add_joint("p", "planar", "b3", "p", xyz=(0, 0.1, 0), axis=(1, 1, 0), axis_x=(0, 0, 1))
    b.add_body("u", 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.12, 0, 0.15))
    b.add_joint("u", "universal", "p", "u", axis=(1, 0, 0), axis2=(0, 1, 1))
    b.add_body("c", 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.12, 0, 0.15))
    b.add_joint("c", "cylindrical", "u", "c", axis=(1, 0, 2))


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
@pytest.mark.parametrize("add", [two_inputs, quartic, ball_joint, planar_and_more])
def test_couplings_and_joints(add, suffix, tmp_path):
    model, path = mechanism(add), tmp_path / f"m{suffix}"
    if suffix == ".urdf" and add not in (two_inputs, ball_joint):
        with pytest.raises(ModelError, match="URDF has no"):
            save(model, path)
        return
    back = saved(model, path)
    for seed in range(3):
        assert same_dynamics(model, back, seed) < 1e-12


def test_mjcf_names_what_it_loses(tmp_path):
    with pytest.warns(FormatWarning) as caught:
        save(gb.robots.load("parallel_four_bar"), tmp_path / "x.xml")
    text = " ".join(str(w.message) for w in caught)
    assert "velocity limits" in text and "independent" in text


def test_limits_survive(tmp_path):
    model = gb.robots.load("parallel_four_bar")
    joint = saved(model, tmp_path / "x.urdf").joint("joint1")
    known = model.joint("joint1")
    for key in ("lower", "upper", "velocity_limit", "effort_limit", "independent"):
        assert getattr(joint, key) == getattr(known, key)
    joint = saved(model, tmp_path / "x.xml").joint("joint1")
    np.testing.assert_allclose([joint.lower, joint.upper], [known.lower, known.upper])


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_armature_survives(kind, suffix, tmp_path):
    b = gb.ModelBuilder("m")
    b.add_body("a", 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.12, 0, 0.15))
    b.add_joint("q", kind, "world", "a", armature=0.3, damping=0.2)
    bare, path = b.build(), tmp_path / f"x{suffix}"
    models = [bare]
    if kind == "revolute":
        b.add_actuator("m", "q", gear=5.0)
        models.append(b.build())
    for model in models:
        back = saved(model, path)
        assert (back.joint("q").armature, back.joint("q").damping) == (0.3, 0.2)
        assert len(back.actuators) == len(model.actuators)
        assert same_dynamics(model, back, 0) < 1e-12


def test_limits_of_a_ball_joint_mean_nothing():
    text = (
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="spherical">'
        '<parent link="a"/><child link="b"/><limit lower="1"/></joint></robot>'
    )
    with pytest.warns(FormatWarning, match="without mass"):
        joint = gb.load(text).joint("j")
    assert (joint.kind, joint.lower) == ("spherical", None)


INERTIAL = '<inertial pos="0.1 0.02 0.03" mass="1" diaginertia="0.01 0.02 0.02"/>'
SEVERAL = {  # joints of one body, as MJCF has them
    "slides": '<joint name="i" type="slide" axis="1 0 0"/>'
              '<joint name="j" type="slide" axis="0 1 1"/>',
    "offset": '<joint name="i" type="slide" axis="0 1 0"/><joint name="j" axis="1 0 0" '
              'pos="0 0.1 0.2" ref="0.1"/><joint name="k" axis="0 0 1" pos="0.3 0 0"/>',
    "shoulder": '<joint name="i" axis="1 0 0" armature="0.1" damping="0.3"/>'
                '<joint name="j" axis="0 1 0" range="-1 1"/><joint name="k" axis="0 0 1"/>',
    "ball": '<joint name="i" type="ball" pos="0.1 0 0.2"/>'
            '<joint name="j" type="slide" axis="1 2 0"/>',
}  # fmt: skip


@pytest.mark.parametrize("case", SEVERAL)
def test_several_joints_on_a_body(case, tmp_path):
    """Written as they were read: also MuJoCo has the same inertia before and after."""
    mujoco = pytest.importorskip("mujoco")
    text = f"""<mujoco><compiler angle="radian"/><worldbody><body name="a" pos="1 2 3"
    quat="0.9 0.1 0.2 0.3">{INERTIAL}{SEVERAL[case]}<body name="b" pos="0.3 0 0" euler="0.1 0 0">
    {INERTIAL}<joint name="m"/></body></body></worldbody></mujoco>"""
    model, path = quiet(text), tmp_path / "x.xml"
    back = saved(model, path)
    assert back.v_names == model.v_names
    for seed in range(3):
        assert same_dynamics(model, back, seed) < 1e-12
        q, _ = model.random_state(seed)
        inertias = []
        for other in (
            mujoco.MjModel.from_xml_string(text),
            mujoco.MjModel.from_xml_path(str(path)),
        ):
            data, M = mujoco.MjData(other), np.zeros((other.nv, other.nv))
            data.qpos[:] = gb.convert.to_mujoco(model, other, q).q
            mujoco.mj_forward(other, data)
            for i, unit in enumerate(np.eye(other.nv)):
                mujoco.mj_mulM(other, data, M[i], unit)
            inertias.append(M)
        assert np.abs(inertias[0] - inertias[1]).max() < 1e-12
        assert np.abs(inertias[0] - gb.mass_matrix(model, q)).max() < 1e-12


def test_frames_between_the_joints_of_a_body_are_named(tmp_path):
    b = gb.ModelBuilder("m")
    b.add_body("between")
    b.add_body("a", 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.12, 0, 0.15))
    b.add_joint("i", "revolute", "world", "between", xyz=(0, 0, 1))
    b.add_joint("j", "revolute", "between", "a", axis=(0, 1, 0), xyz=(0.1, 0, 0), rpy=(1, 2, 3))
    b.add_frame("middle", "between")
    with pytest.warns(
        FormatWarning, match="no frames between the joints of a body: without 'middle'"
    ):
        save(b.build(), tmp_path / "x.xml")
    assert same_dynamics(b.build(), quiet(tmp_path / "x.xml"), 0) < 1e-12


def test_refuses_other_files(tmp_path):
    with pytest.raises(InputError, match=r"\.urdf or \.xml"):
        save(gb.robots.load("arm7"), tmp_path / "x.sdf")
