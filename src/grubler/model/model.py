"""The frozen model: bodies, joints, loops, frames, and the clusters that they form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import joined
from ..algebra.spatial import Transform
from ..algebra.symbolic import is_symbolic
from ..arguments import public
from ..coordinates import assembly
from ..errors import ClosureError, InputError, ModelError, unknown
from ..mechanism.colliders import Collision
from ..mechanism.geometry import Shape
from ..mechanism.layout import Layout
from ..mechanism.loops import Loop
from ..mechanism.parts import WORLD, Actuator, Body, Frame, TreeJoint, frozen
from .clusters import Cluster
from .tree import Tree

if TYPE_CHECKING:
    from ..typing import Array, ArrayLike, Floats


@dataclass(frozen=True, eq=False)
class Model:
    """A mechanism, validated and ready for computation; made by `ModelBuilder`.

    `q` stacks, cluster by cluster, the independent positions of clusters with an explicit map and
    the spanning positions of clusters closed implicitly; `v` the independent velocities. `nq` and
    `nv` are their lengths. `reference` holds an assembled position of every tree joint, `geometry`
    shapes by body, to be drawn: no computation depends on them. `collision` holds the shapes that
    may touch, from which plans of contacts are made. `notes` say in words what building the model
    decided that its description does not.
    """

    name: str
    gravity: np.ndarray
    bodies: tuple[Body, ...]
    loops: tuple[Loop, ...]
    clusters: tuple[Cluster, ...]
    frames: tuple[Frame, ...]
    actuators: tuple[Actuator, ...]
    reference: Mapping[int, np.ndarray]
    geometry: Mapping[int, tuple[Shape, ...]] = field(
        default_factory=dict, metadata={"fingerprint": False}
    )
    collision: Collision = field(default_factory=Collision, metadata={"fingerprint": False})
    notes: tuple[str, ...] = field(default=(), metadata={"fingerprint": False})

    @cached_property
    def nq(self) -> int:
        return self.clusters[-1].q.stop if self.clusters else 0

    @cached_property
    def nv(self) -> int:
        return self.clusters[-1].v.stop if self.clusters else 0

    @cached_property
    def nv_span(self) -> int:
        return self.spanning.nv

    @cached_property
    def spanning(self) -> Layout:
        """All tree joints, cluster by cluster: the spanning coordinates."""
        return Layout([self.bodies[i] for cluster in self.clusters for i in cluster.bodies])

    @cached_property
    def layout(self) -> Layout:
        """The joints whose positions make up q."""
        return Layout([body for c in self.clusters for body in c.embedding.coordinates])

    @cached_property
    def tree(self) -> Tree:
        """Paths and places in the tree of clusters."""
        return Tree(self.clusters)

    @cached_property
    def nominal(self) -> Model:
        """The same mechanism with numbers in the places of symbols, see `with_parameters`: what is
        found out at sample postures is found out there."""
        return self

    @cached_property
    def mass(self) -> float:
        """The mass of all moving bodies in kg; a base that is fixed to the world is not one."""
        return sum(body.mass for body in self.bodies)

    @cached_property
    def lower(self) -> np.ndarray:
        """The lower limit of each entry of q in rad or m (nq,), -inf where there is none."""
        return self._limits(0)

    @cached_property
    def upper(self) -> np.ndarray:
        """The upper limit of each entry of q in rad or m (nq,), inf where there is none."""
        return self._limits(1)

    def _limits(self, side: int) -> np.ndarray:
        coordinates = [body for c in self.clusters for body in c.embedding.coordinates]
        return frozen([b.joint.limits[side] for b in coordinates for _ in range(b.joint.nq)])

    @property
    def joints(self) -> tuple[TreeJoint, ...]:
        return tuple(body.joint for body in self.bodies)

    # names

    @cached_property
    def frame_names(self) -> tuple[str, ...]:
        """The names that `frame` knows: frames, then bodies."""
        names = [frame.name for frame in self.frames] + [body.name for body in self.bodies]
        return tuple(dict.fromkeys(names))

    @cached_property
    def spanning_order(self) -> tuple[int, ...]:
        """Body indices cluster by cluster: the order of the spanning coordinates."""
        return tuple(self.spanning.v)

    @property
    def q_names(self) -> tuple[str, ...]:
        return self.layout.q_names

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        return tuple(n for c in self.clusters for n in c.embedding.independent_names)

    @property
    def spanning_names(self) -> tuple[str, ...]:
        return self.spanning.v_names

    @cached_property
    def _bodies_by_name(self) -> dict[str, Body]:
        return {body.name: body for body in self.bodies}

    @cached_property
    def _bodies_by_joint(self) -> dict[str, Body]:
        return {body.joint.name: body for body in self.bodies}

    @cached_property
    def _frames_by_name(self) -> dict[str, Frame]:
        return {frame.name: frame for frame in self.frames}

    @public
    def body(self, name: str) -> Body:
        if name not in self._bodies_by_name:
            if name in self._frames_by_name:
                raise ModelError(self._is_a_frame(name))
            raise ModelError(unknown("body", name, self._bodies_by_name))
        return self._bodies_by_name[name]

    def _is_a_frame(self, name: str) -> str:
        carrier = self._frames_by_name[name].body
        on = "the world" if carrier == WORLD else f"body '{self.bodies[carrier].name}'"
        return f"'{name}' is no moving body but a frame on {on}: use model.frame('{name}')"

    @public
    def joint(self, name: str) -> TreeJoint:
        return self.body_of_joint(name).joint

    @public
    def body_of_joint(self, name: str) -> Body:
        """The body that the named tree joint carries."""
        if name not in self._bodies_by_joint:
            raise ModelError(unknown("joint", name, self._bodies_by_joint))
        return self._bodies_by_joint[name]

    @public
    def frame(self, name: str) -> Frame:
        """A frame by name; every body's name is one, too."""
        if name in self._frames_by_name:
            return self._frames_by_name[name]
        if name in self._bodies_by_name:
            return Frame(name, self._bodies_by_name[name].index, Transform.identity())
        raise ModelError(unknown("frame", name, self.frame_names))

    # configurations

    @public
    def pack(self, positions: Mapping[int, np.ndarray]) -> np.ndarray:
        """q from the position of every tree joint, by body index."""
        for body in self.layout.bodies:
            if body.index not in positions:
                raise InputError(f"positions has none for joint '{body.joint.name}': give all")
        return self.layout.stack(positions)

    @public
    def unpack(self, q: Array) -> dict[int, np.ndarray]:
        """The position of every tree joint, by body index, from q."""
        positions: dict[int, np.ndarray] = {}
        for cluster in self.clusters:
            positions |= cluster.embedding.positions(q[cluster.q])
        return positions

    def neutral(self) -> np.ndarray:
        """An assembled configuration: zero where loops and limits allow it."""
        return self.pack(self.reference)

    @public
    def assemble(
        self,
        q_guess: np.ndarray | Mapping[str, float] | None = None,
        fixed: Iterable[str] = (),
    ) -> np.ndarray:
        """The q near a guess at which every loop is closed, to 1e-12.

        `q_guess` is an array like `q`, or positions by joint name over the neutral configuration.
        `fixed` names joints that must keep their guess, dependent ones included. Joints end within
        their limits where the loops allow that, unless fixed or guessed beyond. A ClosureError
        names the loop that cannot be closed, and its gap.
        """
        named = set()
        if q_guess is None or isinstance(q_guess, Mapping):
            positions = dict(self.reference)
            for name, value in (q_guess or {}).items():
                body = self.body_of_joint(name)
                positions[body.index] = as_position(body, value)
                named.add(body.index)
        else:
            q_guess = as_vector("q_guess", q_guess, self.nq, self.q_names)
            with np.errstate(invalid="ignore"):
                reached = self.unpack(q_guess)
            positions = {
                i: x if np.all(np.isfinite(x)) else self.reference[i] for i, x in reached.items()
            }
        held = {self.body_of_joint(name).index for name in fixed}
        for cluster in self.clusters:
            columns = cluster.embedding.columns
            stay = [c for i in held & set(columns) for c in range(*columns[i].indices(10**6))]
            local = {i: positions[i] for i in cluster.bodies}
            positions |= assembly.close_cluster(
                cluster.embedding, local, stay, named & set(cluster.bodies)
            )
        return self.pack(positions)

    @public
    def check_closed(self, q: np.ndarray) -> None:
        """Raise a ClosureError where a loop is open at q, a PartitionError where it is singular."""
        q = np.asarray(q, dtype=float)
        for cluster in self.clusters:
            if cluster.loops and not cluster.embedding.always_closed:
                with np.errstate(invalid="ignore"):
                    positions = cluster.embedding.positions(q[cluster.q])
                assembly.check_closed(cluster.loops, positions)
                cluster.embedding.check(positions)

    @public
    def loop_gap(self, q: np.ndarray) -> float:
        """The largest residual over all loops, in m or rad, beyond what the round-off of the
        description leaves open (`loop.slack`)."""
        positions = self.unpack(q)
        return max((loop.opening(positions) for loop in self.loops), default=0.0)

    @public
    def integrate(self, q: np.ndarray, v: np.ndarray, dt: float = 1.0) -> np.ndarray:
        """The configuration after moving with the independent velocity v for dt.

        Exact on every joint's manifold for open and explicit clusters; implicit clusters move along
        their tangent and are closed again with their independent joints held.
        """
        if not is_symbolic(q, v):
            q, v = (np.asarray(x, dtype=float) for x in (q, v))
            if not is_symbolic(dt) and not np.all(np.isfinite(dt)):
                raise InputError(f"dt is {dt}: give a finite time in s")
        parts = []
        for cluster in self.clusters:
            joint = cluster.embedding
            positions = joint.positions(q[cluster.q])
            if joint.implicit:
                G, _, _ = joint.velocity_map(positions, None)
                if not np.all(np.isfinite(G)):
                    raise ClosureError(
                        f"loop '{joint.loops[0].name}' is singular at this q: integrate from a "
                        "closed and regular one"
                    )
                moved = joint.spanning.integrate(positions, G @ v[cluster.v] * dt)
                moved = assembly.close(
                    joint.bodies, cluster.loops, moved, held=joint.independent, limits=False
                )
            else:
                moved = joint.layout.integrate(positions, v[cluster.v] * dt)
            parts.append(joint.layout.stack(moved))
        return joined(parts)

    @public
    def repartition(self, q: np.ndarray) -> Model:
        """The same mechanism with independent joints that are well conditioned at q; q means the
        same in both, `grubler.convert_velocity` takes v along."""
        from .exchange import repartition

        return repartition(self, q)

    @public
    def random_state(self, seed: int | np.random.Generator | None = None) -> tuple[Floats, Floats]:
        """A random assembled configuration and velocity (q, v).

        Every joint, dependent ones included, is within its limits, unless it is beyond them in the
        neutral configuration; joints without limits are within a radian or metre of that."""
        from .sampling import random_state

        return random_state(self, np.random.default_rng(seed))

    @public
    def random_states(
        self, n: int, seed: int | np.random.Generator | None = None
    ) -> tuple[Floats, Floats]:
        """n random states at once: q (n, nq) and v (n, nv), drawn as by n calls of `random_state`
        on one generator. The first call compiles."""
        from .sampling import random_states

        return random_states(self, n, np.random.default_rng(seed))

    def __str__(self) -> str:
        from .printing import describe

        return describe(self)

    def __repr__(self) -> str:
        return (
            f"<Model '{self.name}': {len(self.bodies)} bodies, {len(self.loops)} loops, "
            f"{len(self.clusters)} clusters, mobility {self.nv}>"
        )


