"""Closed chains by primary and secondary systems (Rodriguez, Jain, Kreutz-Delgado).

The primary system are robots, which stay what they are; the secondary the objects they handle; the
closures what holds them together now. Forward dynamics in the paper's steps:

    (A) free accelerations                  (B) free accelerations of the ports
    (C) admittances Λ of the ports          (D) [A_P Λ_P A_P* + A_S Λ_S A_S*] f = A α - U
    (E) corrections M⁻¹ J* A* f             (F) their sum

A change of closures changes A alone, another object its own α and Λ; the robots' compiled code is
untouched. Forces of closures act from the second end on the first: our f is the negative of the
paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.spatial import Transform, cross
from ..algorithms import frame_jacobian, mass_matrix
from ..algorithms.checks import checked
from ..arguments import public
from ..errors import GrublerError, InputError, unknown
from ..model import Model
from ..tolerances import CLOSURE_RANK
from .chain_robot import Freely, Robot, pose_of
from .constraints import (
    PERIOD,
    checked_gains,
    checked_motion,
    checked_pose,
    held_rows,
    require_place,
)
from .held import HeldRows
from .relative import PointMotion, moved_place, relative_to


@dataclass(frozen=True, eq=False)
class Closure:
    """A connection of two ports, or of a port with the world.

    `first` and `second` are (robot, frame); a single primary is called "primary", a single
    secondary "secondary"; second=None is the world. `rows` as in `Constraint`: "weld", "point",
    "universal", rows of 0..5 of [angular; linear], or a matrix (m, 6), at the first port and in its
    axes. The closure pushes there on both bodies, with equal and opposite forces. `place` is the
    pose (R, p) of the first port seen from the second (from the world) that is held, None to hold
    the pose at attachment; its drift is stabilised with `period` in s and `damping` as in
    `Constraint`, None for not at all. Of rows that are not those of a joint, only the velocity is.
    """

    name: str
    first: tuple[str, str]
    second: tuple[str, str] | None = None
    rows: object = "weld"
    place: tuple[Any, ...] | None = None
    period: float | None = PERIOD
    damping: float = 1.0
    checked: HeldRows = field(init=False, repr=False)  # the rows, checked
    held: Transform | None = field(init=False, repr=False)  # from `place` into the first port

    def __post_init__(self) -> None:
        of = f"closure '{self.name}'"
        for end in self.ends:
            if not (isinstance(end, tuple) and [*map(type, end)] == [str, str]):
                raise InputError(f"an end of {of} is {end!r}: give (robot, frame)")
        if self.first == self.second:
            raise InputError(f"{of} joins port {self.first} to itself")
        checked_gains(of, self.period, self.damping)
        rows = held_rows(of, self.rows)
        held = None if self.place is None else checked_pose(f"place of {of}", self.place)
        if held is not None and self.period is not None:
            require_place(f"place of {of}", rows)
        for derived, value in (("checked", rows), ("held", held)):
            object.__setattr__(self, derived, value)

    @property
    def m(self) -> int:
        return self.checked.m

    @property
    def ends(self) -> list[tuple[str, str]]:
        return [self.first] if self.second is None else [self.first, self.second]


class Motion(NamedTuple):
    """Accelerations by robot, the forces of the closures by name (on their first end, in its port's
    axes, one a row), and the largest residual of the closures."""

    a: dict[str, np.ndarray]
    forces: dict[str, np.ndarray]
    residual: float


class State(NamedTuple):
    """Of one robot."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


