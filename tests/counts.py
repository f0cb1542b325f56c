"""Operations and estimated cycles of every robot of the zoo, as recorded in counts.json.

    python -m tests.counts            what differs from the record
    python -m tests.counts --write    make the present counts the record

An entry is [operations, operations behind a branch, cycles] of a robot and an algorithm: total and
`seldom` of `gb.count_operations`, and the estimate by which `method="auto"` compares methods.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import grubler as gb
from grubler import compiler
from grubler.compiler.passes import cost
from grubler.compiler.passes.limbs import side_by_side
from grubler.compiler.passes.simplify import shortened, simplify
from grubler.constrained import Constraint, constrained_forward_dynamics
from grubler.sim.kernel import Kernel

RECORD = Path(__file__).parent / "counts.json"
GROWTH = 0.01  # the relative increase up to which a count passes
WIDTH = 4  # float64 lanes side by side: those of a host with 256-bit registers, whatever runs this
KINDS = ("operations", "seldom", "cycles")


def points(*frames):
    return tuple(Constraint(frame, "point") for frame in frames)


def welds(*frames):
    return tuple(Constraint(frame) for frame in frames)


FEET = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]
TOES, HANDS = ["right_toe_contact", "left_toe_contact"], ["right_hand_contact", "left_hand_contact"]
TELLO_TOES = ["left-toe_contact", "right-toe_contact"]
TELLO_HANDS = ["left-hand-contact", "right-hand-contact"]
STANDING = ("mini_cheetah", "quadruped")
STRUT = Constraint("strut_end", (4,), to="wiper_end")

CONSTRAINTS = {  # one or two sets a robot; two large robots have one, since counting takes seconds
    "mini_cheetah": (points(*FEET), (*points(*FEET[:2]), Constraint(FEET[2], "point", to=FEET[3]))),
    "mit_humanoid": (welds(*TOES), points(*TOES, *HANDS)),
    "mit_humanoid_leg": (points("toe_contact"), (Constraint("knee_contact", (0, 3)),)),
    "tello": (welds(*TELLO_TOES), (*welds(TELLO_TOES[0]), *points(TELLO_HANDS[0]))),
    "tello_explicit": ((*welds(TELLO_TOES[0]), *points(TELLO_HANDS[0])),),
    "jvrc1": (welds("left_toe_contact", "right_toe_contact"), points("left_hand_contact")),
    "gt_chain": (points("cp-11"), (Constraint("cp-5", (3,)),)),
    "pbt_chain": ((Constraint("cp-B-5", (3, 4)),), (Constraint("cp-A-2", (3,)),)),
    "robot_a": (points("cp-11"), welds("cp-11")),
    "robot_b": (points("cp-B-5"), welds("cp-B-5")),
    "four_bar": ((Constraint("pin", (3,)),), (Constraint("pin", (3,), softness=1e-3),)),
    "parallel_four_bar": (
        (Constraint("tip_link2", (3,)),), (Constraint("tip_link2", (3,), softness=1e-3),),
    ),
    "six_bar": ((Constraint("tip", (3, 4)),), (Constraint("tip", (2, 3, 4)),)),
    "planar_leg_linkage": ((Constraint("toe", (3,)),), (Constraint("toe", (3, 4)),)),
    "arm7": (points("panda_hand_tcp"), welds("panda_hand_tcp")),
    "quadruped": (points(*FEET), welds("torso-contact-1")),
    "humanoid": (welds(*TOES), (*welds(TOES[0]), Constraint(HANDS[0], "point", to=HANDS[1]))),
    "joint_sampler": (points("hand"), (Constraint("foot", (0, 3)), Constraint("rim", (3,)))),
    "loop_sampler": ((Constraint("slider_crank_end", (3,)), STRUT),),
}  # fmt: skip


def simulator_step(model, q, v, tau):
    """A step of `Simulator(model, 1e-3)` in the model's coordinates, its branch counted apart."""
    kernel = Kernel(model, 1e-3, "semi_implicit", None, None, 1, "float64")
    return kernel.recorded(np.concatenate([q, v, np.zeros(kernel.carried)]), tau)


