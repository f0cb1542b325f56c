"""Load mutated robot descriptions: each gives a model or a GrublerError, within limits.

    python tests/fuzz/files.py --count 20000              # cases 0 to 19,999 of seed 0
    python tests/fuzz/files.py --hours 2 --state fuzz.json  # goes on where it stopped
    python tests/fuzz/files.py --case 1234 --keep /tmp/case  # one case again, its files kept

Cases run in worker processes, each within 10 s of CPU and 2 GiB. What else a case does (a crash, a
hang, another exception, numbers that are not finite, a renamed attribute of which nothing is said)
is printed with the command that shows it again. The exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from multiprocessing.connection import wait
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # a script, not a package
from mutate import mutated, with_unknown_name
from sources import READ, Source, sources

SECONDS = 10  # of CPU for one case
MEMORY = 2 * 2**30  # bytes, on top of what the interpreter has mapped
LARGE = 12_000  # characters; of larger descriptions one in eight is built, the others are read


def case_files(seed: int, index: int, folder: Path, known: list[Source]) -> tuple[Path, str | None]:
    """Write the files of a case; returns the one to load, and the name that must be spoken of."""
    rng = Random(f"{seed}:{index}")
    source = rng.choice(known)
    for name, text in source.beside.items():
        (folder / name).write_text(text)
    path, unknown = folder / source.name, None
    if source.kind in READ and rng.random() < 0.1:
        text, unknown = with_unknown_name(source.text, READ[source.kind], rng)
    else:
        text = mutated(source.text, "yaml" if path.suffix in (".yaml", ".yml") else "xml", rng)
    path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
    return path, unknown


def run_case(path: Path, unknown: str | None, build: bool) -> str:
    """What came of a case: "model", "refused", or what is wrong with it."""
    import grubler as gb
    from grubler.formats import FormatWarning, describe

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's, about overflow
        try:
            description = describe(path)
            model = description.build() if build else None
        except gb.GrublerError as error:
            return "refused" if str(error).encode() else "an error without a message"
        except RecursionError:
            return "RecursionError"
        except BaseException as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            own = [f for f in traceback.extract_tb(error.__traceback__) if "grubler" in f.filename]
            at = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else frame.name
            return f"{type(error).__name__} at {at}: {str(error)[:120]}"
    said = "\n".join([*description.complaints.messages, *(str(w.message) for w in heard)])
    strange = [w for w in heard if not issubclass(w.category, FormatWarning)]
    if strange:
        return f"{strange[0].category.__name__}: {str(strange[0].message)[:120]}"
    if unknown and unknown not in said:
        return f"nothing is said of '{unknown}'"
    if model is not None:
        numbers = [model.neutral(), *(body.spatial for body in model.bodies)]
        if not all(np.all(np.isfinite(x)) for x in numbers):
            return "a model with numbers that are not finite"
    return "model"


def outcome(seed: int, index: int, folder: Path, known: list[Source]) -> str:
    path, unknown = case_files(seed, index, folder, known)
    build = path.stat().st_size < LARGE or index % 8 == 0
    return run_case(path, unknown, build)


def work(connection, seed: int) -> None:
    """A worker: says that it is ready, then outcomes of the cases it gets, until it gets None."""
    known = sources()
    import grubler as gb

    gb.formats  # noqa: B018 the readers are imported before memory is bounded
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    connection.send("ready")
    while (index := connection.recv()) is not None:
        with tempfile.TemporaryDirectory() as folder:
            connection.send((index, outcome(seed, index, Path(folder), known)))


class Worker:
    """A process that runs one case at a time, and is ended where a case does not end."""

    def __init__(self, seed: int):
        self.seed, self.index = seed, None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.seed), daemon=True)
        self.process.start()
        theirs.close()
        self.connection.recv()

    def give(self, index: int | None) -> None:
        self.index, self.begun = index, self.cpu()
        self.connection.send(index)

    def cpu(self) -> float:
        """Seconds of CPU that the process has used."""
        try:
            words = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def result(self) -> tuple[int, str] | None:
        """The outcome of the case, or None while it runs."""
        found = None
        try:
            if self.connection.poll():
                found = self.connection.recv()
            elif self.cpu() - self.begun > SECONDS:
                found = (self.index, f"runs longer than {SECONDS} s")
                self.process.kill()
                self.process.join()
        except (EOFError, OSError):
            self.process.join()
            found = (self.index, f"the process ended with status {self.process.exitcode}")
        if found is not None and not self.process.is_alive():
            self.process.join()
            self.start()
        return found


def fuzz(seed: int, first: int, count: int, seconds: float, jobs: int, tell, save) -> None:
    """Run cases from `first` on.

    `tell` is called with each case that went wrong, `save` now and then, and at the end, with the
    number of the case to go on from and how often each outcome was seen.
    """
    workers = [Worker(seed) for _ in range(jobs)]
    tally: dict[str, int] = {"model": 0, "refused": 0}
    upcoming, end, stop = first, first + count, time.monotonic() + seconds
    busy: list[Worker] = []
    idle = list(workers)
    while busy or (upcoming < end and time.monotonic() < stop):
        while idle and upcoming < end and time.monotonic() < stop:
            worker = idle.pop()
            worker.give(upcoming)
            busy.append(worker)
            upcoming += 1
        wait([w.connection for w in busy], timeout=0.5)
        for worker in list(busy):
            found = worker.result()
            if found is None:
                continue
            busy.remove(worker)
            idle.append(worker)
            index, what = found
            tally[what] = tally.get(what, 0) + 1
            if what not in ("model", "refused"):
                tell(index, what)
            if sum(tally.values()) % 100 == 0:
                save(min((w.index for w in busy), default=upcoming), tally)
    for worker in workers:
        worker.give(None)
        worker.process.join(5)
    save(upcoming, tally)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--count", type=int, default=10**9, help="how many cases")
    parser.add_argument("--hours", type=float, default=1e6, help="how long")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--state", type=Path, help="JSON file to go on from, and to write")
    parser.add_argument("--case", type=int, help="run one case here, without limits")
    parser.add_argument("--keep", type=Path, help="folder for the files of --case")
    arguments = parser.parse_args()
    if arguments.case is not None:
        folder = arguments.keep or Path(tempfile.mkdtemp())
        folder.mkdir(parents=True, exist_ok=True)
        print(outcome(arguments.seed, arguments.case, folder, sources()), f"(files in {folder})")
        return 0
    first = arguments.first
    if arguments.state and arguments.state.exists():
        first = json.loads(arguments.state.read_text())["next"]
    again = f"python {sys.argv[0]} --seed {arguments.seed} --case"

    def tell(index: int, what: str) -> None:
        print(f"{what}\n    {again} {index}", flush=True)

    found: dict[str, int] = {}

    def save(following: int, tally: dict[str, int]) -> None:
        found.update(tally, next=following)
        if arguments.state:
            arguments.state.write_text(json.dumps({"next": following, "outcomes": tally}))

    seconds = 3600 * arguments.hours
    fuzz(arguments.seed, first, arguments.count, seconds, arguments.jobs, tell, save)
    following = found.pop("next")
    print(f"cases {first} to {following - 1}: {json.dumps(found, indent=1, ensure_ascii=False)}")
    return 0 if set(found) <= {"model", "refused"} else 1


if __name__ == "__main__":
    sys.exit(main())
