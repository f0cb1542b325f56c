"""Constrained dynamics: Table II of Sathya et al. again, on the package's robots and the zoo's.

Times of our methods are those of compiled kernels in a loop of compiled code, one lane, and of one
bound call from Python; Pinocchio and MuJoCo are called from Python. Operation counts stand beside.

    python -m benchmarks.constrained [--out DIRECTORY]

runs the constrained part of `make bench` alone.
"""

from __future__ import annotations

import argparse
import json
import warnings
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tests.constrained.cases import in_many_digits

import grubler as gb
from grubler.constrained import Constraint, constrained_forward_dynamics
from grubler.formats import load_urdf

from .against_peers import from_urdf, one_state
from .peers import Pinocchio, example_urdf, mjcf
from .timing import best, copied, interleaved, machine

METHODS = {
    "PV": "pv", "PV-early": "pv_early", "LTL": "ltl", "PV-soft": "pv_soft", "LTL-soft": "ltl_soft",
}  # fmt: skip
STATES = 2048  # a call: few milliseconds, so that some rounds are not interrupted
DIFFERENT = 64  # of them: some near singular postures, as they come
BOUND = 32  # different states, one bound call each
POSTURES = 150  # random ones, among which the slowest is looked for
RESULTS = Path(__file__).parent / "results"
LEGS = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]


def points(names):
    return [Constraint(n, "point") for n in names]


def welds(names):
    return [Constraint(n) for n in names]


def package_robots() -> dict:
    """Robots of example-robot-data: the model, feet (and hands) by link."""
    return {
        "panda": ("panda_description/urdf/panda.urdf", "fixed", ["panda_hand_tcp"]),
        "UR5": ("ur_description/urdf/ur5_robot.urdf", "fixed", ["tool0"]),
        "Kinova": ("kinova_description/robots/kinova.urdf", "fixed", ["j2s6s200_end_effector"]),
        "Go1": ("go1_description/urdf/go1.urdf", "free",
                ["FL_foot", "FR_foot", "RL_foot", "RR_foot"]),
        "Talos": ("talos_data/robots/talos_reduced.urdf", "free",
                  ["left_sole_link", "right_sole_link", "wrist_left_ft_link",
                   "wrist_right_ft_link"]),
        "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "free",
               ["left_ankle_roll_link", "right_ankle_roll_link", "left_wrist_yaw_link",
                "right_wrist_yaw_link"]),
    }  # fmt: skip


def sets() -> list[tuple[str, gb.Model, list[Constraint]]]:
    """Rows of the table: a name, a robot, its constraints."""
    rows, ends = [], {}
    for name, (path, base, links) in package_robots().items():
        model = arm_of_seven(path) if name == "panda" else from_urdf(path, base)
        ends[name] = model, [model.frame(n).name for n in links]
    for name in ("panda", "UR5", "Kinova"):
        arm, hand = ends[name]
        for label, constraints in (("0D", []), ("H3", points(hand)), ("H", welds(hand))):
            rows.append((f"{name} ({label})", arm, constraints))
    go1, feet = ends["Go1"]
    rows += [(f"Go1 ({label})", go1, points(feet[:n])) for n, label in COUNTS.items()]
    for name in ("Talos", "G1"):
        model, links = ends[name]
        for n, label in enumerate(("0D", "F", "2F", "2F+H", "2F+2H")):
            rows.append((f"{name} ({label})", model, welds(links[:n])))
    cheetah = gb.robots.load("mini_cheetah")
    rows += [(f"mini_cheetah ({x})", cheetah, points(LEGS[:n])) for n, x in COUNTS.items()]
    toes, hands = ["right_toe_contact", "left_toe_contact"], ["right_hand_contact"]
    humanoid = gb.robots.load("mit_humanoid")
    rows.append(("mit_humanoid (2F)", humanoid, welds(toes)))
    rows.append(("mit_humanoid (2F+H3)", humanoid, welds(toes) + points(hands)))
    tello = ["left-toe_contact", "right-toe_contact"]
    rows.append(("tello (2F)", gb.robots.load("tello"), welds(tello)))
    return rows


def arm_of_seven(path: str) -> gb.Model:
    """Panda with its fingers held: a mimic joint would be a loop, and Pinocchio's no tree."""
    text = example_urdf(path).read_text().replace('type="prismatic"', 'type="fixed"')
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "panda.urdf"
        file.write_text(text)
        return load_urdf(file, base="fixed")


COUNTS = {0: "0D", 1: "F3", 2: "2F3", 3: "3F3", 4: "4F3"}


def table() -> list[dict]:
    """Times in µs and operation counts of every method, and of Pinocchio and MuJoCo."""
    return [measured(*row) for row in sets()]


