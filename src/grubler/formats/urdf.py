"""URDF: links, inertias, joints, limits, mimic joints, and what others have added to it for loops.

What plays no part in the dynamics (visuals, collision shapes, materials, soft limits, calibration)
is passed over. Everything else that is not understood is named in a `FormatWarning` with its line,
or with `strict=True` in an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..algebra.spatial import Transform
from ..errors import InputError, ModelError, unknown
from ..mechanism.parts import inertia_matrix
from ..model import Model
from ..model.builder import ModelBuilder
from ._description import Description, add_body, name_massless_leaves
from ._geometry import carrier_name, origin, placed, pose_vector
from ._report import Complaints
from ._xml import Element, read_xml
from .urdf_audit import audit
from .urdf_loops import Closure, read_closures
from .urdf_transmissions import add_actuators, read_transmissions

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
    "spherical": "spherical",
}
MANY = ("floating", "planar", "spherical")  # of several freedoms: URDF's limits do not apply
UNIVERSAL = ("XY", "XZ", "YX", "YZ", "ZX", "ZY")  # kinds that a file beside the URDF may give
NO_LIMIT = 1e9  # where URDF demands a limit and there is none


def load_urdf(source: str | Path, *, base: str = "fixed", strict: bool = False) -> Model:
    """Read a URDF file, or URDF text.

    The root link is fixed to the world, or floats with `base="free"`; its joint is "root_joint".
    A root called "world" is the world itself: what hangs from it by a fixed joint floats then.
    Fixed joints are welded; the links they carry stay as frames.
    """
    return describe_urdf(source, base=base, strict=strict).build()


def describe_urdf(source: Any, *, base: str | None = None, strict: bool = False) -> Description:
    complaints = Complaints(strict)
    return describe(read_tree(source, complaints), base, complaints)


@dataclass
class Tree:
    """Links and joints of a URDF by name, checked to be one tree."""

    robot: Element
    links: dict[str, Element]
    joints: dict[str, Element]
    carrier: dict[str, str]  # link -> the joint that carries it
    root: str

    def ends(self, joint: str) -> tuple[str, str]:
        element = self.joints[joint]
        return element.required("parent").text("link"), element.required("child").text("link")

    def chain(self, link: str) -> list[str]:
        """The joints from the root to a link ("world" and the root have none)."""
        joints = []
        while link in self.carrier:
            joints.append(self.carrier[link])
            link = self.ends(joints[-1])[0]
        return joints[::-1]

    def branches(self, a: str, b: str) -> tuple[list[str], list[str]]:
        """The moving joints from the nearest common ancestor of two links to each of them."""
        up_a, up_b = self.chain(a), self.chain(b)
        shared = set(up_a) & set(up_b)

        def moving(chain: list[str]) -> list[str]:
            own = (n for n in chain if n not in shared)
            return [n for n in own if self.joints[n].text("type") != "fixed"]

        return moving(up_a), moving(up_b)

    def pose(self, link: str) -> Transform:
        """The transform from the root link into a link, all joints at zero."""
        X = Transform.identity()
        for name in self.chain(link):
            p, R = origin(self.joints[name])
            X = Transform.from_placement(R, p) @ X
        return X


def read_tree(source: Any, complaints: Complaints) -> Tree:
    """The links and joints of a file or text; what is not read is named."""
    robot = source if isinstance(source, Element) else read_xml(source)
    if robot.tag != "robot":
        raise robot.error("a URDF starts with <robot>")
    audit(robot, complaints)
    links, joints = by_name(robot.all("link")), by_name(robot.all("joint"))
    if not links:
        raise robot.error("the description has no <link>")
    carrier, root = _check_tree(robot, links, joints)
    return Tree(robot, links, joints, carrier, root)


def by_name(elements: list[Element]) -> dict[str, Element]:
    named: dict[str, Element] = {}
    for element in elements:
        name = element.text("name")
        if name in named:
            raise element.error(
                f"there is already a {element.tag} named '{name}', on line {named[name].line}"
            )
        named[name] = element
    return named


def _check_tree(robot: Element, links: dict[str, Element], joints: dict[str, Element]):
    """Who carries whom, and the root link; an error where links and joints are not one tree."""
    parent_of: dict[str, str] = {}
    carrier: dict[str, str] = {}
    for name, joint in joints.items():
        ends = [joint.required(end) for end in ("parent", "child")]
        for end in ends:
            if end.text("link") not in links:
                raise end.error(f"joint '{name}': {unknown('link', end.text('link'), links)}")
        parent, child = (end.text("link") for end in ends)
        if child in parent_of:
            raise joint.error(
                f"link '{child}' is the child of two joints, '{carrier[child]}' and '{name}': "
                "the joints of a URDF form a tree; write the second one as "
                f'<loop name="{name}" type="...">'
            )
        parent_of[child], carrier[child] = parent, name
    roots = [name for name in links if name not in parent_of]
    if len(roots) > 1:
        raise robot.error(f"several root links: {', '.join(roots[:8])}; join them to one tree")
    rooted = set(roots)
    for name in links:
        path: dict[str, None] = {}
        here = name
        while here not in rooted:
            if here in path:
                cycle = list(path)[list(path).index(here) :]
                raise joints[carrier[here]].error(
                    f"joints form a cycle of links: {', '.join(cycle[::-1])}; write one of them "
                    'as <loop type="...">'
                )
            path[here] = None
            here = parent_of[here]
        rooted.update(path)
    return carrier, roots[0]


def describe(
    tree: Tree,
    base: str | None,
    complaints: Complaints,
    *,
    closures: Sequence[Closure] = (),
    kinds: Mapping[str, str] | None = None,
    flags: Mapping[str, bool] | None = None,
) -> Description:
    """A builder with the tree and all its loops.

    `closures`, `kinds` and `flags` come from a file beside the URDF: further loops, joints of
    another kind, and joints that are independent or not.
    """
    base = base or "fixed"
    if base not in ("fixed", "free"):
        raise InputError(f"base is 'fixed' or 'free', not {base!r}")
    _check_base(tree, base)
    b = ModelBuilder(tree.robot.text("name", "robot"))
    masses, moments = _add_links(b, tree, base, complaints, _welded(tree, base, kinds or {}))
    freed = _freed(tree, base)
    if tree.root != "world":
        b.add_joint("root_joint", base, "world", tree.root)
    couplings, motors = read_transmissions(tree, complaints)
    closures = [*read_closures(tree, complaints), *couplings, *closures]
    touched = {name for closure in closures for name in closure.joints}
    edges = [(*tree.ends(n), j.text("type", "") != "fixed") for n, j in tree.joints.items()]
    closed = {tree.ends(name)[1] for name in touched}
    name_massless_leaves(masses, moments, edges, closed, tree.links, complaints)
    reflected: dict[str, float] = {}
    for motor in motors:
        reflected[motor.joint] = reflected.get(motor.joint, 0.0) + motor.armature
    reference = {}
    for name, joint in tree.joints.items():
        if name == freed:
            b.add_joint("root_joint", "free", "world", tree.ends(name)[1])
            reference["root_joint"] = pose_vector(placed(*origin(joint)))
            continue
        independent = (flags or {}).get(name)
        if "independent" in joint.attributes:
            independent = _independent(name, joint, touched, complaints)
        kind = (kinds or {}).get(name)
        _add_joint(b, name, joint, kind, independent, reflected.get(name, 0.0))
    for closure in closures:
        closure.add_to(b)
    add_actuators(b, tree, motors, complaints)
    return Description(b, complaints, tree.robot.source, reference)


def _freed(tree: Tree, base: str) -> str | None:
    """The fixed joint that holds the robot to a root link called "world", where it is to float."""
    if base != "free" or tree.root != "world":
        return None
    carried = [n for n in tree.joints if tree.ends(n)[0] == "world"]
    if len(carried) == 1 and tree.joints[carried[0]].text("type") == "fixed":
        return carried[0]
    raise tree.links["world"].error(
        f"base='free', but the root link is 'world', the ground, and carries "
        f"{', '.join(carried) or 'nothing'}: a robot that may float hangs from it by one fixed "
        "joint; leave base out, or rename the link"
    )


def _check_base(tree: Tree, base: str) -> None:
    """A massless root that carries a floating joint is the ground: it must not float itself."""
    carried = [j for n, j in tree.joints.items() if tree.ends(n)[0] == tree.root]
    bare = tree.links[tree.root].child("inertial") is None
    floats = [j.text("name") for j in carried if j.text("type", "") == "floating"]
    if base == "free" and bare and floats and len(floats) == len(carried):
        raise InputError(
            f"base='free', but the root link '{tree.root}' has no mass and joint '{floats[0]}' "
            "frees the robot already: leave base out"
        )


def _welded(tree: Tree, base: str, kinds: Mapping[str, str]) -> set[str]:
    """The links on either side of fixed joints; the root's leads to the world."""
    found = {tree.root} if base == "fixed" else set()
    for name, joint in tree.joints.items():
        if kinds.get(name, joint.text("type", "")) == "fixed":
            found.update(tree.ends(name))
    return found


