"""A trajectory: times, states, torques, energies and loop gaps, by joint name; on disk as npz."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from .. import algorithms
from ..errors import InputError, unknown
from ..fingerprint import fingerprint
from ..model import Model

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a simulation leaves behind.

    `time` (T,), `q` (T, nq) or (T, N, nq) for a batch of N, `v` and `tau` alike; `tau` is the force
    applied from each time on. Energies and gaps are computed when first asked for.
    """

    model: Model
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray

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
        """An independent velocity over time, by its name in `model.v_names`."""
        if name not in self.model.v_names:
            raise InputError(unknown("velocity", name, self.model.v_names))
        return self.v[..., self.model.v_names.index(name)]

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
        from ..compiled import compile

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

    def save(self, path) -> Path:
        """Write an npz file; `load` reads it back for the same model."""
        path = Path(path)
        path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
        np.savez_compressed(
            path, time=self.time, q=self.q, v=self.v, tau=self.tau, about=_about(self.model)
        )
        return path

    @staticmethod
    def load(path, model: Model) -> Trajectory:
        """A trajectory from a file, for the model that it was made with."""
        return load(path, model)

    def to_frame(self):
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
        return Trajectory(self.model, self.time, self.q[:, i], self.v[:, i], self.tau[:, i])

    def plot(self, path=None):
        """Velocities, energy and loop gap over time, saved to `path` if given."""
        from .plotting import plot

        return plot(self, path)


def _about(model: Model) -> str:
    """What a file says of its model: enough to refuse another one."""
    names = {"q": model.q_names, "v": model.v_names}
    return json.dumps(
        {"format": FORMAT, "model": model.name, "digest": fingerprint(model), **names}
    )


def load(path, model: Model) -> Trajectory:
    """A trajectory from a file, for the model that it was made with."""
    try:
        with np.load(path, allow_pickle=False) as file:
            data = {name: file[name] for name in ("time", "q", "v", "tau", "about")}
        about = json.loads(str(data.pop("about")))
    except FileNotFoundError:
        raise
    except Exception as error:
        raise InputError(f"'{path}' is not a trajectory file: {error}") from error
    if about.get("format") != FORMAT:
        raise InputError(f"'{path}' has format {about.get('format')}, this version reads {FORMAT}")
    expected = json.loads(_about(model))
    if about["q"] != expected["q"] or about["v"] != expected["v"]:
        raise InputError(
            f"'{path}' belongs to model '{about['model']}', whose coordinates are not those of "
            f"'{model.name}'"
        )
    if about["digest"] != expected["digest"]:
        raise InputError(
            f"'{path}' was made with other numbers (masses, lengths, ...) of '{about['model']}': "
            "load it with that model"
        )
    return Trajectory(model, **data)
