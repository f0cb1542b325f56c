"""MJCF without the files that are not there, and without textures and skins, which nobody needs.

A geom whose mesh is missing may be named by a contact pair, a sensor or a tendon: it becomes a
massless sphere of the same name. What mass it would have had is told.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ._files import Files, exists
from ._report import Complaints
from ._xml import Element

if TYPE_CHECKING:
    from .sdf_joints import JointSpec

SPHERE = 1e-3  # m, the radius of what stands for a geom whose mesh is missing


class Missing:
    """Leaves out of a parsed description what cannot or need not be opened.

    `geoms` are the names of the geoms that lost their mesh; `touching` are body and file of those
    that may touch others; `weights` are the bodies that would
    have had mass from one, with the name of its file.
    """

    mj: Any
    spec: JointSpec
    files: Files
    roots: list[Element]
    complaints: Complaints

    def __init__(
        self, mj: Any, spec: JointSpec, files: Files, roots: list[Element], complaints: Complaints
    ):
        self.mj, self.spec, self.files = mj, spec, files
        self.roots, self.complaints = roots, complaints
        self.geoms: set[str] = set()
        self.touching: list[tuple[str, str]] = []
        self.weights: dict[str, str] = {}

    def leave_out(self) -> None:
        spec = self.spec
        self._without_textures()
        lost = {}
        for asset in [*spec.meshes, *spec.hfields]:
            if not self._there(asset.file):
                lost[asset.name or Path(asset.file).stem] = asset
        for geom in list(spec.geoms):
            asset = lost.get(geom.meshname) or lost.get(geom.hfieldname)
            if asset is None:
                continue
            self._tell_mass(geom, asset.file)
            if geom.contype or geom.conaffinity:
                self.touching.append((geom.parent.name, asset.file))
            if geom.name:
                self._hollow(geom)
            else:
                spec.delete(geom)
        for asset in lost.values():
            spec.delete(asset)

    def error(self, text: str) -> ModelError:
        """What MuJoCo's message about a body without mass means here."""
        bodies = [f"{body} ('{file}')" for body, file in list(self.weights.items())[:6]]
        more = ", ..." if len(self.weights) > 6 else ""
        return ModelError(
            f"{self.roots[0].source or 'text'}: a moving body is left without mass, because "
            f"meshes that would give it mass are missing: {', '.join(bodies)}{more}; put the "
            f"meshes there, or give these bodies an <inertial> (MuJoCo: {text[:200]})"
        )

    def _without_textures(self) -> None:
        spec = self.spec
        for skin in list(spec.skins):
            spec.delete(skin)
        for material in spec.materials:
            material.textures = ["" for _ in material.textures]
        for light in spec.lights:
            if hasattr(light, "texture"):
                light.texture = ""
        for texture in list(spec.textures):
            spec.delete(texture)

    def _hollow(self, geom) -> None:
        """A sphere without mass or contacts in the place of a geom that others name."""
        self.geoms.add(geom.name)
        geom.type = self.mj.mjtGeom.mjGEOM_SPHERE
        geom.size, geom.fromto = [SPHERE, 0.0, 0.0], [np.nan] * 6
        geom.meshname, geom.hfieldname = "", ""
        geom.mass, geom.contype, geom.conaffinity = 0.0, 0, 0

    def _tell_mass(self, geom, file: str) -> None:
        """Complain where the geom would have counted for its body's inertia."""
        body, compiler = geom.parent, getattr(geom, "compiler", self.spec.compiler)
        choice = self.mj.mjtInertiaFromGeom
        explicit = body.explicitinertial and (
            compiler.inertiafromgeom != choice.mjINERTIAFROMGEOM_TRUE
        )
        counted = compiler.inertiafromgeom != choice.mjINERTIAFROMGEOM_FALSE and not explicit
        massless = geom.mass == 0 or (np.isnan(geom.mass) and geom.density == 0)
        low, high = compiler.inertiagrouprange
        if body.name == "world" or not counted or massless or not low <= geom.group <= high:
            return
        shown = f"'{body.name}'" if body.name else "without a name"
        title = f"body {shown}"
        if title in self.weights:
            return
        self.weights[title] = file
        why = "takes its inertia from geoms" if body.explicitinertial else "has no <inertial>"
        self.complaints.add(
            f"{title} {why} and its mesh is missing ('{file}'): it is read without its mass",
            self._place(body),
        )

    def _place(self, body) -> Element | tuple[str, int] | None:
        """Where a body stands; MuJoCo knows the line, and the text knows the file by its name."""
        for root in self.roots if body.name else ():
            for element in root.walk():
                if element.tag == "body" and element.attributes.get("name") == body.name:
                    return element
        line = re.search(r"line (\d+)", body.info)
        return (self.roots[0].source, int(line[1])) if line and len(self.roots) == 1 else None

    def _there(self, file: str) -> bool:
        """Whether MuJoCo finds the file of an asset, and may open it."""
        spec, folder = self.spec, self.files.folder
        if not file or file in spec.assets:
            return True  # built in, given as data, or in memory
        if folder is None:
            return False
        below = getattr(spec, "meshdir", "") or ""
        name = Path(file).name if getattr(spec, "strippath", False) else file
        places = [folder / below / name, folder / name, folder / below / file]
        found = [place for place in places if exists(place)]
        return bool(found) and all(self.files.has(place) for place in found)
