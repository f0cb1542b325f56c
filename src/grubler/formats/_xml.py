"""XML as a tree of elements that know their line, safe against hostile input.

A document type declaration is refused: it is where entity bombs and external entities live, and
no robot description needs one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from ..errors import ModelError


class FormatWarning(UserWarning):
    """A part of a description was not understood, or does not describe a physical body."""


@dataclass
class Element:
    """An XML element: tag, attributes, children and the line it starts on."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def error(self, message: str) -> ModelError:
        return ModelError(f"line {self.line}, <{self.tag}>: {message}")

    def all(self, tag: str) -> list[Element]:
        return [child for child in self.children if child.tag == tag]

    def child(self, tag: str) -> Element | None:
        """The child of that tag, or None; given twice it is an error."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"given twice in <{self.tag}>")
        return found[0] if found else None

    def required(self, tag: str) -> Element:
        found = self.child(tag)
        if found is None:
            raise self.error(f"<{tag}> is missing")
        return found

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute; an error when it is missing and has no default."""
        if name in self.attributes:
            return self.attributes[name].strip()
        if default is None:
            raise self.error(f"the attribute {name}= is missing")
        return default

    def numbers(self, name: str, count: int, default: str | None = None) -> np.ndarray:
        """An attribute of `count` finite numbers."""
        text = self.text(name, default)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            values = np.array([])
        if values.shape != (count,) or not np.all(np.isfinite(values)):
            expected = "one finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(f'{name}="{text}" is not {expected}')
        return values

    def number(self, name: str, default: str | None = None) -> float:
        return float(self.numbers(name, 1, default)[0])


def read_xml(source: str | Path) -> Element:
    """The root element of a file, or of XML text (a string that starts with '<')."""
    is_text = isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<")
    if is_text:
        name, data, encoding = "text", source.lstrip("\ufeff \t\r\n").encode(), "utf-8"
    else:
        name, encoding = str(source), None
        try:
            data = Path(source).read_bytes()
        except (OSError, ValueError) as error:
            raise ModelError(f"cannot read '{str(source)[:200]}': {error}") from error
    parser = expat.ParserCreate(encoding)
    root: list[Element] = []
    open_elements: list[Element] = []

    def start(tag, attributes):
        element = Element(tag, attributes, parser.CurrentLineNumber)
        (open_elements[-1].children if open_elements else root).append(element)
        open_elements.append(element)

    def refuse(*_):
        raise ModelError(
            f"{name}, line {parser.CurrentLineNumber}: a document type declaration (<!DOCTYPE>) is "
            "not accepted: remove it and write entities out"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: open_elements.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{name} is not well-formed XML: {error}") from error
    return root[0]
