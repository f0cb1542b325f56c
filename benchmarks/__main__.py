"""Run everything, write benchmarks/results/: JSON, a markdown table, SVG pictures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from . import against_peers, constrained_report, contact, derivatives, paper_tables, simulation
from .pictures import chain_picture, speedup_picture
from .tables import table
from .timing import machine

RESULTS = Path(__file__).parent / "results"


def report(data: dict) -> str:
    parts = [
        "# Benchmarks",
        "",
        "Measured by `make bench`, side by side in one run; µs a state.",
        "",
    ]
    parts += [f"- {k}: {v}" for k, v in data["machine"].items()]
    if "pinocchio" in data:
        parts += [
            "", "## The same tree, from Python, one core, fp64", "",
            "One state: `bind` against `pin.aba` / `pin.rnea` (ratios) and MuJoCo's `mj_forward` "
            "without contact. Batch: 4096 states a call.", "",
            table(data["pinocchio"], {
                "robot": "robot", "mujoco_us": "mj_forward", "aba_pin_us": "pin.aba",
                "aba_us": "C-ABA", "aba_ratio": "ratio",
                "aba_batch_us": "C-ABA batch", "aba_batch_ratio": "ratio",
                "rnea_pin_us": "pin.rnea",
                "rnea_us": "C-RNEA", "rnea_ratio": "ratio", "rnea_batch_us": "C-RNEA batch",
                "rnea_batch_ratio": "ratio",
            }),
            "", "## Mini Cheetah with twelve exact rotors, one state from Python", "",
            table(data["rotors"], {"what": "", "us": "µs", "ratio": "× C-ABA with rotors"}),
        ]  # fmt: skip
    parts += [
        "", "## Kernels in a loop of compiled code, one lane (no SIMD across states)", "",
        "Against Pinocchio through C++ code generation, as reported for such a machine.", "",
        table(data["code_generation"], {
            "robot": "robot", "aba_rival_us": "ABA, generated C", "aba_us": "C-ABA",
            "aba_ratio": "ratio", "rnea_rival_us": "RNEA, generated C", "rnea_us": "C-RNEA",
            "rnea_ratio": "ratio",
        }),
        "", "Against the papers' own C++ library, as reported for such a machine; the last columns "
        "with all SIMD lanes.", "",
        table(data["papers"], {
            "robot": "robot", "aba_paper_us": "their C-ABA", "aba_us": "C-ABA",
            "aba_ratio": "ratio", "rnea_paper_us": "their C-RNEA", "rnea_us": "C-RNEA",
            "rnea_ratio": "ratio",
            "aba_lanes_us": "C-ABA, lanes", "aba_lanes_ratio": "ratio",
            "rnea_lanes_us": "C-RNEA, lanes", "rnea_lanes_ratio": "ratio",
        }),
        "", "## Tables II-IV of Chignoli et al.", "",
        "Time more (+) or less (-) than the cluster algorithm, in percent. Every method compiled "
        "the same way; `operations` the same by counting.", "",
        table(data["tables"], {
            "table": "table", "robot": "robot", "method": "method", "paper": "paper %",
            "percent": "ours %", "percent_operations": "operations %", "same_sign": "same sign",
        }),
        "", "## Compilation of C-ABA, nothing cached", "",
        table(data["compilation"], {
            "robot": "robot", "instructions": "instructions",
            "one_state_s": "to the first state, s", "both_s": "and the first batch, s",
        }),
        "", "## Simulation, steps of 1 ms a second, one core, semi-implicit", "",
        "Batch of 4096; ratios against MuJoCo's rollout of the same robot.", "",
        table(data.get("simulation", []), {
            "what": "", "steps_per_second": "steps a second", "ratio": "ratio",
        }),
        "", "![chains](chains.svg)", "",
    ]  # fmt: skip
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    data = {"machine": machine()}
    steps = {
        "pinocchio": against_peers.against_pinocchio,
        "rotors": against_peers.rotors_against_tree,
        "code_generation": against_peers.against_code_generation,
        "papers": against_peers.against_the_papers,
        "tables": paper_tables.tables,
        "chains": paper_tables.chains,
        "compilation": paper_tables.compile_times,
        "simulation": simulation.steps_per_second,
        **derivatives.steps(),
        "contact": contact.steps_per_second,
        **constrained_report.steps(),
    }
    for name, step in steps.items():
        print(f"{name} ...", flush=True)
        try:
            data[name] = step()
        except ImportError as error:
            print(f"  left out: {error}")
    for row in data["tables"]:
        row["same_sign"] = "yes" if row["same_sign"] else "no"
    (out / "results.json").write_text(json.dumps(data, indent=1, default=float) + "\n")
    text = report(data) + derivatives.report(data)
    text += contact.report(data["contact"]) if "contact" in data else ""
    if "constrained" in data:
        text += "\n" + constrained_report.report(data, out)
    (out / "results.md").write_text(text)
    chain_picture(data["chains"], out / "chains.svg")
    if "pinocchio" in data:
        speedup_picture(data["pinocchio"], out / "speedup.svg")
    print(text)


if __name__ == "__main__":
    main()
