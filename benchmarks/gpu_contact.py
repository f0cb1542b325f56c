"""Contact steps a second on a GPU in fp32, on the machine that has one.

    python -m benchmarks.gpu_contact --robots mini_cheetah go1 --sweeps 3 --count 32768

States stay on the GPU. Each robot of the batch gets its own random torques, held over the run; the
ends are compared with those of the CPU in fp64 after ten steps.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from .contact import SCENES, simulator

RUN, COMPARED = 200, 64  # steps of a timed run; robots whose ends are compared


def measure(scene, sweeps: int, newton: int, count: int) -> dict:
    import cupy

    gpu = simulator(scene, sweeps, newton, target="cuda", dtype="float32", batch=count)
    step, kernel = gpu._step, gpu._kernel
    nq, nv = scene.model.nq, scene.model.nv
    tau = scene.noise(np.random.default_rng(0), count)
    start = [np.tile(scene.q, (count, 1)), np.zeros((count, nv)), tau,
             np.zeros((count, kernel.carried))]  # fmt: skip
    columns = [cupy.ascontiguousarray(cupy.asarray(x.astype(np.float32)).T) for x in start]
    q, v, torque, carried = columns
    plans = step.tune(*columns, states_last=True, repeat=3)
    there = [cupy.empty((n, count), cupy.float32) for n in (nq, nv, kernel.carried)]
    back = [q.copy(), v.copy(), carried.copy()]
    forth = step.bind(back[0], back[1], torque, back[2], out=tuple(there), states_last=True)
    home = step.bind(there[0], there[1], torque, there[2], out=tuple(back), states_last=True)
    for _ in range(5):
        forth(), home()
    errors = _errors(scene, sweeps, newton, start, back)
    events = [cupy.cuda.Event() for _ in range(2)]
    events[0].record()
    for _ in range(RUN // 2):
        forth(), home()
    events[1].record()
    events[1].synchronize()
    seconds = cupy.cuda.get_elapsed_time(*events) / 1e3
    residual = cupy.asnumpy(back[2][-4])
    modes = cupy.asnumpy(back[2][kernel.lifted + kernel.contacting.rows :])
    modes = modes[: kernel.contacting.points]
    return {
        "steps_per_second": count * RUN / seconds, "candidates_ms": plans, **errors,
        "residual_median": float(np.median(residual)),
        "residual_99.9": float(np.quantile(residual, 0.999)),
        "touching": float((modes > 0).mean()), "finite": bool(cupy.isfinite(back[1]).all()),
    }  # fmt: skip


def _errors(scene, sweeps: int, newton: int, start, ends) -> dict:
    """Velocities of some robots after ten steps, against fp64 on the CPU."""
    import cupy

    cpu = simulator(scene, sweeps, newton)._step
    q, v, tau, carried = (x[:COMPARED] for x in start)
    for _ in range(10):
        q, v, carried = cpu(q, v, tau, carried)
    found = cupy.asnumpy(ends[1]).T[:COMPARED]
    off = np.abs(found - v).max(axis=1)
    return {"v_error_median": float(np.median(off)), "v_error_max": float(off.max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="*", default=["mini_cheetah", "go1", "mit_humanoid"])
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--newton", type=int, default=0)
    parser.add_argument("--count", type=int, default=32_768)
    options = parser.parse_args()
    for name in options.robots:
        begin = time.time()
        row = measure(SCENES[name](), options.sweeps, options.newton, options.count)
        rate = row.pop("steps_per_second") / 1e6
        print(f"{name}: {rate:.1f} M/s ({time.time() - begin:.0f} s)", row, flush=True)


if __name__ == "__main__":
    main()
