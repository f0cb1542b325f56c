"""Gaps, points and normals of pairs of shapes against coal, brute force and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from against import distance, drawn, off_surface, placed

import grubler as gb
from grubler.algebra.spatial import axis_rotation
from grubler.collision import closed_forms
from grubler.collision.boxes import FAR, SLACK
from grubler.collision.closed_forms import touches
from grubler.collision.placed import Placed
from grubler.mechanism.geometry import Ball, Box, Capsule, Cylinder, Ellipsoid, Hull, Plane

PAIRS = [
    (Ball, Ball), (Ball, Capsule), (Ball, Box), (Ball, Cylinder), (Capsule, Capsule),
    (Capsule, Box), (Ball, Plane), (Capsule, Plane), (Box, Plane), (Cylinder, Plane),
    (Ellipsoid, Plane),
]  # fmt: skip
X, Y = np.eye(3)[:2]
ACROSS = np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])  # the third axis along x


def inside(a: Placed, b: Placed) -> bool:
    """Whether the centre or axis of A is in the box or cylinder B, where depths differ."""
    core = {Ball: lambda s: Ball(1e-9), Capsule: lambda s: Capsule(1e-9, s.length)}
    if type(b.shape) not in (Box, Cylinder) or type(a.shape) not in core:
        return False
    return distance(a._replace(shape=core[type(a.shape)](a.shape)), b)[0] <= 0


@pytest.mark.parametrize("kinds", PAIRS, ids=lambda k: f"{k[0].__name__}-{k[1].__name__}")
@pytest.mark.parametrize("turned", [False, True])
def test_against_coal(kinds, turned):
    """The least gap is the signed distance, along the normal, between points of both surfaces."""
    pytest.importorskip("coal")
    rng, seen = np.random.default_rng(1), 0
    for _ in range(150):
        a, b = placed(kinds[0], rng), placed(kinds[1], rng)
        if inside(a, b):
            continue
        a, b = (b, a) if turned else (a, b)
        expected, to_b = distance(a, b)
        t = min(touches(a, b), key=lambda t: t.gap)
        assert abs(t.gap - expected) < (1e-7 if Cylinder in kinds else 1e-12)
        assert np.allclose(t.normal, -to_b, atol=1e-5)
        assert abs(np.linalg.norm(t.normal) - 1) < 1e-14
        if Plane not in kinds:
            assert off_surface(t.point + t.gap / 2 * t.normal, -t.normal, a) < 1e-7
            assert off_surface(t.point - t.gap / 2 * t.normal, t.normal, b) < 1e-7
        seen += 1
    assert seen > 30


def test_boxes_against_coal():
    """Overlapping boxes have the depth for least gap, and boxes apart no more than the distance."""
    pytest.importorskip("coal")
    rng = np.random.default_rng(2)
    apart = edges = 0
    for _ in range(600):
        a, b = placed(Box, rng), placed(Box, rng)
        expected = distance(a, b)[0]
        found = touches(a, b)
        t = min(found, key=lambda t: t.gap)
        assert t.gap < FAR
        if expected < 0:
            slack = SLACK * min(a.shape.size.min(), b.shape.size.min()) / 2
            assert expected - slack - 1e-9 < t.gap < expected + 1e-9
        else:
            assert 0 < t.gap < expected + 1e-9
            # what is apart along the normal by the gap is apart
            assert separation(a, b, t.normal) >= t.gap - 1e-12
        apart += expected > 0
        edges += not any(np.abs(t.normal @ x.R).max() > 1 - 1e-9 for x in (a, b))
    assert 100 < apart < 500 and 100 < edges < 500


def separation(a: Placed, b: Placed, n: np.ndarray) -> float:
    """How far two boxes are apart along a direction from B to A."""
    reach = sum(np.abs(n @ x.R) @ x.shape.size / 2 for x in (a, b))
    return float(n @ (a.p - b.p) - reach)


def box(size, p=(0.0, 0.0, 0.0), R=None) -> Placed:
    return Placed(Box(np.array(size)), np.eye(3) if R is None else R, np.array(p))


def valid(found) -> list:
    return [t for t in found if t.gap < FAR]


@pytest.mark.parametrize("turn", [0.0, 1e-13, 1e-9, np.pi / 2])
def test_equal_boxes_on_each_other(turn):
    """Four points at the corners, whatever rounding does to them."""
    c, s = np.cos(turn), np.sin(turn)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
    found = valid(touches(box((0.2, 0.2, 0.1), (0, 0, 0.0999), R), box((0.2, 0.2, 0.1))))
    corners = {tuple(np.round(t.point[:2], 6)) for t in found if t.gap < 0}
    assert corners == {(x, y) for x in (-0.1, 0.1) for y in (-0.1, 0.1)}
    for t in found:
        assert np.allclose(t.normal, [0, 0, 1]) and abs(t.gap + 1e-4) < 1e-12
        assert abs(t.point[2] - 0.04995) < 1e-12


def test_crossed_planks():
    """No corner of either is on the other: the four points are where the edges cross."""
    found = valid(touches(box((1.0, 0.2, 0.1), (0, 0, 0.1)), box((0.2, 1.0, 0.1))))
    assert len(found) == 4
    assert {tuple(np.round(t.point, 9)) for t in found} == {
        (x, y, 0.05) for x in (-0.1, 0.1) for y in (-0.1, 0.1)
    }


@pytest.mark.parametrize("upper", [0.1, 0.5])
def test_small_and_large_box(upper):
    """The corners of the smaller face, whichever box has it."""
    lower = round(0.6 - upper, 1)
    a, b = box((upper, upper, 0.1), (0.02, 0, 0.1)), box((lower, lower, 0.1))
    points = {tuple(np.round(t.point, 9)) for t in valid(touches(a, b))}
    small, x = min(upper, lower) / 2, 0.02 if upper < lower else 0.0
    expected = {(round(x + s * small, 9), r * small, 0.05) for s in (-1, 1) for r in (-1, 1)}
    assert points == expected


def test_edge_on_edge():
    h = np.sqrt(0.5)
    about_x, about_y = axis_rotation(X, h, h), axis_rotation(Y, h, h)
    upper = box((1, 0.2, 0.2), (0.03, 0, 0.4 * h - 1e-3), about_x)
    (t,) = valid(touches(upper, box((0.2, 1, 0.2), (0, -0.04, 0), about_y)))
    assert abs(t.gap + 1e-3) < 1e-12 and np.allclose(t.normal, [0, 0, 1])
    assert np.allclose(t.point, [0, 0, 0.2 * h - 5e-4])


def test_capsule_flat_on_a_box():
    """Two ends carry it: each has the gap of the axis."""
    a = Placed(
        Capsule(0.05, 0.2), np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]]), np.array([0, 0, 0.2])
    )
    found = touches(a, box((1.0, 1.0, 0.2)))
    assert np.allclose([t.gap for t in found], 0.05)
    assert np.allclose([t.point[0] for t in found[1:]], [-0.1, 0.1])


DEGENERATE = {
    "coincident balls": (Ball(0.1), Ball(0.2), (0, 0, 0), -0.3),
    "ball on an axis": (Ball(0.1), Capsule(0.2, 0.5), (0, 0, 0.1), -0.3),
    "crossing axes": (Capsule(0.1, 0.5), Capsule(0.1, 0.5), (0, 0, 0), -0.2),
    "ball in a box's centre": (Ball(0.1), Box(np.array([1.0, 2, 3])), (0, 0, 0), -0.6),
    "ball in a cylinder's axis": (Ball(0.1), Cylinder(0.2, 2.0), (0, 0, 0), -0.3),
    "ball on a face": (Ball(0.1), Box(np.array([1.0, 2, 3])), (0.5, 0, 0), -0.1),
    "coincident boxes": (Box(np.ones(3)), Box(np.ones(3)), (0, 0, 0), -1.0),
    "flat ball": (Ball(0.1), Plane(), (0, 0, 0), -0.1),
    "standing cylinder": (Cylinder(0.1, 0.4), Plane(), (0, 0, 0.2), 0.0),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_cases_are_finite(case, turned):
    a, b, p, gap = DEGENERATE[case]
    A, B = Placed(a, np.eye(3), np.array(p, float)), Placed(b, np.eye(3), np.zeros(3))
    if turned:
        A, B = B, A
    found = touches(A, B)
    for t in found:
        assert np.isfinite(t.gap) and np.all(np.isfinite(t.point))
        if t.gap < FAR:
            assert abs(np.linalg.norm(t.normal) - 1) < 1e-12
    assert abs(min(t.gap for t in found) - gap) < 1e-12


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-8, 3e-8, 1e-6, 1e-3])
@pytest.mark.parametrize("shift", [0.0, 0.3, -0.45, 2.0])
def test_nearly_parallel_capsules(angle, shift):
    """The gap is exact at every angle; the point of parallel ones is amid what they share."""
    z, reach = np.array([0, 0, 1.0]), np.linspace(-0.25, 0.25, 2001)[:, None]
    for axis in (X, Y):
        R = axis_rotation(axis, np.cos(angle), np.sin(angle))
        a = Placed(Capsule(0.05, 0.5), R, np.array([0.2, 0.0, shift]))
        (t,) = touches(a, Placed(Capsule(0.05, 0.5), np.eye(3), np.zeros(3)))
        on_a = a.p + reach * a.axis
        between = on_a - np.clip(on_a[:, 2:], -0.25, 0.25) * z
        shortest = np.linalg.norm(between, axis=1).min() - 0.1
        assert shortest - 1e-7 < t.gap <= shortest + 1e-13
        if angle == 0.0 and abs(shift) < 0.5:
            assert abs(t.point[2] - shift / 2) < 1e-12


def test_segment_and_box_by_brute_force():
    """The nearest point of a segment, also where it runs through the box."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        a, b = placed(Capsule, rng), placed(Box, rng)
        t = touches(a, b)[0]
        s = np.linspace(-0.5, 0.5, 4001)[:, None] * a.shape.length * a.axis + a.p
        local = (s - b.p) @ b.R
        beyond = np.linalg.norm(local - np.clip(local, -b.shape.size / 2, b.shape.size / 2), axis=1)
        if beyond.min() > 0:
            assert (
                beyond.min() - a.shape.radius - 1e-6 < t.gap < beyond.min() - a.shape.radius + 1e-12
            )
        else:
            assert t.gap <= -a.shape.radius + 1e-9


