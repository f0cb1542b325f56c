"""The words beside the scene: cluster tree, loop gaps, joint positions; as small pieces of HTML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

import numpy as np

from ..model import Model
from . import palette
from .outline import rotors
from .palette import Colour
from .scene import Snapshot

GREY = "color:#7b828c"


def heading(model: Model, missing: Sequence[str] = ()) -> str:
    facts = [
        _count(len(model.bodies), "body", "bodies"),
        _count(len(model.loops), "loop"),
        _count(len(model.clusters), "cluster"),
        f"{model.nv} dof",
    ]
    text = f"<b>{escape(model.name)}</b><br><span style='{GREY}'>{' · '.join(facts)}"
    if missing:
        few = ", ".join(escape(name) for name in missing[:3]) + (
            ", ..." if len(missing) > 3 else ""
        )
        text += f"<br>{_count(len(missing), 'mesh', 'meshes')} not found ({few})"
    return _block(f"{text}</span>")


def status(snapshot: Snapshot, message: str = "") -> str:
    """The largest loop gap, which loop is open, and where a slider had to stop."""
    if not snapshot.loops:
        return _block(f"<span style='{GREY}'>no loops</span>")
    worst = max(snapshot.loops, key=lambda line: line.gap)
    if worst.closed:
        text = f"loop gap <b>{snapshot.gap:.2g}</b> <span style='{GREY}'>m or rad, closed</span>"
    else:
        text = (
            f"<b style='color:{palette.css(palette.OPEN)}'>loop '{escape(worst.name)}' is open by "
        )
        text += f"{escape(worst.gap_text)}</b>"
    if message:
        text += f"<br><b style='color:{palette.css(palette.OPEN)}'>out of reach</b><br>"
        text += escape(message)
    return _block(text)


def joint_table(values: Mapping[str, np.ndarray], beyond: Collection[str] = ()) -> str:
    """Joint names and positions, in rad and m; those `beyond` their limits in the colour of open
    loops."""
    if not values:
        return _block(f"<span style='{GREY}'>none</span>")
    alarm = f";color:{palette.css(palette.OPEN)}"
    rows = "".join(
        f"<tr><td style='padding-right:1em'>{escape(name)}</td>"
        f"<td data-joint='{escape(name, quote=True)}' style='text-align:right;"
        f"font-variant-numeric:tabular-nums{alarm if name in beyond else ''}'>"
        f"{_numbers(value)}</td></tr>"
        for name, value in values.items()
    )
    return _block(f"<table style='width:100%'>{rows}</table>")


def cluster_tree(model: Model, colours: Sequence[Colour]) -> str:
    """The tree of clusters, indented, each with its colour, bodies, freedoms and loops."""
    spinning = rotors(model)
    children: dict[int | None, list[int]] = {}
    for cluster in model.clusters:
        children.setdefault(cluster.parent, []).append(cluster.index)
    lines = [f"<div style='{GREY}'>world</div>"]

    def add(index: int, depth: int) -> None:
        lines.append(_cluster_line(model, index, depth, colours[index], spinning))
        for child in children.get(index, []):
            add(child, depth + 1)

    for root in children.get(None, []):
        add(root, 1)
    return _block("".join(lines))


def _cluster_line(model: Model, index: int, depth: int, colour: Colour, spinning) -> str:
    cluster = model.clusters[index]
    names = [
        f"<span style='color:{palette.css(palette.darker(colour))}'>{_soft(model.bodies[i].name)}"
        "</span>" if i in spinning else _soft(model.bodies[i].name)
        for i in cluster.bodies
    ]  # fmt: skip
    kind = ""
    if cluster.loops:
        kind = ", implicit" if cluster.embedding.implicit else ", explicit"
        kind += f": {', '.join(_soft(loop.name) for loop in cluster.loops)}"
    swatch = (
        "<span style='display:inline-block;width:.75em;height:.75em;border-radius:2px;"
        f"margin-right:.45em;background:{palette.css(colour)}'></span>"
    )
    return (
        f"<div style='margin-left:{0.9 * depth:.1f}em;padding-left:.5em;"
        f"border-left:1px solid #d5d9df'>{swatch}{', '.join(names)}"
        f"<div style='{GREY};font-size:.85em'>{cluster.nv} dof{kind}</div></div>"
    )


def _soft(name: str) -> str:
    """A name that may break after its underscores: panels are narrow."""
    return escape(name).replace("_", "_<wbr>")


def _numbers(value) -> str:
    return " ".join(f"{x:+.4f}" for x in np.atleast_1d(value))


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _block(content: str) -> str:
    return f"<div style='padding:.2em .9em;font-size:.85em;line-height:1.45'>{content}</div>"