def _add_links(b: ModelBuilder, tree: Tree, base: str, complaints: Complaints, welded: set[str]):
    """Bodies of all links; returns their masses and largest moments of inertia."""
    masses, moments = {}, {}
    for name, link in tree.links.items():
        inertial = link.child("inertial")
        if name == "world":
            if name != tree.root or inertial is not None:
                raise link.error(
                    "only a root link without <inertial> may be called 'world', the name of the "
                    "ground: rename the link"
                )
            continue
        mass, com, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
        if inertial is not None:
            mass, com, inertia = _inertial(name, inertial, complaints)
        masses[name], moments[name] = mass, float(np.abs(inertia).max())
        at = inertial or link
        add_body(b, name, mass, com, inertia, at, complaints, name in welded)
    return masses, moments


def _inertial(name: str, inertial: Element, complaints: Complaints):
    """Mass, centre of mass, and inertia about it in the axes of the link."""
    com, R = origin(inertial)
    mass = inertial.required("mass").number("value")
    inertia = inertial.child("inertia")
    if inertia is None:
        if mass:
            complaints.add(
                f"link '{name}' has a mass but no <inertia>: a point mass is used", inertial
            )
        return mass, com, np.zeros((3, 3))
    six = []
    for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"):
        if not inertia.attributes.get(k, "0").strip():
            complaints.add(f"link '{name}' has {k}=\"\": 0 is used", inertia)
            six.append(0.0)
        else:
            six.append(inertia.number(k, "0"))
    return mass, com, R @ inertia_matrix("", six) @ R.T


