"""Constraints on the motion of frames: their description, and the check of what users give.

    d/dt (K V) = k        hard, or
    d/dt (K V) + R λ = k  soft (R > 0)

V is the spatial velocity of a frame relative to the world or to another body, at the frame's origin
and in its axes. The multipliers λ push with Kᵀ λ there, and with the opposite force at the same
point of the other body, so that M a + h = tau + Jᵀ λ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.spatial import Transform
from ..algebra.symbolic import is_symbolic
from ..errors import InputError
from ..mechanism.parts import WORLD, Frame, frozen
from ..model import Model, as_vector
from ..tolerances import ROTATION
from .held import UNIVERSAL, HeldRows

if TYPE_CHECKING:
    from ..typing import Array

PERIOD = 0.1  # s, Featherstone's stabilisation period (Sec. IX-A)


@dataclass(frozen=True, eq=False)
class Constraint:
    """A motion constraint on a frame, or between two frames.

    frame         name of the constrained frame (or body)
    rows          which velocities V = [angular; linear] are held, at the frame's origin in its
                  axes: "weld", all six; some of 0..5; or a matrix K (m, 6), for d/dt (K V) = k.
                  "point": the position of the frame's origin, r'' = k in the frame's axes.
                  "universal": four rows, the frame's y axis perpendicular to the x axis of `to`
                  (of the target, the world), and the point
    to            name of a second frame: the motion relative to its body is constrained
    acceleration  the desired k (m,), in rad/s² and m/s²; zero by default
    target        where the frame is to be held, seen from `to` or the world: a position (3,) for
                  "point", (R, p) for other rows. Given a target, its position and velocity errors
                  are stabilised; None: the frame is held where it is, and neither is (unless there
                  is a period)
    period        Baumgarte's period T in s: e'' + 2 ζ/T e' + e/T² = 0. By default 0.1 with a
                  target; with a period and no target only the velocity is stabilised
    damping       its damping ratio ζ, critical by default
    softness      R > 0, a number or (m,): K a + R λ = k instead of K a = k; None: hard
    driven        True: the place where the frame is held moves as `motion` of
                  `constrained_forward_dynamics` says
    """

    frame: str
    rows: object = "weld"
    to: str | None = None
    acceleration: object = None
    target: object = None
    period: float | None = None
    damping: float = 1.0
    softness: object = None
    driven: bool = False


@dataclass(frozen=True, eq=False)
class Checked:
    """A constraint with its names resolved and its numbers checked."""

    frame: Frame
    to: Frame | None  # None: the world
    rows: HeldRows
    acceleration: np.ndarray
    place: Transform | None  # from the world to where the frame is held; None with `to`
    held: bool  # whether the position is stabilised
    period: float | None
    damping: float
    softness: np.ndarray | None
    driven: bool

    @property
    def m(self) -> int:
        return self.rows.m


def checked_constraints(model: Model, constraints: Any) -> tuple[Checked, ...]:
    """Every constraint resolved and checked; a single one may stand alone."""
    if isinstance(constraints, (Constraint, Checked, str)):
        constraints = [constraints]
    if not isinstance(constraints, Iterable):
        raise InputError(f"constraints are {constraints!r}: give a list, empty for none")
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
    of = _named(c)
    rows = held_rows(of, c.rows)
    m = rows.m
    acceleration = np.zeros(m)
    if c.acceleration is not None:
        acceleration = as_vector(f"acceleration of {of}", c.acceleration, m)
    place = _target(c, rows)
    period = PERIOD if c.period is None and place is not None else c.period
    checked_gains(of, period, c.damping)
    held = place is not None
    if to is not None:  # hold the frame at a place on the other body
        shifted = to.placement if place is None else place @ to.placement
        to, place = Frame(to.name, to.body, shifted), None
        if to.body == WORLD:
            to, place = None, shifted
    return Checked(
        frame, to, rows, frozen(acceleration), place, held, period, c.damping, _softness(c, m),
        _driven(c),
    )  # fmt: skip


NAMED = {
    "point": HeldRows(np.eye(6)[3:], True),
    "weld": HeldRows(np.eye(6), False),
    "universal": HeldRows(UNIVERSAL, True, True),
}


def held_rows(of: str, rows: Any) -> HeldRows:
    """The rows `of` a constraint or closure, checked."""
    wanted = "give 'point', 'weld', 'universal', distinct rows of 0..5, or a finite matrix (m, 6)"
    if isinstance(rows, str):
        if rows not in NAMED:
            raise InputError(f"rows '{rows}' of {of}: {wanted}")
        return NAMED[rows]
    try:
        K = np.array(rows, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"rows {rows!r} of {of}: {wanted}") from None
    if K.ndim and len(K) == 0:
        raise InputError(f"{of} has no rows: leave it out")
    if K.ndim == 1:
        chosen = set(K)
        if len(chosen) < len(K) or not chosen <= set(range(6)) or np.asarray(rows).dtype == bool:
            raise InputError(f"rows {rows} of {of}: {wanted}")
        K = np.eye(6)[K.astype(int)]
    if K.ndim != 2 or K.shape[1] != 6:
        raise InputError(f"rows of {of} have shape {K.shape}: {wanted}")
    if not np.all(np.isfinite(K)):
        raise InputError(f"rows of {of} are not finite: {wanted}")
    zero = np.flatnonzero(~np.any(K != 0, axis=1))
    if len(zero):
        raise InputError(f"row {zero[0]} of {of} is zero: leave it out")
    return HeldRows(frozen(K), False)


def checked_gains(of: str, period: float | None, damping: float) -> None:
    """Baumgarte's period and damping ratio are numbers that stabilise."""
    for what, x, unit in (("period", period, "seconds > 0"), ("damping", damping, "a ratio > 0")):
        known = isinstance(x, (int, float, np.number)) and 0 < x < np.inf
        if not known and not (what == "period" and x is None):
            raise InputError(f"{what} of {of} is {x!r}: give {unit}")


