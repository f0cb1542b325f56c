"""The picture of a trajectory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

POINTS = 2000  # more than a picture can show
LINES = 10  # velocities that are drawn; more hide each other


def plot(trajectory: Any, path: Any = None) -> Any:
    """A figure of velocities, energy and loop gap; saved and closed where a path is given."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install grubler[plot]") from error
    model, one = trajectory.model, trajectory.robot(0) if trajectory.batched else trajectory
    every = slice(None, None, max(1, len(one) // POINTS))
    one = replace(one, time=one.time[every], q=one.q[every], v=one.v[every], tau=one.tau[every])
    gap = one.loop_gap if model.loops else None
    rows = 2 if gap is None or not gap.any() else 3  # explicit loops are closed by construction
    figure = Figure(figsize=(8, 2.4 * rows), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=True)
    for i in np.argsort(-np.abs(one.v).max(axis=0), kind="stable")[:LINES]:  # the liveliest
        axes[0].plot(one.time, one.v[:, i], label=model.v_names[i], linewidth=1)
    axes[0].set_ylabel("velocity [rad/s, m/s]")
    beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": 7}
    axes[0].legend(**beside)
    axes[1].plot(one.time, one.energy, "k", label="total")
    axes[1].plot(one.time, one.kinetic, "C0", linewidth=1, label="kinetic")
    axes[1].plot(one.time, one.potential, "C1", linewidth=1, label="potential")
    axes[1].set_ylabel("energy [J]")
    axes[1].legend(**beside)
    if rows == 3:
        axes[2].semilogy(one.time, gap + 1e-18, "C3", linewidth=1)
        axes[2].set_ylabel("loop gap [m, rad]")
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("time [s]")
    axes[0].set_title(model.name)
    if path is not None:
        figure.savefig(path)
    return figure
