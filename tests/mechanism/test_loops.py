"""Loop kinds: K and k against exact derivatives of φ, closure, ranks, and mixed clusters."""

import numpy as np
import pytest

import grubler as gb
from grubler.algebra.spatial import quaternion_matrix
from grubler.algebra.symbolic import Differentiable
from grubler.coordinates.assembly import check_closed, newton
from grubler.coordinates.embedding import stack_rows
from grubler.mechanism.loops import LOOP_KINDS
from grubler.model.spanning_tree import SpanningTree
from grubler.reduction.reduced import reframed


def spatial_loop(kind, seed=0):
    """Two random chains, closed by a loop joint whose frames meet at a random configuration."""
    rng = np.random.default_rng(seed)
    freedoms = {
        "distance": 2,
        "planar": 4,
        "universal": 5,
        "cylindrical": 5,
        "inline": 3,
        "inplane": 2,
    }.get(kind, 7)
    b = gb.ModelBuilder(f"{kind} loop")
    chains = {"a": (freedoms + 1) // 2, "b": freedoms // 2 + 1}
    for side, count in chains.items():
        parent = "world"
        for i in range(count):
            name = f"{side}{i}"
            b.add_body(name, 1.0 + i, rng.uniform(-0.1, 0.1, 3), (0.02, 0, 0, 0.03, 0, 0.04))
            b.add_joint(
                f"j{name}", "prismatic" if i == 1 else "revolute", parent, name,
                xyz=rng.uniform(-0.4, 0.4, 3), rpy=rng.uniform(-1, 1, 3),
                axis=rng.uniform(-1, 1, 3),
            )  # fmt: skip
            parent = name
    open_model = b.build()
    pose = gb.kinematics(open_model, rng.uniform(-0.5, 0.5, open_model.nq))
    ends = [open_model.body(f"{s}{n - 1}").index for s, n in chains.items()]
    # the two frames coincide there, in a random common frame
    R_common = gb.kinematics(open_model, rng.uniform(-1, 1, open_model.nq)).rotation[0]
    point = pose.position[ends[0]] + rng.uniform(-0.1, 0.1, 3)
    frames = [
        {"xyz": pose.rotation[e].T @ (point - pose.position[e]), "R": pose.rotation[e].T @ R_common}
        for e in ends
    ]
    if kind == "distance":
        frames[1]["xyz"] = frames[1]["xyz"] + np.array([0.2, 0.05, -0.1])
    options = {"distance": 0.3} if kind == "distance" else {"axis": (0.2, -0.3, 1.0)}
    if kind == "universal":
        options["axis2"] = np.cross((0.2, -0.3, 1.0), (1.0, 0, 0))
    b.add_loop(
        "closing", kind, f"a{chains['a'] - 1}", f"b{chains['b'] - 1}",
        predecessor_xyz=frames[0]["xyz"], predecessor_R=frames[0]["R"],
        successor_xyz=frames[1]["xyz"], successor_R=frames[1]["R"], **options,
    )  # fmt: skip
    return b.build()


ROWS = {
    "revolute": 5, "prismatic": 5, "ball": 3, "universal": 4, "cylindrical": 4, "planar": 3,
    "fixed": 6, "distance": 1, "inline": 2, "inplane": 1,
}  # fmt: skip


def test_every_kind_is_tested():
    assert set(ROWS) == set(LOOP_KINDS)


@pytest.mark.parametrize("kind", LOOP_KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_are_derivatives_of_phi(kind, seed):
    model = spatial_loop(kind, seed)
    (cluster,), (loop,) = model.clusters, model.loops
    assert loop.rows == ROWS[kind]
    phi = Differentiable(
        lambda q: loop.equations({i: q[i : i + 1] for i in range(model.nq)}), model.nq
    )
    rng = np.random.default_rng(seed)
    for trial in range(3):
        # anywhere, assembled or not: K and k are the derivatives of φ identically
        q = rng.uniform(-1, 1, model.nq) if trial else model.neutral()
        qd = rng.uniform(-1, 1, model.nq)
        K, k = stack_rows(
            model.bodies,
            model.loops,
            *({i: x[i : i + 1] for i in range(model.nq)} for x in (q, qd)),
        )
        assert np.abs(K - phi.jacobian(q)).max() < 1e-13
        assert np.abs(k + phi.curvature(q, qd)).max() < 1e-12
    assert cluster.nv == model.nq - ROWS[kind]


def local(model, q):
    return {i: q[i : i + 1] for i in range(model.nq)}


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_slopes_are_derivatives_of_the_residual(kind):
    """Anywhere; and where the loop is closed they are the K of the dynamics."""
    model, rng, h = spatial_loop(kind), np.random.default_rng(1), 1e-6
    (loop,) = model.loops

    def slopes(q):
        blocks = loop.slopes(local(model, q))
        parts = [blocks.get(i, np.zeros((loop.rows, 1))) for i in range(model.nq)]
        return np.concatenate(parts, axis=1)

    for _ in range(5):
        q = rng.uniform(-1, 1, model.nq)
        steps = h * np.eye(model.nq)
        phi = [[loop.residual(local(model, q + s * d)) for s in (1, -1)] for d in steps]
        differences = np.stack([(a - b) / (2 * h) for a, b in phi], axis=1)
        assert np.abs(slopes(q) - differences).max() < 1e-8
    q = model.neutral()
    K, _ = stack_rows(model.bodies, model.loops, local(model, q), None)
    assert np.abs(slopes(q) - K).max() < 1e-13


def turned(kind, angle, about, close="world"):
    """A body on three hinges that meet at right angles, held to the world by a loop joint whose
    frame is turned by an angle about an axis."""
    b = gb.ModelBuilder(f"{kind} turned")
    parent = "world"
    for name, axis in (("a", (0, 0, 1)), ("b", (0, 1, 0)), ("c", (1, 0, 0))):
        b.add_body(name, 1.0, (0.1, 0, 0), (0.02, 0, 0, 0.03, 0, 0.04))
        b.add_joint(name, "revolute", parent, name, axis=axis)
        parent = name
    half = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.array(about)])
    b.add_loop("held", kind, "c", close, axis=(0, 0, 1), successor_R=quaternion_matrix(half))
    return b


