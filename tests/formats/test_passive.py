"""Damping, friction and springs of files: in the model, in `Passive.of`, against MuJoCo's."""

import numpy as np
import pytest
from shared_models import error, path, quiet, shared

import grubler as gb
from grubler.formats import FormatWarning, convert, load
from grubler.formats._report import Complaints
from grubler.formats._xml import read_xml
from grubler.formats.mjcf_compile import compile_mjcf

mujoco = pytest.importorskip("mujoco")

MJCF = """<mujoco><compiler angle="radian"/><worldbody>
<body name="base" pos="0 0 1"><joint name="root" type="free" damping="0.7"/>
  <geom size="0.2" mass="3"/>
  <body name="arm"><joint name="hinge" axis="0 1 0" damping="0.3" stiffness="12" springref="0.4"
    ref="0.1"/><geom size="0.1" pos="0.3 0 0"/>
    <body name="hand" pos="0.5 0 0"><joint name="slide" type="slide" axis="1 0 0" damping="2"
      stiffness="50" springref="-0.02"/><geom size="0.1" pos="0 0.1 0"/>
      <body name="ball" pos="0.1 0 0"><joint name="ball" type="ball" damping="0.05"/>
        <geom size="0.05" pos="0 0 0.1"/></body></body></body></body>
</worldbody></mujoco>"""
INERTIAL = """<inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>"""
URDF = f"""<robot name="r"><link name="world"/><link name="a">{INERTIAL}</link>
<link name="b">{INERTIAL}</link>
<joint name="j" type="continuous"><parent link="world"/><child link="a"/><axis xyz="0 0 1"/>
<dynamics damping="0.5" friction="0.25"/></joint>
<joint name="k" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/><dynamics damping="3"/></joint></robot>"""


def compiled(source, text: bool):
    root = read_xml(source)
    return compile_mjcf(str(source) if text else source, root, Complaints()).model


def mujoco_passive(model: gb.Model, mj, q, v) -> np.ndarray:
    """MuJoCo's passive forces as tau: they act on its spanning velocities."""
    data = mujoco.MjData(mj)
    theirs = convert.to_mujoco(model, mj, q, v)
    data.qpos[:], data.qvel[:] = theirs.q, theirs.v
    mujoco.mj_forward(mj, data)
    columns = [convert.to_mujoco(model, mj, q, e).v for e in np.eye(model.nv)]
    return np.stack(columns) @ data.qfrc_passive


@pytest.mark.parametrize("seed", range(3))
def test_every_joint_kind_against_mujoco(seed):
    model, mj = load(MJCF, strict=True), compiled(MJCF, True)
    q, v = model.random_state(seed)
    ours = gb.Passive.of(model).force(model, q, v)
    assert error(ours, mujoco_passive(model, mj, q, v)) < 1e-12


@pytest.mark.parametrize("file", ["cassie_mjcf/cassie.xml", "robotiq_2f85_mjcf/2f85.xml"])
def test_real_robots_against_mujoco(file):
    """Cassie's leaf springs, the gripper's: on dependent joints too."""
    model, mj = shared(file), compiled(path(file), False)
    passive = gb.Passive.of(model)
    assert passive.damping and passive.spring
    mj.opt.gravity[:] = 0.0  # MuJoCo counts gravity compensation among passive forces
    for seed in range(3):
        q, v = model.random_state(seed)
        ours = passive.force(model, q, v)
        assert error(ours, mujoco_passive(model, mj, q, v)) < 1e-11


def test_urdf_against_mujoco():
    """MuJoCo reads URDF, too."""
    model, mj = load(URDF, strict=True), mujoco.MjModel.from_xml_string(URDF)
    passive = gb.Passive.of(model)
    assert passive.friction == {"j": 0.25} and mj.dof_frictionloss[0] == 0.25
    q, v = model.random_state(0)
    ours = gb.Passive(damping=passive.damping).force(model, q, v)
    assert error(ours, mujoco_passive(model, mj, q, v)) < 1e-12
    friction = gb.Passive(friction=passive.friction).force(model, q, np.array([3.0, 0.0]))
    assert np.allclose(friction, [-0.25, 0.0])


