"""<transmission> in URDF: which joint a motor drives, and the linear couplings of HyRoDyn.

A simple transmission is an actuator whose gear is its mechanical reduction. Drake's rotor inertia
and gear ratio are reflected inertia only. A MultiJointLinearTransmission gives the position of a
joint as a weighted sum of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import unknown
from ..model.builder import ModelBuilder
from ._xml import Element
from .urdf_audit import TRANSMISSION, audit
from .urdf_loops import Closure

if TYPE_CHECKING:
    from ._report import Complaints
    from .urdf import Tree

LINEAR = "MultiJointLinearTransmission"
SIMPLE = ("SimpleTransmission", "")


@dataclass
class Motor:
    """An actuator as read: its joint, its gear, and the inertia it reflects."""

    name: str
    joint: str
    gear: float
    armature: float
    at: Element


def read_transmissions(tree: Tree, complaints: Complaints) -> tuple[list[Closure], list[Motor]]:
    """Couplings and actuators of all <transmission> elements."""
    couplings: list[Closure] = []
    motors: list[Motor] = []
    for element in tree.robot.all("transmission"):
        kind = element.text("type", "") or _text(element.child("type"))
        if kind == LINEAR or kind.rsplit("/", 1)[-1] in SIMPLE:
            audit(element, complaints, TRANSMISSION)
        if kind == LINEAR:
            couplings += linear_couplings(tree, element)
        elif kind.rsplit("/", 1)[-1] in SIMPLE:
            motors += _motors(tree, element, complaints)
        else:
            complaints.add(f"<transmission> of type {kind} is ignored", element)
    return couplings, motors


def linear_couplings(tree: Tree, element: Element) -> list[Closure]:
    """q_joint = sum of multiplier * q + offset over its <depends_on>."""
    found = []
    for joint in element.all("joint"):
        name = _joint(tree, joint, joint.text("name"))
        ratios: dict[str, float] = {}
        offset = 0.0
        for term in joint.all("depends_on"):
            leader = _joint(tree, term, term.text("joint"))
            ratios[leader] = ratios.get(leader, 0.0) + term.number("multiplier", "1")
            offset += term.number("offset", "0")
        if not ratios:
            raise joint.error(f"joint '{name}' depends on nothing: give it a <depends_on>")
        alone = len(element.all("joint")) == 1 and "name" in element.attributes
        title = element.text("name") if alone else f"{name}_transmission"
        found.append(_coupling(title, name, ratios, offset, joint))
    return found


def _coupling(title: str, name: str, ratios: dict[Any, Any], offset: float, at: Element) -> Closure:
    return Closure(
        title,
        {name, *ratios},
        lambda b: b.add_coupling(title, name, ratios=ratios, offset=offset),
        at,
    )


def _joint(tree, at: Element, name: str) -> str:
    if name not in tree.joints:
        raise at.error(f"transmission: {unknown('joint', name, tree.joints)}")
    return name


def _motors(tree, element: Element, complaints) -> list[Motor]:
    joints, actuators = element.all("joint"), element.all("actuator")
    if len(joints) != 1 or len(actuators) != 1:
        complaints.add("<transmission> without exactly one joint and one actuator is ignored",
                       element)  # fmt: skip
        return []
    joint, actuator = joints[0].text("name"), actuators[0]
    if joint not in tree.joints:
        complaints.add(
            f"<transmission> is ignored: {unknown('joint', joint, tree.joints)}", element
        )
        return []
    if tree.joints[joint].text("type", "") in ("fixed", "floating", "planar", "spherical"):
        complaints.add(f"<transmission> is ignored: joint '{joint}' has no single motion", element)
        return []
    reduction = next(
        (found for at in (element, actuator, joints[0])
         if (found := at.child("mechanicalReduction")) is not None), None,
    )  # fmt: skip
    gear = 1.0 if reduction is None else reduction.value("1")
    ratio, rotor = (actuator.child(f"drake:{x}") for x in ("gear_ratio", "rotor_inertia"))
    armature = 0.0 if rotor is None else rotor.number("value")
    armature *= 1.0 if ratio is None else ratio.number("value") ** 2
    return [Motor(actuator.text("name", element.text("name", joint)), joint, gear, armature,
                  element)]  # fmt: skip


def add_actuators(b: ModelBuilder, tree: Tree, motors: list[Motor], complaints: Complaints) -> None:
    """Actuators by name."""
    seen: set[str] = set()
    for motor in motors:
        if motor.name in seen or motor.gear == 0.0:
            reason = "its reduction is zero" if motor.gear == 0.0 else "there is one of that name"
            complaints.add(f"actuator '{motor.name}' is ignored: {reason}", motor.at)
            continue
        seen.add(motor.name)
        limit = tree.joints[motor.joint].child("limit")
        effort = None
        if limit is not None and "effort" in limit.attributes and limit.number("effort") < 1e9:
            effort = limit.number("effort") / abs(motor.gear)
        b.add_actuator(motor.name, motor.joint, motor.gear, effort)


def _text(element: Element | None) -> str:
    return "" if element is None else element.content.strip()
