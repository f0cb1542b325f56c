"""Several models in one world: each moves as it does alone, and closures hold them together."""

from __future__ import annotations

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler.algebra.spatial import rpy_matrix

INERTIA = (0.1, 0, 0, 0.1, 0, 0.1)


def stacked(names, parts: dict) -> np.ndarray:
    """Numbers of several models, by their names in the scene."""
    by_name = {f"{key}/{n}": x for key, (own, values) in parts.items() for n, x in zip(own, values)}
    return np.array([by_name[name] for name in names])


def both(scene, model, qv) -> list[np.ndarray]:
    (qa, va), (qb, vb) = qv
    return [
        stacked(scene.q_names, {"a": (model.q_names, qa), "b": (model.q_names, qb)}),
        stacked(scene.v_names, {"a": (model.v_names, va), "b": (model.v_names, vb)}),
    ]


@pytest.mark.parametrize(
    "name", ["four_bar", "six_bar", "loop_sampler", "joint_sampler", "tello", "mini_cheetah"]
)
def test_each_moves_as_alone(name):
    model = load(name)
    scene = gb.scene({"a": model, "b": model})
    states = [model.random_state(seed) for seed in (1, 2)]
    q, v = both(scene, model, states)
    rng = np.random.default_rng(0)
    tau = [rng.normal(size=model.nv) for _ in range(2)]
    a = [gb.forward_dynamics(model, *s, t) for s, t in zip(states, tau)]
    names = dict(zip("ab", [model.v_names] * 2))
    together = stacked(scene.v_names, {k: (names[k], t) for k, t in zip("ab", tau)})
    expected = stacked(scene.v_names, {k: (names[k], x) for k, x in zip("ab", a)})
    assert relative(gb.forward_dynamics(scene, q, v, together), expected) < 1e-12
    assert len(scene.frames) == 2 * len(model.frames)
    assert [x.name for x in scene.actuators[: len(model.actuators)]] == [
        f"a/{x.name}" for x in model.actuators
    ]


@pytest.mark.parametrize("name", ["four_bar", "loop_sampler", "quadruped"])
def test_places(name):
    """A robot that is placed has all its bodies and frames there, its loops closed."""
    model = load(name)
    R, p = rpy_matrix(0.3, -0.2, 1.1), np.array([1.0, 2.0, 0.5])
    scene = gb.scene({"a": model}, places={"a": (R, p)})
    names = stacked(scene.q_names, {"a": (model.q_names, np.arange(model.nq))}).astype(int)
    assert scene.loop_gap(scene.neutral()) < 1e-9
    here = gb.kinematics(model, model.neutral())
    there = gb.kinematics(scene, scene.neutral())
    order = [scene.body(f"a/{body.name}").index for body in model.bodies]
    assert np.allclose(there.position[order], here.position @ R.T + p, atol=1e-9)
    assert np.allclose(there.rotation[order], R @ here.rotation, atol=1e-9)
    floats = any(body.joint.kind == "free" for body in model.bodies)
    if not floats:
        q, _ = model.random_state(3)
        assert scene.loop_gap(q[names]) < 1e-9
    for frame in model.frames:
        _, x = gb.frame_pose(model, model.neutral(), frame.name)
        _, y = gb.frame_pose(scene, scene.neutral(), f"a/{frame.name}")
        assert np.allclose(y, R @ x + p, atol=1e-9)


def arm(box: bool) -> gb.Model:
    """Two links and a hand; with a box welded to it, or without."""
    b = gb.ModelBuilder("arm")
    parent = "world"
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0))):
        b.add_body(f"l{k}", 1.0, (0, 0, 0.1), INERTIA)
        b.add_joint(f"j{k}", "revolute", parent, f"l{k}", axis=axis, xyz=(0, 0, 0.3))
        parent = f"l{k}"
    b.add_frame("hand", parent, (0, 0, 0.2), rpy=(0.1, 0.2, 0.3))
    if box:
        b.add_body("box", 2.0, (0.05, 0, 0), (0.2, 0.01, 0, 0.3, 0, 0.25))
        b.add_joint("held", "fixed", parent, "box", xyz=(0, 0, 0.2), rpy=(0.1, 0.2, 0.3))
    return b.build()


def free_box() -> gb.Model:
    b = gb.ModelBuilder("box")
    b.add_body("box", 2.0, (0.05, 0, 0), (0.2, 0.01, 0, 0.3, 0, 0.25))
    b.add_joint("free", "free", "world", "box")
    b.add_shape("box", gb.Box((0.1, 0.1, 0.1)))
    return b.build()


