"""What is recognised, what is refused, and what is left to numeric closing."""

import numpy as np
import pytest

import grubler as gb
from grubler.mechanism.loops.modules import candidates
from grubler.model.exchange import analytic, numeric
from grubler.model.fingerprint import fingerprint
from linkages import ankle, lambda_elbow, link, stewart


def test_flags_are_honoured():
    assert analytic(lambda_elbow(independent=True)).v_names == ("elbow",)
    solved = analytic(lambda_elbow(independent=False))
    assert solved.nq == 1 and "elbow" not in solved.v_names


def test_a_chain_of_dyads():
    """Two four-bars in a row: the second takes its input from the first one's output."""
    b = gb.ModelBuilder("watt")
    link(b, "crank", "crank", "revolute", "world", axis=(0, 1, 0), independent=True)
    link(b, "coupler", "coupler", "revolute", "crank", xyz=(0.2, 0, 0), axis=(0, 1, 0))
    link(b, "rocker", "rocker", "revolute", "world", xyz=(0.5, 0, 0), axis=(0, 1, 0))
    link(b, "second", "second", "revolute", "rocker", xyz=(0.3, 0, 0.1), axis=(0, 1, 0))
    link(b, "output", "output", "revolute", "world", xyz=(1.0, 0, 0), axis=(0, 1, 0))
    b.add_loop("one", "revolute", "coupler", "rocker", axis=(0, 1, 0),
               predecessor_xyz=(0.45, 0, 0), successor_xyz=(0.4, 0, 0))  # fmt: skip
    b.add_loop("two", "ball", "second", "output", predecessor_xyz=(0.5, 0, 0),
               successor_xyz=(0.35, 0, 0))  # fmt: skip
    b.add_body("rotor", 0.1, inertia=(1e-5, 0, 0, 1e-5, 0, 2e-5))
    b.add_joint("rotor", "revolute", "world", "rotor", axis=(0, 1, 0))
    b.add_coupling("gear", "rotor", {"output": 7.0})
    model = b.build(reference={"crank": 1.0, "coupler": -0.5, "rocker": 1.6, "second": -1.0,
                               "output": 1.2})  # fmt: skip
    closed = analytic(model)
    (cluster,) = closed.clusters
    assert [step.name for step in cluster.embedding.steps] == ["one", "two", "gear"]
    q, v = closed.random_state(2)
    twin = numeric(closed)
    a = gb.forward_dynamics(closed, q, v, [1.0])
    at = twin.pack(closed.unpack(q))
    assert np.allclose(a, gb.forward_dynamics(twin, at, v, [1.0]), rtol=1e-9)


def test_left_to_numeric_closing():
    model = gb.robots.load("loop_sampler")
    closed = analytic(model)
    assert sum(c.embedding.implicit for c in closed.clusters) < sum(
        c.embedding.implicit for c in model.clusters
    )
    with pytest.raises(gb.ModelError, match="'rod' has no closed form"):
        analytic(model, ["rod"])
    with pytest.raises(gb.ModelError, match="did you mean 'geared'"):
        analytic(model, ["gearde"])


def test_some_loops_only():
    model = gb.robots.load("loop_sampler")
    only = analytic(model, ["geared"])
    changed = [
        {loop.name for loop in c.loops}
        for c, d in zip(only.clusters, model.clusters)
        if c.embedding is not d.embedding
    ]
    assert changed == [{"geared", "geared_rotor"}]


def test_offset_axes_have_no_closed_form():
    """A universal joint whose axes miss each other by a millimetre is no universal joint."""
    b = gb.ModelBuilder("offset")
    link(b, "foot", "pitch", "revolute", "world", axis=(0, 1, 0), independent=True)
    link(b, "yoke", "one", "revolute", "world", xyz=(0.1, 0, 0.3), axis=(1, 0, 0))
    link(b, "cylinder", "two", "revolute", "yoke", xyz=(0, 0, 0.001), axis=(0, 1, 0))
    link(b, "rod", "slide", "prismatic", "cylinder", axis=(0, 0, -1))
    b.add_loop("leg", "ball", "rod", "foot", successor_xyz=(0.12, 0.02, 0))
    model = b.build(reference={"slide": 0.3})
    assert analytic(model).clusters[0].embedding.implicit


def test_dead_points_are_no_candidates():
    model = gb.robots.load("four_bar")
    (loop,) = model.loops
    found = candidates(loop, model.reference)
    assert len(found) == 3  # any two of the three joints
    sizes = [c.conditioning(model.reference) for c in found]
    assert sizes == sorted(sizes, reverse=True)
    assert all("γ" in c.describe() and c.gap(model.reference) for c in found)


def test_bad_branches():
    model = gb.robots.load("four_bar")
    with pytest.raises(gb.ModelError, match=r"branch of loop 'pin' is 2: give \+1 or -1"):
        analytic(model, branches={"pin": 2})
    with pytest.raises(gb.ModelError, match="no loop named 'pins'"):
        analytic(model, branches={"pins": 1})


def test_out_of_reach_is_an_error():
    model = analytic(gb.robots.load("six_bar"))
    with pytest.raises(gb.ClosureError, match="out of reach"):
        gb.mass_matrix(model, [0.0, 0.0, np.pi])


def test_dead_point_is_an_error():
    """Crank and coupler stretched: from the follower the position is known, not the velocity."""
    b = gb.ModelBuilder("stretched")
    for name, x in (("crank", 0.0), ("follower", 1.0)):
        link(b, name, name, "revolute", "world", xyz=(x, 0, 0), axis=(0, -1, 0),
             independent=name == "follower")  # fmt: skip
    link(b, "coupler", "coupler", "revolute", "crank", xyz=(0.5, 0, 0), axis=(0, -1, 0))
    b.add_loop("pin", "revolute", "coupler", "follower", axis=(0, 1, 0),
               predecessor_xyz=(0.4, 0, 0), successor_xyz=(0.3, 0, 0))  # fmt: skip
    model = analytic(b.build(reference={"crank": 0.6, "coupler": -0.6, "follower": 1.7}))
    assert model.v_names == ("follower",)
    stretched = np.arccos((0.9**2 - 1.0 - 0.3**2) / (2 * 0.3))
    gb.mass_matrix(model, [stretched + 1e-3])
    with pytest.raises(gb.PartitionError, match="'pin' is at a dead point"):
        gb.mass_matrix(model, [stretched + 1e-15])


@pytest.mark.parametrize("make", [lambda_elbow, ankle, lambda: ankle("rus"), stewart])
def test_models_have_fingerprints(make):
    """Compiled code of modules may be cached: nothing in them is a user's function."""
    one, two = analytic(make()), analytic(make())
    assert fingerprint(one) is not None and fingerprint(one) == fingerprint(two)
