"""A scene in the browser: shapes under one frame a body, loops as lines, moved by snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algebra.spatial import matrix_quaternion
from ..mechanism.parts import WORLD
from . import palette
from .meshes import capsule
from .outline import FIELD_OF_VIEW, Room
from .scene import LAYERS, LoopLine, Part, Scene, Snapshot
from .shapes import Ball, Box, Capsule, Ellipsoid, Mesh

ROOT = "/robot"


class Drawing:
    """Handles of everything that was drawn; `show` moves them, `show_layer` hides them."""

    server: Any
    scene: Scene

    def __init__(self, server: Any, scene: Scene, room: Room):
        self.server, self.scene = server, scene
        self.layers: dict[str, list[Any]] = {layer: [] for layer in LAYERS}
        api = server.scene
        self.root: Any = api.add_frame(ROOT, show_axes=False)
        self.frames: dict[int, Any] = {
            body.index: api.add_frame(_path(scene, body.index), show_axes=False)
            for body in scene.model.bodies
        }
        for number, part in enumerate(scene.parts):
            self.layers[part.layer].append(self._add(number, part))
        self._lines: dict[str, object] = {}
        self._labels: dict[str, object] = {}
        self._set_stage(room)

    def _add(self, number: int, part: Part):
        """One shape; this is where a new kind of shape is taught to the browser."""
        api, shape = self.server.scene, part.shape
        name = f"{_path(self.scene, part.body)}/{number} {_clean(part.name)}"
        look = {"color": part.colour, "opacity": part.opacity, "position": shape.position}
        look["cast_shadow"] = part.opacity is None
        look["wxyz"] = matrix_quaternion(shape.rotation)
        match shape:
            case Ball():
                return api.add_icosphere(name, radius=shape.radius, **look)
            case Ellipsoid():
                return api.add_icosphere(name, radius=1.0, scale=tuple(shape.radii), **look)
            case Box():
                return api.add_box(name, dimensions=tuple(shape.size), **look)
            case Capsule():
                return api.add_mesh_simple(name, *capsule(shape.radius, shape.length), **look)
            case Mesh():
                mirrored = np.prod(shape.scale) < 0  # turns the triangles inside out
                look["side"] = "double" if mirrored else "front"
                return api.add_mesh_simple(name, shape.vertices, shape.faces, **look)
        return api.add_cylinder(name, radius=shape.radius, height=shape.length, **look)

    def _set_stage(self, room: Room) -> None:
        outline, api = self.scene.outline, self.server.scene
        cell = 10.0 ** np.floor(np.log10(outline.size))
        cell = cell / 5 if outline.size / cell < 3 else cell / 2
        ground = np.array([*room.centre[:2], room.lower[2] - 2 * outline.radius])
        api.add_grid(
            "/ground", width=24 * cell, height=24 * cell, cell_size=cell, section_size=4 * cell,
            cell_color=(222, 226, 232), section_color=(190, 196, 205), position=ground,
            shadow_opacity=0.1,
        )  # fmt: skip
        camera = self.server.initial_camera
        camera.position, camera.look_at = room.camera(), room.centre
        camera.fov = FIELD_OF_VIEW
        camera.near, camera.far = 0.01 * outline.size, 100.0 * outline.size

    def show(self, snapshot: Snapshot, hold: np.ndarray | None = None) -> None:
        """Move everything to a snapshot; `hold` is a displacement to take back, as a camera that
        travels along would."""
        with self.server.atomic():
            self.root.position = np.zeros(3) if hold is None else -np.asarray(hold)
            for i, frame in self.frames.items():
                frame.wxyz = matrix_quaternion(snapshot.rotation[i])
                frame.position = snapshot.position[i]
            for line in snapshot.loops:
                self._show_loop(line)

    def _show_loop(self, line: LoopLine) -> None:
        shown = self._lines.get(line.name)
        colour = line.colour if line.closed else palette.OPEN
        radius = self.scene.outline.radius
        if shown is None:
            shown = self.server.scene.add_line_segments(
                f"{ROOT}/loops/{_clean(line.name)}", line.segments, colour,
                thickness=(0.8 if line.joint else 0.35) * radius,
            )  # fmt: skip
            self._lines[line.name] = shown
            self.layers["loops"].append(shown)
        else:
            shown.points = line.segments.astype(np.float32)
            shown.colors = np.array(colour, dtype=np.uint8)
        label = self._labels.get(line.name)
        if line.closed:
            if label is not None:
                label.visible = False
            return
        if label is None:
            label = self.server.scene.add_label(f"{ROOT}/gaps/{_clean(line.name)}", "")
            self._labels[line.name] = label
        label.text = f"{line.name}: {line.gap_text}"
        label.position = line.points.mean(axis=0)
        label.visible = True

    def show_layer(self, layer: str, visible: bool) -> None:
        for handle in self.layers[layer]:
            handle.visible = visible


def _path(scene: Scene, body: int) -> str:
    if body == WORLD:
        return f"{ROOT}/world"
    return f"{ROOT}/{body} {_clean(scene.model.bodies[body].name)}"


def _clean(name: str) -> str:
    """Slashes in a name would make a path of it."""
    return name.replace("/", "|")
