"""Forward kinematics: poses, velocities and accelerations of bodies; frame Jacobians."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.linalg import joined, stacked
from ..algebra.spatial import Transform
from ..mechanism.parts import WORLD
from .first_pass import accelerations, first_pass, locate

if TYPE_CHECKING:
    from ..mechanism.parts import Frame
    from ..model.model import Model
    from ..typing import Array
    from .first_pass import ClusterState


class Kinematics(NamedTuple):
    """The motion of every body, in the model's body order.

    `rotation` (nb, 3, 3) takes body to world coordinates, `position` (nb, 3) is the body origin in
    the world. `velocity`, `acceleration` (nb, 6) are spatial, in body coordinates, angular first;
    the acceleration is the true one, without the gravity that the dynamics adds at the base. They
    are None where v or a was not given.
    """

    rotation: np.ndarray
    position: np.ndarray
    velocity: np.ndarray | None
    acceleration: np.ndarray | None


def kinematics(
    model: Model, q: Array, v: Array | None = None, a: Array | None = None
) -> Kinematics:
    """Poses of all bodies, with velocities given v and accelerations given v and a."""
    states = first_pass(model, q, v, posed=None)
    poses = body_transforms(model, states)
    order = range(len(model.bodies))
    rotation = stacked([poses[i].E.T for i in order], (0, 3, 3))
    position = stacked([poses[i].r + np.zeros(3) for i in order], (0, 3))
    if v is None:
        return Kinematics(rotation, position, None, None)
    velocity = _by_body(states, [state.v for state in states])
    if a is None:
        return Kinematics(rotation, position, velocity, None)
    acc = accelerations(states, a, np.zeros(6))
    return Kinematics(rotation, position, velocity, _by_body(states, acc))


def body_transforms(model: Model, states: list[ClusterState]) -> dict[int, Transform]:
    """X_BW from the world to every body, by body index."""
    X = {WORLD: Transform.identity()}
    for state in states:
        k = state.cluster
        up = (WORLD,) if k.parent is None else model.clusters[k.parent].bodies
        for i, body in enumerate(k.bodies):
            X[body] = state.X.blocks[i] @ X[up[state.X.outputs[i]]]
    return X


def _by_body(states, by_cluster):
    rows = {}
    for state, x in zip(states, by_cluster, strict=True):
        rows |= dict(zip(state.cluster.bodies, state.split(x), strict=True))
    return stacked([rows[i] for i in sorted(rows)], (0, 6))


def frame_pose(model: Model, q: Any, frame: Frame) -> tuple[Array, Array]:
    """The rotation (3, 3), frame to world coordinates, and the position (3,) of a frame."""
    if frame.body == WORLD:
        X = frame.placement
    else:
        states = first_pass(model, q, posed=None)
        X = frame.placement @ body_transforms(model, states)[frame.body]
    return X.E.T, X.r


def frame_jacobian(model: Model, q: Any, frame: Any) -> Array:
    """J (6, nv): the spatial velocity of a frame, in its own axes, is J v.

    Unit wrenches at the frame are carried down to the base and meet each cluster's subspace.
    """
    states = first_pass(model, q, posed=[frame.body])
    columns = {}
    if frame.body != WORLD:
        k, place = locate(model, frame.body)
        unit = frame.placement.forces_back(np.eye(6))
        sizes = states[k].X.sizes
        F = np.concatenate([unit if i == place else np.zeros((n, 6)) for i, n in enumerate(sizes)])
        while True:
            columns[k] = F.T @ states[k].S
            parent = model.clusters[k].parent
            if parent is None:
                break
            F = states[k].X.forces_back(F)
            k = parent
    blocks = [columns.get(c.index, np.zeros((6, c.nv))) for c in model.clusters]
    return joined(blocks, (6, 0), axis=1)


def frame_acceleration_bias(model: Model, q: Array, v: Array, frame: Frame) -> Array:
    """(dJ/dt) v (6,): the spatial acceleration of a frame, in its own axes, at a = 0.

    The linear part is the spatial one; the classical acceleration of the frame's origin has w x v
    added.
    """
    if frame.body == WORLD:
        return np.zeros(6)
    states = first_pass(model, q, v, posed=[frame.body])
    k, place = locate(model, frame.body)
    acc = accelerations(states, None, np.zeros(6))
    return frame.placement.motion(states[k].split(acc[k])[place])
