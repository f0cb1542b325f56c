"""Meshes from their files, and round shapes as triangles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

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
                triangles = None if shape.path is None else _read(shape.path)
                if triangles is None:
                    missing[shape.name] = None
                    continue
                vertices, faces = triangles
                shape = replace(shape, vertices=vertices * shape.scale, faces=faces)
            kept.append(shape)
        if kept:
            found[body] = tuple(kept)
    return found, tuple(missing)


@lru_cache(maxsize=256)
def _read(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and faces of a file, or None where it is damaged or its format is not known."""
    try:
        import trimesh

        mesh = trimesh.load(path, force="mesh", process=True)
        vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces)
    except Exception:  # readers of twenty formats: anything may come, and a look is no necessity
        return None
    if not len(faces) or not np.isfinite(vertices).all():
        return None
    return vertices, faces


def capsule(radius: float, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of a capsule along z about the origin."""
    import trimesh

    mesh = trimesh.creation.capsule(height=length, radius=radius, count=[24, 24])
    vertices = np.asarray(mesh.vertices)
    return vertices - (vertices.min(axis=0) + vertices.max(axis=0)) / 2, np.asarray(mesh.faces)
