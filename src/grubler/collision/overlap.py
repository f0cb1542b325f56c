"""Pairs of shapes that overlap whatever the mechanism does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..algebra.spatial import Transform
from ..algorithms.kinematics import body_transforms
from ..algorithms.sweep import outward
from ..mechanism.colliders import Collider
from ..mechanism.parts import WORLD
from ..model import Model
from .closed_forms import touches
from .placed import Placed

STATES = 16  # random configurations in each of which a pair must overlap to be left out
Pair = tuple[Collider, Collider]


def overlapping(model: Model, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """The pairs that overlap in every sampled configuration, and those of the others that overlap
    in the neutral one. Bodies that float may be anywhere: they and the world are not looked at."""
    left = [pair for pair in pairs if not _floats(model, pair)]
    if not left:
        return [], []
    first = [pair for pair in left if _overlap(_poses(model, model.neutral()), pair)]
    always = first
    for seed in range(STATES if first else 0):
        poses = _poses(model, model.random_state(seed)[0])
        always = [pair for pair in always if _overlap(poses, pair)]
    return always, [pair for pair in first if pair not in always]


def _poses(model: Model, q) -> dict[int, Transform]:
    return body_transforms(outward(model, q, keep_frame=None))


def _overlap(poses, pair: Pair) -> bool:
    a, b = (Placed.on(c.shape, poses[c.body].E.T, poses[c.body].r) for c in pair)
    return bool(min(float(np.asarray(t.gap)) for t in touches(a, b)) <= 0.0)


def _floats(model: Model, pair: Pair) -> bool:
    """Whether one is fixed to the world and a free joint carries the other."""
    if WORLD not in (pair[0].body, pair[1].body):
        return False
    i = max(pair[0].body, pair[1].body)
    while i != WORLD:
        if model.bodies[i].joint.kind == "free":
            return True
        i = model.bodies[i].parent
    return False
