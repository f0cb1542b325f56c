"""The same robot in Pinocchio and MuJoCo, with the same state."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import grubler as gb
from grubler.spatial import matrix_quaternion


def example_urdf(path: str) -> Path:
    """A robot of the package example-robot-data."""
    prefix = "cmeel.prefix/share/example-robot-data/robots"
    return Path(distribution("example-robot-data").locate_file(f"{prefix}/{path}"))


class Pinocchio:
    """A tree of ours as a Pinocchio model, joint by joint; its state in Pinocchio's layout."""

    def __init__(self, model: gb.Model):
        import pinocchio as pin

        self.pin, self.ours = pin, model
        self.model = pin.Model()
        self.model.gravity.linear = np.array(model.gravity)
        ids = {-1: 0}
        for body in model.bodies:
            place = body.joint.placement
            ids[body.index] = self.model.addJoint(
                ids[body.parent], self._joint(body), pin.SE3(place.E.T, place.r), body.joint.name
            )
            inertia = pin.Inertia(float(body.mass), np.array(body.com), np.array(body.inertia))
            self.model.appendBodyToJoint(ids[body.index], inertia, pin.SE3.Identity())
        self.data = self.model.createData()

    def _joint(self, body):
        pin, joint = self.pin, body.joint
        if joint.kind == "free":
            return pin.JointModelFreeFlyer()
        along = np.flatnonzero(joint.motion.axis)
        aligned = len(along) == 1 and joint.motion.axis[along[0]] > 0
        if joint.kind in ("revolute", "continuous"):
            if aligned:
                return (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)[along[0]]()
            return pin.JointModelRevoluteUnaligned(np.array(joint.motion.axis))
        if joint.kind == "prismatic":
            if aligned:
                return (pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ)[along[0]]()
            return pin.JointModelPrismaticUnaligned(np.array(joint.motion.axis))
        raise ValueError(f"no Pinocchio twin here for a {joint.kind} joint")

    def state(self, q, v, x):
        """q, v and a force or acceleration in Pinocchio's layout (xyzw, linear first)."""
        if self.ours.joints[0].kind != "free":
            return q.copy(), v.copy(), x.copy()
        swap = [3, 4, 5, 0, 1, 2]
        q = np.concatenate([q[:3], q[4:7], q[3:4], q[7:]])
        return q, *(np.concatenate([y[swap], y[6:]]) for y in (v, x))

    def back(self, x):
        if self.ours.joints[0].kind != "free":
            return np.array(x)
        return np.concatenate([x[[3, 4, 5, 0, 1, 2]], x[6:]])


class MuJoCo:
    """A tree of ours as an MJCF text; rotors, if any, as equality-coupled bodies or as armature."""

    def __init__(self, model: gb.Model, armature=None):
        import mujoco

        self.mujoco, self.ours = mujoco, model
        self.model = mujoco.MjModel.from_xml_string(mjcf(model, armature))
        self.data = mujoco.MjData(self.model)

    def set_state(self, q, v, tau):
        """Positions and velocities of all tree joints; torques on the independent ones."""
        span = gb.spanning_state(self.ours, q, v)
        ours, mujoco = self.ours, self.mujoco
        at_q = at_v = 0
        by_name = dict(zip(ours.v_names, tau, strict=True))
        for index in ours.spanning_order:
            joint = ours.bodies[index].joint
            q_i, v_i = (
                span.positions[at_q : at_q + joint.nq],
                span.velocities[at_v : at_v + joint.nv],
            )
            at_q, at_v = at_q + joint.nq, at_v + joint.nv
            number = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
            adr_q, adr_v = self.model.jnt_qposadr[number], self.model.jnt_dofadr[number]
            tau_i = np.array([by_name.get(n, 0.0) for n in joint.names(joint.motion.labels)])
            if joint.kind == "free":  # linear first and in world axes
                R = ours.bodies[index].joint.motion.transform(q_i).E.T
                v_i = np.concatenate([R @ v_i[3:], v_i[:3]])
                tau_i = np.concatenate([R @ tau_i[3:], tau_i[:3]])
            self.data.qpos[adr_q : adr_q + joint.nq] = q_i
            self.data.qvel[adr_v : adr_v + joint.nv] = v_i
            self.data.qfrc_applied[adr_v : adr_v + joint.nv] = tau_i

    def forward(self):
        self.mujoco.mj_forward(self.model, self.data)


def mjcf(model: gb.Model, armature=None) -> str:
    """The tree with linear couplings as joint equalities; contact and collision switched off."""

    def numbers(x):
        return " ".join(repr(float(y)) for y in np.ravel(x))

    def body(parent: int, indent: str) -> str:
        text = ""
        for b in model.bodies:
            if b.parent != parent:
                continue
            place, joint = b.joint.placement, b.joint
            extra = ""
            if armature is not None and joint.name in armature:
                extra = f' armature="{float(armature[joint.name])!r}"'
            if joint.kind == "free":
                tag = f'<freejoint name="{joint.name}"/>'
            else:
                kind = "slide" if joint.kind == "prismatic" else "hinge"
                axis = numbers(joint.motion.axis)
                tag = f'<joint name="{joint.name}" type="{kind}" axis="{axis}"{extra}/>'
            full = b.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            text += (
                f'{indent}<body name="{b.name}" pos="{numbers(place.r)}" '
                f'quat="{numbers(matrix_quaternion(place.E.T))}">{tag}'
                f'<inertial mass="{b.mass!r}" pos="{numbers(b.com)}" '
                f'fullinertia="{numbers(full)}"/>\n'
                f"{body(b.index, indent + ' ')}{indent}</body>\n"
            )
        return text

    equalities = "".join(
        f'<joint joint1="{loop.outputs[0].joint.name}" joint2="{loop.inputs[0].joint.name}" '
        f'polycoef="{loop.offset!r} {float(loop.ratios[0])!r} 0 0 0"/>'
        for loop in model.loops
    )
    return (
        f'<mujoco><compiler angle="radian" balanceinertia="true" boundmass="1e-9" '
        f'boundinertia="1e-12"/><option gravity="{numbers(model.gravity)}">'
        f'<flag contact="disable"/></option>'
        f"<worldbody>\n{body(-1, ' ')}</worldbody><equality>{equalities}</equality></mujoco>"
    )
