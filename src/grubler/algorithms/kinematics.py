"""Forward kinematics: poses, velocities and accelerations of bodies; frame Jacobians."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.linalg import joined, stacked
from ..algebra.spatial import Transform, cross
from ..mechanism.parts import WORLD
from .sweep import outward

if TYPE_CHECKING:
    from ..mechanism.parts import Frame
    from ..model.model import Model
    from ..typing import Array


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
    sweep = outward(model, q, v, keep_frame=None)
    poses = body_transforms(sweep)
    order = range(len(model.bodies))
    rotation = stacked([poses[i].E.T for i in order], (0, 3, 3))
    position = stacked([poses[i].r + np.zeros(3) for i in order], (0, 3))
    if v is None:
        return Kinematics(rotation, position, None, None)
    velocity = _by_body(sweep, sweep.velocities)
    if a is None:
        return Kinematics(rotation, position, velocity, None)
    return Kinematics(rotation, position, velocity, _by_body(sweep, sweep.accelerations(a)))


def body_transforms(sweep: Any) -> dict[int, Transform]:
    """X_BW from the world to every body, by body index."""
    X = {WORLD: Transform.identity()}
    for state in sweep:
        up = (WORLD,) if state.parent is None else state.parent.cluster.bodies
        for body, block, j in zip(state.cluster.bodies, state.X.blocks, state.X.outputs):
            X[body] = block @ X[up[j]]
    return X


def _by_body(sweep, by_cluster):
    rows = {}
    for state, x in zip(sweep, by_cluster, strict=True):
        rows |= dict(zip(state.cluster.bodies, state.split(x), strict=True))
    return stacked([rows[i] for i in sorted(rows)], (0, 6))


def frame_pose(model: Model, q: Any, frame: Frame) -> tuple[Array, Array]:
    """The rotation (3, 3), frame to world coordinates, and the position (3,) of a frame."""
    if frame.body == WORLD:
        X = frame.placement
    else:
        poses = body_transforms(outward(model, q, keep_frame=None))
        X = frame.placement @ poses[frame.body]
    return X.E.T, X.r


def in_axes(axes: str, X: Transform | None, M: Array) -> Any:
    """Columns of motions (or one) of a frame in other axes; X leads from the world to the frame.

    "local": as they are, at the frame's origin and in its axes. "world_aligned": there, in the
    world's axes. "world": at the world's origin, in its axes.
    """
    if axes == "local":
        return M
    if axes == "world_aligned":
        return np.concatenate([X.rotate_back(M[:3]), X.rotate_back(M[3:])])
    inverse = X.inverse()
    return inverse.motion(M) if M.ndim == 1 else inverse.motions(M)


def frame_jacobian(model: Model, q: Any, frame: Any, axes: str = "local") -> Array:
    """J (6, nv): the velocity of a frame, in the axes named, is J v.

    Unit wrenches at the frame are carried down to the base and meet each cluster's subspace.
    """
    sweep = outward(model, q, keep_frame=[frame.body])
    columns = {}
    if frame.body != WORLD:
        home, place = model.tree.locate(frame.body)
        F = sweep[home].on_body(place, frame.placement.forces_back(np.eye(6)))
        columns = path_jacobian(sweep, home, F)
    pose = _pose(sweep, frame, axes)
    blocks = [
        in_axes(axes, pose, columns[c.index]) if c.index in columns else np.zeros((6, c.nv))
        for c in model.clusters
    ]
    return joined(blocks, (6, 0), axis=1)


def path_jacobian(sweep: Any, k: int, F: Array) -> dict[Any, Any]:
    """F' X S by cluster, from k to the base: how forces F (6l, m) on cluster k meet the joints."""
    columns = {}
    for j in sweep.model.tree.inward(k):
        columns[j] = F.T @ sweep[j].S
        F = sweep[j].X.forces_back(F)
    return columns


def frame_velocity(model: Model, q: Array, v: Array, frame: Frame, axes: str = "local") -> Any:
    """The velocity [angular; linear] of a frame (6,)."""
    if frame.body == WORLD:
        return np.zeros(6)
    sweep = outward(model, q, v, keep_frame=[frame.body])
    local = _of_frame(sweep, frame, sweep.velocities)
    return in_axes(axes, _pose(sweep, frame, axes), local)


def frame_acceleration(
    model: Model, q: Array, v: Array, a: Array | None, frame: Frame, axes: str = "local"
) -> Any:
    """The derivative by time of `frame_velocity` (6,); a=None: at a = 0, dJ/dt v.

    In the world's axes at the frame's origin that is the acceleration of this point, which moves
    with the frame: w x v more than the spatial acceleration, in the others the spatial one.
    """
    if frame.body == WORLD:
        return np.zeros(6)
    sweep = outward(model, q, v, keep_frame=[frame.body])
    local = _of_frame(sweep, frame, sweep.accelerations(a))
    if axes == "world_aligned":
        u = _of_frame(sweep, frame, sweep.velocities)
        local = np.concatenate([local[:3], local[3:] + cross(u[:3], u[3:])])
    return in_axes(axes, _pose(sweep, frame, axes), local)


def _of_frame(sweep, frame, by_cluster):
    """A frame's motion from those of all clusters, in its own axes."""
    k, place = sweep.model.tree.locate(frame.body)
    return frame.placement.motion(sweep[k].split(by_cluster[k])[place])


def _pose(sweep, frame, axes: str) -> Transform | None:
    """From the world to the frame; None where nobody asks."""
    if axes == "local":
        return None
    return frame.placement @ body_transforms(sweep)[frame.body]
