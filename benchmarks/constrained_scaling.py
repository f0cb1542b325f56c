"""Soft against hard constraints (Fig. 3); growth with joints and rows (Figs. 2, 4), by counts."""

from __future__ import annotations

import numpy as np
from tests.constrained.cases import chain, ladder, stalk

import grubler as gb
from grubler.constrained import Constraint, constrained_forward_dynamics

ENDS = ["right_toe_contact", "left_toe_contact", "right_hand_contact"]


def soft_accuracy() -> list[dict]:
    """Fig. 3: residuals and distance from the hard solution over the weights 1/R."""
    model = gb.robots.load("humanoid")
    states = [model.random_state(seed) for seed in range(10)]
    tau, hard = np.zeros(model.nv), [Constraint(f) for f in ENDS]
    exact = [
        constrained_forward_dynamics(model, q, v, tau, hard, method="kkt").a for q, v in states
    ]
    rows = []
    for power in range(15):
        soft = [Constraint(f, softness=10.0**-power) for f in ENDS]
        for method in ("pv_soft", "ltl_soft"):
            off, gap = [], []
            for (q, v), a in zip(states, exact, strict=True):
                found = constrained_forward_dynamics(model, q, v, tau, soft, method=method)
                off.append(np.linalg.norm(found.a - a) / np.linalg.norm(a))
                # what is left of K a = k; the soft residual adds R λ to it
                gap.append(np.linalg.norm(found.residual - 10.0**-power * found.multipliers))
            rows.append({"method": method, "weight": 10.0**power, "residual": np.median(gap),
                         "distance": np.median(off)})  # fmt: skip
    return rows


def scaling() -> list[dict]:
    """Operations over the joints of a chain and the rows of a ladder."""
    rows = []
    for kind, sizes, make in (
        ("chain", (6, 12, 25, 50, 100), lambda n: (chain(n), [f"link{n - 1}"])),
        ("ladder", (1, 2, 3, 4, 6), ladder),
    ):
        for n in sizes:
            model, tips = make(n)
            row = {"kind": kind, "n": model.nv, "m": 6 * len(tips)}
            for method in ("pv_early", "pv", "ltl"):
                if method == "ltl" and model.nv > 30:
                    continue  # its count takes long to make
                row[method] = gb.count_operations(
                    constrained_forward_dynamics, model, constraints=tuple(tips), method=method
                ).total
            rows.append(row)
    return rows


def crossover() -> list[dict]:
    """Operations of the inverse OSIM on the stalk: every third link of the stem costs the same
    (axes take turns), so that two stems tell from which one on EFPA is ahead of PV-OSIM."""
    rows = []
    for branches, length in ((3, 7), (6, 7), (9, 7)):
        row = {"branches": branches, "length": length, "stem": 1, "step": 3}
        for method in ("pv_osim", "c_efpa"):
            few, more = (
                gb.count_operations(gb.inverse_osim, model, frames=tips, method=method).total
                for model, tips in (stalk(1, branches, length), stalk(4, branches, length))
            )
            row |= {method: few, f"{method} a link": (more - few) / 3}
        gain = row["pv_osim a link"] - row["c_efpa a link"]
        ahead = row["pv_osim"] - row["c_efpa"]
        if gain > 0:
            row["crossing"] = max(1, int(np.floor(1 - ahead / gain)) + 1)
        else:
            row["crossing"] = "never" if ahead <= 0 else "short stems only"
        rows.append(row)
    return rows
