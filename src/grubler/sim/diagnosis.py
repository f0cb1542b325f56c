"""Why a simulation went wrong: loops that opened, coordinates that met their singularity."""

from __future__ import annotations

import numpy as np

from ..assembly import TOLERANCE
from ..model import Model

EVERY = 64  # steps between two looks at the loops
OPEN = {"float64": TOLERANCE, "float32": 1e-3}  # m or rad: beyond rounding of closed loops
STEEP = 20.0  # dependent joints this much faster than independent ones: near a singularity
LOOKED_AT = 40  # states before the end


def first_open(model: Model, q: np.ndarray, start: int, stop: int, dtype: str) -> int | None:
    """The first state of start..stop-1 with an open loop, looking at the last one first.

    Of a batch, the robot that is furthest from where it was a step ago is looked at.
    """
    if not any(cluster.embedding.implicit for cluster in model.clusters):
        return None
    states = q[start:stop]
    if states.ndim == 3 and len(states):
        robot = int(np.argmax(np.abs(states[-1] - states[0]).max(axis=-1)))
        states = states[:, robot]
    if not len(states) or model.loop_gap(states[-1]) <= OPEN[dtype]:
        return None
    return start + next(i for i, x in enumerate(states) if model.loop_gap(x) > OPEN[dtype])


def singular_loop(model: Model, q: np.ndarray) -> str:
    """Which coordinates were near a singularity in the last states, in words; empty if none."""
    states = q[-LOOKED_AT:]
    for state in states.reshape(-1, model.nq)[-LOOKED_AT:]:
        for cluster in model.clusters:
            joint = cluster.embedding
            if not joint.implicit:
                continue
            with np.errstate(all="ignore"):
                G = joint.velocity_map(joint.positions(state[cluster.q]), None)[0]
            if not np.abs(G).max(initial=0.0) <= STEEP:  # NaN is singular, too
                names = [n for b in joint.bodies for n in b.joint.names(b.joint.motion.labels)]
                chosen = ", ".join(names[c] for c in joint.independent)
                return (
                    f"; before that, the coordinates of loop '{joint.loops[0].name}' ({chosen}) "
                    "came near a singularity of theirs: choose others with "
                    "gb.repartition(model, q, independent=[...])"
                )
    return ""
