"""Derivatives of forward dynamics: (∂a/∂q, ∂a/∂v, M⁻¹), by those of inverse dynamics at a.

tau = ID(q, v, FD(q, v, tau)) for all q and v, so that ∂a/∂q = -M⁻¹ ∂ID/∂q and ∂a/∂v = -M⁻¹ ∂ID/∂v
(Carpentier and Mansard, 2018). M is inverted by blocks, see `limbs`.

Columns of a free base are known without a solve. Turning the robot turns gravity alone, which
accelerates the base and no joint; shifting it changes nothing; and a uniform velocity changes
a = (classical acceleration) - w x v of the base by the last term alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, joined, symmetric
from ..algebra.spatial import skew
from ..algorithms.c_aba import c_aba
from ..mechanism.joints import Free
from ..mechanism.parts import WORLD
from .inverse import c_rnea_derivatives

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


def c_aba_derivatives(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> tuple[Any, Any, Array] | tuple[Array, Array, Array]:
    """(∂a/∂q, ∂a/∂v, M⁻¹), each (nv, nv), in tangent coordinates of q."""
    a = c_aba(model, q, v, tau, f_ext)
    dq, dv, M = c_rnea_derivatives(model, q, v, a, f_ext)
    return forward_from_inverse(model, q, v, dq, dv, M)


def forward_from_inverse(
    model: Model, q: Array, v: Array, dq: Any, dv: Any, M: Array
) -> tuple[Any, Any, Array] | tuple[Array, Array, Array]:
    """The derivatives of a from those of tau and M."""
    known_q, known_v = known_columns(model, q, v)
    rest_q = [i for i in range(model.nv) if i not in known_q]
    rest_v = [i for i in range(model.nv) if i not in known_v]
    n, nq = model.nv, len(rest_q)
    if n == 0:
        return dq, dv, M
    right = np.concatenate([-dq[:, rest_q], -dv[:, rest_v], np.eye(n)], axis=1)
    x = solve_by_limbs(M, right, *limbs(model))
    da_dq = _columns(n, known_q, dict(zip(rest_q, x[:, :nq].T, strict=True)))
    da_dv = _columns(n, known_v, dict(zip(rest_v, x[:, nq : nq + len(rest_v)].T, strict=True)))
    return da_dq, da_dv, symmetric(x[:, nq + len(rest_v) :])


def limbs(model: Model) -> tuple[list[int], list[list[int]]]:
    """(coordinates of the trunk, those of each limb): the trunk is every cluster that branches,
    with all that carry it; a limb is a chain that hangs on the trunk."""
    children = {k.index: 0 for k in model.clusters}
    for k in model.clusters:
        if k.parent is not None:
            children[k.parent] += 1
    trunk: set[int] = set()
    for k in model.clusters:
        branch = k.index if children[k.index] > 1 else None
        while branch is not None:
            trunk.add(branch)
            branch = model.clusters[branch].parent
    limb_of, found = {}, {}
    for k in model.clusters:
        if k.index not in trunk:
            limb_of[k.index] = limb_of.get(k.parent, k.index)
            found.setdefault(limb_of[k.index], []).extend(range(k.v.start, k.v.stop))
    return [i for k in sorted(trunk) for i in range(model.nv)[model.clusters[k].v]], [
        *found.values()
    ]


def solve_by_limbs(M: Array, right: Any, trunk: list[int], chains: list[list[int]]) -> Array:
    """M⁻¹ right, for many columns. With t the trunk, l its limbs and K_l = M_ll⁻¹ M_lt,

        (M_tt - Σ M_tl K_l) x_t = r_t - Σ K_lᵀ r_l,   x_l = M_ll⁻¹ r_l - K_l x_t.

    An entry of a limb that a column does not act on costs as many multiplications as the trunk has
    coordinates, whatever the limb's length.
    """
    columns = right.shape[1]
    M_tt, r_t, parts = M[trunk][:, trunk], right[trunk], []
    for chain in chains:
        own = LDL(M[chain][:, chain][::-1, ::-1])
        y = own.solve(right[chain][::-1])[::-1]
        if not trunk:
            parts.append((None, y))
            continue
        M_lt = M[chain][:, trunk]
        K = own.solve(M_lt[::-1])[::-1]
        M_tt = symmetric(M_tt - M_lt.T @ K)
        r_t = r_t - K.T @ right[chain]
        parts.append((K, y))
    x_t = LDL(M_tt[::-1, ::-1]).solve(r_t[::-1])[::-1] if trunk else np.zeros((0, columns))
    rows = dict(zip(trunk, x_t, strict=True))
    for chain, (K, y) in zip(chains, parts, strict=True):
        x = y if K is None else y - K @ x_t
        rows |= dict(zip(chain, x, strict=True))
    return np.stack([rows[i] for i in range(M.shape[0])])


def known_columns(model: Model, q: Array, v: Array) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Columns of ∂a/∂q and ∂a/∂v that a free base makes trivial, by coordinate.

    A base with armature has none: armature resists the base's acceleration, and gravity does not
    pull at it.
    """
    by_q, by_v, n = {}, {}, model.nv
    for k in model.clusters:
        body = model.bodies[k.bodies[0]]
        free = type(body.joint.motion) is Free and not body.joint.armature
        if body.parent != WORLD or not free or len(k.bodies) > 1:
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


def _columns(n: int, known: dict[Any, Any], solved: dict[Any, Any]):
    columns = known | solved
    return np.stack([columns[i] for i in range(n)], axis=1)
