"""Loop joints: a frame on one body meets a frame on another, as a joint of some kind would have it.

With P the frame on the predecessor and S the one on the successor, let R and p be the orientation
and the origin of S in P. Every kind is a list of rows of three sorts:

    position     b . p = 0                     for a direction b fixed in P
    orientation  sum_i c_i e_i . R n_i = 0     for directions e_i fixed in P and n_i fixed in S
    distance     (p . p / d - d) / 2 = 0

These rows, `equations`, are polynomials, which the dynamics differentiate. Orientation rows that
align an axis or lock a frame are sines of angles: they vanish half a turn off, too. `residual`,
from which loops are assembled, has the angles instead (angles.py).

The rate of a row is the power of a force at the origin of S, or of a moment, in the motion of S
seen from P: carried from P over the nearest common ancestor to S they meet each joint's motion
subspace, which gives K. k is what the second derivatives of p and R n leave at zero joint
accelerations; both are carried from S to P (chain.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.spatial import Transform, cross
from ...errors import ModelError
from ..joints import perpendicular
from ..parts import Body
from .angles import alignment_angles, alignment_moments, rotation_angles, rotation_moments
from .base import Loop
from .chain import Way

if TYPE_CHECKING:
    from ...typing import Array
    from .base import Positions

LOOP_KINDS = (
    "revolute", "prismatic", "ball", "universal", "cylindrical", "planar", "fixed", "distance",
    "inline", "inplane",
)  # fmt: skip
ALIGNED = ("revolute", "cylindrical", "planar")  # kinds whose axes must agree
LOCKED = ("fixed", "prismatic")  # kinds whose frames must agree


@dataclass(frozen=True, eq=False)
class LoopJoint(Loop):
    """A joint that closes a loop between two frames; `frame_P`, `frame_S` lead from the bodies
    into them, and `path_P`, `path_S` from the nearest common ancestor to the bodies."""

    kind: str
    path_P: tuple[Body, ...]
    path_S: tuple[Body, ...]
    frame_P: Transform
    frame_S: Transform
    ends: tuple[str, str] = ("", "")
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0, 1]))
    axis2: np.ndarray | None = None
    distance: float | None = None

    def __post_init__(self) -> None:
        position, orientation = self._rows()
        object.__setattr__(self, "_position", position)
        object.__setattr__(self, "_orientation", orientation)

    @cached_property
    def _frame(self) -> np.ndarray:
        """Rows e1, e2 and the axis."""
        return np.stack([*perpendicular(self.axis), self.axis])

    def _rows(self):
        """The constant directions of the position rows and the orientation rows."""
        frame = self._frame
        e1, e2, n = frame
        aligned = [[(1.0, e1, n)], [(1.0, e2, n)]]  # the axes of P and S are parallel
        locked = [
            [(0.5, frame[j], frame[i]), (-0.5, frame[i], frame[j])]  # (R - R')/2 = 0
            for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        if self.kind == "universal":
            n2 = self.universal_axis2
            if abs(n @ n2) > 1e-9:
                raise ModelError(
                    f"loop '{self.name}': the axes of a universal joint must be normal"
                )
            return np.eye(3), [[(1.0, n, n2)]]
        if self.kind == "distance" and not (self.distance and self.distance > 0):
            raise ModelError(f"loop '{self.name}': give distance= in m, greater than zero")
        table = {
            "ball": (np.eye(3), []),
            "fixed": (np.eye(3), locked),
            "revolute": (np.eye(3), aligned),
            "prismatic": (np.stack([e1, e2]), locked),
            "cylindrical": (np.stack([e1, e2]), aligned),
            "planar": (n[None, :], aligned),
            "distance": (np.zeros((0, 3)), []),
            "inline": (np.stack([e1, e2]), []),
            "inplane": (n[None, :], []),
        }
        return table[self.kind]

    @property
    def universal_axis2(self) -> np.ndarray:
        """The axis of a universal joint that is fixed in the successor's frame."""
        return self.axis2 if self.axis2 is not None else perpendicular(self.axis)[0]

    @cached_property
    def bodies(self) -> tuple[int, ...]:
        return tuple(body.index for body in (*self.path_P, *self.path_S))

    @property
    def rows(self) -> int:
        return len(self._position) + len(self._orientation) + (self.kind == "distance")

    geometric = True

    @property
    def lengths(self) -> tuple[bool, ...]:
        position, angular = (True,) * len(self._position), (False,) * len(self._orientation)
        return position + angular + (True,) * (self.kind == "distance")

    def reframed(self, bodies: tuple[Body, ...], new: dict[int, Transform]) -> Loop:
        ancestor = (self.path_P or self.path_S)[0].parent

        def moved(path, frame):
            last = path[-1].index if path else ancestor
            return tuple(bodies[body.index] for body in path), frame @ new[last].inverse()

        path_P, frame_P = moved(self.path_P, self.frame_P)
        path_S, frame_S = moved(self.path_S, self.frame_S)
        return replace(
            self, path_P=path_P, path_S=path_S, frame_P=frame_P.rounded(), frame_S=frame_S.rounded()
        )

    def _way(self, q) -> Way:
        """The way at q. On floats the last one is kept: Newton steps ask for φ and K at one q."""
        positions = {i: q[i] for i in self.bodies}
        if not all(isinstance(x, np.ndarray) and x.dtype == float for x in positions.values()):
            return Way(self.path_S, self.path_P, self.frame_P, q)
        key = tuple(x.tobytes() for x in positions.values())
        kept = self.__dict__.get("_kept")
        if kept is None or kept[0] != key:
            copies = {i: x.copy() for i, x in positions.items()}  # the caller may write into his
            kept = key, Way(self.path_S, self.path_P, self.frame_P, copies)
            object.__setattr__(self, "_kept", kept)
        return kept[1]

    def _direction(self, way: Way, n, v=None) -> tuple[Any, ...]:
        """R n with its derivatives."""
        return way.carried(self.frame_S.rotate_back(n), v, point=False)[1]

    def _turned(self, way: Way, v=None) -> list[Any]:
        """Of each orientation row the terms (c, e, R n with its derivatives)."""
        normals = {n.tobytes(): n for row in self._orientation for _, _, n in row}
        jets = {key: self._direction(way, n, v) for key, n in normals.items()}
        return [[(c, e, jets[n.tobytes()]) for c, e, n in row] for row in self._orientation]

    def equations(self, q: Positions) -> Array:
        way = self._way(q)
        angular = [sum(c * (e @ n) for c, e, (n, *_) in row) for row in self._turned(way)]
        return np.stack(self._lengths(way, angular))

    def residual(self, q: Positions) -> Array:
        way = self._way(q)
        if self.kind in ALIGNED:
            angular = alignment_angles(self._frame, self._direction(way, self.axis)[0])
        elif self.kind in LOCKED:
            angular = rotation_angles(self._frame, self._rotation(way))
        else:
            return self.equations(q)
        return np.stack(self._lengths(way, list(angular)))

    def slopes(self, q: Positions) -> dict[int, Array]:
        way = self._way(q)
        if self.kind in ALIGNED:
            moments = alignment_moments(self._frame, self._direction(way, self.axis)[0])
        elif self.kind in LOCKED:
            moments = rotation_moments(self._frame, self._rotation(way))
        else:
            return self.linearize(q, None)[0]
        seen, _ = way.carried(self.frame_S.r)
        return way.rows([*self._position], moments, seen)

    def alignment(self, q: Positions) -> float | None:
        way = self._way(q)
        if self.kind in ALIGNED:
            return self.axis @ self._direction(way, self.axis)[0]
        if self.kind in LOCKED:
            return (sum(e @ self._direction(way, e)[0] for e in np.eye(3)) - 1.0) / 2
        return None

    def turned_round(self) -> Loop | None:
        if self.kind not in ALIGNED:
            return None
        e1 = self._frame[0]
        half_turn = Transform(2 * np.outer(e1, e1) - np.eye(3), np.zeros(3))
        return replace(self, frame_S=half_turn @ self.frame_S)

    def _lengths(self, way: Way, angular: list[Any]) -> list[Any]:
        """Position rows, then orientation rows as they are given, then the distance."""
        _, (p, *_) = way.carried(self.frame_S.r)
        rows = [*(b @ p for b in self._position), *angular]
        if self.kind == "distance":
            rows.append((p @ p / self.distance - self.distance) / 2)
        return rows

    def _rotation(self, way: Way) -> np.ndarray:
        return np.stack([self._direction(way, e)[0] for e in np.eye(3)], axis=1)

    def linearize(self, q: Positions, v: Positions | None) -> tuple[dict[int, Array], Array | None]:
        way = self._way(q)
        seen, (p, dp, ddp) = way.carried(self.frame_S.r, v)
        turned = self._turned(way, v)
        forces = [*self._position, *([p / self.distance] if self.kind == "distance" else [])]
        moments = [sum(c * cross(n, e) for c, e, (n, *_) in row) for row in turned]
        blocks = way.rows(forces, moments, seen)
        if v is None:
            return blocks, None
        # the second derivative of each row at zero joint accelerations
        k = [b @ ddp for b in self._position]
        k += [sum(c * (e @ ddn) for c, e, (_, _, ddn) in row) for row in turned]
        if self.kind == "distance":
            k.append((p @ ddp + dp @ dp) / self.distance)
        return blocks, -np.stack(k)

    @property
    def ends_on(self) -> tuple[int, int]:
        """The indices of the predecessor and the successor."""
        ancestor = (self.path_P or self.path_S)[0].parent
        return tuple(path[-1].index if path else ancestor for path in (self.path_P, self.path_S))

    def wrenches(self, q: Array, multipliers: Array) -> tuple[Array, Array, Array]:
        """What forces λ on the rows (Kᵀ λ) are as wrenches [moment; force]: on the successor in the
        axes of its frame S, there; on the successor and on the predecessor in their bodies' axes,
        at their origins."""
        way = self._way(q)
        _, (p, *_) = way.carried(self.frame_S.r)
        forces = [*self._position, *([p / self.distance] if self.kind == "distance" else [])]
        turned = self._turned(way)
        moments = [sum(c * cross(n, e) for c, e, (n, *_) in row) for row in turned]
        n, m = len(self._position), len(moments)
        rows = [*range(n), *([n + m] if self.kind == "distance" else [])]
        F = sum((multipliers[r] * f for r, f in zip(rows, forces)), np.zeros(3))
        M = sum((multipliers[n + i] * x for i, x in enumerate(moments)), np.zeros(3))
        R = self._rotation(way)
        at_S = np.concatenate([R.T @ M, R.T @ F])
        at_P = np.concatenate([-(M + cross(p, F)), -F])
        return at_S, self.frame_S.force_back(at_S), self.frame_P.force_back(at_P)

    def describe(self) -> str:
        return f"{self.kind} joint between {self.ends[0]} and {self.ends[1]}"

    def gap(self, q: dict[int, Array]) -> str:
        phi = self.residual(q)
        n = len(self._position) + (self.kind == "distance")
        lengths, angles = phi[:n], phi[n:]
        parts = []
        if n:
            length = np.linalg.norm(lengths)
            parts.append(f"{length * 1e3:.3g} mm")
        if len(angles) and (np.abs(angles).max() > 1e-9 or not n):
            parts.append(f"{np.abs(angles).max():.3g} rad")
        return " and ".join(parts)
