"""Constrained dynamics: Table II of Sathya et al. again, Fig. 3, and the scaling of Figs. 2 and 4.

    python -m benchmarks.constrained [--out DIRECTORY] [--quick]

Times of our methods are those of compiled kernels, one lane; Pinocchio and MuJoCo are called from
Python. Operation counts stand beside the times.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np

import grubler as gb
from grubler.constrained import Constraint, constrained_forward_dynamics

from .against_peers import BATCH, from_urdf, one_state
from .peers import Pinocchio, mjcf
from .timing import interleaved, machine

METHODS = {
    "PV": ("pv", {}),
    "PV-early": ("pv_early", {}),
    "PV-early, regular": ("pv_early", {"regular": True}),
    "LTL": ("ltl", {}),
    "PV-soft": ("pv_soft", {}),
    "LTL-soft": ("ltl_soft", {}),
}
LEGS = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]
TOES = ["right_toe_contact", "left_toe_contact"]
HANDS = ["right_hand_contact", "left_hand_contact"]


def sets() -> list[tuple[str, gb.Model, list[Constraint]]]:
    """Rows of the table: a name, a robot, its constraints."""

    def points(names):
        return [Constraint(n, "point") for n in names]

    def welds(names):
        return [Constraint(n) for n in names]

    arm, humanoid = gb.robots.load("arm7"), gb.robots.load("humanoid")
    hand = ["panda_hand_tcp"]
    rows = [("arm (0D)", arm, []), ("arm (H3)", arm, points(hand)), ("arm (H)", arm, welds(hand))]
    for robot in ("quadruped", "mini_cheetah"):
        model = gb.robots.load(robot)
        rows += [(f"{robot} ({n}F3)", model, points(LEGS[:n])) for n in range(5)]
    for ends, label in ((0, "0D"), (1, "F"), (2, "2F"), (3, "2F+H"), (4, "2F+2H")):
        rows.append((f"humanoid ({label})", humanoid, welds((TOES + HANDS)[:ends])))
    rows.append(("mit_humanoid (2F)", gb.robots.load("mit_humanoid"), welds(TOES)))
    go1 = "go1_description/urdf/go1.urdf"
    talos = "talos_data/robots/talos_reduced.urdf"
    for name, path, links, kind in (
        ("Go1 (4F3)", go1, ["FL_foot", "FR_foot", "RL_foot", "RR_foot"], "point"),
        ("solo12 (4F3)", "solo_description/robots/solo12.urdf",
         ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"], "point"),
        ("talos (2F)", talos, ["left_sole_link", "right_sole_link"], "weld"),
        ("talos (2F+2H)", talos, ["left_sole_link", "right_sole_link", "wrist_left_ft_link",
                                  "wrist_right_ft_link"], "weld"),
    ):  # fmt: skip
        try:
            model = from_urdf(path, "free")
            rows.append((name, model, [Constraint(model.frame(n).name, kind) for n in links]))
        except (gb.GrublerError, OSError) as error:
            print(f"  {name} left out: {error}")
    return rows


def table(quick: bool = False) -> list[dict]:
    """Times in µs and operation counts of every method, and of Pinocchio and MuJoCo."""
    out = []
    for name, model, constraints in sets():
        if quick and name not in ("arm (H)", "quadruped (4F3)"):
            continue
        row: dict = {"robot": name, "m": sum(3 if c.rows == "point" else 6 for c in constraints)}
        soft = [Constraint(c.frame, c.rows, softness=1e-6) for c in constraints]
        for label, (method, options) in METHODS.items():
            given = tuple(soft if method.endswith("soft") else constraints)
            if not given and method.endswith("soft"):
                continue
            arguments = {"constraints": given, "method": method, **options}
            fn = constrained_forward_dynamics
            row[f"{label} µs"] = kernel_us(fn, model, **arguments)
            row[f"{label} ops"] = gb.count_operations(fn, model, **arguments).total
        for label, rival in (("Pinocchio", pinocchio_us), ("MuJoCo", mujoco_us)):
            try:
                row[f"{label} µs"] = rival(model, constraints)
            except (ImportError, ValueError) as error:
                print(f"  {label} on {name} left out: {error}")
        print(row, flush=True)
        out.append(row)
    return out


def kernel_us(fn, model, **options) -> float:
    """A state's time in a loop of compiled code, one after the other."""
    compiled = gb.compile(fn, model, lanes=1, **options)
    rows = [one_state(model, seed) for seed in range(8)]
    batch = [np.tile(np.stack(x), (BATCH // 8, 1)) for x in zip(*rows)]
    out = tuple(np.empty((BATCH, *x.shape)) for x in compiled.outputs)
    return interleaved({"ours": lambda: compiled(*batch, out=out)}, rounds=8)["ours"] / BATCH * 1e6


def pinocchio_us(model: gb.Model, constraints) -> float:
    """pin.constraintDynamics of the same tree, from Python."""
    if model.loops:
        raise ValueError("its loops would be constraints of Pinocchio's, too")
    peer = Pinocchio(model)
    pin = peer.pin
    models, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in constraints:
        frame = model.frame(c.frame)
        kind = pin.ContactType.CONTACT_3D if c.rows == "point" else pin.ContactType.CONTACT_6D
        place = pin.SE3(np.array(frame.placement.E.T), np.array(frame.placement.r))
        joint = frame.body + 1  # joints were added body by body
        contact = pin.RigidConstraintModel(kind, peer.model, joint, place, pin.ReferenceFrame.LOCAL)
        models.append(contact)
        data.append(contact.createData())
    pin.initConstraintDynamics(peer.model, peer.data, models, data)
    settings = pin.ProximalSettings(1e-12, 0.0, 1)
    state = one_state(model)
    call = partial(
        pin.constraintDynamics, peer.model, peer.data, *peer.state(*state), models, data, settings
    )
    if constraints:
        ours = constrained_forward_dynamics(model, *state, constraints).a
        error = np.abs(peer.back(call()) - ours).max() / np.abs(ours).max()
        if not error < 1e-8:  # never time what does not compute the same
            raise ValueError(f"this twin's accelerations differ from ours by {error:.0e}")
    return interleaved({"pin": call})["pin"] * 1e6


def mujoco_us(model: gb.Model, constraints) -> float:
    """mj_forward with the constraints as soft equalities, as MuJoCo has them."""
    import mujoco

    text = ""
    for c in constraints:
        frame = model.frame(c.frame)
        place = " ".join(str(float(x)) for x in frame.placement.r)
        body = model.bodies[frame.body].name
        kind = "connect" if c.rows == "point" else "weld"
        text += f'<{kind} body1="{body}" anchor="{place}"/>'
    simulator = mujoco.MjModel.from_xml_string(
        mjcf(model).replace("</equality>", f"{text}</equality>")
    )
    data = mujoco.MjData(simulator)
    return interleaved({"mj": partial(mujoco.mj_forward, simulator, data)})["mj"] * 1e6


def soft_accuracy() -> list[dict]:
    """Fig. 3: residuals and distance from the hard solution over the weights 1/R."""
    model = gb.robots.load("humanoid")
    ends = TOES + HANDS[:1]
    hard = [Constraint(f) for f in ends]
    rows = []
    for power in range(0, 15):
        soft = [Constraint(f, softness=10.0**-power) for f in ends]
        for method in ("pv_soft", "ltl_soft"):
            off, gap = [], []
            for seed in range(10):
                q, v = model.random_state(seed)
                tau = np.zeros(model.nv)
                exact = constrained_forward_dynamics(model, q, v, tau, hard, method="kkt")
                a, multipliers, _ = constrained_forward_dynamics(
                    model, q, v, tau, soft, method=method
                )
                off.append(np.linalg.norm(a - exact.a))
                gap.append(np.linalg.norm(multipliers) * 10.0**-power)
            rows.append({"method": method, "weight": 10.0**power, "residual": np.median(gap),
                         "distance": np.median(off)})  # fmt: skip
    return rows


def picture(rows: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, key, label in zip(
        axes, ("residual", "distance"), ("constraint residual", "distance of a from the hard one")
    ):
        for method, style in (("pv_soft", "C0o-"), ("ltl_soft", "C1s--")):
            chosen = [row for row in rows if row["method"] == method]
            axis.loglog(
                [r["weight"] for r in chosen], [r[key] for r in chosen], style, label=method
            )
        axis.set_xlabel("weight 1/R")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constrained", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="two rows only")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    soft = soft_accuracy()
    picture(soft, arguments.out / "soft.svg")
    data = {"machine": machine(), "constrained": table(arguments.quick), "soft": soft}
    (arguments.out / "constrained.json").write_text(
        json.dumps(data, indent=1, default=float) + "\n"
    )


if __name__ == "__main__":
    main()