def test_lowest_face_holds_the_lowest_corner():
    rng = np.random.default_rng(7)
    for _ in range(100):
        a, b = placed(Box, rng), placed(Plane, rng)
        every, four = (np.array([t.gap for t in touches(a, b, fewer)]) for fewer in (False, True))
        assert len(every) == 8 and len(four) == 4 and abs(every.min() - four.min()) < 1e-14
        assert all(np.abs(every - gap).min() < 1e-14 for gap in four)
    flat = touches(box((1, 2, 3), (0, 0, 1.5)), Placed(Plane(), np.eye(3), np.zeros(3)), True)
    assert {tuple(t.point) for t in flat} == {(x, y, 0.0) for x in (-0.5, 0.5) for y in (-1, 1)}


def test_ellipsoid_and_hull_by_brute_force():
    rng = np.random.default_rng(6)
    for _ in range(20):
        plane, e = placed(Plane, rng), placed(Ellipsoid, rng)
        d = rng.normal(size=(200000, 3))
        d /= np.linalg.norm(d, axis=1)[:, None]
        surface = e.p + (d * e.shape.radii) @ e.R.T
        heights = (surface - plane.p) @ plane.axis
        (t,) = touches(e, plane)
        assert 0 <= heights.min() - t.gap < 1e-3
        foot = e.R.T @ (t.point + t.gap / 2 * t.normal - e.p) / e.shape.radii
        assert abs(foot @ foot - 1) < 1e-12  # on the ellipsoid
        hull = e._replace(shape=Hull(d[:7]))
        found = touches(hull, plane)
        assert np.allclose([x.gap for x in found], (e.p + d[:7] @ e.R.T - plane.p) @ plane.axis)


