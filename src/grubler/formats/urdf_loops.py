"""Loops in URDF: <mimic>, URDF+'s <loop> and <coupling>, <loop_joint>, <constraint>, and Drake's
<drake:ball_constraint>.

A coupling of URDF+ relates chains: the sum of the joints from the nearest common ancestor to the
successor is the ratio times the sum of those to the predecessor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import rpy_matrix
from ..errors import ModelError, unknown
from ..model.builder import ModelBuilder
from ._geometry import origin, turn
from ._xml import Element

if TYPE_CHECKING:
    from ._report import Complaints
    from .urdf import Tree

CLOSURE_TAGS = ("loop", "coupling", "loop_joint", "constraint", "drake:ball_constraint")
LOOP_TYPES = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "planar": "planar",
    "fixed": "fixed",
    "spherical": "ball",
    "ball": "ball",
    "universal": "universal",
    "cylindrical": "cylindrical",
    "distance": "distance",
}


@dataclass
class Closure:
    """A loop or coupling as read: which joints it involves, and how to add it to a builder."""

    name: str
    joints: set[str]
    add: Callable[[ModelBuilder], None]
    at: Element | None = None

    def add_to(self, b: ModelBuilder) -> None:
        try:
            self.add(b)
        except ModelError as error:
            raise (self.at.error(str(error)) if self.at is not None else error) from None


def read_closures(tree: Tree, complaints: Complaints) -> list[Closure]:
    """Every loop and coupling of a URDF, in the order of the file; mimic joints come first."""
    found = [
        closure
        for name, joint in tree.joints.items()
        if (closure := _mimic(tree, name, joint, complaints)) is not None
    ]
    readers = {
        "loop": _loop,
        "coupling": _coupling,
        "loop_joint": _loop_joint,
        "constraint": _constraint,
        "drake:ball_constraint": _ball_constraint,
    }
    for element in tree.robot.children:
        if element.tag in readers:
            found.append(readers[element.tag](tree, element, complaints))
    return found


def _mimic(tree, name: str, joint: Element, complaints) -> Closure | None:
    mimic = joint.child("mimic")
    if mimic is None:
        return None
    leader = mimic.text("joint")
    if leader not in tree.joints:
        raise mimic.error(f"joint '{name}': {unknown('joint', leader, tree.joints)}")
    if joint.text("type") == "fixed":
        complaints.add("<mimic> in a fixed <joint> is ignored", mimic)
        return None
    ratio, offset = mimic.number("multiplier", "1"), mimic.number("offset", "0")
    title = f"{name}_mimic"
    return Closure(
        title,
        {name, leader},
        lambda b: b.add_coupling(title, name, ratios={leader: ratio}, offset=offset),
        mimic,
    )


def _loop(tree, element: Element, _) -> Closure:
    name, kind = element.text("name"), _kind(element, None)
    ends = [element.required(end) for end in ("predecessor", "successor")]
    links = [_link(tree, name, end) for end in ends]
    (p, P), (s, S) = (origin(end) for end in ends)
    axis2 = element.child("axis2")
    distance = element.child("distance")
    options = {
        "axis": _axis(element),
        "axis2": None if axis2 is None else axis2.numbers("xyz", 3),
        "distance": None if distance is None else distance.number("value"),
    }
    return loop_closure(tree, name, kind, links, (p, P), (s, S), element, **options)


def loop_closure(
    tree: Tree,
    name: str,
    kind: str,
    links: Any,
    on_P: Any,
    on_S: Any,
    at: Element | None,
    **options: Any,
) -> Closure:
    """A loop joint between two links of the tree, its frames given as (position, rotation)."""
    joints = {n for branch in tree.branches(*links) for n in branch}

    def add(b: ModelBuilder) -> None:
        b.add_loop(
            name, kind, *links, predecessor_xyz=on_P[0], predecessor_R=on_P[1],
            successor_xyz=on_S[0], successor_R=on_S[1], **options,
        )  # fmt: skip

    return Closure(name, joints, add, at)


def _coupling(tree, element: Element, _) -> Closure:
    name = element.text("name")
    if element.text("type", "rolling") != "rolling":
        raise element.error(
            f"coupling '{name}': {unknown('coupling type', element.text('type'), ['rolling'])}"
        )
    links = [_link(tree, name, element.required(end)) for end in ("predecessor", "successor")]
    ratio = element.required("ratio").number("value")
    leaders, followers = tree.branches(*links)
    if not followers:
        raise element.error(
            f"coupling '{name}': no moving joint leads from the common ancestor of '{links[0]}' "
            f"and '{links[1]}' to the successor '{links[1]}'"
        )
    output = followers[-1]
    ratios = dict.fromkeys(leaders, ratio) | dict.fromkeys(followers[:-1], -1.0)
    return Closure(
        name,
        {*leaders, *followers},
        lambda b: b.add_coupling(name, output, ratios=ratios),
        element,
    )


def _loop_joint(tree, element: Element, _) -> Closure:
    """Drake's old element, and Isaac's: two frames whose axes coincide; revolute by default."""
    name, kind = element.text("name"), _kind(element, "revolute")
    ends = [element.required(end) for end in ("link1", "link2")]
    links = [_link(tree, name, end) for end in ends]
    frames = [
        (end.numbers("xyz", 3, "0 0 0"), rpy_matrix(*end.numbers("rpy", 3, "0 0 0")))
        for end in ends
    ]
    return loop_closure(tree, name, kind, links, *frames, element, axis=_axis(element))


def _constraint(tree, element: Element, _) -> Closure:
    """The element proposed for URDF: an origin and an axis on each of two links."""
    name, kind = element.text("name"), _kind(element, None)
    links = [_link(tree, name, element.required(end)) for end in ("parent", "child")]
    frames, axes = [], []
    for end in ("parent", "child"):
        axis = element.child(f"{end}_axis")
        axes.append(np.array([1.0, 0, 0]) if axis is None else axis.numbers("xyz", 3, "1 0 0"))
        frames.append(origin(element, f"{end}_origin"))
    if kind == "universal":
        options = {"axis": axes[0], "axis2": axes[1]}
    else:  # the axis of both frames is the parent's: turn the child's frame so that it is its own
        (p, R), options = frames[1], {"axis": axes[0]}
        frames[1] = (p, R @ turn(axes[0], axes[1]))
    return loop_closure(tree, name, kind, links, *frames, element, **options)


def _ball_constraint(tree, element: Element, _) -> Closure:
    name = element.text("name", f"ball_constraint_{element.line}")
    parts = {}
    for part in ("body_A", "body_B", "p_AP", "p_BQ"):
        parts[part] = element.required(f"drake:ball_constraint_{part}")
    links = [_known(tree, name, parts[x].text("name"), parts[x]) for x in ("body_A", "body_B")]
    frames = [(parts[x].numbers("value", 3), np.eye(3)) for x in ("p_AP", "p_BQ")]
    return loop_closure(tree, name, "ball", links, *frames, element)


def _kind(element: Element, default: str | None) -> str:
    kind = element.text("type", default)
    if kind not in LOOP_TYPES:
        name = element.text("name", "")
        raise element.error(f"loop '{name}': {unknown('loop type', kind, LOOP_TYPES)}")
    return LOOP_TYPES[kind]


def _axis(element: Element) -> np.ndarray:
    axis = element.child("axis")
    return np.array([1.0, 0.0, 0.0]) if axis is None else axis.numbers("xyz", 3, "1 0 0")


def _link(tree, name: str, end: Element) -> str:
    return _known(tree, name, end.text("link"), end)


def _known(tree, name: str, link: str, at: Element) -> str:
    if link not in tree.links and link != "world":
        raise at.error(f"loop '{name}': {unknown('link', link, tree.links)}")
    return link
