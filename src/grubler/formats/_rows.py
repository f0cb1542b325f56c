"""Loops given row by row, as HyRoDyn and RBDL do: unit axes of the six relative freedoms.

Angular-first rows become the loop joint whose kind leaves just the other freedoms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ModelError
from ..model.builder import ModelBuilder


def loop_kind(axes: list[np.ndarray]) -> tuple[str, tuple[float, ...] | None]:
    """The kind of loop joint and its axis whose rows are these axes (angular part first)."""
    chosen = set()
    for axis in axes:
        index = int(np.argmax(np.abs(axis)))
        if np.abs(np.delete(axis, index)).max() > 1e-9 or abs(axis[index]) < 1e-9:
            raise ModelError(f"constraint axis {axis.tolist()} is not along a coordinate")
        chosen.add(index)
    free = sorted(set(range(6)) - chosen)
    angular, linear = [i for i in free if i < 3], [i - 3 for i in free if i >= 3]
    unit = [tuple(float(i == j) for j in range(3)) for i in range(3)]
    if not free:
        return "fixed", None
    if not linear:
        if len(angular) == 3:
            return "ball", None
        if len(angular) == 1:
            return "revolute", unit[angular[0]]
    if len(linear) == 1 and not angular:
        return "prismatic", unit[linear[0]]
    if len(linear) == 1 and angular == linear:
        return "cylindrical", unit[linear[0]]
    if len(linear) == 2 and len(angular) == 1 and angular[0] not in linear:
        return "planar", unit[angular[0]]
    if len(angular) == 3 and len(linear) == 1:
        return "inline", unit[linear[0]]
    if len(angular) == 3 and len(linear) == 2:
        return "inplane", unit[3 - sum(linear)]
    raise ModelError(
        f"no loop joint leaves just the freedoms {free} of (RX RY RZ TX TY TZ): use a revolute, "
        "prismatic, cylindrical, planar, ball or fixed closure, or a point on a line or plane"
    )


def add_rows(b: ModelBuilder, name: str, axes: list[Any], links: Any, on_P: Any, on_S: Any) -> None:
    """A loop between frames (position, rotation) on two bodies that keeps the given rows."""
    kind, axis = loop_kind([np.asarray(a, float) for a in axes])
    (p, P), (s, S) = on_P, on_S
    options = {} if axis is None else {"axis": axis}
    b.add_loop(
        name, kind, *links, predecessor_xyz=p, predecessor_R=P, successor_xyz=s, successor_R=S,
        **options,
    )  # fmt: skip
