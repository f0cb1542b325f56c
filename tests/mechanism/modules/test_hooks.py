"""Closed forms and repartitioning from where a user meets them: builder, model, gb.*."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import grubler as gb
from linkages import ankle, lambda_elbow, link, stewart

CASSIE = Path(__file__).parents[4] / "shared" / "models" / "cassie_mjcf" / "cassie.xml"


def test_builder_closes_analytically():
    b = gb.ModelBuilder("elbow")
    link(b, "forearm", "elbow", "revolute", "world", axis=(0, 1, 0), independent=True)
    link(b, "cylinder", "pivot", "revolute", "world", xyz=(0.05, 0, -0.3), axis=(0, 1, 0))
    link(b, "rod", "slide", "prismatic", "cylinder", axis=(0, 0, 1))
    b.add_loop("pin", "ball", "forearm", "rod", predecessor_xyz=(0.2, 0, 0))
    start = {"slide": 0.3}
    closed, twin = b.build(start, analytic=True), b.build(start)
    assert closed.nq == 1 and twin.nq == 3
    assert "explicit (slider-crank), independent: elbow" in str(closed)
    q = twin.pack(closed.unpack(np.array([0.3])))
    assert np.allclose(gb.mass_matrix(closed, [0.3]), gb.mass_matrix(twin, q), rtol=1e-10)


def test_named_modules():
    b = gb.ModelBuilder("belts")
    for i in range(2):
        parent = "world" if i == 0 else "link0"
        link(b, f"link{i}", f"link{i}", "revolute", parent, xyz=(0.2 * i, 0, 0))
        b.add_body(f"rotor{i}", 0.1, inertia=(1e-5, 0, 0, 1e-5, 0, 2e-5))
        b.add_joint(f"rotor{i}", "revolute", "world", f"rotor{i}")
    b.add_module(
        "belts", "parallel_belts", independent=["link0", "link1"], dependent=["rotor0", "rotor1"],
        gears=[6.0, 8.0],
    )  # fmt: skip
    model = b.build()
    G, _ = gb.spanning_map(model, [0.1, 0.2])
    rows = {n: G[i] for i, n in enumerate(model.spanning_names)}
    assert np.allclose(rows["rotor1"], [8.0, 8.0]) and np.allclose(rows["rotor0"], [6.0, 0.0])
    with pytest.raises(gb.ModelError, match="did you mean 'parallel_belts'"):
        b.add_module("x", "parallel_belt", independent=[], dependent=[])


@pytest.mark.parametrize("make", [lambda_elbow, ankle, stewart])
def test_multipliers_agree_with_closed_forms(make):
    """Redundant rows are left out for closed forms, too."""
    model = gb.analytic(make())
    q, v = model.random_state(0)
    tau = np.ones(model.nv)
    a = gb.forward_dynamics(model, q, v, tau)
    assert np.allclose(gb.forward_dynamics(model, q, v, tau, method="lagrange"), a, rtol=1e-8)


def test_repartition_is_a_method():
    model = gb.robots.load("four_bar")
    q, _ = model.random_state(0)
    assert model.repartition(q).v_names == model.v_names


def random_guesses(model, count, rng):
    """Every joint anywhere within its limits, or a radian about the reference."""
    parts = []
    for cluster in model.clusters:
        for body in cluster.embedding.coordinates:
            joint, at = body.joint, model.reference[body.index]
            if joint.nq != joint.nv:
                x = np.tile(at, (count, 1))
                x[:, :-4] += rng.uniform(-1, 1, (count, joint.nq - 4))
            elif joint.nv == 1 and joint.lower is not None and joint.upper is not None:
                low, high = max(joint.lower, -np.pi), min(joint.upper, np.pi)
                x = rng.uniform(low, high, (count, 1))
            else:
                x = at + rng.uniform(-1, 1, (count, joint.nq))
            parts.append(x)
    return np.concatenate(parts, axis=1)


def test_a_hundred_thousand_cassies():
    """Random guesses closed to 1e-10 in compiled code, all of them."""
    if not CASSIE.exists():
        pytest.skip("Cassie's file is not here")
    pytest.importorskip("mujoco")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gb.load(CASSIE)
    close = gb.compile(gb.assemble, model, hold=False)
    q, gap = close(random_guesses(model, 100_000, np.random.default_rng(0)))
    assert np.mean(np.ravel(gap) < 1e-10) > 0.9999
    assert max(model.loop_gap(x) for x in q[:20]) < 1e-10


@pytest.mark.parametrize("name", ["four_bar", "six_bar", "tello", "ankle", "stewart"])
def test_random_guesses_close(name):
    model = {"ankle": ankle, "stewart": stewart}.get(name, lambda: gb.robots.load(name))()
    close = gb.compile(gb.assemble, model, hold=False)
    _, gap = close(random_guesses(model, 2000, np.random.default_rng(0)))
    assert np.mean(np.ravel(gap) < 1e-10) > 0.95, np.mean(np.ravel(gap) < 1e-10)