def checked_pose(what: str, pose: Any) -> Transform:
    """From (R, p) of a frame in its reference, the transform into the frame."""
    try:
        R, p = pose
        R = np.array(R, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what}: give (R, p), a rotation matrix and a position") from None
    if (
        R.shape != (3, 3)
        or not np.abs(R @ R.T - np.eye(3)).max() < ROTATION
        or np.linalg.det(R) < 0
    ):
        raise InputError(f"{what}: (R, p) needs a rotation matrix (3, 3)")
    return Transform.from_placement(R, as_vector(f"p of {what}", p, 3))


def require_place(what: str, rows: HeldRows) -> None:
    """A pose tells how far a frame is off its place if the free motions are those of a joint."""
    if not rows.has_place:
        raise InputError(
            f"{what}: 'point' takes a position (3,); (R, p) is for 'weld', 'universal' and the "
            "rows of a revolute, prismatic, cylindrical, planar or spherical joint. The motions "
            "that these rows leave free are those of no joint: they hold velocities, but no pose; "
            "leave it out"
        )


def _target(c: Constraint, rows: HeldRows) -> Transform | None:
    """From the world, or from `to`, the transform into the place where the frame is held."""
    if c.target is None:
        return None
    what = f"target of {_named(c)}"
    if isinstance(c.rows, str) and c.rows == "point":
        return Transform(np.eye(3), as_vector(what, c.target, 3))
    require_place(what, rows)
    return checked_pose(what, c.target)


def _driven(c: Constraint) -> bool:
    if not isinstance(c.driven, (bool, np.bool_)):
        raise InputError(f"driven of {_named(c)} is {c.driven!r}: give True or False")
    return bool(c.driven)


def checked_motion(what: str, motion: Any, count: int = 1) -> Any | Array:
    """The motion of `count` places (3 count, 6), symbols as they are."""
    if is_symbolic(motion):
        if motion.shape != (3 * count, 6):
            raise InputError(f"{what} has shape {motion.shape}, expected ({3 * count}, 6)")
        return motion
    try:
        size = np.size(np.asarray(motion, dtype=float))
    except (TypeError, ValueError):
        size = -1
    if size != 18 * count or np.shape(motion) not in {(3 * count, 6), (count, 3, 6)}:
        raise InputError(
            f"{what}: give ({3 * count}, 6), for each driven place [rotation vector; position], "
            "[angular velocity; velocity] and [angular acceleration; acceleration]"
        )
    return as_vector(what, np.ravel(motion), 18 * count).reshape(3 * count, 6)


def _softness(c: Constraint, m: int):
    if c.softness is None:
        return None
    try:
        R = np.asarray(c.softness, dtype=float)
    except (TypeError, ValueError):
        R = np.zeros(0)
    R = np.full(m, R) if R.ndim == 0 else R
    if R.shape != (m,) or not np.all(R > 0) or not np.all(np.isfinite(R)):
        raise InputError(
            f"softness of {_named(c)} is {c.softness}: give R > 0, a number or ({m},); None for a "
            "hard constraint"
        )
    return frozen(R)


def _named(c: Constraint) -> str:
    return f"the constraint on '{c.frame}'"


def require_softness(constraints: Any, method: str) -> None:
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