AXES = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.8, 0), (0.48, 0.6, 0.64), (-0.36, 0.48, 0.8)]


@pytest.mark.parametrize("kind", ["revolute", "cylindrical", "planar", "prismatic", "fixed"])
@pytest.mark.parametrize("about", AXES)
def test_half_a_turn_off_is_open(kind, about):
    """Sines vanish half a turn off; the residual must not, wherever the axis of the turn lies."""
    b = turned(kind, np.pi, about)
    zero = {i: np.zeros(1) for i in range(3)}
    loop = b._loops["held"](SpanningTree(b._masses, b._edges, b._joint_names))
    locked = kind in ("prismatic", "fixed")
    z = np.array([0, 0, 1.0])
    due = np.pi if locked else np.arccos(z @ (2 * np.outer(about, about) - np.eye(3)) @ z)
    assert np.isclose(np.linalg.norm(loop.residual(zero)), due, atol=1e-9)
    if due > 1e-6:
        with pytest.raises(gb.ClosureError, match=r"is open by .*rad"):
            check_closed([loop], zero)


@pytest.mark.parametrize("kind", ["revolute", "cylindrical", "planar", "prismatic", "fixed"])
@pytest.mark.parametrize("about", AXES)
@pytest.mark.parametrize("angle", [np.pi, 3.1, 2.0])
def test_loops_far_off_in_angle_close_in_one_run(kind, about, angle):
    """A step along the logarithm is right however far it goes: no restart is needed."""
    b = turned(kind, angle, about)
    tree = SpanningTree(b._masses, b._edges, b._joint_names)
    loop = b._loops["held"](tree)
    start = {i: np.full(1, 0.1 * (i + 1)) for i in range(3)}  # away from the wrist's singularity
    positions, gap = newton(tree.bodies, [loop], start)
    assert gap < 1e-12
    check_closed([loop], positions)


def test_compiled_assembly_reports_a_reversed_loop():
    """Newton's steps on sines may end half a turn off; the gap that is handed back says so."""
    model = turned("revolute", 0.3, (0.6, 0.8, 0)).build(reference={"a": 0.1, "b": 0.2, "c": 0.1})
    q = model.neutral()
    reversed_ = np.array([q[0] + np.pi, np.pi - q[1], q[2]])  # turned about an axis across z
    for x, due in ((q, 0.0), (reversed_, np.pi)):
        gap = gb.assemble(model, x)[1]
        assert np.isclose(gap, due, atol=1e-10)


def loop_through(kinds, closing):
    """A loop through joints of many kinds on either side, placed at random."""
    rng = np.random.default_rng(2)
    b, ends = gb.ModelBuilder("loop through many kinds"), []
    for side in (kinds, kinds[::-1]):
        parent = "world"
        for i, kind in enumerate(side):
            name = f"{len(ends)}{kind}{i}"
            options = {"universal": {"axis": (0, 0, 1), "axis2": (0, 1, 0)}, "spherical": {}}
            options = options.get(kind, {"axis": rng.uniform(-1, 1, 3)})
            if kind == "helical":
                options["pitch"] = 0.1
            b.add_body(name, 1.0, rng.uniform(-0.1, 0.1, 3), (0.02, 0, 0, 0.03, 0, 0.04))
            b.add_joint(f"j{name}", kind, parent, name, xyz=rng.uniform(-0.4, 0.4, 3),
                        rpy=rng.uniform(-1, 1, 3), **options)  # fmt: skip
            parent = name
        ends.append(parent)
    b.add_loop("closing", closing, *ends, axis=(0.2, -0.3, 1.0))
    return b.build()


