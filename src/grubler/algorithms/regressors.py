"""The regressor Y(q, v, a): inverse dynamics is linear in the inertial parameters, tau = Y π.

π has ten numbers a body, about its origin and in its axes, and one or three a tree joint:

| entries of π                 | meaning                                                 |
|------------------------------|---------------------------------------------------------|
| m                            | mass (kg)                                               |
| mx my mz                     | first moment, m times the centre of mass (kg m)         |
| Ixx Ixy Ixz Iyy Iyz Izz      | rotational inertia about the body's origin (kg m²)      |
| armature                     | inertia felt by the joint's own velocity (kg m² or kg)  |
| damping, friction            | viscous and Coulomb losses, where asked for             |

Rotors are bodies like all others. With the acceleration A of the origin (less gravity), the angular
velocity w, dw, U = [dw x] + [w x]² and L(x) π_I = I x, the net force on a body is

    [moment; force] = [ 0   -[A x]   L(dw) + [w x] L(w) ] π_i
                      [ A     U              0          ]

Its columns are carried to the base as in inverse dynamics and meet each cluster's subspace.

Not all entries of π matter. `base_parameters` finds combinations that do (Gautier and Khalil) from
the regressor at random states: columns are taken in order, each that the ones before do not span.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.cluster_spatial import block_diagonal
from ..algebra.linalg import joined
from ..algebra.spatial import skew
from ..algebra.symbolic import is_symbolic
from ..arguments import public
from ..errors import InputError
from .checks import checked
from .newton_euler import accelerated
from .sweep import outward

if TYPE_CHECKING:
    from ..model import Model
    from ..typing import Array, ArrayLike, Floats

INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
SPANNED = 1e-8  # of a column's length: what is left of it outside the span of those before


@public
def regressor(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, friction: bool = False
) -> Floats:
    """Y (nv, n): the generalized force of inverse dynamics is Y π, π as `regressor_parameters`.

    `friction=True` appends columns for damping and Coulomb friction of the tree joints; Y π then
    includes the torque against friction. A joint at rest has no Coulomb friction."""
    q, v, a = checked(model, q=q, v=v, a=a)
    sweep = outward(model, q, v, keep_frame=None)
    motion = accelerated(sweep, a)
    blocks = [
        [np.zeros((i.nv, 10 * len(j.bodies))) for j in model.clusters] for i in model.clusters
    ]
    for state in sweep:
        k = state.cluster.index
        F = block_diagonal([body_regressor(motion.bodies[i]) for i in state.cluster.bodies])
        while state is not None:
            blocks[state.cluster.index][k] = state.S.T @ F
            F, state = state.X.forces_back(F), state.parent
    own = np.block(blocks) if blocks else np.zeros((0, 0))
    places = {body.index: place for place, body in enumerate(model.spanning.bodies)}
    in_order = [10 * places[body.index] + i for body in model.bodies for i in range(10)]
    return joined([own[:, in_order], *joint_columns(motion, v, friction)], axis=1)


def body_regressor(body: Any) -> Array:
    """(6, 10): the net force on a body in motion (newton_euler.py), by its parameters."""
    moments = _moments(body.dw) + skew(body.w) @ _moments(body.w)
    top = np.concatenate([np.zeros((3, 1)), -skew(body.A), moments], axis=1)
    force = [np.stack([body.A], axis=1), body.U, np.zeros((3, 6))]
    return np.concatenate([top, np.concatenate(force, axis=1)])


def _moments(x):
    """L (3, 6): I x = L [Ixx Ixy Ixz Iyy Iyz Izz]."""
    o = np.zeros(())
    return np.stack(
        [
            np.stack([x[0], x[1], x[2], o, o, o]),
            np.stack([o, x[0], o, x[1], x[2], o]),
            np.stack([o, o, x[0], o, x[1], x[2]]),
        ]
    )


def joint_columns(motion: Any, v: Array, friction: bool) -> list[Any]:
    """Columns of armature, then damping and friction, by tree joint in the order of bodies."""
    kinds: dict[Any, Any] = {"armature": {}, "damping": {}, "friction": {}}
    for state in motion.sweep:
        own = state.cluster.v
        before, after = np.zeros(own.start), np.zeros(v.shape[0] - own.stop)
        for joint in state.joints:
            i, rate = joint.body.index, joint.rate
            sign = np.where(rate > 0.0, 1.0, 0.0) - np.where(rate < 0.0, 1.0, 0.0)
            for kind, x in (("armature", motion.joints[i]), ("damping", rate), ("friction", sign)):
                kinds[kind][i] = joined([before, joint.G.T @ x, after])
    order = sorted(kinds["armature"])
    return [np.stack([kinds[k][i] for i in order], axis=1) for k in losses(friction) if order]


def losses(friction: bool) -> tuple[str, ...]:
    """The parameters of a joint that have columns."""
    return ("armature", "damping", "friction") if friction else ("armature",)


@public
def regressor_parameters(model: Model, *, friction: bool = False) -> Floats:
    """π (n,): the inertial parameters that `regressor` multiplies, of all bodies and joints."""
    parts = []
    for body in model.bodies:
        Io = body.spatial[:3, :3]
        first = body.mass * body.com
        parts.append(np.stack([body.mass, first[0], first[1], first[2], Io[0, 0], Io[0, 1],
                               Io[0, 2], Io[1, 1], Io[1, 2], Io[2, 2]]))  # fmt: skip
    for kind in losses(friction):
        parts.append(np.array([getattr(joint, kind) for joint in model.joints], dtype=float))
    return joined(parts)


@public
def regressor_names(model: Model, *, friction: bool = False) -> tuple[str, ...]:
    """What each entry of π is: "m of thigh", "armature of knee"."""
    names = [f"{what} of {body.name}" for body in model.bodies for what in INERTIAL]
    joints = [f"{kind} of {j.name}" for kind in losses(friction) for j in model.joints]
    return tuple(names + joints)


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The identifiable combinations of inertial parameters.

    Columns `independent` of the regressor span all others: Y π = Y[:, independent] @ (matrix @ π)
    in every state. `names` say which combination each row of `matrix` is.
    """

    independent: tuple[int, ...]
    matrix: np.ndarray
    names: tuple[str, ...]

    def values(self, parameters: Any) -> np.ndarray:
        """The base parameters of π."""
        return self.matrix @ parameters


