"""Starting the viewer: bad input, ports, what a program can do with it."""

from __future__ import annotations

import socket
import sys
import time

import numpy as np
import pytest

import grubler as gb
from conftest import load
from grubler.viewer import Viewer, view


def swing(batch: int | None = None) -> gb.Trajectory:
    model = load("four_bar")
    sim = gb.Simulator(model, dt=1e-2, batch=batch)
    return sim.run(model.neutral(), np.zeros(model.nv), steps=50)


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r"pip install grubler\[view\]"):
        view(load("four_bar"))


@pytest.mark.parametrize("what", [None, 3, {}, np.zeros(3)])
def test_only_models_and_trajectories(what):
    with pytest.raises(gb.InputError, match="give a Model or a Trajectory"):
        view(what)


def test_names_and_files_are_loaded_first():
    with pytest.raises(gb.InputError, match=r"gb.robots.load\('four_bar'\)"):
        view("four_bar")


def test_nothing_to_show():
    with pytest.raises(gb.InputError, match="no bodies"):
        view(gb.ModelBuilder("empty").build())
    run = swing()
    empty = gb.Trajectory(run.model, run.time[:0], run.q[:0], run.v[:0], run.tau[:0])
    with pytest.raises(gb.InputError, match="no state"):
        view(empty)


@pytest.mark.parametrize("port", [-1, 65536, 80.5, "8080", None, True])
def test_bad_ports(port):
    with pytest.raises(gb.InputError, match="port is"):
        view(load("four_bar"), port=port)


def test_a_port_in_use():
    pytest.importorskip("viser", reason="the extra grubler[view] is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(gb.InputError, match=rf"port {port} is in use: port \d+ is free"):
            view(load("four_bar"), port=port, block=False)


def test_an_unknown_host():
    pytest.importorskip("viser", reason="the extra grubler[view] is not installed")
    with pytest.raises(gb.InputError, match=r"cannot listen on 203\.0\.113\.7"):
        view(load("four_bar"), port=0, block=False, host="203.0.113.7")


@pytest.fixture
def four_bar():
    pytest.importorskip("viser", reason="the extra grubler[view] is not installed")
    with view(load("four_bar"), port=0, block=False) as viewer:
        yield viewer


def test_a_viewer_of_a_model(four_bar, capfd):
    assert four_bar.url == f"http://localhost:{four_bar.port}"
    before = four_bar.q
    assert four_bar.set("crank", 1.5).reached
    assert four_bar.q[0] == pytest.approx(1.5) and four_bar.gap < 1e-10
    assert np.abs(four_bar.q - before)[1:].min() > 0.01
    four_bar.reset()
    assert np.array_equal(four_bar.q, before)
    with pytest.raises(gb.ClosureError):
        four_bar.show(np.zeros(3))
    with pytest.raises(gb.InputError, match="it has no play"):
        four_bar.play()
    assert "at http://localhost" in repr(four_bar)
    four_bar.close()
    four_bar.close()
    assert "closed" in repr(four_bar)
    assert capfd.readouterr().out == ""


def test_a_slider_of_the_page_moves_the_robot(four_bar):
    """What the websocket does when a slider is dragged: its value changes, callbacks run."""
    handle = four_bar._sliders["crank"]
    handle.value = 2.0
    assert four_bar.q[0] == pytest.approx(2.0) and four_bar.gap < 1e-10
    q, frame = four_bar.q, four_bar._drawing.frames[1]
    motion = gb.kinematics(four_bar.model, q)
    assert np.allclose(frame.position, motion.position[1])
    assert f"{q[1]:+.4f}" in four_bar._table.content


def test_out_of_reach_is_said():
    pytest.importorskip("viser", reason="the extra grubler[view] is not installed")
    with view(load("loop_sampler"), port=0, block=False) as viewer:
        viewer._sliders["wiper_upper"].value = 3.0
        assert "out of reach" in viewer._status.content
        assert viewer.message and viewer.gap < 1e-9
        viewer._sliders["wiper_upper"].value = 0.1
        assert "out of reach" not in viewer._status.content


def test_a_viewer_of_a_trajectory():
    pytest.importorskip("viser", reason="the extra grubler[view] is not installed")
    run = swing()
    with view(run, port=0, block=False) as viewer:
        viewer.seek(0.255)
        assert np.array_equal(viewer.q, run.q[25])
        viewer.play()
        deadline = time.monotonic() + 10
        while np.array_equal(viewer.q, run.q[25]) and time.monotonic() < deadline:
            time.sleep(0.02)
        viewer.pause()
        assert not np.array_equal(viewer.q, run.q[25])
        assert any(np.array_equal(viewer.q, q) for q in run.q)
        viewer.reset()
        assert np.array_equal(viewer.q, run.q[0])
        with pytest.raises(gb.InputError, match="it has no set"):
            viewer.set("crank", 0.1)


def test_a_batch_shows_one_robot_at_a_time():
    pytest.importorskip("viser", reason="the extra grubler[view] is not installed")
    with view(swing(batch=4), port=0, block=False) as viewer:
        viewer.seek(0.3)
        viewer._choose(2)
        assert np.array_equal(viewer.q, viewer.trajectory.q[30, 2])


@pytest.mark.parametrize(
    "name", ["mini_cheetah", "tello", "joint_sampler", "loop_sampler", "jvrc1"]
)
def test_every_kind_of_robot_opens(name):
    pytest.importorskip("viser", reason="the extra grubler[view] is not installed")
    with view(load(name), port=0, block=False) as viewer:
        assert isinstance(viewer, Viewer)
        q, _ = viewer.model.random_state(2)
        viewer.show(q)
        assert np.abs(viewer.q - q).max() < 1e-12
