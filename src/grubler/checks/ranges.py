"""Joints that stand beyond their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..coordinates.limits import excess
from ..model import Model


@dataclass(frozen=True)
class BeyondLimits:
    """A joint whose neutral position is beyond its limits, in rad or m."""

    joint: str
    position: float
    lower: float
    upper: float


def beyond_limits(model: Model, positions: dict[Any, Any]) -> list[BeyondLimits]:
    """The joints that stand beyond their limits at positions by body index."""
    joints = [
        (model.bodies[i].joint, float(positions[i][0])) for i in excess(model.bodies, positions)
    ]
    return [BeyondLimits(joint.name, at, *joint.limits) for joint, at in joints]
