"""A posture: independent joints set one by one, the dependent ones following by closure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..coordinates import assembly
from ..coordinates.limits import further_out
from ..errors import ClosureError, InputError, unknown
from ..model import Model, as_vector
from ..model.clusters import Cluster

if TYPE_CHECKING:
    from ..typing import Array

PIECE = 0.15  # rad or m: the longest move that is closed at once, to stay on the branch
SHORTEST = 5e-4  # a move this short that does not close is out of reach
STEEP = 30.0  # dependent joints that would move this much faster: no use as a prediction
LEAP = 0.5  # a dependent joint that moves this much more than it should has changed branch


@dataclass(frozen=True, eq=False)
class Slider:
    """One independent coordinate, by its name in `model.v_names`.

    Where the coordinate is a position (`absolute`), its value is that position. Where it is a
    component of a rotation or of a free body, the value is how far it was moved along it. `lower`
    and `upper` in rad or m.
    """

    name: str
    cluster: int
    body: int
    column: int  # in the cluster's spanning velocities
    place: int  # in the joint's own velocities
    absolute: bool
    free: bool
    unit: str
    lower: float
    upper: float


@dataclass(frozen=True)
class Reach:
    """How far a slider came: `value` is where its joint stands, `message` why it stopped there."""

    reached: bool
    value: float
    message: str = ""


def sliders(model: Model, length: float = 1.0) -> list[Slider]:
    """A slider for each independent coordinate, in the order of `model.v_names`.

    Ranges are the joint's limits where it has any, otherwise half a turn or `length` metres each
    way; they always contain the reference.
    """
    found = []
    for cluster in model.clusters:
        joint = cluster.embedding
        by_column = {
            c: (body, k)
            for body in joint.bodies
            for k, c in enumerate(range(joint.nv_span)[joint.columns[body.index]])
        }
        for column in joint.independent:
            body, place = by_column[column]
            found.append(_slider(model, cluster, body, column, place, length))
    return found


def _slider(model, cluster: Cluster, body, column: int, place: int, length: float) -> Slider:
    joint = body.joint
    label = joint.motion.labels[place]
    metres = joint.kind == "prismatic" or label in ("x", "y", "distance", "vx", "vy", "vz")
    reach = length if metres else np.pi
    absolute = joint.nq == joint.nv
    lower, upper = joint.limits
    if not np.isfinite([lower, upper]).any():
        lower, upper = -reach, reach
    lower = lower if np.isfinite(lower) else upper - 2 * reach
    upper = upper if np.isfinite(upper) else lower + 2 * reach
    start = float(model.reference[body.index][place]) if absolute else 0.0
    return Slider(
        joint.names(joint.motion.labels)[place], cluster.index, body.index, column, place,
        absolute, joint.kind == "free", "m" if metres else "rad",
        min(lower, start), max(upper, start),
    )  # fmt: skip


class Posture:
    """A closed configuration that sliders move.

    Only the cluster of the slider that moves is closed again: a few damped Newton steps, in pieces
    short enough to stay on the branch. Where a loop cannot follow, or a joint that follows comes to
    its limit, the posture stays at the last configuration before that.
    """

    def __init__(self, model: Model, q: Array | None = None, length: float = 1.0):
        self.model = model
        self.sliders: dict[str, Slider] = {slider.name: slider for slider in sliders(model, length)}
        self._moved: dict[str, float] = {}
        self._blocked: tuple[str, bool, Reach] | None = None  # slider, upwards, how it stopped
        self.positions: dict[int, np.ndarray] = {}
        self.reset(q)

    def reset(self, q: Array | None = None) -> None:
        """Back to the neutral configuration, or to a given one, which must be closed."""
        q = self.model.neutral() if q is None else q
        q = as_vector("q", q, self.model.nq, self.model.q_names)
        positions = self.model.unpack(q)
        for cluster in self.model.clusters:
            assembly.check_closed(cluster.loops, positions)
        self.positions = positions
        self._moved = dict.fromkeys(self.sliders, 0.0)
        self._blocked = None

    @property
    def q(self) -> np.ndarray:
        return self.model.pack(self.positions)

    @property
    def gap(self) -> float:
        """The largest residual of any loop, in m or rad."""
        return self.model.loop_gap(self.q)

    def value(self, name: str) -> float:
        """Where a slider stands."""
        slider = self._slider(name)
        if slider.absolute:
            return float(self.positions[slider.body][slider.place])
        return self._moved[name]

    def values(self) -> dict[str, float]:
        return {name: self.value(name) for name in self.sliders}

    def dependent(self) -> dict[str, np.ndarray]:
        """Positions of the tree joints that no slider moves, or not all of, by joint name."""
        moved: dict[int, int] = {}
        for slider in self.sliders.values():
            moved[slider.body] = moved.get(slider.body, 0) + 1
        return {
            body.joint.name: self.positions[body.index]
            for body in self.model.bodies
            if moved.get(body.index, 0) < body.joint.nv
        }

    def move(self, name: str, value: float) -> Reach:
        """Bring a slider to a value, as far as the loops follow."""
        slider = self._slider(name)
        if not np.isfinite(value):
            raise InputError(f"slider '{name}': {value} is not a finite number")
        cluster = self.model.clusters[slider.cluster]
        upwards = value > self.value(name)
        if self._blocked is not None and self._blocked[:2] == (name, upwards):
            return self._blocked[2]  # a drag beyond the end asks again and again
        piece = PIECE if cluster.loops else np.inf
        while abs(left := value - self.value(name)) > 1e-12:
            step = float(np.clip(left, -piece, piece))
            try:
                moved = _advance(cluster, self.positions, slider.column, step)
            except ClosureError as error:
                piece = abs(step) / 2
                if piece < SHORTEST:
                    stop = Reach(False, self.value(name), _stopped(self, slider, str(error)))
                    self._blocked = name, upwards, stop
                    return stop
                continue
            self._blocked = None
            self.positions |= moved
            self._moved[name] += step
            if abs(step) >= abs(left):
                break
        return Reach(True, self.value(name))

    def move_all(self, values: Mapping[str, float]) -> Reach:
        """Bring several sliders to their values, in the order given; the first that stops tells."""
        worst = Reach(True, 0.0)
        for name, value in values.items():
            reach = self.move(name, value)
            worst = reach if worst.reached else worst
        return worst

    def _slider(self, name: str) -> Slider:
        if name not in self.sliders:
            raise InputError(unknown("independent joint", name, self.sliders))
        return self.sliders[name]


def _advance(
    cluster: Cluster, positions: Mapping[Any, Any], column: int, step: float
) -> dict[Any, Any]:
    """Positions of a cluster's joints after a step of one independent coordinate, loops closed."""
    joint = cluster.embedding
    local = {body.index: positions[body.index] for body in joint.bodies}
    moved = joint.spanning.integrate(local, step * _direction(joint, local, column))
    if not joint.implicit:
        with np.errstate(invalid="ignore"):
            moved = joint.positions(np.concatenate([moved[b.index] for b in joint.coordinates]))
        assembly.check_closed(cluster.loops, moved)
        _check_limits(joint, column, local, moved)
        return moved
    moved = assembly.close(
        joint.bodies, cluster.loops, moved, joint.independent, restarts=0, limits=False
    )
    leap = max(
        np.abs(body.joint.motion.difference(local[body.index], moved[body.index])).max()
        for body in joint.bodies
    )
    if leap > LEAP + 10 * abs(step):
        names = ", ".join(f"'{loop.name}'" for loop in cluster.loops)
        raise ClosureError(f"loop {names} would leap to another branch")
    _check_limits(joint, column, local, moved)
    return moved