def as_vector(what: str, x: Any, n: int, names: tuple[str, ...] = ()) -> np.ndarray:
    """A float vector of length n, or an InputError that names the argument."""
    if np.ma.is_masked(x):
        raise InputError(f"{what} is a masked array: fill in the numbers that are missing")
    kind = type(x).__name__
    try:
        x = np.asarray(x)
        if x.dtype.kind not in "biufO":
            raise TypeError
        x = x.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is not an array of real numbers: {kind}") from None
    if x.shape != (n,):
        first = f" ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})" if names else ""
        raise InputError(f"{what} has shape {x.shape}, expected ({n},){first}")
    bad = np.flatnonzero(~np.isfinite(x))
    if len(bad):
        where = f" ({names[bad[0]]})" if names else ""
        raise InputError(f"{what}[{bad[0]}]{where} is {x[bad[0]]}: give finite numbers")
    return x


def as_position(body: Body, value: ArrayLike) -> np.ndarray:
    """The position of one joint as an array, its quaternion normalised."""
    motion = body.joint.motion
    x = as_vector(f"position of joint '{body.joint.name}'", np.atleast_1d(value), motion.nq)
    if motion.nq != motion.nv:
        length = np.linalg.norm(x[-4:])
        if length < 1e-6:
            raise InputError(f"joint '{body.joint.name}': the quaternion is zero")
        x = np.concatenate([x[:-4], x[-4:] / length])
    return x


__all__ = ["WORLD", "Model", "as_position", "as_vector"]
