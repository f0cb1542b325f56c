"""PV: constrained dynamics by Popov and Vereshchagin's solver (Algorithm 1), on clusters.

Constraint forces are carried to the base next to the articulated inertias; there one linear system
gives all multipliers, and the roll-out is that of C-ABA. O(n + m² d + m³).

| code | paper   | meaning                                                       | shape    |
|------|---------|---------------------------------------------------------------|----------|
| H    | H_i^A   | articulated inertia of a cluster (42a)                        | (6l, 6l) |
| p    | -f_i^A  | articulated bias force (42b), without the joint's own force   | (6l,)    |
| F    | K_i^A'  | constraint forces propagated to the cluster, by block (42c)   | (6l, m)  |
| l    | l_i     | desired constraint accelerations, propagated (42d)            | (m,)     |
| L    | L_i^A   | what the multipliers move already, by pairs of blocks (42e)   | (m, m')  |
| Y    | S' K_i^A' | constraint forces on the joint                              | (nv, m)  |

At each stage K a + l + L λ = 0; our λ is the negative of the paper's, M a + h = tau + J' λ. A block
between two bodies has an end in each branch: its parts meet, and add, at their common ancestor.
Soft rows begin with L = R.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, symmetric
from ..algorithms.first_pass import first_pass, parent_of
from ..compiler import otherwise
from .jacobian import jacobian_and_drift, softness
from .recursion import cross_joint, cross_rows, prepared, roll_out, total
from .rows import constraint_rows, gathered, independent_rows, posed
from .semidefinite import Semidefinite

if TYPE_CHECKING:
    from ..algorithms.first_pass import ClusterState
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .recursion import Crossing
    from .rows import Wanted

STILL = 1e-6  # a row that all joints together move by less than this is not moved at all
CLEAR = 1e3  # a row's own L to its pivot's, below which it does not depend on others
DENSE = 3  # joints after which forces of a constraint have no zeros left, as a rule


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
    ready = prepared(model, q, v, constraints, f_ext, desired)
    return carried_to_base(ready, tau, early_base(model.nominal, constraints))


def carried_to_base(
    ready: Any, tau: Array, base_first: bool = False, redundant: str = "never"
) -> Any:
    """(a, multipliers) from what `prepared` gives.

    Everything is told by inertia, and all rows are resolved together, last, so that a joint that
    hardly moves a row costs no digits. `redundant` rows ("never", "seldom" or "always" there) are
    met in the sense of least squares.
    """
    states, H, p, rows = ready[0], list(ready[1]), list(ready[2]), ready[3]
    carried, crossings, Y = Carried(rows), {}, {}
    for state in reversed(states[base_first:]):
        k, up = state.cluster.index, state.cluster.parent
        crossings[k], Ha, pa = cross_joint(state, H[k], p[k], tau[state.cluster.v])
        if up is not None:
            H[up], p[up] = H[up] + Ha, p[up] + pa
        Y[k] = carried.cross(state, crossings[k], carried.at(k))
    acc, out = [], []
    if base_first:
        a_base, multipliers = solve_base_first(states[0], H[0], p[0], tau, carried)
        out.append(a_base)
        acc.append(a_base)
    else:
        multipliers = carried.solve(Y.values(), redundant)  # (43), (47)
    for state in states[base_first:]:
        k = state.cluster.index
        a_parent = parent_of(acc, state.cluster, np.zeros(6))
        drive = total(Y[k][b] @ multipliers[b] for b in Y[k]) if Y[k] else None
        qdd, a = roll_out(state, crossings[k], a_parent, drive)  # (41)
        out.append(qdd)
        acc.append(a)
    m = sum(len(block.index) for block in rows)
    return np.concatenate(out), gathered(rows, multipliers, m)


class Carried:
    """Blocks of rows on their way to the base: F by cluster and block, l by block, L by pairs."""

    def __init__(self, rows: Any):
        self.m: list[Any] = [block.m for block in rows]
        self.R = [softness([block]) for block in rows]
        self.F: dict[int, dict[Any, Any]] = {}
        self.l: list[Any] = [block.l for block in rows]
        self.L: dict[tuple[int, int], object] = {}
        self.crossed: dict[int, int] = {}  # joints that a block has come through
        self._parts: list[
            tuple[dict[Any, Any], dict[Any, Any]]
        ] = []  # by joint Q and Z of each block: L = sum Q' Z
        for b, block in enumerate(rows):
            for k, F in block.ends.items():
                self._add(k, b, F)
            if block.R is not None:
                self.L[b, b] = np.diag(block.R)

    def _add(self, k, b, F):
        here = self.F.setdefault(k, {})
        here[b] = here[b] + F if b in here else F

    def at(self, k: int | None) -> dict[Any, Any]:
        """Blocks at cluster k, None at the world: forces by block."""
        return self.F.get(k, {})

    def cross(self, state: ClusterState, crossing: Crossing, F: Any) -> dict[Any, Any]:
        """Carry blocks F across a joint (42c)-(42e); returns Y = S' F by block."""
        Y, Q, Z = {}, {}, {}
        dense = sum(self.m[b] for b in F) > 1  # half a solve pays for two columns or more
        dense = dense and all(self.crossed.get(b, 0) >= DENSE for b in F)
        for b in F:
            up, Y[b], Q[b], Z[b], gain = cross_rows(state, crossing, F[b], dense)
            self.crossed[b] = self.crossed.get(b, 0) + 1
            self._add(state.cluster.parent, b, up)
            if self.l[b] is not None:
                self.l[b] = self.l[b] + gain
        for a in F:
            for b in F:
                if a <= b:
                    term = Q[a].T @ Z[b]
                    self.L[a, b] = self.L[a, b] + term if (a, b) in self.L else term
        self._parts.append((Q, Z))
        return Y

    def matrix(self, blocks: Any) -> Any:
        """L of some blocks."""
        return symmetric(np.block([[self._pair(a, b) for b in blocks] for a in blocks]))

    def _pair(self, a, b):
        if (a, b) in self.L:
            return self.L[a, b]
        if (b, a) in self.L:
            return self.L[b, a].T
        return np.zeros((self.m[a], self.m[b]))

    def split(self, blocks: Any, x: Array | None) -> dict[Any, Any]:
        """A stacked vector by block."""
        out, start = {}, 0
        for b in blocks:
            out[b] = x[start : start + self.m[b]]
            start += self.m[b]
        return out

    def solve(self, crossed: Any, redundant: str) -> list[Any]:
        """The multipliers by block, once all rows have come to the world (43), (47).

        `crossed` is Y of all joints. Where rows may be redundant, one that no joint moves, at a
        singular posture, is left out.
        """
        blocks = list(range(len(self.m)))
        if not blocks:
            return []
        L, l = self.matrix(blocks), np.concatenate(self.l)
        if redundant == "never":
            x = LDL(L).solve(-l)
        else:
            alive = np.concatenate([self._moved(b, crossed) for b in blocks])
            x = self._least_squares(L, l, alive, redundant == "always")
        return list(self.split(blocks, x).values())

    def _least_squares(self, L, l, alive, always: bool):
        """λ of rows that depend on each other always, or that may."""

        def solve():
            return Semidefinite(L, alive).solve(-l, self._product)

        if always:
            return solve()
        factor = LDL(L)
        clear = [np.abs(g) * L[j, j] < CLEAR for j, g in enumerate(factor.inverse_pivots)]
        clear = reduce(np.logical_and, [*clear, *(alive[j] > 0.0 for j in range(len(clear)))])
        return otherwise(clear, factor.solve(-l), solve)

    def _product(self, x):
        """L x by the parts that L is made of: where rows nearly depend on each other, L itself has
        lost twice as many digits."""
        x = list(self.split(range(len(self.m)), x).values())
        out = [y * R for y, R in zip(x, self.R)]
        for Q, Z in self._parts:
            moved = total([Z[b] @ x[b] for b in Z]) if Z else None
            for b in Q:
                out[b] = out[b] + Q[b].T @ moved
        return np.concatenate(out)

    def _moved(self, b: int, crossed):
        """One where a row of block b counts, zero where no joint moves it."""
        if np.any(self.R[b]):
            return np.ones(self.m[b])
        return 1.0 * (total([(Y[b] * Y[b]).sum(axis=0) for Y in crossed if b in Y]) > STILL**2)

    def components(self) -> list[list[int]]:
        """Blocks that L couples, directly or through others."""
        groups = [{b} for b in range(len(self.m))]
        for a, b in self.L:
            joined = [g for g in groups if a in g or b in g]
            groups = [g for g in groups if g not in joined] + [set().union(*joined)]
        return [sorted(g) for g in groups]


