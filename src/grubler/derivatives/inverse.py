"""Derivatives of inverse dynamics, recursively over clusters: (∂τ/∂q, ∂τ/∂v, M).

After Singh, Russo and Wensing, "Efficient analytical derivatives of rigid-body dynamics using
spatial vector algebra" (2022), on the spanning tree, contracted with G cluster by cluster. Body i
supports the composite inertia I, Coriolis matrix B and net force f of its subtree. With P the
motion of body i per unit of its cluster's coordinates, and the columns of a cluster j above it,

    ∂τ_i/∂q_j = Pᵢᵀ (2B Ψ̇ⱼ + I Ψ̈ⱼ),      ∂τ_j/∂q_i = Pⱼᵀ (2B Ψ̇ᵢ + I Ψ̈ᵢ + Pᵢ ×* f),
    ∂τ_i/∂v_j = Pᵢᵀ (2B Pⱼ + I Σⱼ),        ∂τ_j/∂v_i = Pⱼᵀ (2B Pᵢ + I Σᵢ).

| code   | symbol | meaning                                             | shape  |
|--------|--------|-----------------------------------------------------|--------|
| P      | P      | S G, motion of the body by the cluster's coordinates | (6, n) |
| Bq, Aq | Ψ̇, Ψ̈   | v_λ x P, a_λ x P + v_λ x Ψ̇: by a displacement       | (6, n) |
| Av     | Σ      | (v_λ + v_i) x P: by a velocity                      | (6, n) |
| F      | I P    | momentum of the subtree by P                        | (6, n) |
| b      | 2BᵀP   | its angular rows; the linear ones are zero          | (3, n) |
| Cq, Cv |        | the force on the subtree by q_i and v_i             | (6, n) |

Velocities are taken relative to the origin of the body at hand, as C-RNEA does: forces are the same
to every inertial observer. F, Cq and Cv move to the parent like forces; b gains 2 u x F, where u is
the velocity of the body's origin seen from the parent's. In that frame 2B has the moments B2 and
the linear momentum h2 alone: 2B x = [B2 x_w; x_w x h2].

Where G or S depends on q, `curvature` adds ∂(G v) to Ψ̇, and ∂(G a + g) + (v_λ + v_i) x ∂(G v) to Ψ̈.
A rotor that only spins is symmetric: its displacement changes no force.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import joined, symmetric
from ..algebra.spatial import cross, rigid_parts, skew
from ..algorithms.c_rnea import forces_across, net_forces
from ..algorithms.newton_euler import Motion, accelerated
from ..algorithms.sweep import outward
from ..mechanism.parts import WORLD
from .sources import ClusterSources, Rotor, Source, cluster_sources, turning

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


@dataclass(frozen=True, eq=False)
class Columns:
    """What a subtree hands up: columns for the coordinates of one cluster in it."""

    b: np.ndarray
    F: np.ndarray
    Cq: np.ndarray
    Cv: np.ndarray

    def __add__(self, other: Columns) -> Columns:
        return Columns(self.b + other.b, self.F + other.F, self.Cq + other.Cq, self.Cv + other.Cv)

    def seen_from_parent(self, X: Any, u2: Any) -> Columns:
        """The same on the parent, from whose origin the body's moves away with half of u2."""
        F = X.forces_back(self.F)
        b = X.rotate_back(self.b) + skew(u2) @ F[3:]
        return Columns(b, F, X.forces_back(self.Cq), X.forces_back(self.Cv))


@dataclass(frozen=True, eq=False)
class Composite:
    """Inertia I of a body with its subtree, and 2B by its moments B2 and linear momentum h2."""

    I: np.ndarray
    B2: np.ndarray
    h2: np.ndarray

    def __add__(self, other: Composite) -> Composite:
        return Composite(self.I + other.I, self.B2 + other.B2, self.h2 + other.h2)

    def coriolis(self, W: Array) -> Array:
        """2B x for columns of motions with angular velocity W."""
        return np.concatenate([self.B2 @ W, -(skew(self.h2) @ W)])

    def seen_from_parent(self, X: Any, u2: Any) -> Composite:
        I = X.rigid_congruence(self.I)
        _, m, mc = rigid_parts(I)
        h2 = X.rotate_back(self.h2)
        B2 = X.rotated_back(self.B2) - skew(X.r) @ skew(h2) - skew(mc) @ skew(u2)
        return Composite(I, B2, h2 + m * u2)


class Blocks:
    """∂τ/∂q, ∂τ/∂v and M by pairs of clusters; those of different limbs stay zero."""

    dq: Any
    dv: Any
    M: Any

    def __init__(self, model: Model):
        self.sizes: list[int] = [k.nv for k in model.clusters]
        self.dq, self.dv, self.M = {}, {}, {}

    def _add(self, blocks: dict[Any, Any], i: int, j: int, value) -> None:
        blocks[i, j] = blocks[i, j] + value if (i, j) in blocks else value

    def add(self, k: int, dq: Any, dv: Any, M: Array) -> None:
        for blocks, value in ((self.dq, dq), (self.dv, dv), (self.M, M)):
            self._add(blocks, k, k, value)

    def felt_below(self, j: int, below: Columns, k: int, source: Source) -> None:
        """The forces of cluster j, below, change by the coordinates of k."""
        self._add(self.dq, j, k, below.b.T @ source.Bq[:3] + below.F.T @ source.Aq)
        self._add(self.dv, j, k, below.b.T @ source.P[:3] + below.F.T @ source.Av)

    def felt_above(self, k: int, source: Source, j: int, below: Columns) -> None:
        """The forces of cluster k change by the coordinates of j, below."""
        self._add(self.dq, k, j, source.P.T @ below.Cq)
        self._add(self.dv, k, j, source.P.T @ below.Cv)
        M = source.P.T @ below.F
        self._add(self.M, k, j, M)
        self._add(self.M, j, k, M.T)

    def own(self, k: int, columns: Columns, source: Source) -> None:
        """The forces of cluster k by its own coordinates, through one body."""
        self.felt_below(k, columns, k, source)
        self._add(self.M, k, k, symmetric(source.P.T @ columns.F))

    def assembled(self) -> tuple[Array, ...]:
        return tuple(self._matrix(blocks) for blocks in (self.dq, self.dv, self.M))

    def _matrix(self, blocks: dict[Any, Any]):
        sizes = self.sizes
        rows = [
            joined(
                [
                    blocks[i, j] if (i, j) in blocks else np.zeros((sizes[i], sizes[j]))
                    for j in range(len(sizes))
                ],
                axis=1,
            )
            for i in range(len(sizes))
        ]
        return joined(rows, (0, 0))


