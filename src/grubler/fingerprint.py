"""A digest of everything that a model's compiled code depends on, for the cache.

Functions and classes written by users have no digest that could be trusted across processes: their
code may change. A model that holds one has no fingerprint, and is traced anew in each process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect

import numpy as np


class _NoDigest(Exception):
    pass


def fingerprint(*objects) -> str | None:
    """A hex digest of the objects' contents, or None where code of a user's is inside."""
    digest = hashlib.sha256()
    try:
        for x in objects:
            _update(digest, x, {})
    except _NoDigest:
        return None
    return digest.hexdigest()


def _update(digest, x, seen: dict) -> None:
    if id(x) in seen:
        digest.update(f"seen {seen[id(x)]}".encode())
        return
    digest.update(type(x).__name__.encode())
    if isinstance(x, np.ndarray):
        digest.update(f"{x.shape}{x.dtype}".encode() + np.ascontiguousarray(x).tobytes())
    elif x is None or isinstance(x, (str, bool, int, float, np.number, slice, range)):
        digest.update(repr(x).encode())
    elif isinstance(x, dict):
        for key, value in x.items():
            _update(digest, key, seen)
            _update(digest, value, seen)
    elif isinstance(x, (tuple, list)):
        digest.update(str(len(x)).encode())
        for value in x:
            _update(digest, value, seen)
    elif dataclasses.is_dataclass(x) and type(x).__module__.startswith("grubler."):
        seen[id(x)] = len(seen)
        for field in dataclasses.fields(x):
            _update(digest, getattr(x, field.name), seen)
    elif inspect.isfunction(x) and str(x.__module__).startswith("grubler.") and not x.__closure__:
        digest.update(f"{x.__module__}.{x.__qualname__}".encode())
    else:
        raise _NoDigest
