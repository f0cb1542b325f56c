"""URDF and what has been added to it for loops."""

import numpy as np
import pytest
from shared_models import error, quiet, saddle_point

import grubler as gb
from grubler.errors import InputError, ModelError
from grubler.formats import FormatWarning, load, load_urdf

LINK = """<link name="{}"><inertial><mass value="1"/><origin xyz="0.1 0 0" rpy="0 0 1.2"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link>"""
JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/>
<axis xyz="0 1 0"/>{3}<limit lower="-1" upper="2" velocity="3" effort="4"/></joint>"""


def robot(*parts: str) -> str:
    return '<?xml version="1.0"?>\n<robot name="r">\n' + "\n".join(parts) + "\n</robot>"


def link(name: str) -> str:
    return LINK.format(name)


def joint(name: str, parent: str, child: str, extra: str = "") -> str:
    return JOINT.format(name, parent, child, extra)


ARM = (link("a"), link("b"), joint("j", "a", "b"))


def test_reads_text_with_limits_and_welds_the_base():
    model = load_urdf(robot(*ARM))
    assert [body.name for body in model.bodies] == ["b"]
    j = model.joint("j")
    assert (j.lower, j.upper, j.velocity_limit, j.effort_limit) == (-1, 2, 3, 4)
    np.testing.assert_array_equal(j.motion.axis, [0, 1, 0])
    assert load_urdf(robot(*ARM), base="free").nv == 7


@pytest.mark.parametrize(
    ("kind", "nv"),
    [("continuous", 1), ("prismatic", 1), ("fixed", 0), ("floating", 6), ("planar", 3)],
)
def test_reads_every_joint_type(kind, nv):
    text = robot(*ARM, link("c"), joint("k", "b", "c").replace("revolute", kind))
    assert load_urdf(text).nv == 1 + nv


def test_a_root_link_called_world_is_the_world():
    text = robot('<link name="world"/>', link("b"), joint("j", "world", "b"))
    assert load_urdf(text).nv == 1
    with pytest.raises(
        ModelError, match="line 3, <link>: base='free', but the root link is 'world'"
    ):
        load_urdf(text, base="free")


def test_what_is_not_understood_is_named_with_its_line():
    odd = robot(*ARM, "<gazebo/>", "<lop/>", "<material/>").replace("<mass", '<mass unit="lb"')
    with pytest.warns(FormatWarning) as caught:
        load_urdf(odd)
    messages = [str(warning.message) for warning in caught]
    assert messages == [
        "lines 3, 5: attribute unit= of <mass> is ignored",
        "line 9: <gazebo> in <robot> is ignored",
        "line 10: <lop> in <robot> is ignored",
    ]
    with pytest.raises(ModelError, match="line 3: attribute unit=") as refused:
        load_urdf(odd, strict=True)
    assert "4 parts" in str(refused.value) and "line 10: <lop>" in str(refused.value)
    load_urdf(robot(*ARM, "<material/>"), strict=True)


def test_friction_is_read():
    damped = joint("j", "a", "b", '<dynamics damping="0.5" friction="0.1" other="1"/>')
    with pytest.warns(FormatWarning, match="attribute other= of <dynamics>"):
        model = load_urdf(robot(link("a"), link("b"), damped))
    assert (model.joint("j").damping, model.joint("j").friction) == (0.5, 0.1)
    with pytest.raises(ModelError, match=r"damping of joint 'j' is -0.5: give a number >= 0"):
        load_urdf(robot(link("a"), link("b"), damped.replace("0.5", "-0.5").replace("other", "x")))


def test_an_inertia_no_body_can_have_is_a_warning_an_impossible_one_an_error():
    thin = robot(*ARM).replace('ixx="1"', 'ixx="9"')
    with pytest.warns(FormatWarning, match="triangle inequality"):
        load_urdf(thin)
    with pytest.raises(ModelError, match=r"line 3: .*triangle inequality"):
        load_urdf(thin, strict=True)
    with pytest.raises(ModelError, match=r"line 5, <inertial>.*not positive"):
        load_urdf(robot(*ARM).replace('ixx="1"', 'ixx="-1"'))


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><robot name="&b;"/>'
BAD = {
    "not well-formed": ("<robot><link></robot>", "not well-formed XML: mismatched tag: line 1"),
    "entity bomb": (BOMB, "line 1: a document type declaration"),
    "not a robot": ("<sdf/>", "a URDF starts with <robot>"),
    "empty": ("<robot/>", "no <link>"),
    "no such file": ("nowhere/robot.urdf", "cannot read 'nowhere/robot.urdf'"),
    "unknown link": (robot(*ARM, joint("k", "b", "bb")), "'k': no link named 'bb'.*'b'"),
    "unknown type": (robot(*ARM).replace("revolute", "revolut"), "joint type named 'revolut'"),
    "unknown leader": (
        robot(link("a"), link("b"), joint("j", "a", "b", '<mimic joint="i"/>')),
        "'j': no joint named 'i'",
    ),
    "link twice": (robot(*ARM, link("a")), "already a link named 'a', on line 3"),
    "joint twice": (robot(*ARM, link("c"), joint("j", "b", "c")), "already a joint named 'j'"),
    "two roots": (robot(*ARM, link("c")), "several root links: a, c"),
    "two parents": (robot(*ARM, link("c"), joint("k", "c", "b")), "'b' is the child of two joints"),
    "cycle": (robot(link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")), "cycle"),
    "no child": (
        robot(*ARM).replace('<child link="b"/>', ""),
        "line 7, <joint>: <child> is missing",
    ),
    "no name": (
        robot(*ARM).replace('link name="b"', "link"),
        "line 5, <link>: the attribute name=",
    ),
    "two axes": (
        robot(link("a"), link("b"), joint("j", "a", "b", "<axis/>")),
        "<axis>: given twice in <joint>",
    ),
    "bad number": (
        robot(*ARM).replace("0.1 0 0", "0.1 0 zero"),
        'xyz="0.1 0 zero" is not 3 finite',
    ),
    "not finite": (robot(*ARM).replace("0.1 0 0", "0.1 0 nan"), 'xyz="0.1 0 nan" is not 3 finite'),
    "no mass": (robot(*ARM).replace('<mass value="1"/>', ""), "<inertial>: <mass> is missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case):
    text, message = BAD[case]
    with pytest.raises(ModelError, match=message):
        load_urdf(text)


def test_refuses_an_unknown_base():
    with pytest.raises(InputError, match="'fixed' or 'free'"):
        load_urdf(robot(*ARM), base="floating")


# Loops: a crank on each of two pins of the base, and a rod on the first crank.

BAR = """<link name="{}"><inertial><mass value="1"/><origin xyz="{} 0 0"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02"/></inertial></link>"""
HINGE = """<joint name="{0}" type="continuous" {4}><parent link="{1}"/><child link="{2}"/>
<origin xyz="{3} 0 0"/><axis xyz="0 0 1"/></joint>"""
LINKS = [BAR.format("base", 0), BAR.format("crank", 0.1), BAR.format("rod", 0.3),
         BAR.format("rocker", 0.2)]  # fmt: skip
