"""Errors: each one names what is wrong, where, and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GrublerError(ValueError):
    """Base of every error that this library raises on bad input."""


class ModelError(GrublerError):
    """The description of a mechanism is inconsistent (graph, names, inertia, loops)."""


class ClosureError(GrublerError):
    """A loop is open, or cannot be closed."""


class PartitionError(GrublerError):
    """Independent and dependent coordinates cannot be told apart at this configuration."""


class InputError(GrublerError):
    """An argument has the wrong shape, type or value."""


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """The message for a name that does not exist, with the nearest one that does."""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    there = f"known: {', '.join(known[:12]) or 'none'}{more}"
    hint = f"did you mean '{near[0]}'?" if near else there
    return f"no {kind} named '{name}': {hint}"
