"""What a reader does not take as written is said: warnings that name it, errors when strict."""

import pytest
from shared_models import quiet

import grubler as gb
from grubler.errors import ModelError
from grubler.formats import describe, load

INERTIA = '<inertia ixx="1" iyy="1" izz="1"/>'
URDF = f"""<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>{INERTIA}
</inertial></link><joint name="j" type="revolute"><parent link="a"/><child link="b"/>
<origin xyz="0 0 1"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint></robot>"""
SDF = """<sdf version="1.9"><model name="m"><link name="l"><pose>0 0 1 0 0 0</pose><inertial>
<mass>2</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>
<joint name="j" type="revolute"><parent>world</parent><child>l</child>
<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""


def messages(text: str) -> str:
    return "\n".join(describe(text).complaints.messages)


def test_nothing_is_said_of_what_is_read():
    assert not messages(URDF) and not messages(SDF)
    assert load(URDF, strict=True).nv == load(SDF, strict=True).nv == 1
    assert load(DRIVEN, strict=True).actuators[0].gear == 5.0


URDFS = {  # (what stands there, what is put there instead): what is said
    ("<limit", '<collision><geometry/></collision><limit'): "<collision> in <joint> is ignored",
    ('<link name="a"/>', '<link name="a"/><visual/>'): "<visual> in <robot> is ignored",
    ('<link name="a"/>', '<link name="a"><calibration/></link>'): "<calibration> in <link>",
    ('<link name="a"/>', '<link name="a">0 0 1</link>'): "the text '0 0 1' in <link> is ignored",
    ('<mass value="1"/>', '<mass value="1">2</mass>'): "the text '2' in <mass> is ignored",
}  # fmt: skip
MOTOR = """<transmission name="t"><type>SimpleTransmission</type><joint name="j">
<hardwareInterface>e</hardwareInterface></joint><actuator name="m"><mechanicalReduction>5
</mechanicalReduction></actuator></transmission></robot>"""
MOTORS = {
    ("mechanicalReduction", "mechanicalreduction"): "<mechanicalreduction> in <actuator> is",
    ('<actuator name="m">', '<actuator name="m" gear="5">'): "attribute gear= of <actuator>",
    ("</joint>\n<act", "</joint>9<act"): "the text '9' in <transmission> is ignored",
}
SDFS = {
    ("<mass>2</mass>", "<mass></mass>"): "<mass> is empty: SDF's default is used",
    ("<ixx>1</ixx>", "<ixx> </ixx>"): "<ixx> is empty",
    ("<pose>0 0 1 0 0 0</pose>", "<pose/>"): "<pose> is empty",
    ("<xyz>0 1 0</xyz>", "<xyz/>"): "<xyz> is empty",
    ("<link name", "1 2<link name"): "the text '1 2' in <model> is ignored",
    ("<mass>", "<visual/><mass>"): "<visual> in <inertial> is ignored",
    ("<inertial>", '<inertial auto="true">'): "attribute auto= of <inertial> is ignored",
}


DRIVEN = URDF.replace("</robot>", MOTOR.replace("</joint><act", "</joint>\n<act"))
CASES = [
    *((URDF, c) for c in URDFS), *((DRIVEN, c) for c in MOTORS), *((SDF, c) for c in SDFS),
]  # fmt: skip


@pytest.mark.parametrize("text, case", CASES)
def test_what_is_not_read_is_said(text, case):
    changed = text.replace(*case)
    assert changed != text
    assert (URDFS | MOTORS | SDFS)[case] in messages(changed)
    with pytest.raises(ModelError, match="cannot be used as written"):
        load(changed, strict=True)


def test_an_empty_pose_may_say_what_it_is_relative_to():
    relative = '<pose relative_to="__model__"/>'
    assert not messages(SDF.replace("<pose>0 0 1 0 0 0</pose>", relative))
    assert not messages(SDF.replace("<inertial>", '<inertial auto="false">'))


@pytest.mark.parametrize("number", ["1_000", "١٢", "0x10", "1e", "--1", "1d3", "nan", "１"])
def test_numbers_are_decimal(number):
    for text, old, new in (
        (URDF, 'value="1"', f'value="{number}"'), (URDF, 'lower="-1"', f'lower="{number}"'),
        (SDF, "<mass>2", f"<mass>{number}"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match="is not one finite number"):
            load(text.replace(old, new))


@pytest.mark.parametrize("number", ["1", "+1", "1.", ".1", "-1e-3", "1.5E+2"])
def test_all_decimal_notations_are_read(number):
    model = load(URDF.replace('xyz="0 0 1"', f'xyz="0 0 {number}"'))
    assert model.bodies[0].joint.placement.r[2] == float(number)


@pytest.mark.parametrize("number", ["1e41", "1e200", "1e308"])
def test_numbers_that_overflow_are_refused(number):
    for text, old, new in (
        (URDF, 'mass value="1"', 'mass value="{}"'), (URDF, 'ixx="1"', 'ixx="{}"'),
        (URDF, 'xyz="0 0 1"', 'xyz="0 0 {}"'), (SDF, "<mass>2", "<mass>{}"),
        (SDF, "<pose>0 0 1", "<pose>0 0 {}"), (SDF, "<ixx>1", "<ixx>{}"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=r"is beyond 1e\+40"):
            load(text.replace(old, new.format(number)))
    assert load(URDF.replace('effort="9"', f'effort="{number}"')).joints[0].effort_limit is None


@pytest.mark.parametrize("number", [1e41, 1e308])
def test_a_builder_refuses_numbers_that_overflow(number):
    b = gb.ModelBuilder()
    b.add_body("a")
    for add in (
        lambda: b.add_body("b", number),
        lambda: b.add_body("b", 1.0, (0, number, 0)),
        lambda: b.add_body("b", 1.0, (0, 0, 0), (number, 0, 0, number, 0, number)),
        lambda: b.add_joint("j", "revolute", "world", "a", xyz=(number, 0, 0)),
    ):
        with pytest.raises(ModelError, match=r"beyond 1e\+40"):
            add()
    with pytest.raises(ModelError, match="armature of joint 'j'"):
        b.add_joint("j", "revolute", "world", "a", armature=number)


def test_an_mjcf_refuses_numbers_that_overflow():
    pytest.importorskip("mujoco")
    body = '<mujoco><worldbody><body><joint/><inertial pos="0 0 0" mass="{}" diaginertia="1 1 1"/>'
    with pytest.raises(ModelError, match=r"body_mass of the compiled model is beyond 1e\+40"):
        quiet(body.format("1e200") + "</body></worldbody></mujoco>")


# Mass in meshes that are missing


MESH = '<asset><mesh name="m" file="{}.stl"/></asset>'
GEOM = '<geom type="mesh" mesh="m"{}/>'


def mjcf(body: str, compiler: str = "") -> str:
    text = f"<mujoco><compiler {compiler}/>{MESH.format('none')}<worldbody><body{body}<joint/>"
    return text + '</body><body name="other"><joint/><geom size="1"/></body></worldbody></mujoco>'


INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
WEIGHING = {
    "named": mjcf(' name="b"><geom size="0.1"/>' + GEOM.format("")),
    "without a name": mjcf('><geom size="0.1"/>' + GEOM.format("")),
    "named geom": mjcf(' name="b"><geom size="0.1"/>' + GEOM.format(' name="g"')),
    "from geoms": mjcf(
        f' name="b">{INERTIAL}<geom size="0.1"/>' + GEOM.format(""), 'inertiafromgeom="true"'
    ),
}
WEIGHTLESS = {
    "inertial": mjcf(f' name="b">{INERTIAL}' + GEOM.format("")),
    "mass 0": mjcf(' name="b"><geom size="0.1"/>' + GEOM.format(' mass="0"')),
    "density 0": mjcf(' name="b"><geom size="0.1"/>' + GEOM.format(' density="0"')),
    "group": mjcf(
        ' name="b"><geom size="0.1"/>' + GEOM.format(' group="3"'), 'inertiagrouprange="0 2"'
    ),
}


@pytest.mark.parametrize("case", [*WEIGHING, *WEIGHTLESS])
def test_mass_in_a_missing_mesh_is_said(case):
    pytest.importorskip("mujoco")
    said = messages((WEIGHING | WEIGHTLESS)[case])
    if case in WEIGHING:
        assert "line 1: body " in said and "its mesh is missing ('none.stl')" in said
        assert ("without a name" in said) == (case == "without a name")
    else:
        assert not said


def test_a_body_left_without_mass_is_refused_with_its_mesh(tmp_path):
    pytest.importorskip("mujoco")
    text = mjcf(' name="b">' + GEOM.format(""))
    (tmp_path / "robot.xml").write_text(text)
    said = r": a moving body .* are missing: body 'b' .'none.stl'.; put the meshes"
    for given, source in ((text, "text"), (tmp_path / "robot.xml", r"robot\.xml")):
        with pytest.raises(ModelError, match=source + said):
            load(given)


def test_what_names_a_geom_of_a_missing_mesh_stays():
    pytest.importorskip("mujoco")
    more = """<contact><pair geom1="g" geom2="o"/></contact><sensor><distance name="d" geom1="g"
        geom2="o" cutoff="1"/></sensor></mujoco>"""
    text = mjcf(f' name="b">{INERTIAL}' + GEOM.format(' name="g"'))
    text = text.replace('<geom size="1"/>', '<geom name="o" size="1"/>').replace("</mujoco>", more)
    model = load(text, strict=True)
    assert model.nv == 2 and model.body("b").mass == 1.0
    assert model.body("b").index not in model.geometry  # what stands for the mesh is not drawn


FLAGS = {  # where SDF has a flag: what nv is when it is true and when it is not
    "static": ("<link name", "<static>{}</static><link name", 0, 1),
    "degrees": ("<pose>", '<pose degrees="{}">', 1, 1),
    "parent frame": ("</xyz>", "</xyz><use_parent_model_frame>{}</use_parent_model_frame>", 1, 1),
}


@pytest.mark.parametrize("case", FLAGS)
def test_flags_are_true_or_false_in_any_case_of_letters(case):
    old, new, true, false = FLAGS[case]
    for word in ("true", "True", "1", " TRUE "):
        assert sum(j.nv for j in load(SDF.replace(old, new.format(word))).joints) == true
    for word in ("false", "False", "0"):
        assert sum(j.nv for j in load(SDF.replace(old, new.format(word))).joints) == false
    for word in ("yes", "2", "nan"):
        with pytest.raises(ModelError, match="is neither true nor false"):
            load(SDF.replace(old, new.format(word)))


def test_degrees_are_degrees():
    text = SDF.replace("<pose>0 0 1 0 0 0", '<pose degrees="True">0 0 1 0 0 90')
    radians = SDF.replace("0 0 1 0 0 0", "0 0 1 0 0 1.5707963267948966")
    placements = [load(x).joints[0].placement.E for x in (text, radians)]
    assert abs(placements[0] - placements[1]).max() < 1e-15


def test_a_rotation_of_another_format_is_refused():
    with pytest.raises(ModelError, match="no rotation_format named 'quat_wxyz'"):
        load(SDF.replace("<pose>", '<pose rotation_format="quat_wxyz">'))


HYRODYN = """submechanisms:
  - {contextual_name: s, type: NUMERICAL, jointnames_spanningtree: [j], loop_constraints: [
     {cut_joint: j, predecessor_body: a, successor_body: b,
      constraint_axes: [{axis: [0, 0, 0, 0, 0, 1]}]}]}
"""


@pytest.mark.parametrize("old", ["jointnames_spanningtree", "cut_joint: j,", "axis: [0"])
def test_unknown_keys_of_a_submechanism_are_said(old, tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / "r.urdf").write_text(URDF)
    for text, expected in ((HYRODYN, False), (HYRODYN.replace(old, f"typo: 1, {old}"), True)):
        (tmp_path / "r.yaml").write_text(text)
        said = describe(tmp_path / "r.yaml").complaints.messages
        assert ("r.yaml: s: 'typo' is ignored" in said) == expected
