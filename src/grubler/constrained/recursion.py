"""What the recursions with constraints start from, and one joint of them.

As in C-ABA, accelerations are what the robot has beyond coasting, a = 0: what it has then, by its
velocities and gravity, is in the forces p and in the rows' l, and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algorithms.c_rnea import net_forces
from ..algorithms.elimination import Elimination
from ..algorithms.newton_euler import accelerated
from ..algorithms.sweep import outward
from .rows import constraint_rows, in_few_numbers, independent_rows


class Crossing(NamedTuple):
    """A joint eliminated, and u = tau - S' p, the force left to accelerate it (None without
    velocities)."""

    joint: Elimination
    u: np.ndarray | None


def prepared(model, q, v, constraints, f_ext=None, desired=None):
    """States of the first pass, own inertias H and biases p, and the constraints' rows."""
    constraints, desired, bases, kept = in_few_numbers(
        model, q, constraints, desired, frozenset(f_ext or ())
    )
    sweep = outward(model, q, v, keep_frame=kept)
    motion = accelerated(sweep)
    H = [block_diagonal(state.I) for state in sweep]
    p = sweep.stack(net_forces(motion, f_ext))
    rows = constraint_rows(sweep, constraints, desired, motion)
    rows = [replace(block, basis=V) for block, V in zip(rows, bases, strict=True)]
    return sweep, H, p, independent_rows(model, rows, constraints)


def cross_joint(state, H, p, tau):
    """(Crossing, H and p seen from the parent): the sums' terms of (42a), (42b)."""
    joint = Elimination(state, H)
    u = joint.joint_force(p, tau)
    if state.cluster.parent is None:
        return Crossing(joint, u), None, None
    return Crossing(joint, u), joint.inertia(), joint.bias(p, tau, u)


def cross_rows(crossing: Crossing, F, dense: bool):
    """Constraint forces F = K' carried across a joint.

    Returns F seen from the parent (42c), Y = S' F, Q and Z with Y' D⁻¹ Y = Q' Z, and what l gains
    (42d), None without velocities. Half a solve, Q = L⁻¹ Y, is cheaper where F is `dense`; a Y with
    zeros keeps them, Q = Y.
    """
    joint, u = crossing
    D, X = joint.D, joint.state.X
    half = D.half if dense else (lambda x: x)
    Y = joint.state.S.T @ F
    Q = half(Y)
    Z = D.scale(Q) if dense else D.solve(Y)
    gain = None if u is None else Z.T @ half(u)
    if joint.W is None:
        return X.forces_back(F - half(joint.U.T).T @ Z), Y, Q, Z, gain
    return X.forces_back(F) - half(joint.W.T).T @ Z, Y, Q, Z, gain


def roll_out(crossing: Crossing, a_parent, drive=None):
    """(acceleration of the joint, stacked acceleration of the cluster) (41), (36b).

    `drive` is the force of the constraints on the joint, S' K' λ.
    """
    joint, u = crossing
    return joint.motion(u if drive is None else u + drive, a_parent)


def total(values):
    """The sum of one or more arrays."""
    values = list(values)
    return sum(values[1:], values[0])
