"""Progress on stderr, where that is a terminal, of what takes longer than a second."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from ..compiler import log

PATIENCE = 1.0  # s until anything is shown


def _terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def counting(title: str, total: int, unit: str = "steps") -> Any:
    """A bar of known length; what it yields is called with the number of units done since."""
    with tqdm(
        total=total, desc=title, unit=f" {unit}", unit_scale=True, leave=False, delay=PATIENCE,
        file=sys.stderr, disable=not _terminal(), dynamic_ncols=True,
    ) as bar:  # fmt: skip
        yield bar.update


@contextmanager
def waiting(title: str) -> Any:
    """The seconds that something of unknown length has taken so far."""
    if not _terminal():
        yield
        return
    done = threading.Event()
    before, log.LONG = log.LONG, float("inf")  # the compiler's own lines would write over this one

    def tick() -> None:
        if done.wait(PATIENCE):
            return
        with tqdm(desc=title, bar_format="{desc} ... {elapsed}", leave=False,
                  file=sys.stderr) as line:  # fmt: skip
            while not done.wait(0.2):
                line.refresh()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        log.LONG = before
