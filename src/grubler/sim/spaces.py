"""What an integrator moves in: the model's own coordinates, or the velocities of all joints.

A loop that is closed implicitly leaves a choice of coordinates, and every choice ends somewhere: at
a dead point the independent joints say nothing of the others. `Partitioned` integrates in the
model's coordinates, which is quick, and knows when they are ill-conditioned. `Spanning` takes over
there. It carries the velocities of all tree joints of such a cluster and chooses no coordinates:
C-ABA is handed an orthonormal basis N of the null space of K and a ν with K ν = k, both by
Householder reflections, and the accelerations N ż + ν of the joints are the same with any basis
(2), (3). It ends only where K itself loses rank: at a singularity of the mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import RowSpace, joined
from ..algebra.spatial import quaternion_exp, quaternion_matrix
from ..algorithms.c_aba import c_aba
from ..algorithms.spanning import spanning_map
from ..compiler import iterate
from ..contact.system import turns
from ..coordinates.embedding import ImplicitJoint
from ..coordinates.newton import newton_step
from ..model import Model
from ..model.exchange import with_embeddings
from ..reduction.reduced import reduced
from .conditioning import CHANGE, SMALL, SMALLEST, STEEPEST, slope, typical_sizes
from .step import both

if TYPE_CHECKING:
    from ..typing import Array

CLOSURE_STEPS = 12
CLOSURE = {"float64": 1e-13, "float32": 1e-6}  # m or rad; what the precision can tell from zero
CLOSED = {"float64": 1e-10, "float32": 1e-5}  # m or rad; a step that closes no better has failed

# K is taken for singular where a row is nearer to the span of the others than this many times the
# angle by which the joints turn in one step, or than the second number, relative to the row's
# typical size: the next step might pass the singularity unseen.
WITHIN = 1.0
FLAT = {"float64": 1e-6, "float32": 1e-3}


class Partitioned:
    """The model's coordinates: velocities are v. Dependent joints follow by Newton steps.

    `regular` is false where the pivots of K_d, or the slopes of a closed form, say that the
    independent joints of some cluster do not determine the others well.
    """

    model: Model
    dt: float
    passive: Any
    dtype: str

    def __init__(self, model: Model, dt: float, passive: Any, dtype: str):
        self.model, self.dt, self.passive, self.dtype = model, dt, passive, dtype
        self.sizes: dict[int, tuple[Array, Array]] = {
            c.index: typical_sizes(c.embedding, model.reference)
            for c in model.clusters if c.embedding.implicit
        }  # fmt: skip
        self._slopes = {
            c.index: slope(c.embedding, model.reference)
            for c in model.clusters if not (c.embedding.implicit or c.embedding.always_closed)
            and c.embedding.loops
        }  # fmt: skip

    def regular(self, q: Array, v: Array) -> Any | None:
        found = []
        for _, size, inverse in self._all_pivots(q):
            found.append(sum((x * (SMALLEST * p)) ** 2 for x, p in zip(inverse, size)) <= 1.0)
        return both(*found, self.slopes_regular(q, lambda cluster: v[cluster.v]))

    def resolved(self, first: Any, last: Any) -> Any | None:
        """Whether no small pivot changes much between the first and the last state of a step.

        In coordinates at a distance d from their singularity, an integrator of order p errs by some
        (step / d)^p more than it does elsewhere.
        """
        found = []
        for (before, size, inverse), (after, _, _) in zip(
            self._all_pivots(first), self._all_pivots(last), strict=True
        ):
            for p, q, x, s in zip(before, after, inverse, size, strict=True):
                change = (q - p) * x
                large = (x * (SMALL * s)) ** 2 <= 1.0
                found.append(np.logical_or(large, change * change <= CHANGE**2))
        return both(*found)

    def _all_pivots(self, q):
        """(pivots, their typical sizes, their inverses) of each implicit cluster.

        C-ABA computes the same: the embeddings are those of its reduced model.
        """
        for cluster, joint in zip(self.model.clusters, reduced(self.model, frozenset()).embeddings):
            if cluster.index in self.sizes:
                pivots, inverses = joint.pivots(joint.positions(q[cluster.q]))
                yield pivots, self.sizes[cluster.index][0], inverses

    def slopes_regular(self, q: Array, velocity: Any) -> Any | None:
        """Whether closed forms are away from their dead points: there no coordinates help, since a
        closed form has one branch."""
        return both(*(size <= bound for _, size, bound in self.slopes(q, velocity)))

    def slopes(self, q: Array, velocity: Any) -> Any:
        """(cluster, how steep it is, what that must not exceed) of each closed form that can end.

        The slopes G grow as 1 / d at a distance d from the dead point, which the next step must not
        reach: neither they nor their product with the motion of a step may be large.
        """
        for cluster, joint in zip(self.model.clusters, reduced(self.model, frozenset()).embeddings):
            if cluster.index not in self._slopes:
                continue
            v = velocity(cluster)
            G, _, _ = joint.velocity_map(joint.positions(q[cluster.q]), None)
            size, rates = sum(G[i] @ G[i] for i in range(G.shape[0])), G @ v
            steps = (WITHIN * self.dt) ** 2 * (rates @ rates) + STEEPEST**-2
            yield cluster, size * steps, self._slopes[cluster.index] ** 2

    def move(self, q: Array, xi: Array, straight: bool = False) -> tuple[Array, Any | None]:
        """(q ⊕ ξ, whether all loops closed) for an increment of the independent coordinates;
        `straight`: floating bases move along a line while they turn, not along a screw."""
        return _moved(self.model, q, xi, self.dtype, self._predicted, True, straight)

    def turned(self, v: Array, xi: Array) -> Array:
        """A velocity after ξ, of one in the axes before it."""
        return _turned(self.model, v, xi, [c.v for c in self.model.clusters])

    def _predicted(self, cluster, positions, xi):
        joint, step = cluster.embedding, xi[cluster.v]
        if joint.implicit:
            step = joint.velocity_map(positions, None)[0] @ step
        return step

    def rate(self, xi: Array, v: Array) -> Array:
        """dξ/dt at q ⊕ ξ from the velocity v."""
        parts = []
        for cluster in self.model.clusters:
            own = slice(cluster.v.start, cluster.v.stop)
            if cluster.embedding.implicit:
                parts.append(v[own])
            else:
                parts += _rates(cluster.embedding.layout, xi[own], v[own])
        return joined(parts)

    def acceleration(self, q: Array, v: Array, tau: Array) -> Array:
        if self.passive is not None:
            tau = tau + self.passive.force(self.model, q, v)
        return c_aba(self.model, q, v, tau)

    def after_contact(self, q: Array, v: Array, tau: Array, contacting: Any, record: Any) -> Any:
        """(v⁺ - v, the velocity that corrects positions, record) of a step with contacts."""
        if self.passive is not None:
            tau = tau + self.passive.force(self.model, q, v)
        return contacting.velocities(self.model, q, v, tau, record)

    def land(self, q: Array, v: Array) -> Array:
        return v

    def spanning_motion(self, q: Array, v: Array, a: Array) -> tuple[Array, Array | Any]:
        """(velocities, accelerations) of all tree joints."""
        G, g = spanning_map(self.model, q, v)
        return G @ v, G @ a + g


@dataclass(frozen=True, eq=False)
class NullSpaceJoint(ImplicitJoint):
    """An implicit joint in an orthonormal basis of its null space: G = N, g = ν of least norm.

    Its velocities are coordinates in a basis that changes with q: meant for one evaluation.
    """

    def reframed(self, bodies: Any, new: Any) -> NullSpaceJoint:
        return self  # the basis must be the same wherever it is asked for

    def rows(self, positions: Mapping[int, Array]) -> RowSpace:
        return RowSpace(self.constraint(positions, None)[0][list(self.kept)])

    def velocity_map(
        self, positions: Mapping[int, Array], v: Array
    ) -> tuple[Array, dict[Any, Any], dict[Any, Any]]:
        rows = self.rows(positions)
        N = rows.null_space()
        if v is None:
            return N, None, None
        velocities = self.split(N @ v)
        _, k = self.constraint(positions, velocities)
        return N, velocities, self.split(rows.least_norm(k[list(self.kept)]))


class Spanning:
    """Velocities of all tree joints in clusters closed implicitly, v in the others.

    `regular` is false near a singularity of the mechanism itself.
    """

    usual: Partitioned
    dt: float
    dtype: str

    def __init__(self, usual: Partitioned):
        self.usual, self.dt, self.dtype = usual, usual.dt, usual.dtype
        self.model: Model = with_embeddings(usual.model, _without_partition)
        self.passive: Any = usual.passive
        self._places, start = [], 0
        for cluster in self.model.clusters:
            n = cluster.embedding.nv_span if cluster.embedding.implicit else cluster.nv
            self._places.append(slice(start, start + n))
            start += n
        self._weights = {
            c.index: _column_weights(c.embedding, usual.model.reference)
            for c in usual.model.clusters if c.embedding.implicit
        }  # fmt: skip

    @property
    def carried(self) -> int:
        """How many velocities stand beside v from step to step."""
        return sum(len(w) for w in self._weights.values())

    def lift(self, q: Array, v: Array, carried: Any) -> Array:
        """All velocities from v and those carried from the step before.

        These count where they agree with v to the last bit: then nobody has changed v since, and
        they are finite at singularities of the coordinates, too.
        """
        parts, start = [], 0
        for cluster in self.usual.model.clusters:
            own, joint = v[cluster.v], cluster.embedding
            if joint.implicit:
                kept = carried[start : start + joint.nv_span]
                start += joint.nv_span
                G, _, _ = joint.velocity_map(joint.positions(q[cluster.q]), None)
                off = sum(np.abs(kept[c] - own[i]) for i, c in enumerate(joint.independent))
                own = np.where(off <= 0.0, kept, G @ own)
            parts.append(own)
        return joined(parts)

    def lower(self, w: Array) -> tuple[Array, Array]:
        """(v, what is carried) of all velocities."""
        v, carried = [], [np.zeros(0)]
        for cluster, place in zip(self.usual.model.clusters, self._places):
            own = w[place]
            if cluster.embedding.implicit:
                carried.append(own)
                own = np.stack([own[c] for c in cluster.embedding.independent])
            v.append(own)
        return joined(v), joined(carried)

    def _maps(self, q, w):
        """Of each cluster (N, ν, coordinates of w in N); (None, None, v) where nothing is to do."""
        for cluster, place in zip(self.model.clusters, self._places):
            joint, own = cluster.embedding, w[place]
            if not joint.implicit:
                yield cluster, None, None, own
                continue
            positions = joint.positions(q[cluster.q])
            N, _, _ = joint.velocity_map(positions, None)
            y = N.T @ own
            _, _, drift = joint.velocity_map(positions, y)
            yield cluster, N, joined([drift[b.index] for b in joint.bodies]), y

    def acceleration(self, q: Array, w: Array, tau: Array) -> Array:
        maps, y, force = self._in_basis(q, w, tau)
        z = c_aba(self.model, q, y, force)
        return joined([z[c.v] if N is None else N @ z[c.v] + drift for c, N, drift, _ in maps])

    def after_contact(
        self, q: Array, w: Array, tau: Array, contacting: Any, record: Any
    ) -> tuple[Array, Array, Any]:
        """The same as in the model's coordinates; the basis N turns within the step by dt ν."""
        maps, y, force = self._in_basis(q, w, tau)
        change, correction, record = contacting.velocities(self.model, q, y, force, record)
        moved, corrected = [], []
        for c, N, drift, _ in maps:
            moved.append(change[c.v] if N is None else N @ change[c.v] + self.dt * drift)
            corrected.append(correction[c.v] if N is None else N @ correction[c.v])
        return joined(moved), joined(corrected), record

    def _in_basis(self, q, w, tau):
        """(maps, velocities, forces) of the model in the bases N."""
        maps = list(self._maps(q, w))
        y = joined([y for *_, y in maps])
        force = []
        for cluster, N, _, _ in maps:
            own = tau[cluster.v]
            if N is not None:  # virtual work: the torques act on the independent joints
                own = np.stack([N[c] for c in self._independent(cluster)]).T @ own
            force.append(own)
        force = joined(force)
        if self.passive is not None:
            force = force + self.passive.force(self.model, q, y)
        return maps, y, force

    def _independent(self, cluster):
        return self.usual.model.clusters[cluster.index].embedding.independent

    def move(self, q: Array, xi: Array, straight: bool = False) -> tuple[Array, Any | None]:
        return _moved(self.model, q, xi, self.dtype, self._predicted, False, straight)

    def turned(self, w: Array, xi: Array) -> Array:
        return _turned(self.model, w, xi, self._places)

    def _predicted(self, cluster, positions, xi):
        return xi[self._places[cluster.index]]

    def rate(self, xi: Array, w: Array) -> Array:
        parts = []
        for cluster, place in zip(self.model.clusters, self._places):
            parts += _rates(cluster.embedding.layout, xi[place], w[place])
        return joined(parts)

    def land(self, q: Array, w: Array) -> Array:
        """The velocities projected onto those that the loops allow."""
        return joined([y if N is None else N @ y for _, N, _, y in self._maps(q, w)])

    def spanning_motion(self, q: Array, w: Array, dw: Array) -> tuple[Array, Array]:
        velocities, accelerations = [], []
        for cluster, place in zip(self.model.clusters, self._places):
            joint, x, dx = cluster.embedding, w[place], dw[place]
            if not joint.implicit:
                G, rates, drift = joint.velocity_map(joint.positions(q[cluster.q]), x)
                x = joined([rates[b.index] for b in joint.bodies])
                dx = G @ dx + joined([drift[b.index] for b in joint.bodies])
            velocities.append(x)
            accelerations.append(dx)
        return joined(velocities), joined(accelerations)

    def regular(self, q: Array, w: Array) -> Any | None:
        found = []
        for _, distances, near in self.flatness(q, w):
            found += [distances[i] > near for i in range(distances.shape[0])]
        return both(
            *found, self.usual.slopes_regular(q, lambda cluster: w[self._places[cluster.index]])
        )

    def resolved(self, first: Any, last: Any) -> None:
        return None

    def flatness(self, q: Array, w: Array) -> Any:
        """(cluster, squared distances of its rows of K from each other, relative to the rows'
        typical sizes, what they must exceed)."""
        for cluster, place in zip(self.model.clusters, self._places):
            joint = cluster.embedding
            if joint.implicit:
                distances = joint.rows(joint.positions(q[cluster.q])).distances()
                rates = w[place] * self._weights[cluster.index]
                turned = (WITHIN * self.dt) ** 2 * (rates @ rates)
                sizes = self.usual.sizes[cluster.index][1]
                yield cluster, distances * (1.0 / sizes**2), FLAT[self.dtype] ** 2 + turned


