"""Every file of ../shared/models loads, assembles and moves as Lagrange multipliers say."""

import numpy as np
import pytest
from shared_models import error, path, quiet, saddle_point, same_dynamics, shared

import grubler as gb
from grubler.algorithms.lagrange import loops_without_inertia
from grubler.formats import FormatWarning, load
from grubler.model.derived import spanning_tree

RH5 = "rh5_manus_hyrodyn/model"
# file, base: bodies that move, rows of all loops, their rank, mobility
MODELS = {
    ("grbda_urdfplus/depth10_loop_size8.urdf", None): (20, 1, 1, 19),
    ("grbda_urdfplus/depth10_loop_size9.urdf", None): (21, 5, 2, 19),
    ("grbda_urdfplus/four_bar.urdf", None): (3, 5, 2, 1),
    ("grbda_urdfplus/six_bar.urdf", None): (5, 5, 2, 3),
    ("grbda_urdfplus/planar_leg_linkage.urdf", None): (4, 5, 2, 2),
    ("grbda_urdfplus/revolute_rotor_chain.urdf", None): (6, 3, 3, 3),
    ("grbda_urdfplus/mini_cheetah.urdf", None): (25, 12, 12, 18),
    ("grbda_urdfplus/mini_cheetah_approximate.urdf", None): (13, 0, 0, 18),
    ("grbda_urdfplus/mit_humanoid.urdf", None): (37, 18, 18, 24),
    ("grbda_urdfplus/mit_humanoid_approximate.urdf", None): (19, 0, 0, 24),
    ("grbda_urdfplus/mit_humanoid_leg.urdf", None): (10, 5, 5, 5),
    ("grbda_urdfplus/tello_humanoid.urdf", None): (37, 0, 0, 42),  # its differentials are code
    ("cassie_dairlib_urdf/cassie_v2.urdf", "free"): (17, 0, 0, 22),
    ("cassie_dairlib_urdf/cassie_full_model.urdf", "free"): (35, 20, 20, 20),
    ("cassie_mjcf/cassie.xml", None): (23, 12, 10, 22),
    ("cassie_mjcf/cassie.xml", "fixed"): (22, 12, 10, 16),
    ("robotiq_2f85_mjcf/2f85.xml", None): (8, 7, 5, 3),
    ("robotiq_2f85_mjcf/2f85.xml", "free"): (9, 7, 5, 9),
    ("gepetto_5bar_linkage/robot.urdf", None): (6, 0, 0, 6),
    ("gepetto_5bar_linkage/robot.yaml", None): (6, 6, 3, 3),
    ("gepetto_digit_like/robot.urdf", None): (27, 0, 0, 27),
    ("gepetto_digit_like/robot.yaml", None): (27, 18, 18, 9),
    ("gepetto_robot_delta/robot.urdf", None): (14, 0, 0, 14),
    ("gepetto_robot_delta/robot.yaml", None): (14, 18, 9, 5),
    ("stewart_sdf/stewart_sdf.sdf", None): (26, 24, 24, 18),
    ("stewart_sdf/stewart_sdf.sdf", "fixed"): (25, 24, 24, 12),  # six legs spin idly
    (f"{RH5}/full_urdf/RH5v2.urdf", None): (61, 0, 0, 61),
    (f"{RH5}/full_urdf/submechanisms.yml", None): (61, 33, 33, 28),
    (f"{RH5}/submechanisms_urdf/submechanisms_reduced.yml", None): (23, 10, 10, 13),
    (f"{RH5}/submechanisms_urdf/submechanism_wrist.yml", None): (16, 10, 10, 6),
    (f"{RH5}/submechanisms_urdf/submechanisms_reduced.urdf", None): (23, 0, 0, 23),
    (f"{RH5}/submechanisms_urdf/ALElbow.urdf", None): (3, 0, 0, 3),
    (f"{RH5}/submechanisms_urdf/ARElbow.urdf", None): (3, 0, 0, 3),
    (f"{RH5}/submechanisms_urdf/Body.urdf", None): (8, 0, 0, 8),
    (f"{RH5}/submechanisms_urdf/Head.urdf", None): (6, 3, 3, 3),
    (f"{RH5}/submechanisms_urdf/left_wrist_mechanism.urdf", None): (16, 0, 0, 16),
    (f"{RH5}/submechanisms_urdf/right_wrist_mechanism.urdf", None): (16, 0, 0, 16),
}


@pytest.fixture(params=MODELS, ids=lambda p: f"{p[0].split('/', 1)[1]}-{p[1]}")
def model(request):
    return shared(*request.param), MODELS[request.param]


def test_rows_rank_and_mobility(model):
    model, expected = model
    rows = sum(loop.rows for loop in model.loops)
    assert (len(model.bodies), rows, model.nv_span - model.nv, model.nv) == expected


def test_assembles(model):
    model, _ = model
    assert model.loop_gap(model.assemble()) <= 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_equals_lagrange_multipliers(model, seed):
    model, _ = model
    q, v = model.random_state(seed)
    assert model.loop_gap(q) <= 1e-10
    tau = np.random.default_rng(seed).uniform(-1, 1, model.nv)
    a = gb.forward_dynamics(model, q, v, tau)
    assert error(a, saddle_point(model, q, v, tau)) < 1e-8
    assert error(a, gb.forward_dynamics(model, q, v, tau, method="lagrange")) < 1e-8


