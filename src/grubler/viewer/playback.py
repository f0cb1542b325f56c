"""Playing a trajectory: which recorded state to show at which moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from ..typing import Array


class Playback:
    """A clock over recorded times: play, pause, seek, speed. At the end it starts again."""

    def __init__(self, time: np.ndarray):
        self.time: Array = np.asarray(time, dtype=float)
        if self.time.ndim != 1 or not len(self.time):
            raise InputError("the trajectory holds no state: there is nothing to play")
        self.playing = False
        self._speed = 1.0
        self.now = float(self.time[0])

    @property
    def start(self) -> float:
        return float(self.time[0])

    @property
    def end(self) -> float:
        return float(self.time[-1])

    @property
    def index(self) -> int:
        """The last recorded state that is not later than now."""
        return int(
            np.clip(np.searchsorted(self.time, self.now, "right") - 1, 0, len(self.time) - 1)
        )

    @property
    def speed(self) -> float:
        """Seconds of the trajectory a second."""
        return self._speed

    @speed.setter
    def speed(self, value: float) -> None:
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"speed is {value}: give a number greater than zero")
        self._speed = float(value)

    def play(self) -> None:
        if self.now >= self.end:
            self.now = self.start
        self.playing = self.end > self.start

    def pause(self) -> None:
        self.playing: bool = False

    def seek(self, time: float) -> None:
        """Go to a time, within those recorded."""
        self.now = float(np.clip(time, self.start, self.end))

    def tick(self, elapsed: float) -> bool:
        """Let `elapsed` seconds of wall clock pass; whether another state is to be shown."""
        if not self.playing:
            return False
        before = self.index
        later = self.now + elapsed * self.speed
        span = self.end - self.start
        self.now: float = later if later <= self.end else self.start + (later - self.start) % span
        return self.index != before
