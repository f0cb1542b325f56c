"""Impacts: energy never rises, momentum is kept, closed forms."""

from functools import lru_cache

import numpy as np
import pytest

import grubler as gb

from .scenes import Balls, PointsOnPlane, ball, balls, free_state, stacked_q, world_velocity

load = lru_cache(maxsize=None)(gb.robots.load)


def compiled(model, plan, **options):
    return gb.compile(gb.impulse_dynamics, model, contacts=plan, **options)


FEET = ("HR_foot_contact", "HL_foot_contact", "FR_foot_contact", "FL_foot_contact")
MECHANISMS = {  # robots with loops, and frames on them that meet a floor
    "tello": ("left-toe_contact", "right-toe_contact", "left-heel_contact"),
    "mini_cheetah": FEET,
    "four_bar": ("pin", "follower"),
}
CASES = [
    ("tello", 0.0), ("tello", "mixed"), ("mini_cheetah", 0.6), ("four_bar", 1.0),
    ("four_bar", "mixed"),
]  # fmt: skip


@pytest.mark.parametrize(("robot", "restitution"), CASES)
def test_energy_never_rises(robot, restitution, count=500):
    model = load(robot)
    names = MECHANISMS[robot]
    plan = PointsOnPlane.of(model, dict.fromkeys(names, 0.02), friction=0.8, height=1e3)
    shares = [restitution] * len(names)
    if restitution == "mixed":
        shares = np.linspace(1.0, 0.0, len(names))
    plan = with_restitution(plan, shares)
    impact = compiled(model, plan)
    states = [model.random_state(seed) for seed in range(count)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    after, impulse, residual, *_ = impact(q, v)
    energy = gb.compile(gb.energy, model)
    before, _ = energy(q, v)
    left, _ = energy(q, after)
    assert np.all(left <= before * (1 + 1e-9) + 1e-12)
    assert (impulse.reshape(count, -1, 3)[:, :, 2] > 0).any(axis=1).mean() > 0.5
    assert (residual < 1e-9).mean() > 0.995  # all points are made to touch at random postures


def with_restitution(plan, shares):
    from dataclasses import replace

    points = tuple(replace(p, restitution=float(e)) for p, e in zip(plan.points, shares))
    return replace(plan, points=points)


def test_balls_exchange_momentum_as_in_the_closed_form():
    model = balls([1.0, 3.0], gravity=(0, 0, 0))
    rng = np.random.default_rng(0)
    for e in (0.0, 0.4, 1.0):
        plan = Balls.of(model, {"b0": 0.1, "b1": 0.1}, [("b0", "b1")], friction=0.0, restitution=e)
        for _ in range(20):
            d = rng.normal(size=3)
            d /= np.linalg.norm(d)
            q = stacked_q(model, [0.0999999 * d, -0.0999999 * d])
            v = rng.normal(size=12)
            found = gb.impulse_dynamics(model, q, v, plan)
            (_, a), (_, b) = (world_velocity(model, q, v, f"b{i}") for i in (0, 1))
            (_, a2), (_, b2) = (world_velocity(model, q, found.v, f"b{i}") for i in (0, 1))
            approach = min((a - b) @ d, 0.0)
            P = -(1 + e) * approach / (1 / 1.0 + 1 / 3.0)
            np.testing.assert_allclose(a2, a + P * d, atol=1e-13)
            np.testing.assert_allclose(b2, b - P * d / 3.0, atol=1e-13)


def test_momentum_is_kept_in_collisions():
    model = balls([1.0, 2.0, 0.5], gravity=(0, 0, 0))
    pairs = [("b0", "b1"), ("b1", "b2"), ("b0", "b2")]
    plan = Balls.of(model, dict.fromkeys(("b0", "b1", "b2"), 0.1), pairs, 0.7, 0.5)
    rng = np.random.default_rng(1)
    side = 0.1999999
    places = [(0, 0, 0), (side, 0, 0), (side / 2, side * np.sqrt(0.75), 0)]
    q = stacked_q(model, places)
    hits = 0
    for _ in range(50):
        v = rng.normal(size=18)
        found = gb.impulse_dynamics(model, q, v, plan)
        h = [gb.centroidal(model, q, x).momentum for x in (v, found.v)]
        np.testing.assert_allclose(h[1], h[0], atol=1e-12)
        hits += np.abs(found.impulse).max() > 0.1
    assert hits > 25


def test_a_spinning_ball_bounces_as_moreau_says():
    """Averages of the contact's velocity over the impact obey Coulomb's law."""
    e, mu, r, m = 0.6, 0.3, 0.1, 1.0
    model = ball(r, m)
    plan = PointsOnPlane.of(model, {"ball": r}, friction=mu, restitution=e)
    q = free_state(model, (0, 0, r))
    for spin in (2.0, 200.0):  # sticks; slips
        v = np.array([0.0, spin, 0.0, 0.0, 0.0, -2.0])
        found = gb.impulse_dynamics(model, q, v, plan)
        slip, A_T = -spin * r, 3.5 / m
        P = (1 + e) * 2.0 * m
        T = -(1 + e) * slip / A_T
        T = np.sign(T) * min(abs(T), mu * P)
        np.testing.assert_allclose(found.impulse, [T, 0.0, P], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(found.v[3:], [T / m, 0, 2.0 * e], atol=1e-13)
        np.testing.assert_allclose(found.v[1], spin - r * T / (0.4 * m * r * r), rtol=1e-12)


def test_kanes_double_pendulum_does_not_gain_energy():
    """A double pendulum that hits a rough table: Newton's law would raise the energy."""
    b = gb.ModelBuilder("kane")
    for name, parent, z in (("upper", "world", 0.0), ("lower", "upper", -1.0)):
        b.add_body(name, 1.0, (0, 0, -0.5), (1 / 12, 0, 0, 1 / 12, 0, 1e-4))
        b.add_joint(name, "revolute", parent, name, xyz=(0, 0, z), axis=(0, 1, 0))
    b.add_frame("tip", "lower", (0, 0, -1.0))
    model = b.build()
    rng = np.random.default_rng(2)
    newton_gains = 0
    for e in (0.5, 0.9, 1.0):
        for _ in range(60):
            q, v = rng.uniform(-1.2, 1.2, 2), rng.normal(size=2)
            height = gb.frame_pose(model, q, "tip")[1][2]
            plan = PointsOnPlane.of(
                model, {"tip": 0.0}, friction=0.5, restitution=e, height=height + 1e-9
            )
            found = gb.impulse_dynamics(model, q, v, plan)
            before, after = (gb.energy(model, q, x).kinetic for x in (v, found.v))
            assert after <= before * (1 + 1e-12)
            newton_gains += newton_energy(model, q, v, e, 0.5) > before * (1 + 1e-9)
    assert newton_gains > 0  # the paradox is there


def newton_energy(model, q, v, e, mu):
    """The kinetic energy after Newton's impact u_n⁺ = -e u_n⁻ with Coulomb's law for u_T⁺, of a
    point in the x-z plane that slips through, in the direction that Coulomb's law allows."""
    R, _ = gb.frame_pose(model, q, "tip")
    J = (R @ gb.frame_jacobian(model, q, "tip")[3:])[[0, 2]]
    u, best = J @ v, 0.0
    if u[1] >= 0:
        return gb.energy(model, q, v).kinetic
    M = gb.mass_matrix(model, q)
    G = J @ np.linalg.solve(M, J.T)
    wanted = np.array([0.0, -e * u[1]])
    stick = np.linalg.solve(G, wanted - u)
    candidates = [stick] if abs(stick[0]) <= mu * stick[1] else []
    for s in (-1.0, 1.0):
        normal = -(1 + e) * u[1] / (G[1, 1] + s * mu * G[1, 0])
        if normal > 0 and s * (u[0] + G[0] @ [s * mu * normal, normal]) <= 0:
            candidates.append(np.array([s * mu * normal, normal]))
    for impulse in candidates:
        after = v + np.linalg.solve(M, J.T @ impulse)
        best = max(best, 0.5 * after @ M @ after)
    return best