@pytest.mark.parametrize("closing", ["ball", "revolute", "fixed"])
@pytest.mark.parametrize(
    "kinds",
    [("universal", "helical", "spherical"), ("planar", "revolute", "universal", "cylindrical")],
)
def test_rows_through_joints_of_every_kind(kinds, closing):
    """K v and -k are the first and second derivative of φ while all joints go on as they do; and
    the same where bodies are seen from other frames."""
    model = loop_through(kinds, closing)
    (cluster,), (loop,) = model.clusters, model.loops
    joint, rng, h = cluster.embedding, np.random.default_rng(0), 1e-4
    q = {b.index: b.joint.motion.integrate(b.joint.motion.neutral(), rng.uniform(-1, 1, b.joint.nv))
         for b in model.bodies}  # fmt: skip
    v = {b.index: rng.uniform(-1, 1, b.joint.nv) for b in model.bodies}

    def phi(t):
        return loop.equations(
            {b.index: b.joint.motion.integrate(q[b.index], t * v[b.index]) for b in model.bodies}
        )

    K, k = joint.constraint(q, v)
    rate = K @ np.concatenate([v[b.index] for b in joint.bodies])
    assert np.abs(rate - (phi(h) - phi(-h)) / (2 * h)).max() < 1e-7
    assert np.abs(k + (phi(h) - 2 * phi(0.0) + phi(-h)) / h**2).max() < 1e-6
    moved, new = reframed(model.bodies, frozenset())
    turned = [i for i in new if not np.array_equal(new[i].E, np.eye(3))]
    assert len(turned) == 2 * kinds.count("revolute")
    other = joint.reframed(moved, new).constraint(q, v)
    assert np.abs(other[0] - K).max() < 1e-13 and np.abs(other[1] - k).max() < 1e-12


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_dynamics_of_every_kind(kind):
    model = spatial_loop(kind)
    q, v = model.random_state(4)
    tau = np.ones(model.nv)
    assert model.loop_gap(q) < 1e-12
    a = gb.forward_dynamics(model, q, v, tau)
    other = gb.forward_dynamics(model, q, v, tau, method="lagrange")
    assert np.abs(a - other).max() < 1e-9 * np.abs(a).max()


def four_bar(closing, **options):
    b = gb.ModelBuilder("four bar")
    for name, length in (("crank", 0.2), ("coupler", 0.45), ("follower", 0.4)):
        b.add_body(name, length, (length / 2, 0, 0), (1e-4, 0, 0, 1e-3, 0, 1e-3))
    y = {"axis": (0, 1, 0)}
    b.add_joint("crank_joint", "revolute", "world", "crank", **y, **options)
    b.add_joint("elbow", "revolute", "crank", "coupler", xyz=(0.2, 0, 0), **y)
    b.add_joint("rocker", "revolute", "world", "follower", xyz=(0.5, 0, 0), **y)
    b.add_loop(
        "tip", closing, "coupler", "follower",
        predecessor_xyz=(0.45, 0, 0), successor_xyz=(0.4, 0, 0), axis=(0, 1, 0),
    )  # fmt: skip
    return b


@pytest.mark.parametrize(("closing", "rows"), [("revolute", 5), ("ball", 3)])
def test_redundant_rows_are_dropped(closing, rows):
    model = four_bar(closing).build()
    assert model.loops[0].rows == rows
    assert len(model.clusters[0].embedding.kept) == 2
    assert model.nv == 1
    assert "redundant" in str(model)


def test_both_closings_give_the_same_motion():
    revolute, ball = four_bar("revolute").build(), four_bar("ball").build()
    q, v = revolute.random_state(0)
    assert np.allclose(
        gb.forward_dynamics(revolute, q, v, [1.0]),
        gb.forward_dynamics(ball, q, v, [1.0]),
        rtol=1e-12,
    )


