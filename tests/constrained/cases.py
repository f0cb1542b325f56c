"""Robots with sets of constraints, and chains made for scaling."""

from __future__ import annotations

import mpmath as mp
import numpy as np

import grubler as gb
from grubler.constrained import Constraint, residual
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.plan import row_levers, squares

LEGS = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]
TOES, HANDS = ["right_toe_contact", "left_toe_contact"], ["right_hand_contact", "left_hand_contact"]
T_TOES, T_HANDS = ["left-toe_contact", "right-toe_contact"], ["left-hand-contact"]


def points(names):
    return [Constraint(name, "point") for name in names]


def welds(names):
    return [Constraint(name) for name in names]


K_SKEW = np.array([[1.0, 0, 0.5, 0, 0, 2], [0, 1, 0, 0.3, -1, 0]])

CASES = {
    "arm7 0D": ("arm7", []),
    "arm7 H3": ("arm7", points(["panda_hand_tcp"])),
    "arm7 H": ("arm7", welds(["panda_hand_tcp"])),
    "arm7 K": ("arm7", [Constraint("panda_hand_tcp", K_SKEW, acceleration=(0.3, -1.0))]),
    "quadruped F3": ("quadruped", points(LEGS[:1])),
    "quadruped 2F3": ("quadruped", points(LEGS[:2])),
    "quadruped 3F3": ("quadruped", points(LEGS[:3])),
    "quadruped 4F3": ("quadruped", points(LEGS)),
    "quadruped base": ("quadruped", welds(["torso-contact-1"])),
    "quadruped closure": ("quadruped", [Constraint(LEGS[0], "point", to=LEGS[1])]),
    "quadruped mixed": (
        "quadruped",
        [Constraint(LEGS[0], "point", to=LEGS[1]), *points(LEGS[1:3])],
    ),
    "mini_cheetah F3": ("mini_cheetah", points(LEGS[:1])),
    "mini_cheetah 4F3": ("mini_cheetah", points(LEGS)),
    "mini_cheetah closures": (
        "mini_cheetah",
        [
            Constraint(LEGS[0], "point", to=LEGS[1]),
            Constraint(LEGS[1], "point", to=LEGS[2]),
            Constraint(LEGS[3], (3, 5)),
        ],
    ),
    "mini_cheetah rotor": ("mini_cheetah", [*points(LEGS[:1]), Constraint("HL_hip_rotor", (0,))]),
    "humanoid F": ("humanoid", welds(TOES[:1])),
    "humanoid 2F": ("humanoid", welds(TOES)),
    "humanoid 2F+H": ("humanoid", welds(TOES + HANDS[:1])),
    "humanoid F+bar": ("humanoid", [*welds(TOES[:1]), Constraint(HANDS[0], "point", to=HANDS[1])]),
    "mit_humanoid 2F": ("mit_humanoid", welds(TOES)),
    "mit_humanoid 2F3+2H3": ("mit_humanoid", points(TOES + HANDS)),
    "tello 2F": ("tello", welds(T_TOES)),
    "tello_explicit F+H3": ("tello_explicit", [*welds(T_TOES[:1]), *points(T_HANDS[:1])]),
    "jvrc1 2F": ("jvrc1", welds(["left_toe_contact", "right_toe_contact"])),
    "loop_sampler": (
        "loop_sampler",
        [Constraint("slider_crank_end", (3,)), Constraint("strut_end", (4,), to="wiper_end")],
    ),
    "joint_sampler": (
        "joint_sampler",
        [Constraint("hand", "point"), Constraint("foot", (0, 3), acceleration=(1.0, 2.0))],
    ),
    "six_bar": ("six_bar", [Constraint("tip", (3, 4))]),
    "six_bar held": ("six_bar", [Constraint("tip", (2, 3, 4), acceleration=(1.0, -2.0, 3.0))]),
    "leg held": (
        "mit_humanoid_leg",
        [Constraint("toe_contact", (0, 1, 3, 4, 5), acceleration=(1.0, -2.0, 3.0, -1.0, 2.0))],
    ),
    "pbt_chain": ("pbt_chain", [Constraint("cp-B-5", (3, 4))]),
    "planar_leg_linkage": ("planar_leg_linkage", [Constraint("toe", (3,))]),
    "soft and hard": (
        "mini_cheetah",
        [
            *points(LEGS[:2]),
            Constraint(LEGS[2], "point", softness=0.1),
            Constraint(LEGS[3], "point", to=LEGS[2], softness=(0.1, 0.2, 0.3)),
        ],
    ),
}  # fmt: skip


def state(model, seed=0):
    q, v = model.random_state(seed)
    return q, v, np.random.default_rng(100 + seed).uniform(-5, 5, model.nv)


def smallest_lever(model, constraints, q) -> float:
    """min |K S|² over the joints that PV-early resolves rows at, where it changes: its rounding
    errors grow with the inverse, since a joint that hardly moves a row has to move far for it."""
    checked = checked_constraints(model, constraints)
    direct = tuple(c for c in checked if c.softness is None and c.to is None)
    if not direct:
        return 1.0
    known, found = row_levers(model, direct), squares(model, direct, q)
    constant = {k for k, x in found.items() if abs(x - known[k].usual) < 1e-12 * known[k].usual}
    changing = [x for k, x in found.items() if known[k].moves and k not in constant]
    return float(min([*changing, 1.0]))


