"""Speed and accuracy on a GPU, in two halves.

python -m benchmarks.gpu prepare DIR     here: bundles, inputs, reference outputs of the CPU
python DIR/run.py [--out FOLDER]         on the GPU machine: NumPy, CuPy, torch, JAX alone
python -m benchmarks.gpu keep FOLDER     here: the results into benchmarks/results/
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from tests.compiler.operations import NORMAL, all_operations, expected, samples

import grubler as gb
from grubler.compiler import iterate
from grubler.compiler.frontend.trace import trace
from grubler.compiler.ir.ops import OPS
from grubler.compiler.passes.simplify import simplify
from grubler.compiler.runtime.cuda import CudaFunction, compile_cuda

STATES = 4096
# robot, algorithm, dtype, goal in 10^9 evaluations a second (None: shown for comparison)
CASES = (
    ("quadruped", "forward_dynamics", "float32", 6.5),
    ("mini_cheetah", "forward_dynamics", "float32", 3.0),
    ("mini_cheetah", "inverse_dynamics", "float32", 6.0),
    ("mit_humanoid", "forward_dynamics", "float32", 1.0),
    ("tello", "forward_dynamics", "float32", 1.0),
    ("mini_cheetah", "forward_dynamics", "float64", 0.7),
    ("quadruped", "forward_dynamics", "float64", None),
    ("mit_humanoid", "forward_dynamics", "float64", None),
    ("tello", "forward_dynamics", "float64", None),
    ("mini_cheetah", "constrained_forward_dynamics", "float32", None),
    ("mini_cheetah", "constrained_forward_dynamics", "float64", None),
    ("mini_cheetah", "forward_dynamics_derivatives", "float32", 0.5),
    ("mini_cheetah", "forward_dynamics_derivatives", "float64", None),
    ("mini_cheetah", "vjp_forward_dynamics", "float32", 2.5),
    ("mini_cheetah", "vjp_forward_dynamics", "float64", None),
)
# Four feet on the ground, resolved early; a warp of legs that are straight among bent ones.
LEGS = ("HR", "HL", "FR", "FL")
OPTIONS = {
    "constrained_forward_dynamics": {
        "constraints": tuple(gb.Constraint(f"{leg}_foot_contact", "point") for leg in LEGS),
        "method": "pv_early",
    }
}
SINGULAR = 32
# robot, integrator, dtype, steps in a launch; a step is 1 ms
SIMULATIONS = (
    ("mini_cheetah", "semi_implicit", "float32", 1),
    ("mini_cheetah", "semi_implicit", "float32", 100),
    ("mini_cheetah", "semi_implicit", "float64", 1),
    ("mini_cheetah", "semi_implicit", "float64", 100),
    ("mini_cheetah", "rk4", "float32", 100),
    ("four_bar", "semi_implicit", "float32", 100),
    ("four_bar", "semi_implicit", "float64", 100),
    ("four_bar", "rk4", "float64", 100),
    ("six_bar", "semi_implicit", "float32", 100),
    ("planar_leg_linkage", "semi_implicit", "float64", 100),
)
SIMULATED = 100  # steps, of so many robots compared with the CPU
ROBOTS = 128
_HERE = Path(__file__).parent


def states(model: gb.Model) -> list[np.ndarray]:
    """Assembled states and a force or acceleration for each."""
    drawn = [model.random_state(seed) for seed in range(STATES)]
    q, v = (np.stack(x) for x in zip(*drawn))
    return [q, v, np.random.default_rng(0).uniform(-1, 1, v.shape)]


def standing(model: gb.Model, q: np.ndarray) -> np.ndarray:
    """Positions with legs as they are used, knees bent, but for some that are straight."""
    q, rng = q.copy(), np.random.default_rng(2)
    ranges = {"abad": (-0.4, 0.4), "hip": (-1.0, 0.5), "knee": (0.7, 2.0)}
    for cluster in model.clusters:
        for name, limits in ranges.items():
            if any(name in model.bodies[i].name for i in cluster.bodies):
                q[:, cluster.q] = rng.uniform(*limits, (len(q), 1))
    q[:SINGULAR] = model.neutral()
    return q


def function(algorithm: str, model: gb.Model):
    """A public function by its name, or the product of one."""
    kind, _, of = algorithm.partition("_")
    return gb.vjp(getattr(gb, of), model) if kind == "vjp" else getattr(gb, algorithm)


def prepare(folder: Path, candidates: int | None, only: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for robot, algorithm, dtype, goal in CASES:
        if only and algorithm not in only:
            continue
        model, name = gb.robots.load(robot), f"{robot}_{algorithm}"
        fn, options = function(algorithm, model), OPTIONS.get(algorithm, {})
        if not (folder / f"{name}.npz").exists():
            arguments = states(model)
            if algorithm.startswith("vjp"):
                arguments.append(np.random.default_rng(1).normal(size=arguments[1].shape))
            if options:
                arguments[0] = standing(model, arguments[0])
            save(folder / f"{name}.npz", arguments, gb.compile(fn, model, **options)(*arguments))
        compiled = gb.compile(fn, model, target="cuda", dtype=dtype, **options)
        paths = gb.export(
            compiled, folder / "bundle", target="cuda", name=f"{name}_{dtype}",
            candidates=candidates,
        )  # fmt: skip
        print(f"{name} {dtype}: {len(paths) - 2} candidates", flush=True)
        listed.append({
            "name": f"{name}_{dtype}", "data": f"{name}.npz", "robot": robot,
            "algorithm": algorithm, "dtype": dtype, "goal": goal, "tape": len(compiled.tape),
        })  # fmt: skip
    listed += [] if only else kepler(folder)
    (folder / "cases.json").write_text(json.dumps(listed, indent=1) + "\n")
    simulated = [] if only else simulations(folder, candidates)
    (folder / "simulations.json").write_text(json.dumps(simulated, indent=1) + "\n")
    operations(folder)
    tree(folder)
    shutil.copy(_HERE / "gpu_run.py", folder / "run.py")
    shutil.copy(_HERE / "gpu_interface.py", folder)
    shutil.copy(_HERE / "gpu_rivals.py", folder)
    shutil.copy(_HERE / "gpu_simulation.py", folder)


def save(path: Path, arguments, outputs) -> None:
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    named = {f"in{i}": x for i, x in enumerate(arguments)}
    np.savez_compressed(path, **named, **{f"out{i}": x for i, x in enumerate(outputs)})


def kepler(folder: Path) -> list[dict]:
    """A Newton loop that each thread leaves when it has converged: Kepler's equation."""

    def step(x, e, m):
        residual = x - e * np.sin(x) - m
        return x - residual / (1.0 - e * np.cos(x)), residual

    def solve(e, m):
        return iterate(step, m, e, m, count=30, tolerance=1e-12)

    shapes, names = [(3,), (3,)], ("x", "residual", "steps")
    rng = np.random.default_rng(0)
    arguments = [rng.uniform(0, 0.6, (STATES, 3)), rng.uniform(-3, 3, (STATES, 3))]
    reference = gb.compiler.compile_function(solve, shapes, output_names=names)(*arguments)
    save(folder / "kepler.npz", arguments, reference)
    compiled = compile_cuda(solve, shapes, output_names=names, dtype="float64", name="kepler")
    gb.export(compiled, folder / "bundle", target="cuda", name="kepler")
    return [{
        "name": "kepler", "data": "kepler.npz", "robot": "Newton loop", "algorithm": "kepler",
        "dtype": "float64", "goal": None, "tape": compiled.tape.total,
    }]  # fmt: skip


