"""The command line: `grubler robots | check | simulate | view | export | info`."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from ..errors import GrublerError
from . import commands

EPILOG = """examples:
  grubler robots                              the robots that come along
  grubler check four_bar                      is this linkage sound?
  grubler check cassie.xml --json             the same, for a program
  grubler simulate four_bar --seconds 5 --plot swing.svg
  grubler view four_bar --open                sliders for the independent joints
  grubler export mini_cheetah --out code/     C99 of its forward dynamics
"""


def main(argv: list[str] | None = None) -> int:
    """Run a command; the exit status is 0, 1 where a model cannot be used, 2 for bad arguments."""
    arguments = parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        warnings.simplefilter("always")
        try:
            return arguments.run(arguments)
        except (GrublerError, OSError, ImportError) as error:
            print(f"grubler: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130


def _warn(message, *_args, **_options) -> None:
    print(f"warning: {message}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="grubler", description="Exact dynamics of robots with kinematic loops.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    subs = top.add_subparsers(required=True, metavar="command")

    def add(name, run, text, robot=True):
        sub = subs.add_parser(
            name, help=text, description=text, epilog=EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        if robot:
            sub.add_argument("robot", help="a robot of the zoo, or a URDF, SDF, MJCF or YAML file")
            sub.add_argument("--base", choices=("fixed", "free"), help="how a URDF's root is held")
            sub.add_argument("--strict", action="store_true", help="refuse what is not understood")
        sub.set_defaults(run=run)
        return sub

    add("robots", commands.robots, "List the robots of the zoo.", robot=False)
    check = add("check", commands.check, "Mobility, loops, closure, conditioning, actuators.")
    check.add_argument("--samples", type=int, default=20, help="random configurations to look at")
    check.add_argument("--json", action="store_true", help="print data instead of a table")
    simulate = add("simulate", commands.simulate, "Let a robot move, from a random or zero state.")
    simulate.add_argument("--seconds", type=float, default=2.0)
    simulate.add_argument("--dt", type=float, default=1e-3, help="step in seconds")
    simulate.add_argument("--integrator", default="rk4",
                          choices=("semi_implicit", "rk4", "implicit_midpoint"))  # fmt: skip
    simulate.add_argument("--seed", type=int, help="start from this random state")
    simulate.add_argument("--batch", type=int, help="this many robots, each with its own seed")
    simulate.add_argument("--damping", type=float, default=0.0, help="of every joint, N m s")
    simulate.add_argument("--out", type=Path, help="write the trajectory (npz)")
    simulate.add_argument("--plot", type=Path, help="write a picture (svg, png, pdf)")
    simulate.add_argument("--json", action="store_true", help="print a summary as data")
    show = add("view", commands.view, "Look at a robot in the browser; sliders close its loops.")
    show.add_argument("--trajectory", type=Path, help="play this file (npz) of `simulate --out`")
    show.add_argument("--port", type=int, default=8080, help="0 takes any free one")
    show.add_argument("--host", default="127.0.0.1", help="0.0.0.0 lets other machines in")
    show.add_argument("--open", action="store_true", help="open the browser")
    export = add("export", commands.export, "Write an algorithm as C99 or object code.")
    export.add_argument(
        "--function",
        default="forward_dynamics",
        choices=("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias_force"),
    )
    export.add_argument("--out", type=Path, default=Path("out"), help="folder to write into")
    export.add_argument("--language", default="c", choices=("c", "object"))
    export.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    info = add("info", commands.info, "CPU, versions, cache.", robot=False)
    info.add_argument("--json", action="store_true")
    return top
