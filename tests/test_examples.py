"""Every example runs; its figures are those it claims."""

import runpy
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_demo(capsys):
    runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "mobility 18" in out and "Lagrange multipliers" in out
    distances = [float(line.split()[-1]) for line in out.splitlines() if "e-1" in line]
    assert len(distances) == 4 and max(distances) < 1e-11


def test_humanoid_leg_accuracy(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "humanoid_leg_accuracy.py"))
    picture = tmp_path / "leg.svg"
    results = example["main"](str(picture))
    assert picture.read_text().count("<path") > 3
    knee = example["errors"](results, 3)
    # the paper's RMS errors, 4.31 and 1.04 N m
    assert np.isclose(knee["unconstrained"][0], 4.31, atol=0.01)
    assert np.isclose(knee["approximate"][0], 1.04, atol=0.01)
