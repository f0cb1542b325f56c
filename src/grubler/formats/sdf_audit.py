"""What is read of an SDF, and what is named because it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._xml import Element

if TYPE_CHECKING:
    from ._report import Complaints

# The attributes and the children that are read, by tag.
MODEL = (
    {"name", "canonical_link", "placement_frame"},
    {"pose", "static", "link", "joint", "frame", "model", "drake:ball_constraint"},
)
BALL = ("body_A", "body_B", "p_AP", "p_BQ")
READ: dict[str, tuple[set[str], set[str]]] = {
    "sdf": ({"version"}, {"world", "model"}),
    "world": ({"name"}, {"gravity", "model"}),
    "model": MODEL,
    "link": ({"name"}, {"pose", "inertial"}),
    "inertial": (set(), {"pose", "mass", "inertia"}),
    "inertia": (set(), {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}),
    "joint": (
        {"name", "type"},
        {"parent", "child", "pose", "axis", "axis2", "screw_thread_pitch", "thread_pitch",
         "gearbox_ratio", "gearbox_reference_body", "drake:mimic", "drake:rotor_inertia",
         "drake:gear_ratio"},
    ),
    "axis": (set(), {"xyz", "limit", "use_parent_model_frame", "mimic", "dynamics"}),
    "axis2": (set(), {"xyz", "limit", "use_parent_model_frame", "dynamics"}),
    "dynamics": (set(), {"damping", "friction", "spring_stiffness", "spring_reference"}),
    "xyz": ({"expressed_in"}, set()),
    "limit": (set(), {"lower", "upper", "velocity", "effort", "stiffness", "dissipation"}),
    "mimic": ({"joint", "axis"}, {"multiplier", "offset", "reference"}),
    "drake:mimic": ({"joint", "multiplier", "offset"}, set()),
    "drake:ball_constraint": (set(), {f"drake:ball_constraint_{x}" for x in BALL}),
    "frame": ({"name", "attached_to"}, {"pose"}),
    "pose": ({"relative_to", "rotation_format", "degrees"}, set()),
}  # fmt: skip
NO_DYNAMICS = {  # children that say nothing about the dynamics, by the element they belong in
    "world": {
        "light", "scene", "physics", "gui", "spherical_coordinates", "audio", "road", "atmosphere",
        "magnetic_field", "state", "population",
    },
    "model": {"self_collide", "allow_auto_disable"},
    "link": {
        "visual", "collision", "light", "sensor", "self_collide", "must_be_base_link", "material",
        "audio_sink", "audio_source",
    },
    "joint": {"sensor"},
}  # fmt: skip
GROUPS = {tag for tag, (_, children) in READ.items() if children} | {"frame", "drake:mimic"}
NEUTRAL = {  # children that change nothing when they say this
    "gravity": {"true", "1"},
    "kinematic": {"false", "0"},
    "enable_wind": {"false", "0"},
    "auto": {"false", "0"},  # an attribute of <inertial>: mass from the collision shapes
}


def audit(root: Element, complaints: Complaints) -> None:
    """Complain about every attribute and child that is not read."""
    waiting: list[tuple[Element, Element | None]] = [(root, None)]
    while waiting:  # in the order of the file
        element, parent = waiting.pop()
        attributes, _ = READ.get(element.tag, (set(), set()))
        if parent is not None and element.tag not in READ.get(parent.tag, (set(), set()))[1]:
            _name_unused(element, parent, complaints)
            continue
        for name in element.attributes:
            neutral = element.attributes[name].strip().lower() in NEUTRAL.get(name, ())
            if name not in attributes and not name.startswith("xmlns") and not neutral:
                complaints.add(f"attribute {name}= of <{element.tag}> is ignored", element)
        if element.tag in GROUPS:
            complaints.add_stray_text(element)
        elif not element.content.strip() and "relative_to" not in element.attributes:
            complaints.add(f"<{element.tag}> is empty: SDF's default is used", element)
        waiting += [(child, element) for child in reversed(element.children)]


def _name_unused(element: Element, parent: Element, complaints) -> None:
    if element.content.strip().lower() in NEUTRAL.get(element.tag, ()):
        return
    if element.tag not in NO_DYNAMICS.get(parent.tag, ()):
        complaints.add(f"<{element.tag}> in <{parent.tag}> is ignored", element)
