"""The same mechanism in other coordinates: better partitions, loops in closed form, and back.

A model's clusters decide which joints are its coordinates. The functions here exchange a cluster's
embedding and leave everything else as it is, so the dynamics, in spanning coordinates, stay the
same; `convert_*` take a state from one model of a mechanism to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import LDL, joined, pivot_order
from ..algebra.symbolic import is_symbolic
from ..arguments import public
from ..coordinates.assembly import check_closed, same_pose
from ..coordinates.embedding import Embedding, ExplicitJoint, ImplicitJoint
from ..coordinates.partition import closed_form, implicit_joint, pivots, rank
from ..errors import ClosureError, InputError, ModelError, PartitionError, unknown
from ..mechanism.loops.modules import ClosedForm, choose_branches
from ..mechanism.parts import frozen
from ..tolerances import SAME_POSE
from . import Model, as_vector
from .clusters import Cluster, build_clusters

if TYPE_CHECKING:
    from ..typing import ArrayLike, Floats

WORSE = 10.0  # a partition is kept unless its condition is worse than the best by this factor


@public
def repartition(model: Model, q: ArrayLike, independent: Iterable[str] = ()) -> Model:
    """The model with the independent joints of its implicit clusters chosen anew, well
    conditioned at q.

    `independent` names coordinates that shall be among them, as in `model.spanning_names`
    ("knee", "rod:wx"): a choice that stays regular over a whole motion is the user's to know.

    A cluster whose partition is already within a factor of ten of the best keeps it, and with it
    its velocities. q means the same in both models; `convert_velocity` takes v along. Joints marked
    independent=True may become dependent: near a singularity of the wanted choice another one is
    what keeps the motion going.
    """
    q = as_vector("q", q, model.nq, model.q_names)
    wanted = list(independent)
    for name in wanted:
        if name not in model.spanning_names:
            raise ModelError(unknown("coordinate", name, model.spanning_names))

    def renew(cluster: Cluster):
        if not cluster.embedding.implicit:
            return None
        positions = cluster.embedding.positions(q[cluster.q])
        return _best_partition(cluster.embedding, positions, wanted)

    return with_embeddings(model, renew)


def _best_partition(joint: Any, positions: dict[Any, Any], wanted: list[str]) -> ImplicitJoint:
    K, _ = joint.constraint(positions, None)
    count = len(joint.kept)
    if rank(K) < count:
        names = ", ".join(f"'{loop.name}'" for loop in joint.loops)
        raise PartitionError(
            f"the mechanism of loop {names} is itself singular at this q (rank {rank(K)} instead "
            f"of {count}): no choice of independent joints is regular here; move away from it"
        )
    kept = sorted(pivots(K.T, count, [list(range(len(K)))], prefer_last=False))
    names = joint.spanning.v_names
    last = [c for c, name in enumerate(names) if name in wanted]
    first = [c for c in range(K.shape[1]) if c not in last]
    dependent = pivots(K[kept], count, [first, last], prefer_last=False)
    if lost := [names[c] for c in last if c in dependent]:
        raise PartitionError(
            f"'{lost[0]}' cannot be independent at this q: loop '{joint.loops[0].name}' and the "
            "other coordinates asked for determine it; ask for fewer or others"
        )
    Kd = K[np.ix_(kept, dependent)]
    now = np.linalg.cond(K[np.ix_(joint.kept, joint.dependent)])
    if now <= WORSE * np.linalg.cond(Kd) and not set(last) & set(joint.dependent):
        return joint
    return replace(
        joint, kept=tuple(kept), dependent=tuple(dependent), order=pivot_order(Kd)
    )  # fmt: skip


@public
def analytic(
    model: Model, loops: Iterable[str] | None = None, *,
    branches: Mapping[str, int | str] | None = None,
) -> Model:  # fmt: skip
    """The model with its loops closed in closed form where `recognise` finds one.

    `loops` names the loops that must get one (a ModelError says which has none); by default every
    cluster that can, does. `branches` selects assemblies by loop name: +1, -1, or "other" than the
    one of the model's reference. A cluster solved so has its independent positions in q.
    """
    wanted = None if loops is None else list(loops)
    branches = dict(branches or {})
    _check_loop_names(model, [*(wanted or ()), *branches])
    positions = dict(model.reference)

    def renew(cluster: Cluster):
        names = {loop.name for loop in cluster.loops}
        if not cluster.embedding.implicit or (wanted is not None and not names & set(wanted)):
            return None
        local = {i: model.reference[i] for i in cluster.bodies}
        found = closed_form(cluster.embedding, local)
        if found is None:
            if wanted is not None:
                raise ModelError(
                    f"loop '{cluster.loops[0].name}' has no closed form here: it is not planar "
                    "with two unknown joints, nor a leg (UPS, RUS closed by a ball joint, SPU "
                    "closed by a universal one) whose axes meet; leave it to the numeric closing"
                )
            return None
        chosen = {name: b for name, b in branches.items() if name in names}
        if chosen:
            found = replace(found, steps=choose_branches(found.steps, chosen))
            _move_to_branch(found, positions)
        return found

    return replace(
        with_embeddings(model, renew),
        reference={i: frozen(x) for i, x in positions.items()},
    )


def _move_to_branch(joint: ExplicitJoint, positions: dict[Any, Any]) -> None:
    q = np.concatenate([positions[body.index] for body in joint.coordinates])
    with np.errstate(invalid="ignore"):
        moved = joint.positions(q)
    for loop in joint.loops:
        finite = all(np.all(np.isfinite(moved[i])) for i in loop.bodies)
        if not finite or np.abs(loop.residual(moved)).max() > 1e-7:
            raise ClosureError(
                f"loop '{loop.name}' cannot be assembled on the branch asked for at the reference "
                "configuration: build the model with a reference nearer to it"
            )
    positions |= moved


@public
def numeric(model: Model, loops: Iterable[str] | None = None) -> Model:
    """The model with its closed forms given back to numeric closing: the twin to compare with.

    Couplings that were explicit from the start stay so. The independent joints stay the same.
    """
    wanted = None if loops is None else list(loops)
    _check_loop_names(model, wanted or ())

    def renew(cluster: Cluster):
        joint = cluster.embedding
        if not isinstance(joint, ExplicitJoint):
            return None
        if not any(isinstance(step, ClosedForm) for step in joint.steps):
            return None
        if wanted is not None and not {loop.name for loop in cluster.loops} & set(wanted):
            return None
        positions = {i: model.reference[i] for i in cluster.bodies}
        found, _ = implicit_joint(joint.bodies, joint.loops, positions)
        K, _ = found.constraint(positions, None)
        dependent = [c for c in range(joint.nv_span) if c not in joint.independent]
        order = pivot_order(K[np.ix_(found.kept, dependent)])
        return replace(found, dependent=tuple(dependent), order=order)

    return with_embeddings(model, renew)


def with_embeddings(model: Model, renew: Callable[[Cluster], Embedding | None]) -> Model:
    """The model with new embeddings of its clusters, where `renew` gives one."""
    embeddings = [renew(cluster) or cluster.embedding for cluster in model.clusters]
    groups = [list(cluster.bodies) for cluster in model.clusters]
    return replace(model, clusters=build_clusters(model.bodies, groups, embeddings))


def _check_loop_names(model: Model, names: Iterable[str]) -> None:
    known = [loop.name for loop in model.loops]
    for name in names:
        if name not in known:
            raise ModelError(unknown("loop", name, known))


@public
def convert_configuration(old: Model, new: Model, q: ArrayLike) -> Floats:
    """q of one model of a mechanism as q of another.

    Every body keeps its pose. A closed form of `new` has one branch: where q stands on another one,
    a ClosureError names the loop.
    """
    _check_same_mechanism(old, new)
    positions = old.unpack(q)
    converted = new.pack(positions)
    if not is_symbolic(converted):
        for cluster in new.clusters:
            if isinstance(cluster.embedding, ExplicitJoint):
                _check_branch(cluster, positions, converted[cluster.q])
    return converted


def _check_same_mechanism(old: Model, new: Model) -> None:
    parts = [[(b.name, b.joint.name, b.joint.kind) for b in m.bodies] for m in (old, new)]
    groups = [[c.bodies for c in m.clusters] for m in (old, new)]
    if parts[0] != parts[1] or groups[0] != groups[1]:
        raise InputError(
            f"'{old.name}' and '{new.name}' are not models of one mechanism: their bodies, joints "
            "or clusters differ; convert between results of analytic, numeric and repartition"
        )


def _check_branch(cluster: Cluster, positions: Mapping[Any, Any], q: np.ndarray) -> None:
    """Refuse positions that the cluster's closed form does not give back from its own part of q."""
    with np.errstate(invalid="ignore"):
        given = cluster.embedding.positions(q)
    if same_pose(cluster.embedding.bodies, positions, given, SAME_POSE):
        return
    check_closed(cluster.loops, positions)
    body = next(
        b for b in cluster.embedding.bodies if not same_pose([b], positions, given, SAME_POSE)
    )
    loop = next((l for l in cluster.loops if body.index in l.bodies), cluster.loops[0])
    raise ClosureError(
        f"loop '{loop.name}' stands on another branch than that of its closed form: joint "
        f"'{body.joint.name}' is at {positions[body.index]}, its closed form puts it at "
        f"{given[body.index]}; convert to analytic(with_reference(model, q)), or stay numeric"
    )