def test_closure_is_a_weld():
    """A hand that holds a box by a loop moves as the hand with the box welded to it."""
    tree, scene = arm(True), gb.scene(
        {"arm": arm(False)}, {"load": free_box()},
        closures={"grip": ("fixed", "arm/hand", "load/box")},
    )  # fmt: skip
    assert scene.nv == 3
    joints = {f"arm/j{k}": x for k, x in enumerate((0.3, -0.5, 0.9))}
    q = scene.assemble(joints, fixed=joints)
    G, _ = gb.spanning_map(scene, q)
    rows = [scene.spanning_names.index(name) for name in joints]
    T = G[rows]  # joint velocities of the arm from v of the scene
    x = np.array([0.7, -0.4, 1.1])
    v = np.linalg.solve(T, x)
    push = np.array([1.0, -2.0, 0.5])
    a = gb.forward_dynamics(scene, q, v, T.T @ push)
    span = gb.spanning_state(scene, q, v, a)
    expected = gb.forward_dynamics(tree, np.array([0.3, -0.5, 0.9]), x, push)
    assert relative(span.accelerations[rows], expected) < 1e-9


def test_contacts_between_models():
    b = gb.ModelBuilder("table", gravity=(0, 0, -9.81))
    b.add_body("top", 5.0, inertia=INERTIA)
    b.add_joint("lift", "prismatic", "world", "top")
    b.add_shape("top", gb.Box((1, 1, 0.1)), friction=0.3)
    b.add_shape("world", gb.Plane(), name="floor")
    table = b.build()
    scene = gb.scene(
        [table, free_box(), free_box()], places={"box": (0, 0, 1), "box.1": (0.02, 0, 2)}
    )
    assert [b.name for b in scene.bodies] == ["table/top", "box/box", "box.1/box"]
    plan = gb.Contacts(scene, touching=["box/box", "box.1/box"], pairs="all", corners=4)
    names = {pair.names for pair in plan.pairs}
    assert ("box/box.0", "table/floor") in names and ("box/box.0", "box.1/box.0") in names
    assert ("table/top.0", "box/box.0") in names
    q = np.stack([scene.neutral()] * 3)
    out = gb.compile(gb.contact_candidates, scene, contacts=plan)(q)
    gaps = {}
    for point, gap in zip(plan.points, out[0][1]):
        gaps[point.pair.names] = min(gap, gaps.get(point.pair.names, np.inf))
    assert abs(gaps["table/top.0", "box/box.0"] - 0.9) < 1e-12
    assert abs(gaps["box/box.0", "box.1/box.0"] - 0.9) < 1e-12
    assert abs(gaps["box.1/box.0", "table/floor"] - 1.95) < 1e-12


def test_one_floor_of_two():
    """Robots that each bring the same floor stand on one; another floor is another."""
    b = gb.ModelBuilder("box")
    b.add_body("box", 1.0, inertia=INERTIA)
    b.add_joint("free", "free", "world", "box")
    b.add_shape("box", gb.Sphere(0.1))
    b.add_shape("world", gb.Plane(), name="floor")
    model = b.build()
    assert len(gb.Contacts(gb.scene([model, model], places={"box.1": (1, 0, 0)})).pairs) == 2
    assert len(gb.Contacts(gb.scene([model, model], places={"box.1": (1, 0, 1)})).pairs) == 4


def test_a_scene_in_a_scene():
    inner = gb.scene({"a": load("four_bar")})
    outer = gb.scene({"x": inner, "y": load("four_bar")})
    assert outer.bodies[0].name == "x/a/" + load("four_bar").bodies[0].name


def test_analytic_loops_stay_so():
    model = gb.analytic(load("four_bar"))
    scene = gb.scene({"a": model, "b": model})
    assert scene.nq == 2 * model.nq
    q, v = both(scene, model, [model.random_state(seed) for seed in (1, 2)])
    assert np.all(np.isfinite(gb.forward_dynamics(scene, q, v, np.zeros(scene.nv))))


WRONG = {
    "at least one model": lambda: gb.scene([]),
    "robots and objects are Models, not 'box'": lambda: gb.scene("box"),
    "not 3": lambda: gb.scene([3]),
    "'a' names two models": lambda: gb.scene({"a": free_box()}, {"a": free_box()}),
    "the name of a model is 'a/b'": lambda: gb.scene({"a/b": free_box()}),
    "places: no model named 'b': known: a": lambda: gb.scene(
        {"a": free_box()}, places={"b": (0, 0, 0)}
    ),
    "the place of 'a' is": lambda: gb.scene({"a": free_box()}, places={"a": (0, 0)}),
    "one world has one gravity": lambda: gb.scene(
        {"a": free_box(), "b": gb.with_parameters(free_box(), {"gravity": np.zeros(3)})}
    ),
    "closure 'c' is 'weld'": lambda: gb.scene({"a": free_box()}, closures={"c": "weld"}),
    "closure 'c' ends at 'box'": lambda: gb.scene(
        {"a": free_box()}, closures={"c": ("ball", "box", "world")}
    ),
    "closure 'c': no frame named 'boxx'": lambda: gb.scene(
        {"a": free_box()}, closures={"c": ("ball", "a/boxx", "world")}
    ),
    "no loop kind named 'glue'": lambda: gb.scene(
        {"a": free_box()}, closures={"c": ("glue", "a/box", "world")}
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_wrong_scenes_are_refused(message):
    with pytest.raises(gb.GrublerError, match=message):
        WRONG[message]()
