"""Look at a robot in the browser: sliders for its independent joints, loops that stay closed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import grubler as gb

from .common import load, robot_arguments
from .progress import waiting

EXAMPLES = [
    ("grubler view four_bar --open", "sliders; the dependent joints follow"),
    ("grubler view robot.urdf --port 0", "any free port"),
    ("grubler view four_bar --trajectory swing.npz", "play what `simulate --out` wrote"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_arguments(parser)
    parser.add_argument("--trajectory", type=Path, help="play this file (npz) of `simulate --out`")
    server_arguments(parser)


def server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8080, help="0 takes any free one (8080)")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 lets other machines in")
    parser.add_argument("--open", action="store_true", help="open the browser")


def run(arguments: Any) -> int:
    with waiting("loading"):
        what = model = load(arguments)
        if arguments.trajectory:
            what = gb.Trajectory.load(arguments.trajectory, model)
    show(what, arguments)
    return 0


def show(what: str, arguments: Any) -> None:
    gb.view(what, port=arguments.port, host=arguments.host, open_browser=arguments.open)
