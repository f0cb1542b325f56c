"""The simulator: one compiled kernel a step, for one robot or a batch."""

from __future__ import annotations

import numpy as np

from .. import compiled
from ..algorithms.checks import checked
from ..compiler import iterate
from ..errors import GrublerError, InputError, unknown
from ..fingerprint import fingerprint
from ..model import Model
from .diagnosis import EVERY, first_open, singular_loop
from .passive import Passive
from .step import INTEGRATORS
from .trajectory import Trajectory


class SimulationError(GrublerError):
    """The simulation stopped early; `trajectory` holds all states up to there."""

    def __init__(self, message: str, trajectory: Trajectory):
        super().__init__(message)
        self.trajectory = trajectory


class Simulator:
    """Steps of `dt` seconds with the chosen integrator.

    The whole step, dynamics, integration on the manifold and loop closure, is one compiled kernel.
    `batch` robots run side by side over SIMD lanes and `threads`. `passive` adds damping, friction,
    springs and limits. `substeps` steps run inside one call, recorded as one.
    """

    def __init__(
        self, model: Model, dt: float = 1e-3, integrator: str = "semi_implicit", *,
        batch: int | None = None, passive: Passive | None = None, substeps: int = 1,
        threads: int = 1, dtype: str = "float64",
    ):  # fmt: skip
        if not (np.isscalar(dt) and np.isfinite(dt) and dt > 0):
            raise InputError(f"dt is {dt}: give the step in seconds, greater than zero")
        if integrator not in INTEGRATORS:
            raise InputError(unknown("integrator", integrator, INTEGRATORS))
        if batch is not None and (not isinstance(batch, (int, np.integer)) or batch < 1):
            raise InputError(f"batch is {batch!r}: give the number of robots, at least 1")
        if not isinstance(substeps, (int, np.integer)) or substeps < 1:
            raise InputError(f"substeps is {substeps!r}: give a whole number, at least 1")
        self.model, self.dt, self.integrator = model, float(dt), integrator
        self.batch, self.substeps, self.threads = batch, int(substeps), threads
        self.passive = None if passive is None or passive.empty else passive.checked(model)
        self.dtype = dtype
        self._step = self._compile(dtype)

    def _compile(self, dtype: str):
        step, dt, passive, nq = INTEGRATORS[self.integrator], self.dt, self.passive, self.model.nq

        def advance(model, q, v, tau):
            if self.substeps == 1:
                return step(model, q, v, tau, dt, passive)

            def once(x, tau):
                return np.concatenate(step(model, x[:nq], x[nq:], tau, dt, passive))

            x = iterate(once, np.concatenate([q, v]), tau, count=self.substeps)
            return x[:nq], x[nq:]

        passive_key = None if passive is None else fingerprint(passive)
        key = fingerprint(
            self.model, self.integrator, dt, self.substeps, "simulator step", passive_key
        )
        return compiled.compile(advance, self.model, dtype=dtype, key=key)

    def step(self, q, v, tau, out=None):
        """(q, v) after one recorded step: `substeps` times dt."""
        return self._step(q, v, tau, out=out, threads=self.threads if self.batch else None)

    def run(self, q, v, controller=None, steps: int = 1000) -> Trajectory:
        """Simulate `steps` recorded steps from (q, v), which are not changed.

        `controller` is None (no torque), an array of torques (nv,), (steps, nv) or for a batch
        (steps, N, nv), or a function `tau = controller(t, q, v)`. A single state starts every robot
        of a batch. What stops it early carries all states up to there as `trajectory`: a
        `SimulationError`, or the KeyboardInterrupt of Ctrl-C.
        """
        if not isinstance(steps, (int, np.integer)) or steps < 0:
            raise InputError(f"steps is {steps!r}: give a whole number of steps")
        q, v = self._start(q, v)
        torque = self._controller(controller, steps, v.shape)
        lead = (steps + 1,)
        data = Trajectory(
            self.model, np.arange(steps + 1) * self.dt * self.substeps,
            np.empty(lead + q.shape), np.empty(lead + v.shape), np.zeros(lead + v.shape),
        )  # fmt: skip
        data.q[0], data.v[0] = q, v
        i = 0
        try:
            for i in range(steps):
                data.tau[i] = torque(i, data.time[i], data.q[i], data.v[i])
                data.q[i + 1], data.v[i + 1] = self.step(data.q[i], data.v[i], data.tau[i])
                if not np.isfinite(data.v[i + 1]).all() or not np.isfinite(data.q[i + 1]).all():
                    raise SimulationError(self._blown_up(data, i), _until(data, i))
                if i % EVERY == EVERY - 1 or i == steps - 1:
                    self._check_loops(data, i - i % EVERY, i + 1)
        except SimulationError as error:
            kept = error.trajectory
            why = singular_loop(self.model, kept.q)
            opened = first_open(
                self.model, kept.q, max(0, len(kept) - EVERY), len(kept), self.dtype
            )
            kept = kept if opened is None else _until(kept, opened - 1)  # what is kept is closed
            raise SimulationError(f"{error}{why}", kept) from None
        except _BadTorque as error:
            at = f"step {i} (t = {data.time[i]:.6g} s)"
            raise SimulationError(f"{at}: {error}", _until(data, i)) from error
        except KeyboardInterrupt as interrupt:
            interrupt.trajectory = _until(data, i)  # nothing computed is lost
            raise
        return data

    def _start(self, q, v):
        model = self.model
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if self.batch is None or q.ndim == 1:
            q, v = checked(model, q=q, v=v)
            if self.batch is not None:
                return np.tile(q, (self.batch, 1)), np.tile(v, (self.batch, 1))
            return q, v
        for what, x, n in (("q", q, model.nq), ("v", v, model.nv)):
            if x.shape != (self.batch, n):
                raise InputError(f"{what} has shape {x.shape}, expected ({self.batch}, {n})")
        for state in zip(q, v, strict=True):
            checked(model, q=state[0], v=state[1])
        return q, v

    def _controller(self, controller, steps: int, shape):
        if controller is None:
            return lambda i, t, q, v: 0.0
        if callable(controller):
            return lambda i, t, q, v: _checked_torque(_called(controller, t, q, v), shape)
        table = np.asarray(controller, dtype=float)
        if table.shape == shape or table.shape == shape[-1:]:
            return lambda i, t, q, v: table
        if table.shape in ((steps, *shape), (steps, shape[-1])):
            return lambda i, t, q, v: table[i]
        raise InputError(
            f"torques have shape {table.shape}: give {shape[-1:]}, ({steps}, {shape[-1]})"
            + (f" or ({steps}, {shape[0]}, {shape[1]})" if len(shape) == 2 else "")
        )

    def _check_loops(self, data: Trajectory, start: int, stop: int) -> None:
        """Refuse to go on where the Newton steps could not close a loop."""
        opened = first_open(self.model, data.q, start, stop + 1, self.dtype)
        if opened is not None:
            raise SimulationError(
                f"a loop opened at t = {data.time[opened]:.6g} s and could not be closed: take a "
                "smaller dt",
                _until(data, opened - 1),
            )

    def _blown_up(self, data: Trajectory, i: int) -> str:
        bad = ~np.isfinite(data.v[i + 1])
        where = np.argwhere(bad) if bad.any() else [[0]]
        name = self.model.v_names[int(where[0][-1])]
        robot = f" of robot {int(where[0][0])}" if data.batched else ""
        return (
            f"the state blew up at t = {data.time[i + 1]:.6g} s: '{name}'{robot} is not finite "
            f"(largest velocity before: {np.abs(data.v[i]).max():.3g}); take a smaller dt or check "
            "the torques"
        )


class _BadTorque(Exception):
    pass


def _called(controller, t, q, v):
    try:
        return controller(t, q, v)
    except Exception as error:
        raise _BadTorque(f"the controller raised {type(error).__name__}: {error}") from error


def _checked_torque(tau, shape) -> np.ndarray:
    try:
        tau = np.asarray(tau, dtype=float)
    except (TypeError, ValueError):
        raise _BadTorque(
            f"the controller returned a {type(tau).__name__}, no array of numbers"
        ) from None
    if tau.shape != shape and tau.shape != shape[-1:]:
        raise _BadTorque(f"the controller returned shape {tau.shape}, expected {shape}")
    if not np.isfinite(tau).all():
        raise _BadTorque("the controller returned a torque that is not finite")
    return tau


def _until(data: Trajectory, i: int) -> Trajectory:
    """The part of a trajectory that is good: nothing computed is lost."""
    return Trajectory(data.model, *(x[: i + 1] for x in (data.time, data.q, data.v, data.tau)))
