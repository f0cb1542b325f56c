"""Sliders: independent joints move, dependent ones follow by closure."""

from __future__ import annotations

import numpy as np
import pytest

import grubler as gb
from conftest import load
from formats.shared_models import shared
from grubler.viewer.playback import Playback
from grubler.viewer.posture import Posture, sliders

LOOPED = ("four_bar", "six_bar", "tello", "tello_explicit", "loop_sampler", "planar_leg_linkage")


def test_a_slider_for_each_independent_coordinate(model):
    assert [s.name for s in sliders(model)] == list(model.v_names)
    for slider in sliders(model):
        assert slider.lower < slider.upper
        assert slider.unit in ("rad", "m")
    posture = Posture(model)
    assert np.array_equal(posture.q, model.neutral())
    for name, value in posture.values().items():
        assert posture.sliders[name].lower <= value <= posture.sliders[name].upper


def test_ranges_are_limits_or_half_a_turn():
    arm = {s.name: s for s in sliders(load("arm7"))}
    for joint in load("arm7").joints:
        slider = arm[joint.name]  # zero lies beyond the limits of one joint: the reference does not
        assert (slider.lower, slider.upper) == (joint.lower, joint.upper)
    crank = sliders(load("four_bar"))[0]
    assert (crank.lower, crank.upper) == (-np.pi, np.pi)
    units = {s.name: (s.unit, s.upper) for s in sliders(load("joint_sampler"), length=0.7)}
    assert ("m", 0.7) in units.values() and ("rad", np.pi) in units.values()


@pytest.mark.parametrize("name", LOOPED)
def test_dependent_joints_follow(name):
    model = load(name)
    posture = Posture(model)
    for slider in list(posture.sliders.values()):
        before = posture.q
        target = posture.value(slider.name) + 0.05 * np.clip(slider.upper - slider.lower, 0.1, 4)
        target = min(target, slider.upper)
        reach = posture.move(slider.name, target)
        assert posture.gap < 1e-9
        if reach.reached:
            assert posture.value(slider.name) == pytest.approx(target, abs=1e-12)
        others = [n for n in posture.sliders if n != slider.name]
        start = Posture(model, before)
        for other in others:  # independent: the others stay
            if posture.sliders[other].absolute:
                assert posture.value(other) == pytest.approx(start.value(other), abs=1e-12)
        gb.kinematics(model, posture.q)  # closed enough for every algorithm


@pytest.mark.parametrize("name", ["four_bar", "planar_leg_linkage"])
def test_closure_agrees_with_assemble(name):
    model = load(name)
    posture = Posture(model)
    slider = next(s for s in posture.sliders.values() if model.clusters[s.cluster].loops)
    value = posture.value(slider.name) + 0.3
    guess = model.neutral()
    guess[model.q_names.index(slider.name)] = value
    independent = [n for n in posture.sliders if n in model.q_names]
    assert posture.move(slider.name, value).reached
    assert np.abs(posture.q - model.assemble(guess, fixed=independent)).max() < 1e-9


def test_a_crank_turns_all_the_way_round():
    posture = Posture(load("four_bar"))
    start = posture.q
    for angle in np.linspace(start[0], start[0] + 2 * np.pi, 9):
        assert posture.move("crank", angle).reached
        assert posture.gap < 1e-10
    assert np.abs(np.sin(posture.q - start)).max() < 1e-8
    assert np.cos(posture.q - start).min() > 0.999


def test_a_parallelogram_stays_one_through_its_dead_points():
    posture = Posture(load("parallel_four_bar"))
    for angle in (3.0, 3.3, 6.0, 6.5, -1.0):
        assert posture.move("joint1", angle).reached
        assert np.abs(posture.q - [angle, -angle, angle]).max() < 1e-7


def test_out_of_reach_keeps_what_closed():
    model = load("loop_sampler")
    posture = Posture(model)
    reach = posture.move("wiper_upper", 3.0)
    assert not reach.reached and 1.5 < reach.value < 2.0
    assert "wiper_upper stops at" in reach.message and "loop 'wiper'" in reach.message
    assert posture.gap < 1e-9
    stopped = posture.q
    assert posture.move("wiper_upper", 3.1) == reach  # asked again, nothing moves
    assert np.array_equal(posture.q, stopped)
    assert posture.move("wiper_upper", 0.2).reached
    assert posture.value("wiper_upper") == pytest.approx(0.2)


@pytest.mark.parametrize("name", ["cassie_mjcf/cassie.xml", "kangaroo_pal_mjcf/kangaroo.xml",
                                  "robotiq_2f85_mjcf/2f85.xml"])  # fmt: skip
