"""Forward dynamics by factorizing the mass matrix: wins on small or shallow robots."""

from __future__ import annotations

import numpy as np

from .c_crba import c_crba
from .c_rnea import c_rnea
from .projection import solve_from_leaves


def mass_matrix_method(model, q, v, tau, f_ext=None):
    """a = M⁻¹ (tau - bias)."""
    return solve_from_leaves(c_crba(model, q), tau - c_rnea(model, q, v, np.zeros(model.nv), f_ext))
