"""Descriptions at the border of what is valid: what is accepted, what is refused, and the words."""

import warnings

import numpy as np
import pytest
from shared_models import error, quiet

import grubler as gb
from grubler.errors import InputError, ModelError
from grubler.formats import FormatWarning, convert, describe, load

LINK = """<link name="{}"><inertial><origin xyz="0.1 0 0"/><mass value="{}"/>
<inertia ixx="{}" ixy="0" ixz="0" iyy="{}" iyz="0" izz="{}"/></inertial></link>"""
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="0 0 0.3"/>
<axis xyz="0 1 0"/></joint>"""
ARM = LINK.format("arm", 1, 0.02, 0.03, 0.04)


def urdf(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


# Inertias that are no body's own


NEGATIVE = LINK.format("tag", 1e-6, -3.5e-8, 3.5e-8, 9e-8)


@pytest.mark.parametrize("carrier_first", [True, False])
def test_a_welded_link_counts_with_its_carrier(carrier_first):
    """The moments are summed about the common centre of mass, by the parallel axis theorem."""
    links = [ARM, NEGATIVE] if carrier_first else [NEGATIVE, ARM]
    text = urdf('<link name="base"/>', *links, JOINT.format("j", "revolute", "base", "arm"),
                JOINT.format("w", "fixed", "arm", "tag"))  # fmt: skip
    (said,) = describe(text).complaints.messages
    assert "inertia of body 'tag' is not positive" in said
    assert "it counts together with what is welded to it" in said
    body = quiet(text).body("arm")
    m, n, a, b = 1.0, 1e-6, np.array([0.1, 0, 0]), np.array([0.1, 0, 0.3])
    com = (m * a + n * b) / (m + n)
    total = np.diag([0.02, 0.03, 0.04]) + np.diag([-3.5e-8, 3.5e-8, 9e-8])
    for mass, x in ((m, a - com), (n, b - com)):
        total += mass * (x @ x * np.eye(3) - np.outer(x, x))
    assert error(body.inertia, total) < 1e-15 and error(body.com, com) < 1e-15
    with pytest.raises(ModelError, match="is not positive"):
        load(text, strict=True)


def test_a_moving_body_of_negative_inertia_is_refused():
    moving = urdf('<link name="base"/>', NEGATIVE, JOINT.format("j", "revolute", "base", "tag"))
    with pytest.raises(ModelError, match=r"line 1, <inertial>: inertia of body 'tag' is not pos"):
        quiet(moving)
    heavy = LINK.format("tag", 1, -0.5, 0.5, 0.9)
    welded = urdf('<link name="base"/>', ARM, heavy, JOINT.format("j", "revolute", "base", "arm"),
                  JOINT.format("w", "fixed", "arm", "tag"))  # fmt: skip
    with pytest.raises(ModelError, match="inertia of body 'arm' is not positive"):
        quiet(welded)  # the sum is no body's either
    negative = welded.replace('mass value="1"', 'mass value="-1"')
    with pytest.raises(ModelError, match="negative mass"):
        quiet(negative)


def test_a_welded_link_of_an_sdf_counts_with_its_carrier():
    link = """<link name="{}"><inertial><mass>{}</mass><inertia><ixx>{}</ixx><iyy>{}</iyy>
    <izz>{}</izz></inertia></inertial></link>"""
    joint = '<joint name="{}" type="{}"><parent>{}</parent><child>{}</child></joint>'
    text = "".join([
        '<sdf version="1.9"><model name="m">', link.format("arm", 1, 0.02, 0.03, 0.04),
        link.format("tag", 1e-6, -3.5e-8, 3.5e-8, 9e-8), joint.format("j", "ball", "world", "arm"),
        joint.format("w", "fixed", "arm", "tag"), "</model></sdf>",
    ])  # fmt: skip
    assert "counts together" in "".join(describe(text).complaints.messages)
    expected = np.diag([0.02 - 3.5e-8, 0.03 + 3.5e-8, 0.04 + 9e-8])
    assert error(quiet(text).body("arm").inertia, expected) < 1e-15


def test_robots_with_links_of_a_milligram_load():
    robots = pytest.importorskip("pinocchio") and _examples()
    path = robots / "tiago_description" / "robots" / "tiago_no_hand.urdf"
    import pinocchio as pin

    model, other = quiet(path), pin.buildModelFromUrdf(str(path))
    q = model.random_state(0)[0]
    state = convert.to_pinocchio(model, other, q)
    M = pin.crba(other, other.createData(), state.q)
    M = np.triu(M) + np.triu(M, 1).T
    order = [other.joints[other.getJointId(n)].idx_v for n in model.v_names]
    assert error(gb.mass_matrix(model, q), M[np.ix_(order, order)]) < 1e-12


def _examples():
    import sys
    from pathlib import Path

    for place in map(Path, sys.path):
        found = place / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
        if found.is_dir():
            return found
    return pytest.skip("no example-robot-data")


# Names


def test_a_robot_on_a_link_called_world_may_float():
    parts = ['<link name="world"/>', LINK.format("trunk", 2, 0.2, 0.3, 0.4), ARM]
    joints = [JOINT.format("mount", "fixed", "world", "trunk"),
              JOINT.format("j", "revolute", "trunk", "arm")]  # fmt: skip
    text = urdf(*parts, *joints)
    assert load(text).nv == 1
    model = load(text, base="free")
    assert model.nv == 7 and model.body("trunk").joint.name == "root_joint"
    assert np.array_equal(model.neutral()[:7], [0, 0, 0.3, 1, 0, 0, 0])
    renamed = load(urdf(*parts[1:], joints[1]), base="free")
    q, v = model.random_state(1)
    tau = np.arange(7.0)
    for f in (gb.forward_dynamics, gb.inverse_dynamics):
        assert error(f(model, q, v, tau), f(renamed, q, v, tau)) < 1e-15
    with pytest.raises(ModelError, match="'world', the ground, and carries mount"):
        load(text.replace('"mount" type="fixed"', '"mount" type="revolute"'), base="free")
    with pytest.raises(ModelError, match="rename the link"):
        load(text.replace('<link name="world"/>', LINK.format("world", 1, 1, 1, 1)))


def test_a_welded_link_is_named_as_a_frame():
    model = quiet(
        urdf('<link name="base"/>', ARM, LINK.format("tool", 1, 1, 1, 1),
             JOINT.format("j", "revolute", "base", "arm"),
             JOINT.format("w", "fixed", "arm", "tool"))
    )  # fmt: skip
    for name, on in (("tool", "body 'arm'"), ("base", "the world")):
        with pytest.raises(ModelError, match=rf"a frame on {on}: use model.frame\('{name}'\)"):
            model.body(name)


HYRODYN = """submechanisms: [{{contextual_name: s, type: {}, jointnames_spanningtree: [j],
jointnames_independent: [j]}}]"""


@pytest.mark.parametrize("kind", ["R", "3R", "'R'", "RRP", "''", "2SPU+1U", "rrPr", "NUMERICAL"])
def test_a_closed_mechanism_without_loops_is_said(kind, tmp_path):
    pytest.importorskip("yaml")
    parts = ['<link name="base"/>', ARM, JOINT.format("j", "revolute", "base", "arm")]
    (tmp_path / "r.urdf").write_text(urdf(*parts))
    (tmp_path / "r.yaml").write_text(HYRODYN.format(kind))
    said = describe(tmp_path / "r.yaml").complaints.messages
    closed = kind in ("2SPU+1U", "rrPr", "NUMERICAL")
    assert bool(said) == closed
    assert not closed or f"mechanism of type {kind}: its loops stay open" in said[0]


# Joints that our model has welded, in MuJoCo's layout


BODY = '<inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>'
HELD = f"""<mujoco><compiler angle="radian"/><worldbody><body name="a"><joint name="i"/>{BODY}
<body name="b"><joint name="j" ref="0.2"/>{BODY}</body></body></worldbody>
<equality><joint joint1="j" polycoef="0.5 0 0 0 0"/></equality></mujoco>"""
FREE = f"""<mujoco><worldbody><body name="a" pos="1 2 3" quat="0.6 0 0.8 0"><freejoint name="f"/>
{BODY}<body name="b"><joint name="j"/>{BODY}</body></body></worldbody></mujoco>"""
EXPECTED = {
    "held": (HELD, {}, [0.3, 0.7]),
    "fixed base": (FREE, {"base": "fixed"}, [1, 2, 3, 0.6, 0, 0.8, 0, 0.3]),
}


@pytest.mark.parametrize("case", EXPECTED)
def test_welded_joints_rest_where_mujoco_has_them(case):
    mujoco = pytest.importorskip("mujoco")
    text, options, expected = EXPECTED[case]
    model, other = load(text, **options), mujoco.MjModel.from_xml_string(text)
    state = convert.to_mujoco(model, other, [0.3], [1.0], [2.0], [3.0])
    np.testing.assert_allclose(state.q, expected, atol=1e-15)
    data = mujoco.MjData(other)
    data.qpos[:] = state.q
    mujoco.mj_kinematics(other, data)
    np.testing.assert_allclose(gb.frame_pose(model, [0.3], "b")[1], data.body("b").xpos, atol=1e-14)
    back = convert.from_mujoco(model, other, *state)
    assert [x.tolist() for x in back] == [[0.3], [1.0], [2.0], [3.0]]
    negative = np.array(state.q)
    negative[3:7] *= -1 if case == "fixed base" else 1
    assert convert.from_mujoco(model, other, negative).q.tolist() == [0.3]


@pytest.mark.parametrize("case", EXPECTED)
def test_welded_joints_that_move_are_refused(case):
    mujoco = pytest.importorskip("mujoco")
    text, options, _ = EXPECTED[case]
    model, other = load(text, **options), mujoco.MjModel.from_xml_string(text)
    q, v, a, _ = convert.to_mujoco(model, other, [0.3], [1.0], [2.0])
    joint = 1 if case == "held" else 0
    iq, iv = other.jnt_qposadr[joint], other.jnt_dofadr[joint]
    for what in "qva":
        given = {"q": q.copy(), "v": v.copy(), "a": a.copy()}
        given[what][iq if what == "q" else iv] += 1e-3
        with pytest.raises(InputError, match="is welded in"):
            convert.from_mujoco(model, other, **given)


# Axes of zero, and MuJoCo's own warnings


@pytest.mark.parametrize("tag", ["axis", "axis2"])
def test_a_gearbox_about_no_axis_is_refused(tag):
    link = """<link name="{}"><inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz>
    </inertia></inertial></link>"""
    hinge = """<joint name="{}" type="revolute"><parent>world</parent><child>{}</child>
    <axis><xyz>0 0 1</xyz></axis></joint>"""
    gears = """<joint name="g" type="gearbox"><parent>a</parent><child>b</child>
    <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2><gearbox_ratio>2</gearbox_ratio>
    <gearbox_reference_body>world</gearbox_reference_body></joint>"""
    head = '<sdf version="1.9"><model name="m">' + link.format("a") + link.format("b")
    text = f"{head}{hinge.format('i', 'a')}{hinge.format('j', 'b')}{{}}</model></sdf>"
    assert load(text.format(gears)).nv == 1
    zero = gears.replace(f"<{tag}><xyz>0 0 1", f"<{tag}><xyz>0 0 0")
    with pytest.raises(ModelError, match=r"joint 'g': axis .* is not a direction"):
        load(text.format(zero))


def test_warnings_of_mujoco_are_said_as_ours():
    pytest.importorskip("mujoco")
    twice = f'<body name="a"><joint name="i"/><joint name="k"/>{BODY}</body>'  # about one axis
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        load(f"<mujoco><worldbody>{twice}</worldbody></mujoco>")
    assert all(w.category is FormatWarning for w in heard)


def test_a_second_pin_on_a_hinge_is_a_redundant_loop():
    """A door on two hinges: the loop takes no freedom, and the dynamics is that without it."""
    parts = ['<link name="base"/>', ARM, JOINT.format("j", "revolute", "base", "arm")]
    pin = """<loop name="pin" type="spherical"><predecessor link="base"><origin xyz="0 0.5 0.3"/>
    </predecessor><successor link="arm"><origin xyz="0 0.5 0"/></successor></loop>"""
    model, without = load(urdf(*parts, pin)), load(urdf(*parts))
    assert (model.nv, len(model.loops), without.nv) == (1, 1, 1)
    for seed in range(3):
        q, v = model.random_state(seed)
        for f in (gb.forward_dynamics, gb.compile(gb.forward_dynamics, model)):
            a = f(q, v, [0.3]) if f is not gb.forward_dynamics else f(model, q, v, [0.3])
            assert error(a, gb.forward_dynamics(without, q, v, [0.3])) < 1e-15
        assert model.loop_gap(q) < 1e-15


OPTIONS = {
    "root": ({"root": 3}, "root takes names of folders, not int"),
    "packages": ({"package_dirs": [3]}, "package_dirs takes names of folders, not int"),
    "reference": ({"reference": [0.1]}, "reference is a mapping"),
    "keyframe": ({"keyframe": [1]}, "keyframe is a name or a number, not list"),
    "flag": ({"keyframe": True}, "keyframe is a name or a number, not bool"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_of_another_type_are_refused(case):
    pytest.importorskip("mujoco")
    options, message = OPTIONS[case]
    with pytest.raises(InputError, match=message):
        load(HELD, **options)


def test_one_folder_of_packages_needs_no_list(tmp_path):
    (tmp_path / "bot").mkdir()
    text = urdf('<link name="base"/>', ARM, JOINT.format("j", "revolute", "base", "arm"))
    (tmp_path / "bot" / "r.urdf").write_text(text)
    for given in (tmp_path, str(tmp_path), [tmp_path]):
        assert load("package://bot/r.urdf", package_dirs=given).nv == 1
