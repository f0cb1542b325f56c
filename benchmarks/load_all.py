"""Load every robot description below some folders and print a table of what came of it.

    python -m benchmarks.load_all                     # ../shared/models and example-robot-data
    python -m benchmarks.load_all ~/mujoco_menagerie  # any folders or files

Each file is loaded in a process of its own, with a limit of time and memory, so that one bad file
does not end the run. Scenes (scene*.xml) and fragments that other files include are passed over.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

from .tables import table

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models"
ENDINGS = (".urdf", ".sdf", ".xml", ".yaml", ".yml", ".xacro")
GIB = 2**30
COLUMNS = {
    "file": "file", "bodies": "bodies", "loops": "loops", "nv": "nv", "seconds": "s",
    "warnings": "warnings", "error": "error",
}  # fmt: skip


def installed_examples() -> list[Path]:
    """The folder of the robots of example-robot-data, where that package is installed."""
    return [
        folder
        for place in map(Path, sys.path)
        for folder in place.glob("cmeel.prefix/share/example-robot-data/robots")
    ]


def descriptions(place: Path) -> list[Path]:
    """The robot descriptions in a folder (or the file itself), without scenes and fragments."""
    if place.is_file():
        return [place]
    found = [p for p in sorted(place.rglob("*")) if p.suffix in ENDINGS and p.is_file()]
    included = set()
    for path in found:
        if path.suffix == ".xml":
            if path.name.startswith("scene"):
                continue  # what a scene includes is a robot
            for name in re.findall(r'<include\s+file="([^"]+)"', path.read_text(errors="replace")):
                included |= {(path.parent / name).resolve(), (place / name).resolve()}
    return [
        p for p in found
        if p.resolve() not in included and not p.name.startswith("scene") and _is_robot(p)
    ]  # fmt: skip


def _is_robot(path: Path) -> bool:
    text = path.read_text(errors="replace")
    if path.suffix in (".yaml", ".yml"):
        return "submechanisms:" in text or "closed_loop:" in text
    if "<mujoco" in text:
        return "<worldbody" in text
    return re.search(r"<(robot|sdf)\b", text) is not None


def load_one(path: str) -> dict:
    """What `gb.load` makes of a file."""
    import grubler as gb

    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = gb.load(path)
        except gb.GrublerError as error:
            return {"error": str(error).replace("\n", " ")[:300], "refused": True}
        except Exception as error:  # what a reader must not raise: it is named in the table
            return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {
        "bodies": len(model.bodies), "loops": len(model.loops), "nv": model.nv,
        "seconds": time.perf_counter() - start, "warnings": len(heard),
    }  # fmt: skip


def load_apart(path: Path, seconds: int) -> dict:
    """`load_one` in a process of its own, within `seconds` of CPU and 8 GiB."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, 8 * GIB))

    command = [sys.executable, "-m", "benchmarks.load_all", "--one", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": f"ended with status {done.returncode}: {done.stderr.strip()[-200:]}"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("places", nargs="*", type=Path, help="files or folders")
    parser.add_argument("--seconds", type=int, default=120, help="limit of CPU time for a file")
    parser.add_argument("--one", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(load_one(arguments.one)))
        return 0
    places = arguments.places or [p for p in (SHARED, *installed_examples()) if p.is_dir()]
    crashed = 0
    for place in places:
        rows = []
        for path in descriptions(place):
            row = load_apart(path, arguments.seconds)
            shown = path.relative_to(place) if path != place else path.name
            rows.append({"file": str(shown), **row})
            crashed += "error" in row and not row.get("refused")
        print(f"\n## {place}\n\n{table(rows, COLUMNS)}\n")
        refused = sum(row.get("refused", False) for row in rows)
        loaded = sum("nv" in row for row in rows)
        others = len(rows) - loaded - refused
        print(f"{len(rows)} files: {loaded} loaded, {refused} refused, {others} otherwise")
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
