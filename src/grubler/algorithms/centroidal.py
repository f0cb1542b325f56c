"""Centroidal quantities: centre of mass, momentum about it, and the centroidal momentum matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..algebra.linalg import joined
from ..algebra.spatial import Transform
from .c_crba import composite_inertias
from .first_pass import first_pass
from .kinematics import body_transforms

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


class Centroidal(NamedTuple):
    """`com` (3,) in the world; `momentum` (6,) [angular about the com; linear] in world axes, None
    without v; `matrix` (6, nv) with momentum = matrix @ v."""

    com: np.ndarray
    momentum: np.ndarray | None
    matrix: np.ndarray


def centroidal(model: Model, q: Array | None, v: Array | None = None) -> Centroidal:
    """Centre of mass, centroidal momentum (given v) and its matrix."""
    states = first_pass(model, q, posed=None)
    poses = body_transforms(model, states)
    total = sum(body.mass for body in model.bodies)
    moments = [b.mass * (poses[b.index].r + poses[b.index].E.T @ b.com) for b in model.bodies]
    com = sum(moments[1:], moments[0]) / total if moments else np.zeros(3)
    centre = Transform(np.eye(3), com)  # from the world into the centroidal frame
    IC = composite_inertias(model, states)
    columns = []
    for state in states:
        pieces = []
        for body, S in zip(state.cluster.bodies, state.split(state.S), strict=True):
            F = IC[body] @ S  # momentum of all that hangs on this body
            pieces.append(poses[body].forces_back(F))
        columns.append(sum(pieces[1:], pieces[0]))
    matrix = centre.inverse().forces_back(joined(columns, (6, 0), axis=1))
    return Centroidal(com, None if v is None else matrix @ v, matrix)
