"""One step of time: straight-line code on floats and symbols, loops closed at its end.

Configurations live on the joints' manifolds: an increment is moved along (q ⊕ ξ), and a velocity at
q ⊕ ξ is turned into the rate of ξ by the inverse of the exponential's derivative (Munthe-Kaas),
so that the order of an integrator holds for quaternions, too.

An integrator works in a space (`spaces.py`), which says what a velocity is, and returns (q, v, ok):
`ok` is false where the space's coordinates or an iteration failed on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler import iterate

if TYPE_CHECKING:
    from ..typing import Array

# Fixed-point steps end at this change of velocity, relative to 1 + |v|, and are accepted below
# the second number.
MIDPOINT = {"float64": (1e-14, 1e-11), "float32": (1e-6, 1e-4)}
MIDPOINT_STEPS = 30


def semi_implicit(
    space: Any, q: Array, v: Array, tau: Array, dt: float
) -> tuple[Any, Any, Any | None]:
    """v first, then q with the new v: first order, symplectic, one evaluation."""
    good = space.regular(q, v)
    v = v + dt * space.acceleration(q, v, tau)
    following, closed = space.move(q, dt * v)
    return following, space.land(following, v), both(good, closed)


def rk4(space: Any, q: Array, v: Array, tau: Array, dt: float) -> tuple[Any, Any, Any | None]:
    """The classical Runge-Kutta method of fourth order on the manifold, four evaluations."""
    zero, good = np.zeros(v.shape[0]), space.regular(q, v)
    stages = [(space.rate(zero, v), space.acceleration(q, v, tau))]
    for share in (0.5, 0.5, 1.0):
        dxi, dv = stages[-1]
        xi, v_s = share * dt * dxi, v + share * dt * dv
        q_s, closed = space.move(q, xi)
        good = both(good, closed)
        stages.append((space.rate(xi, v_s), space.acceleration(q_s, v_s, tau)))
    weights = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
    xi, dv = zero, zero
    for w, (s, a) in zip(weights, stages, strict=True):
        xi, dv = xi + (w * dt) * s, dv + (w * dt) * a
    good = both(good, space.regular(q_s, v_s), space.resolved(q, q_s))
    following, closed = space.move(q, xi)
    return following, space.land(following, v + dv), both(good, closed)


def implicit_midpoint(
    space: Any, q: Array, v: Array, tau: Array, dt: float
) -> tuple[Any, Any, Any | None]:
    """v⁺ = v + dt a(q ⊕ dt/2 v_m, v_m), v_m = (v + v⁺)/2, by fixed-point steps: second order,
    energy held without drift."""
    tolerance, accepted = MIDPOINT[space.dtype]

    def fixed_point(v_next, q, v, tau):
        v_mid = (v + v_next) * 0.5
        q_mid, _ = space.move(q, (0.5 * dt) * v_mid)
        following = v + dt * space.acceleration(q_mid, v_mid, tau)
        return following, (following - v_next) / (1.0 + np.sqrt(v_next @ v_next))

    guess = v + dt * space.acceleration(q, v, tau)
    v_next, change, _ = iterate(
        fixed_point, guess, q, v, tau, count=MIDPOINT_STEPS, tolerance=tolerance
    )
    following, closed = space.move(q, dt * ((v + v_next) * 0.5))
    good = both(space.regular(q, v), closed, change @ change <= accepted**2)
    return following, space.land(following, v_next), good


def contact_step(
    space: Any, q: Array, v: Array, tau: Array, dt: float, contacting: Any, record: Any
) -> tuple[Any, Any, Any, Any | None]:
    """(q, v, record, ok): v obeys the laws of contact at its end, then q with the new v and the
    correction of penetrations: first order."""
    good = space.regular(q, v)
    change, correction, record = space.after_contact(q, v, tau, contacting, record)
    v = v + change
    step = dt * (v + correction)
    following, closed = space.move(q, step, straight=True)
    return following, space.land(following, space.turned(v, step)), record, both(good, closed)


def both(*conditions: Any) -> Any | None:
    """The conjunction of conditions; None stands for one that always holds."""
    found = [c for c in conditions if c is not None]
    if not found:
        return None
    out = found[0]
    for c in found[1:]:
        out = np.logical_and(out, c)
    return out


INTEGRATORS = {"semi_implicit": semi_implicit, "rk4": rk4, "implicit_midpoint": implicit_midpoint}
