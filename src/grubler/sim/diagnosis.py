"""Why a simulation stopped, and whether its energy is what the torques put in."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms import energy
from ..compiled import problem as compiled
from ..model import Model
from ..tolerances import ENERGY_NOISE
from .kernel import Kernel

if TYPE_CHECKING:
    from ..typing import Array

LOOKED_AT = 3  # states before the end that are looked at
OTHER_ROWS = 100.0  # times better conditioned: then other rows would close the loop here
NEAR = 16.0  # times the squared distance at which a step stops: what is named as the reason
DISTANT = 0.05  # distance of rows of K, by which no singularity is there: the step is too long

# Energy that nobody put in between two looks, relative to the largest kinetic energy so far plus
# the work and the potential energy exchanged. At sensible steps the integrators err by far less.
LOST = {"semi_implicit": 0.5, "rk4": 0.05, "implicit_midpoint": 0.05}

_SINGULAR = {
    "mechanism": "loop '{}' is at a singularity of the mechanism itself, where its mobility "
    "changes and no coordinates tell how it goes on: start beyond it, or keep the joints away",
    "fast": "the joints of loop '{}' turn by {:.2g} rad in a step, so far that a singularity of "
    "the mechanism could be passed unseen: take a smaller dt",
    "rows": "the rows that close loop '{}' depend on each other here: choose others with "
    "gb.repartition(model, q) and go on from this state",
    "closed form": "the closed form of loop '{}' is at a dead point, where its branch ends: "
    "simulate gb.numeric(model), which passes it",
}


def reason(kernel: Kernel, q: Array, v: Array, carried: Any) -> str:
    """Which loop was at a singularity in the last states (q (T, nq), ...), in words; or
    empty."""
    last = list(zip(q, v, carried, strict=True))[-LOOKED_AT:]
    for state in reversed(last):
        with np.errstate(all="ignore"):
            for cluster, kind, angle in _singular(kernel, *state):
                return _SINGULAR[kind].format(cluster.loops[0].name, angle)
    return ""


def _singular(kernel: Kernel, q, v, carried):
    """(cluster, kind, how far its joints turn in a step) of each cluster that is near a
    singularity at a state."""
    for cluster, size, bound in kernel.usual.slopes(q, lambda cluster: v[cluster.v]):
        if not size <= bound / NEAR:
            yield cluster, "closed form", None
    space = kernel.spanning
    if space is None:
        return
    for cluster, distances, near in space.flatness(q, space.lift(q, v, carried)):
        if not distances.min(initial=1.0) > NEAR * near:
            joint = cluster.embedding
            K, _ = joint.constraint(joint.positions(q[cluster.q]), None)
            every, kept = (np.linalg.svd(x, compute_uv=False) for x in (K, K[list(joint.kept)]))
            last, kind = len(kept) - 1, "mechanism"
            if every[last] > OTHER_ROWS * kept[last]:
                kind = "rows"
            elif distances.min(initial=1.0) > DISTANT**2:
                kind = "fast"
            yield cluster, kind, np.sqrt(near)


@lru_cache(maxsize=16)
def _compiled_energy(model: Model):
    return compiled.compile(energy, model)


class EnergyBalance:
    """The energy of a run held against the work of its torques, every few steps.

    For runs without passive forces and laws, whose power is not known outside the kernel.
    """

    def __init__(self, model: Model, integrator: str, dt: float, q: Any, v: Array | None):
        self._energy = _compiled_energy(model)
        self._lost, self._dt, self._largest = LOST[integrator], dt, 0.0
        self._before = self._of(q, v)

    def _of(self, q, v):
        kinetic, potential = (np.asarray(x) for x in self._energy(q, v))
        return kinetic, potential

    def violated(self, q: Array, v: Array, tau: Array) -> tuple[int, int] | None:
        """(the last state that is right, the robot) where an energy is wrong after the steps in
        between, else None; q and v (n + 1, ..., n), tau (n, ..., nv); the robot of one is 0."""
        power = np.zeros(tau.shape[:-1])
        if tau.any():
            power = (tau * (v[:-1] + v[1:])).sum(axis=-1) * (0.5 * self._dt)
        work, exchanged = power.sum(axis=0), np.abs(power).sum(axis=0)
        start, self._before = self._before, self._of(q[-1], v[-1])
        largest = np.maximum(self._largest, start[0])
        self._largest = np.maximum(largest, self._before[0])
        bad = np.flatnonzero(~self._balanced(start, self._before, work, exchanged, self._largest))
        if not len(bad):
            return None
        robot = int(bad[0])
        if q.ndim == 3:
            q, v, power = q[:, robot], v[:, robot], power[:, robot]
            start, largest = [x[robot] for x in start], largest[robot]
        for i in range(1, len(q)):
            spent, after = (power[:i].sum(), np.abs(power[:i]).sum()), self._of(q[i], v[i])
            largest = np.maximum(largest, after[0])  # not those of what comes later
            if not self._balanced(start, after, *spent, largest):
                return i - 1, robot
        return len(q) - 1, robot

    def _balanced(self, before, after, work, exchanged, largest):
        """Whether energies (kinetic, potential) differ by the work, within what is tolerated."""
        gain = sum(after) - sum(before)
        scale = largest + exchanged + np.abs(after[1] - before[1])
        floor = ENERGY_NOISE * (np.abs(after[0]) + np.abs(after[1])) + 1e-12
        return np.abs(gain - work) <= self._lost * scale + floor
