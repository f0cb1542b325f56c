"""SDF's <include>: another file's model in place of the element, under its own name and pose.

A URI is a path beside the file, `model://name/...` or `package://name/...`; a folder stands for
the file that its model.config names, or for its model.sdf. Models are looked for in the folder of
the file and the one around it, in `package_dirs`, and where Gazebo looks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._files import Files, environment_folders, is_folder
from ._xml import MAX_ELEMENTS, Element, read_xml

if TYPE_CHECKING:
    from ._report import Complaints

PATHS = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "GAZEBO_MODEL_PATH", "SDF_PATH")
OVERRIDES = ("pose", "static")  # children of <include> that replace the model's own
READ = {"uri", "name", "placement_frame", *OVERRIDES}
MOST = 1000  # files that one description may include, all told
DEEPEST = 40  # files within files
NESTED = 200  # models within models, those of included files counted


class Includes:
    """Expands the includes of one description."""

    count: int
    elements: int
    files: Files
    complaints: Complaints

    def __init__(self, files: Files, complaints: Complaints):
        self.files, self.complaints = files, complaints
        self.places: list[Path] = [*files.package_dirs, *environment_folders(PATHS)]
        self.count = 0  # of included files
        self.elements = 0  # of all that is included

    def expand(self, root: Element, version: tuple[int, int]) -> Element:
        """The description with a <model> in the place of every <include> that is found."""
        return self._expanded(root, self.files.folder, version, (), 0)

    def _expanded(
        self, element: Element, folder, version, open_files: tuple[Any, ...], depth: int
    ) -> Element:
        if depth > NESTED:
            raise element.error(f"models are nested deeper than {NESTED}: flatten them")
        children = []
        for child in element.children:
            if child.tag == "include" and element.tag in ("sdf", "world", "model"):
                children += self._included(child, folder, version, open_files, depth)
            elif child.tag in ("world", "model"):
                children.append(self._expanded(child, folder, version, open_files, depth + 1))
            else:
                children.append(child)
        return replace(element, children=children)

    def _included(
        self, include: Element, folder, version, open_files: tuple[Any, ...], depth: int
    ) -> list[Element]:
        uri = include.required("uri").content.strip()
        if include.truth(include.text("merge", "false")):
            raise include.error(
                f"<include merge=\"true\"> of '{uri}' is not supported: include it as a model of "
                "its own and join the two by a fixed joint"
            )
        for child in include.children:
            if child.tag not in READ:
                self.complaints.add(f"<{child.tag}> in <include> is ignored", child)
        file = self._find(uri, folder)
        if file is None:
            self.complaints.add(f"<include> is ignored: '{uri}' is not there", include)
            return []
        self.count += 1
        if file in open_files:
            raise include.error(f"'{uri}' includes itself, by way of {file.name}")
        if len(open_files) >= DEEPEST:
            raise include.error(f"files are included deeper than {DEEPEST}: flatten them")
        if self.count > MOST:
            raise include.error(f"more than {MOST} files are included: flatten the description")
        root = read_xml(file, self.files)
        self.elements += sum(1 for _ in root.walk())
        if self.elements > MAX_ELEMENTS:
            raise include.error(f"more than {MAX_ELEMENTS} elements are included, all told")
        model = self._model(root, include, uri, version)
        return [self._expanded(model, file.parent, version, (*open_files, file), depth + 1)]

    def _model(self, root: Element, include: Element, uri: str, version) -> Element:
        """The model of an included file, under the name and at the pose that <include> gives."""
        if root.tag != "sdf":
            raise include.error(f"'{uri}' starts with <{root.tag[:60]}>: only SDF is included")
        models = root.all("model")
        if len(models) != 1:
            raise include.error(f"'{uri}' has {len(models)} models: one is included")
        own = sdf_version(root)
        if (own <= (1, 4)) != (version <= (1, 4)):
            raise include.error(
                f"'{uri}' is SDF {own[0]}.{own[1]}, included by {version[0]}.{version[1]}: axes "
                "are written in another frame since 1.5; convert the older file"
            )
        model = models[0]
        attributes, children = dict(model.attributes), list(model.children)
        name, frame = include.child("name"), include.child("placement_frame")
        if name is not None:
            attributes["name"] = name.content.strip()
        if frame is not None:
            attributes["placement_frame"] = frame.content.strip()
        for tag in OVERRIDES:
            given = include.child(tag)
            if given is not None:
                children = [given, *(c for c in children if c.tag != tag)]
        return replace(model, attributes=attributes, children=children)

    def _find(self, uri: str, folder: Path | None) -> Path | None:
        """The file that a URI means, or None."""
        scheme, _, rest = uri.rpartition("://")
        if scheme == "file":
            candidates = [Path(rest)]
        elif scheme in ("model", "package"):
            near = [] if folder is None else [folder, folder.parent]
            candidates = [place / rest for place in (*near, *self.places)]
        elif scheme:
            return None  # from the network
        else:
            candidates = [] if folder is None else [folder / rest]
        for candidate in candidates:
            file = self._file(candidate)
            if file is not None:
                return file.resolve()
        return None

    def _file(self, path: Path) -> Path | None:
        """An SDF file, or the one that stands for a folder."""
        has = self.files.has
        if not is_folder(path):
            return path if has(path) else None
        config = path / "model.config"
        if has(config):
            found = read_xml(config, self.files).all("sdf")  # one a version: the last is the newest
            named = path / found[-1].content.strip() if found else None
            if named is not None and has(named):
                return named
        return path / "model.sdf" if has(path / "model.sdf") else None


def sdf_version(root: Element) -> tuple[int, int]:
    text = root.text("version", "1.12")
    try:
        major, minor = text.split(".")[:2]
        return int(major), int(minor)
    except ValueError:
        raise root.error(f'version="{text}" is not a version such as 1.12') from None