def _check_limits(joint, column: int, before: Mapping[Any, Any], after: Mapping[Any, Any]) -> None:
    """Refuse to take joints that follow beyond their limits; sliders have ends of their own."""
    bodies = [body for body in joint.bodies if joint.columns[body.index].start != column]
    for body in further_out(bodies, before, after):
        low, high = body.joint.limits
        side, limit = ("upper", high) if after[body.index][0] > high else ("lower", low)
        raise ClosureError(f"joint '{body.joint.name}' is at its {side} limit {limit:.4g}")


def _direction(joint, local: Mapping[Any, Any], column: int) -> np.ndarray:
    """How the cluster's joints move with one of them: along the tangent, which leads straight on
    through a dead point where branches cross, unless the tangent itself is lost there."""
    alone = np.zeros(joint.nv_span)
    alone[column] = 1.0
    if not joint.implicit:
        return alone
    with np.errstate(all="ignore"):
        G = joint.velocity_map(local, None)[0][:, joint.independent.index(column)]
    return G if np.isfinite(G).all() and np.abs(G).max() < STEEP else alone


def _stopped(posture: Posture, slider: Slider, why: str) -> str:
    """The loop's own words, without the advice meant for callers of assemble."""
    reason = why.split(";")[0]
    return f"{slider.name} stops at {posture.value(slider.name):.4g} {slider.unit}: {reason}"
