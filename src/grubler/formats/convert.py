"""State between our layout and those of Pinocchio and MuJoCo.

Ours: q and v of the model (independent velocities), free joint q = [x y z, qw qx qy qz] with
v = [angular; linear] in the body. Theirs: one entry for every joint of the spanning tree.

| | quaternions | free joint v | continuous q |
|---|---|---|---|
| Pinocchio | scalar last | in the body, linear first | (cos, sin) |
| MuJoCo | scalar first | linear in the world first, then angular in the body | angle |

`other` is a `pinocchio.Model` or a `mujoco.MjModel`; joints are matched by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.spatial import quaternion_matrix
from ..algorithms import generalized_force, spanning_state
from ..arguments import public, shown
from ..errors import InputError, unknown
from ..mechanism.parts import Body
from ..model import Model, as_vector
from .mjcf_equality import constant_joints

if TYPE_CHECKING:
    from ..typing import ArrayLike

WIDTHS = {0: (7, 6), 1: (4, 3)}  # numbers of MuJoCo's free and ball joints in q and v
HELD = 1e-7  # m or rad; how far a welded joint may be off, as for loops


class State(NamedTuple):
    """q, v, a and tau; None where they were not given."""

    q: np.ndarray
    v: np.ndarray | None = None
    a: np.ndarray | None = None
    tau: np.ndarray | None = None


class _Place(NamedTuple):
    """Where a joint of ours stands in the other library's vectors."""

    body: Body
    q: np.ndarray  # indices
    v: np.ndarray