START = {"q1": 1.0, "q2": -0.6, "q3": 1.5}


def four_bar(closure: str, flag: str = "") -> str:
    joints = [
        HINGE.format("q1", "base", "crank", 0, flag),
        HINGE.format("q2", "crank", "rod", 0.2, ""),
        HINGE.format("q3", "base", "rocker", 0.5, ""),
    ]
    return robot(*LINKS, *joints, closure)


PIN = """<loop name="pin" type="{}"><predecessor link="rod"><origin xyz="0.5 0 0"/></predecessor>
<successor link="rocker"><origin xyz="0.4 0 0"/></successor><axis xyz="0 0 1"/></loop>"""
CLOSURES = {
    "loop": PIN.format("revolute"),
    "continuous": PIN.format("continuous"),
    "loop as a ball": PIN.format("spherical"),
    "loop_joint": """<loop_joint name="pin"><link1 link="rod" xyz="0.5 0 0" rpy="0 0 1"/>
        <link2 link="rocker" xyz="0.4 0 0"/><axis xyz="0 0 1"/></loop_joint>""",
    "constraint": """<constraint name="pin" type="revolute"><parent link="rod"/>
        <parent_origin xyz="0.5 0 0"/><parent_axis xyz="0 0 2"/><child link="rocker"/>
        <child_origin xyz="0.4 0 0" rpy="1.5707963267948966 0 0"/><child_axis xyz="0 1 0"/>
        </constraint>""",
    "ball_constraint": """<drake:ball_constraint><drake:ball_constraint_body_A name="rod"/>
        <drake:ball_constraint_body_B name="rocker"/>
        <drake:ball_constraint_p_AP value="0.5 0 0"/>
        <drake:ball_constraint_p_BQ value="0.4 0 0"/></drake:ball_constraint>""",
}


