"""What each command does."""

from __future__ import annotations

import json
import platform
import time
from importlib import import_module
from pathlib import Path

import numpy as np

import grubler as gb

from ..compiler import cache, cpu


def load(arguments) -> gb.Model:
    """The robot named on the command line: a file where there is one, else from the zoo."""
    name = arguments.robot
    if Path(name).suffix or Path(name).exists():
        return gb.load(name, strict=arguments.strict, base=arguments.base)
    return gb.robots.load(name)


def robots(arguments) -> int:
    for name in gb.robots.names():
        model = gb.robots.load(name)
        print(
            f"{name:<20} {len(model.bodies):>3} bodies {len(model.loops):>3} loops "
            f"{len(model.clusters):>3} clusters {model.nv:>3} dof"
        )
    return 0


def check(arguments) -> int:
    from ..checks import check as look

    def model():
        return load(arguments)

    model.__name__ = Path(arguments.robot).name
    report = look(model, samples=arguments.samples)
    print(report.to_json() if arguments.json else report.table())
    return 0 if report.ok else 1


def simulate(arguments) -> int:
    model = load(arguments)
    if arguments.seed is None:
        q, v = model.neutral(), np.zeros(model.nv)
    else:
        q, v = model.random_state(arguments.seed)
    if arguments.batch:
        first = arguments.seed or 0
        states = [model.random_state(first + i) for i in range(arguments.batch)]
        q, v = (np.stack(x) for x in zip(*states, strict=True))
    passive = None
    if arguments.damping:
        passive = gb.Passive(damping={joint.name: arguments.damping for joint in model.joints})
    steps = max(1, round(arguments.seconds / arguments.dt))
    sim = gb.Simulator(
        model, arguments.dt, arguments.integrator, batch=arguments.batch, passive=passive
    )
    start = time.perf_counter()
    try:
        run, failed = sim.run(q, v, steps=steps), None
    except gb.SimulationError as error:
        run, failed = error.trajectory, error
    took = time.perf_counter() - start
    summary = {
        "robot": model.name,
        "steps": len(run) - 1,
        "seconds": float(run.time[-1]),
        "steps_per_second": (len(run) - 1) * (arguments.batch or 1) / took,
        "energy_start_J": float(np.mean(run.energy[0])),
        "energy_end_J": float(np.mean(run.energy[-1])),
        "largest_loop_gap": float(np.max(run.loop_gap[:: max(1, len(run) // 50)])),
    }
    if arguments.out:
        summary["trajectory"] = str(run.save(arguments.out))
    if arguments.plot:
        run.plot(arguments.plot)
        summary["picture"] = str(arguments.plot)
    _show(summary, arguments.json)
    if failed:
        raise failed
    return 0


def view(arguments) -> int:
    what = model = load(arguments)
    if arguments.trajectory:
        from ..sim import load as load_trajectory

        what = load_trajectory(arguments.trajectory, model)
    gb.view(what, port=arguments.port, host=arguments.host, open_browser=arguments.open)
    return 0


def export(arguments) -> int:
    model = load(arguments)
    function = getattr(gb, arguments.function)
    compiled = gb.compile(function, model, dtype=arguments.dtype)
    for path in gb.export(compiled, arguments.out, language=arguments.language):
        print(path)
    return 0


def info(arguments) -> int:
    host = cpu.host()
    data = {
        "grubler": gb.__version__,
        "python": platform.python_version(),
        "cpu": host.name,
        "lanes fp64": host.lanes("float64"),
        "lanes fp32": host.lanes("float32"),
        "cache": str(cache.folder() or "off"),
    }
    for name in ("numpy", "casadi", "llvmlite", "mujoco", "matplotlib"):
        try:
            data[name] = import_module(name).__version__
        except ImportError:
            data[name] = "not installed"
    _show(data, arguments.json)
    return 0


def _show(data: dict, as_json: bool) -> None:
    if as_json:
        print(json.dumps(data, indent=1))
        return
    width = max(map(len, data))
    for key, value in data.items():
        print(f"{key.replace('_', ' '):<{width}}  {value:.6g}" if isinstance(value, float) else
              f"{key.replace('_', ' '):<{width}}  {value}")  # fmt: skip
