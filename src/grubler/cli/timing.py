"""Timing of small calls on a machine that others use, too: rounds interleaved, the best kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any


def interleaved(
    calls: dict[Hashable, Callable[..., Any]],
    rounds: int = 60,
    seconds: float = 0.0025,
    tick: Any = bool,
) -> dict[Hashable, float]:
    """Seconds a call of each, the best of many short rounds that take turns: a slow spell of the
    machine falls on all of them. `tick(1)` is called after each round."""
    repeats, best = {}, {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        once = max(time.perf_counter() - start, 1e-8)
        repeats[name] = max(1, min(100_000, int(seconds / once)))
        best[name] = float("inf")
    for _ in range(rounds):
        for name, call in calls.items():
            count = range(repeats[name])
            start = time.perf_counter()
            for _ in count:
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats[name])
        tick(1)
    return best
