"""Which shapes a plan of contacts takes, with which coefficients, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import grubler as gb
from grubler.collision import ContactWarning
from grubler.collision.hulls import open_edges
from grubler.model.fingerprint import fingerprint

INERTIA = (0.1, 0, 0, 0.1, 0, 0.1)
TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def leg(builder: gb.ModelBuilder | None = None, base: str = "free") -> gb.ModelBuilder:
    """A trunk, a thigh, a shank, and a foot welded to it, each with a shape."""
    b = builder or gb.ModelBuilder("leg")
    b.add_body("trunk", 1.0, inertia=INERTIA)
    b.add_joint("root", base, "world", "trunk")
    for parent, child in (("trunk", "thigh"), ("thigh", "shank")):
        b.add_body(child, 1.0, inertia=INERTIA)
        b.add_joint(f"to_{child}", "revolute", parent, child, axis=(0, 1, 0), xyz=(0, 0, -0.4))
    b.add_body("foot", 0.1, inertia=INERTIA)
    b.add_joint("weld", "fixed", "shank", "foot", xyz=(0, 0, -0.4))
    b.add_shape("trunk", gb.Box((0.4, 0.2, 0.2)), name="trunk_box")
    b.add_shape("thigh", gb.Capsule(0.05, 0.3), xyz=(0, 0, -0.2), friction=0.4)
    b.add_shape("shank", gb.Capsule(0.05, 0.3), xyz=(0, 0, -0.2))
    b.add_shape("foot", gb.Sphere(0.05), name="sole", friction=0.9, restitution=0.2)
    return b


LEG = leg().build()


def names(plan: gb.Contacts) -> set[tuple[str, str]]:
    return {pair.names for pair in plan.pairs}


def test_all_shapes_may_touch_a_level_ground():
    plan = gb.Contacts(LEG)
    assert names(plan) == {(n, "ground") for n in ("trunk_box", "thigh.0", "shank.0", "sole")}
    assert [pair.count for pair in plan.pairs] == [8, 2, 2, 1] and len(plan) == 13
    assert plan.bodies == (0, 1, 2)  # the foot is welded to the shank
    assert {point.other for point in plan.points} == {-1}
    q = LEG.neutral()
    q[2] = 2.0
    out = gb.contact_candidates(LEG, q, plan)
    assert abs(out.gap[-1] - (2.0 - 1.2 - 0.05)) < 1e-12
    assert np.allclose(out.normal, [0, 0, 1]) and out.gap.shape == (13,)


def test_what_touches_is_chosen():
    assert names(gb.Contacts(LEG, touching=["sole"])) == {("sole", "ground")}
    assert names(gb.Contacts(LEG, touching="foot")) == {("sole", "ground")}  # by its link
    by_body = gb.Contacts(LEG, touching=["shank"])  # that of the link, not of what is welded to it
    assert names(by_body) == {("shank.0", "ground")}
    leaves = gb.Contacts(LEG, touching="leaves")
    assert names(leaves) == {("shank.0", "ground"), ("sole", "ground")}
    assert any("'trunk_box', 'thigh.0'" in note for note in leaves.notes)
    assert len(gb.Contacts(LEG, ground=False, pairs=[("trunk", "sole")])) == 1


def test_few_corners():
    plan = gb.Contacts(LEG, corners=4)
    assert [pair.count for pair in plan.pairs] == [4, 2, 2, 1]
    q = LEG.random_state(3)[0]
    out = gb.compile(gb.contact_candidates, LEG, contacts=plan)(q)
    assert abs(out[0].min() - gb.contact_candidates(LEG, q, gb.Contacts(LEG)).gap.min()) < 1e-14


def test_coefficients():
    plan = gb.Contacts(LEG)
    assert [p.friction for p in plan.pairs] == [0.8, 0.4, 0.8, 0.9]
    assert [p.restitution for p in plan.pairs] == [0, 0, 0, 0.2]
    assert any("friction of 2 pairs" in note for note in plan.notes)
    assert {p.friction for p in gb.Contacts(LEG, friction=0.3).pairs} == {0.3}
    plan = gb.Contacts(LEG, friction={"sole": 0.5, ("ground", "thigh"): 0.1}, torsional=0.01)
    assert [p.friction for p in plan.pairs] == [0.8, 0.1, 0.8, 0.5]
    assert {p.torsional for p in plan.points} == {0.01}


def test_neighbours_and_what_always_overlaps():
    b = leg()
    b.add_shape("shank", gb.Sphere(0.02), name="ball")
    b.add_body("tip", 0.1, inertia=INERTIA)
    b.add_joint("to_tip", "revolute", "shank", "tip")
    b.add_body("end", 0.1, inertia=INERTIA)
    b.add_joint("to_end", "revolute", "tip", "end")
    b.add_shape("end", gb.Sphere(0.03), name="inside")  # at the shank's origin, as is the ball
    model = b.build()
    plan = gb.Contacts(model, ground=False, pairs="all")
    found = {frozenset(n) for n in names(plan)}
    assert frozenset(("trunk_box", "thigh.0")) not in found  # a joint connects them
    assert frozenset(("shank.0", "ball")) not in found  # one body
    assert frozenset(("trunk_box", "shank.0")) in found
    assert frozenset(("ball", "inside")) not in found
    assert any("overlap in all" in note and "ball, inside" in note for note in plan.notes)
    asked = gb.Contacts(model, ground=False, pairs=[("ball", "inside")])
    assert len(asked) == 1  # who names a pair gets it


def test_bodies_that_a_loop_joins_are_neighbours():
    b = gb.ModelBuilder("loop")
    ends = {"a": "world", "b": "a", "c": "world"}
    for name, parent in ends.items():
        b.add_body(name, 1.0, inertia=INERTIA)
        b.add_joint(f"j{name}", "revolute", parent, name, axis=(0, 1, 0),
                    xyz=(1.0 if name != "a" else 0.0, 0, 0))  # fmt: skip
        b.add_shape(name, gb.Sphere(0.01), xyz=(0, 0, 0.1 * len(name)))
    b.add_loop("close", "revolute", "b", "c", axis=(0, 1, 0), predecessor_xyz=(0, 0, -1.0),
               successor_xyz=(0, 0, -1.0))  # fmt: skip
    plan = gb.Contacts(b.build(), ground=False, pairs="all")
    assert names(plan) == {("a.0", "c.0")}


def test_masks_exclusions_and_pairs():
    b = gb.ModelBuilder("masks")
    for name, bits in zip("abcd", ((1, 1), (2, 2), (1, 2), (0, 0))):
        b.add_body(name, 1.0, inertia=INERTIA)
        b.add_joint(f"j{name}", "free", "world", name)
        b.add_shape(name, gb.Sphere(0.1), name=name, contype=bits[0], conaffinity=bits[1])
    b.exclude_contact("b", "c")
    b.allow_contact("a", "d", friction=0.15)
    model = b.build()
    plan = gb.Contacts(model, ground=False, pairs="all")
    assert names(plan) == {("a", "c"), ("a", "d")}
    assert [p.friction for p in plan.pairs if "d" in p.names] == [0.15]
    srdf = '<robot name="r"><disable_collisions link1="c" link2="a" reason="Never"/></robot>'
    assert names(gb.Contacts(model, ground=False, pairs="all", srdf=srdf)) == {("a", "d")}
    with pytest.raises(gb.InputError, match="an SRDF starts with <robot>"):
        gb.Contacts(model, ground=False, pairs="all", srdf="<sdf/>")


def test_platform_as_ground():
    """Feet on a plate that moves: the normal turns with it."""
    b = leg()
    b.add_body("plate", 5.0, inertia=INERTIA)
    b.add_joint("tilt", "revolute", "world", "plate", axis=(0, 1, 0))
    b.add_shape("plate", gb.Plane(), name="deck")
    model = b.build()
    plan = gb.Contacts(model, ground="deck", touching=["sole"])
    assert [(p.names, p.other) for p in plan.pairs] == [(("sole", "deck"), 3)]
    q = model.assemble({"tilt": 0.3})
    out = gb.contact_candidates(model, q, plan)
    assert np.allclose(out.normal[0], [np.sin(0.3), 0, np.cos(0.3)])
    assert abs(out.gap[0] - (-1.2 * np.cos(0.3) - 0.05)) < 1e-12
    both = gb.Contacts(model, ground=["deck", gb.Plane()], touching=["sole"])
    assert len(both) == 2


def test_world_shapes_are_ground():
    b = leg()
    b.add_shape("world", gb.Box((1, 1, 0.2)), name="step", xyz=(1, 0, 0.1))
    b.add_shape("world", gb.Plane(), name="floor")
    plan = gb.Contacts(b.build(), touching=["sole", "thigh.0"])
    assert names(plan) == {
        (s, g) for s, g in (("sole", "step"), ("sole", "floor"), ("thigh.0", "step"),
                            ("thigh.0", "floor"))
    }  # fmt: skip


def test_a_base_on_the_world_is_no_floor():
    """Links that are welded to the world can be hit, and there is a floor all the same."""
    plan = gb.Contacts(leg(base="fixed").build(), touching=["sole"])
    assert names(plan) == {("sole", "trunk_box"), ("sole", "ground")}
    b = leg(base="fixed")
    b.add_shape("world", gb.Plane(), name="floor")
    assert names(gb.Contacts(b.build(), touching=["sole"])) == {
        ("sole", "trunk_box"), ("sole", "floor"),
    }  # fmt: skip


def test_ground_across_gravity():
    b = leg(gb.ModelBuilder("sideways", gravity=(0, -9.81, 0)))
    out = gb.contact_candidates(b.build(), b.build().neutral(), gb.Contacts(b.build()))
    assert np.allclose(out.normal, [0, 1, 0])


def test_shapes_given_to_a_plan():
    """Any model gets feet; frames on other bodies count."""
    model = gb.robots.load("mini_cheetah")
    feet = [f"{side}_foot_contact" for side in ("HR", "HL", "FR", "FL")]
    plan = gb.Contacts(model, shapes={foot: gb.Sphere(0.02) for foot in feet}, friction=0.7)
    q, _ = model.random_state(1)
    out = gb.contact_candidates(model, q, plan)
    for foot, gap, point in zip(feet, out.gap, out.point):
        _, p = gb.frame_pose(model, q, foot)
        assert abs(gap - (p[2] - 0.02)) < 1e-12 and np.allclose(point[:2], p[:2])


def test_dynamics_do_not_depend_on_shapes():
    bare = gb.ModelBuilder("leg")
    with_shapes = fingerprint(LEG)
    for method in ("add_shape", "exclude_contact"):
        setattr(bare, method, lambda *_, **__: None)
    assert fingerprint(leg(bare).build()) == with_shapes is not None
    assert fingerprint(gb.Contacts(LEG)) == fingerprint(gb.Contacts(leg().build())) is not None
    assert fingerprint(gb.Contacts(LEG)) != fingerprint(gb.Contacts(LEG, friction=0.2))
    assert hash(gb.Contacts(LEG)) is not None


def fixed_base():
    b = leg(base="fixed")
    return b.build()


MESHED = {
    "missing": gb.Mesh("foot.stl"),
    "open": gb.Mesh("half", vertices=TETRAHEDRON, faces=FACES[:3]),
    "flat": gb.Mesh("flat", vertices=TETRAHEDRON * [1, 1, 0], faces=FACES),
    "closed": gb.Mesh("whole", vertices=TETRAHEDRON, faces=FACES),
}


def with_mesh(kind: str) -> gb.Model:
    b = gb.ModelBuilder("meshed")
    b.add_body("a", 1.0, inertia=INERTIA)
    b.add_joint("j", "free", "world", "a")
    b.add_shape("a", MESHED[kind], name="foot", xyz=(0, 0, 1))
    return b.build()


WRONG = {
    r"friction of shape 'sole.1' is -0.5: give a number >= 0": lambda: leg().add_shape(
        "foot", gb.Sphere(0.1), name="sole.1", friction=-0.5
    ),
    "restitution of shape 'x' is 1.5: give a number from 0 to 1": lambda: leg().add_shape(
        "foot", gb.Sphere(0.1), name="x", restitution=1.5
    ),
    "radius of shape 'foot.0' is -0.1": lambda: leg().add_shape("foot", gb.Sphere(-0.1)),
    "size of shape 'foot.0' is .*: lengths are positive": lambda: leg().add_shape(
        "foot", gb.Box((0.1, 0.0, 0.1))
    ),
    "size of shape 'foot.0' is .*: give numbers of shape": lambda: leg().add_shape(
        "foot", gb.Box((0.1, 0.1))
    ),
    "is a str: give a Sphere": lambda: leg().add_shape("foot", "ball"),
    "already a shape named 'sole'": lambda: leg().add_shape("foot", gb.Sphere(0.1), name="sole"),
    "no body named 'foott': did you mean 'foot'": lambda: (
        b := leg(), b.add_shape("foott", gb.Sphere(0.1)), b.build(),
    ),
    "either heights=, with size=, or function=": lambda: leg().add_shape("foot", gb.HeightField()),
    "no shape named 'nothing'": lambda: leg().allow_contact("sole", "nothing"),
    "friction of all pairs is -1": lambda: gb.Contacts(LEG, friction=-1),
    "friction of sole is nan": lambda: gb.Contacts(LEG, friction={"sole": np.nan}),
    "friction: no shape named 'sule': did you mean 'sole'": lambda: gb.Contacts(
        LEG, friction={"sule": 1.0}
    ),
    "no shape named 'feet': known: trunk_box": lambda: gb.Contacts(LEG, touching=["feet"]),
    "shape 'trunk_box' is on 'trunk', which is fixed to the world": lambda: gb.Contacts(
        fixed_base(), ground=gb.Plane(), touching=["trunk_box"]
    ),
    "are on one body": lambda: gb.Contacts(LEG, pairs=[("shank.0", "sole")]),
    "13 candidate points, more than the limit of 10 .*trunk_box, ground has 8.* 39 by 39":
        lambda: gb.Contacts(LEG, limit=10),
    "nothing of .* may touch the ground": lambda: gb.Contacts(gb.robots.load("four_bar")),
    "pairs is 'some'": lambda: gb.Contacts(LEG, pairs="some"),
    "pairs holds 'sole'": lambda: gb.Contacts(LEG, pairs=["sole"]),
    "ground is 3": lambda: gb.Contacts(LEG, ground=3),
    "the mesh 'foot.stl' of shape 'foot' is missing": lambda: gb.Contacts(with_mesh("missing")),
    "the mesh of shape 'foot' .'half'. is open: 3 of its edges": lambda: gb.Contacts(
        with_mesh("open")
    ),
    "the mesh of shape 'foot' is flat": lambda: gb.Contacts(with_mesh("flat")),
    "planned for other bodies": lambda: gb.contact_candidates(
        with_mesh("closed"), with_mesh("closed").neutral(), gb.Contacts(LEG)
    ),
    "give gb.Contacts": lambda: gb.contact_candidates(LEG, LEG.neutral(), [1, 2]),
    "corners is 6": lambda: gb.Contacts(LEG, corners=6),
    "hull_points is 2": lambda: gb.Contacts(with_mesh("closed"), hull_points=2),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_wrong_plans_are_refused(message):
    with pytest.raises(gb.GrublerError, match=message):
        WRONG[message]()


def test_pairs_without_a_closed_form():
    b = gb.ModelBuilder("two")
    for name, shape in (("a", gb.Cylinder(0.1, 0.2)), ("b", gb.Box((1, 1, 1)))):
        b.add_body(name, 1.0, inertia=INERTIA)
        b.add_joint(f"j{name}", "free", "world", name)
        b.add_shape(name, shape, name=name)
    model = b.build()
    with pytest.raises(gb.InputError, match=r"no closed form for 'a' and 'b' \(Cylinder and Box"):
        gb.Contacts(model, ground=False, pairs=[("a", "b")])
    plan = gb.Contacts(model, pairs="all", strict=False)
    assert names(plan) == {("a", "ground"), ("b", "ground")}
    assert any("no closed form" in note for note in plan.notes)


def test_hull_of_a_mesh():
    """All vertices where they are few; of many a choice, and what it leaves out is said."""
    model = with_mesh("closed")
    plan = gb.Contacts(model)
    assert len(plan) == 4 and not any("represented" in note for note in plan.notes)
    out = gb.contact_candidates(model, model.neutral(), plan)
    assert np.allclose(sorted(out.gap), [1, 1, 1, 2])
    assert len(gb.Contacts(with_mesh("open"), open_meshes=True)) == 4
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.1)
    b = gb.ModelBuilder("ball")
    b.add_body("a", 1.0, inertia=INERTIA)
    b.add_joint("j", "free", "world", "a")
    b.add_shape("a", gb.Mesh("ball", vertices=np.asarray(ball.vertices), faces=ball.faces))
    plan = gb.Contacts(b.build(), hull_points=12)
    assert len(plan) == 12
    (said,) = (float(n.split("up to ")[1].split()[0]) for n in plan.notes if "represented" in n)
    rng = np.random.default_rng(0)
    d = rng.normal(size=(5000, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    lost = (d @ ball.vertices.T).max(axis=1) - (d @ plan.pairs[0].shapes[0].vertices.T).max(axis=1)
    assert 0.9 * lost.max() < said < 1.1 * lost.max() < 0.05
    assert open_edges(np.asarray(ball.vertices), ball.faces, 1e-9) == 0


# against MuJoCo

ARENA = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
<geom name="floor" type="plane" size="1 1 1" friction="0.7 0.01 0.002" condim="4"/>
<body name="a" pos="0 0 1"><freejoint/><geom name="ga" type="sphere" size="0.1" friction="0.5"/>
</body>
<body name="b" pos="0 1 1"><freejoint/><geom name="gb" type="capsule" size="0.1 0.2" condim="1"
 friction="0.9 0.02 0.01"/></body>
<body name="c" pos="1 0 1"><freejoint/><geom name="gc" type="box" size="0.1 0.2 0.3" contype="2"
 conaffinity="1" friction="0.2" condim="6" priority="1"/></body>
<body name="d" pos="1 1 1"><freejoint/><geom name="gd" type="box" size="0.2 0.2 0.1" contype="0"
 conaffinity="0" friction="0.3"/></body>
<body name="e" pos="1 1 2"><freejoint/><geom name="ge" type="ellipsoid" size="0.2 0.2 0.1"
 contype="4" conaffinity="4"/></body>
</worldbody><contact><exclude body1="a" body2="b"/>
<pair geom1="gd" geom2="floor" friction="0.33 0.33 0.01 0 0"/></contact></mujoco>"""


