"""Rows whose place moves as prescribed, against trees whose joint is driven."""

import numpy as np
import pytest
from pairs import GRAVITY, JOINTS, PORTS, add_body, free, of_tree, port_pose, tree, wrench_on

import grubler as gb
from conftest import relative
from grubler.algebra.spatial import matrix_quaternion, quaternion_log
from grubler.constrained import ClosedChain, Closure, Constraint, constrained_forward_dynamics

METHODS = ("kkt", "proximal", "pv", "pv_early", "ltl")
MOVING = [name for name in JOINTS if name not in ("weld", "ball of spatial rows")]
AT_PORT = (np.eye(3), np.zeros(3))
FAST = 6.0


def place_motion(joint, q, v, a):
    """(3, 6): the motion of a joint's child as that of a place, in the axes of its parent."""
    X, S, bias = joint.transform(q), joint.subspace(q), joint.bias(q, v)
    V, A = S @ v, S @ a + (0.0 if bias is None else bias)
    R = X.E.T
    second = R @ (A[3:] + np.cross(V[:3], V[3:]))
    turn = quaternion_log(matrix_quaternion(R))
    return np.array([[*turn, *X.r], [*(R @ V[:3]), *(R @ V[3:])], [*(R @ A[:3]), *second]])


def with_driven(model, q, v, driven, a_driven):
    """The acceleration of a tree without motors, but for coordinates with prescribed ones."""
    M, h = gb.mass_matrix(model, q), gb.bias_force(model, q, v)
    free_ones = np.setdiff1d(np.arange(model.nv), driven)
    a = np.zeros(model.nv)
    a[driven] = a_driven
    M_ff = M[np.ix_(free_ones, free_ones)]
    a[free_ones] = np.linalg.solve(M_ff, -(h + M @ a)[free_ones])
    return a


def driven_state(model, driven, seed):
    """(bodies, by driven joint its q, v and a)."""
    rng = np.random.default_rng(seed)
    q, v = model.random_state(seed)[0], rng.uniform(-FAST, FAST, model.nv)
    a_driven = rng.uniform(-30, 30, len(driven))
    a = with_driven(model, q, v, driven, a_driven)
    return q, v, a, of_tree(model, q, v, a)


def coordinates(model, name: str):
    """(q, v) indices of a joint."""
    body = next(b for b in model.bodies if b.joint.name == name)
    cluster = next(c for c in model.clusters if body.index in c.bodies)
    return cluster.q, np.arange(model.nv)[cluster.v], body.joint.motion


def motions(joint: str, seeds):
    """(bodies, motion (3, 6)) of states with the joint driven."""
    model = tree(joint)
    at_q, at_v, motion = coordinates(model, "joint")
    for seed in seeds:
        q, v, a, bodies = driven_state(model, at_v, seed)
        yield bodies, place_motion(motion, q[at_q], v[at_v], a[at_v])


def joined(bodies):
    return [np.concatenate([getattr(bodies[n], x) for n in "ab"]) for x in "qva"]


@pytest.mark.parametrize("joint", MOVING)
def test_a_driven_weld_is_a_driven_joint(joint):
    """Accelerations and forces, by every method and as an input of compiled code."""
    model = free("a", "b")
    states = list(motions(joint, range(3)))
    for period in (None, 0.05):
        rows = (Constraint("b_port", to="a_port", target=AT_PORT, period=period, driven=True),)
        code = gb.compile(
            constrained_forward_dynamics, model, constraints=rows,
            inputs=["q", "v", "tau", "motion"], shapes={"motion": (3, 6)},
        )  # fmt: skip
        for bodies, motion in states:
            q, v, a = joined(bodies)
            due = wrench_on(bodies["b"], "b")
            given = {"motion": motion}
            for method in METHODS:
                found = constrained_forward_dynamics(
                    model, q, v, 0 * v, rows, method=method, **given
                )
                assert relative(found.a, a) < 1e-10, method
                assert relative(found.multipliers, due) < 1e-10, method
            assert relative(code(q, v, 0 * v, motion)[0], a) < 1e-10


@pytest.mark.parametrize("joint", MOVING)
def test_a_driven_closure_is_a_driven_joint(joint):
    models = {n: free(n) for n in "ab"}
    closure = Closure("c", ("b", "b_port"), ("a", "a_port"))
    chain = ClosedChain({"a": models["a"]}, {"b": models["b"]}, [closure], compiled=False)
    for bodies, motion in motions(joint, range(3)):
        states = {n: (x.q, x.v, None) for n, x in bodies.items()}
        found = chain.forward_dynamics(states, motions={"c": motion})
        for n in "ab":
            assert relative(found.a[n], bodies[n].a) < 1e-10
        assert relative(found.forces["c"], wrench_on(bodies["b"], "b")) < 1e-10
        kept = chain.impulse(states, motions={"c": motion})
        assert all(relative(kept[n], bodies[n].v) < 1e-10 for n in "ab")


