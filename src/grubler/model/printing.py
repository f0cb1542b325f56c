"""A model as text: its tree, loops, clusters and mobility."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..mechanism.loops.modules import module_name
from ..mechanism.parts import WORLD

if TYPE_CHECKING:
    from . import Model


def describe(model: Model) -> str:
    """The whole description that print(model) shows."""
    total = sum(body.mass for body in model.bodies)
    lines = [f"{model.name}: {len(model.bodies)} bodies, {total:.4g} kg", "", "tree"]
    lines += _tree(model, WORLD, "  ")
    if model.loops:
        lines += ["", f"loops ({len(model.loops)})"]
        lines += [f"  {loop.name}: {loop.describe()}" for loop in model.loops]
    lines += ["", f"clusters ({len(model.clusters)})", *_clusters(model)]
    lines += ["", _mobility(model), *(f"note: {note}" for note in model.notes)]
    return "\n".join(lines)


def _tree(model: Model, parent: int, indent: str) -> list[str]:
    lines = []
    for body in model.bodies:
        if body.parent == parent:
            joint = body.joint
            lines.append(f"{indent}{body.name}  ({joint.kind} '{joint.name}', {body.mass:.4g} kg)")
            lines += _tree(model, body.index, indent + "  ")
    return lines


def _clusters(model: Model) -> list[str]:
    lines = []
    for cluster in model.clusters:
        names = ", ".join(model.bodies[i].name for i in cluster.bodies)
        parent = "world" if cluster.parent is None else f"cluster {cluster.parent}"
        line = f"  {cluster.index}: [{names}] on {parent}, {cluster.nv} dof"
        joint = cluster.embedding
        if joint.implicit:
            rows = sum(loop.rows for loop in cluster.loops)
            independent = ", ".join(joint.independent_names)
            line += f"; implicit, {rows} rows of rank {len(joint.kept)}, independent: {independent}"
        elif cluster.loops:
            how = module_name(getattr(joint, "steps", ()))
            independent = ", ".join(b.joint.name for b in joint.coordinates)
            line += f"; explicit ({how}), independent: {independent}"
        lines.append(line)
    return lines


def _mobility(model: Model) -> str:
    rows = sum(loop.rows for loop in model.loops)
    counted = model.nv_span - rows
    line = f"mobility {model.nv}: {model.nv_span} tree freedoms, {rows} rows of loops"
    if counted != model.nv:
        line += f" (Grübler's count gives {counted}: {model.nv - counted} rows are redundant)"
    return line
