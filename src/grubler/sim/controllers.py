"""What drives a run: no torque, arrays of torques, or a function called at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler import CompiledFunction
from ..errors import InputError

if TYPE_CHECKING:
    from ..typing import Array


class BadTorque(Exception):
    """What a controller did wrong, in words."""


class Table:
    """Torques known before the run: (nv,), (N, nv), (steps, nv) or (steps, N, nv)."""

    values: Any
    each_step: bool

    def __init__(self, values: Any, each_step: bool):
        self.values, self.each_step = values, each_step
        self.zero: bool = not values.any()

    def fill(self, tau: np.ndarray, start: int, stop: int) -> None:
        """Write the torques of steps start..stop-1 into tau (stop - start, ..., nv)."""
        values = self.values[start:stop] if self.each_step else self.values
        if self.each_step and values.ndim < tau.ndim:
            values = values[:, None]  # the same for all robots
        tau[...] = values


class Law:
    """A function `tau = controller(t, q, v)` called between steps, with copies of the state."""

    controller: Callable[..., Any]
    shape: tuple[int, ...]

    def __init__(self, controller: Callable[..., Any], shape: tuple[int, ...]):
        self.controller, self.shape = controller, shape

    def __call__(self, t: float, q: Array, v: Array) -> np.ndarray:
        try:
            tau = self.controller(t, q.copy(), v.copy())
        except Exception as error:
            raise BadTorque(f"the controller raised {type(error).__name__}: {error}") from error
        except SystemExit as error:
            raise BadTorque(f"the controller asked to exit ({error})") from error
        try:
            given = np.asarray(tau)
            if given.dtype.kind == "c":
                raise BadTorque("the controller returned complex torques")
            given = given.astype(float)
        except (TypeError, ValueError):
            raise BadTorque(
                f"the controller returned a {type(tau).__name__}, no array of numbers"
            ) from None
        if given.shape != self.shape and given.shape != self.shape[-1:]:
            raise BadTorque(f"the controller returned shape {given.shape}, expected {self.shape}")
        if not np.isfinite(given).all():
            raise BadTorque("the controller returned a torque that is not finite")
        return given


def controller_of(controller: Any, steps: int, shape: tuple[int, ...]) -> Table | Law:
    """The controller of a run of `steps` steps with velocities of `shape`, (nv,) or (N, nv)."""
    if controller is None:
        return Table(np.zeros(shape[-1]), False)
    if isinstance(controller, CompiledFunction):
        controller = _by_name(controller, shape[:-1])
    if callable(controller):
        return Law(controller, shape)
    try:
        given = np.asarray(controller)
        table = given.real.astype(float)
    except (TypeError, ValueError):
        raise InputError(
            f"controller is a {type(controller).__name__}: give None, an array of torques, or a "
            "function tau = controller(t, q, v)"
        ) from None
    if given.dtype.kind == "c":
        raise InputError("controller is an array of complex torques: give real numbers")
    if table.shape != shape and table.shape != shape[-1:]:
        if table.shape not in ((steps, *shape), (steps, shape[-1])):
            raise InputError(
                f"torques have shape {table.shape}: give {shape[-1:]}, ({steps}, {shape[-1]})"
                + (f" or ({steps}, {shape[0]}, {shape[1]})" if len(shape) == 2 else "")
            )
        each_step = True
    else:
        each_step = False
    if not np.isfinite(table).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(table))[0])
        raise InputError(f"torque {at} is {table[at]}: give finite numbers")
    return Table(table, each_step)


def _by_name(controller: CompiledFunction, lead: tuple[int, ...]) -> Callable[..., Any]:
    """A compiled function of some of t (1,), q and v, as a controller."""
    names = [a.name for a in controller.inputs]
    if unknown_names := sorted(set(names) - {"t", "q", "v"}):
        raise InputError(
            f"the compiled controller '{controller.name}' takes {', '.join(unknown_names)}: it "
            "must take some of t, q, v"
        )

    def torque(t, q, v):
        given = {"t": np.full((*lead, 1), t), "q": q, "v": v}
        return controller(*(given[name] for name in names))

    return torque
