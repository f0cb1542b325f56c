"""How valid a configuration is, as outputs that compile: what the checks of NumPy calls look at.

Compiled code takes any q. At a q that is not valid its results are finite, plausible and wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..coordinates.newton import largest_entry, reversal

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


class Validity(NamedTuple):
    """`lengths` (quaternions,) of the quaternions in q, 1 where valid; `gaps` (loops,) the largest
    residual of each loop in m or rad; `conditions` (clusters with loops,) of the partitions:
    ‖K_d‖ ‖K_d⁻¹‖ in the Frobenius norm, or for a closed form one over its distance from a dead
    point (the sine of the angle at which its bars meet); 1 for gears."""

    lengths: np.ndarray
    gaps: np.ndarray
    conditions: np.ndarray


def validity(model: Model, q: Array) -> Validity:
    lengths, gaps, conditions = [], {}, []
    for cluster in model.clusters:
        joint, own = cluster.embedding, q[cluster.q]
        lengths += quaternion_lengths(joint, own)
        if not cluster.loops:
            continue
        positions = joint.positions(own)
        gaps |= {loop.name: _gap(loop, positions) for loop in cluster.loops}
        conditions.append(joint.condition(positions))
    in_order = [gaps[loop.name] for loop in model.loops]
    return Validity(_stacked(lengths), _stacked(in_order), _stacked(conditions))


def _gap(loop, positions):
    """The largest of a loop's equations beyond its slack; π where it is closed the wrong way."""
    beyond = np.maximum(np.abs(loop.equations(positions)) - loop.slack, 0.0)
    return np.maximum(largest_entry(beyond), reversal([loop], positions))


def quaternion_lengths(joint: Any, q: Array) -> list[Any]:
    """The length of each quaternion in a cluster's part of q."""
    parts = [q[place] for place in joint.layout.quaternions.values()]
    return [np.sqrt(sum(x[-k] * x[-k] for k in range(1, 5))) for x in parts]


def _stacked(values: list[Any]):
    return np.stack(values) if values else np.zeros(0)
