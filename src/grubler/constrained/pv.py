"""PV: constrained dynamics by Popov and Vereshchagin's solver (Algorithm 1), on clusters.

Constraint forces are carried to the base next to the articulated inertias; there one linear system
gives all multipliers, and the roll-out is that of C-ABA. O(n + m² d + m³).

| code | paper     | meaning                                                      | shape    |
|------|-----------|--------------------------------------------------------------|----------|
| H    | H_i^A     | articulated inertia of a cluster (42a)                       | (6l, 6l) |
| p    | -f_i^A    | articulated bias force (42b), without the joint's own force  | (6l,)    |
| J, u | D_i, S'f  | the joint eliminated, and the force left to accelerate it    |          |
| rows | K, l, L   | constraint rows on their way, see carried.py (42c)-(42e)     |          |
| Y    | S' K_i^A' | constraint forces on the joint                               | (nv, m)  |

At each stage K a + l + L λ = 0; our λ is the negative of the paper's, M a + h = tau + J' λ. A block
between two bodies has an end in each branch: its parts meet, and add, at their common ancestor.
Soft rows begin with L = R.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.elimination import Elimination
from ..algorithms.sweep import parent_of
from .base_first import applies, base_and_multipliers
from .carried import Carried
from .equations import Equations, prepared
from .rows import gathered

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Wanted


def pv(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
) -> Any:
    """(a, multipliers); `constraints` are checked ones."""
    equations = prepared(model, q, v, tau, constraints, f_ext, desired)
    return carried_to_base(equations, applies(model.nominal, constraints))


def carried_to_base(
    equations: Equations, base_first: bool = False, redundant: bool = False
) -> tuple[Array, Any | Array]:
    """(a, multipliers), all rows being resolved together, last.

    All motion is determined by inertia, so that a joint that hardly moves a row costs no digits.
    `redundant` rows are met in the sense of least squares. `base_first`: see base_first.py.
    """
    sweep, H, p, tau = equations.sweep, list(equations.H), list(equations.p), equations.tau
    rows, J, u, a, qdd = Carried(equations.rows), {}, {}, [], []
    for state in reversed(sweep[base_first:]):
        k, up = state.cluster.index, state.cluster.parent
        J[k] = Elimination(state, H[k])
        u[k] = J[k].joint_force(p[k], tau[state.cluster.v])
        if up is not None:
            H[up] = H[up] + J[k].inertia()  # (42a)
            p[up] = p[up] + J[k].bias(p[k], tau[state.cluster.v], u[k])  # (42b)
        rows.cross(J[k], u[k])  # (42c), (42d), (42e)
    if base_first:
        a_base, multipliers = base_and_multipliers(sweep[0], H[0], p[0], tau, rows)
        qdd, a = [a_base], [a_base]
    else:
        multipliers = rows.solve(redundant)  # (43), (47)
    for state in sweep[base_first:]:
        k, drive = state.cluster.index, rows.drive(state.cluster.index, multipliers)
        force = u[k] if drive is None else u[k] + drive
        own, moved = J[k].motion(force, parent_of(a, state.cluster, None))  # (41)
        qdd.append(own)
        a.append(moved)
    return np.concatenate(qdd), gathered(equations.rows, multipliers)
