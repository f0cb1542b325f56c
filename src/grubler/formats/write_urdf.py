"""URDF+ out: the tree as URDF, loops as <loop>, couplings as <mimic> or linear transmissions.

Numbers are written with all their digits, so that reading back gives the same dynamics. What URDF
cannot say is an error that names it.
"""

from __future__ import annotations

import warnings
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ..algebra.spatial import Transform
from ..errors import ModelError
from ..mechanism.loops import LinearCoupling, Loop, LoopJoint, PolynomialCoupling
from ..mechanism.parts import WORLD, Body
from ..model import Model
from ._geometry import rpy_of
from ._report import FormatWarning
from .urdf import NO_LIMIT

JOINTS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "free": "floating",
    "planar": "planar",
    "spherical": "spherical",
}
LOOPS = {
    "revolute": "revolute",
    "prismatic": "prismatic",
    "planar": "planar",
    "fixed": "fixed",
    "ball": "spherical",
    "universal": "universal",
    "cylindrical": "cylindrical",
    "distance": "distance",
}
STANDARD_GRAVITY = (0.0, 0.0, -9.81)


def urdf_text(model: Model) -> str:
    """The model as URDF+."""
    refuse_if(
        tuple(model.gravity) != STANDARD_GRAVITY,
        f"URDF has no gravity: '{model.name}' has {model.gravity.tolist()} and would be read with "
        f"{list(STANDARD_GRAVITY)}; save as MJCF (.xml) instead",
    )
    refuse_if(
        any(body.name == "world" for body in model.bodies), "a body is called 'world': rename it"
    )
    lines = ['<?xml version="1.0"?>', f"<robot {attributes(name=model.name)}>"]
    lines.append('  <link name="world"/>')
    for body in model.bodies:
        lines += _link(body) + _joint(model, body)
    for frame in model.frames:
        parent = "world" if frame.body == WORLD else model.bodies[frame.body].name
        lines.append(f"  <link {attributes(name=frame.name)}/>")
        lines.append(f"  <joint {attributes(name=f'{frame.name}/fixed', type='fixed')}>")
        lines += [*_placed(parent, frame.name, frame.placement), "  </joint>"]
    for loop in model.loops:
        if not _is_mimic(model, loop):
            lines += _loop(model, loop)
    armed = {body.index: body.joint.armature for body in model.bodies}
    for actuator in model.actuators:
        lines += _actuator(model, actuator, armed.pop(actuator.joint, 0.0))
    return "\n".join([*lines, "</robot>", ""])


def refuse_if(condition: bool, message: str) -> None:
    if condition:
        raise ModelError(message)


def attributes(**values: Any) -> str:
    """XML attributes; numbers and vectors with all their digits."""
    return " ".join(f"{k}={quoteattr(text(v))}" for k, v in values.items())


def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return " ".join(repr(float(x)) for x in np.atleast_1d(value))


def _origin(X: Transform) -> str:
    return f"<origin {attributes(xyz=X.r, rpy=rpy_of(X.E.T))}/>"


def _placed(parent: str, child: str, X: Transform) -> list[str]:
    return [
        f"    {_origin(X)}",
        f"    <parent {attributes(link=parent)}/>",
        f"    <child {attributes(link=child)}/>",
    ]


def _link(body: Body) -> list[str]:
    I = body.inertia
    moments = attributes(
        ixx=I[0, 0], ixy=I[0, 1], ixz=I[0, 2], iyy=I[1, 1], iyz=I[1, 2], izz=I[2, 2]
    )
    return [
        f"  <link {attributes(name=body.name)}>",
        "    <inertial>",
        f"      <origin {attributes(xyz=body.com)}/>",
        f"      <mass {attributes(value=body.mass)}/>",
        f"      <inertia {moments}/>",
        "    </inertial>",
        "  </link>",
    ]


def _joint(model: Model, body: Body) -> list[str]:
    joint = body.joint
    refuse_if(
        joint.kind not in JOINTS,
        f"URDF has no {joint.kind} joint: '{joint.name}'; save as MJCF (.xml), or model it as "
        "joints of one degree of freedom",
    )
    given = {"name": joint.name, "type": JOINTS[joint.kind]}
    if joint.independent is not None:
        given["independent"] = "true" if joint.independent else "false"
    parent = "world" if body.parent == WORLD else model.bodies[body.parent].name
    lines = [f"  <joint {attributes(**given)}>", *_placed(parent, body.name, joint.placement)]
    if joint.kind not in ("free", "spherical"):
        lines.append(f"    <axis {attributes(xyz=joint.motion.axis)}/>")
    if joint.kind == "planar":
        default = type(joint.motion)(axis=joint.motion.axis).axis_x
        refuse_if(
            np.abs(default - joint.motion.axis_x).max() > 1e-12,
            f"URDF has no axis_x for the planar joint '{joint.name}': save as MJCF (.xml)",
        )
    if joint.kind not in ("free", "planar", "spherical"):
        lines += _limits(joint)
    given = {"damping": joint.damping, "friction": joint.friction}
    if joint.armature and all(a.joint != body.index for a in model.actuators):
        given["armature"] = joint.armature  # else it is that of the actuator's rotor
    if any(given.values()):
        lines.append(f"    <dynamics {attributes(**given)}/>")
    if joint.stiffness:
        warnings.warn(
            f"URDF has no springs: that of joint '{joint.name}' is not written; save as MJCF "
            "(.xml)", FormatWarning, stacklevel=4,
        )  # fmt: skip
    for loop in model.loops:
        if _is_mimic(model, loop) and loop.outputs[0] is body:
            given = attributes(
                joint=loop.inputs[0].joint.name, multiplier=loop.ratios[0], offset=loop.offset
            )
            lines.append(f"    <mimic {given}/>")
    return [*lines, "  </joint>"]


