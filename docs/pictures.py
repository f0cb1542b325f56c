"""The pictures of the gallery, drawn by the examples themselves.

python docs/pictures.py [demo | drift | leg | handover | rh5 | viewer ...] [--cassie cassie.xml]
"""

import argparse
import os
import runpy
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"


def example(name: str) -> dict:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def demo(_cassie) -> None:
    script = example("demo")
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the demo writes into ./out
        try:
            script["main"]()
            text = Path("out/demo.svg").read_text()
        finally:
            os.chdir(home)
    (HERE / "pictures" / "demo.svg").write_text(text)


def drift(cassie) -> None:
    script = example("loops_never_drift")
    cases = [script["four_bar"](), script["geared_chain"]()]
    cases += [script["cassie"](cassie)] if cassie else []
    script["main"](cases, picture=HERE / "loops_never_drift.svg")


def leg(_cassie) -> None:
    example("humanoid_leg_accuracy")["main"](str(HERE / "humanoid_leg_accuracy.svg"))


def handover(_cassie) -> None:
    example("handover")["main"](str(HERE / "pictures" / "handover.svg"))


def rh5(_cassie) -> None:
    """Microseconds a call of the three ways to close the loops, Fig. 7 of Kumar et al."""
    from matplotlib.figure import Figure

    study = example("rh5_study")
    times = study["benchmark"](study["variants"](study["rh5_manus"]()))
    figure = Figure(figsize=(7, 3), layout="constrained")
    axis = figure.subplots()
    functions = list(next(iter(times.values())))
    for k, (kind, row) in enumerate(times.items()):
        axis.bar(
            [i + 0.25 * (k - 1) for i in range(len(functions))], row.values(), 0.23, label=kind
        )
    axis.set_xticks(range(len(functions)), [f.removeprefix("closed_") for f in functions])
    axis.set_ylabel("µs a call, batch, one core")
    axis.legend()
    axis.grid(axis="y", alpha=0.3)
    figure.savefig(HERE / "pictures" / "rh5_study.svg")


def viewer(_cassie) -> None:
    shot = runpy.run_path(str(HERE.parent / "tests" / "view" / "browser.py"))["shot"]
    shot(str(HERE / "viewer.png"))


PICTURES = {f.__name__: f for f in (demo, drift, leg, handover, rh5, viewer)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], help="which (all)")
    parser.add_argument("--cassie", metavar="FILE", help="Cassie's MJCF, for the drift picture")
    given = parser.parse_args()
    for name in given.names or PICTURES:
        PICTURES[name](given.cassie)
