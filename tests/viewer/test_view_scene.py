"""What the viewer draws, without a browser."""

from __future__ import annotations

import numpy as np
import pytest

import grubler as gb
from conftest import ROBOTS, load
from grubler.mechanism.parts import WORLD
from grubler.reduction.reduced import spinners
from grubler.viewer import palette, panel
from grubler.viewer.outline import loop_ends, rotors
from grubler.viewer.scene import LAYERS, Scene
from grubler.viewer.shapes import (
    Ball,
    Cylinder,
    Ellipsoid,
    along,
    inertia_ellipsoid,
    rod,
    rotor_cylinder,
)


@pytest.fixture(params=ROBOTS)
def scene(request) -> Scene:
    return Scene.of(load(request.param))


def test_poses_are_those_of_the_kinematics(scene):
    for seed in range(3):
        q, _ = scene.model.random_state(seed)
        snapshot, motion = scene.snapshot(q), gb.kinematics(scene.model, q)
        assert np.abs(snapshot.position - motion.position).max() < 1e-13
        assert np.abs(snapshot.rotation - motion.rotation).max() < 1e-13


def test_loops_meet_where_they_are_closed(scene):
    q, _ = scene.model.random_state(1)
    snapshot = scene.snapshot(q)
    assert len(snapshot.loops) == len(scene.model.loops)
    assert snapshot.gap == scene.model.loop_gap(q)
    for loop, line in zip(scene.model.loops, snapshot.loops, strict=True):
        assert line.closed, line.name
        if getattr(loop, "kind", "") in ("revolute", "ball", "universal", "fixed"):
            assert np.linalg.norm(line.points[1] - line.points[0]) < 1e-9
        if getattr(loop, "kind", "") == "distance":
            assert np.linalg.norm(line.points[1] - line.points[0]) == pytest.approx(loop.distance)


def test_the_ends_of_a_loop_are_the_named_bodies(scene):
    for loop in scene.model.loops:
        if isinstance(loop, gb.mechanism.loops.LoopJoint):
            names = ["world" if i == WORLD else scene.model.bodies[i].name
                     for i, _ in loop_ends(loop)]  # fmt: skip
            assert names == list(loop.ends)


def test_an_open_loop_shows_its_gap():
    model = load("four_bar")
    q = model.neutral() + np.array([0.0, 0.0, 0.1])
    line = Scene.of(model).snapshot(q).loops[0]
    assert not line.closed and line.gap > 1e-3
    assert "mm" in line.gap_text
    assert np.linalg.norm(line.points[1] - line.points[0]) > 1e-3
    assert "is open by" in panel.status(Scene.of(model).snapshot(q))


def test_every_body_is_drawn(scene):
    """A body without mass as well, if it is a rotor; others show by their links and joints."""
    drawn = {part.body for part in scene.parts if part.layer == "bodies"}
    massive = {body.index for body in scene.model.bodies if body.mass > 0}
    assert drawn == massive | rotors(scene.model)
    assert {part.layer for part in scene.parts} <= set(LAYERS)
    assert len({part.name for part in scene.parts}) == len(scene.parts)


def test_every_shape_is_finite_and_thick(scene):
    for part in scene.parts:
        assert np.isfinite(part.shape.position).all()
        match part.shape:
            case Ellipsoid(radii=radii):
                assert (radii > 0).all()
            case Cylinder(radius=radius, length=length):
                assert radius > 0 and length > 0
            case Ball(radius=radius):
                assert radius > 0
        rotation = getattr(part.shape, "rotation", np.eye(3))
        assert np.linalg.det(rotation) == pytest.approx(1.0)


def test_links_lead_from_joint_to_joint():
    """Each bar of the four-bar ends where the next begins, all the way round."""
    model = load("four_bar")
    snapshot = Scene.of(model).snapshot(model.neutral())
    ends = []
    for part in Scene.of(model).parts:
        if part.layer == "links" and isinstance(part.shape, Cylinder):
            half = part.shape.rotation[:, 2] * part.shape.length / 2
            for point in (part.shape.position - half, part.shape.position + half):
                if part.body != WORLD:
                    point = snapshot.position[part.body] + snapshot.rotation[part.body] @ point
                ends.append(point)
    assert len(ends) == 8  # ground, crank, coupler, follower
    for point in ends:
        assert sum(np.linalg.norm(point - other) < 1e-9 for other in ends) == 2


