"""MJCF's equality constraints: connect and weld as loop joints, joint and tendon as couplings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from ..algebra.spatial import quaternion_matrix
from ..errors import ModelError
from ..model.builder import ModelBuilder

CONNECT, WELD, JOINT, TENDON = range(4)
SITE = 6  # mjOBJ_SITE


def equality_names(m: Any) -> list[str]:
    """The name of each equality; unnamed ones are numbered by kind."""
    kinds = {CONNECT: "connect", WELD: "weld", JOINT: "joint", TENDON: "tendon"}
    names: list[str] = []
    for i in range(m.neq):
        kind = kinds.get(int(m.eq_type[i]), "equality")
        name = m.eq(i).name or f"{kind}_{i}"
        while name in names:
            name += "_"
        names.append(name)
    return names


def constant_joints(m: Any) -> dict[int, float]:
    """Joints that an equality holds at a constant, and their positions: they are welded there."""
    held = {}
    for i in range(m.neq):
        if m.eq_type[i] == JOINT and m.eq_active0[i] and m.eq_obj2id[i] < 0:
            j = int(m.eq_obj1id[i])
            held[j] = float(m.qpos0[m.jnt_qposadr[j]] + m.eq_data[i][0])
    return held


def add_equalities(b: ModelBuilder, reader: Any) -> None:
    m = reader.m
    add = {CONNECT: _connect, WELD: _weld, JOINT: _joint, TENDON: _tendon}
    for i, name in enumerate(equality_names(m)):
        given = m.eq(i).name
        if not m.eq_active0[i]:
            reader.complain(f"equality '{name}' is not active and is ignored", "equality", given)
            continue
        kind = int(m.eq_type[i])
        if kind not in add:
            reader.complain(f"equality '{name}' of a flexible body is ignored", "equality", given)
            continue
        try:
            add[kind](b, reader, i, name)
        except ModelError as error:
            where = reader.compiled.element("equality", given)
            raise (where.error(str(error)) if where is not None else error) from None


def _ends(reader, i: int) -> list[str]:
    return [reader.names.body[x] for x in (reader.m.eq_obj1id[i], reader.m.eq_obj2id[i])]


def _site_frames(reader, i: int):
    """Bodies and frames of an equality between two sites."""
    m = reader.m
    sites = (m.eq_obj1id[i], m.eq_obj2id[i])
    bodies = [reader.names.body[m.site_bodyid[s]] for s in sites]
    return bodies, [(m.site_pos[s], quaternion_matrix(m.site_quat[s])) for s in sites]


def _connect(b: ModelBuilder, reader, i: int, name: str) -> None:
    m = reader.m
    if m.eq_objtype[i] == SITE:
        bodies, frames = _site_frames(reader, i)
    else:
        data = m.eq_data[i]
        bodies, frames = _ends(reader, i), [(data[:3], np.eye(3)), (data[3:6], np.eye(3))]
    _loop(b, name, "ball", bodies, frames)


def _weld(b: ModelBuilder, reader, i: int, name: str) -> None:
    """The anchor in body 2 meets the point and the axes of relpose in body 1."""
    m, data = reader.m, reader.m.eq_data[i]
    if m.eq_objtype[i] == SITE:
        bodies, frames = _site_frames(reader, i)
    else:
        R = quaternion_matrix(data[6:10] / np.linalg.norm(data[6:10]))
        bodies, frames = _ends(reader, i), [(data[3:6], R), (data[:3], np.eye(3))]
    _loop(b, name, "fixed" if data[10] != 0.0 else "ball", bodies, frames)


def _loop(b: ModelBuilder, name: str, kind: str, bodies, frames) -> None:
    (p, P), (s, S) = frames
    b.add_loop(
        name, kind, *bodies, predecessor_xyz=p, predecessor_R=P, successor_xyz=s, successor_R=S
    )


def _joint(b: ModelBuilder, reader, i: int, name: str) -> None:
    """y - y0 = sum of a_k (x - x0)^k."""
    m = reader.m
    y, x = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    if y in reader.fixed_at:
        return
    y0, x0 = (m.qpos0[m.jnt_qposadr[j]] for j in (y, x))
    follower, leader = reader.names.joint[y], reader.names.joint[x]
    shifted = Polynomial(m.eq_data[i][:5])(Polynomial([-x0, 1.0])) + y0
    a = np.zeros(5)
    a[: len(shifted.coef)] = shifted.coef
    if x in reader.fixed_at:
        raise ModelError(
            f"equality '{name}': joint '{leader}' is itself held by an equality; hold joint "
            f"'{follower}' at a constant, too"
        )
    if np.any(m.eq_data[i][2:5]):
        b.add_coupling(name, follower, leader=leader, polynomial=a)
    else:
        b.add_coupling(name, follower, ratios={leader: float(a[1])}, offset=float(a[0]))


def _tendon(b: ModelBuilder, reader, i: int, name: str) -> None:
    """Fixed tendons: the same polynomial between sums of joint positions."""
    m, given = reader.m, reader.m.eq(i).name
    ids = [int(t) for t in (m.eq_obj1id[i], m.eq_obj2id[i]) if t >= 0]
    terms = [_fixed_tendon(m, reader, t) for t in ids]
    if any(t is None for t in terms):
        reader.complain(
            f"equality '{name}' is ignored: it involves a spatial tendon", "equality", given
        )
        return
    y, x = terms[0], terms[1] if len(terms) > 1 else {}
    y0 = float(m.tendon_length0[ids[0]])
    x0 = float(m.tendon_length0[ids[1]]) if x else 0.0
    a = np.array(m.eq_data[i][:5])
    if not np.any(a[2:]):
        _linear_tendon(
            b, reader, name, y, x, a[1] if x else 0.0, y0 + a[0] - (a[1] * x0 if x else 0)
        )
        return
    joints = list(dict.fromkeys([*y, *x]))
    cy, cx = (np.array([t.get(j, 0.0) for j in joints]) for t in (y, x))

    def phi(q):
        d, value = cx @ q - x0, 0.0
        for c in a[::-1]:
            value = value * d + c
        return np.stack([cy @ q - y0 - value])

    b.add_constraint(name, phi=phi, joints=[reader.names.joint[j] for j in joints])


def _linear_tendon(b: ModelBuilder, reader, name, y: Any, x: Any, slope, constant) -> None:
    """sum y_j q_j - slope sum x_j q_j = constant, solved for the joint that weighs most."""
    total = dict(y)
    for j, c in x.items():
        total[j] = total.get(j, 0.0) - slope * c
    total = {j: c for j, c in total.items() if c}
    if len(total) < 2:
        raise ModelError(
            f"equality '{name}' holds one joint at a constant: write it as <joint> equality"
        )
    output = max(total, key=lambda j: (j in y, abs(total[j])))
    ratios = {reader.names.joint[j]: -c / total[output] for j, c in total.items() if j != output}
    b.add_coupling(
        name, reader.names.joint[output], ratios=ratios, offset=float(constant / total[output])
    )


def _fixed_tendon(m, reader, t: int) -> dict[int, float] | None:
    """Coefficients by joint of a fixed tendon, or None for a spatial one."""
    found: dict[int, float] = {}
    for w in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
        if m.wrap_type[w] != 1:  # mjWRAP_JOINT
            return None
        j = int(m.wrap_objid[w])
        found[j] = found.get(j, 0.0) + float(m.wrap_prm[w])
    return found
