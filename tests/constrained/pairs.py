"""Two bodies on a joint, and the same two bodies free, joined by rows: states of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import grubler as gb
from grubler.algebra.spatial import matrix_quaternion

# rows in the axes of the child's port, which hinge, slider and cylinder leave free along z
JOINTS = {
    "hinge": ("revolute", (0, 1, 3, 4, 5)),
    "slider": ("prismatic", (0, 1, 2, 3, 4)),
    "cylinder": ("cylindrical", (0, 1, 3, 4)),
    "planar": ("planar", (0, 1, 5)),
    "ball": ("spherical", "point"),
    "ball of spatial rows": ("spherical", (3, 4, 5)),
    "universal": ("universal", "universal"),
    "weld": ("fixed", "weld"),
}
SYMMETRIC = tuple(name for name in JOINTS if name != "universal")  # either port may be the frame
BODIES = {
    "a": (2.0, (0.03, -0.02, 0.05), (0.04, 0.002, -0.003, 0.05, 0.001, 0.03)),
    "b": (1.3, (-0.02, 0.06, 0.01), (0.02, -0.001, 0.002, 0.03, 0.003, 0.025)),
}
PORTS = {
    "a": ((0.2, -0.1, 0.15), (0.4, -0.7, 0.3)),
    "b": ((-0.1, 0.12, 0.07), (-0.5, 0.2, 1.1)),
}
GRAVITY = np.array([0.3, -0.2, -9.81])


def add_body(b: gb.ModelBuilder, name: str) -> None:
    mass, com, inertia = BODIES[name]
    b.add_body(name, mass, com=com, inertia=inertia)


def add_port(b: gb.ModelBuilder, name: str) -> None:
    xyz, rpy = PORTS[name]
    b.add_frame(f"{name}_port", name, xyz, rpy=rpy)


def free(*names: str, gravity=GRAVITY) -> gb.Model:
    """Free bodies with their ports."""
    b = gb.ModelBuilder("free_" + "".join(names), gravity=gravity)
    for name in names:
        add_body(b, name)
        b.add_joint(f"{name}_float", "free", "world", name)
        add_port(b, name)
    return b.build()


def tree(joint: str, gravity=GRAVITY, root: str = "free") -> gb.Model:
    """Body a on a free joint (or on the world), body b on `joint` between the ports; welded, b is a
    part of a."""
    b = gb.ModelBuilder(f"tree_{joint}", gravity=gravity)
    add_body(b, "a")
    b.add_joint("a_float", root, "world", "a")
    add_port(b, "a")
    xyz, rpy = PORTS["a"]
    R, p = port_pose("b")
    axes = {"universal": {"axis": (1, 0, 0), "axis2": (0, 1, 0)}}
    axes |= {kind: {"axis": (0, 0, 1)} for kind in ("revolute", "prismatic", "cylindrical")}
    axes |= {"planar": {"axis": (0, 0, 1)}}
    kind = JOINTS[joint][0]
    b.add_body("carrier")
    b.add_joint("joint", kind, "a", "carrier", xyz=xyz, rpy=rpy, **axes.get(kind, {}))
    add_body(b, "b")
    b.add_joint("mount", "fixed", "carrier", "b", xyz=-R.T @ p, R=R.T)
    add_port(b, "b")
    return b.build()


def port_pose(name: str):
    """(R, p) of a port in its body."""
    xyz, rpy = PORTS[name]
    b = gb.ModelBuilder("pose")
    b.add_body("x", 1.0, inertia=(1, 0, 0, 1, 0, 1))
    b.add_joint("float", "free", "world", "x")
    b.add_frame("port", "x", xyz, rpy=rpy)
    return gb.frame_pose(b.build(), np.array([0.0, 0, 0, 1, 0, 0, 0]), "port")


class Body(NamedTuple):
    """State of a free body, and its acceleration."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


def of_tree(model: gb.Model, q, v, a, names: str = "ab") -> dict[str, Body]:
    """Bodies of a tree as free bodies, by the kinematics of their frames."""
    out = {}
    for name in names:
        R, p = gb.frame_pose(model, q, name)
        J, bias = gb.frame_jacobian(model, q, name), gb.frame_acceleration_bias(model, q, v, name)
        out[name] = Body(np.concatenate([p, matrix_quaternion(R)]), J @ v, J @ a + bias)
    return out


def wrench_on(body: Body, name: str, gravity=GRAVITY):
    """[moment; force] on the port of a body that gives it this acceleration, in the port's axes:
    Newton and Euler at the centre of mass."""
    mass, com, (xx, xy, xz, yy, yz, zz) = BODIES[name]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    w, dw, com = body.v[:3], body.a[:3], np.array(com)
    R = gb.frame_pose(free(name), body.q, name)[0]
    linear = body.a[3:] + np.cross(w, body.v[3:])
    linear = linear + np.cross(dw, com) + np.cross(w, np.cross(w, com))
    force = mass * (linear - R.T @ gravity)
    moment = inertia @ dw + np.cross(w, inertia @ w)
    R, p = port_pose(name)
    return np.concatenate([R.T @ (moment + np.cross(com - p, force)), R.T @ force])
