"""Joints of SDF: kinds, axes in the frame they are written in, limits, screws, gearboxes, mimic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, unknown
from ..mechanism.joints import unit
from ..model.builder import ModelBuilder
from ._xml import Element
from .sdf_frames import MODEL, Frames

if TYPE_CHECKING:
    from ._report import Complaints

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "universal": "universal",
    "revolute2": "universal",
    "screw": "helical",
    "gearbox": "gearbox",
}


@dataclass
class JointSpec:
    """A joint as read; axes in the joint frame, names scoped."""

    name: str
    kind: str
    given: str
    parent: str
    child: str
    at: Element
    scope: str
    axis: np.ndarray | None = None
    axis2: np.ndarray | None = None
    pitch: float = 0.0
    limits: dict[str, float] = field(default_factory=dict)
    armature: float = 0.0
    passive: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def at_fault(self) -> Iterator[None]:
        """Errors raised inside name this joint's line."""
        try:
            yield
        except ModelError as error:
            raise self.at.error(f"joint '{self.name}': {error}") from None


def read_joint(
    joint: Element, scope: str, frames: Frames, version: tuple[int, int], complaints: Complaints
) -> JointSpec:
    name, given = joint.text("name"), joint.text("type")
    if given not in KINDS:
        raise joint.error(f"joint '{name}': {unknown('joint type', given, KINDS)}")
    ends = []
    for end in ("parent", "child"):
        element = joint.required(end)
        text = element.content.strip()
        ends.append(frames.link(frames.known(scope, text, element)))
    spec = JointSpec(scope + name, KINDS[given], given, *ends, joint, scope)
    if spec.kind in ("revolute", "continuous", "prismatic", "helical", "universal", "gearbox"):
        spec.axis = _axis(joint, "axis", spec, frames, version)
    if spec.kind in ("universal", "gearbox"):
        spec.axis2 = _axis(joint, "axis2", spec, frames, version)
    elif joint.child("axis2") is not None:
        complaints.add(f"<axis2> in a {given} <joint> is ignored", joint.child("axis2"))
    if spec.kind in ("revolute", "prismatic", "helical"):
        spec.limits = _limits(joint.child("axis"))
    if spec.kind == "helical":
        spec.pitch = _pitch(joint, complaints)
    spec.passive = _passive(joint, spec, complaints)
    rotor, gear = joint.child("drake:rotor_inertia"), joint.child("drake:gear_ratio")
    if rotor is not None:
        spec.armature = rotor.value() * (1.0 if gear is None else gear.value() ** 2)
    return spec


def _axis(joint: Element, tag: str, spec: JointSpec, frames: Frames, version) -> np.ndarray:
    """The axis in the joint frame; where it is written depends on the version."""
    axis = joint.child(tag)
    if axis is None:
        return np.array([0.0, 0.0, 1.0])
    xyz = axis.child("xyz")
    value = np.array([0.0, 0.0, 1.0]) if xyz is None else xyz.values(3, "0 0 1")
    frame = spec.name
    flag = axis.child("use_parent_model_frame")
    if (flag is not None and flag.truth(flag.content)) or version <= (1, 4):
        frame = spec.scope + MODEL
    elif xyz is not None and xyz.text("expressed_in", ""):
        frame = frames.known(spec.scope, xyz.text("expressed_in"), xyz)
    to_joint = frames.world(spec.name).E @ frames.world(frame).E.T if frame != spec.name else None
    return value if to_joint is None else to_joint @ value


def _limits(axis: Element | None) -> dict[str, float]:
    limit = None if axis is None else axis.child("limit")
    found = {}
    if limit is None:
        return found
    for tag, name in (("lower", "lower"), ("upper", "upper")):
        entry = limit.child(tag)
        text = "" if entry is None else entry.content.strip()
        if text and text.lower().lstrip("+-") not in ("inf", "infinity"):
            value = entry.value()
            if abs(value) < 1e15:
                found[name] = value
    for tag in ("velocity", "effort"):
        entry = limit.child(tag)
        text = "" if entry is None else entry.content.strip()
        if text and text.lower().lstrip("+-") not in ("inf", "infinity") and entry.value() >= 0:
            found[f"{tag}_limit"] = entry.value()
    return found


def _passive(joint: Element, spec: JointSpec, complaints) -> dict[str, float]:
    """Damping, friction and spring of a joint; its axes must agree on them."""
    tags = {"damping": "damping", "friction": "friction", "stiffness": "spring_stiffness",
            "rest": "spring_reference"}  # fmt: skip
    found = []
    for tag in ("axis", "axis2"):
        axis = joint.child(tag)
        dynamics = None if axis is None else axis.child("dynamics")
        values = {}
        for name, entry in tags.items():
            element = None if dynamics is None else dynamics.child(entry)
            values[name] = 0.0 if element is None else element.value("0")
        found.append(values)
    first, second = found
    if spec.kind in ("fixed", "spherical", "gearbox"):
        if any(first[n] or second[n] for n in ("damping", "friction", "stiffness")):
            complaints.add(f"<dynamics> of a {spec.given} <joint> is ignored", joint)
        return {}
    if spec.kind == "universal" and (first != second or first["stiffness"]):
        complaints.add(
            "<dynamics> of a joint of two axes is ignored: damping and friction are read where "
            "they are the same about both, springs on joints of one axis", joint,
        )  # fmt: skip
        return {}
    return first


