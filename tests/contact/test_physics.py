"""Steps with contacts against closed forms: sticking, slipping, rolling, spinning, stacking."""

import numpy as np
import pytest

import grubler as gb

from .scenes import (
    Balls,
    G,
    PointsOnPlane,
    Together,
    ball,
    balls,
    box,
    free_state,
    on_incline,
    stacked_q,
    turned_about_y,
    world_velocity,
)


def incline(angle, friction, steps, dt=2e-3):
    model, corners = box()
    plan = on_incline(model, dict.fromkeys(corners, 0.0), angle, friction)
    q = free_state(model, (0.1 * np.sin(angle), 0, 0.1 * np.cos(angle)), turned_about_y(angle))
    run = gb.Simulator(model, dt, contacts=plan).run(q, np.zeros(6), steps=steps)
    return model, q, run


def test_a_block_sticks_on_an_incline_below_the_cone():
    _, q, run = incline(0.5, 0.6, 50_000)  # tan 0.5 = 0.546; 100 s
    assert np.abs(run.v).max() < 1e-9
    assert np.abs(run.q[-1] - q)[:3].max() < 100 * 1e-9
    assert run.unconverged == 0
    assert (run.contact.modes[1:] > 0).all()


def test_a_block_slides_down_an_incline_above_the_cone():
    angle, mu = 0.7, 0.6
    model, _, run = incline(angle, mu, 500)
    down = np.array([np.cos(angle), 0, -np.sin(angle)])
    speed = world_velocity(model, run.q[-1], run.v[-1], "box")[1] @ down
    assert abs(speed / run.time[-1] - G * (np.sin(angle) - mu * np.cos(angle))) < 1e-6
    assert run.unconverged == 0
    assert np.abs(run.contact.geometry(run.q)[0]).max() < 1e-9


def test_a_sliding_ball_ends_up_rolling():
    mu, r = 0.3, 0.1
    model = ball(r)
    plan = PointsOnPlane.of(model, {"ball": r}, friction=mu)
    q = free_state(model, (0, 0, r))
    found = []
    for dt in (4e-3, 2e-3):
        sim = gb.Simulator(model, dt, contacts=plan)
        run = sim.run(q, np.array([0, 0, 0, 1.0, 0.5, 0]), steps=round(2 / dt))
        w, v = world_velocity(model, run.q[-1], run.v[-1], "ball")
        np.testing.assert_allclose(v, np.array([1.0, 0.5, 0]) * 5 / 7, atol=1e-12)
        np.testing.assert_allclose(w, np.array([-v[1], v[0], 0]) / r, atol=1e-10)
        start = np.hypot(1, 0.5)
        until = 2 * start / (7 * mu * G)
        way = start * until - 0.5 * mu * G * until**2 + 5 / 7 * start * (run.time[-1] - until)
        found.append(abs(np.hypot(*run.q[-1, :2]) - way))
        assert np.abs(run.q[:, 2] - r).max() < 1e-12
    assert found[1] < 0.6 * found[0] < 1e-3  # first order


def test_a_rolling_ball_rolls_on_and_weighs_what_it_weighs():
    r = 0.1
    model = ball(r)
    sim = gb.Simulator(model, 2e-3, contacts=PointsOnPlane.of(model, {"ball": r}, friction=0.2))
    run = sim.run(free_state(model, (0, 0, r)), np.array([0, 10.0, 3.0, 1, 0, 0]), steps=5000)
    w, v = world_velocity(model, run.q[-1], run.v[-1], "ball")
    np.testing.assert_allclose(v, [1, 0, 0], atol=1e-9)
    np.testing.assert_allclose(w, [0, 10, 3], atol=1e-9)  # a point has no friction of spin
    np.testing.assert_allclose(run.q[-1, :3], [10, 0, r], atol=1e-8)
    np.testing.assert_allclose(run.contact.force[1:, 0, 2], G, rtol=1e-7)  # tolerance / dt


def test_a_spinning_disc_comes_to_rest_as_in_the_closed_form():
    """Three points at the radius r carry the weight: dω/dt = -μ m g r / I, exactly in each step."""
    m, r, I, mu, spin = 2.0, 0.2, 0.04, 0.4, 12.0
    b = gb.ModelBuilder("disc")
    b.add_body("disc", m, (0, 0, 0), (I / 2, 0, 0, I / 2, 0, I))
    b.add_joint("free", "free", "world", "disc")
    for k in range(3):
        angle = 2 * np.pi * k / 3
        b.add_frame(f"c{k}", "disc", (r * np.cos(angle), r * np.sin(angle), 0.0))
    model = b.build()
    plan = PointsOnPlane.of(model, {f"c{k}": 0.0 for k in range(3)}, friction=mu)
    dt, rate = 1e-3, mu * m * G * r / I
    run = gb.Simulator(model, dt, contacts=plan).run(
        free_state(model, (0, 0, 0)), np.array([0, 0, spin, 0, 0, 0]), steps=1000
    )
    expected = np.maximum(spin - rate * run.time, 0.0)
    np.testing.assert_allclose(run.v[:, 2], expected, atol=rate * dt * 1e-6 + 1e-9)
    assert np.abs(run.v[-1]).max() < 1e-9


