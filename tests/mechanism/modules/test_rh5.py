"""The RH5 Manus study: closed forms against numeric closing, embedding against inversion."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

import grubler as gb
from grubler.mechanism.loops.modules import module_name
from grubler.model.exchange import convert_configuration

ROOT = Path(__file__).parents[3]
FILES = ROOT.parent / "shared" / "models" / "rh5_manus_hyrodyn" / "model"
REDUCED = FILES / "submechanisms_urdf" / "submechanisms_reduced.yml"
study = runpy.run_path(str(ROOT / "examples" / "rh5_study.py"))


def from_file(path: Path) -> gb.Model:
    if not path.exists():
        pytest.skip(f"{path.name} of RH5 Manus is not here")
    formats = pytest.importorskip("grubler.formats")
    if not hasattr(formats, "load"):
        pytest.skip("this version does not read YAML beside a URDF")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the file holds beyond the mechanism
        return formats.load(path)


@pytest.fixture(scope="module", params=["example", "file"])
def models(request):
    model = study["rh5_manus"]() if request.param == "example" else from_file(REDUCED)
    return study["variants"](model)


def test_shape(models):
    """Three closed mechanisms, 23 tree joints, 13 freedoms, 13 actuators (Sec. III-C)."""
    for model in models.values():
        assert (model.nv_span, model.nv, len(model.actuators)) == (23, 13, 13)
    names = [module_name(c.embedding.steps) for c in models["analytic"].clusters if c.loops]
    assert sorted(names) == ["2SPU+1U", "slider-crank", "slider-crank"]
    implicit = {k: sum(c.embedding.implicit for c in m.clusters) for k, m in models.items()}
    assert implicit == {"analytic": 0, "hybrid": 1, "numeric": 3}
    rank = {k: m.nv_span - m.nv - _solved(m) for k, m in models.items()}
    assert rank == {"analytic": 0, "hybrid": 6, "numeric": 10}  # the paper's n^c


def _solved(model) -> int:
    explicit = [c.embedding for c in model.clusters if c.loops and not c.embedding.implicit]
    return sum(joint.nv_span - joint.nv for joint in explicit)


def test_table_two(models):
    """The paper's errors: 1e-8 m, 1e-9 m/s, 1e-11 m/s², 1e-4 N. Ours are rounding."""
    errors = study["compare_torso"](models["hybrid"], models["analytic"], steps=9)
    bounds = {"position": 1e-11, "velocity": 1e-12, "acceleration": 1e-12, "force": 1e-9}
    for key, bound in bounds.items():
        assert errors[key].shape == (2,) and errors[key].max() < bound, key


def test_embedding_equals_inversion(models):
    assert study["compare_embedding"](models["analytic"], steps=7) < 1e-11


def test_factorization_of_the_inverse(models):
    model = models["analytic"]
    first, last = study["ends"](model)
    for share in (0.0, 0.3, 1.0):
        q = first + share * (last - first)
        factor, D = study["inverse_factors"](model, q)
        inverse = factor @ np.linalg.inv(D) @ factor.T  # (27)
        M = gb.mass_matrix(model, q)
        assert np.abs(inverse @ M - np.eye(model.nv)).max() < 1e-8
        root = np.linalg.inv(factor)
        assert np.abs(root.T @ D @ root - M).max() < 1e-12 * np.abs(M).max()  # (24)


def test_all_three_agree(models):
    closed, v, a = models["analytic"], *np.random.default_rng(0).uniform(-1, 1, (2, 13))
    q = study["ends"](closed)[0]
    forces = []
    for model in models.values():
        order = [closed.v_names.index(n) for n in model.v_names]
        at = convert_configuration(closed, model, q)
        tau = gb.inverse_dynamics(model, at, v[order], a[order])
        forces.append(tau[np.argsort(order)])
    assert np.allclose(forces, forces[0], rtol=1e-9, atol=1e-9)


def test_cycloid():
    start, end = np.array([0.0, 1.0]), np.array([2.0, -1.0])
    for t, y in ((0.0, start), (3.0, end)):
        at, v, a = study["cycloid"](start, end, 3.0, t)
        assert np.allclose(at, y) and np.allclose(v, 0) and np.allclose(a, 0)
    h = 1e-6
    y0, v0, a0 = study["cycloid"](start, end, 3.0, 1.1)
    y1, v1, _ = study["cycloid"](start, end, 3.0, 1.1 + h)
    assert np.allclose((y1 - y0) / h, v0, atol=1e-5) and np.allclose((v1 - v0) / h, a0, atol=1e-5)


def test_closed_forms_need_fewer_operations(models):
    """Figs. 7 and 9: analytic, hybrid, numeric in this order, even without their Newton steps."""
    rows = study["operations"](models)
    for cheaper, dearer in (("analytic", "hybrid"), ("hybrid", "numeric")):
        assert all(x < y for x, y in zip(rows[cheaper], rows[dearer], strict=True))
    assert rows["analytic"][0] == 0


def test_closed_forms_need_fewer_operations_on_the_full_robot():
    models = study["variants"](from_file(FILES / "full_urdf" / "submechanisms.yml"))
    rows = study["operations"](models).values()
    inverse = [row[1] for row in rows]
    assert inverse[0] < inverse[1] < inverse[2]
    # numeric closing takes three Newton steps or more on top, of the wrists alone in the first
    called = [3 * step + dynamics for step, dynamics, _ in rows]
    assert called == sorted(called) and called[0] < 0.95 * called[2]


def test_help(capsys):
    with pytest.raises(SystemExit) as caught:
        study["main"](["--help"])
    assert caught.value.code == 0 and "submechanisms" not in capsys.readouterr().err


def test_benchmark_runs():
    models = study["variants"](study["rh5_manus"]())
    times = study["benchmark"](models, count=64, functions=[study["closed_state"]])
    assert set(times) == {"analytic", "hybrid", "numeric"}
    assert all(row["closed_state"] > 0 for row in times.values())
