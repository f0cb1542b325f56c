"""MJCF out: loops as connect, weld, joint and tendon equalities, to be looked at in MuJoCo.

Joints of several freedoms become several joints on one body, named like our coordinates. A revolute
loop becomes two connects on its axis. The assembled reference is the keyframe. What MJCF or MuJoCo
cannot take is an error that names it.
"""

from __future__ import annotations

import numpy as np

from ..algebra.spatial import Transform, matrix_quaternion
from ..mechanism.loops import LinearCoupling, Loop, LoopJoint, PolynomialCoupling
from ..mechanism.parts import WORLD, Body
from ..model import Model
from .write_urdf import attributes, loop_ends, refuse_if

MINIMUM = 1e-15  # MuJoCo's smallest mass and moment of a moving body
ARM = 0.1  # m between the two points of a revolute loop


def mjcf_text(model: Model) -> str:
    """The model as MJCF."""
    return mjcf_with_losses(model)[0]


def mjcf_with_losses(model: Model) -> tuple[str, list[str]]:
    """The model as MJCF, and what it loses without a change of the dynamics."""
    writer = _Writer(model)
    return writer.text(), writer.lost()


class _Writer:
    def __init__(self, model: Model):
        self.model = model
        self.children: dict[int, list[Body]] = {}
        for body in model.bodies:
            self.children.setdefault(body.parent, []).append(body)
        self.sites: dict[int, list[str]] = {}
        ends = {name for loop in model.loops if isinstance(loop, LoopJoint)
                for name, _ in loop_ends(model, loop)}  # fmt: skip
        self.touched = {body.index for body in model.bodies if body.name in ends}
        self.equalities: list[str] = []
        self.tendons: list[str] = []
        self.qpos: list[float] = []
        self.between: set[int] = set()  # bodies that are written as joints of another

    def text(self) -> str:
        model = self.model
        for frame in model.frames:
            self._site(frame.body, frame.name, frame.placement)
        for loop in model.loops:
            self._equality(loop)
        world = [*self.sites.get(WORLD, []), *self._bodies()]
        parts = [
            f"<mujoco {attributes(model=model.name)}>",
            '  <compiler angle="radian" autolimits="true"/>',
            f"  <option {attributes(gravity=model.gravity)}/>",
            '  <default><equality solref="0.005 1"/></default>',
            "  <worldbody>",
            *(f"    {line}" for line in world),
            "  </worldbody>",
        ]
        parts += _section("tendon", self.tendons) + _section("equality", self.equalities)
        parts += _section("actuator", [self._actuator(a) for a in model.actuators])
        key = attributes(name="reference", qpos=self.qpos) if self.qpos else ""
        parts += _section("keyframe", [f"<key {key}/>"] if key else [])
        return "\n".join([*parts, "</mujoco>", ""])

    def lost(self) -> list[str]:
        """What is not in the text, in words."""
        found, joints = [], self.model.joints
        if any(joint.velocity_limit is not None for joint in joints):
            found.append("MJCF has no velocity limits: they are not written")
        if any(joint.independent is not None for joint in joints):
            found.append("MJCF does not say which joints are independent: reading chooses them")
        frames = [f"'{f.name}'" for f in self.model.frames if f.body in self.between]
        if frames:
            shown = ", ".join(frames[:6]) + (", ..." if frames[6:] else "")
            found.append(f"MJCF has no frames between the joints of a body: without {shown}")
        return found

    def _bodies(self) -> list[str]:
        """The nested bodies, without recursion: (body, whether it is to be closed)."""
        lines: list[str] = []
        stack = [(body, False) for body in reversed(self.children.get(WORLD, []))]
        while stack:
            body, done = stack.pop()
            if done:
                lines.append("</body>")
                continue
            chain = self._chain(body)
            body = chain[-1]
            lines += self._open(chain)
            stack.append((body, True))
            stack += [(child, False) for child in reversed(self.children.get(body.index, []))]
        return lines

    def _chain(self, body: Body) -> list[Body]:
        """Bodies without mass up to the one that they carry: its joints are all on one body."""
        chain = [body]
        while self._is_between_joints(chain[-1]):
            self.between.add(chain[-1].index)
            chain += self.children[chain[-1].index]
        return chain

    def _is_between_joints(self, body: Body) -> bool:
        """True if nothing but one further joint hangs on a body without mass.

        A ball joint's position is a rotation in its own axes: the next joint must keep them.
        """
        after = self.children.get(body.index, [])
        bare = body.mass == 0.0 and not np.any(body.inertia) and body.index not in self.touched
        if not bare or len(after) != 1 or body.joint.kind == "free":
            return False
        turned = np.abs(after[0].joint.placement.E - np.eye(3)).max() > 0
        return not (turned and body.joint.kind == "spherical")

    def _open(self, chain: list[Body]) -> list[str]:
        body, X = chain[-1], Transform.identity()
        for link in chain:
            X = link.joint.placement @ X
        place = {} if body.joint.kind == "free" else {"pos": X.r, "quat": matrix_quaternion(X.E.T)}
        lines = [f"<body {attributes(name=body.name, **place)}>"]
        lines.append(f"  {self._inertial(body)}")
        for k, link in enumerate(chain):
            after = Transform.identity()  # from the link's frame into the body's
            for later in chain[k + 1 :]:
                after = later.joint.placement @ after
            lines += [f"  {line}" for line in self._joints(link, after)]
        for child in self.children.get(body.index, []):
            end = child.joint.placement.r
            if np.linalg.norm(end) > 1e-3:  # to look at; it has no part in the dynamics
                shape = attributes(fromto=[0, 0, 0, *end], size=0.01, mass=0.0)
                look = f'contype="0" conaffinity="0" {shape}'
                lines.append(f'  <geom type="capsule" {look}/>')
        return lines + [f"  {line}" for line in self.sites.get(body.index, [])]

    def _inertial(self, body: Body) -> str:
        moments, R = np.linalg.eigh(body.inertia)
        moments, R = moments[::-1], R[:, ::-1]
        R = R * np.sign(np.linalg.det(R))
        a, b, c = moments
        refuse_if(
            body.mass < MINIMUM or c < MINIMUM,
            f"MuJoCo refuses moving bodies without mass or inertia: '{body.name}' has "
            f"{body.mass:g} kg and moments {moments.tolist()} kg m²; weld it, give it inertia, or "
            "save as URDF",
        )
        refuse_if(
            b + c < a,
            f"MuJoCo refuses the inertia of body '{body.name}': its moments {moments.tolist()} "
            "kg m² violate the triangle inequality; correct it, or save as URDF",
        )
        inertia = attributes(
            pos=body.com, mass=body.mass, diaginertia=moments, quat=matrix_quaternion(R)
        )
        return f"<inertial {inertia}/>"

    def _joints(self, body: Body, after: Transform) -> list[str]:
        """The joints of a body; `after` leads from its frame, at zero, into that of the element."""
        joint, motion = body.joint, body.joint.motion
        self.qpos += [float(x) for x in self.model.reference[body.index]]
        given = {"armature": joint.armature} if joint.armature else {}
        for name, value in (("damping", joint.damping), ("frictionloss", joint.friction),
                            ("stiffness", joint.stiffness)):  # fmt: skip
            if value:
                given[name] = value
        if joint.stiffness:
            given["springref"] = joint.rest
        if joint.kind == "free":
            self._check_free(body)
            return [f"<joint {attributes(name=joint.name, type='free', **given)}/>"]
        anchor = -after.E @ after.r
        if np.abs(anchor).max() > 0:
            given["pos"] = anchor
        if joint.kind == "spherical":
            return [f"<joint {attributes(name=joint.name, type='ball', **given)}/>"]
        axes = {
            "revolute": lambda: [("hinge", motion.axis)],
            "continuous": lambda: [("hinge", motion.axis)],
            "prismatic": lambda: [("slide", motion.axis)],
            "universal": lambda: [("hinge", motion.axis), ("hinge", motion.axis2)],
            "cylindrical": lambda: [("hinge", motion.axis), ("slide", motion.axis)],
            "planar": lambda: [
                ("slide", motion.axis_x),
                ("slide", np.cross(motion.axis, motion.axis_x)),
                ("hinge", motion.axis),
            ],
        }
        refuse_if(
            joint.kind not in axes,
            f"MJCF has no {joint.kind} joint: '{joint.name}'; model it as a slide coupled to a "
            "hinge",
        )
        low, high = joint.lower, joint.upper
        if joint.nv == 1 and low is not None and high is not None and low < high:
            given["range"] = [low, high]
        if joint.nv == 1 and joint.effort_limit:
            given["actuatorfrcrange"] = [-joint.effort_limit, joint.effort_limit]
        names = joint.names(motion.labels)
        return [
            f"<joint {attributes(name=name, type=kind, axis=after.E @ axis, **given)}/>"
            for name, (kind, axis) in zip(names, axes[joint.kind](), strict=True)
        ]

    def _check_free(self, body: Body) -> None:
        joint = body.joint
        at_origin = np.abs(joint.placement.r).max() == 0 and np.allclose(
            joint.placement.E, np.eye(3), atol=1e-15
        )
        refuse_if(
            body.parent != WORLD or not at_origin,
            f"MJCF has free joints only between the world and a body: '{joint.name}'",
        )
        for what in ("armature", "friction"):
            refuse_if(
                getattr(joint, what) != 0.0,
                f"{what} of the free joint '{joint.name}' means something else in MuJoCo, whose "
                "linear velocity is the world's: remove it",
            )

    def _site(self, body: int, name: str, X) -> str:
        given = attributes(name=name, pos=X.r, quat=matrix_quaternion(X.E.T), size=0.005)
        self.sites.setdefault(body, []).append(f"<site {given}/>")
        return name

    def _equality(self, loop: Loop) -> None:
        if isinstance(loop, LinearCoupling):
            self._coupling(loop)
        elif isinstance(loop, PolynomialCoupling):
            refuse_if(
                len(loop.coefficients) > 5 and bool(np.any(loop.coefficients[5:])),
                f"MJCF's polynomials are quartic: coupling '{loop.name}' has more terms",
            )
            self._polynomial(loop, [*loop.coefficients, 0.0, 0.0, 0.0, 0.0][:5])
        else:
            self._loop_joint(loop)

    def _polynomial(self, loop, coefficients) -> None:
        given = attributes(
            name=loop.name, joint1=loop.outputs[0].joint.name, joint2=loop.inputs[0].joint.name,
            polycoef=coefficients,
        )  # fmt: skip
        self.equalities.append(f"<joint {given}/>")

    def _coupling(self, loop: LinearCoupling) -> None:
        if len(loop.inputs) == 1:
            self._polynomial(loop, [loop.offset, loop.ratios[0], 0.0, 0.0, 0.0])
            return
        sums = {"out": [(loop.outputs[0], 1.0)], "in": zip(loop.inputs, loop.ratios, strict=True)}
        for end, terms in sums.items():
            joints = [
                f"  <joint {attributes(joint=body.joint.name, coef=c)}/>" for body, c in terms
            ]
            name = attributes(name=f"{loop.name}/{end}")
            self.tendons += [f"<fixed {name}>", *joints, "</fixed>"]
        given = attributes(
            name=loop.name, tendon1=f"{loop.name}/out", tendon2=f"{loop.name}/in",
            polycoef=[loop.offset, 1.0, 0.0, 0.0, 0.0],
        )  # fmt: skip
        self.equalities.append(f"<tendon {given}/>")

    def _loop_joint(self, loop: Loop) -> None:
        known = isinstance(loop, LoopJoint) and loop.kind in ("ball", "fixed", "revolute")
        refuse_if(
            not known,
            f"MJCF cannot say what loop '{loop.name}' is ({loop.describe()}): it knows balls, "
            "welds, revolutes and couplings",
        )
        index = {body.name: body.index for body in self.model.bodies} | {"world": WORLD}
        ends = loop_ends(self.model, loop)
        tag = "weld" if loop.kind == "fixed" else "connect"
        points = [("", np.zeros(3))]
        if loop.kind == "revolute":
            points.append(("/axis", ARM * loop.axis))
        for suffix, offset in points:
            sites = []
            for side, (name, X) in zip("PS", ends, strict=True):
                moved = type(X)(X.E, X.r + X.E.T @ offset)
                sites.append(self._site(index[name], f"{loop.name}{suffix}/{side}", moved))
            given = attributes(name=loop.name + suffix, site1=sites[0], site2=sites[1])
            self.equalities.append(f"<{tag} {given}/>")

    def _actuator(self, actuator) -> str:
        joint = self.model.bodies[actuator.joint].joint
        refuse_if(
            joint.nv != 1,
            f"actuator '{actuator.name}' drives the {joint.kind} joint '{joint.name}': not written",
        )
        given = {"name": actuator.name, "joint": joint.name, "gear": actuator.gear}
        if actuator.effort_limit:
            given["forcerange"] = [-actuator.effort_limit, actuator.effort_limit]
        return f"<motor {attributes(**given)}/>"


def _section(tag: str, lines: list[str]) -> list[str]:
    return [f"  <{tag}>", *(f"    {line}" for line in lines), f"  </{tag}>"] if lines else []
