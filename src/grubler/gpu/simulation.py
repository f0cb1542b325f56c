"""Simulation on a GPU: a compiled step launched again and again, states staying where they are.

Needs the step's function alone: `grubler.Simulator(..., target="cuda")` and a bundle run this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import dlpack, driver
from .errors import GrublerError, InputError, SimulationError
from .function import GpuFunction
from .memory import DeviceArray, Library, library_for, on_gpu

if TYPE_CHECKING:
    from ..typing import Array


class GpuTrajectory:
    """States on the GPU: `time` (T,), `q` (T, N, nq) and `v` (T, N, nv), or without N for one
    robot. In memory the robots come last, (T, n, N). `numpy()` fetches (time, q, v, tau);
    `carried()` what the last step handed on, such as the record of its contacts."""

    time: Array
    batched: bool

    def __init__(
        self,
        time: np.ndarray,
        q: DeviceArray,
        v: DeviceArray,
        torque: Any,
        batched: bool,
        passed: Any = (),
    ):
        self.time, self.batched = time, batched
        self._q, self._v, self._torque, self._passed = q, v, torque, passed

    @property
    def q(self) -> DeviceArray:
        return self._q.mT if self.batched else self._q.without_last()

    @property
    def v(self) -> DeviceArray:
        return self._v.mT if self.batched else self._v.without_last()

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        return f"<GpuTrajectory: {len(self)} states, q {self.q.shape} {self._q.dtype}>"

    def numpy(self) -> tuple[np.ndarray, ...]:
        """(time, q, v, tau) in double precision; tau is the force applied from each time on."""
        q, v = self.q.numpy().astype(float), self.v.numpy().astype(float)
        tau = np.zeros(v.shape)
        tau[:-1] = self._torque.numpy(len(self) - 1, v.shape[1:])
        return self.time, q, v, tau

    def carried(self) -> np.ndarray | None:
        """(N, n), or (n,) for one robot: what the last step handed on, in double precision; None
        where steps hand on nothing, and of a run that was cut short."""
        if not self._passed:
            return None
        last = self._passed[(len(self) - 1) % 2].numpy().astype(float).T
        return last if self.batched else last[0]

    def upto(self, n: int) -> GpuTrajectory:
        """The first n states."""
        parts = self._q.upto(n), self._v.upto(n)
        return GpuTrajectory(self.time[:n], *parts, self._torque, self.batched)


class GpuSimulation:
    """A step compiled for the GPU, with what a run of it needs to know."""

    dt: Any
    substeps: Any
    batch: Any
    q_names: list[Any]
    v_names: list[Any]
    nq: int
    nv: int

    def __init__(self, step: Any, about: dict[Any, Any]):
        self.step = step
        self.dt, self.substeps, self.batch = about["dt"], about["substeps"], about["batch"]
        self.q_names, self.v_names = list(about["q_names"]), list(about["v_names"])
        self.nq, self.nv = step.inputs[0].size, step.inputs[1].size
        sizes = {array.name: array.size for array in step.inputs}
        self.timed: bool = "t" in sizes  # a control law inside takes the time
        # Velocities that a step hands to the next, beside v, where loops are closed implicitly.
        self.carried: int = sizes.get("carried", 0)

    def __repr__(self) -> str:
        robots = f"{self.batch} robots" if self.batch else "one robot"
        return f"<GpuSimulation of {robots}: {self.substeps} x {self.dt:g} s a step>"

    def run(
        self, q: Any, v: Any, controller: Any = None, steps: int = 1000, stream: Any = None
    ) -> GpuTrajectory:
        """Simulate `steps` recorded steps from (q, v), as `grubler.Simulator.run`.

        q, v: arrays of torch, CuPy or JAX on the GPU, or of NumPy, which are copied there; (nq,) or
        (N, nq). `controller`: None; torques (nv,), (N, nv), (steps, nv) or (steps, N, nv), on the
        GPU or of NumPy; a function `tau = controller(t, q, v)` on arrays of q's library, called
        between launches; or a function compiled for the GPU with inputs among t, q, v.
        """
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
            raise InputError(f"steps is {steps!r}: give a whole number of steps")
        driver.library()
        run = _Run(self, q, v, int(steps), stream)
        torque = _torque(run, controller)
        data = GpuTrajectory(run.time, run.q, run.v, torque, self.batch is not None, run.passed)
        for i in range(run.steps):
            try:
                torque.set(i)
            except (GrublerError, RuntimeError, TypeError, ValueError) as error:
                if torque.given:  # an error of the caller's own passes as it is
                    raise
                raise SimulationError(
                    f"step {i} (t = {run.time[i]:.6g} s): {error}", data.upto(i + 1)
                ) from error
            run.launch(i)
        driver.synchronize(run.device, run.stream)
        self._check(data, run, torque)
        return data

    def _check(self, data: GpuTrajectory, run: _Run, torque) -> None:
        """Once a state is not finite it stays so: the last one tells, and the first bad one is
        looked for only then."""
        if not run.steps or run.finite(run.steps):
            return
        i = 0
        while run.finite(i + 1):
            i += 1
        at = f"step {i} (t = {run.time[i]:.6g} s)"
        if not torque.finite(i):
            whose = "the controller returned" if not torque.given else "the array holds"
            raise SimulationError(f"{at}: {whose} a torque that is not finite", data.upto(i + 1))
        after = [x[i + 1].numpy().T for x in (run.q, run.v)]
        message = blown_up(
            run.time[i + 1], *after, run.v[i].numpy(), self.q_names, self.v_names,
            self.batch is not None,
        )  # fmt: skip
        raise SimulationError(message, data.upto(i + 1))


def blown_up(
    time: float, q: Any, v: Any, before: Any, q_names: Any, v_names: Any, batched: bool
) -> str:
    """What to say of a state (q, v), (n,) or (N, n), that is not finite, with the velocities
    before it: the first coordinate that is lost, velocities first."""
    names, bad = v_names, np.argwhere(~np.isfinite(v))
    if not len(bad):
        names, bad = q_names, np.argwhere(~np.isfinite(q))
    robot = f" of robot {int(bad[0][0])}" if batched else ""
    return (
        f"the state blew up at t = {time:.6g} s: '{names[int(bad[0][-1])]}'{robot} is not finite "
        f"(largest velocity before: {np.abs(before).max():.3g}); take a smaller dt or check the "
        "torques"
    )


class _Run:
    """The memory of one run and its launches: only addresses change from step to step."""

    def __init__(self, simulation: GpuSimulation, q, v, steps: int, stream):
        self.simulation, self.steps = simulation, steps
        step = simulation.step
        self.library = library_for(q, "argument 'q'") if on_gpu(q) else None
        index = dlpack.device_of(q, "argument 'q'") if self.library else 0
        self.device = driver.device(index)
        if stream is not None:
            self.stream = dlpack.stream_handle(stream)
        else:
            self.stream = dlpack.current_stream(q, index)[0] if self.library else 0
        self.time = np.arange(steps + 1) * simulation.dt * simulation.substeps
        self.robots = simulation.batch or 1
        self.q, self.v = (self.empty(steps + 1, n) for n in (simulation.nq, simulation.nv))
        self.looks: dict[str, object] = {}
        for name, array, given in (("q", self.q, q), ("v", self.v, v)):
            self._start(name, array, given)
        if self.library is not None and not self.finite(0):
            raise InputError("q or v holds a value that is not finite")
        self.clock = DeviceArray.of(self.device, self.time[:, None], step.dtype, self.stream)
        arguments = [self.q[0], self.v[0], DeviceArray.of(
            self.device, np.zeros(simulation.nv), step.dtype, self.stream
        )]  # fmt: skip
        if simulation.timed:
            arguments.append(self.clock[0])
        self.passed = []
        if simulation.carried:  # two, in turns
            self.passed = [self.empty(simulation.carried) for _ in range(2)]
            self.passed[0].fill(np.zeros((simulation.carried, 1)))
            arguments.append(self.passed[0])
        self.arguments, self._bound = arguments, None
        itemsize = self.q.dtype.itemsize
        # The first address and the distance to the next of what moves with the steps.
        self.tracks = [
            (x.address, x.view.strides[0] * itemsize) for x in (self.q, self.v, self.clock)
        ]

    def empty(self, *shape: int) -> DeviceArray:
        """Room for numbers of all robots."""
        return DeviceArray.empty(
            self.device, (*shape, self.robots), self.simulation.step.dtype, self.stream
        )

    def look(self, name: str, array: DeviceArray):
        """An array as the caller's library sees it, made once."""
        if name not in self.looks:
            self.looks[name] = None if self.library.name == "jax" else self.library.look(array)
        return self.looks[name]

    def _start(self, name: str, array: DeviceArray, given) -> None:
        n, batch = array.shape[1], self.simulation.batch
        shape = tuple(np.shape(given)) if not on_gpu(given) else tuple(given.shape)
        allowed = [(n,)] if batch is None else [(n,), (batch, n)]
        if shape not in allowed:
            raise InputError(
                f"{name} has shape {shape}, expected " + " or ".join(map(str, allowed))
            )
        if on_gpu(given) != (self.library is not None):
            where = "on the GPU" if self.library else "in the CPU's memory"
            raise InputError(f"argument '{name}' must lie {where}, where 'q' is")
        if self.library is None:
            values = np.asarray(given, dtype=float)
            if not np.isfinite(values).all():
                raise InputError(f"{name} holds a value that is not finite")
            array[0].fill(values.T if values.ndim == 2 else values[:, None])
            return
        dlpack.view(given, f"argument '{name}'", array.dtype.name, self.stream, own=False)
        self.library.write(array, self.look(name, array), 0, given)

    def launch(self, i: int) -> None:
        if self._bound is None:
            outputs = (self.q[1], self.v[1], *self.passed[1:])
            step = self.simulation.step
            self._bound = step.bound_launch(self.arguments, outputs, self.stream, states_last=True)
        (q, dq), (v, dv), (t, dt) = self.tracks
        state = [q + i * dq, v + i * dv, self.arguments[2].address]
        if self.simulation.timed:
            state.append(t + i * dt)
        following = [q + (i + 1) * dq, v + (i + 1) * dv]
        if self.passed:
            state.append(self.passed[i % 2].address)
            following.append(self.passed[1 - i % 2].address)
        self._bound.move([*state, *following])
        self._bound.run()

    def torque(self, array: DeviceArray) -> None:
        """The torques of the next launch; of another layout than before, they are checked anew."""
        before, self.arguments[2] = self.arguments[2], array
        if (before.shape, before.view.strides) != (array.shape, array.view.strides):
            self._bound = None

    def finite(self, i: int) -> bool:
        """Whether a recorded state is finite: asked on the GPU where the library can."""
        for name, array in (("q", self.q), ("v", self.v)):
            said = self.library.finite(self.look(name, array), i) if self.library else None
            if not (np.isfinite(array[i].numpy()).all() if said is None else said):
                return False
        return True


