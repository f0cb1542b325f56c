"""Derivatives of forward dynamics: (∂a/∂q, ∂a/∂v, M⁻¹), by those of inverse dynamics at a.

tau = ID(q, v, FD(q, v, tau)) for all q and v, so that ∂a/∂q = -M⁻¹ ∂ID/∂q and ∂a/∂v = -M⁻¹ ∂ID/∂v
(Carpentier and Mansard, 2018). M = Lᵀ D L is factorized leaves first: the zeros between limbs
stay zeros in L, and in the right-hand sides.

Columns of a free base are known without a solve. Turning the robot turns gravity alone, which
accelerates the base and no joint; shifting it changes nothing; and a uniform velocity changes
a = (classical acceleration) - w x v of the base by the last term alone.
"""

from __future__ import annotations

import numpy as np

from ..algebra.linalg import LDL, joined, symmetric
from ..algebra.spatial import skew
from ..algorithms.c_aba import c_aba
from ..mechanism.parts import WORLD
from .inverse import c_rnea_derivatives


def c_aba_derivatives(model, q, v, tau, f_ext=None):
    """(∂a/∂q, ∂a/∂v, M⁻¹), each (nv, nv), in tangent coordinates of q."""
    a = c_aba(model, q, v, tau, f_ext)
    dq, dv, M = c_rnea_derivatives(model, q, v, a, f_ext)
    return forward_from_inverse(model, q, v, dq, dv, M)


def forward_from_inverse(model, q, v, dq, dv, M):
    """The derivatives of a from those of tau and M."""
    known_q, known_v = known_columns(model, q, v)
    rest_q = [i for i in range(model.nv) if i not in known_q]
    rest_v = [i for i in range(model.nv) if i not in known_v]
    factor = LDL(M[::-1, ::-1])
    n, nq = model.nv, len(rest_q)
    if n == 0:
        return dq, dv, M
    right = np.concatenate([-dq[:, rest_q], -dv[:, rest_v], np.eye(n)], axis=1)
    x = factor.solve(right[::-1])[::-1]
    da_dq = _columns(n, known_q, dict(zip(rest_q, x[:, :nq].T)))
    da_dv = _columns(n, known_v, dict(zip(rest_v, x[:, nq : nq + len(rest_v)].T)))
    return da_dq, da_dv, symmetric(x[:, nq + len(rest_v) :])


def known_columns(model, q, v):
    """Columns of ∂a/∂q and ∂a/∂v that a free base makes trivial, by coordinate."""
    by_q, by_v, n = {}, {}, model.nv
    for k in model.clusters:
        body = model.bodies[k.bodies[0]]
        if body.parent != WORLD or body.joint.kind != "free" or len(k.bodies) > 1:
            continue
        start = k.v.start
        X = body.joint.transform(q[k.q])
        turned = skew(X.rotate(model.gravity))  # of the base's axes: g x
        moved = -skew(v[k.v][:3])
        for i in range(3):
            by_q[start + i] = _at(n, start + 3, turned[:, i])
            by_q[start + 3 + i] = np.zeros(n)
            by_v[start + 3 + i] = _at(n, start + 3, moved[:, i])
    return by_q, by_v


def _at(n: int, start: int, x):
    return joined([np.zeros(start), x, np.zeros(n - start - 3)])


def _columns(n: int, known: dict, solved: dict):
    columns = known | solved
    return np.stack([columns[i] for i in range(n)], axis=1)
