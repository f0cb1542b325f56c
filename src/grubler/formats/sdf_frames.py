"""SDF's frames: poses relative to named frames, nested models, and what each frame is attached to.

Names are scoped: `arm::hand` is `hand` in the model `arm`. Everything is resolved in the world, at
the configuration in which the file describes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..algebra.spatial import Transform, quaternion_matrix, rpy_matrix
from ..errors import ModelError, unknown
from ._geometry import placed
from ._xml import Element

MODEL = "__model__"


def pose_of(element: Element | None) -> Transform:
    """The value of a <pose>: x y z roll pitch yaw, or with a quaternion."""
    if element is None:
        return Transform.identity()
    form = element.text("rotation_format", "euler_rpy")
    if form not in ("euler_rpy", "quat_xyzw"):
        raise element.error(unknown("rotation_format", form, ("euler_rpy", "quat_xyzw")))
    if form == "quat_xyzw":
        x = element.values(7, "0 0 0 0 0 0 1")
        length = np.linalg.norm(x[3:])
        if length < 1e-6:
            raise element.error("the quaternion is zero")
        return placed(x[:3], quaternion_matrix(np.array([x[6], *x[3:6]]) / length))
    x = element.values(6, "0 0 0 0 0 0")
    degrees = element.truth(element.text("degrees", "false"))
    angles = np.deg2rad(x[3:]) if degrees else x[3:]
    return placed(x[:3], rpy_matrix(*angles))


@dataclass
class Node:
    """A frame: its pose in another frame, and the frame it is attached to (None for a link)."""

    at: Element
    pose: Transform
    relative_to: str
    attached_to: str | None


@dataclass
class Frames:
    """All frames of a description by scoped name; "world" is the root."""

    nodes: dict[str, Node] = field(default_factory=dict)
    _world: dict[str, Transform] = field(default_factory=dict)

    def add(self, name: str, node: Node) -> None:
        if name in self.nodes or name == "world":
            raise node.at.error(f"there is already a frame, link or joint named '{name}'")
        self.nodes[name] = node

    def known(self, scope: str, name: str, at: Element) -> str:
        """The full name of `name` as written in a scope."""
        if name == "world":
            return name
        full = scope + name
        if full not in self.nodes:
            local = [n[len(scope) :] for n in self.nodes if n.startswith(scope)]
            raise at.error(unknown("frame", name, local))
        return full

    def world(self, name: str) -> Transform:
        """The transform from the world into a frame."""
        chain: dict[str, None] = {}
        while name != "world" and name not in self._world:
            if name in chain:
                raise self.nodes[name].at.error(
                    f"poses form a cycle: {' -> '.join([*chain, name][:8])}"
                )
            chain[name] = None
            name = self._node(name, name).relative_to
        X = Transform.identity() if name == "world" else self._world[name]
        for name in reversed(chain):
            X = self.nodes[name].pose @ X
            self._world[name] = X
        return X

    def link(self, name: str) -> str:
        """The link (or "world") that a frame is attached to."""
        seen: dict[str, None] = {}
        while name != "world":
            node = self._node(name, name)
            if node.attached_to is None:
                return name
            if name in seen:
                raise node.at.error(f"attached_to forms a cycle: {' -> '.join([*seen, name][:8])}")
            seen[name] = None
            name = node.attached_to
        return name

    def _node(self, name: str, user: str) -> Node:
        if name not in self.nodes:
            at = self.nodes[user].at if user in self.nodes else None
            message = unknown("frame", name, self.nodes)
            raise at.error(message) if at is not None else ModelError(message)
        return self.nodes[name]


def add_model_frames(frames: Frames, model: Element, outer: str, scope: str) -> None:
    """The frames of a model named with `scope` before them; `outer` is the scope around it."""
    pose = model.child("pose")
    parent = outer + MODEL if outer else "world"
    if pose is not None and pose.text("relative_to", ""):
        parent = outer + pose.text("relative_to")
    links = model.all("link")
    nested = [m.text("name") for m in model.all("model")]
    canonical = model.text("canonical_link", "") or (
        links[0].text("name") if links else f"{nested[0]}::{MODEL}" if nested else ""
    )
    if not canonical:
        raise model.error(f"model '{model.text('name')}' has no <link>")
    placement = pose_of(pose)
    frame = model.text("placement_frame", "")
    frames.add(scope + MODEL, Node(model, placement, parent, scope + canonical))
    for element in (*links, *model.all("frame"), *model.all("joint")):
        _add(frames, element, scope)
    for child in model.all("model"):
        add_model_frames(frames, child, scope, f"{scope}{child.text('name')}::")
    if frame:
        _place_by(frames, model, scope, frame, placement)


def _add(frames: Frames, element: Element, scope: str) -> None:
    name, pose = element.text("name"), element.child("pose")
    default, attached = scope + MODEL, None
    if element.tag == "frame":
        attached = scope + (element.text("attached_to", "") or MODEL)
        default = attached
    elif element.tag == "joint":
        child = element.required("child").content.strip()
        default = attached = "world" if child == "world" else scope + child
    given = pose.text("relative_to", "") if pose is not None else ""
    relative = ("world" if given == "world" else scope + given) if given else default
    if attached == scope + "world":
        attached = "world"
    frames.add(scope + name, Node(element, pose_of(pose), relative, attached))


def _place_by(frames: Frames, model: Element, scope: str, frame: str, placement) -> None:
    """The model's pose is that of its placement frame."""
    name, X = frames.known(scope, frame, model), Transform.identity()
    seen = set()
    while name != scope + MODEL:
        node = frames.nodes[name]
        if name in seen or node.relative_to not in frames.nodes:
            raise model.error(f"placement_frame '{frame}' does not lie in the model")
        seen.add(name)
        X, name = X @ node.pose, node.relative_to
    frames.nodes[scope + MODEL].pose = X.inverse() @ placement