def on_four_feet(model, q, v, tau, impulse):
    """A step with contacts of four feet on the ground, from the impulses before."""
    shapes = dict.fromkeys(FEET, gb.Sphere(0.02))
    contacts = gb.Contacts(model, shapes=shapes, touching=FEET, friction=0.7)
    return gb.contact_dynamics(model, q, v, tau, 2e-3, contacts, impulse, iterations=3)


def algorithms(robot: str) -> dict:
    """By name: a function of the model and arrays, and the arrays' names."""
    sets = CONSTRAINTS[robot]
    tips = [constraint.frame for constraint in sets[0][:2]]

    def osim(model, q):
        return gb.inverse_osim(model, q, frames=tips)

    def constrained(constraints):
        def fn(model, q, v, tau):
            return constrained_forward_dynamics(model, q, v, tau, constraints)[:2]

        return fn

    contacts = {}
    if robot in STANDING:
        contacts["contact_dynamics, 3 sweeps"] = (on_four_feet, "q v tau impulse")
    return {
        **contacts,
        "forward_dynamics": (gb.forward_dynamics, "q v tau"),
        "forward_dynamics, forces on all bodies": (gb.forward_dynamics, "q v tau f_ext"),
        "inverse_dynamics": (gb.inverse_dynamics, "q v a"),
        "mass_matrix": (gb.mass_matrix, "q"),
        "inverse_osim": (osim, "q"),
        **{f"constrained {i + 1}": (constrained(x), "q v tau") for i, x in enumerate(sets)},
        "inverse_dynamics_derivatives": (gb.inverse_dynamics_derivatives, "q v a"),
        "forward_dynamics_derivatives": (gb.forward_dynamics_derivatives, "q v tau"),
        "simulator_step": (simulator_step, "q v tau"),
    }


def counted(fn, model, arrays: str) -> list[int]:
    names = arrays.split()
    sizes = {"q": model.nq, "f_ext": (len(model.bodies), 6), "impulse": 3 * len(FEET)}
    shapes = [sizes.get(name, model.nv) for name in names]
    tape = compiler.trace(lambda *x: fn(model, *x), shapes, names)
    operations = compiler.count(simplify(tape))
    cycles = cost.cycles(side_by_side(shortened(tape), WIDTH))
    return [operations.total, operations.seldom, round(cycles)]


def measured(robot: str) -> dict[str, list[int]]:
    """The present counts of a robot, by algorithm."""
    model = gb.robots.load(robot)
    return {name: counted(fn, model, arrays) for name, (fn, arrays) in algorithms(robot).items()}


def recorded() -> dict[str, dict[str, list[int]]]:
    return json.loads(RECORD.read_text())


def differences(record: dict[str, list[int]], now: dict[str, list[int]]) -> list[str]:
    """What is beyond the record by more than 1 %, is below it, or stands on one side alone."""
    lines = []
    for name in sorted(record.keys() | now.keys()):
        if name not in record or name not in now:
            lines.append(f"{name}: {'not recorded' if name in now else 'recorded, not counted'}")
            continue
        for kind, old, new in zip(KINDS, record[name], now[name], strict=True):
            if new < old or new > (1 + GROWTH) * old:
                change = f" ({100 * (new / old - 1):+.2f} %)" if old else ""
                lines.append(f"{name}, {kind}: {old} -> {new}{change}")
    return lines


def write(counts: dict[str, dict[str, list[int]]]) -> None:
    """One line an entry: a change of it is a line of the diff."""
    robots = []
    for robot, entries in counts.items():
        lines = [f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()]
        robots.append(f"  {json.dumps(robot)}: {{\n" + ",\n".join(lines) + "\n  }")
    RECORD.write_text("{\n" + ",\n".join(robots) + "\n}\n")


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--write"]):
        print(__doc__)
        return 2
    record = recorded() if RECORD.exists() else {}
    now = {robot: measured(robot) for robot in gb.robots.names()}
    lines = [
        f"{robot}: {line}"
        for robot in now
        for line in differences(record.get(robot, {}), now[robot])
    ]
    print("\n".join(lines) or "the counts are as recorded")
    if arguments:
        write(now)
    return 0 if arguments or not lines else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
