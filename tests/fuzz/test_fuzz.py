"""A short run of the fuzzer, and checks that it finds what it looks for."""

import json

import files
import pytest
from sources import FOUR_BAR, Source, sources

pytest.importorskip("mujoco")
pytest.importorskip("yaml")
SMALL = [source for source in sources() if len(source.text) < 4000]


@pytest.mark.parametrize("block", range(4))
def test_mutated_files_give_a_model_or_an_error(block, tmp_path):
    for index in range(50 * block, 50 * block + 50):
        folder = tmp_path / str(index)
        folder.mkdir()
        what = files.outcome(0, index, folder, SMALL)
        assert what in ("model", "refused"), f"case {index}: {what}"


def test_sources_are_models():
    """Mutations of files that load, not of broken ones: each source of our own is a model."""
    assert len(SMALL) >= 9
    for source in SMALL[:9]:
        assert source.kind in ("robot", "sdf", "mujoco", "yaml")


def test_every_case_can_be_run_again(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    pairs = [files.case_files(3, 7, tmp_path / name, SMALL) for name in "ab"]
    assert pairs[0][0].read_bytes() == pairs[1][0].read_bytes()
    assert pairs[0][1] == pairs[1][1]


WRONG = {
    "raises": ("raise KeyError('x')", "KeyError at"),
    "warns": ("import warnings; warnings.warn('x')", "UserWarning: x"),
    "overflow": ("import numpy; numpy.float64(1e308) * 10", "RuntimeWarning"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_goes_wrong_is_found(case, tmp_path, monkeypatch):
    code, expected = WRONG[case]
    import grubler.formats

    def describe(path):
        exec(code)
        return grubler.formats._load.describe(path)

    (tmp_path / "r.urdf").write_text(FOUR_BAR)
    assert files.run_case(tmp_path / "r.urdf", None, True) == "model"
    assert files.run_case(tmp_path / "r.urdf", "zz_1", True) == "nothing is said of 'zz_1'"
    monkeypatch.setattr("grubler.formats.describe", describe)
    assert expected in files.run_case(tmp_path / "r.urdf", None, True)


def hang(connection, seed):
    """A worker whose case 1 never ends, and whose case 2 ends the process."""
    connection.send("ready")
    while (index := connection.recv()) is not None:
        while index == 1:
            pass
        if index == 2:
            raise SystemExit(9)
        connection.send((index, "model"))


def test_hangs_and_crashes_are_found_and_the_run_goes_on(monkeypatch):
    monkeypatch.setattr(files, "work", hang)
    monkeypatch.setattr(files, "SECONDS", 1)
    found, saved = {}, []
    files.fuzz(0, 0, 4, 60.0, 1, found.__setitem__, lambda *x: saved.append(x))
    assert saved[-1][0] == 4 and saved[-1][1]["model"] == 2
    assert found == {1: "runs longer than 1 s", 2: "the process ended with status 9"}


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    seen = []

    def fuzz(seed, first, count, seconds, jobs, tell, save):
        seen.append(first)
        save(first + count, {"model": count})

    monkeypatch.setattr(files, "fuzz", fuzz)
    state = tmp_path / "state.json"
    monkeypatch.setattr("sys.argv", ["files.py", "--count", "5", "--state", str(state)])
    assert files.main() == files.main() == 0
    assert seen == [0, 5] and json.loads(state.read_text())["next"] == 10
    assert "cases 5 to 9" in capsys.readouterr().out


def test_a_kind_is_told_by_the_root():
    assert Source("a.urdf", "<robot/>").kind == "robot"
    assert Source("a.yaml", "closed_loop: []").kind == "yaml"
