"""XML as a tree of elements that know their file and line, safe against hostile input.

A document type declaration is refused: it is where entity bombs and external entities live, and
no robot description needs one. Size, depth and number of elements are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from ..errors import ModelError
from ..mechanism.parts import LARGEST
from ._files import MAX_BYTES, Files

MAX_DEPTH = 400  # of elements within elements
MAX_ELEMENTS = 500_000
MAX_TEXT = 10_000  # characters of an element's own text; numbers and names are shorter
LIMITS = ("limit", "lower", "upper", "velocity", "effort")  # 1e308 here means that there is none
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(slots=True)
class Element:
    """An XML element: tag, attributes, children, text, and where it starts."""

    tag: str
    attributes: dict[str, str]
    line: int
    source: str = ""  # the file's name; empty for text
    children: list[Element] = field(default_factory=list)
    content: str = ""  # the text between its tags

    @property
    def where(self) -> str:
        return place(self.source, self.line)

    def error(self, message: str) -> ModelError:
        return ModelError(f"{self.where}, <{self.tag}>: {message}")

    def all(self, tag: str) -> list[Element]:
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))

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
        return self._parsed(f'{name}="', self.text(name, default), count, '"')

    def number(self, name: str, default: str | None = None) -> float:
        return float(self.numbers(name, 1, default)[0])

    def values(self, count: int, default: str | None = None) -> np.ndarray:
        """The element's own text as `count` finite numbers; empty text is the default."""
        text = self.content.strip()
        return self._parsed("its text '", text or default or "", count, "'")

    def value(self, default: str | None = None) -> float:
        return float(self.values(1, default)[0])

    def truth(self, text: str) -> bool:
        """Whether a text of this element is true; in any case of letters, empty is false."""
        word = text.strip().lower()
        if word not in ("true", "1", "false", "0", ""):
            raise self.error(f"'{text.strip()[:60]}' is neither true nor false")
        return word in ("true", "1")

    def _parsed(self, before: str, text: str, count: int, after: str) -> np.ndarray:
        values = parse_numbers(text)
        if values.shape != (count,) or not np.all(np.isfinite(values)):
            expected = "one finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(f"{before}{text[:60]}{after} is not {expected}")
        if self.tag not in LIMITS and np.any(np.abs(values) > LARGEST):
            raise self.error(f"{before}{text[:60]}{after} is beyond {LARGEST:g}")
        return values


def place(source: str, line: int) -> str:
    """Where something stands: 'robot.urdf, line 3', or 'line 3' of a text."""
    return f"{source}, line {line}" if source else f"line {line}"


def is_text(source: object) -> bool:
    """Whether `source` is XML itself rather than the path of a file."""
    return isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<")


def parse_numbers(text: str) -> np.ndarray:
    """The decimal numbers of a text, between white space; none where a word is not a number.

    Stricter than float(), which also takes 1_000, digits of other scripts, and "nan".
    """
    words = re.findall(r"\S+", text, re.ASCII)
    if not all(NUMBER.fullmatch(word) for word in words):
        return np.zeros(0)
    return np.array([float(word) for word in words])


def read_xml(source: str | Path, files: Files | None = None) -> Element:
    """The root element of a file, or of XML text (a string that starts with '<')."""
    if not is_text(source):
        return parse_xml((files or Files()).read(source), None, Path(source).name)
    if len(source) > MAX_BYTES:
        raise ModelError(
            f"the text has {len(source):,} characters: descriptions are read up to {MAX_BYTES:,}"
        )
    try:
        data = source.lstrip("\ufeff \t\r\n").encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise ModelError(f"the text is not valid Unicode: {error}") from None
    return parse_xml(data, "utf-8", "")


def parse_xml(data: bytes, encoding: str | None, name: str) -> Element:
    """The root element of XML data; `name` stands in messages."""
    parser = expat.ParserCreate(encoding)
    root: list[Element] = []
    open_elements: list[Element] = []
    count = 0

    def refuse(what: str) -> ModelError:
        return ModelError(f"{name or 'text'}, line {parser.CurrentLineNumber}: {what}")

    def start(tag, attributes):
        nonlocal count
        count += 1
        if len(open_elements) >= MAX_DEPTH:
            raise refuse(f"elements are nested deeper than {MAX_DEPTH}: flatten the description")
        if count > MAX_ELEMENTS:
            raise refuse(f"more than {MAX_ELEMENTS} elements: split the description")
        element = Element(tag, attributes, parser.CurrentLineNumber, name)
        (open_elements[-1].children if open_elements else root).append(element)
        open_elements.append(element)

    def characters(text):
        if open_elements and len(open_elements[-1].content) < MAX_TEXT:
            open_elements[-1].content += text[:MAX_TEXT]

    def doctype(*_):
        raise refuse(
            "a document type declaration (<!DOCTYPE>) is not accepted: remove it and write "
            "entities out"
        )

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: open_elements.pop()
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{name or 'text'} is not well-formed XML: {error}") from error
    return root[0]