@public
def base_parameters(
    model: Model,
    *,
    friction: bool = False,
    samples: int = 0,
    seed: int | np.random.Generator = 0,
) -> BaseParameters:
    """The combinations of `regressor_parameters` that motion and torques of this robot tell apart.

    Found from the regressor at `samples` random states (0: as many as give twice as many equations
    as unknowns, at least 20), with an error below 1e-8 relative."""
    if is_symbolic(model.mass):
        raise InputError("base_parameters needs numbers: give it the model without parameters")
    names = regressor_names(model, friction=friction)
    if not model.nv:
        return BaseParameters((), np.zeros((0, len(names))), ())
    count = samples or max(20, -(-2 * len(names) // model.nv))
    R = _stacked_regressor(model, friction, count, np.random.default_rng(seed))
    independent, coordinates = spanning_columns(R)
    matrix = np.where(np.abs(coordinates) < SPANNED, 0.0, coordinates)
    words = tuple(_combination(row, names) for row in matrix)
    return BaseParameters(tuple(independent), matrix, words)


def _stacked_regressor(model, friction: bool, count: int, generator) -> np.ndarray:
    """The triangular factor of the regressors at random states, one below the other."""
    q, v = model.random_states(count, generator)
    a = generator.uniform(-5.0, 5.0, (count, model.nv))
    rows = [regressor(model, *state, friction=friction) for state in zip(q, v, a)]
    return np.linalg.qr(np.concatenate(rows), mode="r")


def spanning_columns(R: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The columns that those before do not span, and all columns in terms of these."""
    basis, chosen = np.zeros((R.shape[0], 0)), []
    for j in range(R.shape[1]):
        length, rest = np.linalg.norm(R[:, j]), R[:, j]
        for _ in range(2):  # twice is enough
            rest = rest - basis @ (basis.T @ rest)
        if length > 0.0 and np.linalg.norm(rest) > SPANNED * length:
            chosen.append(j)
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return chosen, np.linalg.lstsq(R[:, chosen], R, rcond=None)[0]


def _combination(row: np.ndarray, names) -> str:
    terms = [(names[j], row[j]) for j in np.flatnonzero(row)]
    return " ".join(
        f"{'-' if x < 0 else '+'} {'' if abs(abs(x) - 1) < SPANNED else f'{abs(x):.6g} '}{name}"
        for name, x in terms
    ).removeprefix("+ ")