def test_painleves_rod_does_not_blow_up():
    """A rod that slides on its tip with a large friction: at the level of accelerations there is
    no solution, at that of velocities there is, and energy falls."""
    b = gb.ModelBuilder("rod")
    m, l = 1.0, 1.0
    I = m * l * l / 12
    b.add_body("rod", m, (0, 0, 0), (I, 0, 0, I, 0, 1e-3), physical=False)
    b.add_joint("free", "free", "world", "rod")
    b.add_frame("tip", "rod", (0, 0, -l / 2))
    model = b.build()
    angle, mu = 0.35, 2.0  # A_nn - mu A_nT = 1/m - 3 (sin cos mu - sin²)... < 0
    s, c = np.sin(angle), np.cos(angle)
    assert 1 / m + (l / 2) ** 2 / I * s * (s - mu * c) < 0
    plan = PointsOnPlane.of(model, {"tip": 0.0}, friction=mu)
    q = free_state(model, (s * l / 2, 0, c * l / 2), turned_about_y(angle))
    for direction in (1.0, -1.0):
        R, _ = gb.frame_pose(model, q, "rod")
        v = np.concatenate([np.zeros(3), R.T @ np.array([direction * 2.0, 0, 0])])
        run = gb.Simulator(model, 1e-3, contacts=plan).run(q, v, steps=600)
        assert np.abs(run.v).max() < 30.0
        assert run.unconverged == 0
        kinetic = run.kinetic + run.potential
        assert kinetic.max() < kinetic[0] + 1e-2
        assert run.contact.geometry(run.q)[0].min() > -1e-3


@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e3])
def test_stacked_balls_of_any_mass_rest(ratio):
    """A ball on a ball on the ground, upright: an equilibrium, kept by sticking."""
    model = balls([1.0, ratio])
    plan = Balls.of(model, {"b0": 0.1, "b1": 0.1}, [("b0", None), ("b1", "b0")])
    q = stacked_q(model, [(0, 0, 0.1), (0, 0, 0.3)])
    run = gb.Simulator(model, 2e-3, contacts=plan).run(q, np.zeros(12), steps=500)
    assert np.abs(run.v).max() < 1e-9
    force = run.contact.force[-1, :, 2]
    np.testing.assert_allclose(force, [(1 + ratio) * G, ratio * G], rtol=1e-6)


def test_a_pinched_ball_does_not_slip():
    """Two plates press a ball from the sides with less than its weight / (2 μ) to spare."""
    b = gb.ModelBuilder("gripper")
    for name, sign in (("left", -1.0), ("right", 1.0)):
        b.add_body(name, 0.2, (0, 0, 0), (1e-3, 0, 0, 1e-3, 0, 1e-3))
        b.add_joint(name, "prismatic", "world", name, axis=(1, 0, 0), xyz=(sign * 0.15, 0, 1.0))
    b.add_body("ball", 0.5, (0, 0, 0), (8e-4, 0, 0, 8e-4, 0, 8e-4))
    b.add_joint("free", "free", "world", "ball", xyz=(0, 0, 1.0))
    model = b.build()
    pairs = [("ball", "left"), ("ball", "right")]
    plan = Balls.of(model, {"left": 0.1, "right": 0.1, "ball": 0.05}, pairs, friction=0.6)
    force = 0.5 * G / (2 * 0.6) * 1.05
    tau = np.zeros(model.nv)
    for name, sign in (("left", 1.0), ("right", -1.0)):
        tau[model.v_names.index(name)] = sign * force
    run = gb.Simulator(model, 2e-3, contacts=plan).run(
        model.neutral(), np.zeros(model.nv), tau, steps=50_000
    )
    assert np.abs(run.v[100:]).max() < 1e-9
    assert np.abs(run.q[-1] - run.q[100]).max() < 1e-9
    assert run.unconverged == 0


def test_a_point_given_twice_changes_nothing():
    """Of three corners, whose impulses are unique; the second copy shares them with the first."""
    model, corners = box()
    once = PointsOnPlane.of(model, dict.fromkeys(corners[:3], 0.0), friction=0.5)
    twice = Together((PointsOnPlane.of(model, {corners[0]: 0.0}, friction=0.5), once))
    q = free_state(model, (0, 0, 0.1))
    rng = np.random.default_rng(0)
    for _ in range(20):
        v = rng.normal(size=6) * [0.3, 0.3, 1, 1, 1, 0] - [0, 0, 0, 0, 0, 1]
        a, b = (
            gb.contact_dynamics(model, q, v, np.zeros(6), 2e-3, plan, tolerance=1e-13)
            for plan in (once, twice)
        )
        assert max(a.residual, b.residual) < 1e-12
        assert np.abs(a.v - b.v).max() < 1e-8
        impulse = b.impulse.reshape(4, 3)
        together = np.concatenate([impulse[:1] + impulse[1:2], impulse[2:]])
        np.testing.assert_allclose(together.ravel(), a.impulse, atol=1e-7)


def test_halving_the_step_converges():
    """A box thrown onto the ground that slides, tips and comes to rest."""
    model, corners = box()
    plan = PointsOnPlane.of(model, dict.fromkeys(corners, 0.0), friction=0.4)
    q, v = free_state(model, (0, 0, 0.1)), np.array([0, 0, 1.0, 1.5, 0.3, 0])
    ends = []
    for dt in (4e-3, 2e-3, 1e-3, 5e-4):
        run = gb.Simulator(model, dt, contacts=plan).run(q, v, steps=round(0.6 / dt))
        ends.append(run.q[-1])
    off = [np.abs(x - ends[-1]).max() for x in ends[:-1]]
    assert off[2] < 0.6 * off[1] < 0.4 * off[0]
    assert off[0] < 5e-3