def _pitch(joint: Element, complaints) -> float:
    """Metres a radian, right-handed: from m/rev, or from the old left-handed rad/m."""
    new, old = joint.child("screw_thread_pitch"), joint.child("thread_pitch")
    if new is not None:
        return new.value() / (2 * np.pi)
    if old is None:
        complaints.add("screw without <screw_thread_pitch>: SDF's <thread_pitch>1 is used", joint)
    rate = 1.0 if old is None else old.value()
    if rate == 0.0:
        raise old.error("a thread pitch of 0 rad/m never turns: give <screw_thread_pitch> in m")
    return -1.0 / rate


def add_couplings(b: ModelBuilder, reader: Any) -> None:
    """Gearboxes and mimic axes."""
    for spec in reader.joints.values():
        if spec.kind == "gearbox":
            _add_gearbox(b, spec, reader)
        axis = spec.at.child("axis")
        mimic = None if axis is None else axis.child("mimic")
        if mimic is not None:
            parts = {k: mimic.child(k) for k in ("multiplier", "offset", "reference")}
            m, o, r = (0.0 if e is None else e.value("0") for e in parts.values())
            m = 1.0 if parts["multiplier"] is None else m
            _add_mimic(b, spec, mimic, m, o - m * r, reader)
        mimic = spec.at.child("drake:mimic")
        if mimic is not None:
            m, o = mimic.number("multiplier", "1"), mimic.number("offset", "0")
            _add_mimic(b, spec, mimic, m, o, reader)


def _add_mimic(b: ModelBuilder, spec: JointSpec, mimic: Element, m, offset, reader) -> None:
    leader = spec.scope + mimic.text("joint")
    if leader not in reader.joints:
        raise mimic.error(f"joint '{spec.name}': {unknown('joint', leader, reader.joints)}")
    if mimic.text("axis", "axis") != "axis":
        raise mimic.error(f"joint '{spec.name}' mimics axis2: only a joint's first axis can lead")
    for name in (spec.name, leader):
        if name in reader.loops:
            raise mimic.error(f"joint '{name}' closes a loop and cannot be part of a mimic: list "
                              "it before the joints that make it a loop")  # fmt: skip
    with spec.at_fault():
        b.add_coupling(f"{spec.name}_mimic", spec.name, ratios={leader: m}, offset=offset)


def _add_gearbox(b: ModelBuilder, spec: JointSpec, reader) -> None:
    """theta_2 = -ratio theta_1: the angles of child and parent about axis2 and axis, both seen
    from the reference body."""
    ratio, body = spec.at.child("gearbox_ratio"), spec.at.required("gearbox_reference_body")
    ratio = 1.0 if ratio is None else ratio.value("1")
    reference = reader.frames.link(reader.frames.known(spec.scope, body.content.strip(), body))
    E = reader.frames.world(spec.name).E
    with spec.at_fault():
        axis, axis2 = E.T @ unit(spec.axis), E.T @ unit(spec.axis2)
    theta1 = _angle(spec, reference, spec.parent, axis, reader)
    theta2 = _angle(spec, reference, spec.child, axis2, reader)
    total = dict(theta2)
    for name, sign in theta1.items():
        total[name] = total.get(name, 0.0) + ratio * sign
    total = {name: c for name, c in total.items() if c}
    outputs = [name for name in theta2 if name in total]
    if not outputs or len(total) < 2:
        raise spec.at.error(
            f"gearbox '{spec.name}' couples nothing: link '{spec.child}' does not turn against "
            f"reference body '{reference}'"
        )
    output = outputs[-1]
    ratios = {n: -c / total[output] for n, c in total.items() if n != output}
    with spec.at_fault():
        b.add_coupling(spec.name, output, ratios=ratios)


def _angle(spec: JointSpec, reference: str, link: str, axis, reader) -> dict[str, float]:
    """The angle of a link seen from another about a world axis, as a sum of joint positions.

    `axis` is a unit vector.
    """

    def up(name: str) -> list[str]:
        chain = []
        while name in reader.carried:
            chain.append(reader.carried[name])
            name = reader.joints[chain[-1]].parent
        return chain

    down, back = up(link), up(reference)
    shared = set(down) & set(back)
    angle: dict[str, float] = {}
    for chain, side in ((down, 1.0), (back, -1.0)):
        for name in reversed([n for n in chain if n not in shared]):
            joint = reader.joints[name]
            if joint.kind in ("fixed", "prismatic"):
                continue
            cosine = 0.0
            if joint.kind in ("revolute", "continuous", "helical"):
                with joint.at_fault():
                    cosine = float(reader.frames.world(name).E.T @ unit(joint.axis) @ axis)
            if abs(abs(cosine) - 1) > 1e-6:
                raise spec.at.error(
                    f"gearbox '{spec.name}': joint '{name}' between '{reference}' and '{link}' "
                    "does not turn about the gearbox's axis"
                )
            angle[name] = side * np.sign(cosine)
    return angle
