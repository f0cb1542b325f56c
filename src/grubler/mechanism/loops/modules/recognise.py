"""Finding analytic modules in a cluster: which joints of each loop can be solved for, and in what
order, so that every loop of the cluster is closed in closed form.

A loop offers candidates: pairs of joints where it is planar, the last joints of one of its chains
where they form a leg. A choice of one candidate a loop works if no joint is solved for twice and
the loops can be put in an order in which each one's inputs are known (a chain of dyads).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ....errors import ModelError
from ....tolerances import CANDIDATE_DEAD_POINT, CLOSED_FORM
from ...parts import Body
from ..base import ExplicitLoop, Loop
from ..joint import LoopJoint
from .ball_leg import SpuLeg
from .base import ClosedForm
from .four_bar import FourBar
from .legs import RusLeg, UpsLeg
from .planar import PlanarClosure, planar_sides, two_paths
from .recut import Recut, recut_candidates
from .slider_crank import SliderCrank


def recognise(
    bodies: Sequence[Body], loops: Sequence[Loop], reference: Mapping[Any, Any],
    prefer: Collection[int] = (),
) -> tuple[ExplicitLoop, ...] | None:  # fmt: skip
    """The loops of a cluster as closed forms, in an order that solves them; None if some loop has
    none.

    `reference` is an assembled position of every joint: it decides the branches. Joints marked
    independent=True are never solved for, those marked False always; `prefer` names bodies whose
    joints should be.
    """
    flags = {body.index: body.joint.independent for body in bodies}
    choices = []
    for loop in loops:
        found = [loop] if isinstance(loop, ExplicitLoop) else candidates(loop, reference)
        found = [c for c in found if not any(flags[b.index] for b in c.outputs)]
        if not found:
            return None
        liked = [sum(b.index in prefer for b in c.outputs) for c in found]
        ranked = sorted(range(len(found)), key=lambda i: -liked[i])
        choices.append([found[i] for i in ranked])
    must = {i for i, flag in flags.items() if flag is False}
    return _ordered_choice(choices, must)


def candidates(loop: Loop, reference: Mapping[Any, Any]) -> list[ClosedForm]:
    """Every closed form of one loop, the best conditioned at the reference first."""
    if not isinstance(loop, LoopJoint):
        return []
    found = planar_candidates(loop, reference) + recut_candidates(loop, reference)
    found += leg_candidates(loop, reference)
    rated = [(c.conditioning(reference), c) for c in found]
    rated = [pair for pair in rated if pair[0] > CANDIDATE_DEAD_POINT]
    rated = [pair for pair in rated if _closes(pair[1], reference)]
    return [c for _, c in sorted(rated, key=lambda pair: -pair[0])]


def planar_candidates(loop: LoopJoint, reference: Mapping[Any, Any]) -> list[ClosedForm]:
    """Pairs of joints of a planar loop."""
    sides = planar_sides(loop, reference)
    if sides is None:
        return []
    members = [*loop.path_P, *loop.path_S]
    found = []
    for pair in combinations(members, 2):
        inputs = tuple(body for body in members if body not in pair)
        if not inputs:
            continue
        A, B, t = two_paths(*sides, *pair, reference)
        kind = SliderCrank if A.line or B.line else FourBar
        centre = np.array([reference[body.index][0] for body in pair])
        branch = kind.branch_at(A, B, t, centre)
        found.append(kind(loop.name, inputs, pair, loop, branch, centre, *sides))
    return found


def leg_candidates(loop: LoopJoint, reference: Mapping[Any, Any]) -> list[ClosedForm]:
    """The last joints of either chain, where they form a leg that ends in a ball joint, or one
    that starts with it and ends in a universal joint."""
    kinds = {"ball": (UpsLeg, RusLeg), "universal": (SpuLeg,)}.get(loop.kind)
    if kinds is None:
        return []
    found = []
    for on_S, path in ((False, loop.path_P), (True, loop.path_S)):
        for count in (2, 3):
            leg = path[len(path) - count :]
            if len(path) < count or sum(body.joint.nv for body in leg) != loop.rows:
                continue
            inputs = tuple(b for b in (*loop.path_P, *loop.path_S) if b not in leg)
            if not inputs:
                continue
            made = [kind.make(loop, on_S, leg, inputs, reference) for kind in kinds]
            found += [c for c in made if c is not None]
    return found


def _closes(candidate: ClosedForm, reference: Mapping[Any, Any]) -> bool:
    """Whether the closed form gives back the reference, and closes the loop there."""
    with np.errstate(invalid="ignore", divide="ignore"):
        solved = candidate.value(candidate._gather(reference))
    if not np.all(np.isfinite(solved)):
        return False
    values = dict(reference) | candidate._spread(candidate.outputs, solved)
    gap = np.abs(candidate.loop.residual(values)).max()
    return bool(gap < CLOSED_FORM and np.abs(solved - candidate.centre).max() < 1e-3)


def _ordered_choice(choices: list[list[Any]], must: set[int]):
    """One candidate a loop, in solvable order: depth first over the choices."""

    def search(i: int, taken: frozenset[Any], chosen: tuple[Any, ...]):
        if i == len(choices):
            return _in_order(chosen) if must <= taken else None
        for candidate in choices[i]:
            outputs = frozenset(body.index for body in candidate.outputs)
            if not outputs & taken:
                found = search(i + 1, taken | outputs, (*chosen, candidate))
                if found is not None:
                    return found
        return None

    return search(0, frozenset(), ())


def _in_order(chosen: tuple[Any, ...]):
    """The steps in an order in which each one's inputs are known, or None."""
    unknown = {body.index for step in chosen for body in step.outputs}
    waiting, steps = list(chosen), []
    while waiting:
        ready = next(
            (s for s in waiting if not any(body.index in unknown for body in s.inputs)), None
        )
        if ready is None:
            return None
        steps.append(ready)
        waiting.remove(ready)
        unknown -= {body.index for body in ready.outputs}
    return tuple(steps)


