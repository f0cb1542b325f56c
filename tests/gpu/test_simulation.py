"""Simulation on the GPU target: the run's own machinery on a fake GPU, against the CPU's run."""

import json
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import grubler as gb
from grubler.compiler.backends.gpu.plans import alive
from grubler.gpu.memory import DeviceArray

from .fake_gpu import FakeDevice, install


@pytest.fixture
def gpu(monkeypatch):
    return install(monkeypatch)


def start(model, n):
    return tuple(np.stack(x) for x in zip(*(model.random_state(i) for i in range(n))))


def both(model, n=None, **options):
    return (
        gb.Simulator(model, target=target, batch=n, **options) for target in ("cpu", "cuda")
    )  # fmt: skip


def same(found, wanted):
    assert np.allclose(found.time, wanted.time)
    for name in ("q", "v", "tau"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), 1e-9, 1e-11)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4", "implicit_midpoint"])
@pytest.mark.parametrize("name", ["four_bar", "mini_cheetah"])
def test_same_trajectory_as_on_the_cpu(gpu, name, integrator):
    model = gb.robots.load(name)
    on_cpu, on_gpu = both(model, 3, integrator=integrator)
    q, v = start(model, 3)
    same(on_gpu.trajectory(on_gpu.run(q, v, steps=12)), on_cpu.run(q, v, steps=12))
    assert gpu.launches == 12


@pytest.mark.parametrize("n", [None, 4])
def test_torques_of_every_shape(gpu, n):
    model = gb.robots.load("four_bar")
    on_cpu, on_gpu = both(model, n)
    q, v = model.random_state(0) if n is None else start(model, n)
    rng = np.random.default_rng(0)
    steps, nv = 6, model.nv
    shapes = [(nv,), (steps, nv)]
    if n is not None:
        shapes += [(n, nv), (steps, n, nv)]
    for shape in shapes:
        tau = rng.normal(size=shape)
        found = on_gpu.trajectory(on_gpu.run(q, v, tau, steps=steps))
        same(found, on_cpu.run(q, v, tau, steps=steps))
    with pytest.raises(gb.InputError, match="torques have shape"):
        on_gpu.run(q, v, np.zeros((steps + 2, nv + 1)), steps=steps)


def test_one_state_starts_all_and_many_steps_in_a_launch(gpu):
    model = gb.robots.load("four_bar")
    q, v = model.random_state(0)
    fine = gb.Simulator(model, batch=5).run(q, v, steps=20)
    coarse = gb.Simulator(model, target="cuda", batch=5, substeps=10)
    run = coarse.run(q, v, steps=2)
    assert gpu.launches == 2 and len(run) == 3 and run.q.shape == (3, 5, model.nq)
    np.testing.assert_allclose(coarse.trajectory(run).q, fine.q[::10], 1e-9, 1e-11)


def law(t, q, v):
    return -3.0 * q[:1] - 0.2 * v + np.sin(40.0 * t)


def test_a_law_inside_the_kernel(gpu):
    """On both targets it is what a Python controller gives; with substeps it acts at each."""
    model = gb.robots.load("four_bar")
    q, v = start(model, 3)
    outside = gb.Simulator(model, batch=3).run(
        q, v, lambda t, q, v: -3.0 * q[:, :1] - 0.2 * v + np.sin(40.0 * t), steps=20
    )
    for simulator in both(model, 3, control=law, substeps=5):
        run = simulator.run(q, v, steps=4)
        if simulator.target == "cuda":
            run = simulator.trajectory(run)
        np.testing.assert_allclose(run.q, outside.q[::5], 1e-9, 1e-11)
        np.testing.assert_allclose(run.v, outside.v[::5], 1e-9, 1e-10)
    with pytest.raises(gb.InputError, match="control returned shape"):
        gb.Simulator(model, control=lambda t, q, v: q)


def test_a_compiled_controller(gpu):
    model = gb.robots.load("four_bar")

    def feedback(model, t, q, v):
        return law(t, q, v)

    compiled = {
        target: gb.compile(feedback, model, shapes={"t": (1,)}, target=target)
        for target in ("cpu", "cuda")
    }
    on_cpu, on_gpu = both(model)
    q, v = model.random_state(1)
    wanted = on_cpu.run(q, v, compiled["cpu"], steps=15)
    same(on_gpu.trajectory(on_gpu.run(q, v, compiled["cuda"], steps=15)), wanted)
    by_hand = on_cpu.run(q, v, law, steps=15)
    same(wanted, by_hand)
    other = gb.compile(gb.mass_matrix, model, target="cuda")
    with pytest.raises(gb.InputError, match=r"gives shape \(1, 1\)"):
        on_gpu.run(q, v, other, steps=1)
    wrong = gb.compile(gb.forward_dynamics, model, target="cuda")
    with pytest.raises(gb.InputError, match="must take some of t, q, v"):
        on_gpu.run(q, v, wrong, steps=1)


