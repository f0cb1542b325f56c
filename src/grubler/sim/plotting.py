"""The picture of a trajectory."""

from __future__ import annotations


def plot(trajectory, path=None):
    """A figure of velocities, energy and loop gap; saved and closed where a path is given."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install grubler[plot]") from error
    model, one = trajectory.model, trajectory.robot(0) if trajectory.batched else trajectory
    rows = 3 if model.loops else 2
    figure = Figure(figsize=(8, 2.4 * rows), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=True)
    for i, name in enumerate(model.v_names[:12]):
        axes[0].plot(one.time, one.v[:, i], label=name, linewidth=1)
    axes[0].set_ylabel("velocity [rad/s, m/s]")
    axes[0].legend(fontsize=6, ncols=3, loc="upper right")
    axes[1].plot(one.time, one.energy, "k", label="total")
    axes[1].plot(one.time, one.kinetic, "C0", linewidth=1, label="kinetic")
    axes[1].plot(one.time, one.potential, "C1", linewidth=1, label="potential")
    axes[1].set_ylabel("energy [J]")
    axes[1].legend(fontsize=7, loc="upper right")
    if rows == 3:
        axes[2].semilogy(one.time, one.loop_gap + 1e-18, "C3", linewidth=1)
        axes[2].set_ylabel("loop gap [m, rad]")
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("time [s]")
    axes[0].set_title(model.name)
    if path is not None:
        figure.savefig(path)
    return figure
