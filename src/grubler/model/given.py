"""Numbers that users hand to a builder, checked."""

from __future__ import annotations

import numpy as np

from ..algebra.spatial import rpy_matrix
from ..arguments import shown
from ..errors import InputError, ModelError
from ..mechanism.parts import LARGEST, frozen
from ..typing import ArrayLike


def vector(what: str, x: ArrayLike, n: int = 3) -> np.ndarray:
    """n finite numbers, read-only, or a ModelError that names `what`."""
    x = np.asarray(x, dtype=float)
    if x.shape != (n,) or not np.all(np.isfinite(x)):
        raise ModelError(f"{what}: expected {n} finite numbers, got {x.tolist()}")
    if not np.all(np.abs(x) <= LARGEST):
        raise ModelError(f"{what}: {x.tolist()} is beyond {LARGEST:g}")
    return frozen(x)


def rotation(name: str, rpy: ArrayLike, R: ArrayLike | None) -> np.ndarray:
    """A rotation matrix, read-only: R, or that of URDF angles where R is None."""
    if R is None:
        return frozen(rpy_matrix(*vector(f"rpy of '{name}'", rpy)))
    R = np.asarray(R, dtype=float)
    proper = R.shape == (3, 3) and np.abs(R @ R.T - np.eye(3)).max() <= 1e-6  # NaN is none
    if not proper or np.linalg.det(R) < 0:
        raise ModelError(f"R of '{name}' is not a rotation matrix (3x3, orthonormal, right-handed)")
    return frozen(R)


def flag(what: str, x: object) -> bool:
    """True or False, and nothing that only looks like it."""
    if not isinstance(x, (bool, np.bool_)):
        raise InputError(f"{what} is {shown(x)}: give True or False")
    return bool(x)
