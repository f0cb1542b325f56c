"""Every algorithm for the inverse operational-space inertia, against each other."""

import numpy as np
import pytest
from cases import LEGS, state

import grubler as gb
from conftest import load, relative
from grubler.constrained import solve_osim

METHODS = ("pv_osim", "kjr", "ltl_osim")
FEET = [(name, (3, 4, 5)) for name in LEGS]


def test_agrees_on_every_robot(model):
    names = [f.name for f in model.frames if f.body >= 0] + [b.name for b in model.bodies]
    frames = [names[0], names[-1], (names[len(names) // 2], (1, 4))]
    q = state(model, 1)[0]
    expected = gb.inverse_osim(model, q, frames)
    for method in METHODS:
        assert relative(gb.inverse_osim(model, q, frames, method=method), expected) < 1e-11


@pytest.mark.parametrize("name", ["quadruped", "mini_cheetah"])
def test_fast_solve(name):
    model = load(name)
    for seed in range(5):
        q = state(model, seed)[0]
        b = np.random.default_rng(seed).uniform(-1, 1, 12)
        expected = np.linalg.solve(gb.inverse_osim(model, q, FEET), b)
        for method in ("pv_osim_fast", "pv_osim", "c_efpa"):
            assert relative(solve_osim(model, q, b, FEET, method=method), expected) < 1e-9


def test_fast_solve_on_a_fixed_base():
    model = load("arm7")
    q = state(model)[0]
    b = np.arange(6.0)
    expected = np.linalg.solve(gb.inverse_osim(model, q, "panda_hand_tcp"), b)
    assert relative(solve_osim(model, q, b, "panda_hand_tcp"), expected) < 1e-9


def test_compiled():
    model = load("mini_cheetah")
    q = state(model, 2)[0]
    b = np.arange(12.0)
    code = gb.compile(solve_osim, model, frames=FEET, shapes={"b": (12,)})
    assert relative(code(q, b), solve_osim(model, q, b, FEET)) < 1e-9
    for method in METHODS:
        code = gb.compile(gb.inverse_osim, model, frames=FEET, method=method)
        assert relative(code(q), gb.inverse_osim(model, q, FEET)) < 1e-11


def test_fast_solve_needs_fewer_operations():
    model = load("quadruped")
    counts = {
        method: gb.count_operations(
            solve_osim, model, frames=FEET, shapes={"b": (12,)}, method=method
        ).total
        for method in ("pv_osim_fast", "pv_osim", "ltl_osim", "kjr")
    }
    assert counts["pv_osim_fast"] < counts["pv_osim"] < counts["kjr"]
    assert counts["pv_osim_fast"] < counts["ltl_osim"]


def test_bad_calls():
    model = load("quadruped")
    q = state(model)[0]
    with pytest.raises(gb.InputError, match="b has shape"):
        solve_osim(model, q, np.zeros(3), FEET)
    with pytest.raises(gb.InputError, match="did you mean 'pv_osim'"):
        gb.inverse_osim(model, q, FEET, method="pv_osin")
    with pytest.raises(gb.InputError, match="frames is empty"):
        gb.inverse_osim(model, q, np.zeros((0, 6)))


def test_the_names_of_the_paper():
    model = load("quadruped")
    q = state(model, 3)[0]
    expected = gb.inverse_osim(model, q, FEET)
    for method in ("efpa", "projection", "pv_osim_fast"):
        assert relative(gb.inverse_osim(model, q, FEET, method=method), expected) < 1e-12


class TestSingular:
    def test_frames_that_need_the_base_are_served(self):
        """A foot held in six directions, the base itself: the branches alone cannot."""
        model = load("quadruped")
        q = state(model, 1)[0]
        for frames in ([LEGS[0]], ["torso-contact-1"]):
            expected = np.linalg.solve(gb.inverse_osim(model, q, frames), np.arange(6.0))
            assert relative(solve_osim(model, q, np.arange(6.0), frames), expected) < 1e-9

    def test_a_straight_leg_is_an_error_and_pv_osim_the_remedy(self):
        model = load("quadruped")
        q, b = model.neutral(), np.arange(1.0, 4.0)
        frames = FEET[:1]
        with pytest.raises(gb.InputError, match=r"HR_foot_contact.*method='pv_osim'"):
            solve_osim(model, q, b, frames)
        expected = np.linalg.solve(gb.inverse_osim(model, q, frames), b)
        assert relative(solve_osim(model, q, b, frames, method="pv_osim"), expected) < 1e-9

    @pytest.mark.parametrize("method", ["pv_osim_fast", "pv_osim", "kjr", "ltl_osim", "c_efpa"])
    def test_dependent_rows_are_an_error(self, method):
        model = load("quadruped")
        with pytest.raises(gb.InputError, match="cannot be moved independently"):
            solve_osim(model, state(model)[0], np.arange(24.0), LEGS, method=method)


def test_auto_chooses_among_exact_methods():
    model = load("quadruped")
    q = state(model)[0]
    code = gb.compile(gb.inverse_osim, model, frames=FEET, method="auto")
    assert relative(code(q), gb.inverse_osim(model, q, FEET)) < 1e-11
    with pytest.raises(gb.InputError, match="several exact methods"):
        gb.compile(gb.energy, model, method="auto")