def arena() -> gb.Model:
    pytest.importorskip("mujoco")
    return gb.load(ARENA)


def test_pairs_and_friction_are_those_of_mujoco():
    """Bodies pressed into each other two by two: MuJoCo's contacts are the plan's pairs."""
    mujoco = pytest.importorskip("mujoco")
    model = arena()
    plan = gb.Contacts(model, pairs="all", strict=False, limit=200)
    planned = {frozenset(p.names): p for p in plan.pairs}
    m = mujoco.MjModel.from_xml_string(ARENA)
    d = mujoco.MjData(m)
    shapes = ["ga", "gb", "gc", "gd", "ge"]
    found = {}
    for i in range(5):
        for j in range(5):
            d.qpos[:] = np.concatenate([[10.0 + 3 * k, 0, 5, 1, 0, 0, 0] for k in range(5)])
            d.qpos[7 * i : 7 * i + 3] = 0, 0, 0.05 if i == j else 5
            d.qpos[7 * j : 7 * j + 3] = 0.02, 0.01, d.qpos[7 * i + 2]
            mujoco.mj_forward(m, d)
            for c in d.contact:
                key = frozenset((m.geom(c.geom1).name, m.geom(c.geom2).name))
                found[key] = (int(c.dim), c.friction.copy())
    reached = {pair for pair in found if pair != frozenset(("gd", "ge"))}
    assert set(planned) == reached and len(shapes) == 5
    for pair, (dim, friction) in found.items():
        p = planned[pair]
        assert abs(p.friction - (friction[0] if dim >= 3 else 0.0)) < 1e-12, pair
        assert abs(p.torsional - (friction[2] if dim >= 4 else 0.0)) < 1e-12, pair
        assert abs(p.rolling - (friction[3] if dim >= 6 else 0.0)) < 1e-12, pair


