"""What a description says of contact: collision shapes, friction, which shapes may touch.

A shape that cannot be read is left out: its complaint is told with the look of its link. What
is not used of friction and of the softness of contacts is noted in `Collision.unused`, which a plan
of contacts tells: a model that never touches anything does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..algebra.spatial import quaternion_matrix
from ..errors import ModelError
from ..mechanism.colliders import Collider, GivenPair, Material
from ..mechanism.geometry import HeightField, Mesh, Plane, Shape
from ..mechanism.joints import perpendicular, unit
from ..mechanism.parts import WORLD
from ..model.builder import ModelBuilder
from ._files import Files
from ._xml import Element
from .sdf_frames import pose_of
from .shapes import mjcf_shape, sdf_links, sdf_shape, urdf_shape

ALL_BITS = 0xFFFF  # SDF's default of collide_bitmask


class _Names:
    """Names that are unique."""

    def __init__(self):
        self.taken: set[str] = set()

    def new(self, wanted: str, link: str) -> str:
        """The name wanted, else the link's with a number."""
        name, k = wanted, 0
        while not name or name in self.taken:
            name, k = f"{link}.{k}", k + 1
        self.taken.add(name)
        return name


def add_colliders(b: ModelBuilder, colliders: Iterable[Collider]) -> None:
    """Put shapes into a builder; those that no shape can be are noted as not used."""
    for c in colliders:
        try:
            b.contact.add(c)
        except ModelError as error:
            b.contact.unused(f"left out: {error}")


def urdf_colliders(b: ModelBuilder, robot: Element, files: Files) -> None:
    """The <collision> of each link; friction from Gazebo's <mu1> of the link."""
    names, frictions = _Names(), _gazebo_frictions(b, robot)
    found = []
    for link in robot.all("link"):
        of = link.text("name", "")
        for element in link.all("collision"):
            shape = _read(element, files, urdf_shape)
            if shape is not None:
                name = names.new(element.text("name", ""), of)
                material = Material(friction=frictions.get(of))
                found.append(Collider(name, of, WORLD, shape, material))
    add_colliders(b, found)


def _read(element: Element, files: Files, read) -> Shape | None:
    try:
        return read(element, files)
    except ModelError:
        return None  # named with the look of the link


def _gazebo_frictions(b: ModelBuilder, robot: Element) -> dict[str, float]:
    """By link: <mu1> of <gazebo reference="link">, where <mu2> is the same."""
    found = {}
    for element in robot.all("gazebo"):
        values = {}
        for child in element.children:
            if child.tag in ("mu1", "mu2"):
                try:
                    values[child.tag] = child.value()
                except ModelError:
                    b.contact.unused(f"{child.where}: <{child.tag}> is not a number")
        link = element.text("reference", "")
        if not values or not link:
            continue
        first, second = (values.get(t, next(iter(values.values()))) for t in ("mu1", "mu2"))
        if first != second:
            b.contact.unused(
                f"{element.where}: friction of link '{link}' differs by direction ({first:g}, "
                f"{second:g}): the smaller is used"
            )
        found[link] = min(first, second)
    return found


def sdf_colliders(b: ModelBuilder, root: Element, files: Files) -> None:
    """The <collision> of each link with its <surface>."""
    names, found = _Names(), []
    for of, link in sdf_links(root):
        for element in link.all("collision"):
            shape = _read(element, files, _sdf_shape)
            if shape is None:
                kinds = [g.tag for e in element.all("geometry") for g in e.children]
                b.contact.unused(f"{element.where}: {', '.join(kinds) or 'nothing'} is not read")
                continue
            name = names.new(f"{of}::{element.text('name', '')}", of)
            try:
                material, mask = _sdf_surface(element.child("surface"))
            except ModelError as error:
                b.contact.unused(str(error))
                material, mask = Material(), ALL_BITS
            found.append(Collider(name, of, WORLD, shape, material, mask, mask))
    add_colliders(b, found)


def _sdf_shape(element: Element, files: Files) -> Shape | None:
    shape = sdf_shape(element, files)
    plane = element.required("geometry").child("plane")
    if shape is None and plane is not None:
        X, normal = pose_of(element.child("pose")), plane.child("normal")
        n = unit(np.array([0.0, 0, 1]) if normal is None else normal.values(3))
        turned = np.concatenate([perpendicular(n), n[None, :]]).T
        return Plane(position=X.r, rotation=X.E.T @ turned)
    return shape