def c_rnea_derivatives(
    model: Model, q: Array, v: Array, a: Array, f_ext: Mapping[int, Array] | None = None
) -> tuple[Array, ...]:
    """(∂τ/∂q, ∂τ/∂v, M), each (nv, nv), in tangent coordinates of q."""
    motion = accelerated(outward(model, q, v), a)
    f = forces_across(motion, net_forces(motion, f_ext))
    own = []
    for state in motion.sweep:
        k = state.cluster
        own.append(cluster_sources(motion, state, q[k.q], v[k.v], a[k.v], f, f_ext or {}))
    composite, blocks = rigid_composites(motion, own), Blocks(model)
    below: dict[int, dict[int, Columns]] = {i: {} for i in motion.bodies}
    for state, sources in zip(reversed(motion.sweep), reversed(own), strict=True):
        k = state.cluster.index
        blocks.add(k, sources.dq, sources.dv, sources.M)
        for joint in reversed(state.joints):
            i, up, source = joint.body.index, joint.body.parent, sources.bodies[joint.body.index]
            if joint.spin_only:
                _gather(below[up], k, rotor_columns(source))
                continue
            for j, columns in below[i].items():
                blocks.felt_below(j, columns, k, source)
                blocks.felt_above(k, source, j, columns)
            columns = columns_of(composite[i], source, f[i])
            blocks.own(k, columns, source)
            if up == WORLD:
                continue
            _gather(below[i], k, columns)
            u2 = 2.0 * source.u
            composite[up] = composite[up] + composite[i].seen_from_parent(joint.X, u2)
            for j, columns in below[i].items():
                _gather(below[up], j, columns.seen_from_parent(joint.X, u2))
    return blocks.assembled()


def _gather(below: dict[Any, Any], k: int, columns: Columns) -> None:
    below[k] = below[k] + columns if k in below else columns


def rigid_composites(motion: Motion, own: list[ClusterSources]) -> dict[int, Composite]:
    """Of each body with the rotors on it, by index; its subtree is added later."""
    rotors: dict[int, list[Rotor]] = {i: [] for i in motion.bodies}
    for state, sources in zip(motion.sweep, own, strict=True):
        for joint in state.joints:
            if joint.spin_only:
                rotors[joint.body.parent].append(sources.bodies[joint.body.index])
    return {
        i: rigid_composite(motion.sweep.robot.I[i], body.w, rotors[i])
        for i, body in motion.bodies.items()
        if i != WORLD
    }


def rigid_composite(I: Array, w: Array, rotors: list[Rotor]) -> Composite:
    """2B of a body has the moments -[w x](tr(Io) 1 - 2 Io), and -J σ̇ [e x] of each rotor on it."""
    for rotor in rotors:
        e = np.concatenate([rotor.e, np.zeros(3)])
        I = I + rotor.J * np.outer(e, e)
    Io, _, mc = rigid_parts(I)
    B2 = -(skew(w) @ (np.trace(Io) * np.eye(3) - 2.0 * Io))
    for rotor in rotors:
        B2 = B2 - skew((rotor.J * rotor.rate) * rotor.e)
    return Composite(I, B2, 2.0 * cross(w, mc))


def columns_of(composite: Composite, source: Source, f: Array) -> Columns:
    """A body's own columns, from its subtree's inertia and force."""
    P, I = source.P, composite.I
    b = composite.B2.T @ P[:3] + skew(composite.h2) @ P[3:]
    Cq = composite.coriolis(source.Bq[:3]) + I @ source.Aq + turning(f, P)
    return Columns(b, I @ P, Cq, composite.coriolis(P[:3]) + I @ source.Av)


def rotor_columns(rotor: Rotor) -> Columns:
    """Of a rotor, in the axes of its carrier: moments alone, but for external forces on it."""
    axis, G, own = rotor.J * rotor.e, rotor.G[0], rotor.own
    along, across = np.outer(axis, G), np.outer(rotor.gyro, G)
    zero = np.zeros(along.shape)
    Cq, Cv = zero, across
    if own is not None:
        Cq = np.outer(rotor.gyro, own.Vq[0]) + np.outer(axis, own.Aq[0])
        Cv = across + np.outer(axis, own.Av[0])
    F, Cq, Cv = (np.concatenate([moments, zero]) for moments in (along, Cq, Cv))
    Cq = Cq if rotor.turned is None else Cq + np.outer(rotor.turned, G)
    return Columns(across, F, Cq, Cv)
