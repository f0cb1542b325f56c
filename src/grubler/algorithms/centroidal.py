"""Centroidal quantities: centre of mass with its motion, momentum about it and its matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.linalg import joined
from ..algebra.spatial import Transform
from .c_crba import composite_inertias
from .kinematics import body_transforms
from .newton_euler import accelerated
from .sweep import outward

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array

    pass


class Centroidal(NamedTuple):
    """`com` (3,) in the world; `momentum` (6,) [angular about the com; linear] in world axes, None
    without v; `matrix` (6, nv) with momentum = matrix @ v."""

    com: np.ndarray
    momentum: np.ndarray | None
    matrix: np.ndarray


def com(model: Model, q: Any) -> Any:
    """The centre of mass (3,) in the world."""
    return _com(model, body_transforms(outward(model, q, keep_frame=None)))


def _com(model, poses):
    moments = [b.mass * (poses[b.index].r + poses[b.index].E.T @ b.com) for b in model.bodies]
    return sum(moments[1:], moments[0]) / model.mass if moments else np.zeros(3)


def com_jacobian(model: Model, q: Any) -> Any:
    """J (3, nv): the velocity of the centre of mass is J v."""
    return centroidal(model, q).matrix[3:] / model.mass


def com_acceleration(model: Model, q: Array, v: Array | None, a: Array | None) -> Any:
    """The acceleration of the centre of mass (3,) in the world; a=None: at a = 0, dJ/dt v."""
    sweep = outward(model, q, v, keep_frame=None)
    poses, motion = body_transforms(sweep), accelerated(sweep, a).bodies
    total = np.zeros(3)
    for body in model.bodies:
        own = motion[body.index]  # less gravity
        local = own.A + own.U @ body.com
        total = total + body.mass * poses[body.index].rotate_back(local)
    return total / model.mass + model.gravity


def centroidal(model: Model, q: Array, v: Array | None = None) -> Centroidal:
    """Centre of mass, centroidal momentum (given v) and its matrix."""
    sweep = outward(model, q, keep_frame=None)
    poses = body_transforms(sweep)
    com = _com(model, poses)
    centre = Transform(np.eye(3), com)  # from the world into the centroidal frame
    IC = composite_inertias(sweep)
    columns = []
    for state in sweep:
        pieces = []
        for body, S in zip(state.cluster.bodies, state.split(state.S), strict=True):
            F = IC[body] @ S  # momentum of all that hangs on this body
            pieces.append(poses[body].forces_back(F))
        columns.append(sum(pieces))
    matrix = centre.inverse().forces_back(joined(columns, (6, 0), axis=1))
    return Centroidal(com, None if v is None else matrix @ v, matrix)