def test_massless_links_in_loops_leave_the_spanning_inertia_singular():
    """Cassie's rods end in massless links: H is singular, H with the loops is not."""
    model = shared("cassie_dairlib_urdf/cassie_full_model.urdf", "free")
    compiled = gb.compile(gb.forward_dynamics, model, method="lagrange")
    masses = gb.compile(gb.forward_dynamics, model, method="lagrange", parameters=["mass"])
    for seed in range(3):
        q, v = model.random_state(seed)
        tau = np.random.default_rng(seed).uniform(-1, 1, model.nv)
        H = gb.mass_matrix(spanning_tree(model), gb.spanning_state(model, q).positions)
        assert np.linalg.matrix_rank(H, hermitian=True) < model.nv_span
        a = gb.forward_dynamics(model, q, v, tau)
        assert error(gb.forward_dynamics(model, q, v, tau, method="lagrange"), a) < 1e-12
        assert error(compiled(q, v, tau), a) < 1e-12
        assert error(masses(q, v, tau, gb.parameter_values(model, "mass")), a) < 1e-12
    known = gb.robots.load("mini_cheetah")
    assert loops_without_inertia(model) and not loops_without_inertia(known)


ZOO = {  # URDF+ file: robot of the zoo with the same numbers
    "mini_cheetah": "mini_cheetah",
    "mini_cheetah_approximate": "quadruped",
    "mit_humanoid": "mit_humanoid",
    "mit_humanoid_approximate": "humanoid",
    "four_bar": "parallel_four_bar",
    "six_bar": "six_bar",
    "planar_leg_linkage": "planar_leg_linkage",
}


@pytest.mark.parametrize("name", ZOO)
def test_urdf_plus_equals_the_zoo(name):
    model, known = shared(f"grbda_urdfplus/{name}.urdf"), gb.robots.load(ZOO[name])
    for seed in range(3):
        assert same_dynamics(known, model, seed, by_body=True) < 1e-9


def test_cassie_keyframe_is_open_until_assembled():
    """As published: 1.5 mm; assembly starts there and closes."""
    model = shared("cassie_mjcf/cassie.xml")
    home = {"left-hip-pitch": 0.497301, "left-knee": -1.1997, "left-tarsus": 1.42671}
    for name, value in home.items():
        body = model.body_of_joint(name)
        assert abs(model.reference[body.index][0] - value) < 0.02


def test_strict_lists_everything_that_is_not_used():
    with pytest.raises(gb.ModelError) as caught:
        load(path("cassie_dairlib_urdf/cassie_full_model.urdf"), strict=True)
    text = str(caught.value)
    assert "cassie_full_model.urdf, line 1205: <force_element> in <robot> is ignored" in text
    assert 'has ixz="": 0 is used' in text


def test_unused_parts_are_warnings_with_lines():
    with pytest.warns(FormatWarning) as caught:
        load(path("robotiq_2f85_mjcf/2f85.xml"))
    text = "\n".join(str(w.message) for w in caught)
    assert "2f85.xml, line 188: actuator 'fingers_actuator' is ignored" in text
    assert "its mesh is missing" in text


def test_actuators_are_read():
    cassie = shared("cassie_mjcf/cassie.xml")
    knee = next(a for a in cassie.actuators if a.name == "left-knee")
    assert (knee.gear, knee.effort_limit) == (16.0, 12.2)
    assert cassie.bodies[knee.joint].joint.name == "left-knee"
    digit = shared("gepetto_digit_like/robot.yaml")
    assert [a.name for a in digit.actuators][:2] == ["motor_hip_x", "motor_hip_y"]
    rh5 = shared(f"{RH5}/full_urdf/submechanisms.yml")
    assert len(rh5.actuators) == 20
    drake = shared("cassie_dairlib_urdf/cassie_v2.urdf", "free")
    assert len(drake.actuators) == 10


def test_hyrodyn_keeps_the_independent_joints_of_the_file():
    rh5 = shared(f"{RH5}/full_urdf/submechanisms.yml")
    for name in ("BodyPitch", "BodyRoll", "ALElbow", "ALWristPitch", "ARWristYaw", "HeadPitch"):
        assert name in rh5.v_names
    with pytest.warns(FormatWarning, match="leave more freedoms than the 2 that are called"):
        load(path(f"{RH5}/full_urdf/submechanisms.yml"))


def test_a_yaml_file_may_be_named_beside_its_urdf():
    folder = path(f"{RH5}/submechanisms_urdf")
    given = quiet(
        folder / "left_wrist_mechanism.urdf", submechanisms=folder / "submechanism_wrist.yml"
    )
    assert given.nv == 6
    with pytest.raises(gb.ModelError, match="no joint named 'ALWristPitch'"):
        quiet(folder / "Body.urdf", submechanisms=folder / "submechanism_wrist.yml")


def test_idle_links_of_a_wrist_are_locked_on_load():
    """RH5's wrist moves in two directions; the rest of its six freedoms are rods that spin."""
    wrist = f"{RH5}/submechanisms_urdf/submechanism_wrist.yml"
    model = quiet(path(wrist), lock_idle=True)
    assert (shared(wrist).nv, model.nv, len(model.notes)) == (6, 2, 4)
    assert all("spins alone" in note and "is fixed" in note for note in model.notes)
    q, v = model.random_state(0)
    tau = np.ones(2)
    assert error(gb.forward_dynamics(model, q, v, tau), saddle_point(model, q, v, tau)) < 1e-8
