"""Compiled code on disk: what was compiled once is loaded in milliseconds.

Each entry is a file named by a hash of everything that its contents depend on. An *object* holds
machine code; its name depends on the tape, the processor, dtype, lanes and versions. A *signature*
leads from the caller's cheap key (algorithm, model, options) to the objects without tracing; its
name depends also on the contents of every source file of the package. A *choice* keeps a decision
that took long.

Entries are executed, so only the user's own are read. The folder is made with mode 0700 and files
with 0600. A folder or file that belongs to somebody else, or that others can write, is refused with
a warning. A file begins with a digest of its contents, keyed by its name: a damaged or exchanged
file is ignored and written anew. A file is written aside and moved into place, so that processes
never see half of one. Where the folder cannot be used, one warning says so and compiled code lives
in memory alone.

`GRUBLER_CACHE_DIR` names another folder; empty, it turns the cache off.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..log import logger

_MAGIC = b"grubler2"
_DIGEST = 32  # bytes
_POSIX = os.name == "posix"  # elsewhere files have no owner and mode that could be checked
_warned: set[str] = set()


def folder() -> Path | None:
    """Where compiled code is kept, or None."""
    given = os.environ.get("GRUBLER_CACHE_DIR")
    if given is not None:
        return Path(given) if given else None
    import platformdirs  # here, since most of its cost is its import

    return Path(platformdirs.user_cache_dir("grubler"))


@functools.cache
def _files() -> dict[str, str]:
    """A hash of the contents of each source file of the package, by its path."""
    root = Path(__file__).parents[2]
    paths = sorted(root.rglob("*.py"))
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    return dict(zip((path.relative_to(root).as_posix() for path in paths), hashes))


_files()  # at import: it describes the code that runs, even where the package is replaced meanwhile


@functools.cache
def sources(part: str = "") -> str:
    """A hash of the contents of the package's source files, or of those in a part of it.

    Where no source files are found, it is a random text: nothing is then found again.
    """
    files = {path: h for path, h in _files().items() if path.startswith(part)}
    return hashlib.sha256(repr(files).encode()).hexdigest() if files else secrets.token_hex()


def digest(*parts: object) -> str:
    """The name of an entry: a hash of the parts on which its contents depend."""
    if any(part is None for part in parts):
        raise TypeError(f"an unknown part cannot name an entry: {parts}")
    return hashlib.sha256(repr([str(part) for part in parts]).encode()).hexdigest()[:40]


def read(name: str) -> bytes | None:
    """The contents of an entry, or None where it is missing, damaged or not to be trusted."""
    where = folder()
    if where is None:
        return None
    try:
        with _entered(where) as inside:
            data = _contents(where, inside, name)
    except _Refused as refused:
        _warn(where, str(refused))
        return None
    except OSError:
        return None
    head, payload = data[: len(_MAGIC) + _DIGEST], data[len(_MAGIC) + _DIGEST :]
    if head != _head(name, payload):
        discard(name)
        return None
    return payload


def discard(name: str) -> None:
    """Say that an entry is damaged; its next writing replaces it."""
    logger.info("cache entry %s is damaged and will be rebuilt", name)


def write(name: str, payload: bytes) -> None:
    """Store an entry; where that fails, a warning says so once."""
    where = folder()
    if where is None:
        return
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _entered(where) as inside:
            _replace(where, inside, name, _head(name, payload) + payload)
    except _Refused as refused:
        _warn(where, str(refused))
    except OSError as error:
        _warn(where, f"the cache folder {where} cannot be written ({error.strerror})")


def refusal(where: Path) -> str | None:
    """Why nothing in this folder is used, or None."""
    try:
        with _entered(where):
            return None
    except _Refused as refused:
        return str(refused)
    except OSError:  # there is none yet
        return None


def choice(about: Sequence[object], options: Sequence[str], decide: Callable[[], str]) -> str:
    """One of the options: the one decided before for what it is about, or else decided now."""
    name = digest("choice", *about, list(options), sources())
    known = (read(name) or b"").decode(errors="replace")
    if known in options:
        return known
    chosen = decide()
    write(name, chosen.encode())
    return chosen


class _Refused(Exception):
    """A folder or file that others could have written."""


def _head(name: str, payload: bytes) -> bytes:
    keyed = hashlib.blake2b(payload, digest_size=_DIGEST, key=name.encode())
    return _MAGIC + keyed.digest()


@contextmanager
def _entered(where: Path) -> Iterator[int | None]:
    """A descriptor of the folder, which must be ours alone; None where there are none."""
    if not _POSIX:
        yield None
        return
    inside = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _check(os.fstat(inside), f"the cache folder {where}")
        yield inside
    finally:
        os.close(inside)


def _check(status: os.stat_result, what: str) -> None:
    """Refuse what belongs to another user or what others can write."""
    if not _POSIX:
        return
    if status.st_uid != os.geteuid():
        raise _Refused(f"{what} belongs to user {status.st_uid}, not to you (user {os.geteuid()})")
    if status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        raise _Refused(f"{what} can be written by other users (mode {mode:04o}): chmod go-w it")


def _path(where: Path, inside: int | None, file: str) -> str:
    return file if inside is not None else str(where / file)


def _contents(where: Path, inside: int | None, name: str) -> bytes:
    flags = os.O_RDONLY
    if _POSIX:
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not block
    handle = os.open(_path(where, inside, f"{name}.bin"), flags, dir_fd=inside)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        _check(status, f"the cache file {where / name}.bin")
        return file.read() if stat.S_ISREG(status.st_mode) else b""


def _replace(where: Path, inside: int | None, name: str, data: bytes) -> None:
    aside = _path(where, inside, f"{name}.{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(aside, flags, 0o600, dir_fd=inside)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        final = _path(where, inside, f"{name}.bin")
        os.replace(aside, final, src_dir_fd=inside, dst_dir_fd=inside)
    except BaseException:
        os.unlink(aside, dir_fd=inside)
        raise


def _warn(where: Path, problem: str) -> None:
    if (place := str(where)) in _warned:
        return
    _warned.add(place)
    warnings.warn(
        f"compiled code is not kept or not used: {problem}; set GRUBLER_CACHE_DIR to a folder of "
        "yours that nobody else can write, or to '' for none",
        RuntimeWarning,
        stacklevel=3,
    )
