"""Simulation on the GPU machine: ends compared with the CPU's, steps a second."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

TOTAL = 100  # steps of a timed run


def simulate(folder: Path, robots: int) -> list[dict]:
    rows = []
    for case in json.loads((folder / "simulations.json").read_text()):
        try:
            rows.append({**case, **_measure(folder, case, robots)})
        except Exception as error:  # the others are worth having
            rows.append({**case, "failed": f"{type(error).__name__}: {str(error)[:200]}"})
        print("  ", rows[-1], flush=True)
    return rows


def _measure(folder: Path, case: dict, robots: int) -> dict:
    import cupy
    import grubler_bundle

    data, dtype = np.load(folder / case["data"]), case["dtype"]
    q, v, tau = (data[f"in{i}"] for i in range(3))
    records = case["steps"] // case["substeps"]
    simulation = grubler_bundle.load_simulation(case["name"], batch=len(q))
    repeats = -(-robots // len(q))
    rows = [cupy.asarray(np.tile(x, (repeats, 1))[:robots].astype(dtype)) for x in (q, v, tau)]
    columns = [cupy.ascontiguousarray(x.T) for x in rows]
    step = simulation.step
    times = step.tune(*columns, states_last=True, repeat=3)
    best_plan, errors = step.chosen["columns"], None
    for index in [i for i in times if i != best_plan] + [best_plan]:  # all are right or none
        step.chosen["columns"] = index
        found = _errors(simulation.run(q, v, tau, steps=records), data)
        errors = found if errors is None else np.maximum(errors, found)
    out = tuple(cupy.empty_like(x) for x in columns[:2])
    bound = step.bind(*columns, out=out, states_last=True)
    best = np.inf
    for _ in range(4):
        events = [cupy.cuda.Event() for _ in range(2)]
        events[0].record()
        bound()
        events[1].record()
        events[1].synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(*events) / 1e3)
    many = grubler_bundle.load_simulation(case["name"], batch=robots)
    many.step.chosen = step.chosen
    many.run(*rows, steps=records)  # CuPy compiles its part at the first array of a size
    start = time.perf_counter()
    many.run(*rows, steps=records)
    whole = time.perf_counter() - start
    few = grubler_bundle.load_simulation(case["name"], batch=16)
    few.step.chosen = step.chosen
    small = [x[:16] for x in rows]
    few.run(*small, steps=1)
    start = time.perf_counter()
    few.run(*small, steps=3 * records)
    launch = (time.perf_counter() - start) / (3 * records)
    return {
        "robots": robots, "candidate": step.chosen["columns"], "candidates_ms": times,
        "kernel_steps_per_second": robots * case["substeps"] / best,
        "run_steps_per_second": robots * records * case["substeps"] / whole,
        "small_run_us_a_launch": launch * 1e6,
        "q_error_median": float(np.median(errors[0])), "q_error_max": float(errors[0].max()),
        "v_error_median": float(np.median(errors[1])), "v_error_max": float(errors[1].max()),
    }  # fmt: skip


def _errors(run, data) -> np.ndarray:
    """(2, N): of the last q and v of each robot, by the largest coordinate of all."""
    _, q, v, _ = run.numpy()
    wanted = (data["out0"], data["out1"])
    found = [np.abs(x[-1] - w).max(axis=1) / np.abs(w).max() for x, w in zip((q, v), wanted)]
    return np.stack(found)


def report(rows: list[dict]) -> list[str]:
    lines = [
        "", "## Simulation", "",
        "10⁹ steps of one robot a second, of 1 ms each: by the kernel alone, and by a whole run "
        f"of {TOTAL} steps with its records. A launch: one of such a run with 16 robots, "
        "start and end shared out. Errors: the end after 100 steps against the CPU's in fp64, by "
        "the largest coordinate, the worst of all plans.", "",
        "| robot | integrator | dtype | steps a launch | kernel G/s | run G/s | launch µs "
        "| q error median | max | v error median | max |",
        "|" + "---|" * 11,
    ]  # fmt: skip
    for r in rows:
        head = f"| {r['robot']} | {r['integrator']} | {r['dtype']} | {r['substeps']} | "
        if "failed" in r:
            lines.append(head + r["failed"].replace("|", "/") + " | | | | | | |")
            continue
        lines.append(
            head + f"{r['kernel_steps_per_second'] / 1e9:.3f} | "
            f"{r['run_steps_per_second'] / 1e9:.3f} | {r['small_run_us_a_launch']:.0f} | "
            f"{r['q_error_median']:.1e} | {r['q_error_max']:.1e} | {r['v_error_median']:.1e} | "
            f"{r['v_error_max']:.1e} |"
        )
    return lines