def test_sdf():
    one = ("<damping>0.5</damping><friction>0.1</friction><spring_stiffness>4</spring_stiffness>"
           "<spring_reference>0.2</spring_reference>")  # fmt: skip
    two = "<damping>0.5</damping>"
    inertial = "<inertial><mass>1</mass></inertial>"
    text = f"""<sdf version="1.12"><model name="m">
    <link name="a">{inertial}</link><link name="b">{inertial}</link><link name="c">{inertial}</link>
    <joint name="fix" type="fixed"><parent>world</parent><child>a</child></joint>
    <joint name="j" type="revolute"><parent>a</parent><child>b</child>
      <axis><xyz>0 0 1</xyz><dynamics>{one}</dynamics></axis></joint>
    <joint name="u" type="universal"><parent>b</parent><child>c</child>
      <axis><xyz>1 0 0</xyz><dynamics>{two}</dynamics></axis>
      <axis2><xyz>0 1 0</xyz><dynamics>{two}</dynamics></axis2></joint></model></sdf>"""
    model = load(text, strict=True)
    passive = gb.Passive.of(model)
    assert passive.damping == {"j": 0.5, "u": 0.5} and passive.spring == {"j": (4.0, 0.2)}
    at = gb.from_spanning(model, {"j": 0.7}, {"j": 1.0, "u": [2.0, 3.0]})
    want = {"j": -0.5 - 0.1 - 4 * 0.5, "u:1": -1.0, "u:2": -1.5}
    force = dict(zip(model.v_names, passive.force(model, *at), strict=True))
    assert force == pytest.approx(want)
    uneven = text.replace("<axis2><xyz>0 1 0</xyz><dynamics><damping>0.5",
                          "<axis2><xyz>0 1 0</xyz><dynamics><damping>0.6")  # fmt: skip
    with pytest.warns(FormatWarning, match="joint of two axes is ignored"):
        load(uneven)


@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
def test_saved_and_read_back(suffix, tmp_path):
    model = load(MJCF) if suffix == ".xml" else load(URDF)
    gb.save(model, tmp_path / f"robot{suffix}")
    back = load(tmp_path / f"robot{suffix}")
    q, v = model.random_state(0)
    for kind in ("damping", "friction", "spring"):
        assert getattr(gb.Passive.of(back), kind) == getattr(gb.Passive.of(model), kind)
    forces = [gb.Passive.of(m).force(m, q, v) for m in (model, back)]
    assert error(*forces) < 1e-12


def test_urdf_has_no_springs(tmp_path):
    b = gb.ModelBuilder()
    b.add_body("a", 1.0, inertia=(1, 0, 0, 1, 0, 1))
    b.add_joint("j", "revolute", "world", "a", stiffness=3.0, rest=0.1)
    with pytest.warns(FormatWarning, match="URDF has no springs"):
        gb.save(b.build(), tmp_path / "spring.urdf")
    b.add_body("c")
    with pytest.raises(gb.ModelError, match="springs act on joints of one"):
        b.add_joint("k", "spherical", "a", "c", stiffness=1.0)


def test_the_simulator_takes_them():
    """A spring and a damper bring a joint to rest where they should."""
    text = MJCF.replace('<joint name="root" type="free" damping="0.7"/>', "")
    for old, new in (('"0.3" stiff', '"8" stiff'), ('"2"\n', '"40"\n'),
                     ("<worldbody>", '<option gravity="0 0 0"/><worldbody>')):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    model = quiet(text)
    passive = gb.Passive.of(model)
    simulator = gb.Simulator(model, 2e-3, passive=passive)
    data = simulator.run(model.neutral(), np.zeros(model.nv), steps=5000)
    energy = [gb.energy(model, data.q[i], data.v[i]).kinetic for i in (100, 5000)]
    assert energy[1] < 1e-6 * energy[0]
    end = dict(zip(model.q_names, data.q[-1], strict=True))
    assert end["hinge"] == pytest.approx(0.4, abs=1e-3)
    assert end["slide"] == pytest.approx(-0.02, abs=1e-3)


def test_check_names_them():
    report = gb.check(shared("cassie_mjcf/cassie.xml"), samples=1)
    assert "springs at" in report.table() and report.to_dict()["passive"]["damping"] > 0