def along_a_path() -> gb.Model:
    """Body b on a ball joint, whose centre three rails move in body a."""
    b = gb.ModelBuilder("along_a_path", gravity=GRAVITY)
    add_body(b, "a")
    b.add_joint("a_float", "free", "world", "a")
    xyz, rpy = PORTS["a"]
    b.add_frame("a_port", "a", xyz, rpy=rpy)
    parent = "a"
    for i, name in enumerate("xyz"):
        b.add_body(name)
        place = {"xyz": xyz, "rpy": rpy} if parent == "a" else {}
        b.add_joint(name, "prismatic", parent, name, axis=np.eye(3)[i], **place)
        parent = name
    R, p = port_pose("b")
    b.add_body("centre")
    b.add_joint("ball", "spherical", "z", "centre")
    add_body(b, "b")
    b.add_joint("mount", "fixed", "centre", "b", xyz=-R.T @ p, R=R.T)
    return b.build()


@pytest.mark.parametrize("period", [None, 0.1])
def test_a_point_on_a_path(period):
    """Three rails are driven, the ball turns freely: "point" with a place that moves."""
    tree, model = along_a_path(), free("a", "b")
    at_v = np.concatenate([coordinates(tree, n)[1] for n in "xyz"])
    at_q = np.concatenate([np.arange(tree.nq)[coordinates(tree, n)[0]] for n in "xyz"])
    rows = [
        Constraint("b_port", "point", to="a_port", target=np.zeros(3), period=period, driven=True)
    ]
    models = {n: free(n) for n in "ab"}
    closure = Closure("c", ("b", "b_port"), ("a", "a_port"), "point", period=period)
    chain = ClosedChain({"a": models["a"]}, {"b": models["b"]}, [closure], compiled=False)
    for seed in range(3):
        q, v, a, bodies = driven_state(tree, at_v, seed)
        motion = np.concatenate([np.zeros((3, 3)), [q[at_q], v[at_v], a[at_v]]], axis=1)
        q, v, a = joined(bodies)
        for method in METHODS:
            found = constrained_forward_dynamics(
                model, q, v, 0 * v, rows, motion=motion, method=method
            )
            assert relative(found.a, a) < 1e-10, method
            assert relative(found.multipliers, wrench_on(bodies["b"], "b")[3:]) < 1e-10
        states = {n: (x.q, x.v, None) for n, x in bodies.items()}
        found = chain.forward_dynamics(states, motions={"c": motion})
        assert relative(np.concatenate([found.a[n] for n in "ab"]), a) < 1e-10


@pytest.mark.parametrize("driven", ["turn", "slide"])
def test_one_coordinate_of_a_cylinder_is_driven(driven):
    """The other one stays free: hinge rows on a place that slides, and the reverse."""
    tree_, model = tree("cylinder"), free("a", "b")
    at_q, at_v, joint = coordinates(tree_, "joint")
    unit = np.eye(6)[2 if driven == "turn" else 5]
    column = int(np.argmax(unit @ joint.subspace(np.zeros(2))))
    rows = (0, 1, 3, 4, 5) if driven == "slide" else (0, 1, 2, 3, 4)
    constraint = [Constraint("b_port", rows, to="a_port", target=AT_PORT, driven=True)]
    for seed in range(3):
        q, v, a, bodies = driven_state(tree_, at_v[[column]], seed)
        values = np.array([q[at_q][column], v[at_v][column], a[at_v][column]])
        q, v, a = joined(bodies)
        found = constrained_forward_dynamics(
            model, q, v, 0 * v, constraint, motion=np.outer(values, unit)
        )
        assert relative(found.a, a) < 1e-10


@pytest.mark.parametrize("joint", [*MOVING, "ball of spatial rows"])
def test_rows_with_the_world(joint):
    """A body on a joint with the world, left free and driven, is one on rows with the world."""
    rows, fixed = JOINTS[joint][1], tree(joint, root="fixed")
    motion = coordinates(fixed, "joint")[2]
    model, rng = free("b"), np.random.default_rng(7)
    R_a, p_a = port_pose("a")
    target = p_a if rows == "point" else (R_a, p_a)
    held = (Constraint("b_port", rows, target=target, period=0.3),)

    def closed(rows):
        closure = Closure("c", ("secondary", "b_port"), None, rows, (R_a, p_a))
        return ClosedChain({}, model, [closure], compiled=False)

    code = gb.compile(constrained_forward_dynamics, model, constraints=held)
    for seed in range(3):
        q, v = fixed.random_state(seed)[0], rng.uniform(-FAST, FAST, fixed.nv)
        a = gb.forward_dynamics(fixed, q, v, 0 * v)
        body = of_tree(fixed, q, v, a, names="b")["b"]
        for method in METHODS:
            found = constrained_forward_dynamics(
                model, body.q, body.v, np.zeros(6), held, method=method
            )
            assert relative(found.a, body.a) < 1e-10, method
        assert relative(code(body.q, body.v, np.zeros(6))[0], body.a) < 1e-10
        found = closed(rows).forward_dynamics({"secondary": (body.q, body.v, None)})
        assert relative(found.a["secondary"], body.a) < 1e-10
        a = rng.uniform(-30, 30, fixed.nv)
        body = of_tree(fixed, q, v, a, names="b")["b"]
        weld = Constraint("b_port", target=(R_a, p_a), driven=True)
        found = constrained_forward_dynamics(
            model, body.q, body.v, np.zeros(6), [weld], motion=place_motion(motion, q, v, a)
        )
        assert relative(found.a, body.a) < 1e-10
        assert relative(found.multipliers, wrench_on(body, "b")) < 1e-10
        state, given = {"secondary": (body.q, body.v, None)}, {"c": place_motion(motion, q, v, a)}
        found = closed("weld").forward_dynamics(state, motions=given)
        assert relative(found.a["secondary"], body.a) < 1e-10
        assert relative(found.forces["c"], wrench_on(body, "b")) < 1e-10
        kept = closed("weld").impulse({"secondary": (body.q, 0 * body.v, None)}, motions=given)
        assert relative(kept["secondary"], body.v) < 1e-10


