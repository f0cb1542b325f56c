"""SDF: a graph of links and joints; a joint whose child already has a parent closes a loop.

Gearboxes and mimic axes are couplings, screws are helical joints; <include> brings in the model of
another file. Links that no joint carries float freely, unless the model is static or
`base="fixed"`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, unknown
from ..mechanism.parts import inertia_matrix
from ..model.builder import ModelBuilder
from ._description import Description, add_body, name_massless_leaves
from ._files import Files
from ._geometry import add_offset_joint, pose_vector
from ._report import Complaints
from ._xml import Element, read_xml
from .colliders import sdf_colliders
from .sdf_audit import audit
from .sdf_frames import Frames, add_model_frames, pose_of
from .sdf_include import Includes, sdf_version
from .sdf_joints import JointSpec, add_couplings, read_joint
from .shapes import sdf_shapes

LOOPS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "spherical": "ball",
    "universal": "universal",
    "fixed": "fixed",
}


def describe_sdf(
    source: str | Path | Element, *, base: str | None = None, strict: bool = False,
    files: Files | None = None,
) -> Description:  # fmt: skip
    """Read an SDF file or text: one model, or all models of a world, with what they include."""
    if base not in (None, "fixed", "free"):
        raise InputError(f"base is 'fixed' or 'free', not {base!r}")
    files = files or Files()
    root = source if isinstance(source, Element) else read_xml(source, files)
    if root.tag != "sdf":
        raise root.error("an SDF starts with <sdf>")
    complaints = Complaints(strict)
    version = sdf_version(root)
    root = Includes(files, complaints).expand(root, version)
    found = _Reader(root, version, base, complaints).read()
    found.shapes = sdf_shapes(root, files, complaints)
    sdf_colliders(found.builder, root, files)
    return found


class _Reader:
    """One description: its frames, links and joints by scoped name."""

    def __init__(self, root: Element, version, base: str | None, complaints: Complaints):
        self.root, self.base, self.complaints = root, base, complaints
        self.version = version
        self.frames = Frames()
        self.links: dict[str, Element] = {}
        self.static: set[str] = set()
        self.masses: dict[str, float] = {}
        self.moments: dict[str, float] = {}
        self.joints: dict[str, JointSpec] = {}
        self.loops: list[str] = []
        self.balls: list[tuple[Element, str]] = []  # Drake's constraints with their scope
        self.carried: dict[str, str] = {}  # link -> the tree joint that carries it
        self.carriers: set[str] = set()  # parents of those joints

    def read(self) -> Description:
        worlds = self.root.all("world")
        if len(worlds) > 1:
            raise worlds[1].error("there are several worlds: keep one")
        around = worlds[0] if worlds else self.root
        models = [*self.root.all("model"), *(around.all("model") if worlds else [])]
        if not models:
            raise self.root.error("; ".join(["there is no <model>", *self.complaints.messages]))
        audit(self.root, self.complaints)
        many = len(models) > 1
        for model in models:
            scope = f"{model.text('name')}::" if many else ""
            add_model_frames(self.frames, model, "", scope)
            self._collect(model, scope, False)
        name = models[0].text("name") if not many else around.text("name", "world")
        gravity = around.child("gravity") if worlds else None
        g = (0.0, 0.0, -9.81) if gravity is None else gravity.values(3, "0 0 -9.8")
        b = ModelBuilder(name, gravity=g)
        reference = self._add_all(b)
        return Description(b, self.complaints, self.root.source, reference)

    def _collect(self, model: Element, scope: str, static: bool) -> None:
        flag = model.child("static")
        static = static or (flag is not None and flag.truth(flag.content))
        for link in model.all("link"):
            self.links[scope + link.text("name")] = link
            if static:
                self.static.add(scope + link.text("name"))
        for joint in model.all("joint"):
            spec = read_joint(joint, scope, self.frames, self.version, self.complaints)
            self.joints[spec.name] = spec
        self.balls += [(element, scope) for element in model.all("drake:ball_constraint")]
        for child in model.all("model"):
            self._collect(child, f"{scope}{child.text('name')}::", static)

    def _add_all(self, b: ModelBuilder) -> dict[Any, Any]:
        self._choose_tree()
        welded = set(self.static)
        for spec in (self.joints[n] for n in self.carried.values()):
            welded |= {spec.parent, spec.child} if spec.kind == "fixed" else set()
        for name, link in self.links.items():
            self._add_link(b, name, link, name in welded)
        reference = self._add_roots(b)
        specs = [self.joints[n] for n in self.carried.values()]
        edges = [(s.parent, s.child, s.kind != "fixed") for s in specs]
        closed = {end for n in self.loops for end in (self.joints[n].parent, self.joints[n].child)}
        masses = dict.fromkeys(self.links, 1.0) | self.masses
        moments = dict.fromkeys(self.links, 1.0) | self.moments
        name_massless_leaves(masses, moments, edges, closed, self.links, self.complaints)
        for name in self.carried.values():
            self._add_tree_joint(b, self.joints[name])
        for name in self.loops:
            self._add_loop(b, self.joints[name])
        for element, scope in self.balls:
            self._add_ball(b, element, scope)
        add_couplings(b, self)
        for name, node in self.frames.nodes.items():
            if node.at.tag == "frame" and name not in self.links:
                body = self.frames.link(name)
                X = self.frames.world(name) @ self.frames.world(body).inverse()
                b.add_frame(name, body, X.r, R=X.E.T)
        return reference

    def _add_link(self, b: ModelBuilder, name: str, link: Element, welded: bool) -> None:
        inertial = link.child("inertial")
        if inertial is None:
            self.complaints.add(
                f"link '{name}' has no <inertial>: SDF's default of 1 kg and 1 kg m² is used", link
            )
            add_body(b, name, 1.0, np.zeros(3), np.eye(3), link, self.complaints)
            return
        X = pose_of(inertial.child("pose"))
        mass = inertial.child("mass")
        inertia = inertial.child("inertia")
        six = []
        for k, default in zip(
            ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), ("1", "0", "0", "1", "0", "1"), strict=True
        ):
            entry = None if inertia is None else inertia.child(k)
            six.append(float(default) if entry is None else entry.value(default))
        I = X.E.T @ inertia_matrix(name, six) @ X.E
        value = 1.0 if mass is None else mass.value("1")
        self.masses[name], self.moments[name] = value, float(np.abs(I).max())
        add_body(b, name, value, X.r, I, inertial, self.complaints, welded)

    def _add_ball(self, b: ModelBuilder, element: Element, scope: str) -> None:
        links, points = [], []
        for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
            part = element.required(f"drake:ball_constraint_{body}")
            links.append(self.frames.link(self.frames.known(scope, part.content.strip(), part)))
            points.append(element.required(f"drake:ball_constraint_{point}").values(3))
        name = f"{scope}ball_constraint_{element.line}"
        b.add_loop(name, "ball", *links, predecessor_xyz=points[0], successor_xyz=points[1])

    def _choose_tree(self) -> None:
        """Joints in the order of the file: a tree joint unless its child has a parent already."""
        for spec in self.joints.values():
            if spec.kind == "gearbox":
                continue
            ends = (spec.parent, spec.child)
            for end in ends:
                if end not in self.links and end != "world":
                    raise spec.at.error(f"joint '{spec.name}': {unknown('link', end, self.links)}")
            if spec.parent == spec.child:
                raise spec.at.error(f"joint '{spec.name}' joins link '{spec.child}' to itself")
            if {spec.parent, spec.child} <= self.static | {"world"}:
                continue
            taken = spec.child == "world" or spec.child in self.carried
            if taken or spec.child in self.static or self._above(spec.child, spec.parent):
                self.loops.append(spec.name)
            else:
                self.carried[spec.child] = spec.name
                self.carriers.add(spec.parent)

    def _above(self, link: str, other: str) -> bool:
        """Whether `link` carries `other` already."""
        if link not in self.carriers:
            return False
        while other in self.carried and other != link:
            other = self.joints[self.carried[other]].parent
        return other == link

    def _add_roots(self, b: ModelBuilder) -> dict[Any, Any]:
        reference, first = {}, True
        for name in self.links:
            if name in self.carried:
                continue
            X = self.frames.world(name)
            joint = "root_joint" if first else f"{name}_free"
            if name in self.static or (first and self.base == "fixed"):
                joint = "root_joint" if first else f"{name}_static"
                b.add_joint(joint, "fixed", "world", name, xyz=X.r, R=X.E.T)
            else:
                b.add_joint(joint, "free", "world", name)
                reference[joint] = pose_vector(X)
            first = False
        return reference

    def _add_tree_joint(self, b: ModelBuilder, spec: JointSpec) -> None:
        child, parent = self.frames.world(spec.child), self.frames.world(spec.parent)
        joint = self.frames.world(spec.name)
        to_child = child @ joint.inverse()  # from the joint frame into the child
        anchor = (joint @ child.inverse()).r
        options = {**spec.limits, **spec.passive, "armature": spec.armature}
        for key in ("axis", "axis2"):
            if getattr(spec, key) is not None:
                options[key] = to_child.E @ getattr(spec, key)
        if spec.kind == "helical":
            options["pitch"] = spec.pitch
        with spec.at_fault():
            add_offset_joint(
                b, spec.name, spec.kind, spec.parent, spec.child, child @ parent.inverse(), anchor,
                **options,
            )  # fmt: skip

    def _add_loop(self, b: ModelBuilder, spec: JointSpec) -> None:
        if spec.kind not in LOOPS:
            raise spec.at.error(
                f"joint '{spec.name}' closes a loop as a {spec.given} joint, which is not "
                f"supported: known are {', '.join(LOOPS)}; let another joint close the loop by "
                "listing this one first"
            )
        if spec.limits:
            self.complaints.add(
                f"joint '{spec.name}' closes a loop: its limits are ignored", spec.at
            )
        if any(spec.passive.get(n) for n in ("damping", "friction", "stiffness")):
            self.complaints.add(
                f"joint '{spec.name}' closes a loop: its <dynamics> is ignored", spec.at
            )
        joint = self.frames.world(spec.name)
        X_P = joint @ self.frames.world(spec.parent).inverse()
        X_S = joint @ self.frames.world(spec.child).inverse()
        options = {}
        if spec.axis is not None:
            options["axis"] = spec.axis
        if spec.kind == "universal":
            options["axis2"] = spec.axis2
        with spec.at_fault():
            b.add_loop(
                spec.name, LOOPS[spec.kind], spec.parent, spec.child,
                predecessor_xyz=X_P.r, predecessor_R=X_P.E.T,
                successor_xyz=X_S.r, successor_R=X_S.E.T, **options,
            )  # fmt: skip
