"""The command line: output, data, exit status, and errors that a person can act on."""

import json
import time

import numpy as np
import pytest

import grubler as gb
from grubler.cli import COMMANDS, main


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_robots_and_info(capsys):
    status, out, _ = run(capsys, "robots")
    assert status == 0 and all(name in out for name in gb.robots.names())
    status, out, _ = run(capsys, "robots", "--json")
    assert {"robot": "four_bar", "bodies": 3, "loops": 1, "clusters": 1, "dof": 1} in json.loads(
        out
    )
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


def test_errors(capsys, tmp_path):
    status, _, err = run(capsys, "simulate", "four_bra")
    assert status == 1 and "did you mean 'four_bar'" in err
    status, _, err = run(capsys, "simulate", "missing.urdf")
    assert status == 1 and "missing.urdf" in err
    status, _, err = run(capsys, "check", "four_bar", "--base", "free")
    assert status == 1
    status, _, err = run(capsys, "view", "four_bar", "--trajectory", tmp_path / "none.npz")
    assert status == 1 and "none.npz" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate"], "ROBOT_OR_FILE"),
        (["simulate", "four_bar", "--dt", "-1"], "--dt: -1 is not a number above zero"),
        (["simulate", "four_bar", "--dt", "nan"], "--dt: nan is not a finite number"),
        (["simulate", "four_bar", "--batch", "1.5"], "--batch: 1.5 is not a whole number"),
        (["simulate", "four_bar", "--seconds", "soon"], "--seconds: 'soon' is not a number"),
        (["simulate", "four_bar", "--damping", "-1"], "--damping: -1 is below zero"),
        (["simulate", "four_bar", "--out", "nowhere/a.npz"], "folder 'nowhere' does not exist"),
        (["simulate", "four_bar", "--plot", "a.foo"], "'a.foo' must end in .svg, .png, .pdf"),
        (["dance"], "invalid choice: 'dance'"),
    ],
)
def test_bad_arguments(capsys, arguments, message):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


