"""The simulator: one compiled kernel a step, for one robot or a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from .. import compiled
from ..algorithms.checks import checked
from ..compiler import CompiledFunction, iterate
from ..errors import ClosureError, InputError, unknown
from ..fingerprint import fingerprint
from ..gpu import GpuSimulation, GpuTrajectory, SimulationError
from ..gpu.memory import host_copy, on_gpu
from ..gpu.simulation import blown_up
from ..model import Model
from .diagnosis import EVERY, first_open, singular_loop
from .passive import Passive
from .step import CLOSURE, INTEGRATORS
from .trajectory import Trajectory


class Simulator:
    """Steps of `dt` seconds with the chosen integrator.

    The whole step, dynamics, integration on the manifold and loop closure, is one compiled kernel.
    `batch` robots run side by side over SIMD lanes and `threads`. `passive` adds damping, friction,
    springs and limits. `substeps` steps run inside one call, recorded as one. `control` is a law
    `tau = control(t, q, v)`, t (1,), in the dialect (NumPy on values, no `if` on them), compiled
    into the kernel and evaluated at every step, substeps too; a controller's torque adds to it.

    `target="cuda"` runs on an NVIDIA GPU (see `grubler.gpu`): states stay there, and `run` returns
    a `GpuTrajectory`, which `trajectory` makes a `Trajectory` of. `export` writes the step for
    machines without a compiler.
    """

    def __init__(
        self, model: Model, dt: float = 1e-3, integrator: str = "semi_implicit", *,
        target: str = "cpu", batch: int | None = None, passive: Passive | None = None,
        control: Callable | None = None, substeps: int = 1, threads: int = 1,
        dtype: str = "float64", arch: str | None = None,
    ):  # fmt: skip
        if not (np.isscalar(dt) and np.isfinite(dt) and dt > 0):
            raise InputError(f"dt is {dt}: give the step in seconds, greater than zero")
        if integrator not in INTEGRATORS:
            raise InputError(unknown("integrator", integrator, INTEGRATORS))
        if dtype not in CLOSURE:
            raise InputError(unknown("dtype", dtype, CLOSURE))
        if batch is not None and (not isinstance(batch, (int, np.integer)) or batch < 1):
            raise InputError(f"batch is {batch!r}: give the number of robots, at least 1")
        if not isinstance(substeps, (int, np.integer)) or substeps < 1:
            raise InputError(f"substeps is {substeps!r}: give a whole number, at least 1")
        if control is not None and not callable(control):
            raise InputError(
                f"control is {control!r}: give a function tau = control(t, q, v), and arrays of "
                "torques to run()"
            )
        self.model, self.dt, self.integrator = model, float(dt), integrator
        self.batch, self.substeps, self.threads = batch, int(substeps), threads
        self.passive = None if passive is None or passive.empty else passive.checked(model)
        self.control, self.target, self.dtype = control, target, dtype
        self._step = self._compile(arch)
        self._gpu = GpuSimulation(self._step, self._about()) if target == "cuda" else None

    def __reduce__(self):
        """The arguments: another process finds the compiled step in the cache, or compiles it."""
        options = {
            "target": self.target, "batch": self.batch, "passive": self.passive,
            "control": self.control, "substeps": self.substeps, "threads": self.threads,
            "dtype": self.dtype, "arch": getattr(self._step, "arch", None),
        }  # fmt: skip
        return partial(type(self), **options), (self.model, self.dt, self.integrator)

    def _compile(self, arch: str | None):
        model, dtype, timed = self.model, self.dtype, self.control is not None
        nq, nx = model.nq, model.nq + model.nv

        def once(x, tau):
            """The state, and the time where a law asks for it, one step on."""
            q, v, clock = x[:nq], x[nq:nx], x[nx:]
            if timed:
                tau = tau + self._law(clock, q, v)
            step = INTEGRATORS[self.integrator]
            following = step(model, q, v, tau, self.dt, self.passive, dtype)
            return np.concatenate([*following, clock + self.dt])

        def advance(model, q, v, tau, *clock):
            x = np.concatenate([q, v, *clock])
            if self.substeps == 1:
                x = once(x, tau)
            else:
                x = iterate(once, x, tau, count=self.substeps)
            return x[:nq], x[nq:nx]

        inputs = ["q", "v", "tau", *(["t"] if timed else [])]

        def named(model, **arrays):
            return advance(model, *(arrays[name] for name in inputs))

        passive_key = None if self.passive is None else fingerprint(self.passive)
        key = fingerprint(
            model, self.integrator, self.dt, self.substeps, dtype, "simulator step", passive_key
        )
        named.__name__ = "step"
        return compiled.compile(
            named, model, inputs=inputs, shapes={"t": (1,)}, dtype=dtype, target=self.target,
            arch=arch, key=None if timed else key,
        )  # fmt: skip

    def _law(self, t, q, v):
        tau = self.control(t, q, v)
        shape = getattr(tau, "shape", None)
        if shape != (self.model.nv,):
            raise InputError(f"control returned shape {shape}, expected ({self.model.nv},)")
        return tau

    def _about(self) -> dict:
        """What a run on the GPU needs to know."""
        return {
            "dt": self.dt, "substeps": self.substeps, "batch": self.batch,
            "q_names": list(self.model.q_names), "v_names": list(self.model.v_names),
            "integrator": self.integrator,
            "model": self.model.name,
        }  # fmt: skip

    def step(self, q, v, tau, out=None, t: float = 0.0):
        """(q, v) after one recorded step: `substeps` times dt. On the GPU, arrays there; `t` is the
        time that `control` is given, there an array (1,)."""
        arguments = (q, v, tau) if self.control is None else (q, v, tau, t)
        if self._gpu is not None:
            return self._step(*arguments, out=out)
        if self.control is not None:
            arguments = (q, v, tau, np.full((1,), t, dtype=self.dtype))
        return self._step(*arguments, out=out, threads=self.threads if self.batch else None)

    def run(self, q, v, controller=None, steps: int = 1000) -> Trajectory | GpuTrajectory:
        """Simulate `steps` recorded steps from (q, v), which are not changed.

        `controller` is None (no torque), an array of torques (nv,), (steps, nv) or for a batch
        (steps, N, nv), or a function `tau = controller(t, q, v)`, Python's, or compiled with
        inputs among t (1,), q, v. A single state starts every robot of a batch. What stops it
        early carries all states up to there as `trajectory`: a `SimulationError`, or the
        KeyboardInterrupt of Ctrl-C.

        On the GPU, q and v may be arrays of torch, CuPy or JAX, and a function gets and returns
        such; states given there are checked on arrival: all for shape and finite values, of 1000
        robots at most whether their loops close.
        """
        if not isinstance(steps, (int, np.integer)) or steps < 0:
            raise InputError(f"steps is {steps!r}: give a whole number of steps")
        if self._gpu is not None:
            return self._run_gpu(q, v, controller, steps)
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
                data.q[i + 1], data.v[i + 1] = self.step(
                    data.q[i], data.v[i], data.tau[i], t=data.time[i]
                )
                if not np.isfinite(data.v[i + 1]).all() or not np.isfinite(data.q[i + 1]).all():
                    after = data.time[i + 1], data.q[i + 1], data.v[i + 1]
                    names = self.model.q_names, self.model.v_names
                    message = blown_up(*after, data.v[i], *names, data.batched)
                    raise SimulationError(message, _until(data, i))
                if i % EVERY == EVERY - 1 or i == steps - 1:
                    self._check_loops(data, i - i % EVERY, i + 1)
        except SimulationError as error:
            raise self._explained(error, error.trajectory) from None
        except _BadTorque as error:
            at = f"step {i} (t = {data.time[i]:.6g} s)"
            raise SimulationError(f"{at}: {error}", _until(data, i)) from error
        except KeyboardInterrupt as interrupt:
            interrupt.trajectory = _until(data, i)  # nothing computed is lost
            raise
        return data

    def trajectory(self, run: GpuTrajectory) -> Trajectory:
        """What a run on the GPU left there, fetched: energies, loop gaps, joints by name."""
        return Trajectory(self.model, *run.numpy())

    def _run_gpu(self, q, v, controller, steps) -> GpuTrajectory:
        """The same run on the GPU; loops are looked at on the CPU before."""
        q_host = None
        if not on_gpu(q):
            q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
            q_host = q
        elif self.model.loops:
            q_host = host_copy(q)
        if q_host is not None and q_host.shape[-1:] == (self.model.nq,):
            every = max(1, -(-len(q_host) // 1000)) if q_host.ndim == 2 else 1
            for state in np.atleast_2d(q_host)[::every]:
                self._check_closed(np.asarray(state, dtype=float))
        try:
            return self._gpu.run(q, v, controller, steps)
        except SimulationError as error:
            raise self._explained(error, self.trajectory(error.trajectory)) from None

    def _check_closed(self, q: np.ndarray) -> None:
        if self.dtype == "float64":
            checked(self.model, q=q)
        elif (gap := self.model.loop_gap(q)) > 1e-5:  # what fp32 can hold of a closed state
            raise ClosureError(
                f"the loops of '{self.model.name}' are open by {gap:.3g} m or rad in q: close it "
                "with model.assemble(q)"
            )

    def export(self, folder, *, name: str | None = None, candidates: int | None = 1) -> list[Path]:
        """Write the step for the GPU as a bundle that runs without this package's compiler:
        `grubler_bundle.load_simulation(name).run(q, v, controller, steps)`."""
        if self._gpu is None:
            raise InputError(
                "this simulator runs on the CPU: make it with target='cuda' to export it"
            )
        from ..compiler.ptx_function import export_bundle  # here, since few need it

        name = name or f"{self.model.name}_step"
        return export_bundle(self._step, folder, name, candidates, self._about())

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
        if isinstance(controller, CompiledFunction):
            controller = _by_name(controller, shape[:-1])
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

    def _explained(self, error: SimulationError, kept: Trajectory) -> SimulationError:
        """The error with the loop that led to it; what is kept of the trajectory is closed."""
        why = singular_loop(self.model, kept.q)
        opened = first_open(self.model, kept.q, max(0, len(kept) - EVERY), len(kept), self.dtype)
        return SimulationError(
            f"{error}{why}", kept if opened is None else _until(kept, opened - 1)
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


class _BadTorque(Exception):
    pass


def _by_name(controller: CompiledFunction, lead: tuple[int, ...]) -> Callable:
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
