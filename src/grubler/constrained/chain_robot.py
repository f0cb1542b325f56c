"""What a closed chain needs of one of its robots: steps A to C and E, compiled once for its ports.

Ports are the frames at which a robot may be closed: hands, feet, handles. The code of a robot knows
its own ports and nothing of what is attached to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.spatial import Transform
from ..algorithms.c_aba import c_aba
from ..algorithms.c_efpa import c_efpa
from ..algorithms.checks import checked_result
from ..algorithms.elimination import eliminations
from ..algorithms.elimination import pushed as pushed_by
from ..algorithms.kinematics import body_transforms
from ..algorithms.sweep import outward
from ..compiled.problem import compile
from ..errors import InputError
from ..tolerances import TILT
from .osim import frame_rows

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array, Frame


class Freely(NamedTuple):
    """A robot left to itself, all ports in the order of `frames`, in their axes.

    a (nv,), rotation (3n, 3) to the world's axes, position (n, 3), velocity and acceleration
    (n, 6), admittance (6n, 6n) = J M⁻¹ Jᵀ.
    """

    a: np.ndarray
    rotation: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    admittance: np.ndarray


def freely(
    model: Model, q: Array, v: Array, tau: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]
) -> Freely:
    """Steps A, B and C: free accelerations, those of the ports, and the admittance Λ = B* Ω B."""
    ports = [model.frame(name) for name in frames]
    a = c_aba(model, q, v, tau)  # (A), (0.31)
    sweep = outward(model, q, v, keep_frame=[port.body for port in ports])
    X, velocity, acceleration = body_transforms(sweep), {}, {}
    for state, vel, acc in zip(sweep, sweep.velocities, sweep.accelerations(a), strict=True):
        velocity |= dict(zip(state.cluster.bodies, state.split(vel)))
        acceleration |= dict(zip(state.cluster.bodies, state.split(acc)))
    poses = [port.placement @ X[port.body] for port in ports]
    return Freely(
        a,
        np.concatenate([pose.E.T for pose in poses]),
        np.stack([pose.r + np.zeros(3) for pose in poses]),
        np.stack([port.placement.motion(velocity[port.body]) for port in ports]),
        np.stack([port.placement.motion(acceleration[port.body]) for port in ports]),  # (B)
        c_efpa(model, q, [(port, tuple(range(6))) for port in ports]),  # (C)
    )


def pushed(
    model: Model, q: Array, wrench: Any, frames: Sequence[tuple[Frame, tuple[int, ...]]]
) -> Array:
    """Step E: M⁻¹ Jᵀ f for wrenches f (6n,) at the ports, by (0.36), (.44)."""
    ports = [(model.frame(name), tuple(range(6))) for name in frames]
    sweep = outward(model, q, keep_frame=[port.body for port, _ in ports])
    forces = [np.zeros(sum(state.sizes)) for state in sweep]
    for block in frame_rows(sweep, ports):
        ((k, F),) = block.ends.items()
        forces[k] = forces[k] + F @ wrench[block.index[0] : block.index[-1] + 1]
    return pushed_by(eliminations(sweep), forces)


class Robot:
    """A robot with ports, placed in the world; its code is compiled on first use and then kept."""

    name: str
    model: Model
    frames: tuple[tuple[Frame, tuple[int, ...]], ...]
    p: Any

    def __init__(
        self,
        name: str,
        model: Model,
        frames: Sequence[tuple[Frame, tuple[int, ...]]],
        place: Any = None,
        compiled: bool = True,
    ):
        self.name, self.model, self.frames = name, model, tuple(frames)
        for frame in self.frames:
            if model.frame(frame).body < 0:
                raise InputError(f"port '{frame}' of '{name}' is fixed to the world")
        R, p = (np.eye(3), np.zeros(3)) if place is None else map(np.asarray, place)
        if np.abs(R @ model.gravity - model.gravity).max() > TILT:
            raise InputError(f"the place of '{name}' tilts it: turn it about the vertical only")
        self.R, self.p = R, p
        self.compiled = compiled
        self._code: dict[Any, Any] = {}

    def _function(self, fn, **shapes):
        if fn not in self._code:
            if self.compiled and self.frames:
                self._code[fn] = compile(fn, self.model, frames=self.frames, **shapes)
            else:
                self._code[fn] = lambda *x: fn(self.model, *x, frames=self.frames)
        return self._code[fn]

    def freely(self, q: Array, v: Array, tau: Array) -> Freely:
        """Steps A to C, in the common world."""
        if not self.frames:
            a = checked_result(self.model, c_aba(self.model, q, v, tau))
            return Freely(a, *[np.zeros((0, 6))] * 4, np.zeros((0, 0)))
        free = Freely(*self._function(freely)(q, v, tau))
        checked_result(self.model, free.a)
        R = np.concatenate([self.R @ free.rotation[3 * i : 3 * i + 3] for i in self.order])
        return free._replace(rotation=R, position=free.position @ self.R.T + self.p)

    @property
    def order(self) -> range:
        return range(len(self.frames))

    def pushed(self, q: Array, wrench: Any) -> Array | Any:
        """Step E."""
        if not self.frames:
            return np.zeros(self.model.nv)
        return self._function(pushed, shapes={"wrench": (6 * len(self.frames),)})(q, wrench)

    def port(self, frame: str) -> int:
        if frame not in self.frames:
            raise InputError(
                f"'{frame}' is not a port of '{self.name}': name it in ports=, so that its code is "
                f"compiled for it; there are {', '.join(self.frames) or 'none'}"
            )
        return self.frames.index(frame)


def pose_of(free: Freely, i: int) -> Transform:
    """From the world into port i."""
    return Transform.from_placement(free.rotation[3 * i : 3 * i + 3], free.position[i])


__all__ = ["Freely", "Robot", "freely", "pose_of", "pushed"]
