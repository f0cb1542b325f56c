"""The approximations in common use (Sec. II): the independent tree, with or without armature.

Dependent bodies are welded to the link that carries them; their relative motion is ignored
(unconstrained) or replaced by the constant diagonal H̃ = N² I_rot (approximate), which is what an
`armature` attribute does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..model.derived import IndependentTree, independent_tree
from .c_aba import c_aba
from .c_efpa import c_efpa
from .c_rnea import c_rnea

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array, Frame


def unconstrained_rnea(
    model: Model, q: Array, v: Array, a: Array, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """RNEA(G_ind, y, yd, ydd): loops and dependent bodies ignored."""
    tree = independent_tree(model)
    return c_rnea(tree.model, q[tree.select], v, a, _carried(tree, f_ext))


def approximate_rnea(
    model: Model, q: Array, v: Array, a: Array, f_ext: Mapping[int, Array] | None = None
) -> Any:
    """RNEA(G_ind, y, yd, ydd) + H̃ ydd."""
    tree = independent_tree(model)
    return c_rnea(tree.armed, q[tree.select], v, a, _carried(tree, f_ext))


def unconstrained_aba(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """H_ind⁻¹ (tau - c_ind)."""
    tree = independent_tree(model)
    return c_aba(tree.model, q[tree.select], v, tau, _carried(tree, f_ext))


def approximate_aba(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Mapping[int, Array] | None = None
) -> Array:
    """(H_ind + H̃)⁻¹ (tau - c_ind)."""
    tree = independent_tree(model)
    return c_aba(tree.armed, q[tree.select], v, tau, _carried(tree, f_ext))


def approximate_efpa(
    model: Model, q: Array, frames: Sequence[tuple[Frame, tuple[int, ...]]]
) -> Array:
    """J_ind (H_ind + H̃)⁻¹ J_indᵀ."""
    tree = independent_tree(model)
    moved = [(tree.frame(frame), rows) for frame, rows in frames]
    return c_efpa(tree.armed, q[tree.select], moved)


def _carried(tree: IndependentTree, f_ext):
    """External forces on the bodies of the independent tree; a welded body's act on its carrier."""
    if not f_ext:
        return None
    forces: dict[Any, Any] = {}
    for i, f in f_ext.items():
        body, X = tree.carrier[i]
        forces[body] = forces.get(body, 0.0) + X.force_back(f)
    return forces