class ClosedChain:
    """Robots and objects that are coupled by closures, which may come and go.

    primary, secondary  a Model, or Models by name
    closures            `Closure`s that hold from the beginning
    ports               frames by robot that closures may use later
    places              (R, p) by robot: where its world is, turned about the vertical only
    """

    @public
    def __init__(
        self, primary: Any, secondary: Any = None, closures: Any = (), *, ports: Any = None,
        places: Any = None, compiled: bool = True,
    ):  # fmt: skip
        self.primary: dict[str, Model] = _named("primary", primary)
        self.secondary: dict[str, Model] = _named("secondary", secondary)
        twice = set(self.primary) & set(self.secondary)
        if twice:
            raise InputError(f"'{twice.pop()}' is in the primary and in the secondary system")
        closures = list(closures)
        for given in closures:
            if not isinstance(given, Closure):
                raise InputError(f"closures hold {given!r}: give a list of gb.Closure")
        ports = {n: [x] if isinstance(x, str) else list(x) for n, x in (ports or {}).items()}
        wanted: dict[Any, Any] = {n: list(ports.get(n, ())) for n in self.primary | self.secondary}
        for closure in closures:
            for robot, frame in closure.ends:
                if frame not in wanted.setdefault(robot, []):
                    wanted[robot].append(frame)
        models = self.primary | self.secondary
        for name in [*wanted, *(places or {}), *ports]:
            if name not in models:
                raise InputError(unknown("robot", name, models))
        self.robots: dict[str, Robot] = {
            name: Robot(name, model, wanted[name], (places or {}).get(name), compiled)
            for name, model in models.items()
        }
        self.closures: dict[str, Closure] = {}
        self._held: dict[str, Transform | None] = {}
        for closure in closures:
            self.attach(closure)

    @public
    def attach(self, closure: Closure, q: Mapping[Any, Any] | None = None) -> None:
        """Close: from now on `closure` holds. With the configurations q by robot, the pose of its
        ends is held as it is now; without, ends are made to coincide."""
        if closure.name in self.closures:
            raise InputError(f"closure '{closure.name}' is attached already: detach it first")
        for robot, frame in closure.ends:
            self._robot(robot).port(frame)
        held = closure.held
        if held is None and q is not None:
            states = self._checked({n: (x, None, None) for n, x in q.items()})
            held = self._between(closure, self._free(states))
        self.closures[closure.name] = closure
        self._held[closure.name] = Transform.identity() if held is None else held

    @public
    def detach(self, name: str) -> None:
        """Open a closure."""
        if name not in self.closures:
            raise InputError(unknown("closure", name, self.closures))
        del self.closures[name], self._held[name]

    def exchange(self, name: str, model: Model) -> None:
        """Another robot or object in the place of `name`, with the same ports. What is attached to
        these stays so; the code of all others is untouched."""
        old = self._robot(name)
        self.robots[name] = Robot(name, model, old.frames, (old.R, old.p), old.compiled)
        (self.primary if name in self.primary else self.secondary)[name] = model

    def forward_dynamics(
        self,
        states: Mapping[Any, Any],
        *,
        motions: Mapping[Any, Any] | None = None,
        secondary_first: bool = False,
    ) -> Motion:
        """Accelerations by robot from (q, v, tau) by robot; tau may be None for zero.

        `motions` drives closures: by name (3, 6), [rotation vector; position], [angular velocity;
        velocity] and [angular acceleration; acceleration] of the place where the first port is
        held, seen from where it was attached. Without one, that place is at rest there.

        `secondary_first` solves step D for the secondary's acceleration first, which costs less
        where A_P Λ_P A_P* is block diagonal: robots that are not coupled with each other. It needs
        closures that the primary alone can serve.
        """
        states = self._checked(states)
        free = self._free(states)  # (A), (B), (C)
        if not self.closures:
            self._motions(motions)
            return Motion({n: free[n].a for n in self.robots}, {}, 0.0)
        A, U, _ = self._constraint(free, self._motions(motions))
        solve = self._secondary_first if secondary_first else self._together
        f = solve(free, states, A, U)  # (D)
        a = {}
        for n, robot in self.robots.items():
            push = robot.pushed(states[n].q, A[n].T @ f)  # (E)
            a[n] = free[n].a + push  # (F)
        gap = U + sum(A[n] @ (self._alpha(free[n]) + self._moved(n, free, A, f)) for n in A)
        return Motion(a, self._split(f), float(np.abs(gap).max()))

    def impulse(
        self, states: Mapping[Any, Any], *, motions: Mapping[Any, Any] | None = None
    ) -> dict[str, np.ndarray]:
        """Velocities after an inelastic impact: those that the closures allow, by robot.

        `motions` as in `forward_dynamics`: a driven closure is caught at its place's velocity.
        """
        states, motions = self._checked(states), self._motions(motions)
        if not self.closures:
            return {n: states[n].v for n in self.robots}
        free = self._free(states)
        A, _, speed = self._constraint(free, motions)
        inertia = sum(A[n] @ free[n].admittance @ A[n].T for n in A)
        f = -np.linalg.lstsq(inertia, speed, rcond=CLOSURE_RANK)[0]
        return {
            n: states[n].v + robot.pushed(states[n].q, A[n].T @ f)
            for n, robot in self.robots.items()
        }

    # step D

    def _together(self, free, states, A, U):
        inertia = sum(A[n] @ free[n].admittance @ A[n].T for n in A)
        right = sum(A[n] @ self._alpha(free[n]) for n in A) + U
        return -np.linalg.lstsq(inertia, right, rcond=CLOSURE_RANK)[0]  # (0.35)

    def _secondary_first(self, free, states, A, U):
        """ä_S from [M_S + J_S* A_S* (A_P Λ_P A_P*)⁻¹ A_S J_S], then f."""
        if not self.secondary:
            raise InputError("secondary_first: there is no secondary system; leave it out")
        right = U + sum(A[name] @ self._alpha(free[name]) for name in self.primary)
        inverse, J, M, forces = self._inverse(free, A), [], [], []
        for name in self.secondary:
            robot, q = self.robots[name], states[name].q
            M.append(mass_matrix(robot.model, q))
            ports = [frame_jacobian(robot.model, q, frame) for frame in robot.frames]
            J.append(A[name] @ np.concatenate([np.zeros((0, robot.model.nv)), *ports]))
            right = right + A[name] @ self._alpha(free[name]) - J[-1] @ free[name].a
            forces.append(M[-1] @ free[name].a)
        AJ, mass = np.concatenate(J, axis=1), block_diagonal(M)
        push = np.concatenate(forces) - AJ.T @ (inverse @ right)
        a = np.linalg.solve(mass + AJ.T @ inverse @ AJ, push)
        return -inverse @ (right + AJ @ a)

    def _inverse(self, free, A):
        """(A_P Λ_P A_P*)⁻¹, block by block."""
        inertia = sum(A[name] @ free[name].admittance @ A[name].T for name in self.primary)
        inverse = np.zeros_like(inertia)
        for rows in self._blocks():
            here = np.ix_(rows, rows)
            if np.linalg.cond(inertia[here]) > 1.0 / CLOSURE_RANK:
                raise InputError(
                    "secondary_first needs closures that the primary alone can serve, which it "
                    "cannot at this posture (some depend on each other, or are on the secondary "
                    f"alone): {', '.join(self._names(rows))}; leave secondary_first out"
                )
            inverse[here] = np.linalg.inv(inertia[here])
        return inverse

    def _names(self, rows) -> list[str]:
        """The closures that some rows belong to."""
        owners = [name for name, c in self.closures.items() for _ in range(c.m)]
        return list(dict.fromkeys(owners[row] for row in rows))

    def _blocks(self) -> list[list[int]]:
        """Rows that the primary couples: those of closures on a common robot."""
        groups: list[tuple[set[Any], list[Any]]] = []
        start = 0
        for closure in self.closures.values():
            rows = list(range(start, start + closure.m))
            start += len(rows)
            robots = {robot for robot, _ in closure.ends} & set(self.primary)
            joined = [g for g in groups if g[0] & robots]
            groups = [g for g in groups if not g[0] & robots]
            rows += [row for _, others in joined for row in others]
            groups.append((robots.union(*[g[0] for g in joined]), rows))
        return [sorted(rows) for _, rows in groups]

    # the closures' rows

    def _constraint(self, free: dict[str, Freely], motions: Mapping[Any, Any]):
        """A by robot (rows, 6 ports), U, and the rows' velocities: A α + U = 0 (0.20), (0.22)."""
        A = {n: [] for n in self.robots}
        U, speeds = [], []
        for name, closure in self.closures.items():
            ends, u, speed = self._rows(closure, free, motions.get(name))
            U.append(u)
            speeds.append(speed)
            for n, robot in self.robots.items():
                row = [ends.get((n, k), np.zeros((closure.m, 6))) for k in robot.order]
                A[n].append(np.concatenate(row, axis=1) if row else np.zeros((closure.m, 0)))
        A = {n: np.concatenate(blocks) for n, blocks in A.items()}
        return A, np.concatenate(U), np.concatenate(speeds)

    def _rows(self, closure: Closure, free: dict[str, Freely], motion):
        """(A by port, U, K V) of one closure."""
        rows, (first, frame) = closure.checked, closure.first
        X, i = self._between(closure, free), self.robots[first].port(frame)
        rest = X @ self._held[closure.name].inverse()
        now = rest if motion is None else rest @ moved_place(motion).inverse()
        K, carrier = rows.matrix(now), None
        ends = {(first, i): K}
        if closure.second is not None:
            second, other = closure.second
            j = self.robots[second].port(other)
            carrier = _coasting(X.motion(free[second].velocity[j]))
            ends[second, j] = -K @ X.matrix()
        own = _coasting(free[first].velocity[i])
        v, a = relative_to(own, carrier, rest, motion, rows.classical)
        u = K @ a
        if rows.universal:
            u = u + rows.turning(now, v[:3])
        if closure.period is not None:
            u = u + (2 * closure.damping / closure.period) * (K @ v)
            if rows.has_place:
                u = u + rows.error(now) / closure.period**2
        return ends, u, K @ v

    def _motions(self, motions: Mapping[Any, Any] | None) -> dict[str, np.ndarray]:
        """The motions of driven closures, checked."""
        for name in motions or {}:
            if name not in self.closures:
                raise InputError(unknown("closure", name, self.closures))
        given = (motions or {}).items()
        return {name: checked_motion(f"motion of closure '{name}'", x) for name, x in given}

    def _between(self, closure: Closure, free: dict[str, Freely]) -> Transform:
        """From the second port (or the world) into the first."""
        name, frame = closure.first
        X = pose_of(free[name], self.robots[name].port(frame))
        if closure.second is None:
            return X
        name, frame = closure.second
        return X @ pose_of(free[name], self.robots[name].port(frame)).inverse()

    def _checked(self, states: Mapping[Any, Any]) -> dict[str, State]:
        """The state of every robot, its numbers checked."""
        for n in states:
            self._robot(n)
        out = {}
        for n, robot in self.robots.items():
            if n not in states:
                raise InputError(f"no state of '{n}': give (q, v, tau) of every robot")
            try:
                q, v, tau = states[n]
            except (TypeError, ValueError):
                raise InputError(f"the state of '{n}' is not (q, v, tau)") from None
            zero = np.zeros(robot.model.nv)
            v, tau = (zero if x is None else x for x in (v, tau))
            try:
                out[n] = State(*checked(robot.model, q=q, v=v, tau=tau))
            except GrublerError as error:
                raise type(error)(f"the state of '{n}': {error}") from None
        return out

    def _free(self, states: Mapping[str, State]) -> dict[str, Freely]:
        return {n: robot.freely(*states[n]) for n, robot in self.robots.items()}

    @staticmethod
    def _alpha(free: Freely):
        return free.acceleration.ravel()

    @staticmethod
    def _moved(n, free, A, f):
        return free[n].admittance @ (A[n].T @ f)

    def _split(self, f) -> dict[str, np.ndarray]:
        out, start = {}, 0
        for name, closure in self.closures.items():
            out[name] = f[start : start + closure.m]
            start += closure.m
        return out

    def _robot(self, name: str) -> Robot:
        if name not in self.robots:
            raise InputError(unknown("robot", name, self.robots))
        return self.robots[name]


def _coasting(v) -> PointMotion:
    """The motion of a port with velocity v and no spatial acceleration."""
    return PointMotion(v, np.zeros(3), cross(v[:3], v[3:]))


def _named(kind: str, models) -> dict[str, Model]:
    if models is None:
        return {}
    return {kind: models} if isinstance(models, Model) else dict(models)
