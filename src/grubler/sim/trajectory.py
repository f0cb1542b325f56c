"""A trajectory: times, states, torques, energies and loop gaps, by joint name; on disk as npz."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .. import algorithms
from ..contact.record import ContactRecord
from ..errors import InputError, unknown
from ..model import Model
from ..model.fingerprint import data_digest
from .kernel import Kernel

FORMAT = 2
ARRAYS = ("time", "q", "v", "tau")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a simulation leaves behind.

    `time` (T,), `q` (T, nq) or (T, N, nq) for a batch of N, `v` and `tau` alike; `tau` is the force
    applied from each time on. Energies, gaps and the motion of dependent joints are computed when
    first asked for. `carried` are the velocities of joints in loops where v alone says too little,
    near singularities of the model's coordinates, and zero elsewhere; `kernel` is the step that
    computed the states, None for those from a file; `contact` what its contacts did in the step
    that led to each state, None without contacts, and from a file.
    """

    model: Model
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    carried: np.ndarray | None = None
    kernel: Kernel | None = None
    contact: ContactRecord | None = None

    @property
    def contact_residual(self) -> np.ndarray:
        """The largest entry of the natural map of each step, in m/s, (T,) or (T, N); the first
        state's is 0."""
        return self._contacts.residual

    @property
    def unconverged(self) -> int:
        """How many steps ended with a residual above the solver's tolerance."""
        return self._contacts.unconverged

    @property
    def _contacts(self) -> ContactRecord:
        if self.contact is None:
            raise InputError("this trajectory has no contacts: give Simulator(..., contacts=...)")
        return self.contact

    @property
    def batched(self) -> bool:
        return self.q.ndim == 3

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        batch = f" x {self.q.shape[1]} robots" if self.batched else ""
        end = self.time[-1] if len(self) else 0.0
        return f"<Trajectory of '{self.model.name}': {len(self)} states{batch}, {end:g} s>"

    def __getitem__(self, joint: str) -> np.ndarray:
        """Positions of a tree joint over time, dependent ones too: (T, nq) or (T, N, nq)."""
        body = self.model.body_of_joint(joint)
        values = np.array(
            [self.model.unpack(q)[body.index] for q, _ in zip(*self._flat, strict=True)]
        )
        return values.reshape(*self.q.shape[:-1], body.joint.nq)

    def velocity(self, name: str) -> np.ndarray:
        """The velocity of a tree joint over time, in rad/s or m/s, dependent ones too.

        By a name of `model.spanning_names` (T,) or (T, N); by that of a joint with several degrees
        of freedom with one more axis.
        """
        if name in self.model.v_names:
            return self.v[..., self.model.v_names.index(name)]
        return self._motion[0][..., self._columns(name)]

    def acceleration(self, name: str) -> np.ndarray:
        """The acceleration of a tree joint over time, in rad/s² or m/s², named as in `velocity`.

        It is that of the torque recorded at each time, the last one zero, with the passive forces
        and the law inside the kernel.
        """
        if self.kernel is None:
            raise InputError(
                "a trajectory from a file does not know the forces of its simulator: take "
                "accelerations from the trajectory that Simulator.run returned"
            )
        if self.contact is not None:
            raise InputError(
                "a run with contacts has impulses at every step, and no accelerations: take the "
                "differences of velocity(name)"
            )
        return self._motion[1][..., self._columns(name)]

    def _columns(self, name: str):
        """The place of a spanning velocity, or of a joint's, among `model.spanning_names`."""
        model = self.model
        if name in model.spanning_names:
            return model.spanning_names.index(name)
        for body in model.bodies:
            if body.joint.name == name:
                return model.spanning.v[body.index]
        raise InputError(unknown("velocity", name, [*model.v_names, *model.spanning_names]))

    @cached_property
    def _motion(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and accelerations of all tree joints, in the order of `spanning_names`."""
        kernel = self.kernel or Kernel(self.model, 1e-3, "rk4", None, None, 1, "float64")
        lead = self.q.shape[:-1]
        carried = self.carried
        if carried is None:
            carried = np.zeros((*lead, kernel.lifted))
        carried = np.concatenate([carried, np.zeros((*lead, kernel.record))], axis=-1)
        time = np.broadcast_to(self.time.reshape(-1, *[1] * len(lead)), (*lead, 1))
        given = {"q": self.q, "v": self.v, "tau": self.tau, "t": time, "carried": carried}
        flat = [given[n].reshape(-1, given[n].shape[-1]) for n in kernel.inputs]
        found = kernel.compile_motion()(*(np.ascontiguousarray(x) for x in flat))
        return tuple(np.asarray(x, dtype=float).reshape(*lead, -1) for x in found)

    def _each(self, fn) -> np.ndarray:
        return np.array([fn(q, v) for q, v in zip(*self._flat, strict=True)]).reshape(
            self.q.shape[:-1]
        )

    @property
    def _flat(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v with one state a row."""
        count = int(np.prod(self.q.shape[:-1]))
        return self.q.reshape(count, self.model.nq), self.v.reshape(count, self.model.nv)

    @cached_property
    def kinetic(self) -> np.ndarray:
        """Kinetic energy in J."""
        return self._energies[..., 0]

    @cached_property
    def potential(self) -> np.ndarray:
        """Potential energy in J, zero with the centre of mass at the world's origin."""
        return self._energies[..., 1]

    @cached_property
    def _energies(self) -> np.ndarray:
        from ..compiled.problem import compile

        energy = compile(algorithms.energy, self.model)
        q, v = self._flat
        pair = np.stack([np.asarray(x) for x in energy(q, v)], axis=-1)
        return pair.reshape(*self.q.shape[:-1], 2)

    @property
    def energy(self) -> np.ndarray:
        """Total energy in J."""
        return self.kinetic + self.potential

    @cached_property
    def loop_gap(self) -> np.ndarray:
        """The largest residual of any loop, in m or rad."""
        return self._each(lambda q, v: self.model.loop_gap(q))

    def save(self, path: Any) -> Path:
        """Write an npz file; `load` reads it back for the same model."""
        path = Path(path)
        path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
        arrays = {name: getattr(self, name) for name in ARRAYS}
        if self.carried is not None:
            arrays["carried"] = self.carried
        np.savez_compressed(path, **arrays, about=_about(self.model))
        return path

    @staticmethod
    def load(path: Any, model: Model) -> Trajectory:
        """A trajectory from a file, for the model that it was made with."""
        return load(path, model)

    def to_frame(self) -> Any:
        """A pandas DataFrame of one robot's trajectory: a column a coordinate."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        if self.batched:
            raise InputError("a batch has no single table: take one robot with .robot(i)")
        columns = {"time": self.time}
        columns |= {f"q {n}": self.q[:, i] for i, n in enumerate(self.model.q_names)}
        columns |= {f"v {n}": self.v[:, i] for i, n in enumerate(self.model.v_names)}
        columns |= {f"tau {n}": self.tau[:, i] for i, n in enumerate(self.model.v_names)}
        return pandas.DataFrame(columns)

    def robot(self, i: int) -> Trajectory:
        """The trajectory of one robot of a batch."""
        if not self.batched:
            raise InputError("this trajectory holds one robot")
        if not 0 <= i < self.q.shape[1]:
            raise InputError(f"robot {i}: this trajectory has robots 0 to {self.q.shape[1] - 1}")
        carried = None if self.carried is None else self.carried[:, i]
        contact = None if self.contact is None else self.contact.robot(i)
        parts = self.q[:, i], self.v[:, i], self.tau[:, i], carried
        return Trajectory(self.model, self.time, *parts, self.kernel, contact)

    def plot(self, path: Any = None) -> Any:
        """Velocities, energy and loop gap over time, saved to `path` if given."""
        from .plotting import plot

        return plot(self, path)


def _about(model: Model) -> str:
    """What a file says of its model: enough to refuse another one."""
    names = {"q": model.q_names, "v": model.v_names}
    return json.dumps(
        {"format": FORMAT, "model": model.name, "digest": data_digest(model), **names}
    )


def load(path: Any, model: Model) -> Trajectory:
    """A trajectory from a file, for the model that it was made with."""
    try:
        with np.load(path, allow_pickle=False) as file:
            data = {name: file[name] for name in ARRAYS}
            data["carried"] = file.get("carried")
            about = json.loads(str(file["about"]))
        stored = about["format"], about["q"], about["v"], about["digest"], about["model"]
    except FileNotFoundError:
        raise
    except Exception as error:
        raise InputError(f"'{path}' is not a trajectory file: {error}") from error
    number, q_names, v_names, digest, name = stored
    if number != FORMAT:
        raise InputError(f"'{path}' has format {number}, this version reads {FORMAT}")
    if q_names != list(model.q_names) or v_names != list(model.v_names):
        raise InputError(
            f"'{path}' belongs to model '{name}', whose coordinates are not those of '{model.name}'"
        )
    if digest != data_digest(model):
        raise InputError(
            f"'{path}' was made with other numbers (masses, lengths, ...) of '{name}': "
            "load it with that model"
        )
    _check_arrays(path, model, data)
    return Trajectory(model, **data)


def _check_arrays(path, model: Model, data: dict[Any, Any]) -> None:
    """Refuse arrays that are not those of one run."""
    steps, q = data["time"].shape, data["q"].shape
    lead = q[:-1]
    if len(steps) != 1 or len(q) not in (2, 3):
        raise InputError(f"'{path}' holds time {steps} and q {q}: no trajectory")
    expected = {"q": (*steps, *lead[1:], model.nq), "v": (*lead, model.nv),
                "tau": (*lead, model.nv)}  # fmt: skip
    implicit = [c for c in model.clusters if c.embedding.implicit]
    if data["carried"] is not None:
        expected["carried"] = (*lead, sum(c.embedding.nv_span for c in implicit))
    for name, shape in expected.items():
        if data[name].shape != shape:
            raise InputError(
                f"'{path}' holds {name} of shape {data[name].shape}, expected {shape} for "
                f"'{model.name}'"
            )
    for name in ("time", *expected):
        if data[name].dtype.kind not in "fiu" or not np.isfinite(data[name]).all():
            raise InputError(f"'{path}' holds {name} with entries that are not finite numbers")
        data[name] = data[name].astype(float)
    if np.any(np.diff(data["time"]) <= 0):
        raise InputError(f"'{path}' holds times that do not grow")
