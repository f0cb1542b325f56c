"""Fixtures: every robot of the zoo, built once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import grubler as gb
from quick import is_quick

load = lru_cache(maxsize=None)(gb.robots.load)

ROBOTS = gb.robots.names()


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if is_quick(item, ROBOTS):
            item.add_marker("quick")


@pytest.fixture(params=ROBOTS)
def model(request) -> gb.Model:
    return load(request.param)


def states(model: gb.Model, count: int = 20):
    """Random assembled states with a random force: (q, v, tau)."""
    for seed in range(count):
        q, v = model.random_state(seed)
        yield q, v, np.random.default_rng(1000 + seed).uniform(-5, 5, model.nv)


def relative(x, y) -> float:
    """The largest difference, relative to the largest entry of y."""
    x, y = np.asarray(x), np.asarray(y)
    return float(np.abs(x - y).max(initial=0.0) / max(np.abs(y).max(initial=0.0), 1e-300))