def test_errors_are_those_of_the_cpu(gpu):
    """What blew up, when and where; a torque that is not finite, at which step."""
    model = gb.robots.load("four_bar")
    q, v = start(model, 3)
    wild = np.zeros((40, 3, model.nv))
    wild[7, 1] = 1e200
    lost = np.zeros((40, model.nv))
    lost[5] = np.nan
    said = {}
    for simulator in both(model, 3):
        with pytest.raises(gb.SimulationError) as caught:
            simulator.run(q, v, wild, steps=40)
        said[simulator.target, "wild"] = str(caught.value), len(caught.value.trajectory)
    with pytest.raises(gb.SimulationError) as caught:
        simulator.run(q, v, lost, steps=40)
    said["cuda", "lost"] = str(caught.value), len(caught.value.trajectory)
    assert said["cuda", "wild"] == said["cpu", "wild"]
    assert "of robot 1" in said["cuda", "wild"][0] and "blew up at t = " in said["cuda", "wild"][0]
    assert said["cuda", "lost"][0].startswith("step 5 (t = 0.005 s)")
    assert said["cuda", "lost"][1] == 6


def test_singular_coordinates_are_passed_and_mechanisms_stop(gpu):
    model = gb.robots.load("four_bar")
    q, _ = model.random_state(0)
    other = gb.repartition(model, q, independent=["follower"])
    v = gb.convert_velocity(model, other, q, np.array([8.0]))
    Q, V = np.stack([q, q]), np.stack([v, -v])
    runs = []
    for simulator in both(other, 2, integrator="rk4"):
        run = simulator.run(Q, V, steps=500)
        runs.append(simulator.trajectory(run) if simulator.target == "cuda" else run)
    assert any(run.carried is not None and run.carried.any() for run in runs)
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-10)
    np.testing.assert_allclose(runs[0].v, runs[1].v, atol=1e-7)
    flat = gb.robots.load("parallel_four_bar")
    q, _ = flat.random_state(0)
    for simulator in both(flat, None, integrator="rk4"):
        with pytest.raises(gb.SimulationError, match="singularity of the mechanism itself"):
            simulator.run(q, np.array([6.0]), steps=1500)


def test_what_is_lost_is_named():
    from grubler.gpu.simulation import blown_up

    q, v = np.zeros((3, 2)), np.zeros((3, 2))
    q[2, 1] = np.nan
    assert "'b' of robot 2 is not" in blown_up(0.1, q, v, v, ["a", "b"], ["va", "vb"], True)
    v[1, 0] = np.inf
    assert "'va' of robot 1 is not" in blown_up(0.1, q, v, q, ["a", "b"], ["va", "vb"], True)
    assert "'vb' is not" in blown_up(
        0.1, q[0], np.array([0, np.nan]), v[0], ["a", "b"], ["va", "vb"], False
    )


def test_bad_input(gpu):
    model = gb.robots.load("four_bar")
    simulator = gb.Simulator(model, target="cuda", batch=3)
    q, v = start(model, 3)
    with pytest.raises(gb.InputError, match="q has shape"):
        simulator.run(q[:2], v, steps=1)
    with pytest.raises(gb.InputError, match="not finite"):
        simulator.run(q, v * np.nan, steps=1)
    with pytest.raises(gb.ClosureError):
        simulator.run(q + 0.1, v, steps=1)
    with pytest.raises(gb.InputError, match="steps"):
        simulator.run(q, v, steps=-1)
    with pytest.raises(gb.InputError, match="gets arrays of q's library"):
        simulator.run(q, v, lambda t, q, v: v, steps=1)
    with pytest.raises(gb.InputError, match="target"):
        gb.Simulator(model, target="gpu")
    with pytest.raises(gb.InputError, match="target='cuda'"):
        gb.Simulator(model).export("nowhere")


