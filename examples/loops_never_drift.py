"""Loops that never drift: mechanisms swinging for ten seconds at 1 ms, beside MuJoCo's.

grubler closes every loop exactly at every step; MuJoCo holds it by a stiff equality, here with its
default settings (first order) and tuned (RK4, solref = 2 dt, solimp 0.9999). A four-bar and a chain
with geared rotors swing freely. Cassie (`--cassie cassie.xml`, the MJCF of its maker) has its
pelvis held, its leaf springs, and a spring in the place of each motor, so that its legs quiver
about their pose and both loops of each leg move. MuJoCo's columns are left out where it is not
installed.

    python examples/loops_never_drift.py [--cassie cassie.xml] [--picture drift.svg] [--seconds 10]
"""

import argparse
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import grubler as gb

DT = 1e-3
INTEGRATORS = ("semi_implicit", "implicit_midpoint", "rk4")
SOLREF, SOLIMP = (2 * DT, 1.0), (0.9999, 0.9999, 0.001, 0.5, 2.0)
LEAF_SPRINGS = {"shin": 1500.0, "heel-spring": 1250.0}  # N m/rad, as in Cassie's file
MOTORS = ("hip-roll", "hip-yaw", "hip-pitch", "knee", "foot-crank")


@dataclass
class Case:
    """A mechanism, where it starts, and springs {joint: (stiffness, rest position)}."""

    name: str
    model: gb.Model
    q: np.ndarray
    v: np.ndarray
    springs: dict[str, tuple[float, float]] = field(default_factory=dict)

    def spring_energy(self, run) -> np.ndarray:
        """Of every recorded state, in J."""
        parts = [
            0.5 * k * (run[name][:, 0] - rest) ** 2 for name, (k, rest) in self.springs.items()
        ]
        return np.sum(parts, axis=0) if parts else np.zeros(len(run))


def four_bar() -> Case:
    model = gb.robots.load("four_bar")
    return Case("four-bar", model, *model.random_state(0))


def geared_chain() -> Case:
    model = gb.robots.load("gt_chain", n=4, seed=1)
    return Case("chain of 4 links with rotors", model, model.neutral(), np.zeros(model.nv))


def cassie(path) -> Case:
    """Coordinates are chosen that stay regular over the whole motion: with the leaf springs and the
    rod's idle spin independent, a leg is singular only where its rod passes through the ankle."""
    with warnings.catch_warnings():  # the file's friction, contacts and sensors are not used
        warnings.simplefilter("ignore")
        model = gb.load(path, base="fixed")
    q = model.neutral()
    sides = ("left", "right")
    chosen = ("knee", "shin", "heel-spring", "achilles-rod:wx")
    model = gb.repartition(model, q, [f"{side}-{name}" for side in sides for name in chosen])
    inertia = dict(zip(model.v_names, np.diag(gb.mass_matrix(model, q)), strict=True))
    springs = {f"{side}-{n}": (k, 0.0) for side in sides for n, k in LEAF_SPRINGS.items()}
    for name in [f"{side}-{motor}" for side in sides for motor in MOTORS]:
        springs[name] = (100.0 * inertia[name], float(q[model.q_names.index(name)]))
    v = np.random.default_rng(0).uniform(-1, 1, model.nv)
    v *= [any(motor in name for motor in MOTORS) for name in model.v_names]
    return Case("Cassie's legs", model, q, v, springs)


def ours(case: Case, seconds: float, integrators=INTEGRATORS) -> dict:
    """(time, energy error relative to the largest kinetic energy, loop gap), by integrator."""
    out = {}
    passive = gb.Passive(spring=case.springs)
    for integrator in integrators:
        sim = gb.Simulator(case.model, DT, integrator, passive=passive)
        run = sim.run(case.q, case.v, steps=round(seconds / DT))
        energy = run.energy + case.spring_energy(run)
        drift = np.abs(energy - energy[0]) / run.kinetic.max()
        out[f"grubler {integrator}"] = (run.time, drift, run.loop_gap)
    return out


def mujocos(case: Case, seconds: float) -> dict:
    """The same for MuJoCo, default and tuned; nothing where it is not installed."""
    try:
        import mujoco
    except ImportError:
        return {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MJCF cannot say which joints are independent
        path = Path(folder) / "linkage.xml"
        gb.save(case.model, path)
        text = path.read_text()
    out = {}
    for label in ("MuJoCo default", "MuJoCo tuned"):
        m = mujoco.MjModel.from_xml_string(text)
        m.opt.timestep = DT
        m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
        # the same mechanism on both sides: what the file says of damping and springs is left out
        m.dof_damping[:], m.dof_frictionloss[:], m.jnt_stiffness[:] = 0.0, 0.0, 0.0
        for name, (stiffness, rest) in case.springs.items():
            m.joint(name).stiffness[0] = stiffness
            m.qpos_spring[m.joint(name).qposadr[0]] = rest
        if label == "MuJoCo tuned":
            m.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
            m.eq_solref[:], m.eq_solimp[:] = SOLREF, SOLIMP
        d = mujoco.MjData(m)
        state = gb.convert.to_mujoco(case.model, m, case.q, case.v)
        d.qpos[:], d.qvel[:] = state.q, state.v
        rows = []
        for _ in range(round(seconds / DT)):
            mujoco.mj_step(m, d)
            rows.append((d.time, d.energy.sum(), d.energy[1], np.abs(d.efc_pos[: d.ne]).max()))
        time, energy, kinetic, gap = np.array(rows).T
        out[label] = (time, np.abs(energy - energy[0]) / kinetic.max(), gap)
    return out


def compare(case: Case, seconds: float) -> dict:
    results = ours(case, seconds) | mujocos(case, seconds)
    print(f"{case.name}, {case.model.nv} degrees of freedom, {seconds:g} s at {DT * 1e3:g} ms")
    for label, (_, drift, gap) in results.items():
        print(f"  {label:<28} energy error {drift.max():8.1e}   loop gap {gap.max():8.1e}")
    return results


def main(cases, seconds: float = 10.0, picture=None) -> dict:
    results = {case.name: compare(case, seconds) for case in cases}
    if picture:
        plot(picture, results)
        print(f"picture: {picture}")
    return results


def plot(path, results) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * len(results), 5.2), layout="constrained")
    axes = figure.subplots(2, len(results), sharex=True, sharey="row", squeeze=False)
    for column, (name, lines) in zip(axes.T, results.items(), strict=True):
        column[0].set_title(name, fontsize=10)
        for k, (label, (time, drift, gap)) in enumerate(lines.items()):
            style = {"color": f"C{k}", "linewidth": 1, "linestyle": "--" if k > 2 else "-"}
            thin = slice(None, None, max(1, len(time) // 400))
            column[0].semilogy(time[thin], drift[thin] + 1e-16, label=label, **style)
            column[1].semilogy(time[thin], gap[thin] + 1e-18, **style)
        column[1].set_xlabel("time [s]")
        for axis in column:
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("relative energy error")
    axes[1, 0].set_ylabel("loop gap [m, rad]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5,
                  fontsize=8)  # fmt: skip
    figure.savefig(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cassie", metavar="FILE", help="Cassie's MJCF, to add its legs")
    parser.add_argument("--picture", metavar="FILE", help="where to draw (svg, png, pdf)")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    chosen = [four_bar(), geared_chain(), *([cassie(given.cassie)] if given.cassie else [])]
    main(chosen, given.seconds, given.picture)
