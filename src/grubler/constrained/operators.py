"""Spatial operators (Rodriguez, Jain, Kreutz-Delgado), on clusters.

| code       | paper | meaning                                                | shape    |
|------------|-------|--------------------------------------------------------|----------|
| E_phi, phi | 𝓔_φ, φ | forces to the parent; to all ancestors, hinges locked | (N, N)   |
| E_psi, psi | 𝓔_ψ, ψ | the same, hinges free (0.27)                           | (N, N)   |
| H          | H     | forces to hinges, S' of every cluster                  | (nv, N)  |
| M          | M     | inertias                                               | (N, N)   |
| P          | P     | articulated inertias (0.25)                            | (N, N)   |
| D, G, K    | D, G, K | H P H*, P H* D⁻¹, 𝓔_φ G (0.26)                       |          |
| tau_bar    | τ̄     | 1 - G H                                                | (N, N)   |
| Omega      | Ω     | ψ* H* D⁻¹ H ψ (0.34)                                   | (N, N)   |
| Upsilon    | Υ     | its block diagonal (.43)                               | (N, N)   |

N counts the stacked rows of all clusters, six a body. Operators multiply vectors by O(n) recursions
and are never formed; `.dense()` forms them, `.T` is the paper's star, and `@`, `+`, `-` compose.
Clusters are numbered from the base to the tips, so that φ is upper triangular here.

Lemma .5, Ω = Υ + ψ̃* Υ + Υ ψ̃, is one of serial chains: on a tree it gives the blocks of Ω between
a cluster and its ancestors, while clusters on different branches are coupled through the nearest
common ancestor j, Ω_ik = ψ_ji* Υ_j ψ_jk, where the paper's (.43) has zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import block_diagonal, split
from ..algebra.linalg import symmetric
from ..algebra.symbolic import is_symbolic
from ..algorithms.checks import checked_frames
from ..algorithms.elimination import eliminations
from ..algorithms.sweep import outward
from ..errors import InputError
from .osim import frame_rows

if TYPE_CHECKING:
    from ..algorithms.sweep import Sweep
    from ..model.model import Model
    from ..typing import Frame


@dataclass(frozen=True, eq=False)
class Operator:
    """A linear operator known by its products with vectors."""

    shape: tuple[int, int]
    apply: Callable[..., Any]
    apply_transposed: Callable[..., Any]

    @property
    def T(self) -> Operator:
        return Operator(self.shape[::-1], self.apply_transposed, self.apply)

    def __matmul__(self, other: Any) -> Any:
        """The product with a vector (n,), or with another operator."""
        if isinstance(other, Operator):
            if self.shape[1] != other.shape[0]:
                raise InputError(f"operators of shapes {self.shape} and {other.shape} do not meet")
            return Operator(
                (self.shape[0], other.shape[1]),
                lambda x: self.apply(other.apply(x)),
                lambda y: other.apply_transposed(self.apply_transposed(y)),
            )
        other = other if is_symbolic(other) else np.asarray(other)
        if other.shape != (self.shape[1],):
            raise InputError(
                f"an operator of shape {self.shape} meets an array of shape {other.shape}: give "
                f"a vector ({self.shape[1]},), or multiply .dense()"
            )
        return self.apply(other)

    def __add__(self, other: Operator) -> Operator:
        if self.shape != other.shape:
            raise InputError(f"operators of shapes {self.shape} and {other.shape} do not add up")
        return Operator(
            self.shape,
            lambda x: self.apply(x) + other.apply(x),
            lambda y: self.apply_transposed(y) + other.apply_transposed(y),
        )

    def __neg__(self) -> Operator:
        return Operator(
            self.shape, lambda x: -self.apply(x), lambda y: -self.apply_transposed(y)
        )  # fmt: skip

    def __sub__(self, other: Operator) -> Operator:
        return self + (-other)

    def dense(self) -> np.ndarray:
        """The matrix, column by column."""
        return np.stack([self.apply(e) for e in np.eye(self.shape[1])], axis=1)


class SpatialOperators:
    """The operators of a model at one configuration."""

    model: Model
    states: Sweep
    size: int
    nv: int

    def __init__(self, model: Model, q: Any):
        self.model, self.states = model, outward(model, q, keep_frame=None)
        self._sizes = [sum(state.sizes) for state in self.states]
        self._dofs = [state.cluster.nv for state in self.states]
        self._parents = [state.cluster.parent for state in self.states]
        self._joints = eliminations(self.states)
        self.size, self.nv = sum(self._sizes), sum(self._dofs)

    # kinematics and inertia

    @cached_property
    def E_phi(self) -> Operator:
        """Forces to the parent cluster (0.4), (0.10)."""
        return self._shift(lambda k, f: f, lambda k, a: a)

    @cached_property
    def phi(self) -> Operator:
        """(1 - 𝓔_φ)⁻¹ (0.6), (0.12)."""
        return self._propagate(lambda k, f: f, lambda k, a: a)

    @cached_property
    def H(self) -> Operator:
        """S' of every cluster: forces to hinge forces, its star hinge rates to motions (0.5)."""
        return self._blocks([state.S.T for state in self.states])

    @cached_property
    def M(self) -> Operator:
        """The spatial inertias (0.5)."""
        return self._blocks([block_diagonal(state.I) for state in self.states])

    @cached_property
    def mass_matrix(self) -> Operator:
        """𝓜 = H φ M φ* H*, the Newton-Euler factorization (0.14), with armature."""
        product = self.H @ self.phi @ self.M @ self.phi.T @ self.H.T
        if all(state.R is None for state in self.states):
            return product
        zero = [np.zeros((n, n)) for n in self._dofs]
        R = [z if s.R is None else s.R for z, s in zip(zero, self.states)]
        return product + self._blocks(R)

    # articulated bodies

    @cached_property
    def P(self) -> Operator:
        """Articulated inertias: M = P - 𝓔_φ [P - P H* D⁻¹ H P] 𝓔_φ* (0.25), (.39)."""
        return self._blocks([joint.IA for joint in self._joints])

    @cached_property
    def D(self) -> Operator:
        """H P H*, block diagonal (0.26); with armature."""
        return self._blocks([joint.state.joint_inertia(joint.U) for joint in self._joints])

    @cached_property
    def D_inverse(self) -> Operator:
        solve = self._each(self._dofs, lambda k, x: self._joints[k].D.solve(x))
        return Operator((self.nv, self.nv), solve, solve)

    @cached_property
    def G(self) -> Operator:
        """P H* D⁻¹, the Kalman gain (0.26)."""
        return Operator(
            (self.size, self.nv),
            self._each(self._dofs, lambda k, x: self._joints[k].U @ self._joints[k].D.solve(x)),
            self._each(self._sizes, lambda k, y: self._joints[k].D.solve(self._joints[k].U.T @ y)),
        )

    @cached_property
    def K(self) -> Operator:
        """𝓔_φ G (0.26)."""
        return self.E_phi @ self.G

    @cached_property
    def tau_bar(self) -> Operator:
        """1 - G H (0.26)."""
        return Operator(
            (self.size, self.size),
            self._each(self._sizes, self._free_force),
            self._each(self._sizes, self._free_motion),
        )

    @cached_property
    def E_psi(self) -> Operator:
        """𝓔_φ τ̄ (0.26)."""
        return self._shift(self._free_force, self._free_motion)

    @cached_property
    def psi(self) -> Operator:
        """(1 - 𝓔_ψ)⁻¹ (0.27)."""
        return self._propagate(self._free_force, self._free_motion)

    @cached_property
    def mass_matrix_inverse(self) -> Operator:
        """𝓜⁻¹ = [1 - HψK]* D⁻¹ [1 - HψK], Lemma 0.3."""
        factor = self.identity(self.nv) - self.H @ self.psi @ self.K
        return factor.T @ self.D_inverse @ factor

    @cached_property
    def Omega(self) -> Operator:
        """ψ* H* D⁻¹ H ψ: accelerations per force, anywhere (0.34)."""
        return self.psi.T @ self.H.T @ self.D_inverse @ self.H @ self.psi

    @cached_property
    def Upsilon(self) -> Operator:
        """The block diagonal of Ω, by the outward recursion (.43)."""
        blocks: list[Any] = []
        for joint, up in zip(self._joints, self._parents):
            value = joint.D.quadratic(joint.state.S.T)
            if up is not None:
                value = symmetric(value + joint.motions(joint.motions(blocks[up]).T))
            blocks.append(value)
        return self._blocks(blocks)

    def B(self, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> Operator:
        """The pick-off of frames (0.17): forces at the frames to forces on the clusters."""
        rows = frame_rows(self.states, checked_frames(self.model, frames))
        matrix = []
        for block in rows:
            ((home, F),) = block.ends.items()
            parts = [np.zeros((n, block.m)) for n in self._sizes]
            parts[home] = F
            matrix.append(np.concatenate(parts))
        B = np.concatenate(matrix, axis=1)
        return Operator(B.shape, lambda x: B @ x, lambda y: B.T @ y)

    def inverse_osim(self, frames: Sequence[tuple[Frame, tuple[int, ...]]]) -> Operator:
        """Λ = B* Ω B (0.34), the paper's admittance at the frames."""
        B = self.B(frames)
        return B.T @ self.Omega @ B

    def identity(self, n: int | None = None) -> Operator:
        n = self.size if n is None else n
        return Operator((n, n), lambda x: x, lambda x: x)

    # recursions

    def _free_force(self, k, f):
        return self._joints[k].free_force(f)

    def _free_motion(self, k, a):
        return self._joints[k].free_motion(a)

    def _each(self, sizes, function) -> Callable[..., Any]:
        def apply(x):
            return np.concatenate([function(k, part) for k, part in enumerate(split(x, sizes))])

        return apply

    def _blocks(self, blocks) -> Operator:
        rows, columns = [b.shape[0] for b in blocks], [b.shape[1] for b in blocks]
        return Operator(
            (sum(rows), sum(columns)),
            self._each(columns, lambda k, x: blocks[k] @ x),
            self._each(rows, lambda k, y: blocks[k].T @ y),
        )

    def _shift(self, force, motion) -> Operator:
        """One step to the parents, after `force`; its star one step outward, before `motion`."""
        return self._steps(force, motion, False)

    def _propagate(self, force, motion) -> Operator:
        """All steps to the base, and its star."""
        return self._steps(force, motion, True)

    def _steps(self, force, motion, every: bool) -> Operator:
        joints = [(k, up) for k, up in enumerate(self._parents) if up is not None]

        def parts(x):
            source = split(x, self._sizes)
            return source, source if every else [np.zeros(n) for n in self._sizes]

        def inward(x):
            source, out = parts(x)
            for k, up in reversed(joints):
                out[up] = out[up] + self.states[k].X.force_back(force(k, source[k]))
            return np.concatenate(out)

        def outward(y):
            source, out = parts(y)
            for k, up in joints:
                out[k] = out[k] + motion(k, self.states[k].X.motion(source[up]))
            return np.concatenate(out)

        return Operator((self.size, self.size), inward, outward)


__all__ = ["Operator", "SpatialOperators"]
