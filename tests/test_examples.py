"""Every example runs; its figures are those it claims."""

import re
import runpy
from pathlib import Path

import numpy as np

import grubler as gb

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


def snippets(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.S)


def test_readme_runs(capsys):
    space: dict = {}
    for code in snippets("README.md"):
        exec(code, space)
    assert "mobility 18" in capsys.readouterr().out
    assert space["model"].nv == 1


def test_compile_document_runs():
    model = gb.robots.load("arm7")
    q, v = model.random_state(0)
    tau, Q, V = np.zeros(7), np.tile(q, (9, 1)), np.tile(v, (9, 1))
    space = {"gb": gb, "np": np, "model": model, "q": q, "v": v, "tau": tau}
    space |= {"Q": Q, "V": V, "T": np.zeros((9, 7)), "A": np.empty((9, 7)), "a": np.empty(7)}
    for code in snippets("docs/compile.md"):
        exec(code.replace(", out=a)", ", out=np.empty(7))"), space)
    assert np.allclose(space["A"], gb.forward_dynamics(model, q, v, tau))


def test_demo(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "mobility 18" in out and "Lagrange multipliers" in out
    head, tail = out.split("simulated")
    distances = [float(line.split()[-1]) for line in head.splitlines() if "e-1" in line]
    assert len(distances) == 4 and max(distances) < 1e-11
    assert float(tail.split("held to ")[1].split()[0]) < 1e-8
    assert (tmp_path / "out" / "demo.npz").exists()


def test_loops_never_drift(tmp_path):
    example = runpy.run_path(str(EXAMPLES / "loops_never_drift.py"))
    results = example["main"](str(tmp_path / "drift.svg"), seconds=1.0)
    worst = {label: (drift.max(), gap.max()) for label, (_, drift, gap) in results.items()}
    assert worst["grubler rk4"][0] < 1e-2 * worst["MuJoCo tuned"][0]
    assert worst["grubler rk4"][1] < 1e-12 < worst["MuJoCo tuned"][1]
    assert (tmp_path / "drift.svg").exists()


def test_humanoid_leg_accuracy(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "humanoid_leg_accuracy.py"))
    picture = tmp_path / "leg.svg"
    results = example["main"](str(picture))
    assert picture.read_text().count("<path") > 3
    knee = example["errors"](results, 3)
    # the paper's RMS errors, 4.31 and 1.04 N m
    assert np.isclose(knee["unconstrained"][0], 4.31, atol=0.01)
    assert np.isclose(knee["approximate"][0], 1.04, atol=0.01)
