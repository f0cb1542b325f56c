"""PV-early guarded: its accuracy estimated, refined where it is low, all rows carried where needed.

A joint that takes a row and barely moves it feels the mass D / |K S|² there. Rounding errors of the
row's acceleration, precision times that of the joint's carrier, become errors of the multipliers
times this mass. So the estimate of the relative error is precision × mass × acceleration / force.

Where that is too large, one step of iterative refinement solves for what the equations of motion
and the rows leave of the solution, with the same factors. What they leave is known to the precision
of the forces on single bodies, where no inertia is added to a much larger one: all digits come back
that the first solution has lost.

Where the correction of that step is not small, at the singular posture itself and where rows depend
on each other, which no joint takes (Remarks 8 and 9), all rows are carried to the world, as in PV,
and met there in the sense of least squares. In compiled code these are branches, the second inside
the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.symbolic import is_symbolic
from ..algorithms import FORWARD, forward_dynamics
from ..compiled.problem import quickest
from ..compiler import otherwise, precision
from ..tolerances import ACCURATE, REFINED, TRUSTED, TRUSTED_FIXED
from .equations import Equations, Solution, prepared
from .plan import POSTURES, Plan, planned
from .pv import carried_to_base
from .pv_early import resolved_early

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Wanted

OFTEN = 0.5  # refining always takes less time where fewer states than this part do without
HEAVIEST = 1e8  # times the least sum of row masses; from 1e16 on, it is rounding error


class Guard(NamedTuple):
    """What suits a robot, judged by some random postures.

    way      "check" the accuracy; "refine" always, where that is needed often; or "carry" all rows
             always
    heaviest the sum of row masses beyond which rows are carried
    """

    way: str
    heaviest: float


def pv_early(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
    regular: bool = False,
) -> tuple[Any, Array] | tuple[Array, Any | Array] | tuple[Any, Any]:
    """(a, multipliers).

    `regular=True` leaves out the branches: smaller code, and lost digits or NaN at singular
    postures and for redundant rows. Without any row there is nothing to resolve: PV is C-ABA then,
    and compiled code takes the quickest method of forward dynamics.
    """
    if not constraints:
        method = quickest(forward_dynamics, model.nominal) if is_symbolic(q) else "c_aba"
        return FORWARD[method](model, q, v, tau, f_ext), np.zeros(0)
    equations = prepared(model, q, v, tau, constraints, f_ext, desired)
    plan = planned(model.nominal, constraints)
    early = resolved_early(equations, plan)
    if regular or not early.row_masses:
        return early.outputs(equations)
    way, heaviest = judged(model.nominal, constraints, plan)
    if way == "carry":
        return carried_to_base(equations, redundant=True)
    bounded = early.row_mass <= heaviest

    def refined_or_carried():
        better, change = refined(equations, plan, early)
        good = np.logical_and(bounded, small(change, better))
        return otherwise(good, np.concatenate(better.outputs(equations)), carried)

    def carried():
        return np.concatenate(carried_to_base(equations, redundant=True))

    if way == "refine":
        both = refined_or_carried()
    else:
        good = np.logical_and(bounded, accurate(equations, early))
        both = otherwise(good, np.concatenate(early.outputs(equations)), refined_or_carried)
    return both[: model.nv], both[model.nv :]


def refined(equations: Equations, plan: Plan, solution: Solution) -> tuple[Solution, Solution]:
    """The solution after one step of iterative refinement, and its change in that step."""
    change = resolved_early(equations.left_by(solution), plan)
    return solution + change, change


def accurate(equations: Equations, solution: Solution) -> bool:
    """True if the estimate of the error is small enough."""
    model = equations.sweep.model
    reach = _square(solution.acc[k] for k in carriers(model, solution))
    free = all(c.nv == 6 for c in model.clusters if c.parent is None)
    limit = TRUSTED if free else TRUSTED_FIXED
    return solution.row_mass * solution.row_mass * reach <= limit**2 * _square(solution.multipliers)


def carriers(model: Model, solution: Solution) -> list[int]:
    """The clusters whose acceleration the rows feel of the world: a free base, and on a fixed base
    the cluster that carries a joint that takes a row."""
    found = set(model.tree.roots)
    for k, _ in solution.row_masses:
        inward = [] if k is None else model.tree.inward(k)
        if inward and model.clusters[inward[-1]].nv < 6:
            found |= set(inward[1:2])
    return sorted(found)


def small(change: Solution, solution: Solution, part: float = REFINED) -> Any:
    """True if the relative change in refinement, which is the error before it, is small."""
    part = part * precision()
    a = _square([change.a]) <= part * _square([solution.a])
    return np.logical_and(a, _square(change.multipliers) <= part * _square(solution.multipliers))


def _square(vectors):
    """The sum of the squares of all elements."""
    return sum(x @ x for x in vectors)


@lru_cache(maxsize=256)
def judged(model: Model, constraints: Sequence[Checked], plan: Plan) -> Guard:
    """What suits a robot under a plan, by some random postures."""
    resolvable, enough, masses = [], [], []
    for seed in range(POSTURES):
        q, v = model.random_state(seed)
        equations = prepared(model, q, v, np.zeros(model.nv), constraints)
        with np.errstate(all="ignore"):
            early = resolved_early(equations, plan)
            better, change = refined(equations, plan, early)
            masses.append(early.row_mass)
            resolvable.append(small(change, better) and early.row_mass < np.inf)
            enough.append(accurate(equations, early) and small(change, better, ACCURATE))
    if np.mean(resolvable) < 0.5:
        return Guard("carry", 0.0)
    way = "check" if np.mean(enough) > OFTEN else "refine"
    return Guard(way, HEAVIEST * 10.0 ** np.ceil(np.log10(np.nanmin(masses))))
