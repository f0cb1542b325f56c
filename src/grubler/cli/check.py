"""Tell whether a mechanism is sound: mobility, loops, closure, conditioning, actuators.

Works on files that cannot be used, too, and says what is wrong with them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..checks import check
from .common import count, json_argument, load, robot_arguments
from .progress import waiting

EXAMPLES = [
    ("grubler check four_bar", "is this linkage sound?"),
    ("grubler check robot.urdf --strict", "refuse whatever is not understood"),
    ("grubler check robot.urdf --contacts", "which shapes may touch?"),
    ("grubler check robot.urdf --json", "the same, for a program"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_arguments(parser)
    parser.add_argument("--samples", type=count, default=20, help="configurations to look at (20)")
    parser.add_argument(
        "--contacts", action="store_true", help="list the pairs of shapes that may touch"
    )
    json_argument(parser)


def run(arguments: Any) -> int:
    def model():
        return load(arguments)

    model.__name__ = Path(arguments.robot).name
    with waiting("checking"):
        report = check(model, samples=arguments.samples, contacts=arguments.contacts or None)
    print(report.to_json() if arguments.json else report.table())
    return 0 if report.ok else 1
