"""Height fields against slopes, brute force and interpolation."""

from __future__ import annotations

import numpy as np
import pytest

import grubler as gb
from grubler.algebra.spatial import axis_rotation
from grubler.collision.placed import Placed
from grubler.collision.surfaces import distance, height, touch
from grubler.mechanism.geometry import HeightField, Plane

AT_ORIGIN = (np.eye(3), np.zeros(3))


def waves(x, y):
    return 0.1 * np.sin(2 * x) * np.cos(3 * y)


def test_slope_is_a_plane():
    """A field of constant slope, given both ways, is exactly that plane, in every pose."""
    rng = np.random.default_rng(0)
    n = np.array([-0.3, 0.2, 1.0])
    n /= np.linalg.norm(n)
    tilted = np.stack([np.cross([0, 1.0, 0], n), np.cross(n, np.cross([0, 1.0, 0], n)), n]).T
    tilted /= np.linalg.norm(tilted, axis=0)
    x = np.linspace(-5, 5, 5)
    fields = [
        HeightField(function=lambda x, y: 0.3 * x - 0.2 * y),
        HeightField(heights=0.3 * x[:, None] - 0.2 * x[None, :], size=np.array([10.0, 10.0])),
    ]
    R = axis_rotation(n, 0.6, 0.8)
    p = np.array([0.1, -0.3, 0.7])
    plane = Placed(Plane(), R @ tilted, p)
    for field in fields:
        for point in rng.uniform(-1, 1, (20, 3)):
            for radius in (0.0, 0.1):
                a, b = touch(Placed(field, R, p), point, radius), touch(plane, point, radius)
                assert abs(a.gap - b.gap) < 1e-14 and np.allclose(a.normal, b.normal, atol=1e-14)
                assert np.allclose(a.point, b.point, atol=1e-14)


def test_heights_are_bilinear():
    rng = np.random.default_rng(1)
    heights = rng.uniform(size=(6, 4))
    field = HeightField(heights=heights, size=np.array([5.0, 6.0]))
    nodes = np.linspace(-2.5, 2.5, 6), np.linspace(-3, 3, 4)
    for i, x in enumerate(nodes[0]):
        for j, y in enumerate(nodes[1]):
            assert abs(height(field, x, y)[0] - heights[i, j]) < 1e-15
    for x, y in rng.uniform(-3.5, 3.5, (200, 2)):
        u, v = np.clip(x, -2.5, 2.5), np.clip(y, -3, 3)
        across = [np.interp(v, nodes[1], row) for row in heights]
        h, g = height(field, x, y)
        assert abs(h - np.interp(u, nodes[0], across)) < 1e-14
        e = 1e-6
        numeric = [
            (height(field, x + e, y)[0] - height(field, x - e, y)[0]) / (2 * e),
            (height(field, x, y + e)[0] - height(field, x, y - e)[0]) / (2 * e),
        ]
        assert np.allclose(g, numeric, atol=1e-8)


@pytest.mark.parametrize(("radius", "gap", "turn"), [(0.02, 2e-8, 2e-4), (0.1, 5e-5, 5e-3)])
def test_ball_on_waves(radius, gap, turn):
    """Against the nearest point of the surface, found by Newton's method from a fine grid."""
    ground = Placed(HeightField(function=waves), *AT_ORIGIN)
    rng = np.random.default_rng(2)
    for x, y in rng.uniform(-2, 2, (40, 2)):
        _, n = distance(ground, np.array([x, y, waves(x, y)]))
        centre = np.array([x, y, waves(x, y)]) + radius * n
        found = touch(ground, centre, radius)
        s = np.linspace(-2.5, 2.5, 201) * radius
        X, Y = np.meshgrid(x + s, y + s)
        d = np.sqrt((X - centre[0]) ** 2 + (Y - centre[1]) ** 2 + (waves(X, Y) - centre[2]) ** 2)
        assert abs(d.min() - radius) < 1e-12  # the foot is (x, y): the grid has no nearer point
        assert abs(found.gap) < gap
        assert np.linalg.norm(found.normal - n) < turn


def test_gap_vanishes_on_the_surface():
    ground = Placed(HeightField(function=waves), *AT_ORIGIN)
    for x, y in np.random.default_rng(3).uniform(-2, 2, (20, 2)):
        d, n = distance(ground, np.array([x, y, waves(x, y)]))
        gradient = np.array(
            [0.2 * np.cos(2 * x) * np.cos(3 * y), -0.3 * np.sin(2 * x) * np.sin(3 * y)]
        )
        assert abs(d) < 1e-16 and np.allclose(n[:2] / n[2], -gradient, atol=1e-15)


def test_model_on_waves():
    """As `ground=`, compiled and batched; each evaluation is the NumPy call's."""
    b = gb.ModelBuilder("box")
    b.add_body("a", 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
    b.add_joint("j", "free", "world", "a")
    b.add_shape("a", gb.Capsule(0.05, 0.2))
    model = b.build()
    plan = gb.Contacts(model, ground=waves)
    assert len(plan) == 3
    q = np.stack([model.random_state(seed)[0] for seed in range(10)])
    out = gb.compile(gb.contact_candidates, model, contacts=plan)(q)
    for k, x in enumerate(q):
        for y, e in zip(out, gb.contact_candidates(model, x, plan)):
            assert np.abs(y[k] - e).max() < 1e-14


def test_field_of_mujoco():
    """An <hfield> of a file: heights at the nodes are MuJoCo's."""
    mujoco = pytest.importorskip("mujoco")
    values = " ".join(str(v) for v in [0, 0.5, 1, 0.2, 0.3, 0.4, 0.9, 0.1, 0, 0.7, 0.6, 0.8])
    text = f"""<mujoco><asset><hfield name="h" nrow="3" ncol="4" size="1.5 1 0.4 0.1"
    elevation="{values}"/></asset><worldbody><geom name="terrain" type="hfield" hfield="h"
    pos="0.1 0.2 0.3"/><body name="a" pos="0 0 2"><freejoint/><geom name="ball" type="sphere"
    size="0.01"/></body></worldbody></mujoco>"""
    model = gb.load(text)
    plan = gb.Contacts(model)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    q = model.neutral()
    for i, x in enumerate(np.linspace(-1.5, 1.5, 4)):
        for j, y in enumerate(np.linspace(-1, 1, 3)):
            q[:3] = 0.1 + x, 0.2 + y, 2
            d.qpos[:] = q
            mujoco.mj_forward(m, d)
            hit, body = np.zeros(1, dtype=np.int32), m.geom("ball").bodyid[0]
            inside = np.array([q[0] - np.sign(x) * 1e-9, q[1] - np.sign(y) * 1e-9, 5.0])
            down = mujoco.mj_ray(m, d, inside, np.array([0, 0, -1.0]), None, 1, body, hit)
            h = height(plan.pairs[0].shapes[1], x, y)[0] + 0.3
            assert abs((5.0 - down) - h) < 1e-6, (i, j)