def test_cylinder_points_carry_it():
    """Standing, three points of the lower rim around its centre; lying, one of each rim."""
    floor = Placed(Plane(), np.eye(3), np.zeros(3))
    for tilt in (0.0, 1e-15, 1e-9, -1e-4):
        c, s = np.cos(tilt), np.sin(tilt)
        R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
        found = touches(Placed(Cylinder(0.1, 0.4), R, np.array([0, 0, 0.2])), floor)
        low = [t.point[:2] for t in found if abs(t.gap) < 1e-3]
        assert len(low) == 3
        area = np.cross(*(np.append(p - low[0], 0.0) for p in low[1:]))[2] / 2
        assert abs(abs(area) - 0.01 * 3 * np.sqrt(3) / 4) < 1e-4
    lying = Placed(Cylinder(0.1, 0.4), ACROSS, np.array([0, 0, 0.1]))
    found = touches(lying, floor)
    assert np.allclose([t.gap for t in found[:2]], 0) and min(t.gap for t in found[2:]) > 0.1


def model_of(a, b, placements=((0, 0, 0), (0, 0, 0))) -> gb.Model:
    builder = gb.ModelBuilder("two")
    for name, shape, xyz in zip("ab", (a, b), placements):
        builder.add_body(name, 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        builder.add_joint(f"free_{name}", "free", "world", name)
        builder.add_shape(name, shape, xyz=xyz, rpy=(0.3, 0.2, -0.1))
    return builder.build()


@pytest.mark.parametrize("form", closed_forms.FORMS.values(), ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_and_batched(form, dtype):
    """Every closed form as machine code gives what NumPy gives, state by state."""
    kinds = next(k for k, f in closed_forms.FORMS.items() if f is form)
    rng = np.random.default_rng(8)
    shapes = [Hull(rng.normal(size=(5, 3))) if k is Hull else drawn(k, rng) for k in kinds]
    model = model_of(*shapes)
    plan = gb.Contacts(model, ground=False, pairs=[("a", "b")])
    fn = gb.compile(gb.contact_candidates, model, contacts=plan, dtype=dtype)
    q = np.stack([model.random_state(seed)[0] for seed in range(37)])
    out = fn(q)
    tolerance = 1e-13 if dtype == "float64" else 2e-5
    for k, x in enumerate(q):
        expected = gb.contact_candidates(model, x, plan)
        single = fn(x)
        near = np.asarray(expected.gap) < FAR
        for y, z, e in zip(out, single, expected):
            assert np.abs(y[k] - z)[near].max() <= (0 if dtype == "float64" else 2e-6)
            if (
                dtype == "float64" or len(plan) < 13
            ):  # which corner it is may be decided by rounding
                assert np.abs(y[k] - e)[near].max() < tolerance
