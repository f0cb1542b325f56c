"""PV-soft: the soft Gauss principle (Sec. VI). O(n + m).

Every constraint is relaxed to K a + R λ = k. A constraint with the world stiffens and pushes the
body it is on,

    H_i <- H_i + K_i' R_i⁻¹ K_i,   f_i <- f_i + K_i' R_i⁻¹ k_i                              (52)

after which all is C-ABA; one between two bodies is carried as in PV, beginning with L = R, and
stiffens the cluster in which its ends meet. That is PV-early without any hard row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .guard import pv_early

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array
    from .constraints import Checked
    from .rows import Wanted


def pv_soft(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    constraints: Sequence[Checked],
    f_ext: Mapping[int, Array] | None = None,
    desired: Wanted | None = None,
) -> Any:
    """(a, multipliers) for constraints that all have a softness."""
    return pv_early(model, q, v, tau, constraints, f_ext, desired)
