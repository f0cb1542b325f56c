"""Closed chains by primary and secondary systems (Rodriguez, Jain, Kreutz-Delgado).

The primary system are robots, which stay what they are; the secondary the objects they handle; the
closures what holds them together now. Forward dynamics in the paper's steps:

    (A) free accelerations                  (B) free accelerations of the ports
    (C) admittances Λ of the ports          (D) [A_P Λ_P A_P* + A_S Λ_S A_S*] f = A α - U
    (E) corrections M⁻¹ J* A* f             (F) their sum

A change of closures changes A alone; the robots' compiled code is untouched. Forces of closures act
from the second end on the first: our f is the negative of the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError, unknown
from ..model import Model, as_vector
from ..spatial import Transform, cross
from .constraints import PERIOD
from .ports import Freely, Robot, pose_of
from .rows import displacement

RANK = 1e-12


@dataclass(frozen=True, eq=False)
class Closure:
    """A connection of two ports, or of a port with the world.

    `first` and `second` are (robot, frame); a single primary is called "primary", a single
    secondary "secondary"; second=None is the world. `rows` is "weld", "point", or rows of 0..5 of
    [angular; linear] in the first port's axes. `place` is the pose (R, p) of the first port seen
    from the second (from the world) that is held, None to hold the pose at attachment; its drift
    is stabilised with `period` in s, None for not at all.
    """

    name: str
    first: tuple[str, str]
    second: tuple[str, str] | None = None
    rows: object = "weld"
    place: tuple | None = None
    period: float | None = PERIOD

    @property
    def K(self) -> np.ndarray:
        if isinstance(self.rows, str):
            if self.rows not in ("weld", "point"):
                raise InputError(f"rows '{self.rows}' of closure '{self.name}': 'weld' or 'point'")
            return np.eye(6) if self.rows == "weld" else np.eye(6)[3:]
        return np.eye(6)[list(self.rows)]


class Motion(NamedTuple):
    """Accelerations by robot, the forces of the closures by name (on their first end, in its port's
    axes, one a row), and the largest residual of the closures."""

    a: dict[str, np.ndarray]
    forces: dict[str, np.ndarray]
    residual: float


class ClosedChain:
    """Robots and objects that are coupled by closures, which may come and go.

    primary, secondary  a Model, or Models by name
    closures            `Closure`s that hold from the beginning
    ports               frames by robot that closures may use later
    places              (R, p) by robot: where its world is, turned about the vertical only
    """

    def __init__(
        self, primary, secondary=None, closures=(), *, ports=None, places=None, compiled=True
    ):  # fmt: skip
        self.primary = _named("primary", primary)
        self.secondary = _named("secondary", secondary)
        twice = set(self.primary) & set(self.secondary)
        if twice:
            raise InputError(f"'{twice.pop()}' is in the primary and in the secondary system")
        closures = list(closures)
        wanted: dict = {n: list((ports or {}).get(n, ())) for n in self.primary | self.secondary}
        for closure in closures:
            for end in (closure.first, closure.second):
                if end is not None and end[1] not in wanted.setdefault(end[0], []):
                    wanted[end[0]].append(end[1])
        models = self.primary | self.secondary
        for name in [*wanted, *(places or {}), *(ports or {})]:
            if name not in models:
                raise InputError(unknown("robot", name, models))
        self.robots = {
            name: Robot(name, model, wanted[name], (places or {}).get(name), compiled)
            for name, model in models.items()
        }
        self.closures: dict[str, Closure] = {}
        self._held: dict[str, Transform | None] = {}
        for closure in closures:
            self.attach(closure)

    def attach(self, closure: Closure, q: Mapping | None = None) -> None:
        """Close: from now on `closure` holds. With the configurations q by robot, the pose of its
        ends is held as it is now; without, ends are made to coincide."""
        if closure.name in self.closures:
            raise InputError(f"closure '{closure.name}' is attached already: detach it first")
        for end in (closure.first, closure.second):
            if end is not None:
                self._robot(end[0]).port(end[1])
        if closure.K.shape[0] == 0:
            raise InputError(f"closure '{closure.name}' has no rows")
        held = Transform.identity()
        if closure.place is not None:
            held = Transform.from_placement(*map(np.asarray, closure.place))
        elif q is not None:
            held = self._between(closure, self._free({n: (x, None, None) for n, x in q.items()}))
        self.closures[closure.name], self._held[closure.name] = closure, held

    def detach(self, name: str) -> None:
        """Open a closure."""
        if name not in self.closures:
            raise InputError(unknown("closure", name, self.closures))
        del self.closures[name], self._held[name]

    def forward_dynamics(self, states: Mapping, *, secondary_first: bool = False) -> Motion:
        """Accelerations by robot from (q, v, tau) by robot; tau may be None for zero.

        `secondary_first` solves step D for the secondary's acceleration first, which costs less
        where A_P Λ_P A_P* is block diagonal: robots that are not coupled with each other. It needs
        closures that the primary alone can serve.
        """
        free = self._free(states)  # (A), (B), (C)
        if not self.closures:
            return Motion({n: free[n].a for n in self.robots}, {}, 0.0)
        A, U = self._constraint(free)
        solve = self._secondary_first if secondary_first else self._together
        f = solve(free, states, A, U)  # (D)
        a = {}
        for n, robot in self.robots.items():
            push = robot.pushed(_q(states, n), A[n].T @ f)  # (E)
            a[n] = free[n].a + push  # (F)
        gap = U + sum(A[n] @ (self._alpha(free[n]) + self._moved(n, free, A, f)) for n in A)
        return Motion(a, self._split(f), float(np.abs(gap).max()))

    def impulse(self, states: Mapping) -> dict[str, np.ndarray]:
        """Velocities after an inelastic impact: those that the closures allow, by robot."""
        free = self._free(states)
        if not self.closures:
            return {n: np.asarray(states[n][1]) for n in self.robots}
        A, _ = self._constraint(free)
        inertia = sum(A[n] @ free[n].admittance @ A[n].T for n in A)
        speed = sum(A[n] @ free[n].velocity.ravel() for n in A)
        f = -np.linalg.lstsq(inertia, speed, rcond=RANK)[0]
        return {
            n: np.asarray(states[n][1]) + robot.pushed(_q(states, n), A[n].T @ f)
            for n, robot in self.robots.items()
        }

    # step D

    def _together(self, free, states, A, U):
        inertia = sum(A[n] @ free[n].admittance @ A[n].T for n in A)
        right = sum(A[n] @ self._alpha(free[n]) for n in A) + U
        return -np.linalg.lstsq(inertia, right, rcond=RANK)[0]  # (0.35)

    def _secondary_first(self, free, states, A, U):
        """ä_S from [M_S + J_S* A_S* (A_P Λ_P A_P*)⁻¹ A_S J_S], then f."""
        from ..algorithms import frame_jacobian, mass_matrix

        blocks = self._blocks()
        n = len(U)
        inverse, right = np.zeros((n, n)), np.array(U)
        for name in self.primary:
            right = right + A[name] @ self._alpha(free[name])
        inertia = sum(A[name] @ free[name].admittance @ A[name].T for name in self.primary)
        for rows in blocks:
            inverse[np.ix_(rows, rows)] = np.linalg.inv(inertia[np.ix_(rows, rows)])
        J, M, forces = [], [], []
        for name in self.secondary:
            robot, q = self.robots[name], _q(states, name)
            M.append(mass_matrix(robot.model, q))
            ports = [frame_jacobian(robot.model, q, frame) for frame in robot.frames]
            AJ = A[name] @ np.concatenate(ports) if ports else np.zeros((n, robot.model.nv))
            J.append(AJ)
            drift = A[name] @ self._alpha(free[name]) - AJ @ free[name].a
            right = right + drift
            forces.append(M[-1] @ free[name].a)
        AJ = np.concatenate(J, axis=1)
        size = AJ.shape[1]
        mass, start = np.zeros((size, size)), 0
        for block in M:
            stop = start + len(block)
            mass[start:stop, start:stop] = block
            start = stop
        a = np.linalg.solve(
            mass + AJ.T @ inverse @ AJ, np.concatenate(forces) - AJ.T @ (inverse @ right)
        )
        return -inverse @ (right + AJ @ a)

    def _blocks(self) -> list[list[int]]:
        """Rows that the primary couples: those of closures on a common robot."""
        groups: list[tuple[set, list]] = []
        start = 0
        for closure in self.closures.values():
            rows = list(range(start, start + len(closure.K)))
            start += len(rows)
            robots = {e[0] for e in (closure.first, closure.second) if e and e[0] in self.primary}
            joined = [g for g in groups if g[0] & robots]
            groups = [g for g in groups if not g[0] & robots]
            rows += [row for _, others in joined for row in others]
            groups.append((robots.union(*[g[0] for g in joined]), rows))
        return [sorted(rows) for _, rows in groups]

    # the closures' rows

    def _constraint(self, free: dict[str, Freely]):
        """A by robot (rows, 6 ports), and U: A α + U = 0 (0.20), (0.22)."""
        A = {n: [] for n in self.robots}
        U = []
        for closure in self.closures.values():
            K, (first, frame) = closure.K, closure.first
            X = self._between(closure, free)
            i = self.robots[first].port(frame)
            point = closure.rows == "point" if isinstance(closure.rows, str) else False
            shift = Transform(X.E, np.zeros(3)) if point else X
            ends = {(first, i): K}
            v = free[first].velocity[i]
            bias = cross(v[:3], v[3:]) if point else np.zeros(3)
            if closure.second is not None:
                second, other = closure.second
                j = self.robots[second].port(other)
                w = free[second].velocity[j]
                ends[second, j] = -K @ shift.matrix()
                v = v - shift.motion(w)
                bias = bias - X.E @ cross(w[:3], w[3:]) if point else bias
            u = K[:, 3:] @ bias
            if closure.period is not None:
                error = displacement(X @ self._held[closure.name].inverse())
                u = u + (2 / closure.period) * (K @ v) + (K @ error) / closure.period**2
            U.append(u)
            for n, robot in self.robots.items():
                row = [ends.get((n, k), np.zeros((len(K), 6))) for k in robot.order]
                A[n].append(np.concatenate(row, axis=1) if row else np.zeros((len(K), 0)))
        return {n: np.concatenate(blocks) for n, blocks in A.items()}, np.concatenate(U)

    def _between(self, closure: Closure, free: dict[str, Freely]) -> Transform:
        """From the second port (or the world) into the first."""
        name, frame = closure.first
        X = pose_of(free[name], self.robots[name].port(frame))
        if closure.second is None:
            return X
        name, frame = closure.second
        return X @ pose_of(free[name], self.robots[name].port(frame)).inverse()

    def _free(self, states: Mapping) -> dict[str, Freely]:
        missing = [n for n in self.robots if n not in states]
        if missing:
            raise InputError(f"no state of '{missing[0]}': give (q, v, tau) of every robot")
        free = {}
        for n, robot in self.robots.items():
            q, v, tau = states[n]
            nv = robot.model.nv
            v, tau = (
                np.zeros(nv) if x is None else as_vector(f"of '{n}'", x, nv) for x in (v, tau)
            )
            free[n] = robot.freely(as_vector(f"q of '{n}'", q, robot.model.nq), v, tau)
        return free

    @staticmethod
    def _alpha(free: Freely):
        return free.acceleration.ravel()

    @staticmethod
    def _moved(n, free, A, f):
        return free[n].admittance @ (A[n].T @ f)

    def _split(self, f) -> dict[str, np.ndarray]:
        out, start = {}, 0
        for name, closure in self.closures.items():
            out[name] = f[start : start + len(closure.K)]
            start += len(closure.K)
        return out

    def _robot(self, name: str) -> Robot:
        if name not in self.robots:
            raise InputError(unknown("robot", name, self.robots))
        return self.robots[name]


def _named(kind: str, models) -> dict[str, Model]:
    if models is None:
        return {}
    return {kind: models} if isinstance(models, Model) else dict(models)


def _q(states, name):
    return states[name][0]
