"""Sizes that tell where a cluster's coordinates are ill-conditioned, from its regular states."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..coordinates.assembly import close
from ..errors import ClosureError

SMALLEST = 0.1  # of their typical size: pivots of K_d below leave the model's coordinates
SMALL = 0.4  # of their typical size: so do pivots below that change much within a step
CHANGE = 0.05  # relative change of a pivot in a step, beyond which the step is not well resolved
STEEPEST = 100.0  # times their size at the reference: slopes of a closed form at a dead point
SAMPLES = 8  # states whose pivots are looked at


def typical_sizes(joint: Any, reference: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the pivots of K_d in the order of elimination, and of the kept rows of K, of an
    implicit cluster: the largest among the reference and some neighbours."""
    pivots, rows = np.zeros(len(joint.dependent)), np.zeros(len(joint.kept))
    for positions in _neighbours(joint, reference):
        with np.errstate(all="ignore"):
            found = np.abs(joint.pivots(positions)[0])
        pivots = np.maximum(pivots, np.where(np.isfinite(found), found, 0.0))
        K, _ = joint.constraint(positions, None)
        rows = np.maximum(rows, np.linalg.norm(K[list(joint.kept)], axis=1))
    return pivots, rows


def _neighbours(joint, reference):
    """The reference and some closed states around it."""
    start = {body.index: reference[body.index] for body in joint.bodies}
    yield start
    rng = np.random.default_rng(0)
    for _ in range(SAMPLES):
        step = np.zeros(joint.nv_span)
        step[list(joint.independent)] = rng.uniform(-0.5, 0.5, joint.nv)
        moved = joint.spanning.integrate(start, step)
        try:
            yield close(joint.bodies, joint.loops, moved, joint.independent, restarts=0)
        except ClosureError:
            continue


def slope(joint: Any, reference: Any) -> float:
    """The size of G at the reference, at least 1."""
    positions = {body.index: reference[body.index] for body in joint.bodies}
    G, _, _ = joint.velocity_map(positions, None)
    return max(1.0, float(np.linalg.norm(G)))


__all__ = ["slope", "typical_sizes"]
