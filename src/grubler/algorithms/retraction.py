"""q ⊕ ξ around ξ = 0: what derivatives by a configuration are taken along.

q moves for unit time with the independent velocity ξ. Joints move along their own manifolds,
dependent ones as the loops ask. To second order in ξ that is

    q ⊕ ξ = q + T ξ + ½ B[ξ, ξ],   T ξ = q̇,  B[ξ, ξ] = q̈   at velocity ξ and acceleration 0

| code   | symbol | meaning                                              | shape |
|--------|--------|------------------------------------------------------|-------|
| xi     | ξ      | tangent coordinates, independent velocities          | (nv,) |
| rates  | G ξ    | velocities of the cluster's joints                   |       |
| drifts | g      | their accelerations while the independent have none  |       |

Derivatives at ξ = 0 need no more of the exponential, and its own small-angle branch is not met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..algebra.linalg import joined

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


def retraction(model: Model, q: Array, xi: Array, order: int = 1) -> Array:
    """q ⊕ ξ (nq,), exact to first or second order in ξ (nv,)."""
    parts = []
    for cluster in model.clusters:
        joint = cluster.embedding
        positions, own = joint.positions(q[cluster.q]), xi[cluster.v]
        drifts = None
        if not joint.implicit:
            rates = _own_rates(joint, own)
        elif order > 1:
            _, rates, drifts = joint.velocity_map(positions, own)
        else:
            rates = joint.split(joint.velocity_map(positions, None)[0] @ own)
        for body in joint.coordinates:
            motion, x, rate = body.joint.motion, positions[body.index], rates[body.index]
            moved = x + motion.derivative(x, rate)
            if order > 1:
                moved = moved + motion.second(x, rate) * 0.5
                if drifts is not None:
                    moved = moved + motion.derivative(x, drifts[body.index]) * 0.5
            parts.append(moved)
    return joined(parts)


def _own_rates(joint, own) -> dict[Any, Any]:
    """The velocities of an explicit or open cluster's independent joints, by body."""
    rates, start = {}, 0
    for body in joint.coordinates:
        rates[body.index] = own[start : start + body.joint.nv]
        start += body.joint.nv
    return rates
