"""Contact steps a second on a GPU in fp32, in two halves.

    python -m benchmarks.gpu_contact prepare DIR --robots mini_cheetah go1    here
    python DIR/run.py [--count 32768] [--out FOLDER]                          on the GPU machine

The second half needs NumPy, CuPy and what DIR holds. States stay on the GPU. Each robot of the
batch gets its own random torques, held over the run; the ends are compared with those of the CPU in
fp64 after ten steps.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np

import grubler as gb

from .contact import SCENES, simulator

ROBOTS, COMPARED, STEPS = 4096, 64, 10  # torques that are drawn; robots and steps of the comparison


def prepare(folder: Path, robots, sweeps: int, newton: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for name in robots:
        scene = SCENES[name]()
        gpu = simulator(scene, sweeps, newton, target="cuda", dtype="float32", batch=ROBOTS)
        kernel, tau = gpu._kernel, scene.noise(np.random.default_rng(0), ROBOTS)
        gb.export(gpu._step, folder / "bundle", target="cuda", name=f"contact_{name}")
        state = [np.tile(scene.q, (COMPARED, 1)), np.zeros((COMPARED, scene.model.nv))]
        carried = np.zeros((COMPARED, kernel.carried))
        cpu = simulator(scene, sweeps, newton)._step
        for _ in range(STEPS):
            *state, carried = cpu(*state, tau[:COMPARED], carried)
        np.savez_compressed(folder / f"{name}.npz", q=scene.q, tau=tau, v_end=state[1])
        record = kernel.lifted + kernel.contacting.rows
        cases.append({
            "robot": name, "nq": scene.model.nq, "nv": scene.model.nv, "carried": kernel.carried,
            "modes": [record, record + kernel.contacting.points], "steps": STEPS,
            "sweeps": sweeps, "newton": newton,
        })  # fmt: skip
        print(f"{name}: prepared", flush=True)
    (folder / "contact.json").write_text(json.dumps(cases, indent=1) + "\n")
    shutil.copy(Path(__file__).parent / "gpu_contact_run.py", folder / "run.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["prepare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--robots", nargs="*", default=["mini_cheetah", "go1", "mit_humanoid"])
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--newton", type=int, default=0)
    given = parser.parse_args()
    prepare(given.folder, given.robots, given.sweeps, given.newton)


if __name__ == "__main__":
    main()
