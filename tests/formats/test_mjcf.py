"""MJCF through MuJoCo: every joint and equality against MuJoCo's own kinematics."""

import numpy as np
import pytest
from shared_models import error, quiet, saddle_point

import grubler as gb
from grubler.errors import InputError, ModelError
from grubler.formats import FormatWarning, convert, describe, load

mujoco = pytest.importorskip("mujoco")

INERTIAL = '<inertial pos="0.1 0.02 0.03" mass="1" diaginertia="0.01 0.02 0.02"/>'


def mjcf(bodies: str, more: str = "") -> str:
    head = '<mujoco model="r"><compiler angle="radian"/>'
    return f"{head}<worldbody>{bodies}</worldbody>{more}</mujoco>"


JOINTS = {
    "offset hinge": '<joint name="j" pos="0.1 0.2 0.3" axis="1 2 3" ref="0.4"/>',
    "slide": '<joint name="j" type="slide" axis="1 1 0" ref="-0.2"/>',
    "ball": '<joint name="j" type="ball" pos="0.1 0 0"/>',
    "free": '<freejoint name="j"/>',
    "three": '<joint name="j" type="slide" axis="0 1 0"/><joint name="k" axis="1 0 0" '
             'pos="0 0.1 0.2" ref="0.1"/><joint name="l" axis="0 0 1" pos="0.3 0 0"/>',
}  # fmt: skip


@pytest.mark.parametrize("kind", JOINTS)
def test_joints_move_as_in_mujoco(kind):
    body = f"""<body name="a" pos="1 2 3" quat="0.9 0.1 0.2 0.3">{INERTIAL}{JOINTS[kind]}
        <site name="s" pos="0.2 0.1 0" euler="1 2 3"/>{{}}</body>"""
    child = f'<body name="b" pos="0.3 0 0" euler="0.1 0 0">{INERTIAL}<joint name="m"/></body>'
    text = mjcf(body.format(child))
    model, mj = load(text, strict=True), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj)
    for seed in range(3):
        q, v = model.random_state(seed)
        a = np.random.default_rng(seed).uniform(-1, 1, model.nv)
        state = convert.to_mujoco(model, mj, q, v, a)
        data.qpos[:], data.qvel[:], data.qacc[:] = state.q, state.v, state.a
        mujoco.mj_inverse(mj, data)
        mujoco.mj_kinematics(mj, data)
        for name in ("a", "b"):
            R, p = gb.frame_pose(model, q, name)
            np.testing.assert_allclose(p, data.body(name).xpos, atol=1e-12)
            np.testing.assert_allclose(R.ravel(), data.body(name).xmat, atol=1e-12)
        np.testing.assert_allclose(gb.frame_pose(model, q, "s")[1], data.site("s").xpos, atol=1e-12)
        force = convert.to_mujoco(model, mj, q, tau=gb.inverse_dynamics(model, q, v, a)).tau
        assert error(force, data.qfrc_inverse) < 1e-10
        back = convert.from_mujoco(model, mj, state.q, state.v, state.a, force)
        for x, known in zip(back, (q, v, a, gb.inverse_dynamics(model, q, v, a)), strict=True):
            np.testing.assert_allclose(x, known, atol=1e-9)


def chain(names: str) -> str:
    """Bodies in a row, hinges about y, 0.2 m apart."""
    text = ""
    for name in reversed(names):
        text = f"""<body name="{name}" pos="0.2 0 0">{INERTIAL}<joint name="q{name}"
            axis="0 1 0" ref="0.1"/><site name="s{name}" pos="0.05 0 0.1"/>{text}</body>"""
    return text


TWO = chain("abc") + chain("xyz")
EQUALITIES = {  # text: rows
    '<connect body1="c" body2="z" anchor="0.2 0 0"/>': 3,
    '<connect site1="sc" site2="sz"/>': 3,
    '<weld body1="b" body2="y"/>': 6,
    '<weld body1="b" body2="y" torquescale="0"/>': 3,
    '<weld site1="sb" site2="sy"/>': 6,
    '<joint joint1="qa" joint2="qx" polycoef="0.1 2 0 0 0"/>': 1,
    '<joint joint1="qa" joint2="qx" polycoef="0.1 2 0.3 -0.2 0.1"/>': 1,
    '<tendon tendon1="t" tendon2="u" polycoef="0.1 2 0 0 0"/>': 1,
    '<tendon tendon1="t" tendon2="u" polycoef="0.1 2 0.5 0 0"/>': 1,
    '<tendon tendon1="t"/>': 1,
}
TENDONS = """<tendon><fixed name="t"><joint joint="qa" coef="1"/><joint joint="qb" coef="0.5"/>
    </fixed><fixed name="u"><joint joint="qx" coef="-1"/><joint joint="qy" coef="2"/></fixed>
    </tendon>"""


