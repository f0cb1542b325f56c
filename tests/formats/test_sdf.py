"""SDF: frames, loops as a graph, screws, gearboxes, mimic joints."""

import numpy as np
import pytest
from shared_models import error, path, quiet, saddle_point, shared

import grubler as gb
from grubler.checks import check
from grubler.errors import InputError, ModelError
from grubler.formats import FormatWarning, load
from grubler.mechanism.loops.modules import module_name

MOMENTS = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
INERTIAL = f"<inertial><mass>1</mass>{MOMENTS}</inertial>"


def sdf(*parts: str, version: str = "1.12") -> str:
    body = "".join(parts)
    return f'<sdf version="{version}"><model name="m">{body}</model></sdf>'


def link(name: str, pose: str = "0 0 0 0 0 0", to: str = "") -> str:
    relative = f' relative_to="{to}"' if to else ""
    return f'<link name="{name}"><pose{relative}>{pose}</pose>{INERTIAL}</link>'


def joint(name, kind, parent, child, axis="0 0 1", extra="", pose="") -> str:
    xyz = f"<axis><xyz>{axis}</xyz>{extra}</axis>" if axis else extra
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>'
        f"{pose}{xyz}</joint>"
    )


WORLD = joint("fix", "fixed", "world", "a", "")


def test_a_joint_whose_child_has_a_parent_closes_a_loop():
    text = sdf(
        WORLD, link("a"), link("crank"), link("rod", "0.2 0 0 0 0 0"),
        link("rocker", "0.5 0 0 0 0 0"),
        joint("q1", "revolute", "a", "crank"), joint("q2", "revolute", "crank", "rod"),
        joint("q3", "revolute", "a", "rocker"),
        joint("pin", "revolute", "rod", "rocker", pose="<pose>0.3 0.1 0 0 0 0</pose>"),
    )  # fmt: skip
    model = load(text, strict=True)
    assert [loop.name for loop in model.loops] == ["pin"]
    assert (model.nv, model.loops[0].rows) == (1, 5)
    q, v = model.random_state(0)
    tau = np.ones(1)
    assert error(gb.forward_dynamics(model, q, v, tau), saddle_point(model, q, v, tau)) < 1e-9


def test_roots_float_unless_they_are_fixed_or_static():
    parts = (link("a", "0 0 2 0 0 0"), link("b"), joint("j", "revolute", "a", "b"))
    model = load(sdf(*parts))
    assert model.nv == 7
    np.testing.assert_allclose(model.neutral()[:7], [0, 0, 2, 1, 0, 0, 0])
    fixed = load(sdf(*parts), base="fixed")
    assert fixed.nv == 1
    np.testing.assert_allclose(gb.frame_pose(fixed, fixed.neutral(), "a")[1], [0, 0, 2])
    assert load(sdf("<static>true</static>", *parts)).nv == 0


