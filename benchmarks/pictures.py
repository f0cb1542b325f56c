"""Pictures of the results."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

STYLES = {
    "c_aba": ("C-ABA", "C0o-"),
    "projection": ("projection", "C1s--"),
    "lagrange": ("Lagrange multipliers", "C3^:"),
}


def chain_picture(rows: list[dict], path: Path) -> None:
    """Fig. 11: linear against cubic growth along a chain."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    titles = {"gt_chain": "geared transmissions", "pbt_chain": "parallel belt transmissions"}
    for axis, (chain, title) in zip(axes, titles.items(), strict=True):
        chosen = [row for row in rows if row["chain"] == chain]
        for method, (label, style) in STYLES.items():
            axis.plot([r["n"] for r in chosen], [r[method] for r in chosen], style, label=label)
        axis.set_title(title)
        axis.set_xlabel("links")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("forward dynamics, one lane [µs]")
    axes[0].legend()
    figure.savefig(path)
    plt.close(figure)


def speedup_picture(rows: list[dict], path: Path) -> None:
    """How many times faster than Pinocchio from Python, by robot."""
    figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
    bars = [("aba_ratio", "one state"), ("aba_batch_ratio", "batch of 4096, one core")]
    for i, (key, label) in enumerate(bars):
        places = [n + 0.38 * (i - 0.5) for n in range(len(rows))]
        drawn = axis.bar(places, [r[key] for r in rows], 0.36, label=label)
        axis.bar_label(drawn, fmt="%.0f×")
    axis.set_xticks(range(len(rows)), [r["robot"] for r in rows])
    axis.margins(y=0.12)  # room for the numbers on top
    axis.set_ylabel("speed against pin.aba")
    axis.legend()
    figure.savefig(path)
    plt.close(figure)