@public
def to_pinocchio(
    model: Model,
    other: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> State:
    """Our state in Pinocchio's layout; joints that Pinocchio does not have are left out."""
    places, layout = _pinocchio_places(model, other), _PINOCCHIO
    return _to(model, places, np.zeros(other.nq), other.nv, layout, q, v, a, tau)


@public
def from_pinocchio(
    model: Model,
    other: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> State:
    """Pinocchio's state in our layout; dependent joints must agree with the loops."""
    places = _pinocchio_places(model, other)
    return _from(model, places, other.nq, other.nv, _PINOCCHIO, q, v, a, tau)


@public
def to_mujoco(
    model: Model,
    other: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> State:
    """Our state as MuJoCo's qpos, qvel, qacc and qfrc.

    Joints that the model does not have are at rest: where an equality holds them, else at qpos0.
    """
    places, layout = _mujoco_places(model, other), _MUJOCO
    return _to(model, places, _mujoco_rest(other), other.nv, layout, q, v, a, tau)


@public
def from_mujoco(
    model: Model,
    other: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> State:
    """MuJoCo's qpos, qvel, qacc and qfrc in our layout.

    Joints that the model has welded must be at rest there, too.
    """
    places = _mujoco_places(model, other)
    _check_at_rest(model, other, places, q, {"v": v, "a": a})
    return _from(model, places, other.nq, other.nv, _MUJOCO, q, v, a, tau)


def _to(model, places, rest, nv, layout: _Layout, q, v, a, tau) -> State:
    """The other library's vectors; joints without a place stay at `rest`, with zero velocity."""
    q = as_vector("q", q, model.nq, model.q_names)
    span = spanning_state(model, q, v if v is not None else np.zeros(model.nv), a)
    positions = model.unpack(q)
    columns = _columns(model)
    out_q = np.array(rest)
    out = {k: np.zeros(nv) for k in "vat"}
    force = np.zeros(model.nv_span)
    if tau is not None:
        force[_independent(model)] = as_vector("tau", tau, model.nv, model.v_names)
    for body, iq, iv in places:
        x, c = positions[body.index], columns[body.index]
        out_q[iq] = layout.q_out(body, x, len(iq))
        velocity = span.velocities[c]
        out["v"][iv] = layout.v_out(body, x, velocity)
        if a is not None:
            out["a"][iv] = layout.a_out(body, x, velocity, span.accelerations[c])
        out["t"][iv] = layout.f_out(body, x, force[c])
    return State(
        out_q,
        None if v is None else out["v"],
        None if a is None else out["a"],
        None if tau is None else out["t"],
    )


def _from(model, places, nq, nv, layout: _Layout, q, v, a, tau) -> State:
    q = as_vector("q", q, nq)
    given = [None if x is None else as_vector(n, x, nv) for n, x in zip("va", (v, a))]
    positions = dict(model.reference)
    columns = _columns(model)
    spans = [np.zeros(model.nv_span) for _ in range(2)]
    force = np.zeros(model.nv_span)
    torque = None if tau is None else as_vector("tau", tau, nv)
    for body, iq, iv in places:
        x = layout.q_in(body, q[iq])
        positions[body.index], c = x, columns[body.index]
        if given[0] is not None:
            spans[0][c] = layout.v_in(body, x, given[0][iv])
        if given[1] is not None:
            spans[1][c] = layout.a_in(body, x, spans[0][c], given[1][iv])
        if torque is not None:
            force[c] = layout.f_in(body, x, torque[iv])
    ours = model.pack(positions)
    model.check_closed(ours)
    pick = _independent(model)
    return State(
        ours,
        None if v is None else spans[0][pick],
        None if a is None else spans[1][pick],
        None if tau is None else generalized_force(model, ours, force),
    )


def _columns(model: Model) -> dict[int, slice]:
    columns, start = {}, 0
    for i in model.spanning_order:
        columns[i] = slice(start, start + model.bodies[i].joint.nv)
        start += model.bodies[i].joint.nv
    return columns


def _independent(model: Model) -> list[int]:
    names = list(model.spanning_names)
    return [names.index(n) for n in model.v_names]


def _pinocchio_places(model: Model, other) -> list[_Place]:
    _check_other(other, "names", "a pinocchio.Model")
    places = []
    for i, name in enumerate(other.names):
        joint = other.joints[i]
        if i == 0 or joint.nv == 0 or "Mimic" in joint.shortname():
            continue
        body = _body(model, name)
        if body.joint.nv != joint.nv:
            raise InputError(
                f"joint '{name}' has {body.joint.nv} degrees of freedom here and {joint.nv} in "
                "Pinocchio"
            )
        if body.joint.kind == "planar" and np.abs(body.joint.motion._plane[2]).max() > 1e-12:
            raise InputError(
                f"planar joint '{name}' does not move in its x-y plane: Pinocchio's do"
            )
        places.append(
            _Place(
                body,
                np.arange(joint.idx_q, joint.idx_q + joint.nq),
                np.arange(joint.idx_v, joint.idx_v + joint.nv),
            )
        )
    return places


def _check_other(other, attribute: str, expected: str) -> None:
    if not hasattr(other, attribute):
        raise InputError(f"other is {shown(other)}: give {expected}, the second argument")


def _mujoco_places(model: Model, other) -> list[_Place]:
    _check_other(other, "njnt", "a mujoco.MjModel")
    names = [other.joint(j).name for j in range(other.njnt)]
    places = []
    for body in model.bodies:
        joint = body.joint
        parts = joint.names(joint.motion.labels)
        whole = joint.name in names or joint.kind in ("free", "spherical")
        iq, iv = [], []
        for name in [joint.name] if whole else parts:
            j = _joint_index(other, names, name)
            nq, nv = WIDTHS.get(int(other.jnt_type[j]), (1, 1))
            iq += range(other.jnt_qposadr[j], other.jnt_qposadr[j] + nq)
            iv += range(other.jnt_dofadr[j], other.jnt_dofadr[j] + nv)
        places.append(_Place(body, np.array(iq, int), np.array(iv, int)))
    return places


def _mujoco_rest(other) -> np.ndarray:
    """qpos0, with the joints that an equality holds at a constant where it holds them."""
    rest = np.array(other.qpos0)
    for j, value in constant_joints(other).items():
        rest[other.jnt_qposadr[j]] = value
    return rest


def _check_at_rest(model: Model, other, places: list[_Place], q, rates: dict[Any, Any]) -> None:
    """Refuse a motion of bodies that our model has welded (held joints, a base that is fixed)."""
    q, rest = as_vector("q", q, other.nq), _mujoco_rest(other)
    ours = {int(i) for place in places for i in place.v}
    bodies = {body.name for body in model.bodies} | {frame.name for frame in model.frames}
    for j in range(other.njnt):
        nq, nv = WIDTHS.get(int(other.jnt_type[j]), (1, 1))
        iq, iv = int(other.jnt_qposadr[j]), int(other.jnt_dofadr[j])
        if iv in ours or other.body(other.jnt_bodyid[j]).name not in bodies:
            continue
        name = other.joint(j).name or str(j)
        if np.abs(_aligned(q[iq : iq + nq], rest[iq : iq + nq]) - rest[iq : iq + nq]).max() > HELD:
            raise InputError(
                f"joint '{name}' is welded in '{model.name}' at {rest[iq : iq + nq].tolist()}, but "
                f"MuJoCo's q has {q[iq : iq + nq].tolist()}"
            )
        for what, x in rates.items():
            if x is not None and np.any(as_vector(what, x, other.nv)[iv : iv + nv]):
                raise InputError(
                    f"joint '{name}' is welded in '{model.name}', but MuJoCo's {what} moves it"
                )


def _aligned(x: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """x with its quaternion, the last four numbers, of the sign that `rest` has."""
    if len(x) < 4 or x[-4:] @ rest[-4:] >= 0:
        return x
    return np.concatenate([x[:-4], -x[-4:]])


def _joint_index(other, names: list[str], name: str) -> int:
    """A joint by name; one without a name is known by its body's, as the reader does."""
    if name in names:
        return names.index(name)
    for j in range(other.njnt):
        if not names[j] and f"{other.body(other.jnt_bodyid[j]).name}_joint" == name:
            return j
    raise InputError("MuJoCo's model: " + unknown("joint", name, names))


def _body(model: Model, name: str) -> Body:
    try:
        return model.body_of_joint(name)
    except ValueError as error:
        raise InputError(f"the other library's joint is not in '{model.name}': {error}") from None


class _Layout(NamedTuple):
    """How one joint's numbers are written, out to the other library and in from it."""

    q_out: Callable[..., Any]
    q_in: Callable[..., Any]
    v_out: Callable[..., Any]
    v_in: Callable[..., Any]
    a_out: Callable[..., Any]
    a_in: Callable[..., Any]
    f_out: Callable[..., Any]
    f_in: Callable[..., Any]


LAST = [1, 2, 3, 0]  # scalar first to scalar last
FIRST = [3, 0, 1, 2]
SWAP = [3, 4, 5, 0, 1, 2]  # angular and linear change places


def _pin_q_out(body: Body, x, n: int):
    if body.joint.kind == "free":
        return np.concatenate([x[:3], x[3:][LAST]])
    if body.joint.kind == "spherical":
        return x[LAST]
    if n == 2 and body.joint.nv == 1:
        return np.array([np.cos(x[0]), np.sin(x[0])])
    if body.joint.kind == "planar":
        return np.array([x[0], x[1], np.cos(x[2]), np.sin(x[2])])
    return x


def _pin_q_in(body: Body, x):
    if body.joint.kind == "free":
        return np.concatenate([x[:3], x[3:][FIRST]])
    if body.joint.kind == "spherical":
        return x[FIRST]
    if len(x) == 2 and body.joint.nv == 1:
        return np.array([np.arctan2(x[1], x[0])])
    if body.joint.kind == "planar":
        return np.array([x[0], x[1], np.arctan2(x[3], x[2])])
    return x


def _plane(x) -> np.ndarray:
    """Pinocchio's planar velocities are in the moving axes: the rotation into ours."""
    c, s = np.cos(x[2]), np.sin(x[2])
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


def _turned(w, v):
    return np.array([-w * v[1], w * v[0], 0.0])


def _pin_v_out(body: Body, x, v):
    if body.joint.kind == "free":
        return v[SWAP]
    return _plane(x).T @ v if body.joint.kind == "planar" else v


def _pin_v_in(body: Body, x, v):
    if body.joint.kind == "free":
        return v[SWAP]
    return _plane(x) @ v if body.joint.kind == "planar" else v


def _pin_a_out(body: Body, x, v, a):
    if body.joint.kind == "planar":
        moved = _plane(x).T @ v
        return _plane(x).T @ a - _turned(v[2], moved)
    return _pin_v_out(body, x, a)


def _pin_a_in(body: Body, x, v, a):
    if body.joint.kind == "planar":
        return _plane(x) @ (a + _turned(v[2], _plane(x).T @ v))
    return _pin_v_in(body, x, a)


def _same_q(body: Body, x, n: int = 0):
    return x


def _world(x, v, sign: int):
    """[angular; linear] in the body <-> [linear in the world; angular in the body]."""
    R = quaternion_matrix(x[3:])
    return np.concatenate([R @ v[3:], v[:3]] if sign > 0 else [v[3:], R.T @ v[:3]])


def _mj_v_out(body: Body, x, v):
    return _world(x, v, 1) if body.joint.kind == "free" else v


def _mj_v_in(body: Body, x, v):
    return _world(x, v, -1) if body.joint.kind == "free" else v


def _mj_a_out(body: Body, x, v, a):
    if body.joint.kind == "free":  # the world's derivative of R v
        return _world(x, a + np.concatenate([np.zeros(3), np.cross(v[:3], v[3:])]), 1)
    return a


def _mj_a_in(body: Body, x, v, a):
    if body.joint.kind == "free":
        return _world(x, a, -1) - np.concatenate([np.zeros(3), np.cross(v[:3], v[3:])])
    return a


_PINOCCHIO = _Layout(
    _pin_q_out, _pin_q_in, _pin_v_out, _pin_v_in, _pin_a_out, _pin_a_in, _pin_v_out, _pin_v_in
)
_MUJOCO = _Layout(_same_q, _same_q, _mj_v_out, _mj_v_in, _mj_a_out, _mj_a_in, _mj_v_out, _mj_v_in)

__all__ = ["State", "from_mujoco", "from_pinocchio", "to_mujoco", "to_pinocchio"]
