"""Time a robot's compiled dynamics here, side by side with Pinocchio and MuJoCo where installed.

One state is a bound call from Python; a batch runs over the SIMD lanes of one core (--threads for
more). Rounds take turns, so that a slow spell of the machine falls on all. `agrees to` is how far
a rival's result is from ours: other numbers are another robot, or loops that it leaves out.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

import numpy as np

import grubler as gb

from ..compiler.backends.cpu import host as cpu
from . import rivals
from .common import count, json_argument, load, robot_arguments, table
from .progress import counting, waiting
from .timing import interleaved

FUNCTIONS: dict[Any, Any] = {
    "forward_dynamics": (gb.forward_dynamics, "Cluster ABA"),
    "inverse_dynamics": (gb.inverse_dynamics, "Cluster RNEA"),
    "mass_matrix": (gb.mass_matrix, "Cluster CRBA"),
}
EXAMPLES = [
    ("grubler bench mini_cheetah", "forward and inverse dynamics, mass matrix"),
    ("grubler bench robot.urdf --batch 256 --rounds 5", "a short look at a robot of yours"),
    ("grubler bench four_bar --rounds 3 --json", "the same, for a program"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_arguments(parser)
    parser.add_argument("--batch", type=count, default=4096, help="states a call (4096)")
    parser.add_argument("--threads", type=count, default=1, help="for the batch (1)")
    parser.add_argument("--rounds", type=count, default=15, help="of which the best counts (15)")
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    json_argument(parser)


def run(arguments: Any) -> int:
    model = load(arguments)
    q, v = model.random_state(0)
    state = (q, v, np.random.default_rng(0).uniform(-1, 1, model.nv))
    rows, left_out = [], {}
    for name, (function, label) in FUNCTIONS.items():
        with waiting(f"compiling {name}"):
            compiled = gb.compile(function, model, dtype=arguments.dtype)
            operations = gb.count_operations(function, model)
            calls, ours = _ours(compiled, state[: len(compiled.inputs)], arguments)
        others, missing = rivals.calls(name, model, state)
        left_out |= missing
        with counting(name, arguments.rounds, "rounds") as tick:
            seconds = interleaved(
                calls | {k: call for k, (call, _) in others.items()}, arguments.rounds, tick=tick
            )
        rows.append({
            "function": name, "what": label, "us": seconds["one"] * 1e6,
            "batch_us": seconds["batch"] / arguments.batch * 1e6,
            "operations": asdict(operations) | {"total": operations.total},
            "rivals": [
                {"what": k, "us": seconds[k] * 1e6, "times_ours": seconds[k] / seconds["one"],
                 "agrees_to": _distance(ours, result())}
                for k, (_, result) in others.items()
            ],
        })  # fmt: skip
    data = {
        "robot": model.name, "dof": model.nv, "bodies": len(model.bodies),
        "loops": len(model.loops), "cpu": cpu.host().name, "dtype": arguments.dtype,
        "batch": arguments.batch, "threads": arguments.threads, "rows": rows,
        "left_out": left_out,
    }  # fmt: skip
    print(json.dumps(data, indent=1) if arguments.json else _text(data))
    return 0


def _ours(compiled, state, arguments):
    """Calls of one state and of a batch, and the result of the first."""
    own = [np.ascontiguousarray(x, dtype=arguments.dtype) for x in state]
    batch = [np.tile(x, (arguments.batch, 1)) for x in own]
    out = np.empty((arguments.batch, *compiled.outputs[0].shape), dtype=arguments.dtype)
    calls = {
        "one": compiled.bind(*own),
        "batch": lambda: compiled(*batch, out=out, threads=arguments.threads),
    }
    return calls, np.asarray(compiled(*own), dtype=float)


def _distance(ours, other) -> float:
    largest = max(np.abs(ours).max(initial=0.0), 1e-300)
    return float(np.abs(ours - other).max(initial=0.0) / largest)


def _text(data: dict[Any, Any]) -> str:
    head = (
        f"{data['robot']}: {data['dof']} degrees of freedom, {data['bodies']} bodies, "
        f"{data['loops']} loops; {data['cpu']}, {data['dtype']}, µs a state"
    )
    rows = [["", "one state", f"batch of {data['batch']}", "operations", "slower", "agrees to"]]
    for row in data["rows"]:
        rows.append([
            f"{row['function']} ({row['what']})", f"{row['us']:.3g}", f"{row['batch_us']:.3g}",
            f"{row['operations']['total']:,}", "", "",
        ])  # fmt: skip
        for rival in row["rivals"]:
            rows.append([
                f"  {rival['what']}", f"{rival['us']:.3g}", "", "",
                f"{rival['times_ours']:.1f}x", f"{rival['agrees_to']:.0e}",
            ])  # fmt: skip
    notes = [f"left out: {name}: {why}" for name, why in data["left_out"].items()]
    return "\n".join([head, "", table(rows), *(["", *notes] if notes else [])])