CONTROL = """
import numpy as np
import signal

def push(t, q, v):
    return np.full_like(v, 0.1)

def wrong(t, q, v):
    return np.zeros(7) if t > 0.0095 else np.zeros_like(v)

def broken(t, q, v):
    return np.full_like(v, 1 / int(t < 0.0045))

def interrupt(t, q, v):
    if t > 0.0195:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
        signal.raise_signal(signal.SIGINT)
    return np.zeros_like(v)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "control.py").write_text(CONTROL)
    gb.save(gb.robots.load("four_bar"), tmp_path / "robot.urdf")
    return tmp_path


def test_controllers(capsys, folder):
    short = ("four_bar", "--seconds", 0.1, "--json", "--controller")
    energies = {}
    for controller in ("zero", "pd", "control.py:push", "control:push"):
        status, out, err = run(capsys, "simulate", *short, controller)
        assert status == 0, err
        energies[controller] = json.loads(out)["energy_end_J"]
    assert energies["control.py:push"] == energies["control:push"] != energies["zero"]
    for controller, message in (
        ("pid", "controller 'pid' is unknown: give zero, pd"),
        ("control.py:pull", "no function named 'pull': known: push"),
        ("other.py:push", "'other.py' does not exist"),
        ("nowhere:push", "No module named 'nowhere'"),
    ):
        status, _, err = run(capsys, "simulate", *short, controller)
        assert status == 1 and message in err


def test_pd_holds_the_joints(capsys, folder):
    """Where they start, with the floating base falling."""
    for name in ("mini_cheetah", "four_bar"):
        status, *_ = run(capsys, "simulate", name, "--controller", "pd", "--seconds", 0.5,
                         "--out", "held.npz")  # fmt: skip
        assert status == 0
        model = gb.robots.load(name)
        held = gb.Trajectory.load("held.npz", model)
        joints = [model.q_names.index(n) for n in model.v_names if n in model.q_names]
        assert len(joints) == model.nv - (6 if name == "mini_cheetah" else 0)
        assert abs(held.q[-1] - held.q[0])[joints].max() < 0.02


@pytest.mark.parametrize(
    ("function", "status", "states", "message"),
    [
        ("wrong", 1, 11, "step 10 (t = 0.01 s): the controller returned shape (7,)"),
        ("broken", 1, 6, "step 5 (t = 0.005 s): the controller raised ZeroDivisionError"),
        ("interrupt", 130, 21, "interrupted"),
    ],
)
def test_what_was_computed_is_kept(capsys, folder, function, status, states, message):
    got, out, err = run(capsys, "simulate", "four_bar", "--seconds", 1, "--controller",
                        f"control.py:{function}", "--out", "part.npz")  # fmt: skip
    assert got == status and message in err and "part.npz" in out
    assert len(gb.Trajectory.load("part.npz", gb.robots.load("four_bar"))) == states


def test_a_blow_up_is_told_and_kept(capsys, folder):
    wild = ("--seed", 0, "--dt", 0.5, "--seconds", 100, "--integrator", "semi_implicit")
    status, out, err = run(capsys, "simulate", "arm7", *wild, "--out", "up.npz", "--json")
    assert status == 1 and "blew up at t =" in err and "panda_joint" in err
    assert np.isfinite(json.loads(out)["energy_end_J"])  # of what is kept, which was right
    assert (folder / "up.npz").exists()


@pytest.mark.parametrize(
    ("option", "module"), [("--plot=x.svg", "matplotlib"), ("--view", "viser")]
)
def test_a_missing_extra_is_told_before_the_work(capsys, folder, monkeypatch, option, module):
    from grubler.cli import simulate

    monkeypatch.setattr(simulate, "find_spec", lambda name: None)
    status, _, err = run(capsys, "simulate", "four_bar", option)
    assert status == 1 and f"needs {module}: pip install grubler[" in err


def test_interrupt_is_clean(capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(gb.robots, "names", interrupted)
    assert run(capsys, "robots")[0] == 130


def test_progress_is_for_terminals(capsys, monkeypatch):
    """Nothing on stderr of a pipe; on a terminal a bar, once a second has passed."""
    from grubler.cli import progress

    def work():
        with progress.counting("working", 3) as tick:
            for _ in range(3):
                time.sleep(0.12)
                tick(1)
        with progress.waiting("thinking"):
            time.sleep(0.2)
        return capsys.readouterr().err

    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    assert work() == ""
    monkeypatch.setattr(progress, "_terminal", lambda: True)
    shown = work()
    assert "working" in shown and "thinking" in shown
    monkeypatch.setattr(progress, "PATIENCE", 5.0)
    assert work().strip() == ""


def test_bench(capsys):
    status, out, err = run(capsys, "bench", "arm7", "--rounds", 2, "--batch", 64, "--json")
    assert status == 0, err
    data = json.loads(out)
    forward, inverse, mass = data["rows"]
    count = gb.count_operations(gb.forward_dynamics, gb.robots.load("arm7"))
    assert forward["operations"]["total"] == count.total
    assert all(row["us"] > 0 and row["batch_us"] > 0 for row in data["rows"])
    labels = [rival["what"] for rival in forward["rivals"]]
    assert labels == ["Pinocchio aba", "MuJoCo mj_forward"]
    for row in (forward, inverse, mass):
        assert all(rival["agrees_to"] < 1e-12 for rival in row["rivals"])
    status, out, _ = run(capsys, "bench", "joint_sampler", "--rounds", 1, "--batch", 8)
    assert status == 0 and "left out: Pinocchio: URDF has no universal joint" in out


def test_bench_of_loops_projects_what_the_rivals_compute(capsys):
    _, out, _ = run(capsys, "bench", "four_bar", "--rounds", 1, "--batch", 8, "--json")
    forward, inverse, mass = json.loads(out)["rows"]
    assert max(row["rivals"][0]["agrees_to"] for row in (inverse, mass)) < 1e-12
    assert forward["rivals"][0]["agrees_to"] > 1e-3  # loops left out: another robot


def test_info_says_why_there_is_no_gpu(capsys, monkeypatch):
    from grubler.cli import info

    monkeypatch.setattr(info.driver, "device_count", _no_gpu)
    assert "none: no driver here" in run(capsys, "info")[1]


def _no_gpu():
    from grubler.gpu import GpuError

    raise GpuError("no driver here")


EXAMPLES = [line for module in COMMANDS.values() for line, _ in module.EXAMPLES]


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_of_the_help_run(capsys, folder, monkeypatch, line):
    from grubler.viewer import launch

    monkeypatch.setattr(launch.Viewer, "wait", lambda self: self.close())
    monkeypatch.setattr(launch.webbrowser, "open", lambda url: True)
    words = line.split()
    assert words.pop(0) == "grubler"
    if "swing.npz" in words:
        run(capsys, "simulate", "four_bar", "--seconds", 0.05, "--out", "swing.npz")
    if words[0] == "simulate" and "--seconds" not in words:
        words += ["--seconds", "0.1"]
    if words[0] in ("view", "simulate") and "--port" not in words:
        words += ["--port", "0"]
    if words[0] == "bench" and "--rounds" not in words:
        words += ["--rounds", "1", "--batch", "64"]
    status, out, err = run(capsys, *words)
    assert status == 0, err
    assert out
    if "--json" in words:
        json.loads(out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_exit_codes(capsys, command):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    out = capsys.readouterr().out
    assert caught.value.code == 0
    assert f"grubler {command}" in out.split("examples:")[1]
    assert "130  interrupted" in out