def test_mixed_cluster_of_loop_and_gear():
    b = four_bar("revolute")
    b.add_body("rotor", 0.05, inertia=(1e-5, 0, 0, 2e-5, 0, 1e-5))
    b.add_joint("rotor_joint", "revolute", "world", "rotor", axis=(0, 1, 0))
    b.add_coupling("gear", "rotor_joint", {"crank_joint": 9.0})
    model = b.build()
    assert len(model.clusters) == 1 and model.nv == 1 and model.clusters[0].embedding.implicit
    bare = four_bar("revolute").build()
    q, v = bare.random_state(2)
    rates = dict(zip(bare.spanning_names, gb.spanning_state(bare, q, v).velocities, strict=True))
    positions = dict(zip(bare.q_names, q, strict=True)) | {"rotor_joint": 9 * q[0]}
    q_geared, v_geared = gb.from_spanning(model, positions, rates)
    # the rotor only adds its spin inertia, 81 times
    M = gb.mass_matrix(model, q_geared)[0, 0] - gb.mass_matrix(bare, q)[0, 0]
    assert np.isclose(M, 81 * 2e-5, rtol=1e-12)
    assert np.isclose(v_geared, v).all()


def test_polynomial_and_user_constraints_agree():
    """The same cam three ways: polynomial coupling, explicit gamma, implicit phi."""

    def build(kind):
        def cam(x):
            return 0.1 + 0.5 * x - 0.3 * x**2 + 0.2 * x**3

        b = gb.ModelBuilder(kind)
        for name in ("cam", "lever"):
            b.add_body(name, 1.0, (0.1, 0, 0), (0.01, 0, 0, 0.02, 0, 0.02))
            b.add_joint(f"{name}_joint", "revolute", "world", name, axis=(0, 1, 0))
        if kind == "polynomial":
            b.add_coupling("c", "lever_joint", leader="cam_joint", polynomial=(0.1, 0.5, -0.3, 0.2))
        elif kind == "gamma":
            b.add_constraint(
                "c", gamma=lambda y: np.stack([cam(y[0])]),
                independent=["cam_joint"], dependent=["lever_joint"],
            )  # fmt: skip
        else:
            b.add_constraint(
                "c", phi=lambda q: np.stack([q[1] - cam(q[0])]),
                joints=["cam_joint", "lever_joint"],
            )  # fmt: skip
        return b.build()

    lever = 0.1 + 0.5 * 0.7 - 0.3 * 0.7**2 + 0.2 * 0.7**3
    slope = 0.5 - 0.6 * 0.7 + 0.6 * 0.7**2
    results = []
    for kind in ("polynomial", "gamma", "phi"):
        model = build(kind)
        assert model.v_names == ("cam_joint",)
        q, v = gb.from_spanning(
            model,
            {"cam_joint": 0.7, "lever_joint": lever},
            {"cam_joint": 1.3, "lever_joint": slope * 1.3},
        )
        results.append(gb.forward_dynamics(model, q, v, [0.4])[0])
    assert np.allclose(results, results[0], rtol=1e-12)


def test_constraint_on_a_ball_joint():
    """A user's φ over a quaternion: K and k through the joint's own derivative."""
    b = gb.ModelBuilder("gimbal")
    b.add_body("ball", 1.0, (0, 0, -0.3), (0.02, 0, 0, 0.03, 0, 0.04))
    b.add_joint("socket", "spherical", "world", "ball")
    b.add_constraint(
        "no yaw", phi=lambda q: np.stack([q[0] * q[3] - 0.2 * q[1]]), joints=["socket"]
    )
    model = b.build()
    assert model.nv == 2
    q, v = model.random_state(1)
    a = gb.forward_dynamics(model, q, v, np.zeros(2))
    assert np.allclose(
        a, gb.forward_dynamics(model, q, v, np.zeros(2), method="lagrange"), rtol=1e-10
    )
    h = 1e-5  # φ stays zero to third order along the motion with these accelerations
    span = gb.spanning_state(model, q, v, a)
    motion = model.bodies[0].joint.motion
    gaps = []
    for t in (h * 100, h * 200):
        q_t = motion.integrate(q, span.velocities + span.accelerations * t / 2, t)
        gaps.append(abs(q_t[0] * q_t[3] - 0.2 * q_t[1]))
    assert gaps[1] / max(gaps[0], 1e-18) > 6 or gaps[1] < 1e-14


def test_wrong_gamma_size():
    b = gb.ModelBuilder("g")
    for name in ("a", "b"):
        b.add_body(name, 1.0, inertia=(1, 0, 0, 1, 0, 1))
        b.add_joint(f"j{name}", "revolute", "world", name)
    b.add_constraint(
        "c", gamma=lambda y: np.stack([y[0], y[0]]), independent=["ja"], dependent=["jb"]
    )
    with pytest.raises(gb.ModelError, match="returns 2 values for 1"):
        b.build()