def module_name(steps: Sequence[ExplicitLoop]) -> str:
    """What the closed forms of a cluster make together, in the words of the literature."""
    forms = [step for step in steps if isinstance(step, ClosedForm)]
    if not forms:
        return "couplings"
    kinds = {type(step) for step in forms}
    if kinds <= {UpsLeg, SpuLeg} or kinds == {RusLeg}:
        name = "RUS" if kinds == {RusLeg} else "UPS"
        outputs = {body.index for step in forms for body in step.outputs}
        inputs = {body.index: body.joint.nv for s in forms for body in s.inputs
                  if body.index not in outputs}  # fmt: skip
        freedoms = sum(inputs.values())
        if freedoms == 2:
            return f"{len(forms)}{'SPU' if name == 'UPS' else 'RUS'}+1U"
        return f"{len(forms)}-{name}" + (" platform" if freedoms == 6 else "")
    if len(forms) == 1:
        single = isinstance(forms[0], (PlanarClosure, Recut)) and len(forms[0].inputs) > 1
        return f"{forms[0].module}{' of several inputs' if single else ''}"
    counts = Counter(form.module for form in forms)
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))


def choose_branches(steps: tuple[Any, ...], branches: Mapping[str, int | str]) -> tuple[Any, ...]:
    """The steps on other branches, by loop name: +1, -1, or "other" than the reference's."""
    known = {step.name: step for step in steps if isinstance(step, ClosedForm)}
    for name in branches:
        if name not in known:
            raise ModelError(
                f"loop '{name}' has no branches to choose from: closed forms here are "
                f"{', '.join(known) or 'none'}"
            )
    out = []
    for step in steps:
        choice = branches.get(step.name) if isinstance(step, ClosedForm) else None
        if choice is None:
            out.append(step)
        else:
            out.append(step.with_branch(-step.branch if choice == "other" else choice))
    return tuple(out)
