"""The call's boundary: every argument checked once, before any algorithm runs on it.

Symbolic arguments pass with their shapes checked; what can only be known of numbers (finite values,
unit quaternions, closed loops) is checked on numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.linalg import joined
from ..algebra.symbolic import is_symbolic
from ..arguments import is_number, public, shown
from ..errors import InputError, ModelError, unknown
from ..mechanism.parts import Frame
from ..model import Model, as_position, as_vector
from ..tolerances import GIVEN_POSITION, GIVEN_VELOCITY, UNIT
from ..typing import Function

if TYPE_CHECKING:
    from ..typing import Array


AXES = ("local", "world", "world_aligned")


def checked(model: Model, **arguments: Any) -> Any:
    """Configurations q, q0, q1 and vectors v, a, tau, xi of the right shape, in the order given;
    None stays None."""
    out = []
    for what, x in arguments.items():
        position = what in ("q", "q0", "q1")
        n, names = (model.nq, model.q_names) if position else (model.nv, model.v_names)
        if x is None:
            out.append(None)
        elif is_symbolic(x):
            if x.shape != (n,):
                raise InputError(f"{what} has shape {x.shape}, expected ({n},)")
            out.append(x)
        else:
            x = as_vector(what, x, n, names)
            if position:
                check_configuration(model, x)
            out.append(x)
    return out[0] if len(out) == 1 else out


def checked_number(what: str, x: Any) -> Any:
    """A finite number, or a symbol; an array of one is that one."""
    if is_symbolic(x) and x.shape == (1,):
        return x[0]
    if not is_symbolic(x) and np.shape(x) == (1,):
        x = np.asarray(x)[0]
    if not is_number(x) or not (is_symbolic(x) or np.isfinite(x)):
        raise InputError(f"{what} is {shown(x)}: give a finite number")
    return x if is_symbolic(x) else float(x)


def check_given_with_a(v: Array, a: Array) -> None:
    """Refuse an acceleration without a velocity: nothing would be computed from it."""
    if a is not None and v is None:
        raise InputError("a is given without v: give v, too, zero for a robot at rest")


def check_configuration(model: Model, q: np.ndarray) -> None:
    """Refuse a q with a quaternion that is not of unit length, an open loop, a lost partition."""
    for joint, place in model.layout.quaternions.items():
        length = np.linalg.norm(q[place])
        if abs(length - 1) > UNIT:
            raise InputError(
                f"the quaternion of joint '{joint}' (q[{place.start}:{place.stop}]) has "
                f"length {length:.6g}: normalise it"
            )
    model.check_closed(q)


def checked_forces(model: Model, f_ext: Any) -> Any:
    """External forces by body index: from a mapping by body name, or an array (nb, 6)."""
    if f_ext is None:
        return None
    if isinstance(f_ext, Mapping):
        return {model.body(name).index: _six(name, f) for name, f in f_ext.items()}
    shape = (len(model.bodies), 6)
    if not is_symbolic(f_ext):
        f_ext = np.asarray(f_ext, dtype=float)
    if f_ext.shape != shape:
        raise InputError(
            f"f_ext has shape {f_ext.shape}, expected {shape}: a row [moment; force] a body, or a "
            "mapping from body names"
        )
    return {i: f_ext[i] for i in range(shape[0])}


def _six(name: str, f):
    return f if is_symbolic(f) else as_vector(f"f_ext of body '{name}'", f, 6)


def checked_frame(model: Model, frame: str | Frame) -> Frame:
    return frame if isinstance(frame, Frame) else model.frame(frame)


def checked_axes(axes: str) -> str:
    if axes not in AXES:
        raise InputError(unknown("axes", axes, AXES))
    return axes


def with_mass(model: Model) -> Model:
    """The model, which must have a mass."""
    if not is_symbolic(model.mass) and not model.mass > 0:
        raise ModelError(f"'{model.name}' has no moving mass: it has no centre of mass")
    return model


def checked_frames(model: Model, frames: Any) -> list[tuple[Frame, tuple[int, ...]]]:
    """(frame, rows) pairs from names, or (name, rows) with rows of [angular; linear]."""
    if isinstance(frames, (str, Frame)):
        frames = [frames]
    if not isinstance(frames, Iterable):
        raise InputError(f"frames is {shown(frames)}: give a list of names, or (name, rows)")
    frames = list(frames)
    if not frames:
        raise InputError("frames is empty: give at least one frame by name")
    out = []
    for entry in frames:
        name, rows = entry if isinstance(entry, tuple) else (entry, range(6))
        rows = tuple(int(r) for r in rows)
        if not rows or min(rows) < 0 or max(rows) > 5 or len(set(rows)) < len(rows):
            raise InputError(
                f"rows {rows} of frame '{name}': give distinct rows, 0 to 5, of [angular; linear]"
            )
        frame = checked_frame(model, name)
        if frame.body < 0:
            raise InputError(f"frame '{frame.name}' is fixed to the world: it has no inertia")
        out.append((frame, rows))
    return out


def exact(*methods: str) -> Callable[[Function], Function]:
    """Mark a public function with what `compile(..., method="auto")` may choose from."""

    def mark(fn: Function) -> Function:
        fn.exact_methods = methods  # type: ignore[attr-defined]
        return fn

    return mark


def pick(
    what: str, methods: Mapping[Any, Any], method: str, options: Mapping[Any, Any] | None = None
) -> Callable[..., Any] | None:
    """The function of a method's name, which must take the options given."""
    if method not in methods:
        raise InputError(unknown(f"method of {what}", method, methods))
    for option in options or {}:
        known = inspect.signature(methods[method]).parameters
        if option not in known:
            takers = [m for m in methods if option in inspect.signature(methods[m]).parameters]
            hint = f": it is one of '{takers[0]}'" if takers else ""
            raise InputError(f"method '{method}' of {what} has no option '{option}'{hint}")
    return methods[method]


