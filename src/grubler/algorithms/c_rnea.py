"""C-RNEA: inverse dynamics by the cluster-based recursive Newton-Euler algorithm (Sec. VI).

| code | paper | meaning                                                | shape   |
|------|-------|--------------------------------------------------------|---------|
| G    | G_k   | spanning velocities of a cluster, by tree joint (7)    | (n, nv) |
| S, X |       | motion subspace and transform of a tree joint          |         |
| f    | f_k^J | force on a body (34), then across its tree joint (35)  | (6,)    |

The motion subspace of a cluster is S_k = (remap)(tree joints) G_k (20), (24). None of the three is
multiplied out: the remap is the recursion from each body to its parent inside the cluster, and
S_k' f_k (31) the same recursion backwards. The equations of a body are in newton_euler.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..algebra.linalg import joined
from ..mechanism.parts import WORLD
from .newton_euler import Motion, accelerated, body_force, rotor_force
from .sweep import JointState, outward

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


def c_rnea(
    model: Model, q: Array, v: Array, a: Array | None, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """The generalized force tau (nv,) that gives acceleration a in state (q, v)."""
    motion = accelerated(outward(model, q, v), a)  # (33)
    return joint_forces(motion, net_forces(motion, f_ext))


def net_forces(motion: Motion, f_ext: Mapping[int, Array] | None = None) -> dict[Any, Any]:
    """The force on each body that its motion takes (34), less the external ones, by index.

    (6,) in the body's frame of the sweep; (1,), a moment, of a body known by its spin.
    """
    robot, f, spin = motion.sweep.robot, {}, {}
    tree_joints = {j.body.index: j for state in motion.sweep for j in state.joints}
    for i in sorted(robot.spin_only):
        up, joint = robot.bodies[i].parent, tree_joints[i]
        f[i], h = rotor_force(robot.I[i][0, 0], joint, motion.bodies[up], motion.joints[i])
        spin[up] = spin[up] + h if up in spin else h
    for i, body in motion.bodies.items():
        if i != WORLD:
            f[i] = body_force(robot.I[i], body, spin.get(i))
    for i, external in (f_ext or {}).items():
        for j, part in robot.felt_by(i, external, tree_joints[i].q):
            f[j] = f[j] - part
    return f


def forces_across(motion: Motion, f: dict[Any, Any]) -> dict[Any, Any]:
    """The force across each tree joint (35), that on its body with all it carries, by index."""
    f = dict(f)
    for state in reversed(motion.sweep):
        for joint in reversed(state.joints):
            i, up = joint.body.index, joint.body.parent
            if up != WORLD:
                f[up] = f[up] + joint.X.force_back(f[i])
    return f


def joint_forces(motion: Motion, f: dict[Any, Any]) -> Array:
    """tau (nv,): forces collected towards the world (35), projected onto the joints (31)."""
    f, tau = forces_across(motion, f), []
    for state in motion.sweep:
        terms = [joint.G.T @ felt(motion, joint, f) for joint in state.joints]
        tau.append(sum(terms))
    return joined(tau)


def felt(motion: Motion, joint: JointState, f: Any) -> Any:
    """The force that a tree joint takes (n,), with its armature's."""
    i, armature = joint.body.index, joint.body.joint.armature
    own = joint.S.T @ f[i]
    return own + armature * motion.joints[i] if armature else own
