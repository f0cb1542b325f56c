"""What `check` found, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .conditioning import Partition
from .drives import Drives
from .idle import Idle
from .mobility import LoopRows, Mobility
from .ranges import BeyondLimits
from .touching import Touching


@dataclass(frozen=True)
class Closure:
    """The largest residual of all loops in m or rad: as given (None without loops), and after
    assembly, in how many of the random samples."""

    given: float | None
    worst_loop: str | None
    assembled: float
    samples: int


@dataclass(frozen=True)
class Report:
    """A mechanism at a glance. `ok` is False where the model cannot be used, and `errors` say why;
    `warnings` name what a designer should look at, `notes` what building the model decided.
    `table()` is for people, `to_json()` for programs."""

    name: str
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    bodies: int = 0
    mass: float = 0.0
    joints: dict[str, int] = field(default_factory=dict)
    passive: dict[str, int] = field(default_factory=dict)
    clusters: tuple[tuple[str, ...], ...] = ()
    mobility: Mobility | None = None
    loops: tuple[LoopRows, ...] = ()
    idle: tuple[Idle, ...] = ()
    closure: Closure | None = None
    partitions: tuple[Partition, ...] = ()
    drives: Drives | None = None
    beyond_limits: tuple[BeyondLimits, ...] = ()
    touching: Touching | None = None

    @property
    def ok(self) -> bool:
        return not self.errors

    def to_dict(self) -> dict[Any, Any]:
        """Plain numbers, strings, lists and dictionaries; None where a number is not finite."""
        out = {"ok": self.ok, **asdict(self)}
        for loop, rows in zip(out["loops"], self.loops, strict=True):
            loop["redundant"] = rows.redundant
        return _plain(out)

    def to_json(self, indent: int | None = 2) -> str:
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def table(self) -> str:
        """A page of text."""
        lines = [f"{self.name}: {'usable' if self.ok else 'CANNOT BE USED'}"]
        lines += [f"  error: {text}" for text in self.errors]
        lines += [f"  warning: {text}" for text in self.warnings]
        lines += [f"  note: {text}" for text in self.notes if text not in self.warnings]
        for section in (
            self._parts, self._mobility, self._loops, self._closure, self._partitions, self._drives,
            self._touching,
        ):  # fmt: skip
            part = section()
            if part:
                lines += ["", *part]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    def _parts(self) -> list[str]:
        if not self.bodies:
            return []
        kinds = ", ".join(f"{n} {kind}" for kind, n in self.joints.items())
        lines = [f"{self.bodies} bodies, {self.mass:.4g} kg; joints: {kinds}"]
        if self.passive:
            what = ", ".join(f"{kind} at {n}" for kind, n in self.passive.items())
            lines.append(f"passive forces of the joints: {what}; gb.Passive.of(model) adds them")
        if self.clusters:
            large = [c for c in self.clusters if len(c) > 1]
            line = f"{len(self.clusters)} clusters"
            lines.append(line + (f", {len(large)} of several bodies:" if large else ""))
            lines += [f"  {_shorten(', '.join(c), 92)}" for c in large]
        return lines

    def _mobility(self) -> list[str]:
        m = self.mobility
        if m is None:
            return []
        lines = [f"mobility {m.rank} (rank after assembly)"]
        lines.append(f"  Grübler, in space   {m.tree_freedoms} - {m.rows} = {m.spatial}")
        if m.planar is not None:
            lines.append(
                f"  Grübler, planar loops counted in the plane   "
                f"{m.tree_freedoms} - {m.tree_freedoms - m.planar} = {m.planar}"
            )
        lines += [f"  {reason}" for reason in m.reasons]
        for idle in self.idle:
            lines.append(f"  idle: {' + '.join(idle.bodies)} {idle.motion} alone ('{idle.loop}')")
        return lines

    def _loops(self) -> list[str]:
        rows = [
            (loop.name, loop.kind, str(loop.rows), str(loop.added), str(loop.redundant),
             "yes" if loop.planar else "")
            for loop in self.loops
        ]  # fmt: skip
        return _columns(("loop", "kind", "rows", "rank", "redundant", "planar"), rows)

    def _closure(self) -> list[str]:
        c = self.closure
        if c is None or c.given is None:
            return []
        where = f" ('{c.worst_loop}')" if c.worst_loop else ""
        return [
            f"closure: {c.given:.3g} as given{where}, {c.assembled:.1e} after assembly, "
            f"m or rad, over {c.samples} configurations"
        ]

    def _partitions(self) -> list[str]:
        rows = [
            (_shorten(", ".join(p.loops), 24), p.closing, _shorten(", ".join(p.independent), 30),
             f"{p.condition:.3g}", f"{p.typical:.3g}", f"{p.worst:.3g}", f"{p.distance:.2g}")
            for p in self.partitions
        ]  # fmt: skip
        head = ("cluster of", "closed by", "independent", "cond", "typical", "worst", "distance")
        return _columns(head, rows)

    def _drives(self) -> list[str]:
        d = self.drives
        if d is None:
            return []
        words = {
            "none": "no actuators", "fully": "fully actuated", "under": "under-actuated",
            "over": "over-actuated", "both": "under- and over-actuated",
        }  # fmt: skip
        lines = [f"{words[d.status]}: {d.count} actuators ({d.independent} independent) for "
                 f"mobility {d.mobility}"]  # fmt: skip
        if d.missing:
            lines.append(f"  moved by none: {_shorten(', '.join(d.missing), 80)}")
        if d.count and (others := [n for n in d.unactuated if n not in d.missing]):
            lines.append(f"  free bodies and idle links: {_shorten(', '.join(others), 80)}")
        rows = [
            (x.name, x.joint + (" (dependent)" if x.dependent else ""), f"{x.exact:.4g}",
             f"{x.least:.4g} .. {x.most:.4g}", "-" if x.armature is None else f"{x.armature:.4g}",
             "-" if x.armature_error is None else f"{100 * x.armature_error:.3g} %")
            for x in d.actuators
        ]  # fmt: skip
        head = ("actuator", "joint", "inertia", "over the workspace", "armature", "worst error")
        return lines + _columns(head, rows)

    def _touching(self) -> list[str]:
        t = self.touching
        if t is None:
            return []
        lines = [f"{len(t.pairs)} pairs of shapes may touch, at {t.points} candidate points"]
        rows = [
            (_shorten(p.first, 34), _shorten(p.second, 34), str(p.points), f"{p.friction:.3g}",
             f"{p.restitution:.3g}")
            for p in t.pairs
        ]  # fmt: skip
        lines += _columns(("shape", "and", "points", "friction", "restitution"), rows)
        return lines + [f"  {note}" for note in t.notes]


def _columns(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _plain(x):
    if isinstance(x, dict):
        return {key: _plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(value) for value in x]
    if isinstance(x, (float, np.floating)):
        return float(x) if np.isfinite(x) else None
    return x.item() if isinstance(x, np.generic) else x
