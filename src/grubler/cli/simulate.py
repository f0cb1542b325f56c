"""Let a robot move: from its neutral configuration at rest, or from a random state.

A controller is `zero`, `pd` (holds the joints where they start), or a function of yours,
`tau = controller(t, q, v)`, as MODULE:FUNCTION or FILE.py:FUNCTION. A run that stops early
(Ctrl-C, a controller's mistake, a state that blows up) still writes what it computed.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

import grubler as gb

from . import view
from .common import (
    count,
    json_argument,
    load,
    not_negative,
    output,
    positive,
    robot_arguments,
    show,
)
from .controllers import controller
from .progress import counting, waiting

if TYPE_CHECKING:
    from ..model.model import Model
    from ..typing import Array

EXAMPLES = [
    ("grubler simulate four_bar --seed 0 --seconds 5 --plot swing.svg", "swing freely"),
    ("grubler simulate mini_cheetah --controller pd --out fall.npz", "joints held while it falls"),
    ("grubler simulate four_bar --controller control.py:push --view", "your own torques, watched"),
    ("grubler simulate arm7 --batch 64 --damping 0.1 --json", "64 robots, each its own state"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_arguments(parser)
    add = parser.add_argument
    add("--seconds", type=positive, default=2.0, help="how long (2)")
    add("--dt", type=positive, default=1e-3, help="step in seconds (0.001)")
    add("--integrator", default="rk4", choices=("semi_implicit", "rk4", "implicit_midpoint"))
    add("--controller", default="zero", help="zero, pd, MODULE:FUNCTION or FILE.py:FUNCTION (zero)")
    add("--seed", type=int, help="start from this random state")
    add("--batch", type=count, help="this many robots, each from its own random state")
    add("--damping", type=not_negative, default=0.0, help="of every joint, N m s")
    add("--out", type=output(), help="write the trajectory (npz)")
    add("--plot", type=output(".svg", ".png", ".pdf"), help="write a picture (svg, png, pdf)")
    add("--view", action="store_true", help="play it in the browser at the end")
    view.server_arguments(parser)
    json_argument(parser)


def run(arguments: Any) -> int:
    _need(arguments)
    model = load(arguments)
    q, v = start(model, arguments.seed, arguments.batch)
    control = controller(arguments.controller, model, q)
    passive = None
    if arguments.damping:
        passive = gb.Passive(damping={joint.name: arguments.damping for joint in model.joints})
    with waiting("compiling"):
        sim = gb.Simulator(
            model, arguments.dt, arguments.integrator, batch=arguments.batch, passive=passive
        )
        sim.step(q, v, np.zeros(v.shape))
    steps = max(1, round(arguments.seconds / arguments.dt))
    begun = time.perf_counter()
    try:
        with counting("simulating", steps) as tick:
            run, stopped = sim.run(q, v, _watched(control, tick, v), steps), None
    except (gb.SimulationError, KeyboardInterrupt) as error:
        run, stopped = getattr(error, "trajectory", None), error
        if run is None:
            raise
    took = time.perf_counter() - begun
    summary = summarize(run, took) | write(run, arguments)
    show(summary, arguments.json)
    if stopped is not None:
        raise stopped
    if arguments.view:
        view.show(run, arguments)
    return 0


def _need(arguments) -> None:
    """What is missing is said before anything is computed."""
    for wanted, module, extra in (
        (arguments.plot, "matplotlib", "plot"), (arguments.view, "viser", "view"),
    ):  # fmt: skip
        if wanted and find_spec(module) is None:
            raise ImportError(f"--{extra} needs {module}: pip install grubler[{extra}]")


def start(
    model: Model, seed: int | None, batch: int | None
) -> tuple[Array, ...] | tuple[Array, Array] | tuple[Array, Array]:
    """(q, v) to start from: at rest, from a random state, or from one for each robot."""
    if batch:
        states = [model.random_state((seed or 0) + i) for i in range(batch)]
        return tuple(np.stack(x) for x in zip(*states, strict=True))
    return model.random_state(seed) if seed is not None else (model.neutral(), np.zeros(model.nv))


def _watched(control, tick, v):
    """A controller that moves the bar on; only where there is somebody to watch."""
    if not sys.stderr.isatty():
        return control
    zero = np.zeros(v.shape)

    def watched(t, q, v):
        tick(1)
        return zero if control is None else control(t, q, v)

    return watched


def summarize(run: Any, took: float) -> dict[Any, Any]:
    steps = len(run) - 1
    robots = run.q.shape[1] if run.batched else 1
    looked = slice(None, None, max(1, len(run) // 50))
    thin = gb.Trajectory(run.model, *(x[looked] for x in (run.time, run.q, run.v, run.tau)))
    return {
        "robot": run.model.name,
        "robots": robots,
        "steps": steps,
        "simulated_s": float(run.time[-1]),
        "computed_in_s": took,
        "steps_per_second": steps * robots / took,
        "energy_start_J": float(np.mean(run.energy[0])),
        "energy_end_J": float(np.mean(run.energy[-1])),
        "largest_loop_gap": float(np.max(thin.loop_gap)),
    }


def write(run: Any, arguments: Any) -> dict[Any, Any]:
    """Save what was asked for; the trajectory first, so that a picture that fails costs nothing."""
    written = {}
    if arguments.out:
        written["trajectory"] = str(run.save(arguments.out))
    if arguments.plot:
        with waiting("drawing"):
            run.plot(arguments.plot)
        written["picture"] = str(arguments.plot)
    return written
