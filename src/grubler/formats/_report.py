"""What a reader did not use, said once: warnings that name it with its line, or one error."""

from __future__ import annotations

import warnings

from ..errors import ModelError
from ._xml import Element, place


class FormatWarning(UserWarning):
    """A part of a description was not understood, or does not describe a physical body."""


class Complaints:
    """Collects what was not used; told as warnings, or all together in an error when strict."""

    def __init__(self, strict: bool = False):
        self.strict = strict
        self._found: dict[str, list[tuple[str, int]]] = {}

    def add(self, what: str, at: Element | tuple[str, int] | None = None) -> None:
        """`what` happened at an element, at (file, line), or at no place in particular."""
        where = (at.source, at.line) if isinstance(at, Element) else at or ("", 0)
        self._found.setdefault(what, []).append(where)

    def add_stray_text(self, element: Element) -> None:
        """Name the text of an element that holds none."""
        text = " ".join(element.content.split())
        if text:
            self.add(f"the text '{text[:40]}' in <{element.tag}> is ignored", element)

    @property
    def messages(self) -> list[str]:
        """One line for each thing, its places gathered."""
        return [self._gathered(what, places) for what, places in self._found.items()]

    @staticmethod
    def _gathered(what: str, places: list[tuple[str, int]]) -> str:
        files = {source for source, _ in places}
        numbers = [line for _, line in places if line]
        if not numbers:
            source = next(iter(files))
            return f"{source}: {what}" if source else what
        if len(files) > 1:
            shown = "; ".join(place(*p) for p in places[:4]) + ("; ..." if places[4:] else "")
            return f"{shown}: {what}"
        if len(numbers) == 1:
            return f"{place(*places[0])}: {what}"
        shown = ", ".join(str(n) for n in numbers[:8]) + (", ..." if numbers[8:] else "")
        source = next(iter(files))
        return f"{source + ', ' if source else ''}lines {shown}: {what}"

    def tell(self, stacklevel: int = 4) -> None:
        """Warn about each thing, or refuse with all of them when strict."""
        if self.strict and self._found:
            each = [
                self._gathered(what, [where])
                for what, places in self._found.items()
                for where in places
            ]
            more = f"\n  ... and {len(each) - 100} more" if len(each) > 100 else ""
            raise ModelError(
                f"strict=True and {len(each)} part{'s' if each[1:] else ''} of the description "
                "cannot be used as written:\n  " + "\n  ".join(each[:100]) + more
            )
        for message in self.messages:
            warnings.warn(message, FormatWarning, stacklevel=stacklevel)