def test_gaps_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    model = arena()
    plan = gb.Contacts(model, pairs="all", strict=False, limit=200)
    m = mujoco.MjModel.from_xml_string(ARENA)
    d = mujoco.MjData(m)
    fromto = np.zeros(6)
    for seed in range(20):
        q, _ = model.random_state(seed)
        d.qpos[:] = q
        mujoco.mj_forward(m, d)
        out = gb.contact_candidates(model, q, plan)
        gaps: dict = {}
        for gap, point in zip(out.gap, plan.points):
            gaps[point.pair.names] = min(gap, gaps.get(point.pair.names, np.inf))
        for names, gap in gaps.items():
            i, j = (m.geom(name).id for name in names)
            expected = mujoco.mj_geomDistance(m, d, i, j, 10.0, fromto)
            if expected > 0 and "floor" not in names:
                assert abs(gap - expected) < 1e-6, names
            elif "floor" in names:
                low = lowest(m, d, i)
                assert abs(gap - low) < 1e-9, names


def lowest(m, d, g: int) -> float:
    """The height of a geom's lowest point, from MuJoCo's pose of it."""
    p, R, size = d.geom_xpos[g], d.geom_xmat[g].reshape(3, 3), m.geom_size[g]
    row = R[2]
    reach = {2: size[0], 3: size[0] + abs(row[2]) * size[1], 4: np.linalg.norm(row * size),
             6: np.abs(row) @ size}[int(m.geom_type[g])]  # fmt: skip
    return float(p[2] - reach)


