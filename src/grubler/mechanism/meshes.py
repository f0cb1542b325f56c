"""Meshes read from their files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np


@lru_cache(maxsize=256)
def triangles(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and faces of a file, or None where it is damaged or its format is not known."""
    try:
        import trimesh

        mesh = trimesh.load(path, force="mesh", process=True)
        vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces)
    except Exception:  # readers of twenty formats: anything may come
        return None
    if not len(faces) or not np.isfinite(vertices).all():
        return None
    return vertices, faces
