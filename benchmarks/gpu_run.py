"""The half that runs on the GPU machine: every output compared with the CPU's, every plan timed.

python DIR/run.py [--out FOLDER] [--states N] [--rivals SECONDS]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "bundle")]

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave memory to the others

RIVALS = ("jax-matmul", "jax-fused", "jax-tape", "torch-eager", "torch-compile-fused")


def warm(name: str, index: int) -> None:
    """Assemble a candidate into the driver's cache on disk."""
    import grubler_bundle

    function = grubler_bundle.load(name)
    for layout in function.frames(index):
        function.kernel(0, layout, index)


def warm_all(cases) -> float:
    start = time.perf_counter()
    jobs = []
    for case in cases:
        signature = json.loads((HERE / "bundle" / f"{case['name']}.json").read_text())
        jobs += [(case["name"], i) for i in range(len(signature["candidates"]))]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(12, mp_context=context) as pool:
        for job, future in [(job, pool.submit(warm, *job)) for job in jobs]:
            if (error := future.exception()) is not None:
                print(f"  {job} left out: {error}", flush=True)
    return time.perf_counter() - start


def sass(ptx: Path, kernel: str, arch: str) -> dict | None:
    """Instructions of a kernel as the GPU runs it, registers and spilled bytes; None without
    CUDA's tools."""
    if not (shutil.which("ptxas") and shutil.which("cuobjdump")):
        return None
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "k.cubin"
        said = subprocess.run(
            ["ptxas", f"-arch={arch}", "-v", "-o", str(binary), str(ptx)],
            capture_output=True, text=True, check=True,
        ).stderr  # fmt: skip
        listing = subprocess.run(
            ["cuobjdump", "--dump-sass", "-fun", kernel, str(binary)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    part = said[said.index(f"'{kernel}'") :]
    ops = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9]*)", listing, re.M)
    return {
        "instructions": sum(op != "NOP" for op in ops),
        "fp64": sum(op in ("DFMA", "DADD", "DMUL", "DSETP") for op in ops),
        "registers": int(re.search(r"Used (\d+) registers", part)[1]),
        "spilled": int(re.search(r"(\d+) bytes spill stores", part)[1]),
    }


def errors(found: np.ndarray, wanted: np.ndarray) -> dict:
    """The distribution of |found - wanted| / |wanted| over states, and element by element."""
    found, wanted = (x.reshape(len(x), -1).astype(float) for x in (found, wanted))
    difference = np.linalg.norm(found - wanted, axis=1)
    state = difference / np.maximum(np.linalg.norm(wanted, axis=1), 1e-300)
    element = np.abs(found - wanted) / np.maximum(np.abs(wanted), 1e-300)
    return {
        "median": float(np.median(state)), "p99": float(np.quantile(state, 0.99)),
        "max": float(state.max()), "element_median": float(np.median(element)),
        "element_p99": float(np.quantile(element, 0.99)), "nan": bool(np.isnan(found).any()),
    }  # fmt: skip


