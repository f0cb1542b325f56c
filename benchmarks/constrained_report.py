"""The constrained part of `make bench`: its steps, its pictures, its section of the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from . import constrained, constrained_elsewhere, constrained_rivals, constrained_scaling
from .tables import table

STYLES = {
    "pv_early": ("PV-early", "C0o-"), "pv": ("PV", "C2^-"), "ltl": ("LTL", "C3s--"),
    "pv_soft": ("PV-soft", "C0o-"), "ltl_soft": ("LTL-soft", "C1s--"),
}  # fmt: skip


def steps() -> dict[str, Callable]:
    return {
        "constrained": constrained.table,
        "constrained_elsewhere": constrained_elsewhere.table,
        "constrained_rivals": constrained_rivals.against_code,
        "soft": constrained_scaling.soft_accuracy,
        "scaling": constrained_scaling.scaling,
        "crossover": constrained_scaling.crossover,
    }


def soft_picture(rows: list[dict], path: Path) -> None:
    """Fig. 3: soft to hard, and the divergence past a weight of 1e8."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    labels = ("|K a - k| that is left, median", "|a - a hard| / |a hard|, median")
    for axis, key, label in zip(axes, ("residual", "distance"), labels, strict=True):
        for method in ("pv_soft", "ltl_soft"):
            chosen = [row for row in rows if row["method"] == method]
            name, style = STYLES[method]
            axis.loglog([r["weight"] for r in chosen], [r[key] for r in chosen], style, label=name)
        axis.axvline(1e8, color="grey", linestyle=":")
        axis.set_xlabel("weight 1/R")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.suptitle("humanoid, two feet and a hand welded softly")
    figure.savefig(path)
    plt.close(figure)


def scaling_picture(rows: list[dict], path: Path) -> None:
    """Operations over the joints of a chain held at its end, and the rows of a ladder."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, kind, key, label in (
        (axes[0], "chain", "n", "joints of a chain, its end welded"),
        (axes[1], "ladder", "m", "constraint rows on a ladder, six a rung"),
    ):
        chosen = [row for row in rows if row["kind"] == kind]
        for method in ("pv_early", "pv", "ltl"):
            known = [row for row in chosen if method in row]
            name, style = STYLES[method]
            axis.plot([r[key] for r in known], [r[method] / 1e3 for r in known], style, label=name)
        top = max(row[m] for row in chosen for m in ("pv_early", "pv"))
        axis.set_ylim(0, 1.1 * top / 1e3)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("thousand operations")
    axes[0].legend()
    figure.savefig(path)
    plt.close(figure)


def crossover_picture(rows: list[dict], path: Path) -> None:
    """Fig. 2f: PV-OSIM against EFPA along the stem, for several numbers of branches."""
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for i, row in enumerate(rows):
        stems = [2**j for j in range(10)]
        ratio = [operations(row, "pv_osim", n) / operations(row, "c_efpa", n) for n in stems]
        label = f"{row['branches']} branches of {row['length']}"
        axis.semilogx(stems, ratio, f"C{i}-", base=2, label=label)
        counted = [row["stem"], row["stem"] + row["step"]]
        ratio = [operations(row, "pv_osim", n) / operations(row, "c_efpa", n) for n in counted]
        axis.plot(counted, ratio, f"C{i}o")
    axis.axhline(1.0, color="grey", linestyle=":")
    axis.set_xlabel("links of the stem")
    axis.set_ylabel("operations, PV-OSIM / EFPA")
    axis.grid(alpha=0.3)
    axis.legend(title="on either end")
    figure.savefig(path)
    plt.close(figure)


def operations(row: dict, method: str, stem: int) -> float:
    """Counted at two stems; every further link costs the same."""
    return row[method] + (stem - row["stem"]) * row[f"{method} a link"]


def report(data: dict, out: Path) -> str:
    """The section, its pictures drawn beside it."""
    soft_picture(data["soft"], out / "soft.svg")
    scaling_picture(data["scaling"], out / "constrained_scaling.svg")
    crossover_picture(data["crossover"], out / "osim_crossover.svg")
    times, counts = ({f"{m} {unit}": m for m in constrained.METHODS} for unit in ("µs", "ops"))
    return "\n".join([
        "## Constrained dynamics: Table II of Sathya et al. again", "",
        "µs a state of compiled kernels, one lane; `from Python` is a bound call of PV-early, "
        "a ratio with it Pinocchio's constraintDynamics over it. States are random, some near "
        "singular postures, where PV-early takes its branch. `slowest` is such a call at the "
        f"slowest of {constrained.POSTURES} random postures and the neutral one, of those at which "
        "Pinocchio computes the same. `error` against the KKT system solved in fifty digits.", "",
        table(data["constrained"], {
            "robot": "robot", "m": "rows", **times, "LTL / PV-early": "LTL / PV-early",
            "bound µs": "from Python", "Pinocchio µs": "Pinocchio",
            "Pinocchio, loops µs": "Pinocchio, loops*", "MuJoCo µs": "MuJoCo",
            "Pinocchio / ours": "Pinocchio / from Python", "slowest µs": "slowest",
            "Pinocchio / slowest": "Pinocchio / slowest", "error": "error",
        }), "",
        "*Mini Cheetah's rotors in Pinocchio: constraintDynamics refuses mimic joints, and its "
        "constraints know no gear ratio; the column times as many rotors closed 1:1 by points, "
        "the nearest thing it computes. MuJoCo's constraints are soft.", "",
        "Operations of the same kernels, PV-early's branch aside:", "",
        table(data["constrained"], {
            "robot": "robot", "m": "rows", **counts, "ops ratio": "LTL / PV-early",
        }), "",
        "## PV-early and LTL beyond that table, µs", "",
        "Other arms with the hand held or welded, robots with loops and other constraints; and "
        "quadrupeds whose legs are exactly straight, where PV-early takes its branch.", "",
        table(data["constrained_elsewhere"], {
            "robot": "robot", "posture": "posture", "PV-early µs": "PV-early", "LTL µs": "LTL",
            "LTL / PV-early": "LTL / PV-early", "ops ratio": "the same in operations",
        }), "",
        "## Constrained dynamics in C++, as reported for such a machine, µs", "",
        "Pinocchio compiled, through code generation, and its own `pv`; ours in a loop of compiled "
        "code, one lane, checked against a solve in fifty digits. Cassie is example-robot-data's "
        "cassie_v2.sdf.", "",
        table(data["constrained_rivals"], {
            "what": "", "compiled": "compiled", "generated": "generated", "own": "its pv",
            "ours": "ours", "method": "method", "ratio": "best / ours", "ops": "operations",
            "error": "error",
        }), "",
        "## PV-OSIM and EFPA on the long stalk (Fig. 2f), operations", "",
        table(data["crossover"], {
            "branches": "branches on either end", "length": "links a branch",
            "pv_osim a link": "PV-OSIM, a link of the stem", "c_efpa a link": "EFPA, a link",
            "crossing": "EFPA ahead from this stem on",
        }), "",
        "![soft](soft.svg)", "", "![scaling](constrained_scaling.svg)", "",
        "![crossover](osim_crossover.svg)", "",
    ])  # fmt: skip
