"""Models derived from a model: its spanning tree, and its independent tree (Sec. II).

The rivals of the cluster algorithms work on these. Both are plain trees, so that RNEA, ABA and
CRBA are the cluster algorithms with one body a cluster: there is no second code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..algebra.spatial import Transform
from ..coordinates.embedding import OpenJoint
from ..errors import ModelError
from ..mechanism.loops.base import ExplicitLoop
from ..mechanism.parts import WORLD, Body, Frame, frozen, lump
from . import Model
from .clusters import build_clusters


@lru_cache(maxsize=128)
def spanning_tree(model: Model) -> Model:
    """G_t: every loop cut; coordinates are the model's spanning coordinates, in their order."""
    groups = [[i] for i in model.spanning_order]
    embeddings = [OpenJoint((model.bodies[i],), ()) for i in model.spanning_order]
    return replace(
        model, name=f"{model.name} (spanning tree)", loops=(),
        clusters=build_clusters(model.bodies, groups, embeddings),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class IndependentTree:
    """G_ind, bare (`model`) and with the constant inertia H̃ that stands in for what it leaves out.

    `armature` is the diagonal of H̃: N² I_rot of every dependent body driven through an explicit
    coupling, at the reference configuration. `select` picks the tree's q out of the model's, and
    `carrier` gives for every body of the model the body of the tree that carries it, with the
    transform from there.
    """

    model: Model
    armed: Model
    armature: np.ndarray
    select: np.ndarray
    carrier: dict[int, tuple[int, Transform]]

    def frame(self, frame: Any) -> Frame:
        """The same frame on the independent tree."""
        body, X = self.carrier[frame.body]
        return Frame(frame.name, body, frame.placement @ X)


@lru_cache(maxsize=128)
def independent_tree(model: Model) -> IndependentTree:
    """The subgraph of independent joints; dependent leaves are welded where they sit.

    As in a URDF without rotors, the mass of a body left out stays on the link that carries it; only
    its motion relative to that link is lost (unconstrained) or becomes N² I_rot (approximate).
    """
    keep = _independent_bodies(model)
    index = {i: n for n, i in enumerate(keep)} | {WORLD: WORLD}
    carrier = {i: _carrier(model, i, index) for i in range(len(model.bodies))}
    bodies = []
    for i in keep:
        body = model.bodies[i]
        if body.parent not in index:
            raise ModelError(
                f"the independent tree of '{model.name}' is not connected: independent joint "
                f"'{body.joint.name}' hangs from the dependent '{model.bodies[body.parent].name}'; "
                "the approximate methods need a model whose independent joints form a tree"
            )
        parts = [(model.bodies[j], X) for j, (root, X) in carrier.items() if root == i]
        mass, com, inertia = lump((b.mass, b.com, b.inertia, X) for b, X in parts)
        bodies.append(
            replace(
                body,
                index=index[i],
                parent=index[body.parent],
                mass=mass,
                com=frozen(com),
                inertia=frozen(inertia),
            )
        )
    moved = {i: (index[root], X) for i, (root, X) in carrier.items()}
    reference = {index[i]: model.reference[i] for i in keep}
    armature = _armature(model)
    name = f"{model.name} (independent tree)"
    bare = _tree(name, model.gravity, bodies, reference)
    armed = []
    for body, cluster in zip(bodies, bare.clusters, strict=True):
        share = float(armature[cluster.v].max(initial=0.0))  # zero but for joints of one freedom
        armed.append(replace(body, joint=replace(body.joint, armature=body.joint.armature + share)))
    with_armature = _tree(name, model.gravity, armed, reference)
    select = _selection(model, keep)
    return IndependentTree(bare, with_armature, frozen(armature), select, moved)


def _tree(name: str, gravity, bodies: list[Body], reference: dict[Any, Any]) -> Model:
    """A model without loops, one body a cluster."""
    groups = [[i] for i in range(len(bodies))]
    embeddings = [OpenJoint((body,), ()) for body in bodies]
    clusters = build_clusters(bodies, groups, embeddings)
    return Model(name, gravity, tuple(bodies), (), clusters, (), (), reference)


def _independent_bodies(model: Model) -> list[int]:
    keep = []
    for cluster in model.clusters:
        joint = cluster.embedding
        for body in joint.bodies:
            columns = range(joint.nv_span)[joint.columns[body.index]]
            chosen = [c in joint.independent for c in columns]
            if any(chosen) and not all(chosen):
                raise ModelError(
                    f"joint '{body.joint.name}' is only partly independent: the approximate "
                    "methods need joints that are independent or dependent as a whole"
                )
            if all(chosen):
                keep.append(body.index)
    return keep


def _carrier(model: Model, i: int, index: dict[Any, Any]) -> tuple[int, Transform]:
    """The independent body (or world) that carries body i at the reference, and the way from it."""
    X = Transform.identity()
    while i not in index:
        X = X @ model.bodies[i].joint.transform(model.reference[i])
        i = model.bodies[i].parent
    return i, X


def _armature(model: Model) -> np.ndarray:
    """Diagonal of H̃, dependent bodies of explicit clusters: sum of G_dj² S_d' I_d S_d."""
    armature = np.zeros(model.nv)
    for cluster in model.clusters:
        joint = cluster.embedding
        if joint.implicit or not all(isinstance(loop, ExplicitLoop) for loop in cluster.loops):
            continue
        G, _, _ = joint.velocity_map({i: model.reference[i] for i in cluster.bodies}, None)
        coordinates = {body.index for body in joint.coordinates}
        for body in joint.bodies:
            if body.index not in coordinates:
                S = body.joint.motion.subspace(model.reference[body.index])
                spin = (S.T @ body.spatial @ S)[0, 0]
                armature[cluster.v] += G[joint.columns[body.index]][0] ** 2 * spin
    return armature


def _selection(model: Model, keep: list[int]) -> np.ndarray:
    places = [x for i, x in model.layout.q.items() if i in keep]
    return frozen([n for x in places for n in range(x.start, x.stop)], dtype=int)