def _torque(run: _Run, controller):
    if controller is None:
        return _Given(run, np.zeros(run.simulation.nv))
    if isinstance(controller, GpuFunction):
        return _Compiled(run, controller)
    if callable(controller) and not on_gpu(controller):
        return _Called(run, controller)
    return _Given(run, controller)


class _Given:
    """Torques from an array: for all steps alike, or one for each."""

    given = True

    def __init__(self, run: _Run, values):
        self.run, steps, nv = run, run.steps, run.simulation.nv
        batch = run.simulation.batch
        host = not on_gpu(values)
        values = np.asarray(values, dtype=float) if host else values
        shape = tuple(values.shape)
        single = [(nv,)] if batch is None else [(nv,), (batch, nv)]
        # Where steps and robots are equal in number, a table of both is of robots.
        self.each = shape not in single
        if self.each and shape not in [(steps, *s) for s in single]:
            listed = " or ".join(str(s) for s in (*single, *((steps, *s) for s in single)))
            raise InputError(f"torques have shape {shape}: give {listed}")
        spread = len(shape) == 1 + self.each  # without an axis of robots
        if host:
            turned = values if spread else np.swapaxes(values, -1, -2)
            dtype = run.simulation.step.dtype
            self.array = DeviceArray.of(run.device, turned, dtype, run.stream)
        else:
            dtype = run.simulation.step.dtype
            view = dlpack.view(values, "torques", dtype, run.stream, own=False)
            array = DeviceArray(_Kept(run.device, values), view, dtype, run.stream)
            self.array = array if spread else array.mT
        self.spread = spread

    def set(self, i: int) -> None:
        if self.each or i == 0:
            self.run.torque(self.array[i] if self.each else self.array)

    def numpy(self, steps: int, shape) -> np.ndarray:
        """(steps, N, nv) or (steps, nv)."""
        values = self.array.numpy().astype(float)
        if not self.spread:
            values = np.swapaxes(values, -1, -2)
        values = values[:steps] if self.each else values[None]
        if self.spread and len(shape) == 2:
            values = values[:, None]
        return np.broadcast_to(values, (steps, *shape))

    def finite(self, i: int) -> bool:
        part = self.array[i] if self.each else self.array
        return bool(np.isfinite(part.numpy()).all())


