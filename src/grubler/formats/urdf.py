"""URDF trees: links, inertias, joints, limits and mimic joints.

What plays no part in the dynamics (visuals, collision shapes, materials, soft limits, calibration)
is passed over. Everything else that is not understood is named in a `FormatWarning` with its line,
or with `strict=True` in an error.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from ..builder import ModelBuilder
from ..errors import InputError, ModelError, unknown
from ..model import Model
from ..parts import check_inertia, inertia_matrix
from ..spatial import rpy_matrix
from ._xml import Element, FormatWarning, read_xml

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
# The attributes and the children that are read, by tag.
READ = {
    "robot": ({"name", "version"}, {"link", "joint"}),
    "link": ({"name"}, {"inertial"}),
    "inertial": (set(), {"origin", "mass", "inertia"}),
    "mass": ({"value"}, set()),
    "inertia": ({"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}, set()),
    "joint": ({"name", "type"}, {"origin", "parent", "child", "axis", "limit", "mimic"}),
    "origin": ({"xyz", "rpy"}, set()),
    "parent": ({"link"}, set()),
    "child": ({"link"}, set()),
    "axis": ({"xyz"}, set()),
    "limit": ({"lower", "upper", "velocity", "effort"}, set()),
    "mimic": ({"joint", "multiplier", "offset"}, set()),
}
NO_DYNAMICS = {"visual", "collision", "material", "safety_controller", "calibration"}


def load_urdf(source: str | Path, *, base: str = "fixed", strict: bool = False) -> Model:
    """Read a URDF file, or URDF text, as a tree.

    The root link is fixed to the world, or floats with `base="free"`; its joint is "root_joint".
    Fixed joints are welded; the links they carry stay as frames.
    """
    if base not in ("fixed", "free"):
        raise InputError(f"base is 'fixed' or 'free', not {base!r}")
    robot = read_xml(source)
    if robot.tag != "robot":
        raise robot.error("a URDF starts with <robot>")
    complaints = _Complaints(strict)
    _audit(robot, complaints)
    links = _by_name(robot.all("link"))
    joints = _by_name(robot.all("joint"))
    root = _check_tree(links, joints)
    b = ModelBuilder(robot.text("name", "robot"))
    _add_links(b, links, root, base, complaints)
    if root != "world":
        b.add_joint("root_joint", base, "world", root)
    for name, joint in joints.items():
        _add_joint(b, name, joint)
    for name, joint in joints.items():
        _add_mimic(b, name, joint, joints, complaints)
    complaints.tell()
    return b.build()


class _Complaints:
    """Collects what was not understood; tells it once, or raises at once when strict."""

    def __init__(self, strict: bool):
        self._strict = strict
        self._lines: dict[str, list[int]] = {}

    def add(self, what: str, line: int) -> None:
        if self._strict:
            raise ModelError(f"line {line}: {what}")
        self._lines.setdefault(what, []).append(line)

    def tell(self) -> None:
        for what, lines in self._lines.items():
            shown = ", ".join(str(line) for line in lines[:8]) + (", ..." if lines[8:] else "")
            warnings.warn(
                f"line{'s' if lines[1:] else ''} {shown}: {what}", FormatWarning, stacklevel=4
            )


def _audit(element: Element, complaints: _Complaints) -> None:
    """Complain about every attribute and child that is not read."""
    attributes, children = READ[element.tag]
    for name in element.attributes:
        if name not in attributes and not name.startswith("xmlns"):
            complaints.add(f"attribute {name}= of <{element.tag}> is ignored", element.line)
    for child in element.children:
        if child.tag in children:
            _audit(child, complaints)
        elif child.tag == "dynamics" and element.tag == "joint":
            for name in child.attributes:
                if name not in ("damping", "friction") or child.number(name) != 0.0:
                    complaints.add(f"joint {name} (<dynamics>) is ignored", child.line)
        elif child.tag not in NO_DYNAMICS:
            complaints.add(f"<{child.tag}> in <{element.tag}> is ignored", child.line)


def _by_name(elements: list[Element]) -> dict[str, Element]:
    named: dict[str, Element] = {}
    for element in elements:
        name = element.text("name")
        if name in named:
            raise element.error(
                f"there is already a {element.tag} named '{name}', on line {named[name].line}"
            )
        named[name] = element
    return named


def _check_tree(links: dict[str, Element], joints: dict[str, Element]) -> str:
    """The root link; an error where links and joints are not one tree."""
    if not links:
        raise ModelError("the description has no <link>")
    parent_of: dict[str, str] = {}
    carried_by: dict[str, str] = {}
    for name, joint in joints.items():
        ends = [joint.required(end) for end in ("parent", "child")]
        for end in ends:
            if end.text("link") not in links:
                raise end.error(f"joint '{name}': {unknown('link', end.text('link'), links)}")
        parent, child = (end.text("link") for end in ends)
        if child in parent_of:
            raise joint.error(
                f"link '{child}' is the child of two joints, '{carried_by[child]}' and '{name}': "
                "URDF describes trees; a loop needs ModelBuilder.add_loop"
            )
        parent_of[child], carried_by[child] = parent, name
    roots = [name for name in links if name not in parent_of]
    if len(roots) > 1:
        raise ModelError(f"several root links: {', '.join(roots)}; join them to one tree")
    rooted = set(roots)
    for name in links:
        path: dict[str, None] = {}
        here = name
        while here not in rooted:
            if here in path:
                cycle = list(path)[list(path).index(here) :]
                raise ModelError(f"joints form a cycle of links: {', '.join(cycle[::-1])}")
            path[here] = None
            here = parent_of[here]
        rooted.update(path)
    return roots[0]


def _add_links(b: ModelBuilder, links, root: str, base: str, complaints: _Complaints) -> None:
    for name, link in links.items():
        inertial = link.child("inertial")
        if name == "world":
            if name != root or base != "fixed" or inertial is not None:
                raise link.error("only a fixed root link without inertia may be called 'world'")
            continue
        if inertial is None:
            b.add_body(name)
            continue
        mass, com, inertia = _inertial(inertial)
        physical = True
        try:
            check_inertia(name, mass, com, inertia, physical=True)
        except ModelError as error:
            try:
                check_inertia(name, mass, com, inertia, physical=False)
            except ModelError as worse:
                raise inertial.error(str(worse)) from None
            complaints.add(str(error).split(";")[0], inertial.line)
            physical = False
        b.add_body(name, mass, com, inertia, physical=physical)


def _inertial(inertial: Element):
    """Mass, centre of mass, and inertia about it in the axes of the link."""
    com, R = _origin(inertial)
    inertia = inertial.required("inertia")
    six = [inertia.number(k, "0") for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
    mass = inertial.required("mass").number("value")
    return mass, com, R @ inertia_matrix("", six) @ R.T


def _origin(element: Element):
    origin = element.child("origin")
    if origin is None:
        return np.zeros(3), np.eye(3)
    return origin.numbers("xyz", 3, "0 0 0"), rpy_matrix(*origin.numbers("rpy", 3, "0 0 0"))


def _add_joint(b: ModelBuilder, name: str, joint: Element) -> None:
    kind = joint.text("type")
    if kind not in KINDS:
        raise joint.error(f"joint '{name}': {unknown('joint type', kind, KINDS)}")
    parent, child = (joint.required(end).text("link") for end in ("parent", "child"))
    xyz, R = _origin(joint)
    axis = joint.child("axis")
    b.add_joint(
        name,
        KINDS[kind],
        parent,
        child,
        xyz=xyz,
        R=R,
        axis=(1.0, 0.0, 0.0) if axis is None else axis.numbers("xyz", 3, "1 0 0"),
        **_limits(joint, kind),
    )


def _add_mimic(b: ModelBuilder, name: str, joint: Element, joints, complaints) -> None:
    mimic = joint.child("mimic")
    if mimic is None:
        return
    leader = mimic.text("joint")
    if leader not in joints:
        raise mimic.error(f"joint '{name}': {unknown('joint', leader, joints)}")
    if joint.text("type") == "fixed":
        complaints.add("<mimic> in a fixed <joint> is ignored", mimic.line)
        return
    ratios = {leader: mimic.number("multiplier", "1")}
    b.add_coupling(f"{name}_mimic", name, ratios=ratios, offset=mimic.number("offset", "0"))


def _limits(joint: Element, kind: str) -> dict[str, float]:
    """The limits that are given; lower and upper default to 0 where URDF says so."""
    limit = joint.child("limit")
    if limit is None or kind in ("fixed", "floating", "planar"):
        return {}
    names = {"velocity": "velocity_limit", "effort": "effort_limit"}
    found = {arg: limit.number(name) for name, arg in names.items() if name in limit.attributes}
    if kind != "continuous":
        found |= {name: limit.number(name, "0") for name in ("lower", "upper")}
    return found
