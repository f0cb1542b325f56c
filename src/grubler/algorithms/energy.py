"""Kinetic and potential energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .kinematics import body_transforms
from .sweep import outward

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


class Energy(NamedTuple):
    """Energies in J; the potential is zero where the centre of mass is at the world's origin."""

    kinetic: float
    potential: float


def energy(model: Model, q: Array | None, v: Array | None) -> Energy:
    """The kinetic energy ½ sum v_i' I_i v_i and the potential energy -sum m_i g . c_i."""
    sweep = outward(model, q, v, keep_frame=None)
    poses = body_transforms(sweep)
    kinetic, potential = 0.0, 0.0
    for state in sweep:
        if state.R is not None:
            v_k = v[state.cluster.v]
            kinetic = kinetic + 0.5 * (v_k @ (state.R @ v_k))
        for index, vi in zip(state.cluster.bodies, state.split(state.v), strict=True):
            body = model.bodies[index]
            kinetic = kinetic + 0.5 * (vi @ (body.spatial @ vi))
            com = poses[index].r + poses[index].E.T @ body.com
            potential = potential - body.mass * (np.asarray(model.gravity) @ com)
    return Energy(kinetic, potential)
