"""Compiling an MJCF with MuJoCo, without the meshes and textures that are not there."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType

import numpy as np

from ..errors import ModelError
from ..mechanism.parts import LARGEST
from ._files import MAX_BODIES, Files
from ._report import Complaints
from ._xml import Element, is_text
from .mjcf_bounds import Text
from .mjcf_missing import Missing


@dataclass
class Compiled:
    """MuJoCo's model, and where its elements stand in the text."""

    model: object  # mujoco.MjModel
    title: str
    roots: list[Element]  # the file and what it includes
    lost: set[str] = field(default_factory=set)  # geoms whose mesh is missing
    lost_contact: list[tuple[str, str]] = field(default_factory=list)  # bodies and files of those
    # that would touch

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


def compile_mjcf(
    source: str | Path, root: Element, complaints: Complaints, files: Files | None = None
) -> Compiled:
    """Parse and compile; `root` is the text as read by us, for names, lines and bounds."""
    mj = mujoco()
    if files is None:
        files = Files(None if is_text(source) else Path(source).parent)
    roots = Text(root, files).roots
    heard: list[str] = []
    missing = None
    before = mj.get_mju_user_warning()
    mj.set_mju_user_warning(heard.append)  # which would else be printed and logged to a file
    try:
        if files.folder is None:
            spec = mj.MjSpec.from_string(str(source))
        else:
            spec = mj.MjSpec.from_file(str(source))
        if len(spec.bodies) > MAX_BODIES:
            raise ModelError(
                f"{root.where}: more than {MAX_BODIES:,} bodies: split the description"
            )
        _without_sizes(spec)
        missing = Missing(mj, spec, files, roots, complaints)
        missing.leave_out()
        with warnings.catch_warnings(record=True) as told:  # MuJoCo 4 warns through Python, too
            warnings.simplefilter("always")
            model = spec.compile()
        heard += [str(warning.message) for warning in told]
    except (ValueError, RuntimeError, TypeError, mj.FatalError) as error:
        if isinstance(error, ModelError):
            raise
        text = " ".join(str(error).split())
        if missing is not None and missing.weights and "mjMINVAL" in text:
            raise missing.error(text) from None
        raise ModelError(f"{root.source or 'text'}: MuJoCo refuses it: {text[:500]}") from None
    finally:
        mj.set_mju_user_warning(before)
    for message in heard:
        complaints.add(f"MuJoCo warns: {' '.join(message.split())}", (root.source, 0))
    _refuse_not_finite(model, roots)
    return Compiled(model, spec.modelname or "robot", roots, missing.geoms, missing.touching)


def _without_sizes(spec) -> None:
    """Leave out what <size> only reserves: memory, constraints, and data of the user's own."""
    automatic = ["memory", "njmax", "nconmax", "nstack"]
    automatic += [name for name in dir(spec) if name.startswith("nuser_")]
    for name in automatic:
        setattr(spec, name, -1)
    spec.nuserdata, spec.nkey = 0, 0


def _refuse_not_finite(model, roots: list[Element]) -> None:
    """MuJoCo lets NaN and infinities pass; no quantity that is read may be one."""
    arrays = (
        "body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "jnt_pos",
        "jnt_axis", "jnt_range", "qpos0", "key_qpos", "eq_data", "site_pos", "site_quat",
        "actuator_gear", "dof_armature", "wrap_prm",
        "dof_damping", "dof_frictionloss", "jnt_stiffness", "qpos_spring",
    )  # fmt: skip
    values = {name: getattr(model, name) for name in arrays} | {"gravity": model.opt.gravity}
    bad = [name for name, x in values.items() if not np.all(np.isfinite(x))]
    if not bad:
        large = [n for n, x in values.items() if n != "jnt_range" and np.any(np.abs(x) > LARGEST)]
        if large:
            where = roots[0].source or "text"
            raise ModelError(f"{where}: {large[0]} of the compiled model is beyond {LARGEST:g}")
        return
    for root in roots:
        for element in root.walk():
            for name, value in element.attributes.items():
                words = {word.lower().lstrip("+-") for word in value.split()}
                if words & {"nan", "inf", "infinity"}:
                    raise element.error(f'{name}="{value[:60]}" is not finite')
    raise ModelError(f"{roots[0].source or 'text'}: {bad[0]} of the compiled model is not finite")
