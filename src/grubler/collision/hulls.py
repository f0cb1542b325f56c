"""Convex hulls of meshes, by few of their vertices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..errors import InputError
from ..mechanism.geometry import Hull, Mesh
from ..mechanism.meshes import triangles
from ..mechanism.parts import frozen

DIRECTIONS = 400  # in which a hull and its few vertices are compared
SAME = 1e-6  # of its size: vertices of a mesh nearer than this are one
FLAT = 1e-9  # of its size: a mesh thinner than this has no inside


def hull_of(mesh: Mesh, name: str, count: int, open_meshes: bool) -> tuple[Hull, float]:
    """The hull of at most `count` vertices of a mesh, chosen one after the other where the mesh
    reaches furthest beyond, and by how much it still does, m."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 4:
        raise InputError(f"hull_points is {count!r}: give a whole number of vertices >= 4")
    vertices = vertices_of(mesh, name, open_meshes)
    size = float(np.ptp(vertices, axis=0).max())
    chosen, rest = _reduced(vertices, count)
    hull = Hull(frozen(chosen), position=mesh.position, rotation=mesh.rotation)
    return hull, (rest if rest > SAME * size else 0.0)


def vertices_of(mesh: Any, name: str, open_meshes: bool) -> np.ndarray:
    """The vertices (n, 3) of a mesh that has an inside, and is closed unless it may be open."""
    vertices, faces = _read(mesh, name)
    size = float(np.ptp(vertices, axis=0).max())
    spread = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
    if not size > 0 or spread[-1] < FLAT * spread[0]:
        raise InputError(f"the mesh of shape '{name}' is flat: it has no inside; give it a box")
    if not open_meshes and (edges := open_edges(vertices, faces, SAME * size)):
        raise InputError(
            f"the mesh of shape '{name}' ('{mesh.name}') is open: {edges} of its edges do not "
            "belong to two triangles; close it, or take its hull with open_meshes=True"
        )
    return vertices


def _read(mesh: Mesh, name: str) -> tuple[np.ndarray, np.ndarray]:
    if mesh.vertices is not None:
        vertices = np.asarray(mesh.vertices, dtype=float)
        return vertices, np.asarray(mesh.faces, dtype=int).reshape(-1, 3)
    if mesh.path is None:
        raise InputError(
            f"the mesh '{mesh.name}' of shape '{name}' is missing: give package_dirs= to gb.load, "
            "another shape with shapes=, or leave it out with touching="
        )
    found = triangles(mesh.path)
    if found is None:
        raise InputError(
            f"the mesh of shape '{name}' cannot be read from {mesh.path}: it is damaged, of an "
            "unknown format, or trimesh is not installed (pip install 'grubler[view]')"
        )
    return found[0] * mesh.scale, found[1]


def open_edges(vertices: np.ndarray, faces: np.ndarray, near: float) -> int:
    """How many edges do not belong to two triangles, once vertices that near are one."""
    _, same = np.unique(np.round(vertices / near), axis=0, return_inverse=True)
    corners = same.reshape(-1)[faces]
    edges: Counter[tuple[int, int]] = Counter()
    for a, b, c in corners.tolist():
        if len({a, b, c}) == 3:
            edges.update((min(e), max(e)) for e in ((a, b), (b, c), (c, a)))
    return sum(n != 2 for n in edges.values()) if edges else 1


def _reduced(vertices: np.ndarray, count: int) -> tuple[np.ndarray, float]:
    """Few vertices that reach about as far as all of them in every direction."""
    d = _sphere(DIRECTIONS)
    reach = d @ vertices.T
    extreme = np.unique(reach.argmax(axis=1))
    reach, furthest = reach[:, extreme], reach.max(axis=1)
    chosen = [int(reach[0].argmax())]
    while len(chosen) < min(count, len(extreme)):
        missing = furthest - reach[:, chosen].max(axis=1)
        if missing.max() <= 0:
            break
        chosen.append(int(reach[missing.argmax()].argmax()))
    rest = float((furthest - reach[:, chosen].max(axis=1)).max())
    return vertices[extreme[chosen]], rest


def _sphere(n: int) -> np.ndarray:
    """Unit vectors spread evenly, along a spiral, and the six of the axes."""
    z = 1.0 - (2.0 * np.arange(n) + 1.0) / n
    angle = np.pi * (1.0 + np.sqrt(5.0)) * np.arange(n)
    across = np.sqrt(1.0 - z * z)
    spiral = np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=1)
    return np.concatenate([spiral, np.eye(3), -np.eye(3)])
