"""Mobility by counting and by rank, and why the two differ.

Grübler's count is the freedoms of the tree less the rows of the loops; the rank of K at assembled
configurations says how many of those rows take a freedom away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..coordinates.ranks import read_rank
from ..mechanism.loops import Loop, LoopJoint
from ..mechanism.loops.modules import plane_normal
from ..model import Model

if TYPE_CHECKING:
    pass

PLANAR_ROWS = {"fixed": 3}  # in the plane; any other kind takes two freedoms away at most


@dataclass(frozen=True)
class LoopRows:
    """The rows of one loop: `own` of them independent of each other, `added` also of the loops
    before it in its cluster."""

    name: str
    kind: str
    cluster: int
    rows: int
    own: int
    added: int
    planar: bool

    @property
    def redundant(self) -> int:
        return self.rows - self.added

    def why(self) -> str | None:
        """Why rows of this loop are redundant, in words."""
        if not self.redundant:
            return None
        reasons = []
        alone = self.rows - self.own
        if alone and self.planar:
            reasons.append(f"it moves in a plane, so {alone} of its {self.rows} rows always hold")
        elif alone:
            reasons.append(f"{alone} of its {self.rows} rows always hold for this geometry")
        if self.own > self.added:
            reasons.append(f"{self.own - self.added} repeat what the loops before it impose")
        return f"loop '{self.name}': {'; '.join(reasons)}"


@dataclass(frozen=True)
class Mobility:
    """`spatial` and `planar` are Grübler's counts (planar: loops in a plane counted there, None
    where there is none), `rank` the true mobility."""

    tree_freedoms: int
    rows: int
    spatial: int
    planar: int | None
    rank: int
    reasons: list[str] = field(default_factory=list)


def loop_rows(model: Model, samples: Sequence[dict[Any, Any]]) -> list[LoopRows]:
    """Every loop's rows and ranks, the largest ranks met over assembled positions."""
    out = []
    for cluster in model.clusters:
        if not cluster.loops:
            continue
        bodies, before = cluster.embedding.bodies, 0
        total = cluster.embedding.nv_span - cluster.nv
        cut = read_rank(bodies, cluster.loops, samples).cut(total)

        def count(loops, bodies=bodies, cut=cut):
            return int(np.sum(read_rank(bodies, loops, samples).sizes > cut))

        for n, loop in enumerate(cluster.loops):
            own = count([loop])
            last = n + 1 == len(cluster.loops)
            through = total if last else max(before, count(cluster.loops[: n + 1]))
            out.append(
                LoopRows(
                    loop.name, loop_kind(loop), cluster.index, loop.rows, own, through - before,
                    is_planar(loop, model.reference),
                )
            )  # fmt: skip
            before = through
    return out


def loop_kind(loop: Loop) -> str:
    return loop.kind if isinstance(loop, LoopJoint) else type(loop).__name__


def is_planar(loop: Loop, reference: Any) -> bool:
    return isinstance(loop, LoopJoint) and plane_normal(loop, reference) is not None


def mobility(model: Model, loops: Sequence[LoopRows]) -> Mobility:
    """Counts and rank of the whole model, with the reasons for their difference."""
    rows = sum(loop.rows for loop in loops)
    planar = None
    if any(loop.planar for loop in loops):
        taken = sum(min(x.rows, PLANAR_ROWS.get(x.kind, 2)) if x.planar else x.rows for x in loops)
        planar = model.nv_span - taken
    reasons = [why for why in (loop.why() for loop in loops) if why]
    return Mobility(model.nv_span, rows, model.nv_span - rows, planar, model.nv, reasons)


def closure_gap(model: Model, positions: dict[Any, Any]) -> float:
    """The largest residual of all loops, in m or rad."""
    return max((loop.opening(positions) for loop in model.loops), default=0.0)
