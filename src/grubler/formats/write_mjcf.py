"""MJCF out: loops as connect, weld, joint and tendon equalities, to be looked at in MuJoCo.

Joints of several freedoms become several joints on one body, named like our coordinates. A revolute
loop becomes two connects on its axis. The assembled reference is the keyframe. What MJCF or MuJoCo
cannot take is an error that names it.
"""

from __future__ import annotations

import numpy as np

from ..loops import LinearCoupling, Loop, LoopJoint, PolynomialCoupling
from ..model import Model
from ..parts import WORLD, Body
from ..spatial import matrix_quaternion
from .write_urdf import attributes, loop_ends, refuse_if

MINIMUM = 1e-15  # MuJoCo's smallest mass and moment of a moving body
ARM = 0.1  # m between the two points of a revolute loop


def mjcf_text(model: Model) -> str:
    """The model as MJCF."""
    return _Writer(model).text()


class _Writer:
    def __init__(self, model: Model):
        self.model = model
        self.children: dict[int, list[Body]] = {}
        for body in model.bodies:
            self.children.setdefault(body.parent, []).append(body)
        self.sites: dict[int, list[str]] = {}
        self.equalities: list[str] = []
        self.tendons: list[str] = []
        self.qpos: list[float] = []

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

    def _bodies(self) -> list[str]:
        """The nested bodies, without recursion: (body, whether it is to be closed)."""
        lines: list[str] = []
        stack = [(body, False) for body in reversed(self.children.get(WORLD, []))]
        while stack:
            body, done = stack.pop()
            if done:
                lines.append("</body>")
                continue
            lines += self._open(body)
            stack.append((body, True))
            stack += [(child, False) for child in reversed(self.children.get(body.index, []))]
        return lines

    def _open(self, body: Body) -> list[str]:
        X = body.joint.placement
        place = {} if body.joint.kind == "free" else {"pos": X.r, "quat": matrix_quaternion(X.E.T)}
        lines = [f"<body {attributes(name=body.name, **place)}>"]
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
        lines.append(f"  <inertial {inertia}/>")
        lines += [f"  {line}" for line in self._joints(body)]
        for child in self.children.get(body.index, []):
            end = child.joint.placement.r
            if np.linalg.norm(end) > 1e-3:  # to look at; it has no part in the dynamics
                shape = attributes(fromto=[0, 0, 0, *end], size=0.01, mass=0.0)
                look = f'contype="0" conaffinity="0" {shape}'
                lines.append(f'  <geom type="capsule" {look}/>')
        return lines + [f"  {line}" for line in self.sites.get(body.index, [])]

    def _joints(self, body: Body) -> list[str]:
        joint, motion = body.joint, body.joint.motion
        self.qpos += [float(x) for x in self.model.reference[body.index]]
        inertia = {"armature": joint.armature} if joint.armature else {}
        for name, value in (("damping", joint.damping), ("frictionloss", joint.friction),
                            ("stiffness", joint.stiffness)):  # fmt: skip
            if value:
                inertia[name] = value
        if joint.stiffness:
            inertia["springref"] = joint.rest
        if joint.kind == "free":
            at_origin = np.abs(joint.placement.r).max() == 0 and np.allclose(
                joint.placement.E, np.eye(3), atol=1e-15
            )
            refuse_if(
                body.parent != WORLD or not at_origin,
                f"MJCF has free joints only between the world and a body: '{joint.name}'",
            )
            refuse_if(
                joint.armature != 0.0,
                f"armature of the free joint '{joint.name}' means something else in MuJoCo, whose "
                "linear velocity is the world's: remove it",
            )
            refuse_if(
                joint.friction != 0.0,
                f"friction of the free joint '{joint.name}' means something else in MuJoCo, whose "
                "linear velocity is the world's: remove it",
            )
            return [f"<joint {attributes(name=joint.name, type='free', **inertia)}/>"]
        if joint.kind == "spherical":
            return [f"<joint {attributes(name=joint.name, type='ball', **inertia)}/>"]
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
        limits = inertia
        low, high = joint.lower, joint.upper
        if joint.nv == 1 and low is not None and high is not None and low < high:
            limits["range"] = [low, high]
        if joint.nv == 1 and joint.effort_limit:
            limits["actuatorfrcrange"] = [-joint.effort_limit, joint.effort_limit]
        names = joint.names(motion.labels)
        return [
            f"<joint {attributes(name=name, type=kind, axis=axis, **limits)}/>"
            for name, (kind, axis) in zip(names, axes[joint.kind](), strict=True)
        ]

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
