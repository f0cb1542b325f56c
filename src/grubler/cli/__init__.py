"""The command line: `grubler robots | check | simulate | view | bench | export | info`.

One file a command; each has `EXAMPLES`, `arguments(parser)` and `run(arguments)`, which returns the
exit status: 0 done, 1 the model or the run failed, 2 bad arguments, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

from ..errors import GrublerError
from . import bench, check, export, info, robots, simulate, view

COMMANDS = {
    module.__name__.rsplit(".", 1)[1]: module
    for module in (robots, check, simulate, view, bench, export, info)
}
STATUS = """exit status:
  0  done
  1  the model or the run failed; stderr says why
  2  bad arguments
  130  interrupted by Ctrl-C; what was computed by then is written
"""


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    arguments = parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        warnings.simplefilter("always")
        try:
            return arguments.run(arguments)
        except BrokenPipeError:  # the reader of a pipe has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except (GrublerError, OSError, ImportError) as error:
            print(f"grubler: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("grubler: interrupted", file=sys.stderr)
            return 130


def _warn(message, *_args, **_options) -> None:
    print(f"warning: {message}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    from .. import __version__

    top = argparse.ArgumentParser(
        prog="grubler", description="Exact dynamics of robots with kinematic loops.",
        epilog=_epilog([module.EXAMPLES[0] for module in COMMANDS.values()]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"grubler {__version__}")
    commands = top.add_subparsers(required=True, metavar="command")
    for name, module in COMMANDS.items():
        text = module.__doc__.strip()
        one = commands.add_parser(
            name, help=text.splitlines()[0], description=text, epilog=_epilog(module.EXAMPLES),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        module.arguments(one)
        one.set_defaults(run=module.run)
    return top


def _epilog(examples) -> str:
    width = max(len(line) for line, _ in examples)
    lines = [f"  {line:<{width}}   {what}" for line, what in examples]
    return "\n".join(["examples:", *lines, "", STATUS])
