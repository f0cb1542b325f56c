"""What joints and loops carry: the forces of constraint in state (q, v) at acceleration a.

The loops are cut first. Newton's and Euler's equations of all bodies, collected along the spanning
tree, give the generalized forces f of the tree joints that the motion takes. Of these the actuators
give some, torques t with Gᵀ t = tau, and the loops the rest:

    Kᵀ λ = f - t                                                  (1), (2)

on the rows of K that are kept, by its LQ factors. A multiplier is a force along, or a moment about,
the direction of its row, from the predecessor on the successor. Joints then carry what is left of
all bodies above them once the loops have taken theirs.

| code | meaning                                                             | shape      |
|------|---------------------------------------------------------------------|------------|
| f    | net force on a body, less external ones; later less those of loops  | (6,)       |
| W    | force across a tree joint, from the parent on the body              | (6,)       |
| K, λ | kept rows of a cluster's loops (2), their multipliers               |            |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..algebra.linalg import RowSpace, joined, stacked
from ..algebra.symbolic import is_symbolic
from ..arguments import public
from ..coordinates.embedding import stack_rows
from ..errors import InputError
from ..mechanism.loops.joint import LoopJoint
from ..mechanism.parts import WORLD
from .c_rnea import felt, forces_across, net_forces
from .checks import checked, checked_forces, stacked_torques
from .newton_euler import accelerated
from .sweep import outward

if TYPE_CHECKING:
    from ..model import Model
    from ..typing import ArrayLike, Floats, Forces

    Torques: TypeAlias = Mapping[str, ArrayLike] | ArrayLike

UNMET = 1e-6  # relative: torques that miss the motion by more are refused


class LoopForces(NamedTuple):
    """`multipliers` (rows,) of the rows of all loops, in the order of `model.loops` and of each
    loop's `equations`, in N or N m; zero where a row is redundant. `wrenches` (loops, 6): the
    [moment; force] that a closing joint exerts on its successor, at the successor's frame and in
    its axes, in N m and N; zero for loops that are no joints (gears, belts, φ of users)."""

    multipliers: np.ndarray
    wrenches: np.ndarray


@public
def loop_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: Forces | None = None,
    *,
    torques: Torques | None = None,
) -> LoopForces:
    """What each loop carries in state (q, v) at acceleration a: multipliers and wrenches.

    `torques` (nv_span,), or by joint name, are those of the actuators, on dependent joints too;
    without them all torque is on the independent joints. Of redundant rows one choice is made (see
    `model.notes`): their forces depend on how stiff and how well made the bodies are."""
    return _constraint_forces(model, q, v, a, f_ext, torques)[1]


@public
def joint_reactions(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: Forces | None = None,
    *,
    torques: Torques | None = None,
) -> Floats:
    """(bodies, 6): the [moment; force] that each body gets from its parent through its tree joint,
    at the body's origin and in its axes, in N m and N; drives included. Arguments as
    `loop_forces`."""
    return _constraint_forces(model, q, v, a, f_ext, torques)[0]


def _constraint_forces(model, q, v, a, f_ext, torques):
    q, v, a = checked(model, q=q, v=v, a=a)
    f_ext = checked_forces(model, f_ext)
    torques = None if torques is None else stacked_torques(model, torques)
    motion = accelerated(outward(model, q, v, keep_frame=None), a)
    positions, f = model.unpack(q), net_forces(motion, f_ext)
    W, multipliers, wrenches = forces_across(motion, f), {}, {}
    for state in motion.sweep:
        cluster = state.cluster
        G = np.concatenate([joint.G for joint in state.joints])
        needed = np.concatenate([felt(motion, joint, W) for joint in state.joints])
        if torques is None:
            drives = np.eye(len(G))[:, list(cluster.embedding.independent)] @ (G.T @ needed)
        else:
            drives = _check_torques(model, cluster, G, needed, torques)
        if not cluster.loops:
            continue
        multipliers |= _multipliers(cluster, positions, needed - drives)
        for loop in cluster.loops:
            wrenches[loop.name] = np.zeros(6)
            joint = getattr(loop, "loop", loop)  # of a closed form
            if isinstance(joint, LoopJoint):
                at_S, *pair = joint.wrenches(positions, multipliers[loop.name])
                wrenches[loop.name] = at_S
                for i, w in zip(reversed(joint.ends_on), pair):
                    if i != WORLD:
                        f[i] = f[i] - w
    reactions = forces_across(motion, f)
    return (
        stacked([reactions[i] for i in range(len(model.bodies))], (0, 6)),
        LoopForces(
            joined([multipliers[loop.name] for loop in model.loops]),
            stacked([wrenches[loop.name] for loop in model.loops], (0, 6)),
        ),
    )


def _multipliers(cluster, positions, force) -> dict[Any, Any]:
    """λ of each loop of a cluster, all rows, by the loop's name: Kᵀ λ = force."""
    joint = cluster.embedding
    K, _ = stack_rows(joint.bodies, cluster.loops, positions, None)
    kept = list(joint.kept) or list(range(K.shape[0]))
    found = RowSpace(K[kept]).coefficients(force)
    every = [np.zeros(())] * K.shape[0]
    for value, row in zip(found, kept):
        every[row] = value
    out, start = {}, 0
    for loop in cluster.loops:
        out[loop.name] = np.stack(every[start : start + loop.rows])
        start += loop.rows
    return out


def _check_torques(model, cluster, G, needed, torques):
    """A cluster's own torques; on floats they must give the motion, Gᵀ t = tau."""
    own = torques[cluster.span]
    if is_symbolic(own, needed):
        return own
    missed, size = G.T @ (needed - own), np.abs(G.T @ needed).max(initial=0.0)
    if np.abs(missed).max(initial=0.0) > UNMET * (1.0 + size + np.abs(own).max(initial=0.0)):
        worst = int(np.argmax(np.abs(missed)))
        raise InputError(
            f"torques do not give the acceleration a: coordinate "
            f"'{model.v_names[cluster.v.start + worst]}' misses {missed[worst]:.3g} N m or N; give "
            "a = forward_dynamics(model, q, v, generalized_force(model, q, torques))"
        )
    return own
