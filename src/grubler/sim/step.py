"""One step of time: straight-line code on floats and symbols, loops closed at its end.

Configurations live on the joints' manifolds: an increment is moved along (q ⊕ ξ), and a velocity at
q ⊕ ξ is turned into the rate of ξ by the inverse of the exponential's derivative (Munthe-Kaas),
so that the order of an integrator holds for quaternions, too. A cluster closed implicitly moves in
its independent joints and its dependent ones follow by Newton steps; its velocities satisfy the
loops by construction.
"""

from __future__ import annotations

import numpy as np

from ..algorithms.assemble import newton_step
from ..algorithms.c_aba import c_aba
from ..compiler import iterate
from ..linalg import joined
from ..spatial import cross, cross_motion

CLOSURE_STEPS = 12
CLOSURE = {"float64": 1e-13, "float32": 1e-6}  # m or rad; what the precision can tell from zero
MIDPOINT = {"float64": 1e-13, "float32": 1e-5}  # the same of a velocity


def move(model, q, xi, dtype="float64"):
    """q ⊕ ξ for an increment of the independent coordinates, every loop closed."""
    parts = []
    for cluster in model.clusters:
        joint, step = cluster.embedding, xi[cluster.v]
        positions = joint.positions(q[cluster.q])
        if not joint.implicit:
            start = 0
            for body in joint.coordinates:
                n = body.joint.nv
                own = body.joint.motion.integrate(positions[body.index], step[start : start + n])
                parts.append(own)
                start += n
            continue
        G, _, _ = joint.velocity_map(positions, None)
        moved = joint.split(G @ step)
        x = np.concatenate(
            [b.joint.motion.integrate(positions[b.index], moved[b.index]) for b in joint.bodies]
        )
        x, _, _ = iterate(
            lambda x, joint=joint: newton_step(joint, x),
            x,
            count=CLOSURE_STEPS,
            tolerance=CLOSURE[dtype],
        )
        parts.append(x)
    return joined(parts)


def rate_of_increment(model, xi, v):
    """dξ/dt at q ⊕ ξ from the velocity v: v + ½ [ξ, v] + 1/12 [ξ, [ξ, v]] on rotating joints."""
    parts = []
    for cluster in model.clusters:
        joint = cluster.embedding
        if joint.implicit:
            parts.append(v[cluster.v])
            continue
        start = cluster.v.start
        for body in joint.coordinates:
            n = body.joint.nv
            x, rate = xi[start : start + n], v[start : start + n]
            bracket = {"spherical": cross, "free": cross_motion}.get(body.joint.kind)
            if bracket is not None:
                once = bracket(x, rate)
                rate = rate + once * 0.5 + bracket(x, once) / 12.0
            parts.append(rate)
            start += n
    return joined(parts)


def semi_implicit(model, q, v, tau, dt, passive, dtype="float64"):
    """v first, then q with the new v: first order, symplectic, one evaluation."""
    v = v + dt * acceleration(model, q, v, tau, passive)
    return move(model, q, dt * v, dtype), v


def rk4(model, q, v, tau, dt, passive, dtype="float64"):
    """The classical Runge-Kutta method of fourth order on the manifold, four evaluations."""
    zero = np.zeros(model.nv)
    k1 = rate_of_increment(model, zero, v), acceleration(model, q, v, tau, passive)
    stages = [k1]
    for share in (0.5, 0.5, 1.0):
        dxi, dv = stages[-1]
        xi, v_s = share * dt * dxi, v + share * dt * dv
        q_s = move(model, q, xi, dtype)
        a = acceleration(model, q_s, v_s, tau, passive)
        stages.append((rate_of_increment(model, xi, v_s), a))
    weights = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
    xi, dv = zero, zero
    for w, (s, a) in zip(weights, stages, strict=True):
        xi, dv = xi + (w * dt) * s, dv + (w * dt) * a
    return move(model, q, xi, dtype), v + dv


def implicit_midpoint(model, q, v, tau, dt, passive, dtype="float64"):
    """v⁺ = v + dt a(q ⊕ dt/2 v_m, v_m), v_m = (v + v⁺)/2, by fixed-point steps: second order,
    energy held without drift."""

    def fixed_point(v_next, q, v, tau):
        v_mid = (v + v_next) * 0.5
        q_mid = move(model, q, (0.5 * dt) * v_mid, dtype)
        following = v + dt * acceleration(model, q_mid, v_mid, tau, passive)
        return following, following - v_next

    guess = v + dt * acceleration(model, q, v, tau, passive)
    v_next, _, _ = iterate(fixed_point, guess, q, v, tau, count=30, tolerance=MIDPOINT[dtype])
    v_mid = (v + v_next) * 0.5
    return move(model, q, dt * v_mid, dtype), v_next


def acceleration(model, q, v, tau, passive):
    """Forward dynamics with the passive forces added."""
    if passive is not None:
        tau = tau + passive.force(model, q, v)
    return c_aba(model, q, v, tau)


INTEGRATORS = {"semi_implicit": semi_implicit, "rk4": rk4, "implicit_midpoint": implicit_midpoint}