def simulations(folder: Path, candidates: int | None) -> list[dict]:
    """Steps of robots, and where the CPU's simulation of the same robots ends."""
    listed = []
    for robot, integrator, dtype, substeps in SIMULATIONS:
        model, data = gb.robots.load(robot), folder / f"{robot}_{integrator}.npz"
        if not data.exists():
            drawn = [model.random_state(seed) for seed in range(ROBOTS)]
            q, v = (np.stack(x) for x in zip(*drawn))
            wanted = np.random.default_rng(1).uniform(-1, 1, v.shape)  # of acceleration
            tau = np.stack([gb.mass_matrix(model, x) @ a for x, a in zip(q, wanted)])
            on_cpu = gb.Simulator(model, 1e-3, integrator, batch=ROBOTS)
            run = on_cpu.run(q, v, tau, steps=SIMULATED)
            save(data, (q, v, tau), (run.q[-1], run.v[-1]))
        simulator = gb.Simulator(
            model, 1e-3, integrator, target="cuda", dtype=dtype, substeps=substeps, batch=ROBOTS
        )
        name = f"{robot}_{integrator}_{dtype}_{substeps}"
        simulator.export(folder / "bundle", name=name, candidates=candidates)
        print(name, flush=True)
        listed.append({
            "name": name, "data": data.name, "robot": robot, "integrator": integrator,
            "dtype": dtype, "substeps": substeps, "steps": SIMULATED,
        })  # fmt: skip
    return listed


def operations(folder: Path) -> None:
    """Every operation of a tape, with NumPy's results and the bounds that the CPU keeps."""
    for dtype in ("float32", "float64"):
        tape = all_operations()
        program = SimpleNamespace(
            tape=tape, inputs=tape.inputs, outputs=tape.outputs, dtype=np.dtype(dtype),
            digest=tape.digest(),
        )  # fmt: skip
        name = f"operations_{dtype}"
        gb.export(CudaFunction(program, name, "sm_90"), folder / "bundle", target="cuda", name=name)
        table = {}
        for op in sorted(OPS):
            x = samples(op, dtype, NORMAL)
            table[f"{op}_x"] = np.pad(x, ((0, 0), (0, 3 - x.shape[1])))
            table[f"{op}_result"], table[f"{op}_bound"] = expected(op, x)
        np.savez_compressed(folder / f"{name}.npz", **table)


def tree(folder: Path) -> None:
    """The quadruped for the rivals: its bodies, and its instructions."""
    model = gb.robots.load("quadruped")
    bodies = [
        {
            "parent": b.parent, "E": b.joint.placement.E.tolist(),
            "r": b.joint.placement.r.tolist(), "inertia": b.spatial.tolist(),
            "axis": int(np.flatnonzero(b.joint.motion.axis)[0]) if b.parent >= 0 else -1,
        }
        for b in model.bodies
    ]  # fmt: skip
    robot = {"gravity": model.gravity.tolist(), "bodies": bodies}
    (folder / "tree.json").write_text(json.dumps(robot))
    shapes = [(model.nq,), (model.nv,), (model.nv,)]
    tape = simplify(trace(lambda q, v, tau: gb.forward_dynamics(model, q, v, tau), shapes))
    lines = {"lines": tape.instructions, "outputs": tape.results[0]}
    (folder / "tree_tape.json").write_text(json.dumps(lines))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("what", choices=("prepare", "keep"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--candidates", type=int, help="plans a case (default: all)")
    parser.add_argument("--only", nargs="*", default=[], help="algorithms, and no simulations")
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.folder, given.candidates, given.only)
    else:
        results = _HERE / "results"
        results.mkdir(exist_ok=True)
        for name in ("gpu.json", "gpu.md"):
            shutil.copyfile(given.folder / name, results / name)


if __name__ == "__main__":
    main()