@pytest.mark.parametrize("text", EQUALITIES)
def test_equalities_are_those_of_mujoco(text):
    """Our residual and K agree with MuJoCo's, which are zero together at an assembled state."""
    source = mjcf(TWO, f"{TENDONS}<equality>{text}</equality>")
    model, mj = load(source, strict=True), mujoco.MjModel.from_xml_string(source)
    assert sum(loop.rows for loop in model.loops) == EQUALITIES[text]
    data = mujoco.MjData(mj)
    for seed in range(3):
        q, v = model.random_state(seed)
        state = convert.to_mujoco(model, mj, q, v)
        data.qpos[:], data.qvel[:] = state.q, state.v
        mujoco.mj_forward(mj, data)
        rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        assert np.abs(data.efc_pos[rows]).max() < 1e-9
        assert np.abs(data.efc_vel[rows]).max() < 1e-8  # the velocities keep them closed
        tau = np.ones(model.nv)
        a = gb.forward_dynamics(model, q, v, tau)
        assert error(a, saddle_point(model, q, v, tau)) < 1e-8


def test_a_joint_held_by_an_equality_is_welded():
    text = mjcf(TWO, '<equality><joint joint1="qb" polycoef="0.3 0 0 0 0"/></equality>')
    model, mj = load(text, strict=True), mujoco.MjModel.from_xml_string(text)
    assert model.nv == 5
    data = mujoco.MjData(mj)
    data.joint("qb").qpos[:] = 0.4  # qpos0 + 0.3
    for name in ("qa", "qc"):
        data.joint(name).qpos[:] = 0.0
    mujoco.mj_kinematics(mj, data)
    R, p = gb.frame_pose(model, np.zeros(5), "c")
    np.testing.assert_allclose(p, data.body("c").xpos, atol=1e-12)
    np.testing.assert_allclose(R.ravel(), data.body("c").xmat, atol=1e-12)


def test_defaults_includes_and_keyframes(tmp_path):
    (tmp_path / "part.xml").write_text(f"<mujoco>{chain('ab')}</mujoco>")
    text = mjcf('<include file="part.xml"/>', '<keyframe><key name="k1" qpos="1 2"/>'
                '<key name="k2" qpos="3 4"/></keyframe>')  # fmt: skip
    text = text.replace("<worldbody>", '<default><joint armature="0.2"/></default><worldbody>')
    (tmp_path / "robot.xml").write_text(text)
    for key, expected in ((None, [1, 2]), ("k2", [3, 4]), (0, [1, 2])):
        found = describe(tmp_path / "robot.xml", keyframe=key)
        np.testing.assert_allclose([found.reference["qa"][0], found.reference["qb"][0]], expected)
        assert [joint.armature for joint in found.build().joints] == [0.2, 0.2]
    with pytest.raises(InputError, match="no keyframe named 'k3': known: k1, k2"):
        load(tmp_path / "robot.xml", keyframe="k3")
    (tmp_path / "part.xml").write_text('<!DOCTYPE x [<!ENTITY a "b">]><mujoco/>')
    with pytest.raises(ModelError, match=r"part.xml, line 1: a document type declaration"):
        load(tmp_path / "robot.xml")


def test_missing_files_do_not_stop_the_dynamics():
    text = mjcf(
        chain("a").replace("<site", '<geom type="mesh" mesh="gone" material="wood"/><site'),
        '<asset><mesh name="gone" file="gone.stl"/><texture name="t" type="2d" file="t.png"/>'
        '<material name="wood" texture="t"/><hfield name="h" file="h.png" size="1 1 1 1"/></asset>',
    )
    assert load(text, strict=True).nv == 1
    bare = text.replace(INERTIAL, "")
    with pytest.raises(ModelError, match="mass and inertia of moving bodies"):
        quiet(bare)


