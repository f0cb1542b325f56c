"""Every example runs; its figures are those it claims."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

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
    assert (tmp_path / "out" / "demo.npz").exists() and (tmp_path / "out" / "demo.svg").exists()
    assert tail.splitlines()[-1].startswith("  look at it: .venv/bin/grubler view mini_cheetah")


def largest(results: dict) -> dict:
    return {label: (drift.max(), gap.max()) for label, (_, drift, gap) in results.items()}


def test_loops_never_drift(tmp_path):
    example = runpy.run_path(str(EXAMPLES / "loops_never_drift.py"))
    picture = tmp_path / "drift.svg"
    results = example["main"]([example["four_bar"](), example["geared_chain"]()], 1.0, picture)
    for case in results.values():
        worst = largest(case)
        assert worst["grubler rk4"][0] < 1e-2 * worst["MuJoCo tuned"][0]
        assert worst["grubler semi_implicit"][0] < 1.1 * worst["MuJoCo default"][0]
        assert max(gap for label, (_, gap) in worst.items() if "grubler" in label) < 1e-12
        assert worst["MuJoCo tuned"][1] > 1e-12
    assert picture.exists()


def test_loops_never_drift_without_mujoco(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    example = runpy.run_path(str(EXAMPLES / "loops_never_drift.py"))
    case = example["four_bar"]()
    results = example["main"]([case], 0.05, tmp_path / "drift.svg")
    assert list(results[case.name]) == [f"grubler {i}" for i in example["INTEGRATORS"]]


def test_cassies_legs_never_drift():
    path = ROOT.parent / "shared" / "models" / "cassie_mjcf" / "cassie.xml"
    if not path.exists():
        pytest.skip("no Cassie beside the repository")
    example = runpy.run_path(str(EXAMPLES / "loops_never_drift.py"))
    case = example["cassie"](path)
    assert case.model.nv == 16 and len(case.model.loops) == 4
    results = example["ours"](case, 0.5, ["rk4"]) | example["mujocos"](case, 0.5)
    worst = largest(results)
    assert worst["grubler rk4"][1] < 1e-12 < worst["MuJoCo tuned"][1]
    # MuJoCo's mechanism has no damping either: its energy drifts, it does not drain
    assert worst["grubler rk4"][0] < worst["MuJoCo tuned"][0] < 5e-3


def test_humanoid_leg_accuracy(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "humanoid_leg_accuracy.py"))
    picture = tmp_path / "leg.svg"
    results = example["main"](str(picture))
    assert picture.read_text().count("<path") > 3
    knee = example["errors"](results, 3)
    # the paper's RMS errors, 4.31 and 1.04 N m
    assert np.isclose(knee["unconstrained"][0], 4.31, atol=0.01)
    assert np.isclose(knee["approximate"][0], 1.04, atol=0.01)
