"""Compiled code on disk: what was compiled once is loaded in milliseconds.

Two kinds of entry, each a file named by a hash of all it depends on. An *object* holds machine
code, keyed by the tape, the processor, dtype, lanes and versions. A *signature* is found by the
caller's cheap key (algorithm, model, options) and leads to the objects without tracing; it
depends on every source file of the package besides. A file is written aside and moved into place,
so that processes never see half of one; a damaged file is ignored and written anew. Where the
folder cannot be written, one warning says so and compiled code lives in memory alone.

`GRUBLER_CACHE_DIR` names another folder; empty, it turns the cache off.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import warnings
from pathlib import Path

from .log import logger

_MAGIC = b"grubler1"
_warned: set[str] = set()


def folder() -> Path | None:
    """Where compiled code is kept, or None."""
    given = os.environ.get("GRUBLER_CACHE_DIR")
    if given is not None:
        return Path(given) if given else None
    import platformdirs  # here, since most of its cost is its import

    return Path(platformdirs.user_cache_dir("grubler"))


@functools.cache
def sources(part: str = "") -> str:
    """A hash that changes when a source file of the package (or a part of it) does."""
    root = Path(__file__).parent.parent
    h = hashlib.sha256()
    for path in sorted((root / part).rglob("*.py")):
        status = path.stat()
        h.update(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return h.hexdigest()


def digest(*parts: object) -> str:
    """The name of an entry: a hash of what it depends on."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:40]


def _path(name: str) -> Path | None:
    where = folder()
    return None if where is None else where / name[:2] / f"{name[2:]}.bin"


def read(name: str) -> bytes | None:
    """The contents of an entry, or None where it is missing or damaged."""
    path = _path(name)
    try:
        data = path.read_bytes() if path else b""
    except OSError:
        return None
    head = len(_MAGIC)
    payload = data[head + 32 :]
    if data[:head] != _MAGIC or hashlib.sha256(payload).digest() != data[head : head + 32]:
        if data:
            logger.info("cache entry %s is damaged and will be rebuilt", path)
        return None
    return payload


def write(name: str, payload: bytes) -> None:
    """Store an entry; failing to is no error."""
    path = _path(name)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(aside, path)
        except BaseException:
            os.unlink(aside)
            raise
    except OSError as error:
        place = str(path.parent.parent)
        if place not in _warned:
            _warned.add(place)
            warnings.warn(
                f"compiled code is not kept: the cache folder {place} cannot be written "
                f"({error.strerror}); set GRUBLER_CACHE_DIR to a folder of yours, or to '' for "
                "none",
                RuntimeWarning,
                stacklevel=2,
            )
