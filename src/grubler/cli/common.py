"""What the commands share: the robot argument, numbers that are checked, and how data is shown."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grubler as gb

from ..model import Model


def robot_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot", metavar="ROBOT_OR_FILE",
        help="a robot of the zoo (`grubler robots`), or a URDF, SDF, MJCF or YAML file",
    )  # fmt: skip
    parser.add_argument("--base", choices=("fixed", "free"), help="how a file's root is held")
    parser.add_argument("--strict", action="store_true", help="refuse what is not understood")
    parser.add_argument("--root", metavar="FOLDER", help="open no file outside this folder")


def json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print data for a program")


def load(arguments: Any) -> Model:
    """The robot named on the command line: a file where there is one, else from the zoo."""
    name = arguments.robot
    if Path(name).suffix or Path(name).exists():
        options = {"strict": arguments.strict, "base": arguments.base, "root": arguments.root}
        return gb.load(name, **options)
    if arguments.base is not None:
        raise gb.InputError(f"--base is for files: '{name}' of the zoo is held as it is")
    return gb.robots.load(name)


def positive(text: str) -> float:
    """A number above zero, or argparse's error."""
    value = _number(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text} is not a number above zero")
    return value


def not_negative(text: str) -> float:
    value = _number(text)
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"{text} is below zero")
    return value


def count(text: str) -> int:
    """A whole number of at least one, or argparse's error."""
    value = _number(text)
    if value != int(value) or value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(value)


def output(*suffixes: str) -> Callable[..., Any]:
    """A path to write to, checked before anything is computed: its folder and, if given, ending."""

    def check(text: str) -> Path:
        path = Path(text)
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"the folder '{path.parent}' does not exist")
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"'{path}' is a folder")
        if suffixes and path.suffix not in suffixes:
            raise argparse.ArgumentTypeError(f"'{path}' must end in {', '.join(suffixes)}")
        return path

    return check


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if math.isnan(value) or math.isinf(value):
        raise argparse.ArgumentTypeError(f"{text} is not a finite number")
    return value


def show(data: dict[Any, Any], as_json: bool) -> None:
    """A dictionary, as JSON or as one line an entry."""
    if as_json:
        lost = {k for k, x in data.items() if isinstance(x, float) and not math.isfinite(x)}
        print(json.dumps(data | dict.fromkeys(lost), indent=1))  # JSON has no NaN
        return
    labels = {key: re.sub(r"_(s|J)$", r" [\1]", key).replace("_", " ") for key in data}
    width = max(map(len, labels.values()))
    for key, value in data.items():
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        print(f"{labels[key]:<{width}}  {text}")


def table(rows: list[list[str]], indent: str = "") -> str:
    """Columns under their headings: the first to the left, the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *rest = (x.ljust(w) if k == 0 else x.rjust(w)
                        for k, (x, w) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        lines.append(indent + "  ".join([first, *rest]).rstrip())
    return "\n".join(lines)
