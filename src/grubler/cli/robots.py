"""List the robots of the zoo."""

from __future__ import annotations

import argparse
import json
from typing import Any

import grubler as gb

from .common import json_argument, table
from .progress import counting

EXAMPLES = [
    ("grubler robots", "the robots that come along"),
    ("grubler robots --json", "the same, for a program"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    json_argument(parser)


def run(arguments: Any) -> int:
    rows, names = [], gb.robots.names()
    with counting("building", len(names), "robots") as tick:
        for name in names:
            model = gb.robots.load(name)
            sizes = (len(model.bodies), len(model.loops), len(model.clusters), model.nv)
            rows.append({"robot": name, **dict(zip(("bodies", "loops", "clusters", "dof"), sizes))})
            tick(1)
    if arguments.json:
        print(json.dumps(rows, indent=1))
    else:
        print(table([list(rows[0]), *([str(x) for x in row.values()] for row in rows)]))
    return 0
