"""A free-swinging four-bar for ten seconds: energy and loop gap, beside MuJoCo's.

grubler closes the loop exactly at every step; MuJoCo holds it by a stiff `connect` equality, here
with its default settings and tuned (RK4, solref = 2 dt, solimp 0.9999). Needs mujoco, matplotlib.

    python examples/loops_never_drift.py [picture.svg]
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import grubler as gb

DT, SECONDS = 1e-3, 10.0
TUNED = {"integrator": "RK4", "solref": (2 * DT, 1.0), "solimp": (0.9999, 0.9999, 0.001, 0.5, 2.0)}


def ours(model, q, v, seconds):
    """Relative energy error and loop gap over time, by integrator."""
    out = {}
    for integrator in ("semi_implicit", "implicit_midpoint", "rk4"):
        run = gb.Simulator(model, DT, integrator).run(q, v, steps=round(seconds / DT))
        drift = np.abs(run.energy - run.energy[0]) / run.kinetic.max()
        out[f"grubler {integrator}"] = (run.time, drift, run.loop_gap)
    return out


def mujocos(model, q, v, seconds):
    """The same for MuJoCo, default and tuned."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "linkage.xml"
        with warnings.catch_warnings():  # MJCF cannot say which joint is independent
            warnings.simplefilter("ignore")
            gb.save(model, path)
        text = path.read_text()
    out = {}
    for label, options in (("MuJoCo default", {}), ("MuJoCo tuned", TUNED)):
        m = mujoco.MjModel.from_xml_string(text)
        m.opt.timestep = DT
        m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        if options:
            m.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
            m.eq_solref[:], m.eq_solimp[:] = options["solref"], options["solimp"]
        d = mujoco.MjData(m)
        state = gb.convert.to_mujoco(model, m, q, v)
        d.qpos[:], d.qvel[:] = state.q, state.v
        times, energy, gap, kinetic = [], [], [], []
        for _ in range(round(seconds / DT)):
            mujoco.mj_step(m, d)
            times.append(d.time)
            energy.append(d.energy.sum())
            kinetic.append(d.energy[1])
            gap.append(np.abs(d.efc_pos[: d.ne]).max())
        energy = np.array(energy)
        out[label] = (np.array(times), np.abs(energy - energy[0]) / max(kinetic), np.array(gap))
    return out


def main(path=None, seconds=SECONDS):
    model = gb.robots.load("four_bar")
    q, v = model.random_state(0)
    results = ours(model, q, v, seconds) | mujocos(model, q, v, seconds)
    print(f"four-bar swinging for {seconds:g} s at {DT * 1e3:g} ms")
    for label, (_, drift, gap) in results.items():
        print(f"  {label:<28} energy error {drift.max():8.1e}   loop gap {gap.max():8.1e} m")
    if path:
        plot(path, results)
        print(f"picture: {path}")
    return results


def plot(path, results):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 1, figsize=(8, 5.5), sharex=True, layout="constrained")
    for label, (time, drift, gap) in results.items():
        style = "--" if "MuJoCo" in label else "-"
        axes[0].semilogy(time, drift + 1e-16, style, label=label, linewidth=1)
        axes[1].semilogy(time, gap + 1e-18, style, linewidth=1)
    axes[0].set_ylabel("relative energy error")
    axes[1].set_ylabel("loop gap [m]")
    axes[1].set_xlabel("time [s]")
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
