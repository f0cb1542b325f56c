"""The command line: output, data, exit status, and errors that a person can act on."""

import json

import pytest

import grubler as gb
from grubler.cli import main


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_robots_and_info(capsys):
    status, out, _ = run(capsys, "robots")
    assert status == 0 and all(name in out for name in gb.robots.names())
    status, out, _ = run(capsys, "info", "--json")
    assert status == 0 and json.loads(out)["grubler"] == gb.__version__


def test_check(capsys):
    status, out, _ = run(capsys, "check", "four_bar", "--samples", 3)
    assert status == 0 and "mobility 1" in out and "Grübler" in out
    status, out, _ = run(capsys, "check", "six_bar", "--samples", 2, "--json")
    assert status == 0 and json.loads(out)


def test_check_of_a_broken_file(capsys, tmp_path):
    path = tmp_path / "broken.urdf"
    path.write_text("<robot name='x'><link name='a'>")
    status, out, _ = run(capsys, "check", path)
    assert status == 1 and "CANNOT BE USED" in out and "broken.urdf" in out


def test_simulate_writes_what_it_says(capsys, tmp_path):
    out_file, picture = tmp_path / "swing.npz", tmp_path / "swing.svg"
    status, out, _ = run(
        capsys, "simulate", "four_bar", "--seed", 0, "--seconds", 0.1, "--out", out_file,
        "--plot", picture, "--json",
    )  # fmt: skip
    summary = json.loads(out)
    assert status == 0 and summary["steps"] == 100 and summary["largest_loop_gap"] < 1e-10
    assert out_file.exists() and picture.exists()
    status, out, _ = run(
        capsys, "simulate", "arm7", "--batch", 3, "--seconds", 0.01, "--damping", 0.1
    )
    assert status == 0 and "steps per second" in out


def test_export(capsys, tmp_path):
    status, out, _ = run(capsys, "export", "four_bar", "--out", tmp_path)
    assert status == 0
    assert {line.rsplit(".", 1)[1] for line in out.split()} == {"c", "h"}


def test_a_file_is_loaded(capsys, tmp_path):
    path = tmp_path / "arm.urdf"
    gb.save(gb.robots.load("arm7"), path)
    status, out, _ = run(capsys, "check", path, "--samples", 2)
    assert status == 0 and "mobility 7" in out


def test_errors(capsys):
    status, _, err = run(capsys, "simulate", "four_bra")
    assert status == 1 and "did you mean 'four_bar'" in err
    status, _, err = run(capsys, "simulate", "missing.urdf")
    assert status == 1 and "missing.urdf" in err
    status, _, err = run(capsys, "simulate", "four_bar", "--dt", -1)
    assert status == 1 and "dt is" in err
    with pytest.raises(SystemExit) as caught:
        main(["simulate"])
    assert caught.value.code == 2
    assert "robot" in capsys.readouterr().err


def test_interrupt_is_clean(capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(gb.robots, "names", interrupted)
    assert run(capsys, "robots")[0] == 130


def test_every_command_has_help_with_examples(capsys):
    for command in ("robots", "check", "simulate", "view", "export", "info"):
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
        assert "examples:" in capsys.readouterr().out
