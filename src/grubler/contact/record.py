"""What the contacts did in the steps of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiled import problem as compiled
from .candidates import tangents
from .step import Contacting
from .system import System

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class ContactRecord:
    """Impulses, modes, residual and iterations of each step; a row belongs to the state after it,
    the first is zero. Arrays are (T, ...) for one robot and (T, N, ...) for a batch. Of a run on
    the GPU there is the last row alone, T = 1; `worst` and `unconverged` tell of all steps."""

    contacting: Contacting
    dt: float
    data: np.ndarray

    @property
    def impulse(self) -> np.ndarray:
        """(..., c, 3) along t1, t2 and the normal of each candidate point, in N s."""
        c = self.contacting.points
        return self.data[..., : 3 * c].reshape(*self.data.shape[:-1], c, 3)

    @property
    def force(self) -> np.ndarray:
        """The impulses divided by dt, in N: (..., c, 3)."""
        return self.impulse / self.dt

    @property
    def joint_impulse(self) -> np.ndarray:
        """The impulses of limits and dry friction by joint: (..., joints), in N m s or N s."""
        return self.data[..., 3 * self.contacting.points : self.contacting.rows]

    @property
    def modes(self) -> np.ndarray:
        """(..., c): 0 open, 1 sticking, 2 slipping."""
        start = self.contacting.rows
        return self.data[..., start : start + self.contacting.points].astype(int)

    @property
    def residual(self) -> np.ndarray:
        """The largest entry of the natural map, in m/s."""
        return self.data[..., -4]

    @property
    def iterations(self) -> np.ndarray:
        return self.data[..., -3].astype(int)

    @property
    def worst(self) -> float:
        """The largest residual of all steps, substeps too, in m/s."""
        return float(self.data[-1, ..., -2].max())

    @property
    def unconverged(self) -> int:
        """How many steps, substeps too, ended above the solver's tolerance, of all robots."""
        return int(self.data[-1, ..., -1].sum())

    def geometry(self, q: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(gaps (T, c), points (T, c, 3), axes (T, c, 3, 3) with columns t1, t2, n) at states
        q (T, nq), in the world."""
        c = self.contacting.points
        plan = self.contacting.plan

        def located(model, q):
            zero = np.zeros(model.nv)
            system = System(model, q, zero, zero, 1.0, posed=plan.bodies)
            found = plan.located(system.pose)
            axes = [tangents(f.normal) for f in found]
            flat = [np.concatenate([C[i] for i in range(3)]) for C in axes]
            return (
                np.stack([f.gap for f in found]),
                np.concatenate([f.point for f in found]),
                np.concatenate([x + 0.0 * q[0] for x in flat]),
            )

        call = compiled.compile(located, self.contacting.model)
        gaps, points, axes = (np.asarray(x) for x in call(np.atleast_2d(q)))
        return gaps, points.reshape(-1, c, 3), axes.reshape(-1, c, 3, 3)

    def robot(self, i: int) -> ContactRecord:
        return replace(self, data=self.data[:, i])


__all__ = ["ContactRecord"]
