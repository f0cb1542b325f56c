"""Compiling and forking: a forked child has only the thread that called fork.

What other threads held at that moment stays held in the child for ever: locks of Python's, of
LLVM's, half a trace. So a fork waits until no other thread is inside `uninterrupted`. A thread that
forks inside it does not wait. Pools of threads do not exist in the child and are made anew.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any


class _Gate:
    """Threads that must not be interrupted by a fork."""

    def __init__(self):
        self.changed = threading.Condition()
        self.inside: Counter[int] = Counter()  # how deep each thread is inside, by its identity
        self.locks: list[Any] = []  # of libraries, taken by the thread that forks
        self.forks = 0  # threads that wait to fork: nobody else enters before them

    @contextmanager
    def passed(self):
        me = threading.get_ident()
        with self.changed:
            while self.forks and me not in self.inside:
                self.changed.wait()
            self.inside[me] += 1
        try:
            yield
        finally:
            with self.changed:
                self.inside[me] -= 1
                if not self.inside[me]:
                    del self.inside[me]
                    self.changed.notify_all()

    def before_fork(self) -> None:
        self.changed.acquire()  # held until the fork is done
        self.forks += 1
        if threading.get_ident() not in self.inside:
            while self.inside.keys() & sys._current_frames().keys():  # threads that are alive
                self.changed.wait(0.1)
        for lock in self.locks:
            lock.__enter__()

    def after_fork(self) -> None:
        for lock in self.locks:
            lock.__exit__(None, None, None)
        self.forks -= 1
        self.changed.notify_all()
        self.changed.release()

    def in_child(self) -> None:
        for lock in self.locks:
            lock.__exit__(None, None, None)
        self.changed = threading.Condition()
        self.forks = 0
        me = threading.get_ident()
        self.inside = Counter({me: self.inside[me]} if me in self.inside else {})


_gate = _Gate()


def uninterrupted() -> Any:
    """What runs in this context is finished before another thread of this process forks."""
    return _gate.passed()


def hold(lock: Any) -> None:
    """Let a fork hold this lock, which others may take outside `uninterrupted`."""
    _gate.locks.append(lock)


def in_child(renew: Callable[[], None]) -> None:
    """Call `renew` in every forked child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_gate.before_fork,
        after_in_parent=_gate.after_fork,
        after_in_child=_gate.in_child,
    )
