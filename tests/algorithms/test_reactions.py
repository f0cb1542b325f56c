"""What joints and loops carry: Newton's and Euler's equations of each body alone, in the world."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, states
from grubler.algebra.spatial import Transform
from grubler.algorithms.lagrange import constrained_spanning
from grubler.mechanism.loops.joint import LoopJoint

KINDS = ("ball", "revolute", "cylindrical", "planar", "universal", "distance", "prismatic", "fixed",
         "inline", "inplane")  # fmt: skip


def at_origin(R, p, w):
    """A wrench [moment; force] in axes R at p, about the world's origin and in its axes."""
    force = R @ w[3:]
    return np.concatenate([R @ w[:3] + np.cross(p, force), force])


def freedoms(loop, R_P, R_S, apart):
    """Relative motions of the successor, at its frame in the world's axes, that the loop allows."""
    n = R_P @ loop.axis
    across = [np.cross(n, e) for e in np.eye(3)]
    turn, slide = (
        (lambda x: np.concatenate([x, np.zeros(3)])),
        (lambda x: np.concatenate([np.zeros(3), x])),
    )
    turns, slides = [turn(e) for e in np.eye(3)], [slide(e) for e in np.eye(3)]
    line = apart / (np.linalg.norm(apart) + 1e-300)
    return {
        "ball": turns,
        "fixed": [],
        "revolute": [turn(n)],
        "prismatic": [slide(n)],
        "cylindrical": [turn(n), slide(n)],
        "planar": [turn(n), *map(slide, across)],
        "universal": [turn(n), turn(R_S @ loop.universal_axis2)],
        "distance": [*turns, *(slide(np.cross(line, e)) for e in np.eye(3))],
        "inline": [*turns, slide(n)],
        "inplane": [*turns, *map(slide, across)],
    }[loop.kind], slides


def net_wrenches(model, motion):
    """Rate of momentum less weight of each body, about the origin of the world."""
    out = []
    for body, R, p, v, a in zip(model.bodies, *motion, strict=True):
        w, dw, c = v[:3], a[:3], body.com
        point = a[3:] + np.cross(w, v[3:])  # acceleration of the body's origin
        at_com = point + np.cross(dw, c) + np.cross(w, np.cross(w, c))
        force = body.mass * (R @ at_com - model.gravity)
        moment = R @ (body.inertia @ dw + np.cross(w, body.inertia @ w))
        out.append(np.concatenate([moment + np.cross(p + R @ c, force), force]))
    return out


def largest_error(model, q, v, a, torques, f_ext=None):
    """How far reactions and loop forces are from balancing each body, and from doing no work."""
    options = {} if torques is None else {"torques": torques}
    reactions = gb.joint_reactions(model, q, v, a, f_ext, **options)
    loops = gb.loop_forces(model, q, v, a, f_ext, **options)
    motion, positions = gb.kinematics(model, q, v, a), model.unpack(q)
    span = gb.spanning_state(model, q, v, a)
    rest = [-w for w in net_wrenches(model, motion)]
    scale = 1.0 + max(np.abs(w).max() for w in rest)
    for body in model.bodies:
        R, p = motion.rotation[body.index], motion.position[body.index]
        W = at_origin(R, p, reactions[body.index])
        rest[body.index] = rest[body.index] + W
        if body.parent >= 0:
            rest[body.parent] = rest[body.parent] - W
        if f_ext is not None:
            rest[body.index] = rest[body.index] + at_origin(R, p, f_ext[body.index])
    worst, start, coupled = 0.0, 0, {}
    for loop, wrench in zip(model.loops, loops.wrenches):
        own = loops.multipliers[start : start + loop.rows]
        start += loop.rows
        joint = getattr(loop, "loop", loop)
        if not isinstance(joint, LoopJoint):
            assert not wrench.any()
            for i, K in loop.linearize(positions, None)[0].items():
                coupled[i] = coupled.get(i, 0.0) + K.T @ own
            continue
        ends = []
        for i, frame in zip(joint.ends_on, (joint.frame_P, joint.frame_S)):
            body = Transform.identity()
            if i >= 0:
                body = Transform(motion.rotation[i].T, motion.position[i])
            X = frame @ body
            ends.append((i, X.E.T, X.r))
        (P, R_P, p_P), (S, R_S, p_S) = ends
        allowed, _ = freedoms(joint, R_P, R_S, p_S - p_P)
        local = np.concatenate([R_S @ wrench[:3], R_S @ wrench[3:]])
        worst = max([worst, *(abs(x @ local) for x in allowed)])
        W = at_origin(R_S, p_S, wrench)
        for i, sign in ((S, 1.0), (P, -1.0)):
            if i >= 0:
                rest[i] = rest[i] + sign * W
    worst = max(worst, *(np.abs(w).max() for w in rest))
    start = 0
    for i in model.spanning_order:
        joint, columns = model.bodies[i].joint, slice(start, start + model.bodies[i].joint.nv)
        start = columns.stop
        felt = joint.motion.subspace(positions[i]).T @ reactions[i]
        felt = felt + joint.armature * span.accelerations[columns] - coupled.get(i, 0.0)
        drive = _drives(model, q, v, a, f_ext)[columns] if torques is None else torques[columns]
        worst = max(worst, np.abs(felt - drive).max(initial=0.0))
    return worst / scale


def _drives(model, q, v, a, f_ext):
    """All torque on the independent joints."""
    drives, start = np.zeros(model.nv_span), 0
    tau = gb.inverse_dynamics(model, q, v, a, f_ext)
    for cluster in model.clusters:
        for c, x in zip(cluster.embedding.independent, tau[cluster.v]):
            drives[cluster.span.start + c] = x
        start += cluster.embedding.nv_span
    return drives