def _independent(name: str, joint: Element, touched: set[str], complaints) -> bool | None:
    """What `independent=` asks for; it means something only where a loop involves the joint."""
    text = joint.text("independent").lower()
    if text not in ("true", "false", "1", "0"):
        raise joint.error(f"joint '{name}': independent=\"{text}\" is neither true nor false")
    wanted = text in ("true", "1")
    if name in touched:
        return wanted
    if not wanted:
        complaints.add(
            'independent="false" is ignored: no loop or coupling determines the joint', joint
        )
    return None


def _add_joint(
    b: ModelBuilder, name: str, joint: Element, kind: str | None, independent: bool | None,
    armature: float,
) -> None:  # fmt: skip
    given = joint.text("type")
    if given not in KINDS:
        raise joint.error(f"joint '{name}': {unknown('joint type', given, KINDS)}")
    parent, child = (joint.required(end).text("link") for end in ("parent", "child"))
    xyz, R = origin(joint)
    axis = joint.child("axis")
    passive = {} if (kind or given) == "fixed" else _passive(joint)
    try:
        if kind in UNIVERSAL:
            _add_universal(b, name, kind, parent, child, xyz, R, passive)
            return
        if armature:
            passive["armature"] = passive.get("armature", 0.0) + armature
        b.add_joint(
            name,
            kind or KINDS[given],
            parent,
            child,
            xyz=xyz,
            R=R,
            axis=(1.0, 0.0, 0.0) if axis is None else axis.numbers("xyz", 3, "1 0 0"),
            independent=independent,
            **({} if kind else _limits(joint, given)),
            **passive,
        )
    except ModelError as error:
        raise joint.error(f"joint '{name}': {error}") from None


def _passive(joint: Element) -> dict[str, float]:
    """Damping, friction and armature of a joint; only URDF+ has the last one there."""
    dynamics = joint.child("dynamics")
    names = () if dynamics is None else ("damping", "friction", "armature")
    return {n: dynamics.number(n) for n in names if n in dynamics.attributes}


def _add_universal(
    b: ModelBuilder, name: str, axes: str, parent, child, xyz, R, passive
) -> None:  # fmt: skip
    """Two revolute joints whose axes meet, named after their axes, as Gepetto's own loader does."""
    directions = dict(zip("XYZ", np.eye(3), strict=True))
    first, second = (f"{name}_{letter}" for letter in axes)
    between = carrier_name(child, first)
    b.add_body(between)
    options = [{"axis": directions[letter], **passive} for letter in axes]
    b.add_joint(first, "revolute", parent, between, xyz=xyz, R=R, **options[0])
    b.add_joint(second, "revolute", between, child, **options[1])


def _limits(joint: Element, kind: str) -> dict[str, float]:
    """The limits that are given; of lower and upper, one alone makes the other zero."""
    limit = joint.child("limit")
    if limit is None or kind == "fixed" or kind in MANY:
        return {}
    names = {"velocity": "velocity_limit", "effort": "effort_limit"}
    found = {arg: limit.number(name) for name, arg in names.items() if name in limit.attributes}
    if kind != "continuous" and {"lower", "upper"} & set(limit.attributes):
        found |= {name: limit.number(name, "0") for name in ("lower", "upper")}
    return {name: x for name, x in found.items() if abs(x) < NO_LIMIT}
