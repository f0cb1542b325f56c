"""Build a model by name: bodies, joints, loops, couplings, frames, actuators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import Transform
from ..arguments import public
from ..coordinates.assembly import close_cluster
from ..coordinates.embedding import Embedding
from ..coordinates.partition import RigidCluster, embed
from ..errors import InputError, ModelError, unknown
from ..mechanism.joints import KINDS, Joint, unit
from ..mechanism.loops import (
    LOOP_KINDS,
    ExplicitConstraint,
    ImplicitConstraint,
    LinearCoupling,
    Loop,
    LoopJoint,
    PolynomialCoupling,
)
from ..mechanism.loops.modules import NAMED
from ..mechanism.parts import (
    LARGEST,
    WORLD,
    Actuator,
    Frame,
    TreeJoint,
    check_inertia,
    frozen,
    inertia_matrix,
)
from . import Model, as_position
from .clusters import build_clusters
from .given import flag, rotation, vector
from .grouping import group_bodies
from .joined import Joined
from .rigid import locked, rigid_loops, welded
from .shaped_parts import ShapedParts
from .spanning_tree import Edge, Mass, SpanningTree

if TYPE_CHECKING:
    from ..typing import Array, ArrayLike

_NOT_PROVEN = (
    "the search for the cheapest clusters ended early, others may cost less: clusters= chooses them"
)


class ModelBuilder(ShapedParts):
    """Collects the parts of a mechanism by name; `build()` checks them and finds the clusters."""

    @public
    def __init__(self, name: str = "robot", gravity: Sequence[float] = (0.0, 0.0, -9.81)):
        super().__init__()
        self.name = name
        self.gravity: Array = vector(f"gravity of '{name}'", gravity)
        self._masses: dict[str, Mass] = {}
        self._edges: dict[str, Edge] = {}  # by child
        self._joint_names: dict[str, str] = {}  # joint -> child
        self._loops: dict[str, Callable[[SpanningTree], Loop]] = {}
        self._frames: dict[str, tuple[str, Transform]] = {}
        self._actuators: dict[str, tuple[str, float, float | None]] = {}
        self._reference: dict[str, np.ndarray] = {}  # of models that were added

    @property
    def size(self) -> int:
        """The number of bodies so far, welded ones counted."""
        return len(self._masses)

    @public
    def add_body(
        self, name: str, mass: float = 0.0, com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike = (0.0,) * 6, *, physical: bool = True, welded: bool = False,
    ) -> None:  # fmt: skip
        """A rigid body: mass in kg, centre of mass in body axes, inertia about it in kg m².

        `physical=False` accepts an idealised inertia that violates the triangle inequality.
        `welded=True` checks the principal moments only together with those of the bodies that
        fixed joints weld to this one.
        """
        if name in self._masses or name == "world":
            raise ModelError(f"there is already a body named '{name}': names are unique")
        com, matrix = vector(f"com of body '{name}'", com), inertia_matrix(name, inertia)
        physical = flag(f"physical of body '{name}'", physical)
        welded = flag(f"welded of body '{name}'", welded)
        check_inertia(name, float(mass), com, matrix, physical, moments=not welded)
        self._masses[name] = Mass(float(mass), com, matrix)

    @public
    def add_joint(
        self, name: str, kind: str, parent: str, child: str, *, xyz: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0), R: ArrayLike | None = None,
        axis: ArrayLike = (0.0, 0.0, 1.0), axis2: ArrayLike | None = None, pitch: float = 0.0,
        axis_x: ArrayLike | None = None, independent: bool | None = None,
        lower: float | None = None, upper: float | None = None, velocity_limit: float | None = None,
        effort_limit: float | None = None, armature: float = 0.0, damping: float = 0.0,
        friction: float = 0.0, stiffness: float = 0.0, rest: float = 0.0,
    ) -> None:  # fmt: skip
        """A tree joint from body `parent` (or "world") to body `child`, which it carries.

        Placed at `xyz` with rotation `rpy` (URDF angles) or matrix `R` in the parent; axes in the
        joint frame. `independent` marks the joint as a coordinate of its cluster, or not.
        `armature` is inertia added to the joint's own velocity, as MuJoCo has it. `damping` (N m s
        or N s/m), `friction` (N m or N) and a spring (`stiffness`, with its `rest` position) wait
        in the model for `Passive.of(model)`.
        """
        if name in self._joint_names:
            raise ModelError(f"there is already a joint named '{name}': names are unique")
        if child in self._edges:
            raise ModelError(
                f"body '{child}' already hangs from joint '{self._edges[child].joint.name}': a "
                f"body has one tree joint; close the loop with add_loop('{name}', ...)"
            )
        passive = {"damping": damping, "friction": friction, "stiffness": stiffness}
        for what, value in {"armature": armature, **passive}.items():
            if not 0 <= value <= LARGEST:
                raise ModelError(f"{what} of joint '{name}' is {value}: give a number >= 0")
        if not abs(rest) <= LARGEST:
            raise ModelError(f"rest position of joint '{name}' is {rest}: give a finite number")
        motion = _motion(name, kind, axis, axis2, pitch, axis_x)
        placement = Transform.from_placement(
            rotation(name, rpy, R), vector(f"xyz of '{name}'", xyz)
        )
        joint = TreeJoint(
            name, motion, placement, independent, lower, upper, velocity_limit, effort_limit,
            float(armature), float(damping), float(friction), float(stiffness), float(rest),
        )  # fmt: skip
        if stiffness and motion.nq != 1:
            raise ModelError(
                f"joint '{name}' has {motion.nv} freedoms: springs act on joints of one"
            )
        self._joint_names[name] = child
        self._edges[child] = Edge(parent, child, joint)

    @public
    def add_loop(
        self, name: str, kind: str, predecessor: str, successor: str, *,
        predecessor_xyz: ArrayLike = (0.0, 0.0, 0.0), predecessor_rpy: ArrayLike = (0.0, 0.0, 0.0),
        predecessor_R: ArrayLike | None = None, successor_xyz: ArrayLike = (0.0, 0.0, 0.0),
        successor_rpy: ArrayLike = (0.0, 0.0, 0.0), successor_R: ArrayLike | None = None,
        axis: ArrayLike = (0.0, 0.0, 1.0), axis2: ArrayLike | None = None,
        distance: float | None = None,
    ) -> None:  # fmt: skip
        """A joint that closes a loop between a frame on each of two bodies (or "world").

        `axis` is the joint's axis in both frames (the normal of a planar joint); for a universal
        joint `axis` is fixed in the predecessor's frame and `axis2` in the successor's.
        """
        if kind not in LOOP_KINDS:
            raise ModelError(f"loop '{name}': {unknown('loop kind', kind, LOOP_KINDS)}")
        frame_P = Transform.from_placement(
            rotation(name, predecessor_rpy, predecessor_R), vector(name, predecessor_xyz)
        )
        frame_S = Transform.from_placement(
            rotation(name, successor_rpy, successor_R), vector(name, successor_xyz)
        )
        options = {"axis": unit(axis), "axis2": None if axis2 is None else unit(axis2)}

        def make(tree: SpanningTree) -> Loop:
            (a, X_a), (b, X_b) = tree.place(name, predecessor), tree.place(name, successor)
            path_P, path_S = tree.paths(name, a, b)
            return LoopJoint(
                name, kind, path_P, path_S, (frame_P @ X_a).rounded(), (frame_S @ X_b).rounded(),
                ends=(predecessor, successor), distance=distance, **options,
            )  # fmt: skip

        self._add_loop(name, make)

    @public
    def add_coupling(
        self, name: str, joint: str, ratios: Mapping[str, float] | None = None, *,
        offset: float = 0.0, leader: str | None = None,
        polynomial: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        """The position of `joint` from those of others: sum of ratios * position + offset (a gear,
        a belt, a mimic joint), or a polynomial of one `leader` (a0, a1, a2, ...)."""
        named = ratios is None or isinstance(ratios, Mapping)
        if (ratios is None) == (polynomial is None) or not named:
            raise ModelError(
                f"coupling '{name}': give either ratios={{joint: ratio}} or leader= and polynomial="
            )
        if ratios is not None:
            if not ratios:
                raise ModelError(f"coupling '{name}' couples '{joint}' to nothing: give ratios")
            values = vector(f"ratios of coupling '{name}'", list(ratios.values()), len(ratios))
            offset = float(vector(f"offset of coupling '{name}'", [offset], 1)[0])
            self._add_loop(
                name,
                lambda tree: LinearCoupling(
                    name, tree.joints(name, ratios), tree.joints(name, [joint]), values, offset
                ),
            )
        else:
            if leader is None:
                raise ModelError(f"coupling '{name}': a polynomial needs leader=")
            values = vector(f"polynomial of '{name}'", polynomial, len(polynomial))
            self._add_loop(
                name,
                lambda tree: PolynomialCoupling(
                    name, tree.joints(name, [leader]), tree.joints(name, [joint]), values
                ),
            )

    @public
    def add_constraint(
        self, name: str, *, phi: Callable[..., Any] | None = None, joints: Sequence[str] = (),
        gamma: Callable[..., Any] | None = None, independent: Sequence[str] = (),
        dependent: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Your own loop: phi(q of `joints`) = 0, or dependent positions = gamma(independent ones).

        Written in NumPy (np.stack, np.concatenate, np.where; no np.array, no `if` on a value); the
        derivatives come by differentiation.
        """
        if (phi is None) == (gamma is None):
            raise ModelError(f"constraint '{name}': give either phi= with joints=, or gamma=")
        if phi is not None:
            self._add_loop(
                name, lambda tree: ImplicitConstraint(name, tree.joints(name, joints), phi)
            )
        else:
            self._add_loop(
                name,
                lambda tree: ExplicitConstraint(
                    name, tree.joints(name, independent), tree.joints(name, dependent), gamma
                ),
            )

    @public
    def add_frame(
        self,
        name: str,
        body: str,
        xyz: ArrayLike = (0.0, 0, 0),
        rpy: ArrayLike = (0.0, 0, 0),
        R: ArrayLike | None = None,
    ) -> None:
        """A named frame on a body (or "world")."""
        if name in self._frames or name in self._masses:
            raise ModelError(f"there is already a frame or body named '{name}': names are unique")
        placement = Transform.from_placement(
            rotation(name, rpy, R), vector(f"xyz of '{name}'", xyz)
        )
        self._frames[name] = (body, placement)

    @public
    def add_actuator(
        self, name: str, joint: str, gear: float = 1.0, effort_limit: float | None = None
    ) -> None:
        """A motor on a tree joint: joint effort = gear * actuator effort."""
        if name in self._actuators:
            raise ModelError(f"there is already an actuator named '{name}': names are unique")
        self._actuators[name] = (joint, float(gear), effort_limit)

    @public
    def add_model(
        self,
        name: str,
        model: Model,
        *,
        xyz: ArrayLike = (0.0, 0, 0),
        rpy: ArrayLike = (0.0, 0, 0),
        R: ArrayLike | None = None,
    ) -> None:
        """All that a model has: its bodies, joints, loops, frames, actuators and shapes are called
        "name/..." here. Its world is placed at `xyz` with `rpy` or `R`. Clusters are formed anew.
        """
        if any(child.startswith(f"{name}/") for child in self._edges):
            raise ModelError(f"there is already a model named '{name}': names are unique")
        if not np.array_equal(model.gravity, self.gravity):
            raise ModelError(
                f"gravity of '{name}' is {model.gravity.tolist()} m/s², here it is "
                f"{self.gravity.tolist()}: one world has one gravity"
            )
        X = Transform.from_placement(rotation(name, rpy, R), vector(f"xyz of '{name}'", xyz))
        part = Joined(name, model, X)
        self._masses |= part.masses()
        self._edges |= part.edges()
        self._joint_names |= {e.joint.name: child for child, e in part.edges().items()}
        self._loops |= part.loops()
        self._frames |= part.frames()
        self._actuators |= part.actuators()
        self._reference |= part.reference()
        for body, shapes in part.geometry().items():
            self._geometry[body] = (*self._geometry.get(body, ()), *shapes)
        part.add_contact(self.contact)

    def _add_loop(self, name: str, make: Callable[[SpanningTree], Loop]) -> None:
        if name in self._loops:
            raise ModelError(
                f"there is already a loop or coupling named '{name}': names are unique"
            )
        self._loops[name] = make

    @public
    def add_module(
        self, name: str, kind: str, *, independent: Sequence[str], dependent: Sequence[str],
        **options: Any,
    ) -> None:  # fmt: skip
        """A closed form by name: "tello_hip", "tello_knee" (motors from links) or "parallel_belts"
        (rotors from links, with gears= and belts=)."""
        if kind not in NAMED:
            raise ModelError(f"module '{name}': {unknown('kind of module', kind, NAMED)}")
        self._add_loop(
            name,
            lambda tree: NAMED[kind](
                name, tree.joints(name, independent), tree.joints(name, dependent), **options
            ),
        )

    @public
    def build(
        self, reference: Mapping[str, float] | None = None, *, analytic: bool = False,
        clusters: Sequence[Sequence[str]] = (), lock_idle: bool = False,
    ) -> Model:  # fmt: skip
        """Check everything, weld fixed joints, cluster, assemble the loops and partition.

        `reference` is a guess of joint positions, by name, from which the loops are assembled
        (default zero, or the limit next to it). `analytic` closes loops in closed form where they
        have one (four-bars, slider-cranks, parallel platforms), on the branch of the reference.
        `clusters` names bodies
        that shall form a cluster, one list a cluster and no other body in it; the other bodies are
        grouped as cheaply as possible, as all are by default. `lock_idle` locks rods that spin
        about themselves and move nothing else. Loops that cannot move are welded. `notes` of the
        model name all that was changed.
        """
        lock_idle = flag("lock_idle", lock_idle)
        edges, makers, notes = dict(self._edges), dict(self._loops), []
        guess: dict[Any, Any] = {**self._reference, **(reference or {})}
        while True:
            tree = SpanningTree(self._masses, edges, self._joint_names)
            loops = _made(tree, makers)
            positions = self._positions(tree, guess, edges)
            grouping = group_bodies(tree.bodies, loops, _wanted(tree, clusters))
            stuck = None
            try:
                embeddings = _embedded(tree, loops, grouping.groups, positions, analytic)
                rigid = [x for e in embeddings for x in rigid_loops(e, positions)]
            except RigidCluster as found:
                stuck, rigid = found, found.loops
                positions |= found.positions
            changed = welded(tree.bodies, loops, rigid, positions, notes)
            makers = {n: make for n, make in makers.items() if n not in changed.loops}
            if stuck and not changed.joints:
                raise stuck
            if lock_idle and not changed.joints:
                changed = locked(tree.bodies, grouping.groups, embeddings, positions, notes)
            if not changed.joints:
                break
            changed = changed.joints
            guess = {b.joint.name: positions[b.index] for b in tree.bodies if b.name not in changed}
            edges |= {n: replace(edges[n], joint=joint) for n, joint in changed.items()}
        notes += [] if grouping.cheapest else [_NOT_PROVEN]
        notes += [e.doubt for e in embeddings if getattr(e, "doubt", "")]
        known = {loop.name: loop for embedding in embeddings for loop in embedding.loops}
        loops = tuple(known.get(loop.name, loop) for loop in loops)
        return Model(
            self.name, self.gravity, tree.bodies, loops,
            build_clusters(tree.bodies, grouping.groups, embeddings), tuple(self._placed(tree)),
            tuple(self._driven(tree, edges, notes)),
            {i: frozen(x) for i, x in positions.items()}, geometry=self._drawn(tree),
            collision=self.contact.placed(tree), notes=tuple(notes),
        )  # fmt: skip

    def _positions(
        self, tree: SpanningTree, guess: Mapping[Any, Any], edges: dict[Any, Any]
    ) -> dict[Any, Any]:
        """The position of every tree joint before assembly, from a guess by joint name."""
        positions = {
            body.index: body.joint.within_limits(body.joint.motion.neutral())
            for body in tree.bodies
        }
        for name, value in guess.items():
            child = self._joint_names.get(name)
            if edges.get(child) is not self._edges.get(child):
                continue  # welded or locked since
            body = tree.joints("reference", [name])[0]
            positions[body.index] = as_position(body, value)
        return positions

    def _placed(self, tree: SpanningTree) -> list[Frame]:
        frames = []
        for name, (body, placement) in self._frames.items():
            carrier, X = tree.place(name, body)
            frames.append(Frame(name, carrier, (placement @ X).rounded()))
        return frames + tree.welded_frames()

    def _driven(
        self, tree: SpanningTree, edges: dict[Any, Any], notes: list[str]
    ) -> list[Actuator]:
        """The actuators, without those of joints that turned out not to move."""
        actuators = []
        for name, (joint, gear, limit) in self._actuators.items():
            child = self._joint_names.get(joint)
            welded = child is not None and edges[child].joint.kind == "fixed"
            if welded and self._edges[child].joint.kind != "fixed":
                notes.append(f"actuator '{name}' is left out: joint '{joint}' cannot move")
                continue
            index = tree.joints(name, [joint])[0].index
            actuators.append(Actuator(name, index, gear, limit))
        return actuators


