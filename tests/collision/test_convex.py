"""Distances through coal against closed forms, and of hulls in full."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from test_closed_forms import model_of
from test_contact_plan import FACES, TETRAHEDRON

import grubler as gb
from grubler.collision import ConvexPairs

SHAPES = [gb.Sphere(0.2), gb.Capsule(0.1, 0.4), gb.Box((0.3, 0.2, 0.4))]


@pytest.mark.parametrize("a", SHAPES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("b", SHAPES, ids=lambda s: type(s).__name__)
def test_against_closed_forms(a, b):
    pytest.importorskip("coal")
    model = model_of(a, b)
    pairs = ConvexPairs(model, [("a", "b")])
    plan = gb.Contacts(model, ground=False, pairs=[("a", "b")])
    assert pairs.names == (("a.0", "b.0"),)
    seen = 0
    for seed in range(30):
        q, _ = model.random_state(seed)
        found, expected = pairs.at(q), gb.contact_candidates(model, q, plan)
        k = int(np.argmin(expected.gap))
        if found.gap[0] < 0.02:  # of shapes deep in each other another normal may be as good
            continue
        seen += 1
        if len(plan) == 5:  # boxes: what is along the best separating axis
            assert 0 < expected.gap[k] < found.gap[0] + 1e-7
            continue
        assert abs(found.gap[0] - expected.gap[k]) < 1e-7
        assert np.allclose(found.normal[0], expected.normal[k], atol=1e-4)
        if type(a) is gb.Sphere or type(b) is gb.Sphere:
            assert np.allclose(found.point[0], expected.point[k], atol=1e-4)
    assert seen > 5


def test_hull_in_full():
    """A mesh of a box is the box: corners, faces and edges."""
    pytest.importorskip("coal")
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.creation.box((0.3, 0.2, 0.4))
    shape = gb.Mesh("box", vertices=np.asarray(mesh.vertices), faces=np.asarray(mesh.faces))
    other = gb.Cylinder(0.1, 0.5)
    hull, box = (ConvexPairs(model_of(s, other), [("a", "b")]) for s in (shape, SHAPES[2]))
    for seed in range(20):
        q, _ = box.model.random_state(seed)
        x, y = hull.at(q), box.at(q)
        if y.gap[0] > 0.01:
            assert abs(x.gap[0] - y.gap[0]) < 1e-6 and np.allclose(x.normal, y.normal, atol=1e-3)


def test_ground_and_errors(monkeypatch):
    pytest.importorskip("coal")
    b = gb.ModelBuilder("one")
    b.add_body("a", 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
    b.add_joint("free", "free", "world", "a")
    b.add_shape("a", gb.Hull(TETRAHEDRON), xyz=(0, 0, 1), name="hull")
    b.add_shape("a", gb.Mesh("half", vertices=TETRAHEDRON, faces=FACES[:3]), name="open")
    b.add_shape("world", gb.Plane(), name="floor")
    b.add_shape("world", gb.HeightField(function=lambda x, y: 0.0 * x), name="waves")
    model = b.build()
    found = ConvexPairs(model, [("floor", "hull")]).at(model.neutral())
    assert abs(found.gap[0] - 1.0) < 1e-9 and np.allclose(found.normal[0], [0, 0, 1])
    with pytest.raises(gb.InputError, match="'waves' is a HeightField, which is not convex"):
        ConvexPairs(model, [("hull", "waves")])
    with pytest.raises(gb.InputError, match="is open: 3 of its edges"):
        ConvexPairs(model, [("open", "floor")])
    assert len(ConvexPairs(model, [("open", "floor")], open_meshes=True).at(model.neutral()).gap)
    with pytest.raises(gb.InputError, match="are on one body"):
        ConvexPairs(model, [("open", "hull")])
    with pytest.raises(gb.InputError, match="pairs is 'all'"):
        ConvexPairs(model, "all")
    real = builtins.__import__

    def without_coal(name, *rest, **more):
        if name == "coal":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_coal)
    with pytest.raises(gb.InputError, match=r"need coal: pip install grubler\[collision\]"):
        ConvexPairs(model, [("floor", "hull")])