class _Kept:
    """Memory of somebody else's array."""

    def __init__(self, device: driver.Device, owner):
        self.device, self.owner = device, owner


class _Recorded:
    """Torques that are computed along the way, into a record of all steps."""

    given = False

    def __init__(self, run: _Run):
        self.run, self.record = run, run.empty(max(run.steps, 1), run.simulation.nv)

    def numpy(self, steps: int, shape) -> np.ndarray:
        values = np.swapaxes(self.record.numpy().astype(float), -1, -2)[:steps]
        return values if len(shape) == 2 else values[:, 0]

    def finite(self, i: int) -> bool:
        return bool(np.isfinite(self.record[i].numpy()).all())


class _Called(_Recorded):
    """Torques of a Python function, called between launches."""

    def __init__(self, run: _Run, controller):
        super().__init__(run)
        self.controller = controller
        if run.library is None:
            raise InputError(
                "a Python controller on the GPU gets arrays of q's library: give q and v as arrays "
                "of torch, CuPy or JAX, torques as an array, or a compiled controller"
            )

    def set(self, i: int) -> None:
        run, library = self.run, self.run.library
        state = [
            library.part(array, run.look(name, array), i)
            for name, array in (("q", run.q), ("v", run.v))
        ]
        shapes = [(run.robots, run.simulation.nv), (run.simulation.nv,)]
        if run.simulation.batch is None:
            state = [x[0] for x in state]
            shapes = shapes[1:]
        tau = self.controller(float(run.time[i]), *state)
        if not on_gpu(tau):
            raise InputError(
                f"the controller returned an object of type {type(tau).__name__}: return an array "
                "on the GPU"
            )
        if tuple(tau.shape) not in shapes:
            raise InputError(
                f"the controller returned shape {tuple(tau.shape)}, expected {shapes[0]}"
            )
        dlpack.device_of(tau, "the controller's torque")
        library = Library(dlpack.library_of(tau))
        library.write(self.record, run.look("tau", self.record), i, tau)
        run.torque(self.record[i])


