"""`load`: which reader a description belongs to, and where it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..arguments import public
from ..errors import InputError, ModelError
from ..model import Model
from ._description import Description
from ._files import Files
from ._xacro import expand_xacro
from ._xml import is_text, read_xml
from .beside import describe_beside, urdf_beside
from .colliders import urdf_colliders
from .mjcf import describe_mjcf
from .sdf import describe_sdf
from .shapes import urdf_shapes
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
    root: str | Path | None = None,
) -> Model:
    """Read a robot with its loops from URDF(+), SDF, MJCF, or a YAML file beside a URDF.

    The kind is told by the content. `base` is "fixed" or "free" (default: URDF fixed, SDF free
    unless joined to the world, MJCF as written). `submechanisms` is a HyRoDyn or Gepetto YAML file
    for a URDF. Loops are assembled from `reference` (positions by joint name, over zero, over
    MJCF's first keyframe or the one named `keyframe`). `package_dirs` are searched for package://,
    after ROS's own paths. `root` is a folder: no file outside it is opened (includes, meshes,
    packages), whatever the description says. `clusters` and `lock_idle` are as in
    `ModelBuilder.build`. What is not used is named in a `FormatWarning` with its line;
    `strict=True` refuses it.
    """
    if reference is not None and not isinstance(reference, Mapping):
        raise InputError("reference is a mapping {joint: position}")
    return describe(
        path,
        strict=strict,
        base=base,
        submechanisms=submechanisms,
        keyframe=keyframe,
        package_dirs=package_dirs,
        root=root,
    ).build(reference, clusters=clusters, lock_idle=lock_idle)


def describe(
    path: str | Path,
    *,
    strict: bool = False,
    base: str | None = None,
    submechanisms: str | Path | None = None,
    keyframe: str | int | None = None,
    package_dirs: Iterable[str | Path] = (),
    root: str | Path | None = None,
) -> Description:
    """What `load` builds from: the builder, the assembly guess, armature and complaints."""
    options = {"strict": strict, "base": base}
    if not isinstance(path, (str, Path)):
        raise InputError(f"path is a file name or XML text, not {type(path).__name__}")
    files = Files(None, package_dirs, root)
    if not is_text(path):
        path = files.resolve(path)
        files.folder = path.parent
        if path.suffix in (".yaml", ".yml"):
            path, submechanisms = urdf_beside(path, files), path
    xacro = files.folder is not None and path.suffix == ".xacro" and submechanisms is None
    element = expand_xacro(path, files) if xacro else read_xml(path, files)
    if keyframe is not None and element.tag != "mujoco":
        raise InputError("keyframe= is for MJCF: use reference={joint: position}")
    if submechanisms is not None:
        found = describe_beside(path, files.resolve(submechanisms), files=files, **options)
    elif element.tag == "robot":
        found = describe_urdf(element, **options)
    elif element.tag == "sdf":
        return describe_sdf(element, files=files, **options)
    elif element.tag == "mujoco":
        return describe_mjcf(path, keyframe=keyframe, files=files, **options)
    else:
        raise ModelError(
            f"{'text' if is_text(path) else path.name}: <{element.tag[:60]}> is no robot "
            "description: expected <robot> (URDF), <sdf> or <mujoco>"
        )
    found.shapes = urdf_shapes(element, files, found.complaints)
    urdf_colliders(found.builder, element, files)
    return found