def measured(name: str, model: gb.Model, constraints) -> dict:
    row: dict = {"robot": name, "m": sum(3 if c.rows == "point" else 6 for c in constraints)}
    state = one_state(model)
    calls, batches, codes = {}, {}, {}
    for label, method in METHODS.items():
        given = constraints
        if method.endswith("soft"):
            if not constraints:
                continue
            given = [Constraint(c.frame, c.rows, softness=1e-6) for c in constraints]
        code = codes[label] = kernel(model, given, method)
        calls |= copied(label, timed, model, given, method)
        row[f"{label} ops"] = code.operations.total
        batches[label] = STATES
        if label == "PV-early":
            found = code(*state)[0]
            bound = [code.bind(*one_state(model, seed)) for seed in range(BOUND)]
            calls["bound", 0] = lambda bound=bound: [call() for call in bound]
            batches["bound"] = BOUND
    expected = in_many_digits(model, *state, constraints)[0]
    row["error"] = float(np.abs(found - expected).max() / np.abs(expected).max())
    for label, rival in RIVALS.items():
        try:
            call = rival(model, constraints, state, expected)
        except (ImportError, ValueError, RuntimeError) as error:
            row[f"{label} left out"] = str(error)
        else:
            calls[label, 0] = call
    seconds = best(interleaved(calls, rounds=150, seconds=0.001))
    for label, x in (seconds | of_the_same_code(seconds, codes)).items():
        row[f"{label} µs"] = x / batches.get(label, 1) * 1e6
    row |= at_the_slowest(codes["PV-early"], model, constraints)
    row["LTL / PV-early"] = row["LTL µs"] / row["PV-early µs"]
    row["ops ratio"] = row["LTL ops"] / row["PV-early ops"]
    if "Pinocchio µs" in row:
        row["Pinocchio / ours"] = row["Pinocchio µs"] / row["bound µs"]
    print(f"  {name}: LTL / PV-early {row['LTL / PV-early']:.2f}", flush=True)
    return row


def at_the_slowest(code, model: gb.Model, constraints) -> dict:
    """Times of one bound call where PV-early takes longest, among random postures and the neutral
    one, and of Pinocchio there. Where the rows themselves depend on each other Pinocchio computes
    something else, and the next slowest is taken."""
    _, v, tau = one_state(model)
    states = [(model.neutral(), v, tau), *(one_state(model, seed) for seed in range(POSTURES))]
    ours = {k: code.bind(*state) for k, state in enumerate(states)}
    seconds = interleaved(ours, rounds=5, seconds=2e-5)
    for k in sorted(seconds, key=seconds.get, reverse=True):
        try:
            peer = pinocchio(model, constraints, states[k], code(*states[k])[0])
        except (ImportError, ValueError):
            continue
        seconds = interleaved({"ours": ours[k], "peer": peer}, rounds=50, seconds=0.001)
        return {
            "slowest µs": seconds["ours"] * 1e6,
            "Pinocchio / slowest": seconds["peer"] / seconds["ours"],
        }
    return {"slowest µs": max(seconds.values()) * 1e6}


def kernel(model: gb.Model, constraints, method: str):
    """A method's code for one state, loaded anew."""
    return gb.compile(
        constrained_forward_dynamics, model, constraints=tuple(constraints), method=method, lanes=1
    )


def of_the_same_code(seconds: dict[str, float], codes: dict) -> dict[str, float]:
    """By method the least time of all whose code is the same to the instruction, as that of
    PV-early and LTL is where an arm has no constraints."""
    same: dict[str, list[float]] = {}
    for label, code in codes.items():
        same.setdefault(code.tape.digest(), []).append(seconds[label])
    return {label: min(same[code.tape.digest()]) for label, code in codes.items()}


def timed(model: gb.Model, constraints, method: str, states=None):
    """The loop of a kernel of its own."""
    return loop(kernel(model, constraints, method), model, states)


