"""The documents: they build without a warning, their code runs, their links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import grubler as gb
from grubler.mechanism.joints import KINDS
from grubler.model.fingerprint import fingerprint

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def snippets(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)


def run(page: str, space: dict | None = None) -> dict:
    space = {"__name__": "a_user", **(space or {})}
    for code in snippets(page):
        exec(compile(code, page, "exec"), space)
    return space


def test_the_build_has_no_warnings(tmp_path):
    pytest.importorskip("sphinx")
    for package in ("myst_parser", "furo", "sphinx_copybutton", "sphinx_design"):
        pytest.importorskip(package)
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    front = (tmp_path / "index.html").read_text()
    for page in ("start", "loops", "formats", "extend", "papers", "api", "gallery", "benchmarks"):
        assert f'href="{page}.html"' in front


def test_start_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    space = run("start.md")
    out = capsys.readouterr().out
    assert "mobility 18" in out and "four-bar: usable" in out
    assert space["A"].shape == (1000, 18) and np.allclose(space["A"][7], space["a"])
    assert (tmp_path / "swing.npz").exists() and (tmp_path / "swing.svg").exists()
    assert len(snippets("start.md")) == 5


def test_loops_run():
    space = run("loops.md")
    assert space["v"].shape == (1,)


def test_constraints_run():
    space = run("constrained.md")
    model, q, v = (space[name] for name in ("model", "q", "v"))
    assert space["op"].nv == model.nv and np.abs(space["residual"]).max() < 1e-9
    assert space["motion"].residual < 1e-9 * np.abs(space["motion"].a["primary"]).max()
    assert (len(q), len(v)) == (7, 7) and space["chain"].closures == {}


def test_derivatives_run():
    space = run("derivatives.md")
    n = space["model"].nv
    assert space["A"].shape == (2 * n, 2 * n) and space["B"].shape == (2 * n, n)
    weighted = space["da_dq"].T @ space["w"]
    assert np.abs(space["dq"] - weighted).max() < 1e-10 * np.abs(weighted).max()
    assert space["rate"].shape == (n,)


def test_contact_runs():
    space = run("contact.md")
    robot, run_ = space["robot"], space["run"]
    weight = robot.mass * np.linalg.norm(robot.gravity)
    assert abs(run_.contact.force[-1, :, 2].sum() - weight) < 1e-3 * weight
    assert run_.unconverged == 0 and np.all(run_.contact.modes[-1] == 1)


def test_extensions_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = dict(KINDS)
    try:
        space = run("extend.md")
    finally:
        KINDS.clear()
        KINDS.update(before)
    # code of a user may change between processes: it is not found by name in the disk cache
    assert not fingerprint(space["cam"])
    assert _jacobian_error(space["BarrelCam"](axis=np.array([0.0, 0.6, 0.8]))) < 1e-7


def _jacobian_error(joint, q=0.7, v=1.3, h=1e-6) -> float:
    """S and bias of the document's joint against differences of its transform and its S."""

    def pose(x):
        return joint.transform(np.array([x]))

    moved = pose(q + h) @ pose(q - h).inverse()  # child to child: a small motion
    linear = pose(q).E @ (pose(q + h).r - pose(q - h).r) / (2 * h)
    skew = (moved.E.T - moved.E) / (4 * h)
    angular = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
    S = joint.subspace(np.array([q]))[:, 0]
    rate = (joint.subspace(np.array([q + h])) - joint.subspace(np.array([q - h])))[:, 0] / (2 * h)
    error = np.abs(np.concatenate([angular, linear]) - S).max()
    bias = joint.bias(np.array([q]), np.array([v]))
    return max(error, np.abs(rate * v * v - bias).max())


def test_simulate_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = gb.robots.load("four_bar")
    q, v = model.random_state(0)
    space = {"gb": gb, "model": model, "q": q, "v": v, "controller": None}
    code = snippets("simulate.md")[0].replace('"elbow"', '"coupler"')
    exec(code, space)
    assert len(space["again"]) == 1001


def test_every_public_name_is_documented():
    text = (DOCS / "api.md").read_text()
    missing = [
        name
        for name in gb.__all__
        if not re.search(rf":: (grubler\.)?(\w+\.)*{name}$", text, re.M)
        and name not in ("robots", "convert", "gpu", "operators")
    ]
    assert missing == []


@pytest.mark.parametrize(
    "page",
    ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *sorted(p.name for p in DOCS.glob("*.md"))],
)
def test_links_lead_somewhere(page):
    path = ROOT / page if (ROOT / page).exists() else DOCS / page
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{page}: {target}"


def test_every_example_is_in_the_gallery():
    gallery = (DOCS / "gallery.md").read_text()
    for example in (ROOT / "examples").glob("*.py"):
        assert f"../examples/{example.name}" in gallery
