"""Another partition of the same mechanism: same spanning motion, better conditioning."""

import numpy as np
import pytest

import grubler as gb
from conftest import load
from grubler.model.exchange import (
    analytic,
    convert_acceleration,
    convert_configuration,
    convert_force,
    convert_velocity,
    numeric,
    repartition,
)


def condition(model, q) -> float:
    """The worst condition of K_d over the implicit clusters."""
    worst = 1.0
    for cluster in model.clusters:
        joint = cluster.embedding
        if joint.implicit:
            K, _ = joint.constraint(joint.positions(q[cluster.q]), None)
            worst = max(worst, np.linalg.cond(K[np.ix_(joint.kept, joint.dependent)]))
    return worst


def dead_point():
    """A slider-crank with the piston as its coordinate: a poor one where it is stretched."""
    b = gb.ModelBuilder("slider crank")
    for name, mass in (("crank", 0.5), ("rod", 0.8), ("piston", 1.0)):
        b.add_body(name, mass, (0.05, 0, 0), (1e-3, 0, 0, 2e-3, 0, 2e-3))
    b.add_joint("crank", "revolute", "world", "crank", axis=(0, 1, 0))
    b.add_joint("rod", "revolute", "crank", "rod", xyz=(0.2, 0, 0), axis=(0, 1, 0))
    b.add_joint("piston", "prismatic", "world", "piston", axis=(1, 0, 0), independent=True)
    b.add_loop("pin", "revolute", "rod", "piston", predecessor_xyz=(0.5, 0, 0), axis=(0, 1, 0))
    return b.build(reference={"crank": 0.8, "rod": -1.1, "piston": 0.6})


def through(model, angle):
    positions = {"crank": angle, "rod": -angle - np.arcsin(0.4 * np.sin(angle)), "piston": 0.6}
    return model.assemble(positions, fixed=["crank"])


@pytest.mark.parametrize("angle", [1e-2, 1e-4, 1e-6])
def test_near_a_dead_point(angle):
    """The piston stands still while the crank goes through: it cannot be the coordinate there."""
    model = dead_point()
    assert model.v_names == ("piston",)
    q = through(model, angle)
    better = repartition(model, q)
    assert better.v_names != model.v_names
    assert condition(better, q) < 20 < condition(model, q)
    v = np.array([1e-3 * angle])
    w = convert_velocity(model, better, q, v)
    span = [gb.spanning_state(m, q, x).velocities for m, x in ((model, v), (better, w))]
    assert np.allclose(*span, rtol=1e-8, atol=1e-12)


def test_dynamics_are_continuous_through_the_change():
    """Switching coordinates leaves spanning accelerations as they are, to rounding."""
    model = dead_point()
    for angle in (0.3, 0.1, 0.03):
        q = through(model, angle)
        better = repartition(model, q)
        v = np.array([0.2])
        tau = np.array([3.0])
        w = convert_velocity(model, better, q, v)
        force = convert_force(model, better, q, tau)
        a = gb.forward_dynamics(model, q, v, tau)
        b = gb.forward_dynamics(better, q, w, force)
        one, two = gb.spanning_state(model, q, v, a), gb.spanning_state(better, q, w, b)
        for x, y in zip(one, two, strict=True):
            assert np.allclose(x, y, rtol=1e-9, atol=1e-9)
        assert np.allclose(convert_acceleration(model, better, q, v, a), b, rtol=1e-9)
        assert np.isclose(force @ w, tau @ v, rtol=1e-9)


def test_simulation_goes_through_the_dead_point():
    """Energy stays, with coordinates changed on the way."""
    model = dead_point()
    q = through(model, -0.3)  # crank and rod raised: they fall through the stretched pose
    v = np.zeros(1)
    start = sum(gb.energy(model, q, v))
    changes, h = 0, 2e-3
    for _ in range(110):
        a = gb.forward_dynamics(model, q, v, np.zeros(1))
        half = v + 0.5 * h * a
        q = model.integrate(q, half, h)
        v = half + 0.5 * h * gb.forward_dynamics(model, q, half, np.zeros(1))
        new = repartition(model, q)
        if new.v_names != model.v_names:
            v, model, changes = convert_velocity(model, new, q, v), new, changes + 1
    assert changes >= 1 and q[0] > 0.3  # on the other side now
    assert abs(sum(gb.energy(model, q, v)) - start) < 0.01 * sum(gb.energy(model, q, v)[:1])


@pytest.mark.parametrize("name", ["four_bar", "six_bar", "loop_sampler", "tello"])
def test_good_partitions_are_kept(name):
    model = load(name)
    q, v = model.random_state(0)
    same = repartition(model, q)
    assert condition(same, q) <= condition(model, q) * (1 + 1e-9)
    assert same.q_names == model.q_names
    a = gb.forward_dynamics(model, q, v, np.ones(model.nv))
    w = convert_velocity(model, same, q, v)
    b = gb.forward_dynamics(same, q, w, convert_force(model, same, q, np.ones(model.nv)))
    assert np.allclose(convert_acceleration(model, same, q, v, a), b, rtol=1e-8, atol=1e-8)


def test_singular_mechanisms_are_refused():
    """A parallelogram folded flat loses rank itself: no coordinates help."""
    model = load("parallel_four_bar")
    flat = model.pack({i: np.zeros(1) for i in range(3)})
    with pytest.raises(gb.PartitionError, match="itself singular at this q"):
        repartition(model, flat)


def test_there_and_back():
    model = load("four_bar")
    closed = analytic(model)
    twin = numeric(closed)
    assert twin.v_names == model.v_names and twin.nq == model.nq and closed.nq == 1
    q, _ = model.random_state(4)
    assert np.allclose(convert_configuration(closed, model, [q[0]]), q, atol=1e-12)
    assert numeric(model).clusters[0].embedding is model.clusters[0].embedding
    with pytest.raises(gb.ModelError, match="no loop named"):
        numeric(model, ["no such loop"])
    some = numeric(closed, ["pin"])
    assert some.clusters[0].embedding.implicit


def test_symbolic_conversion():
    """Forces are converted in compiled code, too."""
    model = dead_point()
    q = through(model, 0.3)
    better = repartition(model, q)

    def convert(model, q, tau):
        return convert_force(model, better, q, tau)

    compiled = gb.compile(convert, model)
    assert np.allclose(compiled(q, [2.0]), convert_force(model, better, q, np.array([2.0])))


def test_chosen_coordinates():
    model = load("six_bar")
    q, v = model.random_state(0)
    dependent = next(n for n in model.spanning_names if n not in model.v_names)
    other = repartition(model, q, independent=[dependent])
    assert dependent in other.v_names and other.nv == model.nv
    a = gb.forward_dynamics(model, q, v, np.zeros(model.nv))
    converted = gb.convert_velocity(model, other, q, v)
    same = gb.forward_dynamics(other, q, converted, np.zeros(model.nv))
    expected = gb.convert_acceleration(model, other, q, v, a)
    assert np.allclose(same, expected, rtol=1e-9)
    with pytest.raises(gb.ModelError, match="no coordinate named"):
        repartition(model, q, independent=["nobody"])
    with pytest.raises(gb.PartitionError, match="cannot be independent at this q"):
        repartition(model, q, independent=list(model.spanning_names))