def test_joints_that_follow_stop_at_their_limits(name):
    model = shared(name)
    stopped = 0
    for slider in Posture(model).sliders.values():
        if slider.free or not model.clusters[slider.cluster].loops:
            continue
        for end in (slider.lower, slider.upper):
            posture = Posture(model)
            reach = posture.move(slider.name, end)
            for i, x in posture.positions.items():
                low, high = model.bodies[i].joint.lower, model.bodies[i].joint.upper
                if model.bodies[i].joint.nv == 1 and None not in (low, high) and low < high:
                    assert low - 1e-8 <= x[0] <= high + 1e-8
            if "limit" in reach.message:
                stopped += 1
                joint = reach.message.partition("joint '")[2].partition("'")[0]
                at = posture.positions[model.body_of_joint(joint).index][0]
                ends = model.joint(joint).lower, model.joint(joint).upper
                assert min(abs(at - x) for x in ends) < 0.02  # it came as far as its limit
    assert stopped >= 2


def test_closed_forms_stop_at_limits_too():
    b = gb.ModelBuilder("gear")
    for joint, high in (("arm", 3.0), ("rotor", 5.0)):
        b.add_body(joint, 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        b.add_joint(joint, "revolute", "world", joint, lower=-3.0, upper=high)
    b.add_coupling("gear", "rotor", {"arm": 10.0})
    posture = Posture(b.build())
    reach = posture.move("arm", 2.0)
    assert not reach.reached and reach.value == pytest.approx(0.5, abs=1e-3)
    assert reach.message.endswith("joint 'rotor' is at its upper limit 5")
    assert posture.move("arm", -0.2).reached


def test_one_sided_ranges():
    b = gb.ModelBuilder("lift")
    b.add_body("lift", 1.0, inertia=(1, 0, 0, 1, 0, 1))
    b.add_joint("lift", "prismatic", "world", "lift", lower=0.2)
    (slider,) = sliders(b.build(), length=1.5)
    assert (slider.lower, slider.upper) == (0.2, 3.2)


def test_out_of_reach_of_a_closed_form():
    posture = Posture(load("tello_explicit"))
    reach = posture.move("left-shin-to-foot", 3.0)
    assert not reach.reached and np.isfinite(posture.q).all()
    assert "out of reach" in reach.message


def test_rotations_and_free_bodies_move_along_their_velocities():
    model = load("joint_sampler")
    posture = Posture(model)
    free = next(s.name for s in posture.sliders.values() if s.free)
    assert posture.move(free, 0.4).reached and posture.value(free) == pytest.approx(0.4)
    v = np.zeros(model.nv)
    v[model.v_names.index(free)] = 0.4
    assert np.abs(posture.q - model.integrate(model.neutral(), v)).max() < 1e-12
    posture.reset()
    assert posture.value(free) == 0.0


def test_dependent_joints_by_name():
    posture = Posture(load("four_bar"))
    assert list(posture.dependent()) == ["coupler", "follower"]
    sampler = Posture(load("loop_sampler"))
    assert "wiper_plate" in sampler.dependent()  # one of its three turns has a slider
    assert "cam_disc" not in sampler.dependent() and "cam_follower" in sampler.dependent()
    assert Posture(load("arm7")).dependent() == {}


def test_bad_input_of_sliders():
    posture = Posture(load("four_bar"))
    with pytest.raises(gb.InputError, match="did you mean 'crank'"):
        posture.move("crnk", 0.1)
    with pytest.raises(gb.InputError, match="not a finite number"):
        posture.move("crank", np.nan)
    with pytest.raises(gb.ClosureError, match="loop 'pin' is open"):
        posture.reset(np.zeros(3))
    with pytest.raises(gb.InputError, match="shape"):
        posture.reset(np.zeros(2))


def test_playback():
    clock = Playback(np.linspace(0.0, 2.0, 201))
    assert not clock.tick(1.0) and clock.index == 0
    clock.play()
    assert clock.tick(0.5) and clock.index == 50
    clock.speed = 0.5
    clock.tick(0.5)
    assert clock.now == pytest.approx(0.75)
    clock.pause()
    assert not clock.tick(0.5)
    clock.seek(9.0)
    assert clock.now == 2.0 and clock.index == 200
    clock.play()  # at the end: from the start
    assert clock.now == 0.0
    clock.speed = 1.0
    clock.tick(2.25)
    assert clock.now == pytest.approx(0.25)
    with pytest.raises(gb.InputError, match="speed is 0"):
        clock.speed = 0
    with pytest.raises(gb.InputError, match="no state"):
        Playback(np.zeros(0))
    single = Playback(np.zeros(1))
    single.play()
    assert not single.tick(1.0) and single.index == 0
