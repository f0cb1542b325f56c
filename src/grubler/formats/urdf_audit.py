"""What is read of a URDF, and what is named because it is not."""

from __future__ import annotations

from typing import Any

from ._report import Complaints
from ._xml import Element
from .urdf_loops import CLOSURE_TAGS

# The attributes and the children that are read, by tag.
READ: dict[Any, Any] = {
    "robot": ({"name", "version"}, {"link", "joint", "transmission", *CLOSURE_TAGS}),
    "link": ({"name"}, {"inertial"}),
    "inertial": (set(), {"origin", "mass", "inertia"}),
    "mass": ({"value"}, set()),
    "inertia": ({"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}, set()),
    "joint": (
        {"name", "type", "independent"},
        {"origin", "parent", "child", "axis", "limit", "mimic", "dynamics"},
    ),
    "origin": ({"xyz", "rpy"}, set()),
    "parent": ({"link"}, set()),
    "child": ({"link"}, set()),
    "axis": ({"xyz"}, set()),
    "axis2": ({"xyz"}, set()),
    "limit": ({"lower", "upper", "velocity", "effort"}, set()),
    "mimic": ({"joint", "multiplier", "offset"}, set()),
    "dynamics": ({"damping", "friction", "armature"}, set()),
    "loop": ({"name", "type"}, {"predecessor", "successor", "axis", "axis2", "distance"}),
    "coupling": ({"name", "type"}, {"predecessor", "successor", "ratio"}),
    "predecessor": ({"link"}, {"origin"}),
    "successor": ({"link"}, {"origin"}),
    "ratio": ({"value"}, set()),
    "distance": ({"value"}, set()),
    "loop_joint": ({"name", "type"}, {"link1", "link2", "axis"}),
    "link1": ({"link", "xyz", "rpy"}, set()),
    "link2": ({"link", "xyz", "rpy"}, set()),
    "constraint": (
        {"name", "type"},
        {"parent", "child", "parent_origin", "child_origin", "parent_axis", "child_axis"},
    ),
    "parent_origin": ({"xyz", "rpy"}, set()),
    "child_origin": ({"xyz", "rpy"}, set()),
    "parent_axis": ({"xyz"}, set()),
    "child_axis": ({"xyz"}, set()),
    "drake:ball_constraint": (
        {"name"},
        {f"drake:ball_constraint_{x}" for x in ("body_A", "body_B", "p_AP", "p_BQ")},
    ),
    "drake:ball_constraint_body_A": ({"name"}, set()),
    "drake:ball_constraint_body_B": ({"name"}, set()),
    "drake:ball_constraint_p_AP": ({"value"}, set()),
    "drake:ball_constraint_p_BQ": ({"value"}, set()),
    "transmission": (None, None),  # looked at where its type is read, see TRANSMISSION
}
# The same within a <transmission>, where <joint> means something else.
TRANSMISSION: dict[Any, Any] = {
    "transmission": ({"name", "type"}, {"type", "joint", "actuator", "mechanicalReduction"}),
    "type": (set(), set()),
    "mechanicalReduction": (set(), set()),
    "joint": ({"name"}, {"depends_on", "mechanicalReduction"}),
    "depends_on": ({"joint", "multiplier", "offset"}, set()),
    "actuator": ({"name"}, {"mechanicalReduction", "drake:rotor_inertia", "drake:gear_ratio"}),
    "drake:rotor_inertia": ({"value"}, set()),
    "drake:gear_ratio": ({"value"}, set()),
}
NO_DYNAMICS = {  # children that say nothing about the dynamics, by the element they belong in
    "robot": {"material"},
    "link": {"visual", "collision"},
    "joint": {"safety_controller", "calibration"},
}
CONTROLLER = {  # children within a <transmission> that a controller alone needs
    "hardwareInterface", "role", "offset", "saturationLower", "saturationUpper", "deadBandUpper",
    "deadBandLower", "ignoreTransmissionAbsoluteEncoder", "motorTorqueConstant",
}  # fmt: skip
TEXTS = ("type", "mechanicalReduction")  # which hold text


def audit(root: Element, complaints: Complaints, read: dict[Any, Any] = READ) -> None:
    """Complain about every attribute and child that is not read: of a <robot> by READ, of a
    <transmission> by TRANSMISSION."""
    waiting: list[tuple[Element, Element | None]] = [(root, None)]
    while waiting:  # in the order of the file
        element, parent = waiting.pop()
        if parent is not None and element.tag not in read[parent.tag][1]:
            if element.tag == "joint_properties" and parent.tag == "joint":
                _audit_friction(element, complaints)
            elif element.tag not in _passed_over(parent, read):
                complaints.add(f"<{element.tag}> in <{parent.tag}> is ignored", element)
            continue
        attributes, _ = read[element.tag]
        if attributes is None:
            continue
        if element.tag not in TEXTS:
            complaints.add_stray_text(element)
        for name in element.attributes:
            if name not in attributes and not name.startswith("xmlns"):
                complaints.add(f"attribute {name}= of <{element.tag}> is ignored", element)
        waiting += [(child, element) for child in reversed(element.children)]


def _passed_over(parent: Element, read: dict[Any, Any]) -> set[str]:
    return NO_DYNAMICS.get(parent.tag, set()) if read is READ else CONTROLLER


def _audit_friction(element: Element, complaints: Complaints) -> None:
    for name in element.attributes:
        if name not in ("damping", "friction") or element.number(name) != 0.0:
            complaints.add(f"joint {name} (<{element.tag}>) is ignored", element)
