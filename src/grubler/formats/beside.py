"""Files beside a URDF that close its loops: HyRoDyn's submechanisms and Gepetto's YAML.

HyRoDyn cuts a loop at the frame of a joint: the frame of the cut joint's child, at the zero
configuration, on both bodies. Gepetto names two frames that coincide in position (3d) or in
position and orientation (6d), and joints that are of another kind than the URDF can say.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError, unknown
from ._description import Description
from ._files import Files, is_file, is_folder
from ._report import Complaints
from ._rows import add_rows
from ._xml import parse_numbers, read_xml
from ._yaml import read_yaml
from .urdf import UNIVERSAL, Tree, describe, read_tree
from .urdf_loops import Closure, loop_closure
from .urdf_transmissions import LINEAR, linear_couplings

SERIAL = re.compile(r"(\d*[RPUSCH])*")  # HyRoDyn's types without a loop: R, 3R, RRP, none given
PART = {  # keys of a submechanism that are read, or say nothing about the mechanism
    "name", "contextual_name", "type", "file_path", "jointnames", "jointnames_spanningtree",
    "jointnames_independent", "jointnames_active", "loop_constraints",
}  # fmt: skip
CUT = {"cut_joint", "predecessor_body", "successor_body", "constraint_axes", "name"}
AXIS = {"axis", "name", "baumgarte_stabilization_parameter"}
GEPETTO_KINDS = {
    "SPHERICAL": "spherical", "FIXED": "fixed", "FREEFLYER": "free",
    **{f"UJOINT_{axes}": axes for axes in UNIVERSAL},
}  # fmt: skip


def urdf_beside(path: Path, files: Files) -> Path:
    """The URDF that a YAML file belongs to: of the same name, named in it, or the only one."""
    same = path.with_suffix(".urdf")
    if is_file(same):
        return same
    parts = read_yaml(path, files).get("submechanisms")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict):
        named = path.parent / str(parts[0].get("file_path", ""))
        if files.has(named):
            return named
    found = sorted(path.parent.glob("*.urdf"))
    if len(found) != 1:
        raise ModelError(
            f"{path.name}: which URDF it belongs to is not clear (there are {len(found)} beside "
            f"it): use load(urdf, submechanisms='{path.name}')"
        )
    return found[0]


def describe_beside(
    urdf: str | Path,
    path: Path,
    *,
    base: str | None = None,
    strict: bool = False,
    files: Files | None = None,
) -> Description:
    """A URDF with the loops that a YAML file adds to it."""
    complaints, files = Complaints(strict), files or Files()
    data = read_yaml(path, files)
    tree = read_tree(read_xml(urdf, files), complaints)
    beside = Beside(path, data, tree, complaints, files)
    if "submechanisms" in data:
        beside.hyrodyn()
    elif "closed_loop" in data:
        beside.gepetto()
    else:
        raise ModelError(f"{path.name}: neither 'submechanisms' (HyRoDyn) nor 'closed_loop'")
    options = {"kinds": beside.kinds, "flags": beside.flags}
    description = describe(tree, base, complaints, closures=beside.closures, **options)
    for name in beside.motors:
        description.builder.add_actuator(name, name)
    return description


class Beside:
    """What a YAML file says about a tree."""

    path: Path
    data: dict[Any, Any]
    tree: Tree
    complaints: Complaints

    def __init__(
        self, path: Path, data: dict[Any, Any], tree: Tree, complaints: Complaints, files: Files
    ):
        self.path, self.data, self.tree, self.complaints = path, data, tree, complaints
        self.files = files
        self.closures: list[Closure] = []
        self.kinds: dict[str, str] = {}
        self.flags: dict[str, bool] = {}
        self.motors: list[str] = []

    def error(self, message: str) -> ModelError:
        return ModelError(f"{self.path.name}: {message}")

    def complain(self, message: str) -> None:
        self.complaints.add(message, (self.path.name, 0))

    def _name_ignored(self, found: dict[Any, Any], known: set[str], title: str) -> None:
        for key in found:
            if key not in known:
                self.complain(f"{title}: '{str(key)[:60]}' is ignored")

    def _names(self, value, what: str, known) -> list[str]:
        """A list of names that exist."""
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
            raise self.error(f"{what} is not a list of names")
        for name in value:
            if name not in known:
                raise self.error(f"{what}: {unknown('joint', name, known)}")
        return list(dict.fromkeys(value))

    def _actuate(self, names: list[str]) -> None:
        for name in names:
            if name not in self.motors:
                self.motors.append(name)

    # Gepetto

    def gepetto(self) -> None:
        data, joints = self.data, self.tree.joints
        for key in data:
            if key not in ("closed_loop", "type", "name_mot", "joint_name", "joint_type"):
                self.complain(f"'{key}' is ignored")
        pairs = data["closed_loop"]
        if not isinstance(pairs, list):
            raise self.error("'closed_loop' is not a list of pairs of frames")
        types = data.get("type") or ["6d"] * len(pairs)
        if not isinstance(types, list) or len(types) != len(pairs):
            raise self.error(f"'type' has not one entry for each of {len(pairs)} closed loops")
        for i, (pair, kind) in enumerate(zip(pairs, types, strict=True)):
            self._gepetto_loop(i, pair, str(kind).lower())
        names = self._names(data.get("joint_name"), "joint_name", joints)
        kinds = data.get("joint_type") or []
        if not isinstance(kinds, list) or len(kinds) != len(names):
            raise self.error("'joint_type' has not one entry for each of 'joint_name'")
        for name, kind in zip(names, kinds, strict=True):
            if not isinstance(kind, str) or kind not in GEPETTO_KINDS:
                known = unknown("joint_type", str(kind)[:60], GEPETTO_KINDS)
                raise self.error(f"joint '{name}': {known}")
            self.kinds[name] = GEPETTO_KINDS[kind]
        split = [n for n in names if self.kinds[n] in UNIVERSAL]  # each made of two joints
        known = [n for n in joints if n not in split]
        known += [f"{n}_{axis}" for n in split for axis in self.kinds[n]]
        self._actuate(self._names(data.get("name_mot"), "name_mot", known))

    def _gepetto_loop(self, i: int, pair, kind: str) -> None:
        strings = isinstance(pair, list) and all(isinstance(x, str) for x in pair)
        if not strings or len(pair) != 2:
            raise self.error(f"closed loop {i + 1} is not a pair of frames: {pair!r}"[:200])
        if kind not in ("3d", "6d"):
            raise self.error(f"closed loop {i + 1}: type '{kind}' is neither 3d nor 6d")
        links = []
        for name in pair:
            if name in self.tree.joints:
                links.append(self.tree.ends(name)[1])
            elif name in self.tree.links:
                links.append(name)
            else:
                raise self.error(
                    f"closed loop {i + 1}: "
                    + unknown("frame", name, [*self.tree.joints, *self.tree.links])
                )
        here = (np.zeros(3), np.eye(3))
        title = f"{pair[0]}={pair[1]}"
        loop = "fixed" if kind == "6d" else "ball"
        self.closures.append(loop_closure(self.tree, title, loop, links, here, here, None))

    # HyRoDyn

    def hyrodyn(self) -> None:
        parts = self.data["submechanisms"]
        if not isinstance(parts, list) or not all(isinstance(p, dict) for p in parts):
            raise self.error("'submechanisms' is not a list of mappings")
        for key in self.data:
            if key != "submechanisms":
                self.complain(f"'{key}' is ignored")
        for i, part in enumerate(parts):
            self._submechanism(part, str(part.get("contextual_name", f"submechanism {i + 1}")))

    def _submechanism(self, part: dict[Any, Any], title: str) -> None:
        self._name_ignored(part, PART, title)
        joints = self.tree.joints
        spanning = self._names(part.get("jointnames_spanningtree"), title, joints)
        self._names(part.get("jointnames"), title, joints)
        independent = self._names(part.get("jointnames_independent"), title, joints)
        self._actuate(self._names(part.get("jointnames_active"), title, joints))
        loops = part.get("loop_constraints") or []
        if not isinstance(loops, list) or not all(isinstance(x, dict) for x in loops):
            raise self.error(f"{title}: 'loop_constraints' is not a list of mappings")
        rows = 0
        for loop in loops:
            rows += self._cut(loop, title)
        kind = str(part.get("type") or "")[:40]
        if kind == "TRANSMISSION":
            self._transmission(part, title)
        elif loops:
            self.flags |= dict.fromkeys(independent, True)
            if rows + len(independent) < len(spanning):
                self.complain(
                    f"{title}: {len(spanning)} joints less {rows} rows leave more freedoms than "
                    f"the {len(independent)} that are called independent: the rest is chosen"
                )
        elif len(independent) != len(spanning) or not SERIAL.fullmatch(kind):
            self.complain(
                f"{title}: no loop_constraints for a mechanism of type {kind or 'unknown'}: its "
                f"loops stay open, and its {len(spanning)} joints independent"
            )

    def _cut(self, loop: dict[Any, Any], title: str) -> int:
        """One loop; returns its number of rows."""
        self._name_ignored(loop, CUT, title)
        cut = self._names([loop.get("cut_joint")], title, self.tree.joints)[0]
        links = []
        for key in ("predecessor_body", "successor_body"):
            link = loop.get(key)
            if not isinstance(link, str) or link not in self.tree.links:
                known = unknown("link", str(link)[:60], self.tree.links)
                raise self.error(f"{title}, {key}: {known}")
            links.append(link)
        axes = self._axes(loop.get("constraint_axes"), title)
        frame = self.tree.pose(self.tree.ends(cut)[1])
        frames = []
        for link in links:
            X = frame @ self.tree.pose(link).inverse()
            frames.append((X.r, X.E.T))
        name = f"{title}:{cut}"
        joints = {n for branch in self.tree.branches(*links) for n in branch}
        self.closures.append(
            Closure(name, joints, lambda b: add_rows(b, name, axes, links, *frames), None)
        )
        return len(axes)

    def _axes(self, axes, title: str) -> list[np.ndarray]:
        if not isinstance(axes, list) or not axes:
            raise self.error(f"{title}: a loop constraint has no 'constraint_axes'")
        found = []
        for axis in axes:
            six = axis.get("axis") if isinstance(axis, dict) else None
            self._name_ignored(axis if isinstance(axis, dict) else {}, AXIS, title)
            value = parse_numbers(" ".join(map(str, six))) if isinstance(six, list) else np.zeros(0)
            if value.shape != (6,) or not np.all(np.isfinite(value)):
                raise self.error(f"{title}: a constraint axis is not six finite numbers")
            found.append(value)
        return found

    def _transmission(self, part: dict[Any, Any], title: str) -> None:
        """The couplings of a TRANSMISSION stand in the URDF of the submechanism."""
        name = Path(str(part.get("file_path", ""))).name
        beside = [p / name for p in sorted(self.path.parent.parent.glob("*")) if is_folder(p)]
        places = [self.path.parent / name, *beside]
        found = next((p for p in places if name and self.files.has(p)), None)
        if found is None:
            self.complain(
                f"{title}: the file '{name}' of its transmission is not there: its joints stay "
                "independent"
            )
            return
        for element in read_xml(found, self.files).all("transmission"):
            kind = element.child("type")
            if kind is not None and kind.content.strip() == LINEAR:
                self.closures += linear_couplings(self.tree, element)
