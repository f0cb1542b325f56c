"""Wrong calls are refused with an error that names the argument; a short run of the fuzzer."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import grubler as gb
from conftest import load
from grubler.arguments import public

FUZZER = Path(__file__).parent / "fuzz" / "calls.py"
MODEL = load("four_bar")
Q, V = MODEL.random_state(0)


@pytest.mark.parametrize("seed", [11, 12])
def test_drawn_calls(seed):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(FUZZER), "--count", "250", "--seed", str(seed)],
        capture_output=True, text=True, timeout=300, env=os.environ, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
    assert "250 calls, 0 findings" in run.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_the_fuzzer_finds_and_goes_on(monkeypatch):
    """A raw error, a crash and a call that takes too long are three findings; the run ends."""
    monkeypatch.syspath_prepend(str(FUZZER.parent))
    import calls

    class Drawn:
        def __init__(self, seed, index):
            def work():
                if index == 1:
                    raise KeyError("raw")
                if index == 3:
                    os.kill(os.getpid(), 9)
                while index == 5:
                    pass

            self.fn, self.arguments, self.options = work, [], {}

    monkeypatch.setattr(calls, "Call", Drawn)
    monkeypatch.setattr(calls, "CPU_SECONDS", 0.3)
    after, found = calls.run(0, 0, 8)
    assert after == 8 and set(found) == {1, 3, 5}
    assert "KeyError" in found[1] and "ended with -9" in found[3] and "0.3 s" in found[5]


CALLS = {
    "model": lambda: gb.forward_dynamics("four_bar", Q, V, V),
    "needs a Model, not NoneType": lambda: gb.count_operations(gb.energy, None),
    "q is 'x'": lambda: MODEL.integrate("x", V),
    r"q has shape \(2,\), expected \(3,\)": lambda: MODEL.loop_gap([1.0, 2.0]),
    "name is": lambda: MODEL.body(["crank"]),
    "q is not an array of real numbers: str": lambda: gb.forward_dynamics(MODEL, "x", V, V),
    "masked": lambda: gb.mass_matrix(MODEL, np.ma.array(Q, mask=[1, 0, 0])),
    "needs constraints": lambda: gb.compile(gb.constrained_forward_dynamics, MODEL),
    "no option named 'nonsense'": lambda: gb.compile(gb.energy, MODEL, nonsense=1),
    "inputs is 'q'": lambda: gb.compile(gb.energy, MODEL, inputs="q"),
    "parameters is 'mass'": lambda: gb.compile(gb.energy, MODEL, parameters="mass"),
    r"mass has shape \(1,\), expected \(3,\)": lambda: gb.with_parameters(MODEL, {"mass": [1.0]}),
    "mass is .*finite": lambda: gb.with_parameters(MODEL, {"mass": [1.0, np.nan, 1.0]}),
    "other is .*pinocchio": lambda: gb.convert.to_pinocchio(MODEL, Q, V),
    "other is .*MjModel": lambda: gb.convert.to_mujoco(MODEL, Q, V),
    "without v": lambda: gb.actuator_state(MODEL, Q, a=V),
    "a is given without v": lambda: gb.kinematics(MODEL, Q, a=V),
    "given without v": lambda: gb.spanning_state(MODEL, Q, None, V),
    "xyz is 'x'": lambda: gb.ModelBuilder().add_joint("j", "revolute", "world", "a", xyz="x"),
    "gear is": lambda: gb.ModelBuilder().add_actuator("m", "j", gear="big"),
    "seed is -1": lambda: MODEL.random_state(-1),
    r"returned ndarray: .*residual": lambda: gb.iterate(lambda x: x, np.ones(2), tolerance=0.1),
}  # fmt: skip


@pytest.mark.parametrize("words", CALLS)
def test_the_wrong_argument_is_named(words):
    with pytest.raises(gb.GrublerError, match=words):
        CALLS[words]()


def test_a_mistake_inside_is_not_blamed_on_right_arguments():
    @public
    def broken(model, q):
        return {}["inside"]

    with pytest.raises(KeyError, match="inside"):
        broken(MODEL, Q)
    with pytest.raises(gb.InputError, match=r"broken: q has shape \(1,\)") as error:
        broken(MODEL, [0.0])
    assert isinstance(error.value.__cause__, KeyError)


def test_python_says_what_is_missing():
    with pytest.raises(TypeError, match="required positional"):
        gb.forward_dynamics(MODEL, Q)
    with pytest.raises(TypeError, match="unexpected keyword"):
        gb.energy(MODEL, Q, V, speed=1)
