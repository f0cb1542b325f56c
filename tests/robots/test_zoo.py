"""The zoo equals the published facts, closes its loops, and holds every kind of joint and loop."""

import numpy as np
import pytest

import facts
import grubler as gb
from grubler.errors import GrublerError, InputError, ModelError
from grubler.mechanism.joints import KINDS
from grubler.mechanism.loops import LOOP_KINDS, LoopJoint
from grubler.robots.tello import hip_gamma, hip_phi, knee_gamma, knee_phi

FACTS = {
    "mini_cheetah": "mini_cheetah",
    "mit_humanoid": "mit_humanoid",
    "tello": "tello",
    "jvrc1": "jvrc1",
    "gt_chain": "gt_chain12_uniform",
    "pbt_chain": "pbt_chain12_uniform",
}
# bodies, clusters, degrees of freedom
SIZES = {
    "mini_cheetah": (25, 13, 18),
    "mit_humanoid": (37, 17, 24),
    "mit_humanoid_leg": (10, 4, 5),
    "tello": (37, 15, 24),
    "tello_explicit": (37, 15, 24),
    "jvrc1": (65, 33, 38),
    "gt_chain": (24, 12, 12),
    "pbt_chain": (24, 6, 12),
    "robot_a": (24, 12, 12),
    "robot_b": (24, 6, 12),
    "four_bar": (3, 1, 1),
    "parallel_four_bar": (3, 1, 1),
    "six_bar": (5, 1, 3),
    "planar_leg_linkage": (4, 2, 2),
    "arm7": (7, 7, 7),
    "quadruped": (13, 13, 18),
    "humanoid": (19, 19, 24),
    "joint_sampler": (9, 9, 20),
    "loop_sampler": (33, 12, 18),
}


@pytest.fixture(params=FACTS)
def pair(request):
    """A robot of the zoo and the facts about it."""
    return gb.robots.load(request.param), facts.read("facts", FACTS[request.param])


