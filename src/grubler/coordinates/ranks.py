"""How many rows of the loops are independent, whatever the round-off of a description is.

Numbers in a file have a few digits, so rows that repeat each other in the mechanism (a planar loop
in space) differ by round-off in the model. Singular values of K then fall in two classes, with a
gap between them that is wider than any other. Rows and columns are scaled first, so that metres
compare with radians, and each singular value is the largest met over assembled neighbours, so that
a singular posture does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..mechanism.loops import Loop
from ..mechanism.parts import Body
from ..tolerances import RANK_ALIKE, RANK_CERTAIN, RANK_NOISE
from .embedding import stack_rows


@dataclass(frozen=True)
class Rank:
    """The rank, and the next best reading of it where singular values lie between constraints and
    round-off. `sizes` are the scaled singular values, the largest one."""

    rank: int
    other: int | None
    sizes: np.ndarray

    def cut(self, rank: int) -> float:
        """A size between the smallest of `rank` constraints and the largest round-off."""
        ends = np.maximum(np.append(self.sizes, 0.0), RANK_NOISE)
        return float(np.sqrt(ends[rank - 1] * ends[rank])) if rank else np.inf


def read_rank(
    bodies: Sequence[Body], loops: Sequence[Loop], samples: Sequence[Mapping[Any, Any]]
) -> Rank:
    """The rank of the loops' rows over assembled positions: where the widest gap is."""
    sizes = np.max([scaled_sizes(bodies, loops, positions) for positions in samples], axis=0)
    if not sizes.size or sizes[0] <= 0:
        return Rank(0, None, sizes)
    sizes = sizes / sizes[0]
    certain, possible = int(np.sum(sizes > RANK_CERTAIN)), int(np.sum(sizes > RANK_NOISE))
    ends = np.maximum(np.append(sizes, 0.0), RANK_ALIKE)
    gaps = {r: ends[r - 1] / ends[r] for r in range(certain, possible + 1)}
    best, *others = sorted(gaps, key=gaps.get, reverse=True)
    return Rank(best, others[0] if others else None, sizes)


def scaled_sizes(
    bodies: Sequence[Body], loops: Sequence[Loop], positions: Mapping[Any, Any]
) -> np.ndarray:
    """Singular values of K with lengths measured by the longest lever, couplings by their largest
    ratio."""
    K, _ = stack_rows(bodies, loops, positions, None)
    lengths = np.array([x for loop in loops for x in loop.lengths])
    slides = np.concatenate(
        [np.abs(b.joint.motion.subspace(positions[b.index])[:3]).max(axis=0) == 0 for b in bodies]
    )
    lever = np.abs(K[np.ix_(lengths, ~slides)]).max(initial=0.0) or 1.0
    K = K * np.where(slides, lever, 1.0) / np.where(lengths, lever, 1.0)[:, None]
    largest = np.abs(K).max(axis=1, initial=0.0)
    free = np.concatenate([np.full(loop.rows, not loop.geometric) for loop in loops])
    return np.linalg.svd(
        K / np.where(free & (largest > 0), largest, 1.0)[:, None], compute_uv=False
    )