def checked_result(model: Model, a: Array) -> Array:
    """Refuse an acceleration that is not finite: some coordinate moves no inertia."""
    if not is_symbolic(a) and not np.all(np.isfinite(a)):
        name = model.v_names[int(np.flatnonzero(~np.isfinite(a))[0]) % model.nv]
        raise ModelError(
            f"the mass matrix of '{model.name}' is singular: coordinate '{name}' or one above it "
            "moves no inertia; give its body a mass or an inertia"
        )
    return a


def stacked_torques(model: Model, torques: Any) -> Array:
    """Torques of all spanning velocities in order, from a mapping by joint name."""
    if not isinstance(torques, Mapping):
        if is_symbolic(torques):
            return torques
        return as_vector("torques", torques, model.nv_span, model.spanning_names)
    for name in torques:
        model.body_of_joint(name)
    parts = []
    for i in model.spanning_order:
        joint = model.bodies[i].joint
        value = torques.get(joint.name)
        if value is None:
            parts.append(np.zeros(joint.nv))
        else:
            parts.append(
                as_vector(f"torque of joint '{joint.name}'", np.atleast_1d(value), joint.nv)
            )
    return joined(parts)


@public
def from_spanning(
    model: Model, positions: Mapping[str, float], velocities: Mapping[str, float] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) from positions and velocities of tree joints, by name.

    Joints that are not named keep their reference position and zero velocity. Values of dependent
    joints are checked against the loops; an implicit cluster must be given closed.
    """
    given = {model.body_of_joint(n).index: (n, x) for n, x in positions.items()}
    spans = dict(model.reference)
    for i, (_, x) in given.items():
        spans[i] = as_position(model.bodies[i], x)
    q = model.pack(spans)
    check_configuration(model, q)
    for i, value in model.unpack(q).items():
        if i in given and np.abs(value - spans[i]).max() > GIVEN_POSITION:
            raise InputError(
                f"joint '{given[i][0]}' is dependent and must be at {value}, not at {spans[i]}: "
                "leave it out, or give consistent positions"
            )
    return q, _independent_velocities(model, q, velocities or {})


def _independent_velocities(model: Model, q, velocities: Mapping[str, float]) -> np.ndarray:
    from .spanning import independent_columns, spanning_map

    span = stacked_torques(model, velocities)  # the same stacking, by joint name
    v = span[independent_columns(model)]
    implied = spanning_map(model, q)[0] @ v
    for i, columns in model.spanning.v.items():
        joint = model.bodies[i].joint
        off = np.abs(implied[columns] - span[columns]).max(initial=0.0)
        if joint.name in velocities and off > GIVEN_VELOCITY * (
            1 + np.abs(implied[columns]).max(initial=0.0)
        ):
            raise InputError(
                f"the velocity of joint '{joint.name}' violates its loop: it must be "
                f"{implied[columns]}, not {span[columns]}"
            )
    return v


__all__: Sequence[str] = [
    "checked", "checked_forces", "checked_frame", "checked_frames", "checked_result",
    "from_spanning", "pick", "stacked_torques",
]  # fmt: skip