def loop(compiled, model, states=None, count: int = STATES):
    """A call that runs a kernel over states, one after the other, in compiled code."""
    rows = states or [one_state(model, seed) for seed in range(DIFFERENT)]
    batch = [np.tile(np.stack(x), (count // len(rows), 1)) for x in zip(*rows, strict=True)]
    batch = batch[: len(compiled.inputs)]
    out = tuple(np.empty((count, *x.shape)) for x in compiled.outputs)
    return compiled.bind(*batch, out=out if len(out) > 1 else out[0])


def pinocchio(model: gb.Model, constraints, state, expected):
    """pin.constraintDynamics of the same tree, from Python."""
    if model.loops:
        raise ValueError("its loops would be constraints of Pinocchio's, too")
    peer = Pinocchio(model)
    call = peer.constrained_call(constraints, state)
    error = np.abs(peer.back(call()) - expected).max() / np.abs(expected).max()
    if not error < 1e-9:  # never time what does not compute the same
        raise ValueError(f"this twin's accelerations differ from ours by {error:.0e}")
    return call


def pinocchio_with_rotors(model: gb.Model, constraints, state, expected):
    """Rotors as joints of Pinocchio's, each closed by a loop: the nearest thing it computes.

    Its constraints are points and welds and know no gear ratio; its mimic joints do, but aba and
    constraintDynamics refuse them ("This algorithm does not support Joint Mimic type in the
    model"). Here each rotor turns about its link's axis and a point holds it to the link: the ratio
    is 1:1, which is another robot with as many joints and loops.
    """
    import pinocchio as pin

    if model.name != "mini_cheetah":
        raise ValueError("made for the Mini Cheetah")
    tree = gb.robots.load("quadruped")
    peer = Pinocchio(tree)
    names = {tree.bodies[i].name: j for i, j in peer.ids.items() if i >= 0}
    twin, rotors = with_rotors(pin, peer, tree, model)
    twin_data = twin.createData()
    models, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    where = pin.SE3(np.eye(3), np.array([0.03, 0.03, 0.03]))
    for rotor, link in rotors:
        models.append(pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D, twin, rotor, where, link, where, pin.ReferenceFrame.LOCAL
        ))  # fmt: skip
    for c in constraints:
        frame = tree.frame(c.frame)
        joint = twin.getJointId(peer.model.names[names[tree.bodies[frame.body].name]])
        place = pin.SE3(np.array(frame.placement.E.T), np.array(frame.placement.r))
        models.append(pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D, twin, joint, place, pin.ReferenceFrame.LOCAL
        ))  # fmt: skip
    for contact in models:
        data.append(contact.createData())
    pin.initConstraintDynamics(twin, twin_data, models, data)
    q, v = pin.neutral(twin), np.zeros(twin.nv)
    call = partial(
        pin.constraintDynamics, twin, twin_data, q, v, np.ones(twin.nv), models, data,
        pin.ProximalSettings(1e-10, 1e-8, 10),
    )  # fmt: skip
    if not np.all(np.isfinite(call())):
        raise ValueError("Pinocchio's accelerations are not finite")
    return call


def with_rotors(pin, peer: Pinocchio, tree: gb.Model, exact: gb.Model):
    """Pinocchio's tree with a rotor beside every revolute link, and the pairs (rotor, link)."""
    ratios = {loop.inputs[0].joint.name: loop for loop in exact.loops}
    twin, pairs, ids = pin.Model(), [], {0: 0}
    twin.gravity.linear = np.array(tree.gravity)
    for i in range(1, peer.model.njoints):
        name, parent = peer.model.names[i], ids[peer.model.parents[i]]
        place, joint = peer.model.jointPlacements[i], peer.model.joints[i]
        rotor = None
        if name in ratios:  # before its link, whose subtree must be numbered in one run
            body = ratios[name].outputs[0]
            rotor = twin.addJoint(parent, joint, place, f"{name}_rotor")
            inertia = pin.Inertia(float(body.mass), np.array(body.com), np.array(body.inertia))
            twin.appendBodyToJoint(rotor, inertia, pin.SE3.Identity())
        ids[i] = twin.addJoint(parent, joint, place, name)
        twin.appendBodyToJoint(ids[i], peer.model.inertias[i], pin.SE3.Identity())
        if rotor is not None:
            pairs.append((rotor, ids[i]))
    return twin, pairs


def mujoco(model: gb.Model, constraints, state, expected):
    """mj_forward with the constraints as soft equalities, as MuJoCo has them."""
    import mujoco as mj

    text = ""
    for c in constraints:
        frame = model.frame(c.frame)
        place = " ".join(str(float(x)) for x in frame.placement.r)
        body = model.bodies[frame.body].name
        kind = "connect" if c.rows == "point" else "weld"
        text += f'<{kind} body1="{body}" anchor="{place}"/>'
    if any(not hasattr(loop, "ratios") for loop in model.loops):
        raise ValueError("loops other than gears are not written here")
    simulator = mj.MjModel.from_xml_string(mjcf(model).replace("</equality>", f"{text}</equality>"))
    return partial(mj.mj_forward, simulator, mj.MjData(simulator))


RIVALS = {"Pinocchio": pinocchio, "Pinocchio, loops": pinocchio_with_rotors, "MuJoCo": mujoco}


def main() -> None:
    from .constrained_report import report, steps

    parser = argparse.ArgumentParser(prog="python -m benchmarks.constrained", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    data = {"machine": machine()}
    for name, step in steps().items():
        print(f"{name} ...", flush=True)
        data[name] = step()
    text = report(data, out)
    (out / "constrained.json").write_text(json.dumps(data, indent=1, default=float) + "\n")
    (out / "constrained.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
