"""Which files a reader may open, and where the files that a description names are looked for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import InputError, ModelError

MAX_BYTES = 64 * 2**20  # of one description
MAX_BODIES = 20_000  # of one description
MAX_PATH_PARTS = 32  # of the path of a mesh; each part is looked for in each place
MAX_LOOKUPS = 20_000  # different meshes that one description may name
ROS_PACKAGES = ("ROS_PACKAGE_PATH",)
ROS_PREFIXES = ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH")  # packages lie in share/ below these
RESOURCES = ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH")


class Files:
    """Opens regular files of bounded size, below `root` where one is given.

    `folder` is that of the description (None for text). `package_dirs` are searched for
    package:// addresses, after the folders that the environment names.
    """

    def __init__(
        self, folder: Path | None = None, package_dirs: Iterable[str | Path] = (),
        root: str | Path | None = None,
    ):  # fmt: skip
        self.folder = folder
        single = isinstance(package_dirs, (str, Path))
        self.package_dirs: list[Path] = [
            _path("package_dirs", p) for p in ([package_dirs] if single else package_dirs)
        ]
        self.root: Path | None = None if root is None else _resolved(_path("root", root))
        if self.root is not None and not is_folder(self.root):
            raise InputError(f"root={str(root)!r} is not a folder: files are only read below it")
        self._found: dict[str, Path | None] = {}

    def allows(self, path: Path) -> bool:
        """True if the path, all links followed, lies below `root`."""
        return self.root is None or _resolved(path).is_relative_to(self.root)

    def has(self, path: Path) -> bool:
        """True if there is a regular file that may be opened."""
        return is_file(path) and self.allows(path)

    def refusal(self, path: Path) -> str:
        """Why a file is not opened; empty where it is."""
        shown = f"'{str(path)[:200]}'"
        if not self.allows(path):
            return f"{shown} is not below root='{self.root}': it is not opened"
        try:
            status = path.stat()
        except (OSError, ValueError) as error:
            return f"cannot read {shown}: {error}"
        if not stat.S_ISREG(status.st_mode):
            return f"cannot read {shown}: it is not a regular file"
        if status.st_size > MAX_BYTES:
            return (
                f"'{path.name}' has {status.st_size / 2**20:.0f} MiB: descriptions are read up to "
                f"{MAX_BYTES // 2**20} MiB"
            )
        return ""

    def read(self, path: str | Path) -> bytes:
        """The bytes of a description."""
        path = Path(path)
        reason = self.refusal(path)
        if reason:
            raise ModelError(reason)
        try:
            with open(path, "rb") as file:
                return file.read(MAX_BYTES)
        except OSError as error:
            raise ModelError(f"cannot read '{str(path)[:200]}': {error}") from error

    def resolve(self, path: str | Path) -> Path:
        """The path of a file address; package://name/... is looked for in the package folders."""
        text = str(path)
        if text.startswith("file://"):
            return Path(text.removeprefix("file://"))
        if not text.startswith("package://"):
            return Path(path)
        package, _, rest = text.removeprefix("package://").partition("/")
        places = environment_folders(ROS_PACKAGES)
        places += [p / "share" for p in environment_folders(ROS_PREFIXES)] + self.package_dirs
        for place in places:
            itself = [place / rest] if place.name == package else []
            for candidate in (place / package / rest, *itself):
                if self.has(candidate):
                    return candidate
        below = "" if self.root is None else f" (below root='{self.root}')"
        raise ModelError(
            f"'{text[:200]}' is in none of {len(places)} package folders{below}: give "
            f"package_dirs=[the folder that holds '{package[:100]}'], or set ROS_PACKAGE_PATH"
        )

    def mesh(self, uri: str) -> Path | None:
        """A file for an address such as package://robot/meshes/foot.stl, or None.

        It is looked for beside the description, in each folder above it, and on the usual paths.
        """
        if uri not in self._found:
            if len(self._found) >= MAX_LOOKUPS:
                raise ModelError(f"more than {MAX_LOOKUPS} different meshes are named")
            self._found[uri] = next((p for p in self._candidates(uri) if self.has(p)), None)
        return self._found[uri]

    def _candidates(self, uri: str) -> Iterator[Path]:
        scheme, _, rest = uri.rpartition("://")
        parts = Path(rest).parts
        if scheme in ("", "file") and Path(rest).is_absolute():
            yield Path(rest)
            return
        if len(parts) > MAX_PATH_PARTS:
            return
        places = [*self.package_dirs, *environment_folders(RESOURCES)]
        if self.folder is not None:
            here = self.folder.resolve()
            places += [here, *here.parents]
        for k in range(len(parts)):  # the package's name may not be a folder's
            for place in places:
                yield place.joinpath(*parts[k:])


def is_file(path: Path) -> bool:
    """True for a regular file; False for anything else, a path that no system can have included."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _path(name: str, value: object) -> Path:
    if not isinstance(value, (str, Path)):
        raise InputError(f"{name} takes names of folders, not {type(value).__name__}")
    return Path(value)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, a cycle of links
        raise ModelError(f"cannot read '{str(path)[:200]}': {error}") from None


def environment_folders(variables: Iterable[str]) -> list[Path]:
    """The folders that environment variables list."""
    texts = [text for name in variables for text in os.environ.get(name, "").split(os.pathsep)]
    return [Path(text) for text in texts if text]