def _sdf_surface(surface: Element | None) -> tuple[Material, int]:
    """Friction, torsional friction, restitution and bit mask."""

    def number(*path: str) -> float | None:
        at = surface
        for tag in path:
            at = None if at is None else at.child(tag)
        return None if at is None else at.value()

    mask = number("contact", "collide_bitmask")
    given = [x for tag in ("mu", "mu2") if (x := number("friction", "ode", tag)) is not None]
    restitution = number("bounce", "restitution_coefficient")
    material = Material(
        friction=min(given, default=None), restitution=restitution,
        torsional=number("friction", "torsional", "coefficient"),
    )  # fmt: skip
    return material, ALL_BITS if mask is None else int(mask)


def mjcf_colliders(
    b: ModelBuilder, m: Any, bodies: list[str], lost: Iterable[tuple[str, str]]
) -> None:
    """The geoms that may touch, the exclusions and the pairs of a compiled MuJoCo model.

    `lost` holds body and file of geoms that had a mesh and lost it.
    """
    names, found, of_geom = _Names(), [], {}
    paired = {int(g) for g in (*m.pair_geom1, *m.pair_geom2)}
    for g in range(m.ngeom):
        if not (m.geom_contype[g] or m.geom_conaffinity[g] or g in paired):
            continue
        shape = mjcf_shape(m, g) or _mjcf_ground(m, g)
        if shape is None:
            continue
        link = bodies[m.geom_bodyid[g]]
        of_geom[g] = names.new(m.geom(g).name, link)
        material = _mjcf_material(m.geom_friction[g], m.geom_condim[g], m.geom_priority[g])
        masks = (int(x[g]) & 0xFFFFFFFF for x in (m.geom_contype, m.geom_conaffinity))
        found.append(Collider(of_geom[g], link, WORLD, shape, material, *masks))
    for body, file in lost:
        if body in bodies:
            found.append(Collider(names.new("", body), body, WORLD, Mesh(file)))
    add_colliders(b, found)
    for signature in m.exclude_signature:
        b.contact.exclude(bodies[int(signature) >> 16], bodies[int(signature) & 0xFFFF])
    for k in range(m.npair):
        ends = [of_geom.get(int(g)) for g in (m.pair_geom1[k], m.pair_geom2[k])]
        if None not in ends:
            slide, other, *rest = m.pair_friction[k]
            if slide != other:
                b.contact.unused(
                    f"friction of pair {' and '.join(ends)} differs by direction ({slide:g}, "
                    f"{other:g}): the smaller is used"
                )
            friction = (min(slide, other), rest[0], rest[1])
            material = _mjcf_material(friction, m.pair_dim[k], 0)
            b.contact.allow(GivenPair(ends[0], ends[1], material))
    _name_softness(b, m, [*of_geom])


def _mjcf_material(friction, condim, priority) -> Material:
    slide, torsional, rolling = (float(x) for x in friction)
    return Material(slide, None, torsional, rolling, int(condim), int(priority))


def _mjcf_ground(m, g: int) -> Shape | None:
    at = {
        "position": np.array(m.geom_pos[g]),
        "rotation": quaternion_matrix(np.array(m.geom_quat[g])),
    }
    kind = int(m.geom_type[g])  # mjtGeom
    if kind == 0:
        return Plane(**at)
    if kind != 1:
        return None
    k = int(m.geom_dataid[g])
    rows, columns, start = int(m.hfield_nrow[k]), int(m.hfield_ncol[k]), int(m.hfield_adr[k])
    data = np.array(m.hfield_data[start : start + rows * columns]).reshape(rows, columns)
    x, y, top, _ = m.hfield_size[k]
    return HeightField(heights=data.T * top, size=np.array([2 * x, 2 * y]), **at)


def _name_softness(b: ModelBuilder, m, geoms: list[int]) -> None:
    """What makes MuJoCo's contacts soft, or act at a distance, where a file sets it."""
    for what, default in (("solref", (0.02, 1.0)), ("solimp", (0.9, 0.95, 0.001, 0.5, 2.0)),
                          ("margin", 0.0), ("gap", 0.0)):  # fmt: skip
        of_geoms = np.asarray(getattr(m, f"geom_{what}"))
        changed = [g for g in geoms if not np.array_equal(of_geoms[g], default)]
        if changed:
            shown = m.geom(changed[0]).name or f"number {changed[0]}"
            b.contact.unused(
                f"{what} of {len(changed)} geoms (the first: {shown}) is not used: contact is "
                "rigid here, and begins where shapes meet"
            )


__all__ = ["add_colliders", "mjcf_colliders", "sdf_colliders", "urdf_colliders"]
