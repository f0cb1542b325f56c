"""What links look like: read from files, carried to bodies, of no consequence for the dynamics."""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest
from shared_models import path, quiet

import grubler as gb
from grubler.formats import FormatWarning
from grubler.mechanism.geometry import Ball, Box, Capsule, Cylinder, Ellipsoid, Mesh
from grubler.model.fingerprint import fingerprint
from grubler.viewer.scene import Scene

INERTIAL = (
    '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    "</inertial>"
)


def urdf(shape: str, tag: str = "visual", more: str = "") -> str:
    """A link on a revolute joint, and one welded to it half a metre up, turned by 90 degrees."""
    return f"""<robot name="r"><link name="base"/>
    <link name="arm">{INERTIAL}{more}</link>
    <link name="tool"><{tag}><origin xyz="0.1 0 0" rpy="0 0 0"/><geometry>{shape}</geometry>
    </{tag}></link>
    <joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
    <joint name="w" type="fixed"><parent link="arm"/><child link="tool"/>
    <origin xyz="0 0 0.5" rpy="0 0 1.5707963267948966"/></joint></robot>"""


@pytest.mark.parametrize("tag", ["visual", "collision"])
@pytest.mark.parametrize(
    ("text", "kind", "sizes"),
    [
        ('<box size="1 2 3"/>', Box, {"size": [1, 2, 3]}),
        ('<cylinder radius="0.1" length="0.4"/>', Cylinder, {"radius": 0.1, "length": 0.4}),
        ('<capsule radius="0.1" length="0.4"/>', Capsule, {"radius": 0.1, "length": 0.4}),
        ('<sphere radius="0.3"/>', Ball, {"radius": 0.3}),
    ],
)
def test_urdf_shapes_of_welded_links(text, kind, sizes, tag):
    model = gb.load(urdf(text, tag))
    (shape,) = model.geometry[model.body("arm").index]
    assert type(shape) is kind
    for name, value in sizes.items():
        assert np.allclose(getattr(shape, name), value)
    assert np.allclose(shape.position, [0, 0.1, 0.5])  # the tool's x is the arm's y
    assert np.allclose(shape.rotation @ [1, 0, 0], [0, 1, 0])


def test_dynamics_and_cache_know_nothing_of_it():
    with_box, without = gb.load(urdf('<box size="1 2 3"/>')), gb.load(urdf(""))
    assert with_box.geometry and not without.geometry.get(0)
    assert fingerprint(with_box) == fingerprint(without) is not None


def test_visual_shapes_go_first_unless_they_are_lost(tmp_path):
    mesh = '<visual><geometry><mesh filename="package://nowhere/a.stl"/></geometry></visual>'
    box = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
    ball = '<visual><geometry><sphere radius="2"/></geometry></visual>'
    for more, kind in ((box + ball, Ball), (mesh + box, Box), (mesh, Mesh)):
        model = gb.load(urdf("", more=more))
        assert [type(s) for s in model.geometry[0]] == [kind]
    scene = Scene.of(model)  # the mesh alone: it is named, and the inertia is drawn
    assert scene.missing == ("a.stl",)
    assert any(isinstance(p.shape, Ellipsoid) for p in scene.parts if p.layer == "bodies")


def test_a_mesh_is_found_and_scaled(tmp_path):
    (tmp_path / "bot" / "urdf").mkdir(parents=True)
    (tmp_path / "bot" / "meshes").mkdir()
    corner = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "bot" / "meshes" / "corner.obj").write_text(corner)
    (tmp_path / "bot" / "meshes" / "damaged.stl").write_bytes(b"\x00\xffsolid nothing")
    for uri in ("package://bot/meshes/corner.obj", "../meshes/corner.obj",
                "model://elsewhere/bot/meshes/corner.obj"):  # fmt: skip
        file = tmp_path / "bot" / "urdf" / "bot.urdf"
        file.write_text(urdf(f'<mesh filename="{uri}" scale="2 2 4"/>'))
        model = gb.load(file)
        (part,) = (p for p in Scene.of(model).parts if p.layer == "bodies")
        assert np.allclose(part.shape.vertices.max(axis=0), [2, 2, 4])
        assert len(part.shape.faces) == 4
    file.write_text(urdf('<mesh filename="../meshes/damaged.stl"/>'))
    assert Scene.of(gb.load(file)).missing == ("damaged.stl",)


def test_a_shape_that_cannot_be_read_is_named():
    bad = urdf('<box size="1 nan"/>')
    with pytest.warns(FormatWarning, match="the shape is not drawn"):
        model = gb.load(bad)
    assert model.nv == 1
    with pytest.raises(gb.ModelError, match="not drawn"):
        gb.load(bad, strict=True)


def test_sdf_shapes():
    text = """<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>1</mass></inertial>
    <visual name="v"><pose>0 0 0.2 0 0 0</pose><geometry><cylinder><radius>0.1</radius>
    <length>0.5</length></cylinder></geometry></visual>
    <visual name="e"><geometry><ellipsoid><radii>0.1 0.2 0.3</radii></ellipsoid></geometry></visual>
    </link></model></sdf>"""
    cylinder, ellipsoid = quiet(text).geometry[0]
    assert isinstance(cylinder, Cylinder) and np.allclose(cylinder.position, [0, 0, 0.2])
    assert np.allclose(ellipsoid.radii, [0.1, 0.2, 0.3])


def test_mjcf_shapes():
    pytest.importorskip("mujoco")
    text = """<mujoco><asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
    <worldbody><geom type="plane" size="1 1 1"/><body name="a"><joint pos="0 0 0.1"/>
    <geom type="box" size="0.1 0.2 0.3" pos="0 0 0.4"/>
    <geom type="capsule" size="0.1 0.2" quat="0.7071067811865476 0 0.7071067811865476 0"/></body>
    <body name="b"><joint type="slide"/><geom type="sphere" size="0.1"/>
    <geom type="mesh" mesh="t" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    model = quiet(text)
    box, capsule = model.geometry[model.frame("a").body]
    assert np.allclose(box.size, [0.2, 0.4, 0.6])
    assert np.allclose(box.position - model.frame("a").placement.r, [0, 0, 0.4])
    assert np.isclose(capsule.length, 0.4) and np.allclose(capsule.rotation[:, 2], [1, 0, 0])
    (mesh,) = model.geometry[model.frame("b").body]  # what collides is not what is seen
    points = mesh.position + mesh.vertices @ mesh.rotation.T
    assert np.allclose(np.sort(points, axis=0)[-1], [1, 1, 1], atol=1e-6)


def test_shapes_lie_on_their_bodies_in_real_files():
    """The Stewart platform's legs: each cylinder's axis is the way its piston moves."""
    model = quiet(path("stewart_sdf/stewart_sdf.sdf"))
    pistons = [b for b in model.bodies if b.joint.kind == "prismatic"]
    assert len(pistons) == 6
    for body in pistons:
        shapes = [s for s in model.geometry[body.index] if isinstance(s, Cylinder)]
        assert shapes
        assert abs(shapes[0].rotation[:, 2] @ body.joint.motion.axis) == pytest.approx(1.0)


def test_cassie_is_complete():
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    folder = "cmeel.prefix/share/example-robot-data/robots/cassie_description/robots"
    file = Path(package.locate_file(f"{folder}/cassie_v2.sdf"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        model = gb.load(file)
    scene = Scene.of(model)
    assert scene.missing == () and len(model.geometry) == len(model.bodies) == 23
    for part in scene.parts:
        if part.layer == "bodies":  # millimetres taken for metres would be seen here
            assert np.ptp(part.shape.vertices, axis=0).max() < 0.6
