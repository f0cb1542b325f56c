"""Gepetto's YAML: joints of a kind that a URDF cannot have, closed loops of two kinds."""

import numpy as np
import pytest
from shared_models import error, path, quiet, saddle_point

import grubler as gb
from grubler.mechanism.loops.modules import module_name

pytest.importorskip("yaml")

LINK = """<link name="{0}"><inertial><origin xyz="{1}"/><mass value="{2}"/>
<inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0.001" ixz="0" iyz="-0.002"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>
<origin xyz="{4}" rpy="{5}"/><axis xyz="{6}"/></joint>"""
# a crank moves the end of a rod that stands on a joint "ankle" and slides along itself
ROBOT = "".join((
    '<robot name="leg"><link name="base"/>',
    LINK.format("crank", "0.1 0 0.02", 1.2),
    LINK.format("rod", "0.01 0 0.2", 0.7),
    LINK.format("tube", "0 0.02 0.1", 0.4),
    LINK.format("end", "0 0 0", 0.1),
    JOINT.format("hip", "revolute", "base", "crank", "0 0 0.8", "0.1 0 0", "0 0.6 0.8"),
    JOINT.format("pin", "fixed", "crank", "end", "0.3 0.05 0.1", "0 0 0", "1 0 0"),
    JOINT.format("ankle", "revolute", "base", "rod", "0.2 0.1 0", "0.1 -0.2 0.3", "1 0 0"),
    JOINT.format("slide", "prismatic", "rod", "tube", "0 0 0.5", "0 0 0.4", "0 0 1"),
    "</robot>",
))  # fmt: skip
LOOP = "closed_loop: [[end, slide]]\ntype: ['3d']\njoint_name: [ankle]\njoint_type: [{}]\n"


def written(tmp_path, kind: str, motors: str = "[hip]") -> gb.Model:
    (tmp_path / "robot.urdf").write_text(ROBOT)
    (tmp_path / "robot.yaml").write_text(LOOP.format(kind) + f"name_mot: {motors}")
    return gb.load(tmp_path / "robot.yaml")


@pytest.mark.parametrize("axes", ["XY", "YZ", "ZX", "YX", "ZY", "XZ"])
def test_universal_joints(tmp_path, axes):
    """Two angles are free, as in the builder's own universal joint, a joint of another class."""
    model = written(tmp_path, f"UJOINT_{axes}", f"[hip, ankle_{axes[0]}]")
    assert {f"ankle_{x}" for x in axes} <= {joint.name for joint in model.joints}
    assert model.nv_span - model.nv == 3 and model.actuators[0].name == "hip"
    directions = dict(zip("XYZ", np.eye(3), strict=True))
    b = gb.ModelBuilder("twin")
    for body in model.bodies:
        if body.mass:
            b.add_body(body.name, body.mass, body.com, body.inertia, physical=False)
    for name, kind, parent, child in (
        ("hip", "revolute", "world", "crank"),
        ("slide", "prismatic", "rod", "tube"),
        ("ankle", "universal", "world", "rod"),
    ):
        same = model.joint(f"ankle_{axes[0]}" if name == "ankle" else name)
        axis = directions[axes[0]] if name == "ankle" else same.motion.axis
        b.add_joint(name, kind, parent, child, xyz=same.placement.r, R=same.placement.E.T,
                    axis=axis, axis2=directions[axes[1]])  # fmt: skip
    b.add_loop("closed", "ball", "crank", "tube", predecessor_xyz=(0.3, 0.05, 0.1))
    twin = b.build({"hip": model.reference[model.body_of_joint("hip").index]})
    for seed in range(3):
        q, v = model.random_state(seed)
        tau = np.random.default_rng(seed).uniform(-1, 1, model.nv)
        a = gb.forward_dynamics(model, q, v, tau)
        assert error(a, saddle_point(model, q, v, tau)) < 1e-10
        span = gb.spanning_state(model, q, v, a)
        value = dict(zip(model.spanning_names, span.positions, strict=True))
        rate = dict(zip(model.spanning_names, span.velocities, strict=True))
        names = [f"ankle_{x}" for x in axes]
        at = {"hip": value["hip"], "slide": value["slide"], "ankle": [value[n] for n in names]}
        moving = {"hip": rate["hip"], "slide": rate["slide"], "ankle": [rate[n] for n in names]}
        q2, v2 = gb.from_spanning(twin, at, moving)
        torque = dict(zip(model.v_names, tau, strict=True))
        given = {n: torque[n] for n in ("hip", "slide") if n in torque}
        given["ankle"] = [torque.get(n, 0.0) for n in names]
        a2 = gb.forward_dynamics(twin, q2, v2, gb.generalized_force(twin, q2, given))
        span2 = gb.spanning_state(twin, q2, v2, a2).accelerations
        order = ["hip", "slide", *names]
        theirs = dict(zip(twin.spanning_names, span2, strict=True))
        theirs |= {n: theirs[k] for n, k in zip(names, ("ankle:1", "ankle:2")) if k in theirs}
        ours = dict(zip(model.spanning_names, span.accelerations, strict=True))
        assert error([ours[n] for n in order], np.array([theirs[n] for n in order])) < 1e-10


def test_a_leg_on_a_universal_joint_has_a_closed_form(tmp_path):
    model = gb.analytic(written(tmp_path, "UJOINT_XY"))
    cluster = next(c for c in model.clusters if c.loops)
    assert module_name(cluster.embedding.steps) == "1-UPS"


@pytest.mark.parametrize(
    ("name", "typo", "mobility"),
    [
        ("gepetto_wl16_like", ("", ""), 12),
        ("gepetto_disney_robot", ("s\u0125erical", "spherical"), 16),
    ],
)
def test_welds_half_a_turn_off_close_from_neutral(tmp_path, name, typo, mobility):
    """Loops of six rows whose frames are far apart in angle at zero."""
    for file in ("robot.urdf", "robot.yaml"):
        (tmp_path / file).write_text(path(f"{name}/{file}").read_text().replace(*typo))
    model = quiet(tmp_path / "robot.yaml")
    assert model.nv == mobility
    assert model.loop_gap(model.neutral()) < 1e-12
    q, v = model.random_state(0)
    tau = np.random.default_rng(0).uniform(-1, 1, model.nv)
    assert error(gb.forward_dynamics(model, q, v, tau), saddle_point(model, q, v, tau)) < 1e-8
