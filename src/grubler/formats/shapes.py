"""What a description says of the look of its links: boxes, cylinders, spheres, capsules, meshes.

Visual shapes where a link has any, else its collision shapes. They play no part in the dynamics:
a mesh that is not there is remembered without a path, and a shape that cannot be read is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.spatial import quaternion_matrix
from ..errors import ModelError
from ..mechanism.geometry import Ball, Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape
from ..model import Model
from ._files import Files
from ._geometry import origin
from ._report import Complaints
from ._xml import Element
from .sdf_frames import pose_of


def attached(model: Model, shapes: Mapping[str, Iterable[Shape]]) -> Model:
    """The model with shapes given by link, also by links that were welded to a body."""
    by_body: dict[int, list[Shape]] = {}
    frames = {frame.name: frame for frame in model.frames}
    for link, given in shapes.items():
        try:
            frame = frames.get(link) or model.frame(link)
        except ModelError:
            continue  # the world's own, or a link that is no part of the model
        by_body.setdefault(frame.body, []).extend(s.carried(frame.placement) for s in given)
    return replace(model, geometry={i: tuple(x) for i, x in by_body.items()})


def _mesh(files: Files, uri: str, scale: np.ndarray) -> Mesh:
    return Mesh(uri.rpartition("/")[2], files.mesh(uri), scale)


def urdf_shapes(robot: Element, files: Files, complaints: Complaints) -> dict[str, list[Shape]]:
    """Shapes by link."""
    return {
        link.text("name"): _chosen(link, lambda e: urdf_shape(e, files), complaints)
        for link in robot.all("link")
        if "name" in link.attributes
    }


def urdf_shape(element: Element, files: Files) -> Shape | None:
    """The shape of a <visual> or <collision>, or None for one of no known kind."""
    position, rotation = origin(element)
    at = {"position": position, "rotation": rotation}
    for shape in element.required("geometry").children:
        match shape.tag:
            case "box":
                return Box(shape.numbers("size", 3), **at)
            case "cylinder" | "capsule":
                kind = Cylinder if shape.tag == "cylinder" else Capsule
                return kind(shape.number("radius"), shape.number("length"), **at)
            case "sphere":
                return Ball(shape.number("radius"), **at)
            case "mesh":
                scale = shape.numbers("scale", 3, "1 1 1")
                return replace(_mesh(files, shape.text("filename"), scale), **at)
    return None


def sdf_shapes(root: Element, files: Files, complaints: Complaints) -> dict[str, list[Shape]]:
    """Shapes by link, under the scoped names that the reader gives them."""
    return {
        name: _chosen(link, lambda e: sdf_shape(e, files), complaints)
        for name, link in sdf_links(root)
    }


def sdf_shape(element: Element, files: Files) -> Shape | None:
    """The shape of a <visual> or <collision>, or None for one of no known kind."""
    X = pose_of(element.child("pose"))
    at = {"position": X.r, "rotation": X.E.T}
    for shape in element.required("geometry").children:
        match shape.tag:
            case "box":
                return Box(shape.required("size").values(3), **at)
            case "cylinder" | "capsule":
                kind = Cylinder if shape.tag == "cylinder" else Capsule
                sizes = (shape.required(k).value() for k in ("radius", "length"))
                return kind(*sizes, **at)
            case "sphere":
                return Ball(shape.required("radius").value(), **at)
            case "ellipsoid":
                return Ellipsoid(shape.required("radii").values(3), **at)
            case "mesh":
                given = shape.child("scale")
                scale = np.ones(3) if given is None else given.values(3, "1 1 1")
                uri = shape.required("uri").content.strip()
                return replace(_mesh(files, uri, scale), **at)
    return None


def sdf_links(root: Element) -> Iterator[tuple[str, Element]]:
    worlds = root.all("world")
    models = [*root.all("model"), *(m for world in worlds for m in world.all("model"))]

    def links(model: Element, scope: str):
        for link in model.all("link"):
            yield scope + link.text("name"), link
        for child in model.all("model"):
            yield from links(child, f"{scope}{child.text('name')}::")

    for model in models:
        yield from links(model, f"{model.text('name')}::" if len(models) > 1 else "")


def _chosen(link: Element, read, complaints: Complaints) -> list[Shape]:
    """The visual shapes of a link if any of them can be drawn, else its collision shapes."""
    kinds = []
    for tag in ("visual", "collision"):
        found = []
        for element in link.all(tag):
            try:
                shape = read(element)
            except ModelError as error:
                complaints.add(f"the shape is not drawn: {error}", element)
                continue
            if shape is not None:
                found.append(shape)
        kinds.append(found)
    visual, collision = kinds
    lost = [s for s in visual if isinstance(s, Mesh) and s.path is None]
    return collision if not visual or (lost and collision) else visual


def mjcf_shapes(m: Any, names: Iterable[str], lost: set[str]) -> dict[str, list[Shape]]:
    """Shapes by body of a compiled MuJoCo model: those that do not collide, if there are any.

    The geoms named in `lost` have no mesh.
    """
    seen: dict[str, list[Shape]] = {}
    touched: dict[str, list[Shape]] = {}
    names = list(names)
    for g in range(m.ngeom):
        shape = None if m.geom(g).name in lost else mjcf_shape(m, g)
        if shape is not None:
            visual = m.geom_contype[g] == 0 and m.geom_conaffinity[g] == 0
            kind = seen if visual else touched
            kind.setdefault(names[m.geom_bodyid[g]], []).append(shape)
    return touched | seen


def mjcf_shape(m: Any, g: int) -> Shape | None:
    """The shape of a geom, or None for the ground: a plane or a height field."""
    size = np.array(m.geom_size[g])
    at = {
        "position": np.array(m.geom_pos[g]),
        "rotation": quaternion_matrix(np.array(m.geom_quat[g])),
    }
    match int(m.geom_type[g]):  # mjtGeom
        case 2:
            return Ball(float(size[0]), **at)
        case 3:
            return Capsule(float(size[0]), 2 * float(size[1]), **at)
        case 4:
            return Ellipsoid(size, **at)
        case 5:
            return Cylinder(float(size[0]), 2 * float(size[1]), **at)
        case 6:
            return Box(2 * size, **at)
        case 7:
            k = int(m.geom_dataid[g])
            v, f = m.mesh_vertadr[k], m.mesh_faceadr[k]
            return Mesh(
                m.mesh(k).name,
                vertices=np.array(m.mesh_vert[v : v + m.mesh_vertnum[k]]),
                faces=np.array(m.mesh_face[f : f + m.mesh_facenum[k]]),
                **at,
            )
    return None