class _Compiled(_Recorded):
    """Torques of a function compiled for the GPU, launched between steps."""

    def __init__(self, run: _Run, controller: GpuFunction):
        super().__init__(run)
        self.controller = controller
        names = [a.name for a in controller.inputs]
        unknown = sorted(set(names) - {"t", "q", "v"})
        if unknown or len(controller.outputs) != 1:
            raise InputError(
                f"the compiled controller '{controller.name}' takes ({', '.join(names)}) and gives "
                f"{len(controller.outputs)} outputs: it must take some of t, q, v and give tau"
            )
        if controller.outputs[0].shape != (run.simulation.nv,):
            raise InputError(
                f"the compiled controller '{controller.name}' gives shape "
                f"{controller.outputs[0].shape}, expected ({run.simulation.nv},)"
            )
        self.names, self.bound = names, None

    def set(self, i: int) -> None:
        run = self.run
        arrays = {"t": run.clock[i], "q": run.q[i], "v": run.v[i]}
        arguments = [arrays[name] for name in self.names]
        target = self.record[i]
        if self.bound is None:
            self.bound = self.controller.bound_launch(
                arguments, (target,), run.stream, states_last=True
            )
        self.bound.move([a.address for a in (*arguments, target)])
        self.bound.run()
        run.torque(target)
