"""Kinematics along paths of tree joints: a point, and directions, from body to body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.spatial import Transform, cross
from ..parts import Body
from .base import Positions

if TYPE_CHECKING:
    from ...typing import Array


class Way:
    """The way from one body (S) up to an ancestor and down to another, and into a frame P on it,
    at q.

    Points and directions are carried along it one by one: with hinges' axes along z that costs less
    than the product of all rotations.
    """

    q: Any
    frame: Transform
    up: Any
    down: Any

    def __init__(
        self, path_S: Sequence[Body], path_P: Sequence[Body], frame_P: Transform, q: Positions
    ):
        def steps(path):
            joints = [(body.index, body.joint, q[body.index]) for body in path]
            return [(i, j, j.transform(x), j.motion.subspace(x)) for i, j, x in joints]

        self.q, self.frame = q, frame_P
        self.up, self.down = steps(path_S)[::-1], steps(path_P)

    def carried(self, x: Array, v: Positions | None = None, point: bool = True) -> tuple[Any, ...]:
        """A point fixed in S, or a direction: as each body on the way sees it, by index; and as P
        does, with its first and second derivative there at zero joint accelerations.

        A body that its joint turns by w, and moves at y = E (x - r) by u, sees the point move by
        dy = E dx - u and ddy = E ddx - w × (E dx + dy) - drift; on the way up the same, for x.
        """
        seen, dx, ddx = {}, np.zeros(3), np.zeros(3)
        for i, joint, X, S in self.up:
            seen[i] = x
            if v is not None:
                w, u, drift = self._rates(i, joint, S, v[i], x, point)
                kept = dx + u
                ddx = X.rotate_back(ddx + cross(w, kept + dx) + drift)
                dx = X.rotate_back(kept)
            x = X.rotate_back(x) + X.r if point else X.rotate_back(x)
        for i, joint, X, S in self.down:
            x = seen[i] = X.rotate(x - X.r if point else x)
            if v is not None:
                w, u, drift = self._rates(i, joint, S, v[i], x, point)
                kept = X.rotate(dx)
                dx = kept - u
                ddx = X.rotate(ddx) - cross(w, kept + dx) - drift
        jet = (x - self.frame.r if point else x, dx, ddx)
        return seen, tuple(self.frame.rotate(x) for x in jet)

    def _rates(self, i: int, joint, S, rate, x, point: bool) -> tuple[Any, ...]:
        """How a joint turns its body, moves the body's point at x, and the drift of that."""
        vJ, c = S @ rate, joint.motion.bias(self.q[i], rate)
        c = np.zeros(6) if c is None else c
        w, u, drift = vJ[:3], cross(vJ[:3], x), cross(c[:3], x)
        return (w, u + vJ[3:], drift + c[3:]) if point else (w, u, drift)

    def rows(self, forces: list[Any], moments: Any, seen: dict[Any, Any]) -> dict[Any, Any]:
        """What forces at a point of S, and moments, seen from P, do to S against P, by joint: the
        rows of K. `seen` is the point (`carried`)."""
        n, blocks = len(forces), {}
        T = self.frame.rotate_back(np.stack([*forces, *moments], axis=1))

        def met(S, at):
            moved = [S[3:, k] + cross(S[:3, k], at) for k in range(S.shape[1])]
            parts = [T[:, :n].T @ np.stack(moved, axis=1)] if n else []
            return np.concatenate(parts + ([T[:, n:].T @ S[:3]] if n < T.shape[1] else []))

        for i, _, X, S in reversed(self.down):
            blocks[i] = -met(S, seen[i])
            T = X.rotate_back(T)
        for i, _, X, S in reversed(self.up):
            T = X.rotate(T)
            blocks[i] = met(S, seen[i])
        return blocks
