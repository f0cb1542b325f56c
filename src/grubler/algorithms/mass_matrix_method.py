"""Forward dynamics by factorizing the mass matrix: wins on small or shallow robots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .c_crba import c_crba
from .c_rnea import c_rnea
from .projection import solve_from_leaves

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array


def mass_matrix_method(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> Any:
    """a = M⁻¹ (tau - bias)."""
    return solve_from_leaves(c_crba(model, q), tau - c_rnea(model, q, v, np.zeros(model.nv), f_ext))
