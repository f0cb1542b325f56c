"""The second half of gpu_contact.py: on the GPU machine, beside the bundle."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RUN = 200  # steps of a timed run


def measure(case: dict, count: int) -> dict:
    import cupy
    import grubler_bundle

    data = np.load(HERE / f"{case['robot']}.npz")
    step = grubler_bundle.load(f"contact_{case['robot']}")
    sizes = case["nq"], case["nv"], case["carried"]
    tau = np.resize(data["tau"], (count, case["nv"]))
    start = [np.tile(data["q"], (count, 1)), np.zeros((count, sizes[1])),
             np.zeros((count, sizes[2]))]  # fmt: skip
    torque = cupy.ascontiguousarray(cupy.asarray(tau.astype(np.float32)).T)
    back = [cupy.ascontiguousarray(cupy.asarray(x.astype(np.float32)).T) for x in start]
    there = [cupy.empty((n, count), cupy.float32) for n in sizes]
    plans = step.tune(back[0], back[1], torque, back[2], states_last=True, repeat=3)
    forth = step.bind(back[0], back[1], torque, back[2], out=tuple(there), states_last=True)
    home = step.bind(there[0], there[1], torque, there[2], out=tuple(back), states_last=True)
    for _ in range(case["steps"] // 2):
        forth(), home()
    known = data["v_end"]
    off = np.abs(cupy.asnumpy(back[1]).T[: len(known)] - known).max(axis=1)
    events = [cupy.cuda.Event() for _ in range(2)]
    events[0].record()
    for _ in range(RUN // 2):
        forth(), home()
    events[1].record()
    events[1].synchronize()
    seconds = cupy.cuda.get_elapsed_time(*events) / 1e3
    modes = cupy.asnumpy(back[2][slice(*case["modes"])])
    return {
        "robot": case["robot"], "count": count, "steps_per_second": count * RUN / seconds,
        "candidates_ms": plans, "v_error_median": float(np.median(off)),
        "v_error_max": float(off.max()), "touching": float((modes > 0).mean()),
        "finite": float(cupy.isfinite(back[1]).all(axis=0).mean()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, nargs="*", default=[32_768, 1 << 18])
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    sys.path.insert(0, str(HERE / "bundle"))
    rows = []
    for case in json.loads((HERE / "contact.json").read_text()):
        for count in given.count:
            row = measure(case, count)
            rows.append(row)
            print(f"{row['robot']}, {count}: {row['steps_per_second'] / 1e6:.1f} M/s", row)
    (given.out / "contact_results.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