def test_bodies_equal_the_facts(pair):
    model, known = pair
    assert [body.name for body in model.bodies] == [body["name"] for body in known["bodies"]]
    for body, fact in zip(model.bodies, known["bodies"], strict=True):
        xx, xy, xz, yy, yz, zz = fact["I_com"]
        inertia = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        np.testing.assert_allclose(body.mass, fact["mass"], rtol=1e-12)
        np.testing.assert_allclose(body.com, fact["com"], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(body.inertia, inertia, rtol=1e-12, atol=1e-18)


def test_joints_equal_the_facts(pair):
    model, known = pair
    names = {-1: "ground"} | {body.index: body.name for body in model.bodies}
    for body, fact in zip(model.bodies, known["bodies"], strict=True):
        joint = body.joint
        assert names[body.parent] == fact["parent"]
        assert joint.kind == fact["joint"]["type"]
        if not fact["joint"]["name"].startswith("unnamed"):
            assert joint.name == fact["joint"]["name"]
        np.testing.assert_allclose(joint.placement.r, fact["xyz"], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(joint.placement.E.T, fact["R_parent_child"], atol=1e-11)
        if joint.kind == "revolute":
            np.testing.assert_array_equal(joint.motion.axis, fact["joint"]["axis"])


def test_clusters_and_coordinates_equal_the_facts(pair):
    model, known = pair
    clusters = [[model.bodies[i].name for i in cluster.bodies] for cluster in model.clusters]
    assert clusters == [cluster["bodies"] for cluster in known["clusters"]]
    assert model.nv == known["summary"]["nv"]
    assert facts.by_body(model, model.v_names) == known["y_velocity_labels"]
    assert facts.by_body(model, model.spanning_names) == known["v_span_labels"]
    expected = []
    for cluster in known["clusters"]:
        start, count = cluster["q_span"]
        labels = known["q_span_labels"][start : start + count]
        if cluster["constraint"]["kind"] == "explicit":
            labels = cluster["constraint"]["independent"]
        expected += labels
    assert facts.by_body(model, model.q_names) == expected


def test_transmissions_equal_the_facts(pair):
    model, known = pair
    q, _ = model.random_state(3)
    for cluster, fact in zip(model.clusters, known["clusters"], strict=True):
        if fact["constraint"]["kind"] == "explicit":
            positions = cluster.embedding.positions(q[cluster.q])
            G = cluster.embedding.velocity_map(positions, None)[0]
            np.testing.assert_allclose(G, fact["constraint"]["G"], rtol=1e-12)
        elif fact["constraint"]["kind"] == "implicit":
            phi = facts.differential(fact["constraint"])
            np.testing.assert_allclose(phi(q[cluster.q]), 0.0, atol=1e-11)


def test_contact_points_and_gravity_equal_the_facts(pair):
    model, known = pair
    np.testing.assert_array_equal(model.gravity, known["gravity"])
    assert [frame.name for frame in model.frames] == [p["name"] for p in known["contact_points"]]
    for frame, fact in zip(model.frames, known["contact_points"], strict=True):
        assert model.bodies[frame.body].name == fact["body"]
        np.testing.assert_allclose(frame.placement.r, fact["offset"], rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(frame.placement.E, np.eye(3))


def test_a_model_built_from_the_facts_has_the_same_coordinates(pair):
    model, known = pair
    built = facts.build(known)
    assert facts.by_body(built, built.q_names) == facts.by_body(model, model.q_names)
    assert facts.by_body(built, built.v_names) == facts.by_body(model, model.v_names)


def test_every_robot_is_in_the_table_of_sizes():
    assert gb.robots.names() == list(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_closure(name):
    model = gb.robots.load(name)
    assert (len(model.bodies), len(model.clusters), model.nv) == SIZES[name]
    for q in (model.neutral(), *(model.random_state(seed)[0] for seed in range(3))):
        assert q.shape == (model.nq,)
        assert model.loop_gap(q) < 1e-11
    assert len(model.actuators) >= 1


@pytest.mark.parametrize("name", ["arm7", "quadruped", "humanoid", "joint_sampler"])
def test_plain_trees_have_no_loops(name):
    assert gb.robots.load(name).loops == ()


def test_loop_sampler_is_closed_as_drawn():
    model = gb.robots.load("loop_sampler")
    drawn = {body.index: body.joint.motion.neutral() for body in model.bodies}
    for loop in model.loops:
        if loop.name != "cam":
            np.testing.assert_allclose(loop.residual(drawn), 0.0, atol=1e-15)


def test_random_motion_reaches_every_mechanism_of_the_loop_sampler():
    model = gb.robots.load("loop_sampler")
    neutral = model.unpack(model.neutral())
    moved = model.unpack(model.random_state(0)[0])
    for body in model.bodies:
        assert np.abs(moved[body.index] - neutral[body.index]).max() > 1e-6, body.name


def test_every_kind_of_joint_and_loop_stands_in_the_zoo():
    models = [gb.robots.load(name) for name in gb.robots.names()]
    joints = {joint.kind for model in models for joint in model.joints}
    loops = {loop.kind for m in models for loop in m.loops if isinstance(loop, LoopJoint)}
    others = {type(loop).__name__ for m in models for loop in m.loops} - {"LoopJoint"}
    assert joints == set(KINDS) - {"fixed"}  # fixed joints are welded, see the frame 'valve'
    assert gb.robots.load("joint_sampler").frame("valve")
    assert loops == set(LOOP_KINDS)
    couplings = {"LinearCoupling", "PolynomialCoupling"}
    assert others == couplings | {"ImplicitConstraint", "ExplicitConstraint"}


def test_a_cluster_of_the_loop_sampler_mixes_a_loop_and_a_coupling():
    model = gb.robots.load("loop_sampler")
    kinds = [{type(loop).__name__ for loop in cluster.loops} for cluster in model.clusters]
    assert {"LoopJoint", "LinearCoupling"} in kinds


def test_left_and_right_legs_of_the_humanoid_are_mirror_images():
    left = gb.robots.load("mit_humanoid_leg", side="left")
    right = gb.robots.load("mit_humanoid_leg", side="right", rotor_mass=True)
    whole = gb.robots.load("mit_humanoid")
    for body in right.bodies:
        np.testing.assert_array_equal(body.spatial, whole.body(f"right_{body.name}").spatial)
        np.testing.assert_allclose(left.body(body.name).com, body.com * [1, -1, 1])
    assert all(body.mass == 0.0 for body in left.bodies if body.name.endswith("rotor"))


@pytest.mark.parametrize("name", ["gt_chain", "pbt_chain", "robot_a", "robot_b"])
def test_chains_of_any_length_and_seed(name):
    model = gb.robots.load(name, n=4, seed=7)
    again, other = gb.robots.load(name, n=4, seed=7), gb.robots.load(name, n=4, seed=8)
    assert model.nv == 4
    assert len(model.bodies) == 8
    assert model.bodies[0].mass == again.bodies[0].mass != other.bodies[0].mass
    long = gb.robots.load(name, n=40)
    assert long.nv == 40


def test_robot_a_and_b_have_the_constraints_of_the_paper():
    """Equations (16) and (17): which rotor follows which link, with real ratios."""
    a, b = gb.robots.load("robot_a", n=2), gb.robots.load("robot_b", n=2)
    for model, pattern in ((a, [[1], [1]]), (b, [[1, 0], [1, 0], [1, 1], [0, 1]])):
        cluster = model.clusters[0]
        positions = cluster.embedding.positions(model.neutral()[cluster.q])
        G = cluster.embedding.velocity_map(positions, None)[0]
        np.testing.assert_array_equal(G != 0, pattern)
        rotors = [
            i for i, index in enumerate(cluster.bodies) if "rotor" in model.bodies[index].name
        ]
        assert np.all(G[rotors][G[rotors] != 0] % 1 != 0)


def test_closed_form_of_the_differentials_satisfies_their_constraints():
    rng = np.random.default_rng(5)
    for phi, gamma in ((hip_phi, hip_gamma), (knee_phi, knee_gamma)):
        for y in rng.uniform(-0.4, 0.4, (50, 2)):
            np.testing.assert_allclose(phi(np.concatenate([gamma(y), y])), 0.0, atol=1e-15)


def test_formulas_of_the_differentials_equal_the_facts():
    clusters = {c["name"]: c["constraint"] for c in facts.read("facts", "tello")["clusters"]}
    rng = np.random.default_rng(6)
    for q in rng.uniform(-1, 1, (20, 4)):
        for part, phi in (("hip", hip_phi), ("knee-ankle", knee_phi)):
            known = facts.differential(clusters[f"left-{part}-differential"])
            np.testing.assert_allclose(phi(q), known(q), rtol=1e-13, atol=1e-16)


def test_unknown_names_and_options_are_refused():
    with pytest.raises(ModelError, match=r"no robot named 'mini_cheeta'.*'mini_cheetah'"):
        gb.robots.load("mini_cheeta")
    with pytest.raises(InputError, match=r"gt_chain.*no option named 'sed'.*'seed'"):
        gb.robots.load("gt_chain", sed=1)
    with pytest.raises(InputError, match="even number"):
        gb.robots.load("pbt_chain", n=5)
    with pytest.raises(InputError, match="positive number"):
        gb.robots.load("gt_chain", n=0)
    with pytest.raises(GrublerError, match="'left' or 'right'"):
        gb.robots.load("mit_humanoid_leg", side="top")


@pytest.mark.parametrize("seed", range(5))
def test_tello_implicit_and_explicit_agree(seed):
    """One state, one set of motor torques: the same accelerations of all tree joints."""
    implicit, explicit = gb.robots.load("tello"), gb.robots.load("tello_explicit")
    rng = np.random.default_rng(seed)
    torques = {
        implicit.joints[motor.joint].name: rng.uniform(-5, 5) for motor in implicit.actuators
    }
    q, v = explicit.random_state(seed)
    span = gb.spanning_state(explicit, q, v)
    names = [body.joint.name for body in explicit.bodies]
    assert explicit.spanning_names == implicit.spanning_names
    positions = dict(zip(names, _by_joint(explicit, span.positions, "nq"), strict=True))
    velocities = dict(zip(names, _by_joint(explicit, span.velocities, "nv"), strict=True))
    results = []
    for model, state in (
        (explicit, (q, v)),
        (implicit, gb.from_spanning(implicit, positions, velocities)),
    ):
        tau = gb.generalized_force(model, state[0], torques)
        a = gb.forward_dynamics(model, *state, tau)
        results.append(gb.spanning_state(model, *state, a).accelerations)
        energy = gb.energy(model, *state)
        assert energy.kinetic == pytest.approx(gb.energy(explicit, q, v).kinetic, rel=1e-10)
    assert facts.relative_error(results[1], results[0]) < 1e-9


def _by_joint(model, stacked, size):
    """Split stacked spanning coordinates joint by joint, in the model's body order."""
    order = model.spanning_order
    sizes = [getattr(model.bodies[i].joint, size) for i in order]
    pieces = dict(zip(order, np.split(stacked, np.cumsum(sizes)[:-1]), strict=True))
    return [pieces[body.index] for body in model.bodies]