def _embedded(tree, loops, groups, positions: dict[Any, Any], analytic: bool) -> list[Embedding]:
    """The embedding of each group of bodies; `positions` become assembled."""
    embeddings, loops_of = [], _by_first_body(loops)
    for members in groups:
        own = tuple(loops[k] for k in sorted(k for i in members for k in loops_of.get(i, ())))
        bodies = tuple(tree.bodies[i] for i in members)
        embedding, local = embed(bodies, own, {i: positions[i] for i in members}, analytic)
        embeddings.append(embedding)
        positions |= local if embedding.implicit else close_cluster(embedding, local)
    return embeddings


def _made(tree: SpanningTree, makers: Mapping[Any, Any]) -> tuple[Loop, ...]:
    loops = tuple(make(tree) for make in makers.values())
    for loop in loops:
        if not loop.bodies:
            raise ModelError(f"loop '{loop.name}' joins a body to itself: it constrains nothing")
    return loops


def _by_first_body(loops: Sequence[Any]) -> dict[int, list[int]]:
    """Numbers of loops by the first body of each."""
    found: dict[int, list[int]] = {}
    for k, loop in enumerate(loops):
        found.setdefault(loop.bodies[0], []).append(k)
    return found


def _wanted(tree: SpanningTree, clusters: Sequence[Sequence[str]]) -> list[list[int]]:
    """Clusters asked for by names of bodies, as body indices."""
    if not isinstance(clusters, Iterable):
        raise InputError(f"clusters is {clusters!r}: give a list of names of bodies a cluster")
    wanted, taken = [], {}
    for number, names in enumerate(clusters):
        listed = isinstance(names, Iterable) and not isinstance(names, (str, bytes))
        if not listed or not len(names := list(names)):
            raise InputError(f"clusters[{number}] is {names!r}: give a list of names of bodies")
        members = sorted({tree.place(f"clusters[{number}]", name)[0] for name in names})
        if WORLD in members:
            raise ModelError(
                f"clusters[{number}] names {', '.join(names)}, of which one is the world or welded "
                "to it: only bodies that move form clusters"
            )
        for i in members:
            if i in taken:
                raise ModelError(
                    f"clusters[{number}]: '{tree.bodies[i].name}' is in clusters[{taken[i]}], too"
                )
        taken |= dict.fromkeys(members, number)
        wanted.append(members)
    return wanted


def _motion(name: str, kind: str, axis, axis2, pitch: float, axis_x) -> Joint:
    if kind not in KINDS:
        raise ModelError(f"joint '{name}': {unknown('joint kind', kind, KINDS)}")
    options: dict[Any, Any] = {}
    if kind not in ("free", "spherical", "fixed"):
        options["axis"] = unit(axis)
    if kind == "universal":
        options["axis2"] = unit(axis2 if axis2 is not None else (0.0, 1.0, 0.0))
    if kind == "helical":
        options["pitch"] = float(pitch)
    if kind == "planar" and axis_x is not None:
        options["axis_x"] = unit(axis_x)
    return KINDS[kind](**options)
