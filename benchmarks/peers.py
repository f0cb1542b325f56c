"""The same robot in Pinocchio and MuJoCo, with the same state."""

from __future__ import annotations

from functools import partial
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import grubler as gb
from grubler.algebra.spatial import matrix_quaternion


def example_urdf(path: str) -> Path:
    """A robot of the package example-robot-data."""
    prefix = "cmeel.prefix/share/example-robot-data/robots"
    return Path(distribution("example-robot-data").locate_file(f"{prefix}/{path}"))


class Pinocchio:
    """A tree of ours as a Pinocchio model, joint by joint; its state in Pinocchio's layout.

    Joints are added depth first: Pinocchio's sparse factorizations (`constraintDynamics`) take a
    joint's subtree to be numbered in one run, and compute something else where it is not.
    """

    def __init__(self, model: gb.Model):
        import pinocchio as pin

        self.pin, self.ours = pin, model
        self.model = pin.Model()
        self.model.gravity.linear = np.array(model.gravity)
        self.ids = {-1: 0}
        for body in depth_first(model):
            place = body.joint.placement
            self.ids[body.index] = self.model.addJoint(
                self.ids[body.parent], self._joint(body), pin.SE3(place.E.T, place.r),
                body.joint.name,
            )  # fmt: skip
            inertia = pin.Inertia(float(body.mass), np.array(body.com), np.array(body.inertia))
            self.model.appendBodyToJoint(self.ids[body.index], inertia, pin.SE3.Identity())
            self.model.armature[-body.joint.nv :] = body.joint.armature
        self.data = self.model.createData()
        self.iq, self.iv = self._order()

    def _order(self):
        """Which element of our q and v stands at each place of Pinocchio's."""
        iq, iv = np.zeros(self.model.nq, dtype=int), np.zeros(self.model.nv, dtype=int)
        for cluster in self.ours.clusters:
            (body,) = cluster.bodies
            joint = self.model.joints[self.ids[body]]
            q, v = np.arange(self.ours.nq)[cluster.q], np.arange(self.ours.nv)[cluster.v]
            if self.ours.bodies[body].joint.kind == "free":  # xyzw, linear first
                q, v = q[[0, 1, 2, 4, 5, 6, 3]], v[[3, 4, 5, 0, 1, 2]]
            iq[joint.idx_q : joint.idx_q + joint.nq] = q
            iv[joint.idx_v : joint.idx_v + joint.nv] = v
        return iq, iv

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
        """q, v and a force or acceleration in Pinocchio's layout."""
        return q[self.iq], v[self.iv], x[self.iv]

    def back(self, x):
        """A velocity, force or acceleration in our layout."""
        out = np.empty(len(x))
        out[self.iv] = x
        return out

    def constraints(self, constraints):
        """Their contact models and data, on frames of our model: points and welds."""
        pin = self.pin
        models, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for c in constraints:
            frame = self.ours.frame(c.frame)
            kind = pin.ContactType.CONTACT_3D if c.rows == "point" else pin.ContactType.CONTACT_6D
            place = pin.SE3(np.array(frame.placement.E.T), np.array(frame.placement.r))
            joint = self.ids[frame.body]
            contact = pin.RigidConstraintModel(
                kind, self.model, joint, place, pin.ReferenceFrame.LOCAL
            )
            models.append(contact)
            data.append(contact.createData())
        return models, data

    def constrained_call(self, constraints, state, damping=0.0, iterations=1):
        """A call of pin.constraintDynamics without arguments."""
        models, data = self.constraints(constraints)
        self.pin.initConstraintDynamics(self.model, self.data, models, data)
        settings = self.pin.ProximalSettings(1e-12, damping, iterations)
        return partial(
            self.pin.constraintDynamics, self.model, self.data, *self.state(*state), models, data,
            settings,
        )  # fmt: skip


def depth_first(model: gb.Model, parent: int = -1):
    """The bodies, each followed by all that hangs on it."""
    for body in model.bodies:
        if body.parent == parent:
            yield body
            yield from depth_first(model, body.index)


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
