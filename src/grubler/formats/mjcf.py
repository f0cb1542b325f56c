"""MJCF through MuJoCo's own parser: defaults, includes, frames and inertias are its business.

The compiled model is read: bodies, joints with their armature, equality constraints as loops,
actuators, sites as frames, a keyframe as the guess from which the loops are assembled. Positions
are MuJoCo's own (`qpos`), so that converting a state needs no offsets. Missing meshes and textures
are left out; the dynamics does not need them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..algebra.spatial import Transform, axis_rotation, quaternion_matrix
from ..errors import InputError, ModelError, unknown
from ..model.builder import ModelBuilder
from ._description import Description, add_body
from ._files import Files
from ._geometry import add_offset_joint, placed
from ._report import Complaints
from ._xml import is_text, read_xml
from .colliders import mjcf_colliders
from .mjcf_compile import Compiled, compile_mjcf, mujoco
from .mjcf_equality import add_equalities, constant_joints
from .shapes import mjcf_shapes

KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}


def describe_mjcf(
    source: str | Path,
    *,
    base: str | None = None,
    strict: bool = False,
    keyframe: str | int | None = None,
    files: Files | None = None,
) -> Description:
    """Read an MJCF file or text.

    `base="fixed"` welds free joints where they stand, `base="free"` frees bodies that are welded
    to the world and carry joints. `keyframe` names the one that assembly starts from (default the
    first; MuJoCo's qpos0 where there is none).
    """
    if base not in (None, "fixed", "free"):
        raise InputError(f"base is 'fixed' or 'free', not {base!r}")
    root = read_xml(source, files)
    if root.tag != "mujoco":
        raise root.error("an MJCF starts with <mujoco>")
    complaints = Complaints(strict)
    name = "" if is_text(source) else Path(source).name
    compiled = compile_mjcf(source, root, complaints, files)
    return _Reader(compiled, name, base, complaints).read(keyframe)


class _Reader:
    """One compiled model; bodies and joints get names where the file gives none."""

    def __init__(self, compiled: Compiled, source: str, base: str | None, complaints: Complaints):
        self.compiled, self.m, self.source = compiled, compiled.model, source
        self.base, self.complaints = base, complaints
        self.names = Names(compiled)
        self.fixed_at: dict[int, float] = {}  # joints that an equality holds at a constant

    def read(self, keyframe: str | int | None) -> Description:
        m = self.m
        b = ModelBuilder(self.compiled.title, gravity=tuple(m.opt.gravity))
        self.fixed_at = constant_joints(self.m)
        qpos = self._guess(keyframe)
        reference: dict[str, np.ndarray | float] = {}
        for body in range(1, m.nbody):
            self._add_body(b, body)
        for body in range(1, m.nbody):
            reference |= self._add_joints(b, body, qpos)
        add_equalities(b, self)
        self._add_sites(b)
        self._add_actuators(b)
        self._name_the_rest()
        shapes = mjcf_shapes(m, self.names.body, self.compiled.lost)
        mjcf_colliders(b, m, self.names.body, self.compiled.lost_contact)
        return Description(b, self.complaints, self.source, reference, shapes)

    def complain(self, what: str, tag: str = "", name: str = "") -> None:
        line = self.compiled.line(tag, name)
        self.complaints.add(what, line or (self.source, 0))

    def _guess(self, keyframe: str | int | None) -> np.ndarray:
        m = self.m
        if keyframe is None:
            return m.key_qpos[0] if m.nkey else self._zero_within_limits()
        keys = {m.key(i).name or str(i): i for i in range(m.nkey)}
        if isinstance(keyframe, bool) or not isinstance(keyframe, (str, int)):
            raise InputError(f"keyframe is a name or a number, not {type(keyframe).__name__}")
        if isinstance(keyframe, int) and 0 <= keyframe < m.nkey:
            return m.key_qpos[keyframe]
        if keyframe not in keys:
            raise InputError(unknown("keyframe", keyframe, keys))
        return m.key_qpos[keys[keyframe]]

    def _zero_within_limits(self) -> np.ndarray:
        """qpos0, with joints that would stand beyond their range at its nearer end."""
        m, qpos = self.m, self.m.qpos0.copy()
        for j in range(m.njnt):
            (low, high), at = m.jnt_range[j], m.jnt_qposadr[j]
            if m.jnt_limited[j] and low < high and self._kind(j) in ("revolute", "prismatic"):
                qpos[at] = np.clip(qpos[at], low, high)
        return qpos

    def _add_body(self, b: ModelBuilder, body: int) -> None:
        m = self.m
        R = quaternion_matrix(m.body_iquat[body])
        inertia = R @ np.diag(m.body_inertia[body]) @ R.T
        name = self.names.body[body]
        at = self.compiled.element("body", name)
        add_body(
            b, name, float(m.body_mass[body]), m.body_ipos[body], (inertia + inertia.T) / 2, at,
            self.complaints,
        )  # fmt: skip

    def _add_joints(self, b: ModelBuilder, body: int, qpos: np.ndarray) -> dict[Any, Any]:
        """The joints of a body in their order, massless bodies between them."""
        m, reference = self.m, {}
        joints = range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body])
        parent, name = self.names.body[m.body_parentid[body]], self.names.body[body]
        X = placed(m.body_pos[body], quaternion_matrix(m.body_quat[body]))
        welded = self.base == "fixed" and len(joints) > 0 and self._kind(joints[0]) == "free"
        moving = [] if welded else [j for j in joints if j not in self.fixed_at]
        for j in () if welded else joints:
            if j in self.fixed_at:
                X = self._held(j) @ X
                continue
            joint = self.names.joint[j]
            last = j == moving[-1] and j == joints[-1]
            child = name if last else f"{name}/{joint}/end"
            if not last:
                b.add_body(child)
            if self._kind(j) == "free":
                passive = self._passive(j)
                for what in ("armature", "friction"):  # of world axes there, of the body's here
                    if (self._armature(j) if what == "armature" else passive.pop(what, 0.0)) != 0.0:
                        self.complain(f"{what} of free joint '{joint}' is ignored", "joint", joint)
                b.add_joint(joint, "free", "world", child, **passive)
            else:
                self._add_joint(b, j, joint, parent, child, X)
            reference[joint] = self._position(j, qpos)
            parent, X = child, Transform.identity()
        if parent != name:
            free = self.base == "free" and m.body_parentid[body] == 0 and self._carries(body)
            if free and not moving:
                b.add_joint(f"{name}_free", "free", "world", name)
                reference[f"{name}_free"] = np.concatenate([X.r, m.body_quat[body]])
            else:
                b.add_joint(f"{name}/fixed", "fixed", parent, name, xyz=X.r, R=X.E.T)
        return reference

    def _carries(self, body: int) -> bool:
        """Whether any joint moves below a body."""
        below = {body}
        for i in range(body + 1, self.m.nbody):
            if self.m.body_parentid[i] in below:
                if self.m.body_jntnum[i]:
                    return True
                below.add(i)
        return False

    def _kind(self, j: int) -> str:
        return KINDS[("free", "ball", "slide", "hinge")[int(self.m.jnt_type[j])]]

    def _armature(self, j: int) -> float:
        return float(self.m.dof_armature[self.m.jnt_dofadr[j]])

    def _position(self, j: int, qpos: np.ndarray) -> np.ndarray:
        size = {"free": 7, "spherical": 4}.get(self._kind(j), 1)
        start = self.m.jnt_qposadr[j]
        return np.array(qpos[start : start + size])

    def _held(self, j: int) -> Transform:
        """The constant motion of a joint that an equality holds."""
        m, value = self.m, self.fixed_at[j] - self.m.qpos0[self.m.jnt_qposadr[j]]
        axis, anchor = m.jnt_axis[j], m.jnt_pos[j]
        if self._kind(j) == "prismatic":
            return placed(axis * value, np.eye(3))
        R = axis_rotation(axis, np.cos(value), np.sin(value))
        return placed(anchor - R @ anchor, R)

    def _add_joint(self, b: ModelBuilder, j: int, joint: str, parent, child, X) -> None:
        """qpos is the joint's own position: the placement goes back by qpos0."""
        m, kind = self.m, self._kind(j)
        axis, anchor, options = m.jnt_axis[j], m.jnt_pos[j], {"armature": self._armature(j)}
        options |= self._passive(j)
        if kind != "spherical":
            options["axis"] = axis
            zero = -m.qpos0[m.jnt_qposadr[j]]
            if kind == "prismatic":
                X = placed(axis * zero, np.eye(3)) @ X
            elif zero:
                R = axis_rotation(axis / np.linalg.norm(axis), np.cos(zero), np.sin(zero))
                X = placed(anchor - R @ anchor, R) @ X
            if m.jnt_limited[j]:
                options |= {"lower": float(m.jnt_range[j][0]), "upper": float(m.jnt_range[j][1])}
            if m.jnt_actfrclimited[j]:
                options["effort_limit"] = float(np.abs(m.jnt_actfrcrange[j]).max())
        try:
            add_offset_joint(b, joint, kind, parent, child, X, anchor, **options)
        except ModelError as error:
            raise ModelError(f"{self.source or 'text'}, joint '{joint}': {error}") from None

    def _passive(self, j: int) -> dict[str, float]:
        """Damping, friction loss and spring of a joint, where the file has them switched on."""
        m, bits, dof = self.m, mujoco().mjtDisableBit, self.m.jnt_dofadr[j]

        def on(name: str) -> bool:  # one flag for all passive forces before MuJoCo 3.4
            bit = getattr(bits, f"mjDSBL_{name}", getattr(bits, "mjDSBL_PASSIVE", 0))
            return not m.opt.disableflags & int(bit)

        found = {}
        if on("DAMPER"):
            found["damping"] = float(m.dof_damping[dof])
        if on("FRICTIONLOSS"):
            found["friction"] = float(m.dof_frictionloss[dof])
        if self._kind(j) in ("revolute", "prismatic") and on("SPRING"):
            found["stiffness"] = float(m.jnt_stiffness[j])
            found["rest"] = float(m.qpos_spring[m.jnt_qposadr[j]])
        return found

    def _add_sites(self, b: ModelBuilder) -> None:
        m, taken = self.m, set(self.names.body)
        for i in range(m.nsite):
            name = m.site(i).name
            if not name:
                continue
            if name in taken:
                self.complain(
                    f"site '{name}' is ignored: a body or site has that name", "site", name
                )
                continue
            taken.add(name)
            body = self.names.body[m.site_bodyid[i]]
            b.add_frame(name, body, m.site_pos[i], R=quaternion_matrix(m.site_quat[i]))

    def _add_actuators(self, b: ModelBuilder) -> None:
        """Motors on joints of one freedom; what a servo adds to the force is named."""
        m = self.m
        taken: set[str] = set()
        for i in range(m.nu):
            name = m.actuator(i).name or f"actuator_{i}"
            trn, (target, _) = int(m.actuator_trntype[i]), m.actuator_trnid[i]
            single = trn in (0, 1) and self._kind(target) in ("revolute", "prismatic")
            if not single or target in self.fixed_at or name in taken:
                self.complain(f"actuator '{name}' is ignored: only motors on hinges and slides "
                              "are read", "actuator", name)  # fmt: skip
                continue
            taken.add(name)
            gear = float(m.actuator_gear[i][0])
            limit = None
            if m.actuator_forcelimited[i]:
                limit = float(np.abs(m.actuator_forcerange[i]).max())
            elif m.actuator_ctrllimited[i] and not m.actuator_biastype[i]:
                limit = float(np.abs(m.actuator_ctrlrange[i] * m.actuator_gainprm[i][0]).max())
            if m.actuator_biastype[i]:
                self.complain(f"actuator '{name}' is read as a motor: its servo law (bias and "
                              "gain) is ignored", "actuator", name)  # fmt: skip
            b.add_actuator(name, self.names.joint[target], gear, limit)

    def _name_the_rest(self) -> None:
        """Forces of the file that the model does not have."""
        m = self.m
        stiff, names = np.asarray(m.jnt_stiffness), self.names.joint
        turning = [j for j in range(m.njnt) if self._kind(j) in ("spherical", "free")]
        self._name_joints("stiffness", [names[j] for j in turning if np.any(stiff[j])])
        for what, rows in (("nonlinear stiffness", "jnt_stiffnesspoly"),
                           ("nonlinear damping", "dof_dampingpoly")):  # fmt: skip
            values = np.asarray(getattr(m, rows, np.zeros((0, 1))))
            owner = range(m.njnt) if rows.startswith("jnt") else m.dof_jntid
            found = [names[j] for j, x in zip(owner, values) if np.any(x)]
            self._name_joints(what, list(dict.fromkeys(found)))
        if np.any(m.body_gravcomp):
            self.complain("gravity compensation (gravcomp) is ignored")
        if m.opt.density or m.opt.viscosity or np.any(m.opt.wind):
            self.complain("the fluid forces of <option> are ignored")
        if m.nflex:
            self.complain(f"{m.nflex} flexible bodies are ignored")
        if m.nmocap:
            self.complain(f"{m.nmocap} mocap bodies are read as fixed to the world")
        for i in range(m.ntendon):
            name = m.tendon(i).name or str(i)
            if np.any(m.tendon_stiffness[i]) or np.any(m.tendon_damping[i]):
                self.complain(
                    f"stiffness and damping of tendon '{name}' are ignored", "tendon", name
                )
            if m.tendon_limited[i] or m.tendon_frictionloss[i]:
                self.complain(f"limit and friction of tendon '{name}' are ignored", "tendon", name)
            if m.tendon_armature[i]:
                self.complain(f"armature of tendon '{name}' is ignored", "tendon", name)

    def _name_joints(self, what: str, names: list[str]) -> None:
        if names:
            shown = ", ".join(names[:4]) + (", ..." if names[4:] else "")
            count = f"{len(names)} joints" if names[1:] else "joint"
            self.complain(f"{what} of {count} ({shown}) is ignored", "joint", names[0])


class Names:
    """Names of bodies and joints; unnamed ones are called after their number or their body."""

    def __init__(self, compiled: Compiled):
        m = compiled.model
        taken = {"world"}
        self.body: list[str] = ["world"]
        for i in range(1, m.nbody):
            self.body.append(_free_name(m.body(i).name or f"body_{i}", taken))
        self.joint: list[str] = []
        taken = set()
        for j in range(m.njnt):
            name = m.joint(j).name
            if not name:
                body = self.body[m.jnt_bodyid[j]]
                count = m.body_jntnum[m.jnt_bodyid[j]]
                suffix = f"_{j - m.body_jntadr[m.jnt_bodyid[j]]}" if count > 1 else ""
                name = f"{body}_joint{suffix}"
            self.joint.append(_free_name(name, taken))


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
