"""Digests of models, options and functions, for the cache.

`fingerprint` is a digest of everything that compiled code depends on. Functions and classes of
users have no digest that holds across processes, since their code may change. What contains one has
no fingerprint: the result is UNKNOWN, which equals nothing, and which no key accepts.

`data_digest` is a digest of the data alone. It compares models, and completes a key that a user
gives for their own code.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import sys
import types
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np


class Unknown:
    """The fingerprint of what has none: false, equal to nothing, and no text."""

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: Any) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<unknown fingerprint>"

    def __str__(self) -> str:
        raise TypeError("an unknown fingerprint is no key: write `fingerprint(...) or None`")

    def __format__(self, specification: str) -> str:
        return str(self)


UNKNOWN = Unknown()

_TEXT = (str, bool, int, float, complex, Fraction, Decimal, type(None), type(...))
_MAPPINGS = (dict, OrderedDict, types.MappingProxyType)


def fingerprint(*objects: Any) -> str | Unknown:
    """A hex digest of the objects' contents, or UNKNOWN where a user's code is among them."""
    try:
        return _Digest(code=True).of(objects)
    except (_NoDigest, RecursionError):
        return UNKNOWN


def data_digest(*objects: Any) -> str:
    """A hex digest of the objects' data: of a user's function its name and the values that it
    holds, of an object of a user's class its attributes."""
    return _Digest(code=False).of(objects)


class _NoDigest(Exception):
    pass


class _Digest:
    """A hash over objects, each written with its type and its length, so that no two collections
    of objects are written alike."""

    def __init__(self, code: bool):
        self.code = code
        self.hash = hashlib.sha256()
        self.seen: dict[int, int] = {}  # dataclass instances by the order of their first visit

    def of(self, objects) -> str:
        self.add(tuple(objects))
        return self.hash.hexdigest()

    def put(self, kind: str, data: bytes = b"") -> None:
        self.hash.update(f"{kind}:{len(data)}:".encode() + data)

    def add(self, x) -> None:
        kind = type(x)
        if kind in _TEXT:
            self.put(kind.__name__, repr(x).encode(errors="surrogatepass"))
        elif kind is bytes:
            self.put("bytes", x)
        elif kind is np.ndarray or (isinstance(x, np.generic) and kind.__module__ == "numpy"):
            self.numbers(np.asarray(x))
        elif kind in (slice, range):
            self.items(kind.__name__, (x.start, x.stop, x.step))
        elif kind in (tuple, list):
            self.items(kind.__name__, x)
        elif kind in _MAPPINGS:
            self.items(kind.__name__, [part for item in x.items() for part in item])
        elif kind in (set, frozenset):
            members = [type(self)(self.code).of([member]) for member in x]
            self.items(kind.__name__, sorted(members))
        elif kind is functools.partial:
            self.items("partial", (x.func, x.args, x.keywords))
        elif inspect.isfunction(x):
            self.function(x)
        else:
            self.object(x)

    def items(self, kind: str, parts) -> None:
        self.put(kind, str(len(parts)).encode())
        for part in parts:
            self.add(part)

    def numbers(self, x: np.ndarray) -> None:
        if x.dtype.kind not in "biufcSU":  # objects would be hashed by their addresses
            return self.items("objects", (x.shape, x.ravel().tolist()))
        self.put("array", f"{x.shape}{x.dtype.str}".encode())
        self.put("data", x.tobytes())

    def function(self, x) -> None:
        if self.code and not _is_ours(x):
            raise _NoDigest
        self.put("function", f"{x.__module__}.{x.__qualname__}".encode())
        if not self.code and id(x) not in self.seen:
            self.seen[id(x)] = len(self.seen)
            values = inspect.getclosurevars(x).nonlocals
            self.items("data", (values, x.__defaults__, x.__kwdefaults__))

    def object(self, x) -> None:
        """An instance of a dataclass or named tuple of this package, by its fields; where code does
        not count, any object by its attributes."""
        kind = type(x)
        ours = _is_ours(kind)
        if self.code and not ours:
            raise _NoDigest
        name = f"{kind.__module__}.{kind.__qualname__}"
        if id(x) in self.seen:
            self.put("seen", str(self.seen[id(x)]).encode())
        elif dataclasses.is_dataclass(kind):
            self.seen[id(x)] = len(self.seen)
            fields = [
                (f.name, getattr(x, f.name))
                for f in dataclasses.fields(x)
                if f.metadata.get("fingerprint") is not False  # no computation depends on it
            ]
            self.items(name, fields)
        elif isinstance(x, tuple):
            self.items(name, tuple(x))
        elif self.code:
            raise _NoDigest
        else:
            self.seen[id(x)] = len(self.seen)
            self.items(name, list(getattr(x, "__dict__", {}).items()))


def _is_ours(x) -> bool:
    """True if this function or class is what its module of this package holds under its name.

    The name alone does not tell: functools.wraps copies it to a user's function.
    """
    if not str(x.__module__).startswith("grubler."):
        return False
    found = sys.modules.get(x.__module__)
    for part in x.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is x