def solve_base_first(state: ClusterState, H: Array, p: Array, tau: Array, carried: Carried) -> Any:
    """The base's acceleration, then the multipliers: L_b is block diagonal over branches (49)."""
    F = carried.at(0)
    right = tau[state.cluster.v] - p
    factors = []
    for blocks in carried.components():
        L = LDL(carried.matrix(blocks))
        K = np.concatenate([F[b] for b in blocks], axis=1).T
        l = np.concatenate([carried.l[b] for b in blocks])
        H = H + L.quadratic(K)
        right = right - K.T @ L.solve(l)
        factors.append((blocks, L, K, l))
    a_base = LDL(symmetric(H)).solve(right)
    multipliers: dict[Any, Any] = {}
    for blocks, L, K, l in factors:
        multipliers |= carried.split(blocks, -L.solve(K @ a_base + l))  # (46)
    return a_base, [multipliers[b] for b in range(len(carried.m))]


def free_base(model: Model) -> bool:
    """Whether everything hangs on one body with a free joint."""
    roots = [c for c in model.clusters if c.parent is None]
    if len(roots) != 1 or len(roots[0].bodies) != 1 or roots[0].nv != 6:
        return False
    return not model.bodies[roots[0].bodies[0]].joint.armature


@lru_cache(maxsize=256)
def early_base(model: Model, constraints: Sequence[Checked]) -> bool:
    """Whether (49) applies: a free base, and hard rows that its branches can serve without it."""
    if not free_base(model):
        return False
    hard = tuple(c for c in constraints if c.softness is None)
    return bool(constraints) and all(_served_without_base(model, hard, seed) for seed in range(3))


def _served_without_base(model, constraints, seed: int) -> bool:
    if not constraints:
        return True
    states = first_pass(model, model.random_state(seed)[0], posed=posed(constraints))
    rows = independent_rows(model, constraint_rows(model, states, constraints), constraints)
    J = jacobian_and_drift(model, states, rows)[0][:, 6:]
    return np.linalg.matrix_rank(J, tol=1e-6 * np.linalg.norm(J)) == J.shape[0]