def in_many_digits(model, q, v, tau, constraints):
    """(a, multipliers) of the KKT system of M, J and the biases, solved in fifty digits."""
    checked = checked_constraints(model, constraints)
    n, m = model.nv, sum(c.m for c in checked)
    l, J = residual(model, q, v, np.zeros(n), np.zeros(m), checked)
    A = np.block([[gb.mass_matrix(model, q), -J.T], [J, np.zeros((m, m))]])
    b = np.concatenate([tau - gb.bias_force(model, q, v), -l])
    with mp.workdps(50):
        x = np.array(mp.lu_solve(mp.matrix(A.tolist()), mp.matrix(b.tolist())), dtype=float).ravel()
    return x[:n], x[n:]


def chain(n: int) -> gb.Model:
    """A serial chain of n revolute joints with turning axes."""
    b = gb.ModelBuilder(f"chain{n}")
    grow(b, "world", "link", n)
    return b.build()


def with_world_frame() -> gb.Model:
    """A chain of five, and a frame in the world."""
    b = gb.ModelBuilder("anchored")
    grow(b, "world", "link", 5)
    b.add_frame("anchor", "world", (0.1, 0.2, 0.3), rpy=(0.1, 0.2, 0.3))
    return b.build()


def grow(b: gb.ModelBuilder, parent: str, name: str, n: int) -> str:
    for i in range(n):
        body = f"{name}{i}"
        b.add_body(body, 1.0, com=(0.05, 0.02, 0.1), inertia=(0.02, 0, 0, 0.03, 0, 0.01))
        axis = np.eye(3)[i % 3]
        b.add_joint(f"{body}_joint", "revolute", parent, body, xyz=(0.0, 0.02, 0.2), axis=axis)
        parent = body
    return parent


def hanging() -> gb.Model:
    """An arm of six joints with a geared one behind its hand, on a rail with armature."""
    b = gb.ModelBuilder("hanging")
    b.add_body("cart", 2.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
    b.add_joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), armature=0.7)
    hand = grow(b, "cart", "link", 5)
    for name, mass in (("finger", 0.4), ("rotor", 0.2)):
        b.add_body(name, mass, com=(0.1, 0, 0), inertia=(0.01, 0, 0, 0.02, 0, 0.03))
        b.add_joint(name, "revolute", hand, name, axis=(0, 1, 0), xyz=(0.1, 0, 0))
    b.add_coupling("gear", "rotor", {"finger": 6.0})
    b.add_frame("hand", hand, (0.05, 0.1, 0.2), rpy=(0.3, 0.2, 0.1))
    b.add_frame("tip", "finger", (0.3, 0.0, 0.0))
    return b.build()


def serial(name: str, axes: str, steps) -> gb.Model:
    b, parent = gb.ModelBuilder(name), "world"
    for i, (axis, xyz) in enumerate(zip(axes, steps, strict=True)):
        b.add_body(f"link{i}", 1.0 + i, com=(0.02, 0.01, -0.1), inertia=(0.1, 0, 0, 0.2, 0, 0.3))
        turn = [float(axis == x) for x in "xyz"]
        b.add_joint(f"joint{i}", "revolute", parent, f"link{i}", axis=turn, xyz=xyz)
        parent = f"link{i}"
    b.add_frame("hand", parent, (0.0, 0.0, -0.05))
    b.add_frame("tool", parent, (0.0, 0.08, 0.0), rpy=(0.4, -0.2, 1.1))
    return b.build()


def industrial_arm() -> gb.Model:
    """Six joints, three of them parallel, laid out as a UR5; the tool is on the last one's axis."""
    steps = ((0, 0, 0.09), (0, 0.14, 0), (0, -0.12, 0.42), (0, 0, 0.39), (0, 0.09, 0), (0, 0, 0.09))
    return serial("industrial_arm", "zyyyzy", steps)


def stalk(stem: int, branches: int, length: int) -> tuple[gb.Model, list[str]]:
    """The long stalk of Fig. 2e: branches of `length` links on both ends of a stem."""
    b = gb.ModelBuilder("stalk")
    b.add_body("root", 5.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
    b.add_joint("float", "free", "world", "root")
    end = grow(b, "root", "stem", stem)
    tips = [
        grow(b, where, f"{side}{i}_", length)
        for side, where in (("near", "root"), ("far", end))
        for i in range(branches)
    ]
    return b.build(), tips


def ladder(rungs: int) -> tuple[gb.Model, list[str]]:
    """The ladder of Fig. 4b: rungs of seven links, three links of the stile between them."""
    b = gb.ModelBuilder("ladder")
    parent, tips = "world", []
    for i in range(rungs):
        parent = grow(b, parent, f"stile{i}_", 3)
        tips.append(grow(b, parent, f"rung{i}_", 7))
    return b.build(), tips