def test_softness_is_named_when_a_plan_is_made():
    pytest.importorskip("mujoco")
    text = ARENA.replace('size="0.1" friction="0.5"', 'size="0.1" solref="0.01 1" margin="0.01"')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = gb.load(text)
    with pytest.warns(ContactWarning, match="solref of 1 geoms .the first: ga.*margin of 1 geoms"):
        gb.Contacts(model, strict=False)


def test_urdf_and_sdf():
    link = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    urdf = f"""<robot name="r"><link name="base">{link}
    <collision name="hit"><origin xyz="0 0 0.5"/><geometry><sphere radius="0.1"/></geometry>
    </collision></link><link name="tool">{link}<collision><geometry><box size="1 1 1"/></geometry>
    </collision></link><joint name="w" type="fixed"><parent link="base"/><child link="tool"/>
    <origin xyz="0 0 1"/></joint>
    <gazebo reference="tool"><mu1>0.6</mu1><mu2>0.6</mu2></gazebo></robot>"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gb.load(urdf, base="free")
    plan = gb.Contacts(model)
    assert names(plan) == {("hit", "ground"), ("tool.0", "ground")}
    assert [p.friction for p in plan.pairs] == [0.8, 0.6]
    out = gb.contact_candidates(model, model.neutral(), plan)
    assert abs(out.gap[0] - 0.4) < 1e-12 and abs(out.gap[1:].min() - 0.5) < 1e-12
    sdf = """<sdf version="1.9"><world name="w"><model name="ground"><static>true</static>
    <link name="g"><inertial><mass>1</mass></inertial><collision name="c"><geometry><plane>
    <normal>0 0 1</normal></plane></geometry></collision></link></model>
    <model name="m"><link name="a"><inertial><mass>1</mass></inertial>
    <collision name="c"><pose>0 0 1 0 0 0</pose><geometry><sphere><radius>0.25</radius></sphere>
    </geometry><surface><friction><ode><mu>0.3</mu><mu2>0.4</mu2></ode></friction>
    <bounce><restitution_coefficient>0.5</restitution_coefficient></bounce></surface></collision>
    </link></model></world></sdf>"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gb.load(sdf)
    plan = gb.Contacts(model)
    (pair,) = plan.pairs
    assert pair.friction == 0.3 and pair.restitution == 0.5 and pair.other == -1
    assert abs(gb.contact_candidates(model, model.neutral(), plan).gap[0] - 0.75) < 1e-12