def test_no_driver():
    if gb.gpu.available():
        pytest.skip("this machine has a GPU")
    model = gb.robots.load("four_bar")
    simulator = gb.Simulator(model, target="cuda")  # compiling needs none
    with pytest.raises(gb.gpu.GpuError, match="no NVIDIA driver"):
        simulator.run(*model.random_state(0), steps=1)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on this machine")
@pytest.mark.parametrize("substeps", [1, 20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_assemble(dtype, substeps, tmp_path):
    """With friction (tanh) and a law inside, loops within loops."""
    model = gb.robots.load("four_bar")
    passive = gb.Passive(friction={model.joints[0].name: 0.1})
    simulator = gb.Simulator(
        model, target="cuda", dtype=dtype, substeps=substeps, passive=passive, control=law,
        integrator="implicit_midpoint",
    )  # fmt: skip
    path = tmp_path / "code.ptx"
    path.write_text(simulator._step.ptx(0))
    subprocess.run(["ptxas", "-arch=sm_90", "-o", str(tmp_path / "code.o"), str(path)], check=True)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on this machine")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_with_its_state_in_memory(dtype, tmp_path):
    """Where a plan limits the values of a looped step, its state waits in memory, and the
    assembler has nothing left to spill."""
    model = gb.robots.load("quadruped")
    step = gb.Simulator(model, target="cuda", dtype=dtype, substeps=50)._step
    tape = step.tape
    assert len(tape.loops) == 1 and alive(tape) < 5 < alive(tape.loops[0].step)
    planned = [i for i in range(len(step.candidates)) if step.candidates[i]["columns"].values]
    assert planned and len(planned) < len(step.candidates)
    path = tmp_path / "code.ptx"
    path.write_text(step.ptx(planned[0]))
    assert step.frames(planned[0])["columns"]["shared"] > 0
    said = subprocess.run(
        ["ptxas", "-arch=sm_90", "-v", "-o", str(tmp_path / "code.o"), str(path)],
        check=True, capture_output=True, text=True,
    ).stderr  # fmt: skip
    spilled = [int(n) for n in re.findall(r"(\d+) bytes spill stores", said)]
    assert max(spilled) < 400


def test_bundle_simulates_without_the_compiler(tmp_path):
    model = gb.robots.load("four_bar")
    simulator = gb.Simulator(model, 2e-3, target="cuda", batch=8, substeps=3, dtype="float32")
    simulator.export(tmp_path, name="swing")
    about = json.loads((tmp_path / "swing.json").read_text())["simulation"]
    assert about["dt"] == 2e-3 and about["v_names"] == list(model.v_names)
    script = f"""
        import sys
        for name in ("casadi", "llvmlite", "grubler", "platformdirs"):
            sys.modules[name] = None
        sys.path.insert(0, {str(tmp_path)!r})
        import grubler_bundle, numpy
        simulation = grubler_bundle.load_simulation("swing")
        print(simulation)
        try:
            run = simulation.run(numpy.zeros({model.nq}), numpy.zeros({model.nv}), steps=2)
            print(run)
        except grubler_bundle.GpuError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert "8 robots: 3 x 0.002 s a step" in done.stdout
    assert ("GpuTrajectory" if gb.gpu.available() else "no NVIDIA driver") in done.stdout
    gb.export(gb.compile(gb.energy, model, target="cuda"), tmp_path, target="cuda")
    with pytest.raises(gb.InputError, match="is no simulation"):
        gb.gpu.load_simulation(tmp_path, "energy")


def test_device_arrays(gpu):
    values = np.arange(24.0).reshape(2, 3, 4)
    array = DeviceArray.of(FakeDevice(), values, "float64")
    assert np.array_equal(array.numpy(), values)
    assert np.array_equal(array.mT.numpy(), np.swapaxes(values, -1, -2))
    assert np.array_equal(array[1].numpy(), values[1])
    assert np.array_equal(array[-1].mT.numpy(), values[-1].T)
    assert np.array_equal(array.upto(1).numpy(), values[:1])
    assert np.array_equal(array.without_last().numpy(), values[..., 0])
    with pytest.raises(IndexError):
        array[2]
    assert array.__dlpack_device__() == (2, 0)
    from grubler.gpu import dlpack

    found = dlpack.view(array.mT, "x", "float64", 0, own=False)
    assert found.shape == (2, 4, 3) and found.strides == (12, 1, 4)
    assert not dlpack._lent  # a capsule that nobody takes leaves nothing behind
