"""Timings of the compiler's stages, on the logger "grubler".

`GRUBLER_LOG=info` or `debug` in the environment prints them to stderr without further set-up.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

logger: Any = logging.getLogger("grubler")

# A stage that works on more instructions than this takes seconds: say so while it runs.
LONG = 40_000


def _configure_from_environment() -> None:
    level = os.environ.get("GRUBLER_LOG", "").upper()
    if level in ("INFO", "DEBUG") and not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("grubler: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(level)


_configure_from_environment()


@contextmanager
def stage(title: str, instructions: int = 0) -> Iterator[Any]:
    """Time a stage; while a long one runs, a line on the terminal says what is being waited for."""
    start = time.perf_counter()
    show = instructions > LONG and sys.stderr is not None and sys.stderr.isatty()
    if show:
        print(f"\rgrubler: {title} ({instructions:,} instructions) ...", end="", file=sys.stderr)
    try:
        yield
    finally:
        seconds = time.perf_counter() - start
        if show:
            print(f" {seconds:.1f} s", file=sys.stderr)
        if instructions:
            logger.info("%s: %.1f ms, %s instructions", title, seconds * 1e3, f"{instructions:,}")
        else:
            logger.info("%s: %.1f ms", title, seconds * 1e3)