@public
def convert_velocity(old: Model, new: Model, q: ArrayLike, v: ArrayLike) -> Floats:
    """v of one model of a mechanism as v of another; q is the old model's."""
    return joined([T @ v[columns] for columns, T, _ in _changes(old, new, q)])


@public
def convert_acceleration(
    old: Model, new: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike
) -> Floats:
    """a of one model of a mechanism as a of another; q and v are the old model's."""
    changes = _changes(old, new, q, v)
    return joined([T @ a[columns] + drift for columns, T, drift in changes])


@public
def convert_force(old: Model, new: Model, q: ArrayLike, tau: ArrayLike) -> Floats:
    """tau of one model of a mechanism as tau of another, of the same power; q is the old model's.

    With v_new = T v_old, T' tau_new = tau_old.
    """
    parts = []
    for columns, T, _ in _changes(old, new, q):
        local = tau[columns]
        if is_symbolic(T, local):
            parts.append(LDL(T @ T.T).solve(T @ local))
        else:
            parts.append(np.linalg.solve(T.T, local))
    return joined(parts)


def _changes(old: Model, new: Model, q, v=None) -> list[Any]:
    """(old columns, T, drift) of each cluster: v_new = T v_old, a_new = T a_old + drift."""
    out = []
    for before, after in zip(old.clusters, new.clusters, strict=True):
        joint = before.embedding
        rows = list(after.embedding.independent)
        local = None if v is None else v[before.v]
        G, _, g = joint.velocity_map(joint.positions(q[before.q]), local)
        drift = None
        if v is not None:
            drift = np.concatenate([g[body.index] for body in joint.bodies])[rows]
        out.append((before.v, G[rows], drift))
    return out


__all__ = [
    "analytic", "convert_acceleration", "convert_configuration", "convert_force",
    "convert_velocity", "numeric", "repartition", "with_embeddings",
]  # fmt: skip
