"""What an MJCF names and multiplies, looked at before MuJoCo reads it: files and sizes.

MuJoCo opens the files of <include> and <model>, and expands <replicate>, <attach> and <flexcomp>,
while it parses. A few lines can ask it for a device, or for a billion bodies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._files import Files, exists
from ._xml import Element, read_xml

MAX_EXPANDED = 200_000  # elements after all replication
MAX_ENTRIES = 10_000_000  # of one grid, image or table that an element makes
MAX_INCLUDED = 1000  # files
DEEPEST = 40  # files within files
OPENED = ("include", "model", "flexcomp")  # whose files MuJoCo opens while it parses
# Attributes whose product is the number of entries that MuJoCo allocates.
GRIDS: dict[Any, Any] = {
    "hfield": ("nrow", "ncol"),
    "texture": ("width", "height"),
    "flexcomp": ("count",),
    "composite": ("count",),
    "mesh": ("params",),
    "numeric": ("size",),
}


@dataclass
class Text:
    """An MJCF as text: its own root and the roots of all files that it includes or attaches."""

    root: Element
    files: Files
    roots: list[Element] = field(default_factory=list)
    _opened: set[Path] = field(default_factory=set)
    _of: dict[int, Element] = field(default_factory=dict)  # id of <include> or <model> -> root
    _models: dict[str, Element] = field(default_factory=dict)  # what <attach model=> names

    def __post_init__(self) -> None:
        self._open(self.root, self.folder, 0)
        self._check_sizes()

    @property
    def folder(self) -> Path:
        """Where MuJoCo looks first: the main file's folder, for a text the current one."""
        return self.files.folder or Path()

    def _open(self, root: Element, folder: Path, depth: int) -> None:
        """Read `root`'s includes, which must be regular files that may be opened."""
        self.roots.append(root)
        if len(self.roots) > MAX_INCLUDED:
            raise root.error(f"more than {MAX_INCLUDED} files are included: flatten them")
        if depth > DEEPEST:
            raise root.error(f"files are included deeper than {DEEPEST}: flatten them")
        for element in root.walk():
            tag = element.tag.lower()  # MuJoCo does not mind
            if tag not in OPENED or "file" not in element.attributes:
                continue
            path = self._file(element, folder)
            if tag == "flexcomp":
                continue
            if tag == "include" and path in self._opened:
                raise element.error(f"file '{path.name}' is included twice")
            self._opened.add(path)
            child = read_xml(path, self.files)
            self._of[id(element)] = child
            if tag == "model":
                name = element.attributes.get("name") or child.attributes.get("model", "")
                self._models[name] = child
            self._open(child, path.parent, depth + 1)

    def _file(self, element: Element, folder: Path) -> Path:
        """The file that MuJoCo opens: beside the main file, else beside the one that names it."""
        candidates = [place / element.text("file") for place in (self.folder, folder)]
        path = next((p for p in candidates if exists(p)), candidates[0])
        reason = self.files.refusal(path)
        if reason:
            raise element.error(reason)
        return path.resolve()

    def _check_sizes(self) -> None:
        """Refuse what grows beyond all bounds once it is expanded."""
        total = 0
        waiting = [(self.root, 1)]
        while waiting:
            element, factor = waiting.pop()
            tag = element.tag.lower()
            if tag == "replicate":
                factor *= max(1, _whole(element, "count"))
            total += factor
            if total > MAX_EXPANDED:
                raise element.error(
                    f"replicated, the description has more than {MAX_EXPANDED:,} elements"
                )
            entries = 1
            for name in GRIDS.get(tag, ()):
                entries *= max(1, _whole(element, name))
            if entries > MAX_ENTRIES:
                raise element.error(f"it has {entries:,} entries: up to {MAX_ENTRIES:,} are read")
            inner = self._of.get(id(element)) if tag == "include" else None
            if tag == "attach":
                inner = self._models.get(element.attributes.get("model", ""))
            waiting += [(child, factor) for child in element.children]
            waiting += [(inner, factor)] if inner is not None else []


def _whole(element: Element, name: str) -> int:
    """The product of the whole numbers of an attribute; 1 for what MuJoCo will refuse itself."""
    product = 1
    for word in element.attributes.get(name, "").split():
        product *= int(word) if word.isdecimal() and len(word) < 20 else 1
    return product
