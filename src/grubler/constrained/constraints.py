"""Constraints on the motion of frames: their description, and the check of what users give.

    K a_rel = k        hard, or
    K a_rel + R λ = k  soft (R > 0)

`a_rel` is the acceleration of a frame, in its own axes at its origin, relative to the world or to
another frame; the multipliers λ push with Kᵀ λ, so that M a + h = tau + Jᵀ λ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import InputError
from ..model import Model
from ..parts import WORLD, Frame, frozen
from ..spatial import Transform

PERIOD = 0.1  # s, Featherstone's stabilisation period (Sec. IX-A)


@dataclass(frozen=True, eq=False)
class Constraint:
    """A motion constraint on a frame, or between two frames.

    frame         name of the constrained frame (or body)
    rows          "weld": all six rows of [angular; linear] spatial acceleration; "point": the
                  classical acceleration of the frame's origin (w x v included); some rows of 0..5;
                  or a matrix K (m, 6) on the spatial acceleration. Always in the frame's axes
    to            name of a second frame: the motion relative to it is constrained
    acceleration  the desired k (m,), in rad/s² and m/s²; zero by default
    target        where the frame is to be held, seen from `to` or the world: a position (3,) for
                  "point", (R, p) for "weld". Given a target, its position and velocity errors are
                  stabilised; None: neither (unless there is a period)
    period        Baumgarte's period T in s, critically damped: e'' + 2/T e' + e/T² = 0. By default
                  0.1 with a target; with a period and no target only the velocity is stabilised
    softness      R > 0, a number or (m,): K a + R λ = k instead of K a = k; None: hard
    """

    frame: str
    rows: object = "weld"
    to: str | None = None
    acceleration: object = None
    target: object = None
    period: float | None = None
    softness: object = None


@dataclass(frozen=True, eq=False)
class Checked:
    """A constraint with its names resolved and its numbers checked."""

    frame: Frame
    to: Frame | None  # None: the world
    K: np.ndarray  # (m, 6) in the frame's axes
    classical: bool  # whether w x v is part of the constrained acceleration
    acceleration: np.ndarray
    place: Transform | None  # from the world to where the frame is held; None with `to`
    held: bool  # whether the position is stabilised
    period: float | None
    softness: np.ndarray | None

    @property
    def m(self) -> int:
        return self.K.shape[0]


def checked_constraints(model: Model, constraints) -> tuple[Checked, ...]:
    """Every constraint resolved and checked; a single one may stand alone."""
    if isinstance(constraints, (Constraint, Checked, str)):
        constraints = [constraints]
    return tuple(
        c if isinstance(c, Checked) else _checked(model, _described(c)) for c in constraints
    )


def _described(entry) -> Constraint:
    if isinstance(entry, Constraint):
        return entry
    if isinstance(entry, str):
        return _simple(entry, "weld")
    if isinstance(entry, tuple) and len(entry) == 2:
        name, rows = entry
        hashable = isinstance(rows, (str, tuple))
        return _simple(name, rows) if hashable else Constraint(name, rows)
    raise InputError(
        f"a constraint is a Constraint, the name of a welded frame, or (name, rows), not {entry!r}"
    )


@lru_cache(maxsize=1024)
def _simple(name: str, rows) -> Constraint:
    return Constraint(name, rows)


@lru_cache(maxsize=1024)  # the same object again: what is known of its rows is kept with it
def _checked(model: Model, c: Constraint) -> Checked:
    frame = model.frame(c.frame)
    to = None if c.to is None else model.frame(c.to)
    if frame.body == WORLD:
        raise InputError(f"frame '{frame.name}' is fixed to the world: constrain a moving frame")
    if to is not None and to.body == frame.body:
        raise InputError(f"frames '{c.frame}' and '{c.to}' are on one body: they cannot move apart")
    K, point = _rows(c)
    m = K.shape[0]
    acceleration = np.zeros(m)
    if c.acceleration is not None:
        acceleration = _numbers(f"acceleration of the constraint on '{c.frame}'", c.acceleration, m)
    place = _target(c, point)
    period = PERIOD if c.period is None and place is not None else c.period
    if period is not None and not period > 0:
        raise InputError(f"period of the constraint on '{c.frame}' is {period}: give seconds > 0")
    held = place is not None
    if to is not None:  # hold the frame at a place on the other body
        shifted = to.placement if place is None else place @ to.placement
        to, place = Frame(to.name, to.body, shifted), None
        if to.body == WORLD:
            to, place = None, shifted
    return Checked(
        frame, to, frozen(K), point, frozen(acceleration), place, held, period, _softness(c, m)
    )


def _rows(c: Constraint) -> tuple[np.ndarray, bool]:
    """K (m, 6), and whether it is a point."""
    if isinstance(c.rows, str):
        if c.rows not in ("point", "weld"):
            raise InputError(
                f"rows '{c.rows}' of the constraint on '{c.frame}': give 'point', 'weld', rows of "
                "0..5, or a matrix (m, 6)"
            )
        return (np.eye(6)[3:], True) if c.rows == "point" else (np.eye(6), False)
    K = np.asarray(c.rows, dtype=float)
    if K.ndim == 1 and K.size:
        rows = [int(r) for r in K]
        if sorted(set(rows)) != sorted(rows) or min(rows) < 0 or max(rows) > 5 or np.any(rows != K):
            raise InputError(f"rows {c.rows} of frame '{c.frame}': give distinct rows, 0 to 5")
        K = np.eye(6)[rows]
    if K.ndim != 2 or K.shape[1] != 6 or not np.all(np.isfinite(K)):
        raise InputError(f"K of frame '{c.frame}' has shape {K.shape}: give finite numbers (m, 6)")
    if K.shape[0] == 0:
        raise InputError(f"the constraint on frame '{c.frame}' has no rows: leave it out")
    zero = np.flatnonzero(~np.any(K != 0, axis=1))
    if len(zero):
        raise InputError(f"row {zero[0]} of K of frame '{c.frame}' is zero: leave it out")
    return K, False


def _target(c: Constraint, point: bool) -> Transform | None:
    """The transform from `to` or the world into the place where the frame is held."""
    if c.target is None:
        return None
    what = f"target of the constraint on '{c.frame}'"
    if point:
        return Transform(np.eye(3), _numbers(what, c.target, 3))
    if isinstance(c.rows, str) and len(c.target) == 2:
        R = np.asarray(c.target[0], dtype=float)
        if R.shape != (3, 3) or np.abs(R @ R.T - np.eye(3)).max() > 1e-6:
            raise InputError(f"{what}: (R, p) needs a rotation matrix (3, 3)")
        return Transform.from_placement(R, _numbers(what, c.target[1], 3))
    raise InputError(f"{what}: 'point' takes a position (3,), 'weld' (R, p), other rows none")


def _softness(c: Constraint, m: int):
    if c.softness is None:
        return None
    R = np.asarray(c.softness, dtype=float)
    R = np.full(m, R) if R.ndim == 0 else R
    if R.shape != (m,) or not np.all(R > 0) or not np.all(np.isfinite(R)):
        raise InputError(
            f"softness of the constraint on '{c.frame}' is {c.softness}: give R > 0, a number or "
            f"({m},); None for a hard constraint"
        )
    return frozen(R)


def _numbers(what: str, x, n: int) -> np.ndarray:
    x = np.asarray(x, dtype=float)
    if x.shape != (n,) or not np.all(np.isfinite(x)):
        raise InputError(f"{what} has shape {x.shape}: give {n} finite numbers")
    return frozen(x)


def require_softness(constraints: Sequence[Checked], method: str) -> None:
    """Soft methods need R of every constraint."""
    for c in constraints:
        if c.softness is None:
            raise InputError(
                f"method '{method}' needs softness= of every constraint; that on "
                f"'{c.frame.name}' has none"
            )


def names(constraints: Sequence[Checked]) -> list[str]:
    """A label for every row, for messages: frame and row."""
    return [f"{c.frame.name}[{i}]" for c in constraints for i in range(c.m)]


__all__ = ["Checked", "Constraint", "checked_constraints", "names", "require_softness"]