class Bench:
    """One case: its function, its data on the GPU."""

    def __init__(self, case: dict, size: int):
        import cupy
        import grubler_bundle

        self.cp, self.case, self.size = cupy, case, size
        self.function = grubler_bundle.load(case["name"])
        self.data = np.load(HERE / case["data"])
        dtype = case["dtype"]
        number = len(self.function.inputs)
        self.given = [self.data[f"in{i}"].astype(dtype) for i in range(number)]
        repeats = -(-size // len(self.given[0]))
        self.rows = [
            cupy.asarray(np.tile(x, (repeats,) + (1,) * (x.ndim - 1))[:size]) for x in self.given
        ]

    def arrays(self, layout: str):
        if layout == "rows":
            return self.rows
        return [self.cp.ascontiguousarray(self.cp.moveaxis(x, 0, -1)) for x in self.rows]

    def outputs(self, layout: str):
        shapes = [a.shape for a in self.function.outputs]
        shapes = [(self.size, *s) if layout == "rows" else (*s, self.size) for s in shapes]
        return tuple(self.cp.full(s, np.nan, self.case["dtype"]) for s in shapes)

    def measure(self, layout: str) -> dict:
        arrays, out = self.arrays(layout), self.outputs(layout)
        columns = layout == "columns"
        times = self.function.tune(*arrays, states_last=columns, repeat=4)
        bound = self.function.bind(*arrays, out=out, states_last=columns)
        bound()
        found = [
            self.cp.asnumpy(o if layout == "rows" else self.cp.moveaxis(o, -1, 0)) for o in out
        ]
        best = self._time(bound)
        return {
            "per_second": self.size / best,
            "candidate": self.function.chosen[layout],
            "candidates_ms": times,
            "errors": [self._errors(i, x) for i, x in enumerate(found)],
        }

    def _errors(self, output: int, found: np.ndarray) -> dict:
        """Of all states: those after the first round must repeat its bits."""
        wanted = self.data[f"out{output}"]
        number = len(wanted)
        whole = found[: self.size // number * number].reshape(-1, number, *found.shape[1:])
        same = all(np.array_equal(whole[0], part, equal_nan=True) for part in whole)
        return {**errors(found[:number], wanted), "same_everywhere": same}

    def _time(self, call, rounds: int = 5, repeat: int = 8) -> float:
        best = np.inf
        for _ in range(rounds):
            events = [self.cp.cuda.Event() for _ in range(2)]
            events[0].record()
            for _ in range(repeat):
                call()
            events[1].record()
            events[1].synchronize()
            best = min(best, self.cp.cuda.get_elapsed_time(*events) / 1e3 / repeat)
        return best


def limits(case: dict, row: dict, ceiling: dict, function) -> dict:
    """The fraction of the memory's and of the instruction issue's limit that was reached."""
    itemsize = np.dtype(case["dtype"]).itemsize
    numbers = sum(a.size for a in (*function.inputs, *function.outputs))
    out = {"bytes": numbers * itemsize}
    out["memory_fraction"] = row["per_second"] * out["bytes"] / ceiling["copy_bytes_per_second"]
    file = function.candidates[row["candidate"]]["file"]
    counted = sass(HERE / "bundle" / file, "columns", function.arch)
    if counted:
        out |= counted
        # A scheduler issues one instruction a cycle; the fp64 unit takes two cycles for a warp.
        cycles = counted["instructions"] + counted["fp64"]
        out["issue_fraction"] = row["per_second"] * cycles / ceiling["lanes_per_second"]
    return out


def ceilings() -> dict:
    import cupy

    a = cupy.random.random(1 << 29, dtype=np.float32)
    b = cupy.empty_like(a)
    best = np.inf
    for _ in range(5):
        events = [cupy.cuda.Event() for _ in range(2)]
        events[0].record()
        b[:] = a
        events[1].record()
        events[1].synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(*events) / 1e3)
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    clock = _max_clock()
    return {
        "gpu": properties["name"].decode(), "clock_hz": clock,
        "multiprocessors": properties["multiProcessorCount"],
        "copy_bytes_per_second": 2 * a.nbytes / best,
        "lanes_per_second": properties["multiProcessorCount"] * 128 * clock,
    }  # fmt: skip


def _max_clock() -> float:
    try:
        said = subprocess.run(
            ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        return float(said.split()[0]) * 1e6
    except (OSError, subprocess.CalledProcessError, ValueError):
        return 1.98e9


def rivals(size: int, seconds: float) -> list[dict]:
    rows = []
    for variant in RIVALS:
        command = [sys.executable, str(HERE / "gpu_rivals.py"), str(HERE), variant, str(size)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, check=False
            )
            if done.returncode == 0:
                rows.append(json.loads(done.stdout.strip().splitlines()[-1]))
            else:
                rows.append({"variant": variant, "failed": done.stderr.strip()[-300:]})
        except subprocess.TimeoutExpired:
            rows.append({"variant": variant, "failed": f"not done after {seconds:.0f} s"})
        print("  ", rows[-1], flush=True)
    return rows


def report(data: dict) -> str:
    c = data["ceilings"]
    lines = [
        "# On a GPU", "",
        f"{c['gpu']}, {c['multiprocessors']} SMs at {c['clock_hz'] / 1e6:.0f} MHz; a copy moves "
        f"{c['copy_bytes_per_second'] / 1e12:.2f} TB/s. {data['states']:,} states a call. "
        "G/s: 10⁹ evaluations a second. Memory and issue: the fraction reached of the measured "
        "copy bandwidth by the bytes of inputs and outputs, and of one instruction a cycle and "
        "scheduler by the counted instructions. Error: |fp − CPU fp64| / |CPU fp64| of a state.",
        "",
        "| robot | algorithm | dtype | goal G/s | (n, N) G/s | (N, n) G/s | instructions "
        "| registers | spilled B | memory | issue | error median | 99 % | max |",
        "|" + "---|" * 14,
    ]  # fmt: skip
    for row in data["cases"]:
        e, u = row["columns"]["errors"][0], row["limits"]
        shown = [
            row["robot"], row["algorithm"], row["dtype"], row["goal"] or "",
            f"{row['columns']['per_second'] / 1e9:.2f}", f"{row['rows']['per_second'] / 1e9:.2f}",
            u.get("instructions", ""), u.get("registers", ""), u.get("spilled", ""),
            f"{u['memory_fraction']:.0%}", f"{u.get('issue_fraction', float('nan')):.0%}",
            f"{e['median']:.1e}", f"{e['p99']:.1e}", f"{e['max']:.1e}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(map(str, shown)) + " |")
    ours = data["cases"][0]["columns"]["per_second"]
    lines += ["", "## The same tree (quadruped, 18 dof, fp32) through JAX and torch", ""]
    lines += [
        "| | G/s | grubler is faster by | first call s | error median |",
        "|---|---|---|---|---|",
    ]
    error = data["cases"][0]["columns"]["errors"][0]["median"]
    lines.append(f"| grubler | {ours / 1e9:.2f} | 1 | | {error:.1e} |")
    for r in data["rivals"]:
        if "failed" in r:
            lines.append(f"| {r['variant']} | {r['failed'].splitlines()[-1][:80]} | | | |")
        else:
            lines.append(
                f"| {r['variant']} | {r['per_second'] / 1e9:.4f} | {ours / r['per_second']:.0f} | "
                f"{r['first_call_s']:.1f} | {r['error_median']:.1e} |"
            )
    import gpu_simulation

    lines += gpu_simulation.report(data["simulations"])
    lines += ["", "## Arrays, streams, graphs, errors", "", "| check | result |", "|---|---|"]
    lines += [f"| {name} | {result} |" for name, result in data["interface"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--states", type=int, default=1 << 21)
    parser.add_argument("--robots", type=int, default=1 << 18, help="of a simulation")
    parser.add_argument("--cases", type=int, default=10**9, help="only so many of them")
    parser.add_argument("--rivals", type=float, default=90.0, help="seconds each; 0: leave out")
    given = parser.parse_args()
    cases = json.loads((HERE / "cases.json").read_text())[: given.cases]
    simulations = json.loads((HERE / "simulations.json").read_text())
    data = {"states": given.states, "assembly_s": warm_all([*cases, *simulations])}
    print(f"all candidates assembled in {data['assembly_s']:.0f} s", flush=True)
    import gpu_interface
    import gpu_simulation

    data["ceilings"] = ceilings()
    data["interface"] = gpu_interface.checks(HERE)
    data["cases"] = []
    for case in cases:
        bench = Bench(case, given.states)
        row = {**case, **{layout: bench.measure(layout) for layout in ("columns", "rows")}}
        row["limits"] = limits(case, row["columns"], data["ceilings"], bench.function)
        row["plan"] = bench.function.candidates[row["columns"]["candidate"]]["plans"]
        data["cases"].append(row)
        print(
            case["name"], *(f"{row[k]['per_second'] / 1e9:.2f} G/s" for k in ("columns", "rows")),
            row["columns"]["errors"][0], flush=True,
        )  # fmt: skip
        del bench
    data["simulations"] = gpu_simulation.simulate(HERE, given.robots)
    data["rivals"] = rivals(1 << 20, given.rivals) if given.rivals else []
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "gpu.json").write_text(json.dumps(data, indent=1) + "\n")
    (given.out / "gpu.md").write_text(report(data))
    print(report(data))


if __name__ == "__main__":
    main()