def test_every_body_is_in_balance(model):
    for q, v, tau in states(model, 3):
        a = gb.forward_dynamics(model, q, v, tau)
        assert largest_error(model, q, v, a, None) < 1e-9


def test_external_forces_and_torques_on_any_joint(model):
    for seed, (q, v, _) in enumerate(states(model, 2)):
        rng = np.random.default_rng(seed)
        torques = rng.uniform(-1, 1, model.nv_span)
        f_ext = rng.uniform(-1, 1, (len(model.bodies), 6))
        a = gb.forward_dynamics(model, q, v, gb.generalized_force(model, q, torques), f_ext)
        assert largest_error(model, q, v, a, torques, f_ext) < 1e-9


@pytest.mark.parametrize("name", ["four_bar", "loop_sampler"])
def test_closed_forms_carry_the_same(name):
    """The same balance where formulas close the loops."""
    model = load(name)
    other = gb.analytic(model)
    for q, v, tau in states(other, 3):
        a = gb.forward_dynamics(other, q, v, tau)
        assert largest_error(other, q, v, a, None) < 1e-8


def test_multipliers_are_those_of_the_spanning_tree(model):
    """Lagrange's multipliers, of accelerations and loop forces solved together."""
    for q, v, tau in states(model, 5):
        known = constrained_spanning(model, q, v, tau)[1]
        a = gb.forward_dynamics(model, q, v, tau)
        found, start, rows = gb.loop_forces(model, q, v, a).multipliers, 0, {}
        for loop in model.loops:
            rows[loop.name] = found[start : start + loop.rows]
            start += loop.rows
        ours = []
        for cluster in model.clusters:
            if cluster.loops:
                own = np.concatenate([rows[loop.name] for loop in cluster.loops])
                ours += [*(own[list(cluster.embedding.kept)] if cluster.embedding.kept else own)]
        assert np.abs(np.array(ours) - known).max(initial=0.0) < 1e-9 * (
            1 + np.abs(known).max(initial=0.0)
        )


def test_a_rod_by_hand():
    """A mass on a vertical guide, held by a crank through a rod: the rod's force is m g / cos φ."""
    b = gb.ModelBuilder("rod", gravity=(0, 0, -9.81))
    b.add_body("crank", 0.5, (0.1, 0, 0), (1e-3, 0, 0, 1e-3, 0, 1e-3))
    b.add_joint("hinge", "revolute", "world", "crank", axis=(0, 1, 0), independent=True)
    b.add_body("block", 2.0, (0, 0, 0), (1e-3, 0, 0, 1e-3, 0, 1e-3))
    b.add_joint("guide", "prismatic", "world", "block", xyz=(0.5, 0, 0), axis=(0, 0, 1))
    b.add_loop("rod", "distance", "crank", "block", predecessor_xyz=(0.3, 0, 0), distance=0.7)
    model = b.build(reference={"hinge": -0.3, "guide": 0.7})
    q = model.assemble({"hinge": -0.4, "guide": 0.7})
    rest = np.zeros(1)
    forces = gb.loop_forces(model, q, rest, rest)
    tip, block = (gb.frame_pose(model, q, name) for name in ("crank", "block"))
    way = block[1] - (tip[1] + tip[0] @ [0.3, 0, 0])
    assert np.linalg.norm(way) == pytest.approx(0.7, abs=1e-12)
    push = 2.0 * 9.81 / (way[2] / 0.7)
    assert forces.multipliers == pytest.approx([push], rel=1e-12)  # positive: the rod is pressed
    assert forces.wrenches[0] == pytest.approx([0, 0, 0, *(push * way / 0.7)], rel=1e-11, abs=1e-11)
    guide = gb.joint_reactions(model, q, rest, rest)[model.body("block").index]
    assert guide[3:] == pytest.approx([-push * way[0] / 0.7, 0, 0], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", ["four_bar", "tello", "mini_cheetah", "loop_sampler"])
def test_compiled(name):
    model = load(name)
    reactions = gb.compile(gb.joint_reactions, model)
    loops = gb.compile(gb.loop_forces, model, inputs=["q", "v", "a", "torques"])
    for q, v, tau in states(model, 2):
        a = gb.forward_dynamics(model, q, v, tau)
        expected = gb.joint_reactions(model, q, v, a)
        assert np.abs(reactions(q, v, a) - expected).max() < 1e-10 * (1 + np.abs(expected).max())
        torques = _drives(model, q, v, a, None)
        expected = gb.loop_forces(model, q, v, a)
        for x, y in zip(loops(q, v, a, torques), expected):
            assert np.abs(x - y).max() < 1e-9 * (1 + np.abs(y).max())


def test_torques_that_do_not_give_the_motion_are_refused():
    model = load("four_bar")
    q, v = model.random_state(0)
    a = gb.forward_dynamics(model, q, v, np.ones(1))
    with pytest.raises(gb.InputError, match="torques do not give the acceleration a: coordinate"):
        gb.loop_forces(model, q, v, a, torques={model.v_names[0]: 3.0})
    gb.loop_forces(model, q, v, a, torques={model.v_names[0]: 1.0})
    tree = load("arm7")
    q, v = tree.random_state(0)
    with pytest.raises(gb.InputError, match="misses"):
        gb.joint_reactions(tree, q, v, v, torques=np.zeros(7))
    with pytest.raises(gb.ModelError, match="no joint named 'elbw'"):
        gb.joint_reactions(tree, q, v, v, torques={"elbw": 1.0})
