"""Plans in simulations: ground of varying height, a moving platform, bodies against each other."""

from __future__ import annotations

import numpy as np

import grubler as gb


def floating(parts: dict, gravity=(0.0, 0.0, -9.81)) -> gb.Model:
    """Free bodies by name: (mass, moment of inertia, shape, options of the shape)."""
    b = gb.ModelBuilder("scene", gravity)
    for name, (mass, moment, shape, options) in parts.items():
        b.add_body(name, mass, inertia=(moment, 0, 0, moment, 0, moment))
        b.add_joint(f"free_{name}", "free", "world", name)
        b.add_shape(name, shape, **options)
    return b.build()


def test_ball_rolls_in_a_bowl():
    """It stays on the ground, and its energy is what it had: rolling does no work."""
    model = floating({"a": (1.0, 0.004, gb.Sphere(0.1), {"friction": 0.9})})
    plan = gb.Contacts(model, ground=lambda x, y: 0.05 * (x * x + y * y))
    q = model.neutral()
    slope = np.array([-0.05, 0.0, 1.0])
    q[:3] = np.array([0.5, 0.0, 0.0125]) + 0.1 * slope / np.linalg.norm(slope)
    run = gb.Simulator(model, 2e-3, contacts=plan).run(q, np.zeros(6), steps=2000)
    gaps = [gb.contact_candidates(model, x, plan).gap[0] for x in run.q[::20]]
    assert min(gaps) > -1e-5 and max(gaps) < 1e-5
    energies = [sum(gb.energy(model, x, v)) for x, v in zip(run.q[::50], run.v[::50])]
    assert np.ptp(energies) < 2e-3 * 9.81 * 0.0125 + 1e-4
    assert np.abs(run.q[:, 0]).max() < 0.51 and run.q[:, 0].min() < -0.45


def test_box_on_a_sliding_platform():
    """Friction brings both to the speed that momentum asks for."""
    b = gb.ModelBuilder("deck")
    b.add_body("plate", 5.0, inertia=(1, 0, 0, 1, 0, 1))
    b.add_joint("slide", "prismatic", "world", "plate", axis=(1, 0, 0))
    b.add_shape("plate", gb.Plane(), name="deck")
    b.add_body("cube", 1.0, inertia=(0.0067, 0, 0, 0.0067, 0, 0.0067))
    b.add_joint("free", "free", "world", "cube")
    b.add_shape("cube", gb.Box((0.2, 0.2, 0.2)), friction=0.5)
    model = b.build()
    plan = gb.Contacts(model, ground="deck", touching=["cube"], corners=4)
    q, v = model.assemble({"free": [0, 0, 0.1, 1, 0, 0, 0]}), np.zeros(model.nv)
    k = model.v_names.index("slide")
    v[k] = 1.0
    run = gb.Simulator(model, 2e-3, contacts=plan).run(q, v, steps=300)
    along = run.v[:, model.v_names.index("free:vx")]
    assert np.abs(5.0 * run.v[:, k] + along - 5.0).max() < 1e-9
    assert abs(along[-1] - 5 / 6) < 1e-9 and abs(run.v[-1, k] - 5 / 6) < 1e-9
    sliding = 2e-3 * np.flatnonzero(along > 5 / 6 - 1e-6)[0]
    assert abs(sliding - (5 / 6) / (0.5 * 9.81)) < 5e-3  # t = Δv / (μ g)


def test_balls_collide_in_a_scene():
    """Equal elastic balls exchange their velocities."""
    ball = floating({"a": (1.0, 0.004, gb.Sphere(0.1), {"friction": 0.0, "restitution": 1.0})},
                    gravity=(0, 0, 0))  # fmt: skip
    scene = gb.scene({"left": ball, "right": ball}, places={"right": (0.5, 0, 0)})
    plan = gb.Contacts(scene, ground=False, pairs=[("left/a", "right/a")])
    v = np.zeros(12)
    v[scene.v_names.index("left/free_a:vx")] = 1.0
    run = gb.Simulator(scene, 1e-3, contacts=plan).run(scene.neutral(), v, steps=600)
    expected = np.zeros(12)
    expected[scene.v_names.index("right/free_a:vx")] = 1.0
    assert np.abs(run.v[-1] - expected).max() < 1e-9
