"""Write an algorithm for one robot as C99 or object code, with a header."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import grubler as gb

from .common import json_argument, load, robot_arguments
from .progress import waiting

FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias_force")
EXAMPLES = [
    ("grubler export mini_cheetah --out code", "C99 of its forward dynamics"),
    ("grubler export robot.urdf --function mass_matrix --dtype float32", "into the folder out"),
    ("grubler export four_bar --language object", "machine code of this CPU"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_arguments(parser)
    parser.add_argument("--function", default=FUNCTIONS[0], choices=FUNCTIONS)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write into (out)")
    parser.add_argument("--language", default="c", choices=("c", "object"))
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    json_argument(parser)


def run(arguments: Any) -> int:
    with waiting("compiling"):
        model = load(arguments)
        compiled = gb.compile(getattr(gb, arguments.function), model, dtype=arguments.dtype)
        paths = gb.export(compiled, arguments.out, language=arguments.language)
    files = [str(path) for path in paths]
    print(json.dumps({"files": files}) if arguments.json else "\n".join(files))
    return 0
