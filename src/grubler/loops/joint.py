"""Loop joints: a frame on one body meets a frame on another, as a joint of some kind would have it.

With P the frame on the predecessor and S the one on the successor, let R and p be the orientation
and the origin of S in P. Every kind is a list of rows of three sorts:

    position     b . p = 0                     for a direction b fixed in P
    orientation  sum_i c_i e_i . R n_i = 0     for directions e_i fixed in P and n_i fixed in S
    distance     (p . p / d - d) / 2 = 0

Each row is the pairing of a wrench T (expressed in P) with the relative velocity V of S seen from
P, so K and k come from spatial algebra: the wrenches are carried down the two chains to the
nearest common ancestor and meet each joint's motion subspace on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ModelError
from ..joints import perpendicular
from ..parts import Body
from ..spatial import Transform, cross, cross_motion
from .base import Loop, Positions

LOOP_KINDS = (
    "revolute", "prismatic", "ball", "universal", "cylindrical", "planar", "fixed", "distance",
    "inline", "inplane",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Chain:
    """The motion of the last body of a path relative to the body before its first, at q and v."""

    X: Transform
    steps: list  # (body, X_i, S_i)
    velocity: np.ndarray
    bias: np.ndarray  # acceleration at zero joint accelerations


def follow(path: Sequence[Body], q: Positions, v: Positions | None) -> Chain:
    """Kinematics along a path of tree joints, the start held still."""
    X, steps = Transform.identity(), []
    velocity = bias = np.zeros(6)
    for body in path:
        joint = body.joint
        Xi, S = joint.transform(q[body.index]), joint.motion.subspace(q[body.index])
        steps.append((body, Xi, S))
        X = Xi @ X
        if v is not None:
            vJ = S @ v[body.index]
            velocity = Xi.motion(velocity) + vJ
            bias = Xi.motion(bias) + cross_motion(velocity, vJ)
            drift = joint.motion.bias(q[body.index], v[body.index])
            bias = bias if drift is None else bias + drift
    return Chain(X, steps, velocity, bias)


def pull_back(chain: Chain, wrenches) -> dict:
    """Rows of K by body: wrenches on the chain's last body meet each joint's subspace."""
    blocks = {}
    for body, Xi, S in reversed(chain.steps):
        blocks[body.index] = wrenches.T @ S
        wrenches = Xi.forces_back(wrenches)
    return blocks


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

    def __post_init__(self):
        position, orientation = self._rows()
        object.__setattr__(self, "_position", position)
        object.__setattr__(self, "_orientation", orientation)

    def _rows(self):
        """The constant directions of the position rows and the orientation rows."""
        n, (e1, e2) = self.axis, perpendicular(self.axis)
        aligned = [[(1.0, e1, n)], [(1.0, e2, n)]]  # the axes of P and S are parallel
        frame = np.stack([e1, e2, n])
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

    @property
    def bodies(self):
        return tuple(body.index for body in (*self.path_P, *self.path_S))

    @property
    def rows(self):
        return len(self._position) + len(self._orientation) + (self.kind == "distance")

    def _relative(self, chain_P: Chain, chain_S: Chain) -> Transform:
        """X_SP, whose E' is R and whose r is p."""
        return (self.frame_S @ chain_S.X) @ (self.frame_P @ chain_P.X).inverse()

    def residual(self, q):
        X = self._relative(follow(self.path_P, q, None), follow(self.path_S, q, None))
        R, p = X.E.T, X.r
        rows = [b @ p for b in self._position]
        rows += [sum(c * (e @ (R @ n)) for c, e, n in row) for row in self._orientation]
        if self.kind == "distance":
            rows.append((p @ p / self.distance - self.distance) / 2)
        return np.stack(rows)

    def linearize(self, q, v):
        chain_P, chain_S = follow(self.path_P, q, v), follow(self.path_S, q, v)
        X_SP = self._relative(chain_P, chain_S)
        X_PS, R, p = X_SP.inverse(), X_SP.E.T, X_SP.r
        T = self._wrenches(R, p)
        on_S = self.frame_S.forces_back(X_PS.forces_back(T))
        on_P = self.frame_P.forces_back(T)
        blocks = pull_back(chain_S, on_S)
        blocks |= {i: -block for i, block in pull_back(chain_P, on_P).items()}
        if v is None:
            return blocks, None
        to_P_S = X_PS @ self.frame_S
        v_P = self.frame_P.motion(chain_P.velocity)
        V = to_P_S.motion(chain_S.velocity) - v_P
        # the derivative of V's components in P, at zero joint accelerations
        dV = to_P_S.motion(chain_S.bias) - self.frame_P.motion(chain_P.bias) - cross_motion(v_P, V)
        return blocks, -(T.T @ dV + self._wrench_rates(R, p, V).T @ V)

    def _wrenches(self, R, p):
        """T (6, rows): row = T . V, where V_lin + w x p is the velocity of S's origin in P."""
        columns = [np.concatenate([cross(p, b), b]) for b in self._position]
        for row in self._orientation:
            moment = sum(c * cross(R @ n, e) for c, e, n in row)
            columns.append(np.concatenate([moment, np.zeros(3)]))
        if self.kind == "distance":
            columns.append(np.concatenate([np.zeros(3), p / self.distance]))  # p x p = 0
        return np.stack(columns, axis=1)

    def _wrench_rates(self, R, p, V):
        """dT/dt (6, rows) in the coordinates of P."""
        w = V[:3]
        dp = V[3:] + cross(w, p)
        columns = [np.concatenate([cross(dp, b), np.zeros(3)]) for b in self._position]
        for row in self._orientation:
            moment = sum(c * cross(cross(w, R @ n), e) for c, e, n in row)
            columns.append(np.concatenate([moment, np.zeros(3)]))
        if self.kind == "distance":
            columns.append(np.concatenate([np.zeros(3), dp / self.distance]))
        return np.stack(columns, axis=1)

    def describe(self):
        return f"{self.kind} joint between {self.ends[0]} and {self.ends[1]}"

    def gap(self, q):
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

    def on_branch(self, q):
        """Aligned axes must point the same way, locked frames must not be half a turn apart."""
        X = self._relative(follow(self.path_P, q, None), follow(self.path_S, q, None))
        if self.kind in ("revolute", "cylindrical", "planar"):
            return bool(self.axis @ X.E.T @ self.axis > 0)
        if self.kind in ("fixed", "prismatic"):
            return bool(np.trace(X.E) > 1.0)
        return True