def test_each_driven_place_has_its_motion():
    """A body on a driven place in the world carries another on a driven place, and rows at rest."""
    full, model = tree("universal"), free("a", "b")
    places = [coordinates(full, name) for name in ("a_float", "joint")]
    soft = Constraint("a_port", "point", softness=1e9)
    rows = (
        soft,
        Constraint("a", target=AT_PORT, driven=True),
        Constraint("b_port", to="a_port", target=AT_PORT, driven=True),
    )
    code = gb.compile(
        constrained_forward_dynamics, model, constraints=rows,
        inputs=["q", "v", "tau", "motion"], shapes={"motion": (6, 6)},
    )  # fmt: skip
    for seed in range(3):
        q, v, a, bodies = driven_state(full, np.arange(full.nv), seed)
        motion = np.stack([place_motion(joint, q[i], v[j], a[j]) for i, j, joint in places])
        q, v, a = joined(bodies)
        found = constrained_forward_dynamics(model, q, v, 0 * v, rows, motion=motion)
        assert relative(found.a, a) < 1e-10
        assert relative(found.multipliers[-6:], wrench_on(bodies["b"], "b")) < 1e-10
        assert relative(code(q, v, 0 * v, motion.reshape(6, 6))[0], a) < 1e-10


def test_motions_are_checked():
    model = free("a", "b")
    q, v = model.random_state(0)
    driven = Constraint("b_port", to="a_port", driven=True)

    def call(constraints, motion):
        constrained_forward_dynamics(model, q, v, 0 * v, constraints, motion=motion)

    for constraints, motion, message in (
        ([Constraint("b_port", to="a_port")], np.zeros((3, 6)), "no constraint is driven"),
        ([driven], np.zeros(6), r"motion: give \(3, 6\)"),
        ([driven], np.zeros((6, 3)), r"motion: give \(3, 6\)"),
        ([driven], "fast", r"motion: give \(3, 6\)"),
        ([driven], np.full((3, 6), np.nan), "give finite numbers"),
        ([driven, driven], np.zeros((3, 6)), r"motion: give \(6, 6\)"),
        ([Constraint("b_port", driven="yes")], None, "driven of .* is 'yes'"),
    ):
        with pytest.raises(gb.InputError, match=message):
            call(constraints, motion)
    with pytest.raises(gb.InputError, match=r"motion has shape \(6, 6\), expected \(3, 6\)"):
        gb.compile(
            constrained_forward_dynamics, model, constraints=[driven],
            inputs=["q", "v", "tau", "motion"], shapes={"motion": (6, 6)},
        )  # fmt: skip
    closure = Closure("c", ("b", "b_port"), ("a", "a_port"))
    chain = ClosedChain({"a": free("a")}, {"b": free("b")}, [closure], compiled=False)
    states = {"a": (q[:7], v[:6], None), "b": (q[7:], v[6:], None)}
    with pytest.raises(gb.InputError, match="no closure named 'd'"):
        chain.forward_dynamics(states, motions={"d": np.zeros((3, 6))})
    with pytest.raises(gb.InputError, match=r"motion of closure 'c': give \(3, 6\)"):
        chain.impulse(states, motions={"c": np.zeros(6)})


def test_a_driven_place_at_rest_is_the_target():
    """No motion, motion zero, and the same constraint without a driven place."""
    model = free("a", "b")
    q, v = model.random_state(3)
    for to, rows in (("a_port", "weld"), (None, "weld"), (None, "point"), ("a_port", "universal")):
        target = np.zeros(3) if rows == "point" else AT_PORT
        still, driven = (
            [Constraint("b_port", rows, to=to, target=target, driven=x)] for x in (False, True)
        )
        expected = constrained_forward_dynamics(model, q, v, 0 * v, still).a
        for motion in (None, np.zeros((3, 6)), np.zeros((1, 3, 6))):
            found = constrained_forward_dynamics(model, q, v, 0 * v, driven, motion=motion).a
            assert relative(found, expected) < 1e-11