def test_colours_of_clusters_and_rotors(scene):
    many = [c for c in scene.model.clusters if len(c.bodies) > 1]
    assert len({scene.colours[c.index] for c in many}) == len(many)
    assert palette.SINGLE not in [scene.colours[c.index] for c in many]
    by_body = {part.body: part for part in scene.parts if part.layer == "bodies"}
    for cluster in scene.model.clusters:
        for i in cluster.bodies:
            colour = scene.colours[cluster.index]
            rotor = i in rotors(scene.model)
            assert by_body[i].colour == (palette.darker(colour) if rotor else colour)


@pytest.mark.parametrize("name", ["mini_cheetah", "mit_humanoid", "tello", "gt_chain"])
def test_rotors_of_the_algorithms_are_drawn_as_rotors(name):
    model = load(name)
    assert spinners(model.bodies) <= rotors(model)
    shapes = {p.body: p.shape for p in Scene.of(model).parts if p.layer == "bodies"}
    assert all(isinstance(shapes[i], Cylinder) for i in spinners(model.bodies))


def test_an_ellipsoid_has_the_inertia_of_its_body():
    body = load("mini_cheetah").bodies[0]
    shape = inertia_ellipsoid(body, 1e-9)
    a, b, c = shape.radii**2
    moments = body.mass / 5 * np.diag([b + c, a + c, a + b])
    assert np.abs(shape.rotation @ moments @ shape.rotation.T - body.inertia).max() < 1e-12


def test_a_rotor_has_the_inertia_of_its_body():
    model = load("mini_cheetah")
    body = model.bodies[min(spinners(model.bodies))]
    disc = rotor_cylinder(body, 1e-9)
    assert body.mass * disc.radius**2 / 2 == pytest.approx(6.3e-5)
    assert body.mass * (3 * disc.radius**2 + disc.length**2) / 12 == pytest.approx(3.3e-5)


def test_a_rod_between_two_points():
    bar = rod((1.0, 0.0, 0.0), (1.0, 2.0, 0.0), 0.1)
    assert bar.length == 2.0 and np.allclose(bar.position, (1, 1, 0))
    assert np.allclose(bar.rotation[:, 2], (0, 1, 0))
    assert np.allclose(along((0.3, -1.0, 2.0)).T @ along((0.3, -1.0, 2.0)), np.eye(3))


def test_given_geometry_takes_the_place_of_the_ellipsoid():
    model = load("four_bar")
    scene = Scene.of(model, {"crank": [Ball(0.05), Ball(0.07, position=np.array([0.1, 0.0, 0.0]))]})
    crank = [p for p in scene.parts if p.layer == "bodies" and p.body == 0]
    assert [p.shape.radius for p in crank] == [0.05, 0.07]
    assert isinstance(next(p.shape for p in scene.parts if p.body == 1), Ellipsoid)


def test_camera_looks_across_flat_robots():
    for name, axis in (("four_bar", 1), ("six_bar", 2)):
        room = Scene.of(load(name)).room(load(name).neutral())
        look = room.camera() - room.centre
        assert np.argmax(np.abs(look)) == axis


def test_panel_tells_clusters_and_escapes_names(scene):
    tree = panel.cluster_tree(scene.model, scene.colours)
    plain = tree.replace("<wbr>", "")
    for body in scene.model.bodies:
        assert body.name in plain
    for colour in set(scene.colours):
        assert palette.css(colour) in tree
    assert f"{scene.model.nv} dof" in panel.heading(scene.model)


def test_names_cannot_break_the_page():
    b = gb.ModelBuilder("<b>&")
    b.add_body("a<script>", 1.0, (0, 0, 0), (1, 0, 0, 1, 0, 1))
    b.add_joint("'j'/x\"", "revolute", "world", "a<script>")
    model = b.build()
    scene = Scene.of(model)
    page = panel.cluster_tree(model, scene.colours) + panel.heading(model)
    page += panel.joint_table({"'j'/x\"": np.zeros(1)})
    assert "<script" not in page and "<b>&<" not in page
    assert "data-joint='&#x27;j&#x27;/x&quot;'" in page


def test_the_stage_follows_a_floating_base():
    """The camera looks at where the robot is, not at where it was built."""
    scene = Scene.of(load("mini_cheetah"))
    q = scene.model.neutral()
    away = q + np.array([5.0, -3.0, 2.0, *np.zeros(len(q) - 3)])
    assert np.allclose(scene.room(away).centre - scene.room(q).centre, (5, -3, 2))
    assert scene.room(away).size == pytest.approx(scene.outline.size)


def test_joints_beyond_their_limits_stand_out():
    values = {"inside": np.zeros(1), "outside": np.ones(1)}
    rows = panel.joint_table(values, beyond={"outside"}).split("<tr>")[1:]
    colour = palette.css(palette.OPEN)
    assert [colour in row for row in rows] == [False, True]
