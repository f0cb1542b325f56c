"""`load`: which reader a description belongs to, and where it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..arguments import public
from ..errors import InputError, ModelError
from ..model import Model
from ._description import Description
from ._xml import is_text, parse_xml, read_xml
from .beside import describe_beside, urdf_beside
from .mjcf import describe_mjcf
from .sdf import describe_sdf
from .shapes import Files, urdf_shapes
from .urdf import describe_urdf


@public
def load(
    path: str | Path,
    *,
    strict: bool = False,
    base: str | None = None,
    submechanisms: str | Path | None = None,
    keyframe: str | int | None = None,
    reference: Mapping[str, float] | None = None,
    package_dirs: Iterable[str | Path] = (),
    clusters: Sequence[Sequence[str]] = (),
    lock_idle: bool = False,
) -> Model:
    """Read a robot with its loops from URDF(+), SDF, MJCF, or a YAML file beside a URDF.

    The kind is told by the content. `base` is "fixed" or "free" (default: URDF fixed, SDF free
    unless joined to the world, MJCF as written). `submechanisms` is a HyRoDyn or Gepetto YAML file
    for a URDF. Loops are assembled from `reference` (positions by joint name, over zero, over
    MJCF's first keyframe or the one named `keyframe`). `package_dirs` are searched for package://,
    after ROS's own paths. `clusters` and `lock_idle` are as in `ModelBuilder.build`. What is not
    used is named in a `FormatWarning` with its line; `strict=True` refuses it.
    """
    return describe(
        path,
        strict=strict,
        base=base,
        submechanisms=submechanisms,
        keyframe=keyframe,
        package_dirs=package_dirs,
    ).build(reference, clusters=clusters, lock_idle=lock_idle)


def describe(
    path: str | Path,
    *,
    strict: bool = False,
    base: str | None = None,
    submechanisms: str | Path | None = None,
    keyframe: str | int | None = None,
    package_dirs: Iterable[str | Path] = (),
) -> Description:
    """What `load` builds from: the builder, the assembly guess, armature and complaints."""
    options = {"strict": strict, "base": base}
    if not isinstance(path, (str, Path)):
        raise InputError(f"path is a file name or XML text, not {type(path).__name__}")
    folder = None
    if not is_text(path):
        path = resolve(path, package_dirs)
        if path.suffix in (".yaml", ".yml"):
            path, submechanisms = urdf_beside(path), path
        folder = path.parent
    xacro = folder is not None and path.suffix == ".xacro" and submechanisms is None
    root = _xacro(path) if xacro else read_xml(path)
    if keyframe is not None and root.tag != "mujoco":
        raise InputError("keyframe= is for MJCF: use reference={joint: position}")
    if submechanisms is not None:
        found = describe_beside(path, resolve(submechanisms, package_dirs), **options)
    elif root.tag == "robot":
        found = describe_urdf(root if xacro else path, **options)
    elif root.tag == "sdf":
        return describe_sdf(path, package_dirs=package_dirs, **options)
    elif root.tag == "mujoco":
        return describe_mjcf(path, keyframe=keyframe, **options)
    else:
        raise ModelError(
            f"{'text' if is_text(path) else path.name}: <{root.tag[:60]}> is no robot description: "
            "expected <robot> (URDF), <sdf> or <mujoco>"
        )
    found.shapes = urdf_shapes(root, Files(folder, package_dirs), found.complaints)
    return found


def resolve(path: str | Path, package_dirs: Iterable[str | Path] = ()) -> Path:
    """A path on disk; package://name/... is looked for below ROS's paths and `package_dirs`."""
    text = str(path)
    if text.startswith("file://"):
        return Path(text.removeprefix("file://"))
    if not text.startswith("package://"):
        return Path(path)
    package, _, rest = text.removeprefix("package://").partition("/")
    places = [Path(p) for p in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if p]
    for variable in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        prefixes = os.environ.get(variable, "").split(os.pathsep)
        places += [Path(p) / "share" for p in prefixes if p]
    for place in (*places, *(Path(p) for p in package_dirs)):
        for candidate in (place / package / rest, place / rest if place.name == package else None):
            if candidate is not None and candidate.is_file():
                return candidate
    raise ModelError(
        f"'{text}' is in none of {len(places)} package folders: give package_dirs=[the folder that "
        f"holds '{package}'], or set ROS_PACKAGE_PATH"
    )


def _xacro(path: Path):
    """The root element of an expanded xacro file."""
    try:
        import xacro
    except ImportError:
        raise ModelError(
            f"'{path.name}' needs xacro: pip install xacro, or expand it to a .urdf first"
        ) from None
    try:
        text = xacro.process_file(str(path)).toxml()
    except Exception as error:  # xacro evaluates expressions: anything may come
        raise ModelError(f"{path.name}: xacro refuses it: {str(error)[:300]}") from None
    return parse_xml(text.encode(), "utf-8", path.name)