def _limits(joint) -> list[str]:
    """URDF demands limits of effort and velocity, and of position but for continuous joints."""
    given = {"effort": joint.effort_limit, "velocity": joint.velocity_limit}
    if joint.kind != "continuous":
        given |= {"lower": joint.lower, "upper": joint.upper}
    elif all(x is None for x in given.values()):
        return []
    none = {"lower": -NO_LIMIT}
    given = {k: none.get(k, NO_LIMIT) if x is None else x for k, x in given.items()}
    return [f"    <limit {attributes(**given)}/>"]


def _is_mimic(model: Model, loop: Loop) -> bool:
    """A linear coupling to one joint, the only one that drives its follower."""
    return (
        isinstance(loop, LinearCoupling)
        and len(loop.inputs) == 1
        and sum(
            1 for other in model.loops
            if isinstance(other, LinearCoupling) and loop.outputs[0] in other.outputs
        ) == 1
    )  # fmt: skip


def _loop(model: Model, loop: Loop) -> list[str]:
    if isinstance(loop, LinearCoupling):
        return _transmission(loop)
    refuse_if(
        isinstance(loop, PolynomialCoupling),
        f"URDF has no polynomial coupling: '{loop.name}'; save as MJCF (.xml)",
    )
    refuse_if(
        not isinstance(loop, LoopJoint) or loop.kind not in LOOPS,
        f"a file cannot say what loop '{loop.name}' is ({loop.describe()}): describe it by loop "
        "joints or couplings",
    )
    ends = loop_ends(model, loop)
    lines = [f"  <loop {attributes(name=loop.name, type=LOOPS[loop.kind])}>"]
    for tag, (name, X) in zip(("predecessor", "successor"), ends, strict=True):
        lines.append(f"    <{tag} {attributes(link=name)}>{_origin(X)}</{tag}>")
    lines.append(f"    <axis {attributes(xyz=loop.axis)}/>")
    if loop.axis2 is not None:
        lines.append(f"    <axis2 {attributes(xyz=loop.axis2)}/>")
    if loop.distance is not None:
        lines.append(f"    <distance {attributes(value=loop.distance)}/>")
    return [*lines, "  </loop>"]


def loop_ends(model: Model, loop: Any) -> list[tuple[str, Transform]]:
    """The moving bodies that a loop joint meets (or "world") and its frames on them."""
    common = "world"
    for path in (loop.path_P, loop.path_S):
        if path and path[0].parent != WORLD:
            common = model.bodies[path[0].parent].name
    found = []
    for path, X in ((loop.path_P, loop.frame_P), (loop.path_S, loop.frame_S)):
        found.append((path[-1].name if path else common, X))
    return found


def _transmission(loop: LinearCoupling) -> list[str]:
    """q = sum of multiplier * q + offset, as HyRoDyn writes it."""
    lines = [
        f"  <transmission {attributes(name=loop.name)}>",
        "    <type>MultiJointLinearTransmission</type>",
        f"    <joint {attributes(name=loop.outputs[0].joint.name)}>",
    ]
    for i, (body, ratio) in enumerate(zip(loop.inputs, loop.ratios, strict=True)):
        term = attributes(
            joint=body.joint.name, multiplier=ratio, offset=loop.offset if i == 0 else 0.0
        )
        lines.append(f"      <depends_on {term}/>")
    return [*lines, "    </joint>", "  </transmission>"]


def _actuator(model: Model, actuator, armature: float) -> list[str]:
    joint = model.bodies[actuator.joint].joint
    refuse_if(
        joint.nv != 1, f"URDF has no actuator on the {joint.kind} joint '{joint.name}': remove it"
    )
    rotor = f"<drake:rotor_inertia {attributes(value=armature)}/>" if armature else ""
    return [
        f"  <transmission {attributes(name=f'{actuator.name}/transmission')}>",
        "    <type>transmission_interface/SimpleTransmission</type>",
        f"    <joint {attributes(name=joint.name)}/>",
        f"    <actuator {attributes(name=actuator.name)}>{rotor}</actuator>",
        f"    <mechanicalReduction>{text(actuator.gear)}</mechanicalReduction>",
        "  </transmission>",
    ]
