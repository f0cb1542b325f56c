"""Conservative runs of mechanisms that pass singularities of their coordinates.

    python -m benchmarks.conservation [--seconds 10] [--only NAME]

No torque, no passive force, rk4, dt 1e-3: the energy must stay, and every loop must be closed at
every state. A run ends early where the mechanism itself is singular; then what came before counts.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import grubler as gb

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models"
ENERGY, GAP = 1e-5, 1e-10  # relative to the largest kinetic energy; m or rad


def rssr() -> gb.Model:
    """A crank about z, a rod on two balls, a rocker about x: every coordinate has dead points."""
    builder = gb.ModelBuilder("rssr")
    builder.add_body("crank", 1.0, (0.1, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01))
    builder.add_body("rod", 0.5, (0.35, 0, 0), (0.001, 0, 0, 0.02, 0, 0.02))
    builder.add_body("rocker", 1.0, (0, 0, 0.2), (0.01, 0, 0, 0.01, 0, 0.01))
    builder.add_joint("jc", "revolute", "world", "crank", axis=(0, 0, 1))
    builder.add_joint("js", "spherical", "crank", "rod", xyz=(0.2, 0, 0))
    builder.add_joint("jr", "revolute", "world", "rocker", xyz=(0.6, 0.3, 0.1), axis=(1, 0, 0))
    builder.add_loop(
        "ball", "ball", "rod", "rocker", predecessor_xyz=(0.7, 0, 0), successor_xyz=(0, 0, 0.45)
    )
    return builder.build()


def scaled(model: gb.Model, seed: int, speed: float):
    """A random state whose fastest coordinate has the given speed."""
    q, v = model.random_state(seed=seed)
    return q, v / np.abs(v).max() * speed


def shared(name: str, **options) -> gb.Model | None:
    path = SHARED / name
    if not path.exists():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gb.load(path, **options)


def cases() -> Iterator[tuple[str, gb.Model, list]]:
    """(name, model, states) of each mechanism; files that are not there are left out."""
    model = rssr()
    yield "rssr", model, [(model.random_state(seed=s)) for s in range(12)]
    model = gb.robots.load("six_bar")
    yield "six_bar", model, [scaled(model, s, 6.0) for s in range(200)]
    model = gb.robots.load("four_bar")
    q = model.random_state(seed=0)[0]
    crank = np.array([8.0])
    for name in model.spanning_names:
        other = gb.repartition(model, q, independent=[name])
        v = gb.convert_velocity(model, other, q, crank)
        yield f"four_bar in {name}", other, [(q, v), (q, 8.0 * np.sign(v))]
    model = gb.robots.load("parallel_four_bar")
    yield "parallel_four_bar", model, [scaled(model, s, 8.0) for s in range(4)]
    model = gb.robots.load("planar_leg_linkage")
    yield "planar_leg_linkage", model, [scaled(model, s, 6.0) for s in range(10)]
    for name, speed, options in (
        ("cassie_mjcf/cassie.xml", 2.0, {"base": "fixed"}),
        ("gepetto_digit_like/robot.yaml", 2.0, {}),
        ("stewart_sdf/stewart_sdf.sdf", 0.5, {"base": "fixed"}),
    ):
        model = shared(name, **options)
        if model is not None:
            yield name.split("/")[0], model, [scaled(model, s, speed) for s in range(4)]


def gaps(model: gb.Model, q: np.ndarray) -> float:
    """The largest loop residual of any state."""
    return max(model.loop_gap(state) for state in q)


def run(model: gb.Model, states: list, seconds: float, dt: float = 1e-3) -> list[dict]:
    sim, rows = gb.Simulator(model, dt, "rk4"), []
    for q, v in states:
        stopped = ""
        try:
            trajectory = sim.run(q, v, steps=round(seconds / dt))
        except gb.SimulationError as error:
            trajectory, stopped = error.trajectory, str(error)
        energy, kinetic = trajectory.energy, trajectory.kinetic
        rows.append(
            {
                "seconds": trajectory.time[-1], "stopped": stopped,
                "energy": np.ptp(energy) / kinetic.max(),
                "gap": gaps(model, trajectory.q),
                "carried": float(np.mean(np.any(trajectory.carried != 0, axis=1))),
            }
        )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=10**6, help="states of each mechanism")
    options = parser.parse_args()
    print("| mechanism | runs | to the end | energy, median | largest | gap | beside v |")
    print("|---|---|---|---|---|---|---|")
    for name, model, states in cases():
        if options.only not in name:
            continue
        rows = run(model, states[: options.limit], options.seconds)
        whole = sum(not row["stopped"] for row in rows)
        energy = [row["energy"] for row in rows]
        print(
            f"| {name} | {len(rows)} | {whole} | {np.median(energy):.1e} | {max(energy):.1e} "
            f"| {max(row['gap'] for row in rows):.0e} "
            f"| {np.mean([row['carried'] for row in rows]):.1%} |",
            flush=True,
        )
        for i, row in enumerate(rows):
            if row["stopped"] or row["energy"] > ENERGY or row["gap"] > GAP:
                print(f"  {i}: {row['seconds']:.3f} s, {row['energy']:.1e}, {row['stopped']}")


if __name__ == "__main__":
    main()
