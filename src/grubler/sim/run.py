"""A run on the CPU: many steps of the compiled kernel, what they leave, and what may stop them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contact.record import ContactRecord
from ..gpu import SimulationError
from ..gpu.simulation import blown_up
from .controllers import BadTorque, Law, Table
from .diagnosis import EnergyBalance, reason
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..typing import Array

EVERY = 1024  # steps between two looks at the states


class Run:
    """The states of one run, in the kernel's precision, robots of a batch along the second axis."""

    sim: Any
    kernel: Any
    step: Any
    steps: int

    def __init__(self, sim: Any, kernel: Any, step: Any, q: Any, v: Array | None, steps: int):
        self.sim, self.kernel, self.step, self.steps = sim, kernel, step, steps
        dtype, lead = sim.dtype, (steps + 1, *q.shape[:-1])
        self.time: Any = np.arange(steps + 1) * sim.dt * sim.substeps
        self.q: Any = np.empty((*lead, q.shape[-1]), dtype)
        self.v: Any = np.empty((*lead, v.shape[-1]), dtype)
        self.tau: Any = np.zeros((*lead, v.shape[-1]), dtype)
        self.carried: Any = np.zeros((*lead, kernel.carried), dtype)
        self.q[0], self.v[0] = q, v
        self.batched: Any = q.ndim == 2
        self.balance: EnergyBalance | None = None
        if sim.passive is None and sim.control is None and sim.contacts is None and steps:
            span = sim.dt * sim.substeps
            self.balance = EnergyBalance(sim.model, sim.integrator, span, self.q[0], self.v[0])

    def go(self, torque: Table | Law) -> Trajectory:
        """The trajectory after all steps; what stops it early keeps what was right."""
        advance = self._along_table if isinstance(torque, Table) else self._under_law
        start = 0
        try:
            while start < self.steps:
                stop = min(start + EVERY, self.steps)
                advance(torque, start, stop)
                self._look(start, stop)
                start = stop
        except BadTorque as error:
            i = self.reached
            self._look(start, i)
            at = f"step {i} (t = {self.time[i]:.6g} s)"
            raise SimulationError(f"{at}: {error}", self._until(i)) from error.__cause__ or error
        except KeyboardInterrupt as interrupt:
            interrupt.trajectory = self._until(self.reached)  # nothing computed is lost
            raise
        return self._until(self.steps)

    def _along_table(self, torque: Any, start: int, stop: int) -> None:
        if not torque.zero:  # self.tau is made of zeros
            torque.fill(self.tau[start:stop], start, stop)
        self.reached = start
        if self.batched:
            for i in range(start, stop):
                self._one(i)
                self.reached = i + 1
            return
        rows, following = slice(start, stop), slice(start + 1, stop + 1)
        arrays = [self.q, self.v, *([self.carried] if self.kernel.carried else [])]
        arguments = self._arguments(rows)
        if torque.zero:
            arguments[2] = self.tau[start]  # without an axis of states: read once
        self.step.chain(arguments, [x[following] for x in arrays], stop - start)
        self.reached = stop

    def _under_law(self, law: Any, start: int, stop: int) -> None:
        one = self._one if self.batched else self._bound()
        for i in range(start, stop):
            self.reached = i
            self.tau[i] = law(self.time[i], self.q[i].astype(float), self.v[i].astype(float))
            one(i)
            if not math.isfinite(self.v[i + 1].sum()):  # the law is never called with such a state
                self._look(start, i + 1)
        self.reached: int = stop

    def _bound(self):
        """A call that takes step i of one robot, on arrays of its own: quicker than `_one`."""
        records = [self.q, self.v, *([self.carried] if self.kernel.carried else [])]
        given = [np.array(x) for x in self._arguments(0)]
        call, tau = self.step.bind(*given), given[2]
        states = [given[0], given[1], *given[len(given) - len(records) + 2 :]]
        found = call()

        def one(i: int) -> None:
            tau[...] = self.tau[i]
            for state, record in zip(states, records, strict=True):
                state[...] = record[i]
            if self.sim.control:
                given[3][0] = self.time[i]
            call()
            for result, record in zip(found, records, strict=True):
                record[i + 1] = result

        return one

    def _one(self, i: int) -> None:
        out = [self.q[i + 1], self.v[i + 1]]
        if self.kernel.carried:
            out.append(self.carried[i + 1])
        self.step(*self._arguments(i), out=tuple(out), threads=self.sim._threads)

    def _arguments(self, rows) -> list[Any]:
        timed = [self.time.astype(self.q.dtype)[:, None][rows]] if self.sim.control else []
        if timed and isinstance(rows, int) and self.batched:
            timed = [np.broadcast_to(timed[0], (len(self.q[rows]), 1))]
        carried = [self.carried[rows]] if self.kernel.carried else []
        return [self.q[rows], self.v[rows], self.tau[rows], *timed, *carried]

    def _look(self, start: int, stop: int) -> None:
        """Stop at the first state of start+1..stop that is lost, or at a wrong energy."""
        # A number that is not finite stays so: the last state tells of all.
        if not (np.isfinite(self.q[stop]).all() and np.isfinite(self.v[stop]).all()):
            rows, axes = slice(start + 1, stop + 1), tuple(range(1, self.q.ndim))
            fine = np.isfinite(self.q[rows]).all(axis=axes)
            fine &= np.isfinite(self.v[rows]).all(axis=axes)
            i = start + int(np.argmin(fine))
            wrong = self._energy_wrong(start, i)
            raise self._lost(i) if wrong is None else self._blown_up(i, wrong[0])
        self._look_at_contacts(start, stop)
        if (wrong := self._energy_wrong(start, stop)) is not None:
            raise self._unbalanced(*wrong)

    def _energy_wrong(self, start: int, stop: int) -> tuple[int, int] | None:
        """(the last state of start..stop whose energy is what the torques put in, the robot), or
        None where all are."""
        if self.balance is None or stop <= start:
            return None
        found = self.balance.violated(
            self.q[start : stop + 1], self.v[start : stop + 1], self.tau[start:stop]
        )
        return None if found is None else (start + found[0], found[1])

    def _look_at_contacts(self, start: int, stop: int) -> None:
        """Stop at the first step whose residual is above `error_above`, where that is given."""
        solver = self.sim.solver
        if solver is None or solver.error_above is None or stop == start:
            return
        residual = self.carried[start + 1 : stop + 1, ..., -2]  # the largest so far
        worst = residual.reshape(len(residual), -1).max(axis=1)
        if (wrong := worst > solver.error_above).any():
            i = start + int(np.argmax(wrong))
            raise SimulationError(
                f"the contacts of the step at t = {self.time[i]:.6g} s were solved to "
                f"{worst[i - start]:.3g} m/s only, above error_above = {solver.error_above:g}: "
                "allow more iterations, a smaller dt, or give fewer contact points a body",
                self._until(i),
            )

    def _lost(self, i: int) -> SimulationError:
        """The error of a step from state i to one that is not finite."""
        state = [x[max(0, i - 2) : i + 1].astype(float) for x in (self.q, self.v, self.carried)]
        whose = ""
        if self.batched:
            after = np.concatenate([self.q[i + 1], self.v[i + 1]], axis=-1)
            robot = int(np.argmin(np.isfinite(after).all(axis=-1)))
            state, whose = [x[:, robot] for x in state], f" of robot {robot}"
        why = reason(self.kernel, *state)
        if why:
            at = f"the simulation{whose} stopped at t = {self.time[i]:.6g} s"
            return SimulationError(f"{at}: {why}", self._until(i))
        return self._blown_up(i, i)

    def _blown_up(self, i: int, right: int) -> SimulationError:
        """The error of a step from state i to one that is not finite; `right` is the last state
        whose energy was right."""
        names = self.sim.model.q_names, self.sim.model.v_names
        after = self.time[i + 1], self.q[i + 1], self.v[i + 1]
        before = np.concatenate([self.v[i], self.carried[i]], axis=-1)
        message = blown_up(*after, before, *names, self.batched)
        if right < i:
            message += f"; the energy is wrong from t = {self.time[right]:.6g} s on"
        return SimulationError(message, self._until(right))

    def _unbalanced(self, i: int, robot: int) -> SimulationError:
        whose = f" of robot {robot}" if self.batched else ""
        return SimulationError(
            f"the energy{whose} has changed by more than the torques put in at t = "
            f"{self.time[i]:.6g} s: the motion is not resolved; take a smaller dt",
            self._until(i),
        )

    def _until(self, i: int) -> Trajectory:
        """The part of the run up to state i."""
        self.tau[i:] = 0.0  # no torque was applied from the last state on
        part = [x[: i + 1].astype(float, copy=False) for x in (self.q, self.v, self.tau)]
        carried, n = self.carried[: i + 1].astype(float, copy=False), self.kernel.lifted
        contact = None
        if self.kernel.contacting is not None:
            contact = ContactRecord(self.kernel.contacting, self.sim.dt, carried[..., n:])
        return Trajectory(
            self.sim.model, self.time[: i + 1], *part,
            carried=carried[..., :n], kernel=self.kernel, contact=contact,
        )  # fmt: skip