def _without_partition(cluster):
    joint = cluster.embedding
    if not joint.implicit:
        return None
    return NullSpaceJoint(**{f.name: getattr(joint, f.name) for f in fields(joint)})


def _column_weights(joint, reference) -> np.ndarray:
    """How much each joint of a cluster turns the rows of K, relative to the one that does most."""
    K, _ = joint.constraint({b.index: reference[b.index] for b in joint.bodies}, None)
    sizes = np.linalg.norm(K, axis=0)
    return sizes / max(sizes.max(initial=0.0), 1e-300)


def _turned(model, v, xi, places):
    """The velocities of floating bases in the axes that they have after ξ."""
    parts = []
    for cluster, place in zip(model.clusters, places):
        own = v[place]
        if turns(model, cluster):
            E = quaternion_matrix(quaternion_exp(xi[place][:3])).T
            own = joined([E @ own[:3], E @ own[3:]])
        parts.append(own)
    return joined(parts)


def _moved(model, q, xi, dtype, predicted, hold: bool, straight: bool):
    parts, closed = [], []
    for cluster in model.clusters:
        joint = cluster.embedding
        positions = joint.positions(q[cluster.q])
        step = predicted(cluster, positions, xi)
        moved = joint.layout.integrate(positions, step)
        if straight and turns(model, cluster):
            moved = {i: _shifted(x, positions[i], step) for i, x in moved.items()}
        x = joint.layout.stack(moved)
        if joint.implicit:
            x, gap, _ = iterate(
                lambda x, joint=joint: newton_step(joint, x, hold), x,
                count=CLOSURE_STEPS, tolerance=CLOSURE[dtype],
            )  # fmt: skip
            closed.append(gap @ gap <= CLOSED[dtype] ** 2)
        parts.append(x)
    return joined(parts), both(*closed)


def _rates(layout, xi, v) -> list[Any]:
    """dξ/dt of joints one after the other: v + ½ [ξ, v] + 1/12 [ξ, [ξ, v]] on rotating ones."""
    parts = []
    for body in layout.bodies:
        x, rate = xi[layout.v[body.index]], v[layout.v[body.index]]
        if body.joint.nq != body.joint.nv:
            once = body.joint.motion.bracket(x, rate)
            rate = rate + once * 0.5 + body.joint.motion.bracket(x, once) / 12.0
        parts.append(rate)
    return parts


def _shifted(moved, here, step):
    """The configuration of a floating base that turned as `moved`, its origin along a line."""
    place = here[:3] + quaternion_matrix(here[3:]) @ step[3:]
    return joined([place, moved[3:]])
