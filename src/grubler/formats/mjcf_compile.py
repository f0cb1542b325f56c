"""Compiling an MJCF with MuJoCo, without the meshes and textures that are not there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

import numpy as np

from ..errors import ModelError
from ._report import Complaints
from ._xml import Element, is_text, read_xml


@dataclass
class Compiled:
    """MuJoCo's model, and where its elements stand in the text."""

    model: object  # mujoco.MjModel
    title: str
    roots: list[Element]  # the file and what it includes

    @cached_property
    def _named(self) -> dict[tuple[str, str], Element]:
        """Elements by (tag, name), and those of a section such as <actuator> by (section, name)."""
        found: dict[tuple[str, str], Element] = {}
        for root in self.roots:
            for element in root.walk():
                for child in element.children:
                    name = child.attributes.get("name")
                    if name:
                        found.setdefault((element.tag, name), child)
                        found.setdefault((child.tag, name), child)
        return found

    def element(self, tag: str, name: str) -> Element | None:
        """The element of that tag, or in the section of that tag, and of that name."""
        return self._named.get((tag, name))

    def line(self, tag: str, name: str) -> tuple[str, int] | None:
        found = self.element(tag, name)
        return None if found is None else (found.source, found.line)


def mujoco() -> ModuleType:
    """MuJoCo, or an error that says how to get it."""
    try:
        import mujoco
    except ImportError:
        raise ModelError(
            "reading MJCF needs MuJoCo's parser: pip install mujoco (or mujoco-core)"
        ) from None
    return mujoco


def compile_mjcf(source: str | Path, root: Element, complaints: Complaints) -> Compiled:
    """Parse and compile; `root` is the text as read by us, for names and lines."""
    mj = mujoco()
    folder = None if is_text(source) else Path(source).parent
    roots = [root, *_included(root, folder, set())]
    heard: list[str] = []
    before = mj.get_mju_user_warning()
    mj.set_mju_user_warning(heard.append)  # which would else be printed and logged to a file
    try:
        if folder is None:
            spec = mj.MjSpec.from_string(str(source))
        else:
            spec = mj.MjSpec.from_file(str(source))
        _leave_out_missing(spec, folder, roots, complaints)
        model = spec.compile()
    except (ValueError, RuntimeError, TypeError, mj.FatalError) as error:
        if isinstance(error, ModelError):
            raise
        text = " ".join(str(error).split())
        raise ModelError(f"{root.source or 'text'}: MuJoCo refuses it: {text[:500]}") from None
    finally:
        mj.set_mju_user_warning(before)
    for message in heard:
        complaints.add(f"MuJoCo warns: {' '.join(message.split())}", (root.source, 0))
    _refuse_not_finite(model, roots)
    return Compiled(model, spec.modelname or "robot", roots)


def _refuse_not_finite(model, roots: list[Element]) -> None:
    """MuJoCo lets NaN and infinities pass; no quantity that is read may be one."""
    arrays = (
        "body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "jnt_pos",
        "jnt_axis", "jnt_range", "qpos0", "key_qpos", "eq_data", "site_pos", "site_quat",
        "actuator_gear", "dof_armature", "wrap_prm",
        "dof_damping", "dof_frictionloss", "jnt_stiffness", "qpos_spring",
    )  # fmt: skip
    bad = [name for name in arrays if not np.all(np.isfinite(getattr(model, name)))]
    if not np.all(np.isfinite(model.opt.gravity)):
        bad.append("gravity")
    if not bad:
        return
    for root in roots:
        for element in root.walk():
            for name, value in element.attributes.items():
                words = {word.lower().lstrip("+-") for word in value.split()}
                if words & {"nan", "inf", "infinity"}:
                    raise element.error(f'{name}="{value[:60]}" is not finite')
    raise ModelError(f"{roots[0].source or 'text'}: {bad[0]} of the compiled model is not finite")


def _included(root: Element, folder: Path | None, seen: set[Path]) -> list[Element]:
    """The roots of all included files, checked like the file itself."""
    found = []
    for element in root.walk():
        if element.tag != "include" or folder is None:
            continue
        path = (folder / element.text("file")).resolve()
        if path in seen:
            raise element.error(f"file '{path.name}' is included twice")
        seen.add(path)
        child = read_xml(path)
        found += [child, *_included(child, folder, seen)]
    return found


def _leave_out_missing(spec, folder, roots: list[Element], complaints: Complaints) -> None:
    """Delete meshes, height fields and textures whose file is not there, with what shows them."""
    present = _Files(spec, folder)
    meshes = {x.name or Path(x.file).stem for x in spec.meshes if not present(x.file, "mesh", x)}
    heights = {x.name or Path(x.file).stem for x in spec.hfields if not present(x.file, "mesh", x)}
    bodies = {}
    for geom in list(spec.geoms):
        if (geom.meshname and geom.meshname in meshes) or (
            geom.hfieldname and geom.hfieldname in heights
        ):
            bodies.setdefault(geom.parent.name, geom.parent)
            spec.delete(geom)
    for asset in [*spec.meshes, *spec.hfields]:
        if (asset.name or Path(asset.file).stem) in meshes | heights:
            spec.delete(asset)
    for skin in list(spec.skins):
        if not present(skin.file, "mesh", skin):
            spec.delete(skin)
    for texture in list(spec.textures):
        files = [texture.file, *texture.cubefiles]
        if any(f and not present(f, "texture", texture) for f in files):
            for material in list(spec.materials):
                if texture.name in list(material.textures):
                    material.textures = [t if t != texture.name else "" for t in material.textures]
            spec.delete(texture)
    _name_missing_inertia(bodies, roots, complaints)


def _name_missing_inertia(bodies: dict, roots: list[Element], complaints: Complaints) -> None:
    """Bodies that would have had their inertia from a mesh that is not there."""
    explicit = {
        element.attributes.get("name", "")
        for root in roots
        for element in root.walk()
        if element.tag == "body" and element.all("inertial")
    }
    lines = {
        element.attributes["name"]: element
        for root in roots
        for element in root.walk()
        if element.tag == "body" and "name" in element.attributes
    }
    for name in bodies:
        if name not in explicit and name != "world":
            complaints.add(
                f"body '{name}' has no <inertial> and its mesh is missing: it is read without it",
                lines.get(name),
            )


class _Files:
    """Whether the file of an asset can be found, as MuJoCo would look for it."""

    def __init__(self, spec, folder: Path | None):
        self.spec, self.folder = spec, folder

    def __call__(self, file: str, kind: str, asset) -> bool:
        if not file or file in self.spec.assets:
            return True  # built in, given as data, or in memory
        if self.folder is None:
            return False
        below = getattr(self.spec, f"{kind}dir", "") or ""
        name = Path(file).name if getattr(self.spec, "strippath", False) else file
        places = [self.folder / below / name, self.folder / name, self.folder / below / file]
        return any(place.is_file() for place in places)
