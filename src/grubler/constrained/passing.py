"""Rows that a joint lets pass: what PV-early does at nearly singular postures.

A joint that hardly moves the row it should take is eliminated by its own inertia instead, and the
row is carried on to the world, as in PV: one number L there tells what moves it, all joints behind
together. Of the rows of a limb `ROOM` may pass, whichever they are: each has a block of its own,
empty where no joint lets a row pass.
"""

from __future__ import annotations

import numpy as np

from ..compiler import precision
from .closing import Closing

ROOM = 2  # rows of a limb that may pass: an arm stretched out needs two


class Passing:
    """`full`: by block of `carried` that waits for a row, 1 where it has one, 0 where not. `limits`
    are the most that rows may feel of joints, in the order in which these take them; from a `part`
    of it on they pass."""

    def __init__(self, carried: Closing, limits: list, part: float):
        self.carried, self.limits, self.part = carried, limits, part
        self.full: dict[int, object] = {}
        self._limit: dict[int, object] = {}

    @property
    def least(self) -> float:
        """|K S| below which it has no direction."""
        return precision() ** 2

    def offer(self, k: int, place: int, mass, K, l) -> list:
        """By block whether the row passes there: where it is too heavy, in the first block of its
        limb that is empty. `place` is that of its limit."""
        limit = self.limits[place]
        heavy = np.logical_not(mass < self.part * limit)
        blocks = [b for b in self.carried.at(k) if b in self.full][:ROOM]
        if len(blocks) < ROOM:
            b = self.carried.take_block(k, np.zeros((len(K), 1)), np.zeros(1))
            self.full[b], self._limit[b] = 0.0, 0.0
            blocks.append(b)
        taken = []
        for b in blocks:
            here = np.logical_and(heavy, self.full[b] == 0.0)
            heavy = np.logical_and(heavy, np.logical_not(here))
            self.carried.add_row(k, b, np.where(here, K, 0.0), np.where(here, l, 0.0))
            self.full[b] = self.full[b] + np.where(here, 1.0, 0.0)
            self._limit[b] = self._limit[b] + np.where(here, limit, 0.0)
            taken.append((here, b))
        return taken

    def close(self) -> list:
        """Conditions under which the rows that have passed are told apart by inertia: what they
        feel is not too heavy either."""
        masses = self.carried.close_at_world(self.full)
        return [np.logical_or(self.full[b] == 0.0, masses[b] < self._limit[b]) for b in self.full]
