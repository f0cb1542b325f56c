"""The simulator: one compiled kernel a step, for one robot or a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

import numpy as np

from ..algorithms.checks import checked
from ..contact.record import ContactRecord
from ..contact.step import Contacting, ContactSolver
from ..errors import ClosureError, InputError, unknown
from ..gpu import GpuSimulation, GpuTrajectory, SimulationError, dlpack, driver
from ..gpu.memory import DeviceArray, host_copy, on_gpu
from ..model import Model
from .controllers import controller_of
from .diagnosis import reason
from .kernel import Kernel
from .passive import Passive
from .run import Run
from .spaces import CLOSURE
from .step import INTEGRATORS
from .trajectory import Trajectory

if TYPE_CHECKING:
    pass

Ran = TypeVar("Ran", Trajectory, GpuTrajectory)  # what a run leaves, by the target


class Simulator(Generic[Ran]):
    """Steps of `dt` seconds with the chosen integrator.

    The whole step, dynamics, integration on the manifold and loop closure, is one compiled kernel.
    `batch` robots run side by side over SIMD lanes and `threads`. `passive` adds damping, friction,
    springs and limits. `substeps` steps run inside one call, recorded as one. `control` is a law
    `tau = control(t, q, v)`, t (1,), in the dialect (NumPy on values, no `if` on them), compiled
    into the kernel and evaluated at every step, substeps too; a controller's torque adds to it.

    `contacts` is a plan of candidate points with Coulomb's law; `solver`, a `ContactSolver`, says
    how it is solved. Joint damping is implicit then, and dry friction of joints exact. `run` hands
    the impulses of each step to the next, where they start the solver.

    `target="cuda"` runs on an NVIDIA GPU (see `grubler.gpu`): states stay there, and `run` returns
    a `GpuTrajectory`, which `trajectory` makes a `Trajectory` of. `export` writes the step for
    machines without a compiler.
    """

    contacts: Any
    solver: ContactSolver | None

    model: Model
    dt: float
    integrator: str
    batch: int | None
    substeps: int
    threads: int
    control: Callable[..., Any]
    target: str
    dtype: str

    @overload
    def __init__(
        self: Simulator[Trajectory], model: Model, dt: float = 1e-3,
        integrator: str = "semi_implicit", *, target: Literal["cpu"] = "cpu",
        batch: int | None = None, passive: Passive | None = None,
        control: Callable[..., Any] | None = None, substeps: int = 1, threads: int = 1,
        dtype: str = "float64", arch: str | None = None,
    ): ...  # fmt: skip

    @overload
    def __init__(
        self: Simulator[GpuTrajectory], model: Model, dt: float = 1e-3,
        integrator: str = "semi_implicit", *, target: Literal["cuda"],
        batch: int | None = None, passive: Passive | None = None,
        control: Callable[..., Any] | None = None, substeps: int = 1, threads: int = 1,
        dtype: str = "float64", arch: str | None = None,
    ): ...  # fmt: skip

    def __init__(
        self, model: Model, dt: float = 1e-3, integrator: str = "semi_implicit", *,
        target: str = "cpu", batch: int | None = None, passive: Passive | None = None,
        control: Callable[..., Any] | None = None, substeps: int = 1, threads: int = 1,
        dtype: str = "float64", arch: str | None = None, contacts: Any = None,
        solver: ContactSolver | None = None,
    ):  # fmt: skip
        _check_options(model, dt, integrator, target, batch, passive, control, substeps, threads,
                       dtype)  # fmt: skip
        self.model, self.dt, self.integrator = model, float(dt), integrator
        self.batch, self.substeps, self.threads = batch, int(substeps), threads
        self.passive: Passive | None = (
            None if passive is None or passive.empty else passive.checked(model)
        )
        self.control, self.target, self.dtype = control, target, dtype
        self.contacts: Any = contacts
        self.solver: ContactSolver | None = solver
        if solver is not None and contacts is None:
            raise InputError("solver is how contacts are solved: give contacts, too")
        inside, rest = self._contacting()
        self._kernel = Kernel(
            model, self.dt, integrator, rest, control, self.substeps, dtype, inside
        )
        self._step = self._kernel.compile(target, arch)
        self._gpu = GpuSimulation(self._step, self._about()) if target == "cuda" else None

    def _contacting(self) -> tuple[Contacting | None, Passive | None]:
        """The contacts, with the damping and dry friction that they take in, and what of the
        passive forces is left."""
        if self.contacts is None:
            return None, self.passive
        if self.integrator != "semi_implicit":
            raise InputError(
                f"contacts need integrator='semi_implicit', not '{self.integrator}': impulses act "
                "on velocities, once a step"
            )
        model, solver = self.model, self.solver or ContactSolver()
        damping, friction, rest = {}, {}, self.passive
        if rest is not None:
            damping = {model.body_of_joint(n).index: d for n, d in rest.damping.items()}
            dry = {n: f for n, f in rest.friction.items() if model.joint(n).nv == 1}
            friction = {model.body_of_joint(n).index: f for n, f in dry.items()}
            smooth = {n: f for n, f in rest.friction.items() if n not in dry}
            rest = replace(rest, damping={}, friction=smooth)
            rest = None if rest.empty else rest
        return Contacting(model, self.contacts, solver, self.dt, damping, friction), rest

    def __reduce__(self) -> Any:
        """The arguments: another process finds the compiled step in the cache, or compiles it."""
        options = {
            "target": self.target, "batch": self.batch, "passive": self.passive,
            "control": self.control, "substeps": self.substeps, "threads": self.threads,
            "dtype": self.dtype, "arch": getattr(self._step, "arch", None),
            "contacts": self.contacts, "solver": self.solver,
        }  # fmt: skip
        return partial(type(self), **options), (self.model, self.dt, self.integrator)

    def _about(self) -> dict[Any, Any]:
        """What a run on the GPU needs to know."""
        return {
            "dt": self.dt, "substeps": self.substeps, "batch": self.batch,
            "q_names": list(self.model.q_names), "v_names": list(self.model.v_names),
            "integrator": self.integrator,
            "model": self.model.name,
        }  # fmt: skip

    @property
    def carried(self) -> int:
        """How many numbers a step hands to the next beside q and v: velocities of loops closed
        implicitly, and with contacts the impulses from which the next step starts."""
        return self._kernel.carried

    def step(
        self, q: Any, v: Any, tau: Any, out: Any = None, t: float = 0.0, carried: Any = None
    ) -> tuple[Any, ...]:
        """(q, v) after one recorded step: `substeps` times dt. On the GPU, arrays there; `t` is the
        time that `control` is given, there an array (1,).

        Nothing is checked: q must be closed, with unit quaternions; a step that failed gives
        velocities that are NaN. `run` checks, and carries the velocities of dependent joints, too,
        from step to step; here they follow from v alone, which at a singularity of the model's
        coordinates says too little, and contacts start from no impulses. With `carried`, an array
        (..., `self.carried`) that is zero at first, the step returns (q, v, carried) for the next.
        """
        arguments = [q, v, tau]
        if self.control is not None:
            on_cpu = self._gpu is None
            arguments.append(np.full((1,), t, dtype=self.dtype) if on_cpu else t)
        if carried is not None:
            if not self.carried:
                raise InputError("carried is given, but a step of this simulator hands on nothing")
            return self._call([*arguments, carried], out)
        if not self._kernel.carried:
            return self._call(arguments, out)
        arguments.append(self._nothing_carried(q))
        if out is not None:
            shape = (*np.shape(q)[:-1], self._kernel.carried)
            if self._gpu is None:
                out = (*out, np.empty(shape, self.dtype))
            else:
                device = driver.device(dlpack.device_of(q, "argument 'q'"))
                out = (*out, DeviceArray.empty(device, shape, self.dtype))
        return self._call(arguments, out)[:2]

    def _call(self, arguments, out):
        if self._gpu is not None:
            return self._step(*arguments, out=out)
        return self._step(*arguments, out=out, threads=self._threads)

    @property
    def _threads(self) -> int | None:
        """None for one thread: such calls are checked in machine code."""
        return self.threads if self.batch and self.threads > 1 else None

    def _nothing_carried(self, q):
        if self._gpu is None:  # an array of a row each, as such calls take them
            return np.zeros((*np.shape(q)[:-1], self._kernel.carried), self.dtype)
        nothing = np.zeros(self._kernel.carried, self.dtype)
        index = dlpack.device_of(q, "argument 'q'")
        return DeviceArray.of(driver.device(index), nothing, self.dtype)

    def run(self, q: Any, v: Any, controller: Any = None, steps: int = 1000) -> Ran:
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
        if not _is_whole(steps) or steps < 0:
            raise InputError(f"steps is {steps!r}: give a whole number of steps")
        if self._gpu is not None:
            return self._run_gpu(q, v, controller, steps)
        q, v = self._start(q, v)
        torque = controller_of(controller, steps, v.shape)
        return Run(self, self._kernel, self._step, q, v, steps).go(torque)

    def trajectory(self, run: GpuTrajectory) -> Trajectory:
        """What a run on the GPU left there, fetched: energies, loop gaps, joints by name."""
        contact, last = None, run.carried()
        if self.contacts is not None and last is not None:
            record = last[None, ..., self._kernel.lifted :]
            contact = ContactRecord(self._kernel.contacting, self.dt, record)
        return Trajectory(self.model, *run.numpy(), contact=contact)

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
            run = self._gpu.run(q, v, controller, steps)
        except SimulationError as error:
            kept = self.trajectory(error.trajectory)
            raise SimulationError(self._reason(kept) or str(error), kept) from None
        limit = self.solver and self.solver.error_above
        if limit is not None and (worst := self.trajectory(run).contact.worst) > limit:
            raise SimulationError(
                f"the contacts of some step were solved to {worst:.3g} m/s only, above "
                f"error_above = {limit:g}: allow more iterations, a smaller dt, or give fewer "
                "contact points a body",
                self.trajectory(run),
            )
        return run

    def _check_closed(self, q: np.ndarray) -> None:
        if self.dtype == "float64":
            checked(self.model, q=q)
        elif (gap := self.model.loop_gap(q)) > 1e-5:  # what fp32 can hold of a closed state
            raise ClosureError(
                f"the loops of '{self.model.name}' are open by {gap:.3g} m or rad in q: close it "
                "with model.assemble(q)"
            )

    def export(
        self, folder: Any, *, name: str | None = None, candidates: int | None = 1
    ) -> list[Path]:
        """Write the step for the GPU as a bundle that runs without this package's compiler:
        `grubler_bundle.load_simulation(name).run(q, v, controller, steps)`."""
        if self._gpu is None:
            raise InputError(
                "this simulator runs on the CPU: make it with target='cuda' to export it"
            )
        from ..compiler.runtime.cuda import export_bundle  # here, since few need it

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

    def _reason(self, kept: Trajectory) -> str:
        """Which loop stopped a run on the GPU, if one did."""
        lost = np.zeros((len(kept), self._kernel.carried))
        for i in range(self.batch or 1):
            one, whose = (kept.robot(i), f" of robot {i}") if kept.batched else (kept, "")
            if why := reason(self._kernel, one.q[-3:], one.v[-3:], lost[-3:]):
                return f"the simulation{whose} stopped at t = {kept.time[-1]:.6g} s: {why}"
        return ""


def _check_options(model, dt, integrator, target, batch, passive, control, substeps, threads,
                   dtype):  # fmt: skip
    if not isinstance(model, Model):
        raise InputError(f"Simulator needs a Model, not {type(model).__name__}")
    if not (_is_number(dt) and np.isfinite(dt) and dt > 0):
        raise InputError(f"dt is {dt!r}: give the step in seconds, greater than zero")
    for what, value, known in (
        ("integrator", integrator, INTEGRATORS),
        ("dtype", dtype, CLOSURE),
        ("target", target, ("cpu", "cuda")),
    ):
        if not isinstance(value, str) or value not in known:
            raise InputError(unknown(what, value, known))
    for what, value in (("batch", batch), ("substeps", substeps), ("threads", threads)):
        if what == "batch" and value is None:
            continue
        if not _is_whole(value) or value < 1:
            raise InputError(f"{what} is {value!r}: give a whole number, at least 1")
    if passive is not None and not isinstance(passive, Passive):
        raise InputError(f"passive is {passive!r}: give a gb.Passive(damping=..., ...)")
    if control is not None and not callable(control):
        raise InputError(
            f"control is {control!r}: give a function tau = control(t, q, v), and arrays of "
            "torques to run()"
        )


def _is_number(x) -> bool:
    return isinstance(x, (int, float, np.number)) and not isinstance(x, (bool, np.complexfloating))


def _is_whole(x) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.bool_))