def test_poses_relative_to_frames_joints_and_nested_models():
    text = sdf(
        WORLD, link("a"), '<frame name="f" attached_to="a"><pose>1 0 0 0 0 0</pose></frame>',
        link("b", "0 1 0 0 0 1.5707963267948966", to="f"),
        joint("j", "revolute", "a", "b", pose="<pose>0.1 0 0 0 0 0</pose>"),
        f'<model name="inner"><pose relative_to="b">0 0 3 0 0 0</pose><link name="c">{INERTIAL}'
        '</link></model>',
        joint("k", "fixed", "b", "inner::c", ""),
        '<frame name="g" attached_to="b"><pose relative_to="__model__">5 5 5 0 0 0</pose></frame>',
    )  # fmt: skip
    model = load(text, strict=True)
    q = model.neutral()
    np.testing.assert_allclose(gb.frame_pose(model, q, "b")[1], [1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(gb.frame_pose(model, q, "inner::c")[1], [1, 1, 3], atol=1e-12)
    np.testing.assert_allclose(gb.frame_pose(model, q, "g")[1], [5, 5, 5], atol=1e-12)
    # the axis is not at the origin of b, but 0.1 m along its x, which is the world's y
    _, p = gb.frame_pose(model, [np.pi], "b")
    np.testing.assert_allclose(p, [1, 1.2, 0], atol=1e-12)


def test_pose_formats_and_placement_frames():
    quat = '<pose rotation_format="quat_xyzw">0 0 0 0 0 0.70710678 0.70710678</pose>'
    degrees = '<pose degrees="true">0 0 0 0 0 90</pose>'
    for pose in (quat, degrees):
        text = sdf(WORLD, link("a"), f'<link name="b">{pose}{INERTIAL}</link>',
                   joint("j", "revolute", "a", "b"))  # fmt: skip
        R, _ = gb.frame_pose(load(text), [0.0], "b")
        np.testing.assert_allclose(R[:, 0], [0, 1, 0], atol=1e-7)
    text = sdf("<pose>0 0 9 0 0 0</pose>", link("a"), link("b", "0 0 4 0 0 0"),
               joint("j", "revolute", "a", "b"))  # fmt: skip
    text = text.replace('<model name="m"', '<model name="m" placement_frame="b"')
    np.testing.assert_allclose(load(text).neutral()[:3], [0, 0, 5])


def test_the_axis_is_written_in_a_frame_of_the_version():
    turned = "0 0 0 0 1.5707963267948966 0"
    new = sdf(WORLD, link("a"), link("b", turned), joint("j", "revolute", "a", "b"))
    np.testing.assert_allclose(load(new).joint("j").motion.axis, [0, 0, 1], atol=1e-12)
    old = new.replace("1.12", "1.4")
    np.testing.assert_allclose(load(old).joint("j").motion.axis, [-1, 0, 0], atol=1e-12)
    flag = new.replace("</xyz>", "</xyz><use_parent_model_frame>1</use_parent_model_frame>")
    np.testing.assert_allclose(load(flag).joint("j").motion.axis, [-1, 0, 0], atol=1e-12)
    other = new.replace("<xyz>", '<xyz expressed_in="a">')
    np.testing.assert_allclose(load(other).joint("j").motion.axis, [-1, 0, 0], atol=1e-12)


def test_both_thread_pitches():
    def screw(pitch: str) -> float:
        text = sdf(WORLD, link("a"), link("b"), joint("j", "screw", "a", "b"))
        return (
            load(text.replace("</joint></model>", f"{pitch}</joint></model>"))
            .joint("j")
            .motion.pitch
        )

    assert screw("<screw_thread_pitch>0.01</screw_thread_pitch>") == 0.01 / (2 * np.pi)
    assert screw("<thread_pitch>-200</thread_pitch>") == 1 / 200
    with pytest.warns(FormatWarning, match="screw_thread_pitch"):
        screw("")
    with pytest.raises(ModelError, match="never turns"):
        screw("<thread_pitch>0</thread_pitch>")


def test_a_gearbox_counts_from_its_reference_body():
    """theta_2 = -ratio theta_1; the second axis points the other way."""
    gear = """<joint name="gear" type="gearbox"><parent>b</parent><child>c</child>
        <gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>a</gearbox_reference_body>
        <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 {}</xyz></axis2></joint>"""
    parts = (WORLD, link("a"), link("b"), link("c", "1 0 0 0 0 0"))
    side = (joint("q1", "revolute", "a", "b"), joint("q2", "revolute", "a", "c"))
    model = load(sdf(*parts, *side, gear.format(1)), strict=True)
    assert model.loops[0].describe() == "q2 = -3 q1"
    model = load(sdf(*parts, *side, gear.format(-1)), strict=True)
    assert model.loops[0].describe() == "q2 = 3 q1"
    chain = (joint("q1", "revolute", "a", "b"), joint("q2", "revolute", "b", "c"))
    model = load(sdf(*parts, *chain, gear.format(1)), strict=True)  # q1 + q2 = -3 q1
    assert model.loops[0].describe() == "q2 = -4 q1"
    crossed = joint("q1", "revolute", "a", "b", "1 0 0")
    with pytest.raises(ModelError, match="does not turn about the gearbox's axis"):
        load(sdf(*parts, crossed, side[1], gear.format(1)))


def test_mimic_axes():
    mimic = """<mimic joint="q1" axis="axis"><multiplier>2</multiplier><offset>0.3</offset>
        <reference>0.1</reference></mimic>"""
    parts = (WORLD, link("a"), link("b"), link("c"), joint("q1", "revolute", "a", "b"))
    model = load(sdf(*parts, joint("q2", "revolute", "b", "c", extra=mimic)), strict=True)
    assert model.loops[0].describe() == "q2 = 2 q1 + 0.1"
    drake = joint("q2", "revolute", "b", "c", "", '<drake:mimic joint="q1" multiplier="-1"/>')
    assert load(sdf(*parts, drake), strict=True).loops[0].describe() == "q2 = -1 q1"
    with pytest.raises(ModelError, match="no joint named 'q9'"):
        load(sdf(*parts, joint("q2", "revolute", "b", "c", extra=mimic.replace("q1", "q9"))))


def test_ball_constraints_of_drake():
    ball = """<drake:ball_constraint><drake:ball_constraint_body_A>b</drake:ball_constraint_body_A>
        <drake:ball_constraint_p_AP>0.5 0 0</drake:ball_constraint_p_AP>
        <drake:ball_constraint_body_B>c</drake:ball_constraint_body_B>
        <drake:ball_constraint_p_BQ>0.5 0 0</drake:ball_constraint_p_BQ></drake:ball_constraint>"""
    parts = (WORLD, link("a"), link("b"), link("c", "0.1 0 0 0 0 0"), link("d", "0.3 0 0 0 0 0"))
    joints = (joint("q1", "revolute", "a", "b"), joint("q2", "revolute", "d", "c"),
              joint("q3", "revolute", "a", "d"))  # fmt: skip
    model = load(sdf(*parts, *joints, ball), strict=True)
    assert (model.nv, model.loops[0].kind) == (1, "ball")


def test_massless_leaves_are_named():
    bare = link("b").replace("<mass>1", "<mass>0").replace(MOMENTS, MOMENTS.replace("1<", "0<"))
    with pytest.warns(FormatWarning, match="'b' moves at the end of a chain without mass"):
        load(sdf(WORLD, link("a"), bare, joint("j", "revolute", "a", "b")))


def test_every_joint_type():
    freedoms = {"revolute": 1, "continuous": 1, "prismatic": 1, "ball": 3, "universal": 2,
                "revolute2": 2, "screw": 1}  # fmt: skip
    for kind, nv in freedoms.items():
        extra = "<screw_thread_pitch>1</screw_thread_pitch>" if kind == "screw" else ""
        text = joint("j", kind, "a", "b", "1 0 0").replace("</joint>", f"{extra}</joint>")
        assert quiet(sdf(WORLD, link("a"), link("b"), text)).nv == nv


def test_worlds_with_several_models_and_their_gravity():
    one = f'<model name="x"><link name="a">{INERTIAL}</link></model>'
    two = one.replace('"x"', '"y"').replace("<link", "<pose>1 0 0 0 0 0</pose><link")
    text = f'<sdf version="1.9"><world name="w"><gravity>0 0 -1.6</gravity>{one}{two}</world></sdf>'
    model = load(text, strict=True)
    assert [body.name for body in model.bodies] == ["x::a", "y::a"]
    assert model.gravity[2] == -1.6


def test_what_is_not_used_is_named():
    damped = joint("j", "revolute", "a", "b", extra="<dynamics><damping>3</damping></dynamics>")
    text = sdf(WORLD, link("a"), "<link name='b'/>", '<plugin name="p"/>', damped)
    with pytest.warns(FormatWarning) as caught:
        load(text)
    messages = "\n".join(str(w.message) for w in caught)
    for part in ("<plugin> in <model>", "SDF's default of 1 kg"):
        assert part in messages
    assert "damping" not in messages  # read, and kept in the model
    with pytest.raises(ModelError, match="2 parts"):
        load(text, strict=True)


def test_rotor_inertia_is_armature():
    extra = "<drake:rotor_inertia>2</drake:rotor_inertia><drake:gear_ratio>3</drake:gear_ratio>"
    text = joint("j", "revolute", "a", "b").replace("</joint>", f"{extra}</joint>")
    assert load(sdf(WORLD, link("a"), link("b"), text), strict=True).joint("j").armature == 18.0


BAD = {
    "no model": ('<sdf version="1.9"/>', "no <model>"),
    "no link": ('<sdf version="1.9"><model name="m"/></sdf>', "has no <link>"),
    "version": (sdf(link("a"), version="x"), "is not a version"),
    "twice": (sdf(link("a"), link("a")), "already a frame, link or joint named 'a'"),
    "unknown": (sdf(link("a"), joint("j", "revolute", "a", "bb")), "no frame named 'bb'"),
    "type": (sdf(link("a"), link("b"), joint("j", "hinge", "a", "b")), "joint type named 'hinge'"),
    "itself": (sdf(link("a"), joint("j", "revolute", "a", "a")), "to itself"),
    "pose": (sdf(link("a", "0 0 0")), "is not 6 finite numbers"),
    "nan": (sdf(link("a", "0 0 nan 0 0 0")), "is not 6 finite numbers"),
    "cycle of poses": (
        sdf(link("a", to="b"), link("b", to="a"), joint("j", "revolute", "a", "b")),
        "poses form a cycle",
    ),
    "cycle of frames": (
        sdf(link("a"), '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'),
        "cycle",
    ),
    "axis": (sdf(WORLD, link("a"), link("b"), joint("j", "revolute", "a", "b", "0 0 0")),
             "not a direction"),
    "screw loop": (
        sdf(WORLD, link("a"), link("b"), link("c"), joint("j", "revolute", "a", "b"),
            joint("k", "revolute", "a", "c"), joint("s", "screw", "b", "c")),
        "closes a loop as a screw joint",
    ),
    "mass": (sdf(link("a").replace("<mass>1", "<mass>-1")), "negative mass"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_refuses(case):
    text, message = BAD[case]
    with pytest.raises(gb.GrublerError, match=message):
        quiet(text)


def test_a_directed_cycle_of_joints_is_cut():
    parts = (link("a"), link("b"), link("c"), joint("j", "revolute", "a", "b"),
             joint("k", "revolute", "b", "c"), joint("l", "revolute", "c", "a"))  # fmt: skip
    with pytest.raises(InputError, match="'fixed' or 'free'"):
        load(sdf(*parts), base="x")
    moved = sdf(*parts).replace('name="c"><pose>0 0 0', 'name="c"><pose>0 1 0', 1)
    moved = moved.replace('name="b"><pose>0 0 0', 'name="b"><pose>1 0 0', 1)
    model = load(moved)  # a triangle of bars
    assert model.nv == 6 and "leaves no motion to joint" in model.notes[0]


def stewart() -> str:
    """A Stewart platform as Gazebo would have it: legs on balls, universal joints at the base."""
    parts = [WORLD, link("a"), link("platform", "0 0 1 0 0 0")]
    closing = []
    for i in range(6):
        low, high = (np.deg2rad(120 * (i // 2) + x * (-1) ** i) for x in (10, 45))
        foot = np.array([0.6 * np.cos(low), 0.6 * np.sin(low), 0.0])
        top = np.array([0.4 * np.cos(high), 0.4 * np.sin(high), 1.0])
        aim = foot - top
        pitch, yaw = np.arctan2(np.hypot(*aim[:2]), aim[2]), np.arctan2(aim[1], aim[0])
        at = " ".join(repr(float(x)) for x in (*top, 0, pitch, yaw))
        parts += [link(f"rod{i}", at), link(f"tube{i}", at)]
        parts += [joint(f"ball{i}", "ball", "platform", f"rod{i}", ""),
                  joint(f"slide{i}", "prismatic", f"rod{i}", f"tube{i}")]  # fmt: skip
        length = f"<pose>0 0 {float(np.linalg.norm(aim))!r} 0 0 0</pose>"
        closing.append(joint(f"cross{i}", "universal", "a", f"tube{i}", "1 0 0",
                             "</axis><axis2><xyz>0 1 0</xyz>", length)
                       .replace("<xyz>0 1 0</xyz></axis>", "<xyz>0 1 0</xyz></axis2>"))  # fmt: skip
    return sdf(*parts, *closing)


def test_a_stewart_platform_has_a_closed_form():
    """6-UPS, cut at the universal joints; equal to its numeric twin."""
    model = load(stewart(), strict=True)
    closed = gb.analytic(model)
    cluster = next(c for c in closed.clusters if c.loops)
    assert module_name(cluster.embedding.steps) == "6-UPS platform"
    assert (model.nv, sum(loop.rows for loop in model.loops)) == (6, 24)
    twin = gb.numeric(closed)
    for seed in range(5):
        q, v = closed.random_state(seed)
        a = np.random.default_rng(seed).uniform(-1, 1, 6)
        at = gb.convert_configuration(closed, twin, q)
        for x, y in zip(gb.spanning_state(closed, q, v, a), gb.spanning_state(twin, at, v, a)):
            assert error(x, y) < 1e-9
        tau = gb.inverse_dynamics(closed, q, v, a)
        assert error(gb.inverse_dynamics(twin, at, v, a), tau) < 1e-9
        assert error(saddle_point(twin, at, v, tau), a) < 1e-8


def test_the_published_stewart_platform_has_none():
    """Its "balls" are a hinge and a universal joint whose axes miss each other by 69 mm: no 6-UPS.

    Eliminating one of the two hinge angles of a leg leaves a polynomial of degree eight."""
    model = shared("stewart_sdf/stewart_sdf.sdf", "fixed")
    joint = model.joint("piston1_bottom_pitch_joint")
    first, second = np.array([0.0, 1.0, 0.0]), joint.placement.E.T @ joint.motion.axis
    normal = np.cross(first, second)
    miss = abs(normal @ joint.placement.r) / np.linalg.norm(normal)
    assert miss == pytest.approx(0.0689, abs=1e-4)
    assert all(c.embedding.implicit for c in gb.analytic(model).clusters if c.loops)
    with pytest.raises(ModelError, match="whose axes meet"):
        gb.analytic(model, ["piston1_top_pitch_joint"])


def test_six_legs_of_a_platform_are_locked_on_load():
    """Struts of two bodies between two balls spin about themselves."""
    text = path("stewart_sdf/stewart_sdf.sdf").read_text()
    loose, model = (quiet(text, base="fixed", lock_idle=x) for x in (False, True))
    assert len(check(loose, samples=1).idle) == 6
    assert model.nv == loose.nv - 6 == 6 and len(model.notes) == 6
    assert not check(model, samples=1).idle


def test_cassie_has_two_legs_of_one_kind(tmp_path):
    """Its axes are written with few digits. Either leg has a knee, a tarsus on a spring, a foot."""
    text = path("cassie_sdf/cassie.sdf").read_text().replace("-junk", "-")  # a typo in line 788
    (tmp_path / "cassie.sdf").write_text(text)
    model = quiet(tmp_path / "cassie.sdf")
    names = set(model.v_names)
    left = {name.removeprefix("left-") for name in names if name.startswith("left-")}
    right = {name.removeprefix("right-") for name in names if name.startswith("right-")}
    assert left == right and len(left) == 6 and "shin-tarsus-joint" in left
    assert model.nv == 13 and len(model.notes) == 2
    assert all("as 7 (mobility 2), as here, or as 8 (mobility 1)" in note for note in model.notes)
    for seed in range(3):
        q, v = model.random_state(seed)
        assert model.loop_gap(q) < 1e-11
        v_span = gb.spanning_state(model, q, v).velocities
        for loop in model.loops:
            K, _ = loop.linearize(model.unpack(q), None)
            places = {name: i for i, name in enumerate(model.spanning_names)}
            rate = sum(
                block @ v_span[[places[n] for n in joint.names(joint.motion.labels)]]
                for i, block in K.items()
                for joint in [model.bodies[i].joint]
            )
            assert np.abs(rate).max() < 1e-3
