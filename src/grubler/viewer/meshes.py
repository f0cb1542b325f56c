"""Meshes from their files, and round shapes as triangles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ..mechanism.meshes import triangles
from .shapes import Mesh, Shape


def loaded(
    geometry: Mapping[int, Iterable[Shape]],
) -> tuple[dict[int, tuple[Shape, ...]], tuple[str, ...]]:
    """Shapes by body with their triangles read, and the names of meshes that cannot be.

    A body that is left without any shape is left out: it is drawn by its inertia.
    """
    found: dict[int, tuple[Shape, ...]] = {}
    missing: dict[str, None] = {}
    for body, shapes in geometry.items():
        kept = []
        for shape in shapes:
            if isinstance(shape, Mesh) and shape.vertices is None:
                read = None if shape.path is None else triangles(shape.path)
                if read is None:
                    missing[shape.name] = None
                    continue
                vertices, faces = read
                shape = replace(shape, vertices=vertices * shape.scale, faces=faces)
            kept.append(shape)
        if kept:
            found[body] = tuple(kept)
    return found, tuple(missing)


def capsule(radius: float, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of a capsule along z about the origin."""
    import trimesh

    mesh = trimesh.creation.capsule(height=length, radius=radius, count=[24, 24])
    vertices = np.asarray(mesh.vertices)
    return vertices - (vertices.min(axis=0) + vertices.max(axis=0)) / 2, np.asarray(mesh.faces)
