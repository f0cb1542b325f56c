"""The inverse operational-space inertia matrix Λ⁻¹ = J M⁻¹ Jᵀ by the algorithms of Sec. VII.

| code  | paper  | meaning                                                        | shape    |
|-------|--------|----------------------------------------------------------------|----------|
| U, D  | H S, D_i | articulated inertia along the joints                         | (6l, nv) |
| F     | K_i^A' | constraint forces propagated to a cluster, by frame            | (6l, m)  |
| L     | L_i^A  | inverse inertia so far, by pairs of frames (42e)               | (m, m')  |
| Om    | Ω_ij   | acceleration of cluster i per force on cluster j               | (6l, 6l')|

C-EFPA is in grubler.algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, symmetric
from ..algorithms.c_crba import mass_matrix_of
from ..algorithms.elimination import eliminations
from ..algorithms.sweep import outward
from ..tolerances import FRAME_RANK
from .base_first import free_base
from .carried import Carried
from .jacobian import jacobian_and_drift
from .ltl import Leaves
from .rows import Rows, stacked

if TYPE_CHECKING:
    from ..algorithms.sweep import Sweep
    from ..model.model import Model
    from ..typing import Array, Frame


def frame_rows(sweep: Any, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> list[Rows]:
    """The rows of frames, as constraints without biases."""
    blocks, start = [], 0
    for frame, rows in frames:
        unit = frame.placement.forces_back(np.eye(6)[:, list(rows)])
        k, F = stacked(sweep, frame.body, unit)
        blocks.append(Rows({k: F}, None, None, tuple(range(start, start + len(rows)))))
        start += len(rows)
    return blocks


def swept(model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> Sweep:
    """The sweep in which the frames' bodies keep their described frame."""
    return outward(model, q, keep_frame=[frame.body for frame, _ in frames])


def pv_osim(model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> Array:
    """PV-OSIM (Algorithm 2): L gathered on the way to the base, in constraint space."""
    sweep = swept(model, q, frames)
    carried = Carried(frame_rows(sweep, frames))
    for joint in reversed(eliminations(sweep)):
        carried.cross(joint, None)  # lines 7, 8, 10
    return carried.matrix(range(len(frames)))


class OsimSolve:
    """Λ of branches on a free base by the matrix inversion lemma, never formed (54), (55).

    Λ = Λ_b - L_K (H_b + K_b' L_K)⁻¹ L_K',   Λ_b = L_b⁻¹ block diagonal,  L_K = Λ_b K_b.
    """

    carried: Carried

    def __init__(self, carried: Carried, H: Array):
        self.carried, self.H = carried, H
        self.parts: list[Any] = []
        F = carried.at(0)
        for blocks in carried.components():
            L = LDL(carried.matrix(blocks))
            K = np.concatenate([F[b] for b in blocks], axis=1).T
            H = H + L.quadratic(K)
            self.parts.append((blocks, L, K))
        self.base: LDL = LDL(symmetric(H))

    def solve(self, b: Any) -> Array:
        """Λ b for a vector, or for the columns of a matrix."""
        every = range(len(self.carried.m))
        by_block = self.carried.split(every, b)
        local = [
            (blocks, L, K, L.solve(np.concatenate([by_block[i] for i in blocks])))
            for blocks, L, K in self.parts
        ]
        a = self.base.solve(sum(K.T @ x for _, _, K, x in local))
        out: dict[Any, Any] = {}
        for blocks, L, K, x in local:
            out |= self.carried.split(blocks, x - L.solve(K @ a))
        return np.concatenate([out[i] for i in every])

    def inverse(self) -> Array:
        """Λ⁻¹ = L_b + K_b H_b⁻¹ K_b'."""
        every, F = range(len(self.carried.m)), self.carried.at(0)
        K = np.concatenate([F[i] for i in every], axis=1)
        return symmetric(self.carried.matrix(every) + LDL(symmetric(self.H)).quadratic(K))


class DenseSolve:
    """The same face where the lemma does not apply: a fixed base, or frames that need the base."""

    def __init__(self, inverse_osim: Any):
        self.matrix = inverse_osim

    def solve(self, b: Any) -> Array:
        return dense_solve(self.matrix, b)

    def inverse(self) -> Any:
        return self.matrix


def pv_osim_fast(
    model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]
) -> DenseSolve | OsimSolve:
    """PV-OSIM-fast (Sec. VII-B): an object whose `solve(b)` gives Λ b.

    Needs frames that the branches can move without the base (L_b invertible); where they cannot at
    any posture, and on a fixed base, it factorizes the matrix of PV-OSIM.
    """
    if not free_base(model) or not moved_by_branches(model.nominal, tuple(frames)):
        return DenseSolve(pv_osim(model, q, frames))
    sweep = swept(model, q, frames)
    carried, joints = Carried(frame_rows(sweep, frames)), eliminations(sweep)
    for joint in reversed(joints[1:]):
        carried.cross(joint, None)
    return OsimSolve(carried, joints[0].IA)


