"""The linearization of a time step: how (q, v) after it depend on (q, v) before it and on tau.

In tangent coordinates, x = (δq, δv) with 2 nv entries: x⁺ = A x + B δtau. The step is the
simulator's own, integrator, passive forces and closing of loops included, differentiated
by forward mode; loops of Newton steps by the implicit function theorem.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algorithms.checks import checked
from ..algorithms.tangent import rates_map
from ..arguments import public
from ..compiled.problem import compile as compiled
from ..compiled.products import jvp
from ..errors import InputError
from .simulator import Simulator

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array, ArrayLike


class Linearization(NamedTuple):
    """A (2 nv, 2 nv) and B (2 nv, nv): (δq, δv) after a step = A (δq, δv) before it + B δtau."""

    A: np.ndarray
    B: np.ndarray


@public
def linearize(
    simulator: Simulator[Any],
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    t: float = 0.0,
) -> Linearization:
    """(A, B) of one recorded step of a simulator at (q, v) under the torque tau, zero by default.

    δq and δv are in tangent coordinates of q (`integrate`), each (nv,). With `control` compiled
    into the step, A holds its feedback at time t and tau is what is added to it. The first call
    compiles the derivative. A simulator with contacts is refused: a robot that rests on the ground
    is at the border between touching and not, where a step has no derivative by its height.
    """
    if not isinstance(simulator, Simulator):
        raise InputError(f"linearize needs a Simulator, not {type(simulator).__name__}")
    if simulator.contacts is not None:
        raise InputError(
            "linearize takes a simulator without contacts: a robot at rest on the ground is at the "
            "border of touching; hold its feet by constraints, see "
            "constrained_forward_dynamics_derivatives"
        )
    model, kernel = simulator.model, simulator._kernel
    q, v = checked(model, q=q, v=v)
    tau = np.zeros(model.nv) if tau is None else checked(model, tau=tau)
    state = [q, v, tau, np.full(1, float(t)), np.zeros(kernel.carried)]
    n = 3 * model.nv
    along = np.split(np.eye(n), 3, axis=1)
    q_next, _, dq, dv = _in_directions(kernel)(*(np.tile(x, (n, 1)) for x in state), *along)
    columns = np.concatenate([tangent_of(model, q_next[0]) @ dq.T, dv.T])
    if not np.all(np.isfinite(columns)):
        raise InputError(
            f"the step of '{model.name}' failed at this state, or is not differentiable there: "
            "simulate it with run, which says why"
        )
    return Linearization(columns[:, : 2 * model.nv], columns[:, 2 * model.nv :])


@lru_cache(maxsize=16)
def _in_directions(kernel):
    """The step and its derivative along directions of q, v and tau: a batch has all directions."""

    def step(model, q, v, tau, t, carried):
        clock = [t] if kernel.control is not None else []
        return kernel.recorded(np.concatenate([q, v, carried, *clock]), tau)[:2]

    shapes = {"t": (1,), "carried": (kernel.carried,)}
    along = jvp(step, kernel.model, wrt=["q", "v", "tau"], value=True, shapes=shapes)
    key = None if kernel.key is None else f"linearize {kernel.key}"
    return compiled(along, kernel.model, key=key)


def tangent_of(model: Model, q: Array) -> Array:
    """The matrix (nv, nq) from a change of q along the manifold to its tangent coordinates."""
    blocks = []
    for cluster in model.clusters:
        joint = cluster.embedding
        positions = joint.positions(q[cluster.q])
        rows = block_diagonal(
            [_inverse(body.joint.motion, positions[body.index]) for body in joint.coordinates]
        )
        if joint.implicit:
            rows = rows[list(joint.independent)]
        blocks.append(rows)
    return block_diagonal(blocks)


def _inverse(motion, q):
    """The left inverse of a joint's T; of a quaternion's q̇ = ½ q ω it is 4 Tᵀ."""
    if motion.nq == motion.nv:
        return np.eye(motion.nv)
    T = rates_map(motion, q)
    weight = np.concatenate([np.ones(motion.nq - 4), 4.0 * np.ones(4)])
    return T.T * weight
