"""Errors of the compiler."""

from __future__ import annotations

from ..errors import InputError


class DialectError(InputError):
    """A function leaves the dialect that can be traced: which rule, and at which line."""
