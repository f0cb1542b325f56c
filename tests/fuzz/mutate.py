"""Mutations of robot descriptions: of bytes, of words, and of the tree of elements."""

from __future__ import annotations

import re
from random import Random
from xml.etree import ElementTree

NUMBERS = [
    "nan", "inf", "-inf", "0", "-0", "-1", "1e308", "-1e308", "1e-320", "1e40", "1e16", "1e-16",
    "9" * 400, "1_000", "١٢", "0x10", "1e", "", " ", "0 0 0", "1 2 3 4", "0 0 0 0 0 0", "true",
    "2147483648", "-2147483649", "1e10", "6", "7", "1000000",
]  # fmt: skip
WORDS = [
    "world", "fixed", "revolute", "continuous", "floating", "free", "planar", "prismatic", "ball",
    "universal", "screw", "gearbox", "helical", "name", "base_link", "é", "\0", "a" * 5000, "a/b",
    "../x", "/dev/zero", "package://a/b", "::", "__model__", "${1/0}", "3d", "6d", "SPHERICAL",
    "[", "{", "- ", "*x", "&x", "!!int", "\ud800", "<", "&lt;", "%s%n", "{0}", "true", "null",
]  # fmt: skip
TAGS = [
    "link", "joint", "loop", "coupling", "constraint", "mimic", "transmission", "include", "model",
    "frame", "pose", "inertial", "mass", "inertia", "origin", "axis", "axis2", "limit", "dynamics",
    "visual", "collision", "body", "geom", "site", "equality", "connect", "weld", "tendon", "fixed",
    "replicate", "freejoint", "keyframe", "key", "actuator", "motor", "default", "compiler", "size",
    "option", "composite", "attach", "static", "gravity", "parent", "child", "loop_joint",
]  # fmt: skip


def mutated(text: str, kind: str, rng: Random) -> str | bytes:
    """A description after one to six changes; `kind` is "xml" or "yaml"."""
    how = rng.random()
    if kind == "xml" and how < 0.6:
        changed = _elements(text, rng)
        if changed is not None:
            return changed
    if how < 0.9:
        return _tokens(text, rng)
    return _bytes(text.encode(errors="surrogatepass"), rng)


def with_unknown_name(text: str, tags: set[str], rng: Random) -> tuple[str, str] | None:
    """The text with one attribute or tag renamed, and the new name, which no reader knows.

    Only elements are changed whose own tag and whose ancestors' tags are among `tags`.
    """
    root = ElementTree.fromstring(text)
    found = []
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element is not root:
            found.append((element, None))
        found += [(element, name) for name in element.attrib]
        waiting += [child for child in element if child.tag in tags]
    element, name = rng.choice(found)
    new = f"zz_{rng.randrange(10**6)}"
    if name is None:
        element.tag = new
    else:
        element.attrib[new] = element.attrib.pop(name)
    return ElementTree.tostring(root, encoding="unicode"), new


def _elements(text: str, rng: Random) -> str | None:
    """Elements and attributes dropped, doubled, moved, swapped, renamed or given other values."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        parents = {child: parent for parent in root.iter() for child in parent}
        if not parents:
            break
        element, other = rng.choice(list(parents)), rng.choice(list(parents))
        _change(element, other, parents, rng)
    return ElementTree.tostring(root, encoding="unicode")


def _change(element, other, parents: dict, rng: Random) -> None:
    attributes, others = list(element.attrib), list(other.attrib)
    match rng.randrange(10):
        case 0:
            parents[element].remove(element)
        case 1:
            parents[element].insert(rng.randrange(len(parents[element]) + 1), element)
        case 2:
            if element not in set(other.iter()) and other not in set(element.iter()):
                parents[element].remove(element)
                other.append(element)
        case 3:
            element.tag = rng.choice(TAGS)
        case 4 if attributes:
            del element.attrib[rng.choice(attributes)]
        case 5 if attributes and others:
            a, b = rng.choice(attributes), rng.choice(others)
            element.attrib[a], other.attrib[b] = other.attrib[b], element.attrib[a]
        case 6 if attributes:
            a = rng.choice(attributes)
            element.attrib[rng.choice(("name", "type", "xyz", "value", a + "x"))] = (
                element.attrib.pop(a)
            )
        case 7 | 8 if attributes:
            a = rng.choice(attributes)
            element.attrib[a] = _value(element.attrib[a], rng)
        case _:
            element.text = _value(element.text or "", rng)


def _value(text: str, rng: Random) -> str:
    """Another value: a number of the text replaced by an extreme one, or any word."""
    words = text.split()
    if words and rng.random() < 0.6:
        words[rng.randrange(len(words))] = rng.choice(NUMBERS)
        return " ".join(words).replace("\0", "0")
    value = rng.choice(NUMBERS + WORDS)
    return value.replace("\0", "0").replace("\ud800", "\u0800")  # what ElementTree can write


def _tokens(text: str, rng: Random) -> str:
    """Words and lines replaced, dropped, doubled or swapped; the text cut."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        lines = text.split("\n")
        k, l = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(6):
            case 0 | 1:
                places = [m.span() for m in re.finditer(r"[^\s<>=\"'\[\],:{}]+", text)]
                if places:
                    i, j = rng.choice(places)
                    text = text[:i] + rng.choice(NUMBERS + WORDS) + text[j:]
            case 2:
                del lines[k]
                text = "\n".join(lines)
            case 3:
                lines[k], lines[l] = lines[l], lines[k]
                text = "\n".join(lines)
            case 4:
                lines.insert(k, lines[l])
                text = "\n".join(lines)
            case _ if rng.random() < 0.2:
                text = text[: rng.randrange(len(text) + 1)]
    return text


def _bytes(data: bytes, rng: Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 2, 8, 32))):
        i = rng.randrange(len(found) + 1)
        match rng.randrange(4):
            case 0:
                found[i : i + 1] = bytes([rng.randrange(256)])
            case 1:
                del found[i : i + rng.choice((1, 2, 50))]
            case 2:
                found[i:i] = found[i : i + rng.choice((1, 8, 400))]
            case _:
                found[i:i] = bytes(
                    rng.choices(b"<>/=\"' 09e.-&;[]{}:,\x00\xff", k=rng.randrange(1, 5))
                )
    return bytes(found)
