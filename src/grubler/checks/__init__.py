"""Checking a mechanism: what its designer wants to know at a glance.

report = check(model)
print(report.table())
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..algorithms.c_crba import c_crba
from ..arguments import public
from ..collision import Contacts
from ..errors import GrublerError, InputError
from ..model import Model, as_position
from ..model.builder import ModelBuilder
from ..tolerances import OPEN_LOOP, SINGULAR_MASS
from .conditioning import Partition, partitions
from .drives import Drive, Drives, drives
from .idle import Idle, idle_freedoms
from .mobility import LoopRows, Mobility, loop_rows, mobility
from .ranges import BeyondLimits, beyond_limits
from .report import Closure, Report
from .touching import ContactRow, Touching, touching

LISTED = 6  # names in a warning


@public
def check(
    source: Model | ModelBuilder | Callable[[], Model], *, samples: int = 20, seed: int = 0,
    given: Mapping[str, float] | None = None, contacts: Contacts | bool | None = None,
) -> Report:  # fmt: skip
    """A report on a model, over `samples` random assembled configurations.

    `source` is a model, a builder, or a function that makes a model, such as a reader of a file:
    one that raises gives a report whose `ok` is False. `given` are joint positions by name, over
    zero, as drawn in the description: their closure error is reported. `contacts` is a plan whose
    pairs of shapes are listed, or True for all that the shapes of the model allow.
    """
    name = getattr(source, "name", getattr(source, "__name__", "model"))
    if isinstance(source, Model):
        return _report(source, samples, seed, given, contacts)
    if not isinstance(source, ModelBuilder) and not callable(source):
        raise InputError(
            f"check needs a Model, a ModelBuilder or a function that makes a model, not "
            f"{type(source).__name__}"
        )
    if not isinstance(source, ModelBuilder) and not _takes_nothing(source):
        raise InputError(
            f"check needs a function without arguments, which makes a model: {name} takes some"
        )
    try:
        model = source.build(reference=given) if isinstance(source, ModelBuilder) else source()
    except (GrublerError, OSError) as error:
        return Report(str(name), errors=(str(error),))
    if not isinstance(model, Model):
        raise InputError(
            f"check needs a function that makes a Model: this one returned {type(model).__name__}"
        )
    return _report(model, samples, seed, given, contacts)


def _takes_nothing(fn: Callable[..., Any]) -> bool:
    """Whether a function can be called without arguments, as far as it tells."""
    try:
        inspect.signature(fn).bind()
    except TypeError:
        return False
    except ValueError:  # a function that does not tell
        pass
    return True


def _report(model: Model, samples: int, seed: int, given, contacts) -> Report:
    configurations = [model.neutral(), *model.random_states(samples, seed)[0]]
    positions = [model.unpack(q) for q in configurations]
    loops = loop_rows(model, positions[: 1 + min(samples, 4)])
    closure = _closure(model, given, configurations)
    parts = tuple(partitions(model, positions))
    errors = _errors(model, configurations, closure)
    found = idle_freedoms(model, positions[1] if samples else positions[0])
    driven = drives(model, configurations, found) if not errors else None
    idle = tuple(freedom for freedom, *_ in found)
    touch, unplanned = touching(model, contacts)
    beyond = tuple(beyond_limits(model, positions[0]))
    return Report(
        model.name,
        errors=tuple(errors),
        warnings=(*_warnings(model, loops, idle, closure, parts, driven, beyond), *unplanned),
        notes=model.notes,
        bodies=len(model.bodies),
        mass=float(sum(body.mass for body in model.bodies)),
        joints=dict(Counter(joint.kind for joint in model.joints)),
        passive=_passive(model),
        clusters=tuple(tuple(model.bodies[i].name for i in c.bodies) for c in model.clusters),
        mobility=mobility(model, loops),
        loops=tuple(loops),
        idle=idle,
        closure=closure,
        partitions=parts,
        drives=driven,
        beyond_limits=beyond,
        touching=touch,
    )


def _passive(model: Model) -> dict[str, int]:
    """At how many joints the description has damping, friction and springs."""
    kinds = {"damping": "damping", "friction": "friction", "springs": "stiffness"}
    counts = {n: sum(getattr(j, key) > 0 for j in model.joints) for n, key in kinds.items()}
    return {n: count for n, count in counts.items() if count}


def _closure(model: Model, given, configurations) -> Closure:
    if not model.loops:
        return Closure(None, None, 0.0, len(configurations))
    drawn = {body.index: body.joint.motion.neutral() for body in model.bodies}
    for name, value in (given or {}).items():
        body = model.body_of_joint(name)
        drawn[body.index] = as_position(body, value)
    gaps = {loop.name: float(np.abs(loop.residual(drawn)).max()) for loop in model.loops}
    worst = max(gaps, key=gaps.get)
    after = max(model.loop_gap(q) for q in configurations)
    return Closure(gaps[worst], worst if gaps[worst] > OPEN_LOOP else None, after,
                   len(configurations))  # fmt: skip


def _errors(model: Model, configurations, closure: Closure) -> list[str]:
    errors = []
    if not closure.assembled <= OPEN_LOOP:
        errors.append(
            f"the loops stay open by {closure.assembled:.2g} m or rad after assembly: check their "
            "frames, axes and link lengths"
        )
    for q in configurations[: 3 if model.nv else 0]:
        M = c_crba(model, q)
        scale = np.sqrt(np.abs(np.diag(M)))
        light = np.flatnonzero(scale == 0)
        if not len(light):
            values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
            if values[0] * SINGULAR_MASS > values[-1]:
                continue
            light = [int(np.argmax(np.abs(vectors[:, 0])))]
        errors.append(
            f"the mass matrix is singular: coordinate '{model.v_names[light[0]]}' moves no "
            "inertia; give its body, or one that it carries, a mass or an inertia"
        )
        break
    return errors


def _warnings(model, loops, idle, closure, parts, driven, beyond) -> list[str]:
    out = [
        f"the neutral configuration has joint '{x.joint}' at {x.position:.4g}, beyond its limits "
        f"{x.lower:.4g} .. {x.upper:.4g}: no closed configuration within all limits was found, or "
        "the reference asks for it"
        for x in beyond
    ]
    if idle:
        named = ", ".join(" + ".join(i.bodies) for i in idle)
        out.append(f"{len(idle)} idle freedoms, links that spin or slide and move nothing: {named}")
    if closure.given is not None and closure.given > 1e-3:
        out.append(
            f"as given, loop '{closure.worst_loop}' is open by {closure.given:.3g} m or rad: start "
            "from model.neutral() or model.assemble(q)"
        )
    for p in parts:
        if p.poor:
            out.append(
                f"the partition of loop '{p.loops[0]}' comes near a singularity (condition "
                f"{p.worst:.2g}): use model.repartition(q) there"
            )
    for cluster in model.clusters:
        if doubt := getattr(cluster.embedding, "doubt", ""):
            out.append(doubt)
    redundant = sum(loop.redundant for loop in loops if not loop.planar)
    if redundant:
        out.append(f"{redundant} rows of loops that are not planar are redundant: see the table")
    if driven is not None and driven.missing:
        count = len(driven.missing)
        out.append(f"no actuator moves {count} of the coordinates: {_listed(driven.missing)}")
    return out


def _listed(names) -> str:
    """Names in a row; of many the first, and how many more."""
    if len(names) <= LISTED:
        return ", ".join(names)
    return f"{', '.join(names[: LISTED - 1])} and {len(names) - LISTED + 1} more"


__all__ = [
    "BeyondLimits", "Closure", "ContactRow", "Drive", "Drives", "Idle", "LoopRows", "Mobility",
    "Partition", "Report", "Touching", "check",
]  # fmt: skip
