"""xacro files, expanded by xacro itself in a process of bounded time and memory.

xacro evaluates expressions: `${9**9**9}` would never end, and an expression may read files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..errors import InputError, ModelError
from ._files import MAX_BYTES, Files
from ._xml import Element, parse_xml

SECONDS = 8  # of CPU, and twice that by the clock
MEMORY = 2 * 2**30
EXPAND = """
import sys
seconds, memory = map(int, sys.argv[2:])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
except ImportError:  # not on Windows
    pass
import xacro
sys.stdout.reconfigure(encoding="utf-8")
sys.stderr.reconfigure(encoding="utf-8", errors="replace")
try:
    text = xacro.process_file(sys.argv[1]).toxml()
except BaseException as error:
    print("REFUSED", type(error).__name__, error, file=sys.stderr)
    raise SystemExit(3)
print(text)
"""


def expand_xacro(path: Any, files: Files) -> Element:
    """The root element of an expanded xacro file."""
    try:
        import xacro  # noqa: F401
    except ImportError:
        raise ModelError(
            f"'{path.name}' needs xacro: pip install xacro, or expand it to a .urdf first"
        ) from None
    if files.root is not None:
        raise InputError(
            f"'{path.name}': what xacro opens cannot be bounded by root=; expand it to a .urdf "
            "first, where you trust it"
        )
    files.read(path)  # a regular file
    text = _expanded(path)
    if len(text) > MAX_BYTES:
        raise ModelError(f"{path.name} expands to more than {MAX_BYTES // 2**20} MiB")
    root = parse_xml(text, "utf-8", path.name)
    if root.tag == "robot" and not root.all("link"):
        raise ModelError(
            f"'{path.name}' expands to no <link>: it only defines macros; load the file that "
            "includes it and calls them"
        )
    return root


def _expanded(path: Path) -> bytes:
    command = [sys.executable, "-c", EXPAND, str(path), str(SECONDS), str(MEMORY)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    endless = ModelError(
        f"{path.name}: xacro needs more than {SECONDS} s or {MEMORY // 2**30} GiB: an expression "
        "or a macro in it grows without bound"
    )
    try:
        done = subprocess.run(
            command, capture_output=True, env=environment, stdin=subprocess.DEVNULL,
            timeout=2 * SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise endless from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path.name}: xacro cannot be run: {error}") from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode("utf-8", errors="replace")
    if "REFUSED " not in said or "REFUSED MemoryError" in said:
        raise endless
    reason = " ".join(said.rpartition("REFUSED ")[2].split())
    raise ModelError(f"{path.name}: xacro refuses it: {reason[:300]}")
