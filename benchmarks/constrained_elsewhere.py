"""PV-early against LTL beyond the table: other arms, the zoo's robots with loops, straight legs."""

from __future__ import annotations

from tests.constrained.cases import CASES

import grubler as gb

from .against_peers import from_urdf, one_state
from .constrained import STATES, kernel, points, sets, timed, welds
from .timing import best, copied, interleaved

ARMS = {
    "Kinova, fingertip": ("kinova_description/robots/kinova.urdf", "j2s6s200_link_finger_tip_2"),
    "UR3": ("ur_description/urdf/ur3_robot.urdf", "tool0"),
    "UR10": ("ur_description/urdf/ur10_robot.urdf", "tool0"),
    "SO-100": ("so_arm_description/urdf/so100.urdf", "jaw"),
    "SO-101": ("so_arm_description/urdf/so101.urdf", "moving_jaw_so101_v1_link"),
    "Z1": ("z1_description/urdf/z1.urdf", "gripperMover"),
    "xArm7": ("xarm_description/urdf/xarm7.urdf", "link_eef"),
    "Talos' arm": ("talos_data/robots/talos_left_arm.urdf", "gripper_left_motor_double_link"),
}
ZOO = [
    "quadruped closure", "quadruped mixed", "mini_cheetah closures", "mini_cheetah rotor",
    "humanoid F+bar", "mit_humanoid 2F3+2H3", "tello_explicit F+H3", "jvrc1 2F", "loop_sampler",
    "joint_sampler", "six_bar", "six_bar held", "leg held", "pbt_chain", "planar_leg_linkage",
]  # fmt: skip


def table() -> list[dict]:
    """Times in µs and operation counts of the two, one lane."""
    rows = []
    for name, (path, hand) in ARMS.items():
        arm = from_urdf(path, "fixed")
        rows.append(measured(f"{name} (H3)", arm, points([hand])))
        rows.append(measured(f"{name} (H)", arm, welds([hand])))
    for name in ZOO:
        robot, constraints = CASES[name]
        rows.append(measured(name, gb.robots.load(robot), constraints))
    for name, model, constraints in sets():
        if constraints and name.startswith(("Go1", "mini_cheetah")):
            _, v, tau = one_state(model)
            straight = [(model.neutral(), v, tau)]
            rows.append(measured(name, model, constraints, straight))
    return rows


def measured(name: str, model: gb.Model, constraints, states=None) -> dict:
    codes = {method: kernel(model, constraints, method) for method in ("pv_early", "ltl")}
    calls = {}
    for method in codes:
        calls |= copied(method, timed, model, constraints, method, states)
    seconds = best(interleaved(calls, rounds=60, seconds=0.001))
    return {
        "robot": name,
        "posture": "legs straight" if states else "random",
        "PV-early µs": seconds["pv_early"] / STATES * 1e6,
        "LTL µs": seconds["ltl"] / STATES * 1e6,
        "LTL / PV-early": seconds["ltl"] / seconds["pv_early"],
        "ops ratio": codes["ltl"].operations.total / codes["pv_early"].operations.total,
    }