@lru_cache(maxsize=256)
def moved_by_branches(model: Model, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> bool:
    """Whether the branches alone move the frames every way, at some posture."""
    for seed in range(3):
        sweep = swept(model, model.random_state(seed)[0], frames)
        J = jacobian_and_drift(sweep, frame_rows(sweep, frames))[0][:, 6:]
        if np.linalg.matrix_rank(J, tol=FRAME_RANK * max(np.linalg.norm(J), 1e-30)) == J.shape[0]:
            return True
    return False


def kjr(model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> Array:
    """KJR (Kreutz-Delgado, Jain, Rodriguez): Ω of every cluster outward, then along the paths.

    Υ_k = Ω_kk = ψ* Ω_λλ ψ + S D⁻¹ S';  Ω_ij through ψ from the greatest common ancestor.
    """
    sweep = swept(model, q, frames)
    J, rows = eliminations(sweep), frame_rows(sweep, frames)
    home = [next(iter(block.ends)) for block in rows]
    needed = {j for k in home for j in model.tree.inward(k)}
    Om: dict[Any, Any] = {}
    for state in sweep:
        k, up = state.cluster.index, state.cluster.parent
        if k not in needed:
            continue
        Om[k] = J[k].D.quadratic(state.S.T)
        if up is not None:
            Om[k] = symmetric(Om[k] + J[k].motions(J[k].motions(Om[up]).T))
    blocks = [[None] * len(rows) for _ in rows]
    for i, a in enumerate(rows):
        for j in range(i, len(rows)):
            common = model.tree.common(home[i], home[j])
            value = np.zeros((a.m, rows[j].m))
            if common is not None:
                pair = Om[common]
                for k in model.tree.between(common, home[i]):
                    pair = J[k].motions(pair)
                pair = pair.T
                for k in model.tree.between(common, home[j]):
                    pair = J[k].motions(pair)
                value = a.ends[home[i]].T @ pair.T @ rows[j].ends[home[j]]
            blocks[i][j], blocks[j][i] = value, value.T
    return symmetric(np.block(blocks))


def ltl_osim(model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> Array:
    """LTL-OSIM (Sec. II-C): Λ⁻¹ = Y Y' with Y = J L⁻¹, both as sparse as J (7), (8)."""
    sweep = swept(model, q, frames)
    J, _ = jacobian_and_drift(sweep, frame_rows(sweep, frames))
    factor = Leaves(mass_matrix_of(sweep))
    Y = factor.forward(J.T)
    return symmetric(Y.T @ factor.scale(Y))


def dense_solve(inverse_osim: Any, b: Any) -> Array:
    return LDL(inverse_osim).solve(b)


__all__ = ["dense_solve", "kjr", "ltl_osim", "pv_osim", "pv_osim_fast"]