@pytest.mark.parametrize("kind", CLOSURES)
def test_every_way_to_close_a_four_bar_is_the_same(kind):
    known = load(four_bar(CLOSURES["loop"]), strict=True, reference=START)
    model = load(four_bar(CLOSURES[kind]), strict=True, reference=START)
    assert model.nv == 1
    q, v = known.random_state(1)
    v_here = gb.spanning_state(known, q, v).velocities
    v_here = v_here[[known.spanning_names.index(n) for n in model.v_names]]
    a, b = (_spin(m, q, x) for m, x in ((known, v), (model, v_here)))
    assert error(b, a) < 1e-9


def _spin(model, q, v):
    a = gb.forward_dynamics(model, q, v, np.zeros(1))
    assert error(a, saddle_point(model, q, v, np.zeros(1))) < 1e-9
    return gb.spanning_state(model, q, v, a).accelerations


def test_independent_is_honoured_where_a_loop_is():
    for name in ("q1", "q2", "q3"):
        flags = [f'name="{name}" type="continuous" independent="true"']
        text = four_bar(PIN.format("revolute")).replace(f'name="{name}" type="continuous"', *flags)
        assert load(text, reference=START).v_names == (name,)
    alone = robot(*ARM).replace('name="j"', 'name="j" independent="false"')
    with pytest.warns(FormatWarning, match='independent="false" is ignored'):
        model = load(alone)
    assert model.joint("j").independent is None
    model = load(robot(*ARM).replace('name="j"', 'name="j" independent="true"'), strict=True)
    assert model.joint("j").independent is None
    with pytest.raises(ModelError, match="neither true nor false"):
        load(robot(*ARM).replace('name="j"', 'name="j" independent="maybe"'))


def test_two_independent_joints_of_a_four_bar_are_refused():
    text = four_bar(PIN.format("revolute")).replace('type="continuous"', 'type="continuous" '
                                                    'independent="true"')  # fmt: skip
    with pytest.raises(gb.PartitionError, match="cannot be independent"):
        load(text, reference=START)


COUPLING = """<coupling name="gear"><predecessor link="{}"/><successor link="{}"/>
<ratio value="{}"/></coupling>"""


def test_a_coupling_relates_chains():
    """The rocker turns three times as much as crank and rod together."""
    model = load(four_bar(COUPLING.format("rod", "rocker", 3)), strict=True)
    assert model.loops[0].describe() == "q3 = 3 q1 + 3 q2"
    model = load(four_bar(COUPLING.format("rocker", "rod", 3)), strict=True)
    assert model.loops[0].describe() == "q2 = 3 q3 + -1 q1"
    with pytest.raises(ModelError, match="no moving joint leads"):
        load(four_bar(COUPLING.format("rod", "base", 3)))


def test_loops_and_couplings_may_share_a_cluster():
    rotor = BAR.format("rotor", 0) + HINGE.format("q4", "base", "rotor", 0.1, "")
    gear = COUPLING.format("crank", "rotor", -6)
    model = load(four_bar(rotor + gear + PIN.format("revolute")), strict=True, reference=START)
    assert (model.nv, len(model.clusters)) == (1, 1)
    q, v = model.random_state(0)
    assert error(gb.forward_dynamics(model, q, v, np.ones(1)),
                 saddle_point(model, q, v, np.ones(1))) < 1e-9  # fmt: skip


def test_loops_to_the_world_and_two_loops_on_one_pair():
    text = four_bar(PIN.format("revolute").replace("rocker", "world").replace("0.4 0", "0.5 0.2"))
    assert load(text, base="free", reference=START).nv == 6 + 3 - 5
    twice = PIN.format("revolute") + PIN.format("revolute").replace("pin", "pin2")
    model = load(four_bar(twice), reference=START)
    assert model.nv == 1 and sum(loop.rows for loop in model.loops) == 10


def test_transmissions_are_actuators_and_couplings():
    simple = """<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
        <joint name="j"><hardwareInterface>x</hardwareInterface></joint>
        <actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator>
        </transmission>"""
    actuator = load(robot(*ARM, simple), strict=True).actuators[0]
    assert (actuator.name, actuator.gear, actuator.effort_limit) == ("m", 50.0, 4 / 50)
    linear = """<transmission name="t"><type>MultiJointLinearTransmission</type><joint name="q3">
        <depends_on joint="q1" multiplier="2" offset="0.5"/><depends_on joint="q2"/></joint>
        </transmission>"""
    model = load(four_bar(linear), strict=True)
    assert model.loops[0].describe() == "q3 = 2 q1 + 1 q2 + 0.5"
    with pytest.warns(FormatWarning, match="DifferentialTransmission is ignored"):
        load(robot(*ARM, simple.replace("Simple", "Differential")))
    with pytest.raises(ModelError, match="no joint named 'q9'"):
        load(four_bar(linear.replace("q1", "q9")))


