"""The compiled step: in the model's coordinates where these are regular, else in all velocities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiled import problem as compiled
from ..compiler import iterate, otherwise
from ..contact.step import Contacting
from ..errors import InputError
from ..model import Model
from ..model.fingerprint import fingerprint
from .spaces import Partitioned, Spanning
from .step import INTEGRATORS, contact_step

if TYPE_CHECKING:
    from ..compiled.checked import CheckedFunction
    from ..compiler.runtime.function import CompiledFunction
    from ..gpu.function import GpuFunction
    from ..typing import Array


class Kernel:
    """One recorded step of a simulation as a traced function, and what it reads and writes.

    Its arguments are q, v, tau; the time t (1,) where a control law is compiled in; `carried` (n,)
    where loops are closed implicitly, the velocities of their joints, see `Spanning.lift`, and then
    the record of the contacts, see `Contacting`. A step that fails gives velocities that are NaN.
    """

    contacting: Contacting | None

    inputs: list[str]
    model: Model
    dt: float
    integrator: str
    substeps: int
    control: Callable[..., Any] | None
    dtype: str

    def __init__(
        self, model: Model, dt: float, integrator: str, passive: Any,
        control: Callable[..., Any] | None, substeps: int, dtype: str,
        contacting: Contacting | None = None,
    ):  # fmt: skip
        self.model, self.dt, self.integrator, self.substeps = model, dt, integrator, substeps
        self.control, self.dtype, self.contacting = control, dtype, contacting
        self.usual: Partitioned = Partitioned(model, dt, passive, dtype)
        self.spanning: Spanning | None = None
        if any(cluster.embedding.implicit for cluster in model.clusters):
            self.spanning = Spanning(self.usual)
        self.lifted: int = 0 if self.spanning is None else self.spanning.carried
        self.record: int = 0 if contacting is None else contacting.record
        self.carried: int = self.lifted + self.record
        self.inputs = ["q", "v", "tau"]
        self.inputs += ["t"] * (control is not None) + ["carried"] * (self.carried > 0)
        about = model, integrator, dt, substeps, dtype, passive, control, contacting
        self.key: Any = fingerprint("simulator", *about) or None

    def compile(
        self, target: str, arch: str | None
    ) -> CompiledFunction | CheckedFunction | GpuFunction:
        """The step as machine code."""
        return self._compiled("step", self.recorded, target, arch)

    def compile_motion(self) -> CompiledFunction | CheckedFunction | GpuFunction:
        """(velocities, accelerations) of all tree joints at states with their torques."""
        return self._compiled("motion", self.motion, "cpu", None)

    def _compiled(self, name: str, fn: Callable[..., Any], target: str, arch: str | None):
        def traced(model, **arrays):
            given = [arrays.get(name, np.zeros(0)) for name in ("q", "v", "carried", "t", "tau")]
            return fn(np.concatenate(given[:-1]), given[-1])

        traced.__name__ = name
        return compiled.compile(
            traced, self.model, inputs=self.inputs, shapes={"t": (1,), "carried": (self.carried,)},
            dtype=self.dtype, target=target, arch=arch,
            key=None if self.key is None else f"{name} {self.key}",
        )  # fmt: skip

    def recorded(self, x: Array, tau: Array) -> tuple[Any, ...]:
        """The state after all substeps."""
        nq, nx, n = self.model.nq, self.model.nq + self.model.nv, self.substeps
        if self.spanning is None:
            x = self._usual_only(x, tau) if n == 1 else iterate(self._usual_only, x, tau, count=n)
            return (x[:nq], x[nq:nx], *([x[nx : nx + self.carried]] if self.carried else []))
        if n == 1:
            x = self._either(x, tau)
        else:
            x = self._all_usual_or_each(x, tau)
        return x[:nq], x[nq:nx], x[nx : nx + self.carried]

    def motion(self, x: Array, tau: Array) -> tuple[Array, Array | Any] | tuple[Array, Array]:
        q, v, carried, _ = self._parts(x)
        space = self.usual if self.spanning is None else self.spanning
        w = v if self.spanning is None else space.lift(q, v, carried[: self.lifted])
        return space.spanning_motion(q, w, space.acceleration(q, w, self._torque(x, tau)))

    def _all_usual_or_each(self, x, tau):
        """Substeps in the model's coordinates alone, and only where one fails all of them anew."""

        def usual(x, tau):
            following, good = self._usual(x[:-1], tau)
            return np.concatenate([following, np.stack([np.where(good, x[-1], 0.0)])])

        done = iterate(usual, np.concatenate([x, np.ones(1)]), tau, count=self.substeps)

        def each():
            return iterate(self._either, x, tau, count=self.substeps)

        return otherwise(done[-1] > 0.5, done[:-1], each)

    def _either(self, x, tau):
        following, good = self._usual(x, tau)
        return otherwise(good, following, lambda: self._in_all_velocities(x, tau))

    def _usual_only(self, x, tau):
        following, good = self._usual(x, tau)
        return following if good is None else self._failed_unless(good, following)

    def _usual(self, x, tau):
        q, v, carried, clock = self._parts(x)
        q_next, v_next, record, good = self._advanced(self.usual, q, v, x, tau)
        carried = np.concatenate([np.zeros(self.lifted), record])
        return self._joined(q_next, v_next, carried, clock), good

    def _advanced(self, space, q, w, x, tau):
        """(q, velocities, contact record, good) after a step in a space."""
        torque, record = self._torque(x, tau), self._parts(x)[2][self.lifted :]
        if self.contacting is None:
            following = INTEGRATORS[self.integrator](space, q, w, torque, self.dt)
            return following[0], following[1], record, following[2]
        return contact_step(space, q, w, torque, self.dt, self.contacting, record)

    def _in_all_velocities(self, x, tau):
        q, v, carried, clock = self._parts(x)
        space = self.spanning
        w = space.lift(q, v, carried[: self.lifted])
        q_next, w_next, record, good = self._advanced(space, q, w, x, tau)
        v_next, carried = space.lower(w_next)
        following = self._joined(q_next, v_next, np.concatenate([carried, record]), clock)
        return self._failed_unless(good, following)

    def _failed_unless(self, good, x):
        nq = self.model.nq
        lost = np.where(good, 0.0, np.nan)
        return np.concatenate([x[:nq], x[nq : nq + self.model.nv] + lost, x[nq + self.model.nv :]])

    def _parts(self, x):
        nq, nx = self.model.nq, self.model.nq + self.model.nv
        return x[:nq], x[nq:nx], x[nx : nx + self.carried], x[nx + self.carried :]

    def _joined(self, q, v, carried, clock):
        return np.concatenate([q, v, carried, clock + self.dt])

    def _torque(self, x, tau):
        if self.control is None:
            return tau
        q, v, _, clock = self._parts(x)
        law = self.control(clock, q, v)
        shape = getattr(law, "shape", None)
        if shape != (self.model.nv,):
            raise InputError(f"control returned shape {shape}, expected ({self.model.nv},)")
        return tau + law