def test_base_may_be_fixed_or_freed():
    free = mjcf(
        f'<body name="base" pos="0 0 1">{INERTIAL}<freejoint name="root"/>{chain("a")}</body>'
    )
    assert (load(free).nv, load(free, base="fixed").nv) == (7, 1)
    welded = free.replace('<freejoint name="root"/>', "")
    assert (load(welded).nv, load(welded, base="free").nv) == (1, 7)
    model = load(welded, base="free")
    np.testing.assert_allclose(model.neutral()[:3], [0, 0, 1])


def test_what_is_not_used_is_named():
    text = mjcf(
        chain("ab").replace('ref="0.1"', 'ref="0.1" damping="2" stiffness="3" frictionloss="1"', 1),
        """<tendon><spatial name="rope"><site site="sa"/><site site="sb"/></spatial></tendon>
        <equality><connect body1="a" body2="b" anchor="0 0 0" active="false" name="off"/>
        <tendon tendon1="rope" name="taut"/></equality>
        <actuator><position name="servo" joint="qa" kp="3"/><motor name="pull" tendon="rope"/>
        </actuator>""",
    )
    with pytest.warns(FormatWarning) as caught:
        model = load(text)
    messages = "\n".join(str(w.message) for w in caught)
    for part in ("equality 'off' is not active", "'taut' is ignored: it involves a spatial tendon",
                 "its servo law", "actuator 'pull' is ignored"):  # fmt: skip
        assert part in messages
    assert [a.name for a in model.actuators] == ["servo"]
    assert model.joint("qa").damping == 2.0
    with pytest.raises(ModelError, match="4 parts"):
        load(text, strict=True)


def test_armature_of_every_joint_kind():
    for joint in ('type="ball"', "", 'type="slide"'):
        body = f'<body name="a">{INERTIAL}<joint name="j" {joint} armature="0.5"/></body>'
        text = mjcf(body)
        model, mj = load(text, strict=True), mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(mj)
        q, v = model.random_state(1)
        a = np.ones(model.nv)
        state = convert.to_mujoco(model, mj, q, v, a)
        data.qpos[:], data.qvel[:], data.qacc[:] = state.q, state.v, state.a
        mujoco.mj_inverse(mj, data)
        ours = convert.to_mujoco(model, mj, q, tau=gb.inverse_dynamics(model, q, v, a)).tau
        assert error(ours, data.qfrc_inverse) < 1e-10
    free = f'<body name="a">{INERTIAL}<joint name="j" type="free" armature="0.5"/></body>'
    with pytest.warns(FormatWarning, match="armature of free joint 'j' is ignored"):
        load(mjcf(free))


def test_names_are_made_where_there_are_none():
    text = mjcf(
        f"<body>{INERTIAL}<joint/><joint axis='1 0 0'/><body>{INERTIAL}<joint/></body></body>"
    )
    assert load(text).v_names == ("body_1_joint_0", "body_1_joint_1", "body_2_joint")


def connected(a: str, b: str) -> str:
    text = f'<connect body1="{a}" body2="{b}" anchor="0 0 0"/>'
    return mjcf(TWO, f"<equality>{text}</equality>")


BAD = {
    "schema": (mjcf("<bodi/>"), "MuJoCo refuses it: .*bodi"),
    "unknown body": (connected("a", "q"), "MuJoCo refuses it"),
    "names": (mjcf(TWO + TWO), "MuJoCo refuses it: .*name"),
    "nan": (mjcf(TWO.replace("0.05 0 0.1", "nan 0 0", 1)), "<site>: pos=.* is not finite"),
    "nan quaternion": (mjcf(TWO.replace('pos="0.2 0 0"', 'quat="nan 0 0 1"', 1)), "not finite"),
    "nan gravity": (mjcf(TWO, '<option gravity="0 nan 0"/>'), "<option>: gravity=.* not finite"),
    "not mjcf": ("<mojoco/>", "<mojoco> is no robot description"),
    "itself": (connected("a", "a"), "joins a body to itself|MuJoCo refuses it"),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case):
    text, message = BAD[case]
    with pytest.raises(gb.GrublerError, match=message):
        quiet(text)


def test_keyframe_is_for_mjcf():
    with pytest.raises(InputError, match="keyframe= is for MJCF"):
        load("<robot/>", keyframe=1)