def test_rotor_inertia_of_drake_is_armature():
    text = """<transmission><type>SimpleTransmission</type><joint name="j"/><actuator name="m">
        <drake:rotor_inertia value="0.01"/><drake:gear_ratio value="10"/></actuator>
        </transmission>"""
    assert load(robot(*ARM, text), strict=True).joint("j").armature == 1.0


def test_masses_that_move_nothing_are_named():
    bare = robot(*ARM, '<link name="c"/>', joint("k", "b", "c"))
    with pytest.warns(FormatWarning, match="'c' moves at the end of a chain without mass"):
        load(bare)
    load(bare.replace('name="k" type="revolute"', 'name="k" type="fixed"'), strict=True)
    load(robot(*ARM, '<link name="c"/>', joint("k", "b", "c"), link("d"), joint("l", "c", "d")),
         strict=True)  # fmt: skip
    with pytest.raises(ModelError, match=r"line 3, <inertial>: .*negative mass -1 kg"):
        load(robot(*ARM).replace('value="1"', 'value="-1"'))
    point = robot(*ARM).replace('<inertia ixx="1" iyy="1" izz="1"/>', "")
    with pytest.warns(FormatWarning, match="a point mass is used"):
        load(point)


BAD_LOOPS = {
    "unknown link": (PIN.replace("rocker", "roker").format("revolute"), "line .*'roker'.*'rocker'"),
    "unknown type": (PIN.format("revolut"), "loop type named 'revolut'"),
    "no type": (PIN.replace('type="{}"', ""), "the attribute type= is missing"),
    "no successor": ('<loop name="l" type="fixed"><predecessor link="rod"/></loop>',
                     "<successor> is missing"),
    "same name": (PIN.format("revolute") * 2, "already a loop or coupling named 'pin'"),
    "itself": (PIN.replace("rocker", "rod").format("revolute"), "joins a body to itself"),
    "zero axis": (PIN.replace("0 0 1", "0 0 0").format("revolute"), "is not a direction"),
    "nan": (PIN.replace("0.5 0 0", "nan 0 0").format("revolute"), "is not 3 finite numbers"),
    "out of reach": (PIN.replace("0.4 0 0", "9 0 0").format("revolute"), "cannot be closed"),
    "distance of none": (PIN.format("distance"), "give distance="),
    "unknown coupling": (COUPLING.format("rod", "rocker", 3).replace("name=", 'type="x" name='),
                         "no coupling type named 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_LOOPS)
def test_refuses_loops(case):
    text, message = BAD_LOOPS[case]
    with pytest.raises(gb.GrublerError, match=message):
        quiet(four_bar(text), reference=START)


def test_package_urls_and_xacro(tmp_path, monkeypatch):
    folder = tmp_path / "my_robot" / "urdf"
    folder.mkdir(parents=True)
    (folder / "arm.urdf").write_text(robot(*ARM))
    url = "package://my_robot/urdf/arm.urdf"
    assert load(url, package_dirs=[tmp_path]).nv == 1
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    assert load(url).nv == 1
    with pytest.raises(ModelError, match="ROS_PACKAGE_PATH"):
        load("package://other/arm.urdf")
    pytest.importorskip("xacro")
    text = robot(*ARM).replace("<robot", '<robot xmlns:xacro="http://ros.org/wiki/xacro"')
    (folder / "arm.xacro").write_text(text.replace('"0.1 0 0"', '"${1/10} 0 0"'))
    assert load(folder / "arm.xacro").bodies[0].com[0] == 0.1


def test_a_ground_link_does_not_float():
    text = robot('<link name="ground"/>', link("b"), joint("j", "ground", "b"))
    text = text.replace("revolute", "floating")
    assert load(text).nv == 6
    with pytest.raises(InputError, match="'j' frees the robot already"):
        load(text, base="free")


def test_mesh_files_are_not_needed():
    shown = LINK.replace("</link>", "<visual><geometry><mesh filename='package://x/y.stl'/>"
                         "</geometry></visual></link>")  # fmt: skip
    assert load(robot(shown.format("a"), link("b"), joint("j", "a", "b")), strict=True).nv == 1
