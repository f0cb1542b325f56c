"""SRDF, the file beside a URDF that says which links never touch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import InputError
from ..formats._xml import read_xml


def never_touching(
    source: str | Path, links: Iterable[str], notes: list[str]
) -> frozenset[frozenset[str]]:
    """The pairs of links that `source`, a path or text, disables; links that the model does not
    have are noted."""
    root = read_xml(source)
    if root.tag != "robot":
        raise InputError(f"srdf: {root.where}: an SRDF starts with <robot>, not <{root.tag}>")
    links, found = set(links), set()
    off = {e.text("link") for e in root.all("default_disable_collisions")}
    for link in off & links:
        found |= {frozenset((link, other)) for other in links - {link}}
    for element in root.all("disable_collisions"):
        found.add(_ends(element))
    for element in root.all("enable_collisions"):
        found.discard(_ends(element))
    strange = {link for pair in found for link in pair} - links
    if strange:
        notes.append(f"srdf: the model has no shapes on {', '.join(sorted(strange)[:6])}")
    return frozenset(found)


def _ends(element) -> frozenset[str]:
    return frozenset((element.text("link1"), element.text("link2")))
