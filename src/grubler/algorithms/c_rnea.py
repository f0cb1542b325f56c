"""C-RNEA: inverse dynamics by the cluster-based recursive Newton-Euler algorithm (Sec. VI).

| code | paper      | meaning                                               | shape  |
|------|------------|-------------------------------------------------------|--------|
| G, g | G_k, g_k   | spanning velocities and accelerations of a cluster (7) |        |
| w, dw| v_k, a_k   | angular velocity and acceleration of a body (33)      | (3,)   |
| A    | a_k        | acceleration of the body's origin, with -gravity (33) | (3,)   |
| f    | f_k^J      | force across the body's tree joint (35)               | (6,)   |

The motion subspace of a cluster is S_k = (remap)(tree joints) G_k (20), (24). None of the three is
multiplied out: the remap is the recursion from each body to its parent inside the cluster, and
S_k' f_k (31) the same recursion backwards.

Accelerations are those of points, not spatial ones: with U = [dw x] + [w x][w x] the origin of a
child at r has A + U r, the force on a body is m A + U mc, and no linear velocity is needed (Luh,
Walker and Paul; a quarter fewer operations).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import joined
from ..algebra.spatial import Transform, cross, rigid_parts, skew
from ..mechanism.parts import WORLD
from ..reduction.reduced import Reduced, reduced, spin_row

if TYPE_CHECKING:
    from ..mechanism.parts import Body, TreeJoint
    from ..model.model import Model
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class Moving:
    """A body's transform from its parent, its joint's S, and w, dw, A, U as above."""

    X: Transform | None
    S: np.ndarray | None
    w: np.ndarray
    dw: np.ndarray
    A: np.ndarray
    U: np.ndarray


def c_rnea(
    model: Model, q: Array, v: Array, a: Array | None, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """The generalized force tau (nv,) that gives acceleration a in state (q, v)."""
    return joint_forces(model, *net_forces(model, q, v, a, f_ext))


def net_forces(
    model: Model,
    q: Array,
    v: Array,
    a: Array | None,
    f_ext: Mapping[int, Array] | None = None,
    posed: Any = (),
) -> tuple[Any, ...]:
    """(bodies in motion, force on each (34), each joint with its G and acceleration), by index.

    a=None: a = 0, the robot coasting. Bodies in `posed` keep their frame, as in the first pass.
    """
    robot = reduced(model, frozenset(posed))
    I = robot.I
    moving = {WORLD: Moving(None, None, np.zeros(3), np.zeros(3), -model.gravity, np.zeros((3, 3)))}
    f, spin, joints, q_span = {}, {}, {}, {}
    for k, embedding in zip(model.clusters, robot.embeddings):
        positions = embedding.positions(q[k.q])
        q_span |= positions
        G, rates, drifts = embedding.velocity_map(positions, v[k.v])
        for i in k.bodies:
            body, Gi = robot.bodies[i], G[embedding.columns[i]]
            up = moving[body.parent]
            acceleration = drifts[i] if a is None else Gi @ a[k.v] + drifts[i]
            joints[i] = body, Gi, acceleration
            if i in robot.spinning:
                row, J = spin_row(body), I[i][0, 0]
                f[i] = J * (row @ up.dw + acceleration[0])
                h = row * (J * (row @ up.w + rates[i][0]))
                spin[body.parent] = spin[body.parent] + h if body.parent in spin else h
            else:
                moving[i] = move(body.joint, up, positions[i], rates[i], acceleration)
    for i in [i for i in moving if i != WORLD]:
        f[i] = net_force(I[i], moving[i], spin.get(i))
    for i, external in (f_ext or {}).items():
        for j, part in felt_by(robot, i, external, q_span[i]):
            f[j] = f[j] - part
    return moving, f, joints


def felt_by(robot: Reduced, i: int, force: Array, q: Array) -> Any:
    """(body, force on it) of an external force on body i, in the frames of the reduced robot.

    A rotor is known by its spin: it feels the moment about its axis, its carrier the rest.
    """
    body = robot.bodies[i]
    if i in robot.frames:
        force = robot.frames[i].inverse().rounded().force_back(force)
    if i not in robot.spinning:
        return [(i, force)]
    axis = body.joint.motion.axis
    along = axis @ force[:3]
    across = np.concatenate([force[:3] - along * axis, force[3:]])
    return [(i, along), (body.parent, body.joint.transform(q).force_back(across))]


def move(joint: TreeJoint, up: Moving, q: Array, rate: Array, acceleration: Array) -> Moving:
    """The motion of a body from its parent's (33)."""
    X, S, bias = joint.transform(q), joint.motion.subspace(q), joint.motion.bias(q, rate)
    vJ, aJ = S @ rate, S @ acceleration
    aJ = aJ if bias is None else aJ + bias
    w = X.rotate(up.w) + vJ[:3]
    dw = X.rotate(up.dw) + aJ[:3] + cross(w, vJ[:3])
    A = X.rotate(up.A + up.U @ X.r) + aJ[3:] + cross(2.0 * w - vJ[:3], vJ[3:])
    return Moving(X, S, w, dw, A, skew(dw) + skew(w) @ skew(w))


def net_force(I: Array, body: Moving, spin: Array | None) -> Array:
    """Rate of change of a body's momentum (34), with that of the rotors it carries.

    Io dw + w x Io w by elements of Io: those on the diagonal as in Euler's equations, a product of
    inertia by elements of U, which the force needs anyway: 7 % fewer operations on a humanoid.
    """
    Io, m, mc = rigid_parts(I)
    w, dw, U = body.w, body.dw, body.U
    moment = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        euler = Io[i, i] * dw[i] + (Io[k, k] - Io[j, j]) * (w[j] * w[k])
        across = Io[i, k] * U[j, i] - Io[i, j] * U[k, i]
        moment.append(euler + across + Io[j, k] * (w[j] * w[j] - w[k] * w[k]))
    moment = np.stack(moment) + cross(mc, body.A)
    moment = moment if spin is None else moment + cross(w, spin)
    return np.concatenate([moment, m * body.A + U @ mc])


def joint_forces(
    model: Model,
    moving: dict[int, Moving],
    f: dict[int, Array | float],
    joints: dict[int, tuple[Body, Array, Array]],
) -> Array:
    """Forces collected towards the world (35), and what each cluster's joint feels of them (31)."""
    tau = [None] * len(model.clusters)
    for k in reversed(model.clusters):
        for i in reversed(k.bodies):
            body, G, acceleration = joints[i]
            if i in moving:
                felt, back = moving[i].S.T @ f[i], moving[i].X.force_back(f[i])
            else:
                felt = np.stack([f[i]])
                back = np.concatenate([spin_row(body) * f[i], np.zeros(3)])
            if body.joint.armature:
                felt = felt + body.joint.armature * acceleration
            felt = G.T @ felt
            tau[k.index] = felt if tau[k.index] is None else tau[k.index] + felt
            if body.parent != WORLD:
                f[body.parent] = f[body.parent] + back
    return joined(tau)
