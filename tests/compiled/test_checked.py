"""Compiled functions that check their states: the same refusals as the NumPy calls."""

from __future__ import annotations

import numpy as np
import pytest

import grubler as gb
from conftest import ROBOTS, load
from linkages import MECHANISMS


def states(model: gb.Model, n: int = 6, seed: int = 0):
    q, v = model.random_states(n, seed)
    return q, v, np.random.default_rng(seed).uniform(-1, 1, (n, model.nv))


def refusal(call) -> tuple[type, str] | None:
    """The error of a call, without the robot's index."""
    try:
        call()
    except gb.GrublerError as error:
        text = str(error)
        return type(error), text.partition(": ")[2] if text.startswith("robot ") else text
    return None


@pytest.mark.parametrize("name", ROBOTS)
def test_valid_states_pass(name):
    model = load(name)
    plain = gb.compile(gb.inverse_dynamics, model)
    checked = gb.compile(gb.inverse_dynamics, model, checked=True)
    q, v, a = states(model)
    assert np.array_equal(checked(q, v, a), plain(q, v, a))
    assert np.array_equal(checked(q[0], v[0], a[0]), plain(q[0], v[0], a[0]))
    assert np.array_equal(checked.structure_of_arrays(q.T, v.T, a.T), plain(q, v, a).T)


@pytest.mark.parametrize("name", ["mini_cheetah", "four_bar", "joint_sampler", "loop_sampler"])
def test_same_refusals_as_numpy(name):
    """Random damage to random coordinates, from nothing to far off."""
    model = load(name)
    checked = gb.compile(gb.forward_dynamics, model, checked=True)
    q, v, tau = states(model, 60)
    rng, refused = np.random.default_rng(1), 0
    for i in range(60):
        x = q[i].copy()
        x[rng.integers(model.nq)] += 10.0 ** rng.uniform(-10, 0)
        expected = refusal(lambda x=x, i=i: gb.forward_dynamics(model, x, v[i], tau[i]))
        assert refusal(lambda x=x, i=i: checked(x, v[i], tau[i])) == expected
        batch = q.copy()
        batch[i] = x
        found = refusal(lambda batch=batch: checked(batch, v, tau))
        assert found == expected
        refused += expected is not None
    assert 5 < refused < 60


def test_robot_and_joint_are_named():
    model = load("mini_cheetah")
    checked = gb.compile(gb.forward_dynamics, model, checked=True)
    q, v, tau = states(model)
    base = model.bodies[0].joint.name
    q[4, 3:7] *= 2.0
    with pytest.raises(
        gb.InputError, match=f"^robot 4: the quaternion of joint '{base}'.* length 2"
    ):
        checked(q, v, tau)
    with pytest.raises(gb.InputError, match=r"^the quaternion of joint"):
        checked(q[4], v[4], tau[4])
    with pytest.raises(gb.InputError, match=r"^robot 4: the quaternion"):
        checked.structure_of_arrays(q.T, v.T, tau.T)
    q[4, 3:7] /= 2.0
    tau[2, 7] = np.nan
    with pytest.raises(gb.InputError, match=rf"^robot 2: tau\[7\] \({model.v_names[7]}\) is nan"):
        checked(q, v, tau)
    with pytest.raises(gb.InputError, match=r"^tau\[7\] \(.*\) is nan"):
        checked(q, v, tau[2])  # the same for all robots


def test_open_loops():
    model = load("four_bar")
    checked = gb.compile(gb.forward_dynamics, model, checked=True)
    q, v, tau = states(model)
    q[3, 1] += 1e-4
    with pytest.raises(gb.ClosureError, match=r"^robot 3: loop 'pin' is open by 0.0"):
        checked(q, v, tau)
    assert np.isfinite(checked.unchecked(q, v, tau)).all()  # finite, plausible and wrong


@pytest.mark.parametrize("make", [lambda m: m, gb.analytic], ids=["numeric", "closed form"])
def test_singular_partitions(make):
    """A slider-crank in its dead point, driven by the slider."""
    b = gb.ModelBuilder("engine")
    for name in ("crank", "rod", "piston"):
        b.add_body(name, 1.0, inertia=(0.01, 0, 0, 0.01, 0, 0.01))
    axis = {"axis": (0, 1, 0)}
    b.add_joint("crank", "revolute", "world", "crank", independent=False, **axis)
    b.add_joint("rod", "revolute", "crank", "rod", xyz=(0.2, 0, 0), independent=False, **axis)
    b.add_joint("piston", "prismatic", "world", "piston", axis=(1, 0, 0), independent=True)
    b.add_loop("pin", "revolute", "rod", "piston", predecessor_xyz=(0.5, 0, 0), **axis)
    model = make(b.build(reference={"crank": 0.8, "rod": -1.1, "piston": 0.6}))
    checked = gb.compile(gb.forward_dynamics, model, checked=True)
    q = np.zeros(model.nq)
    q[model.q_names.index("piston")] = 0.7
    batch = np.stack([model.neutral(), q])
    zero = np.zeros(model.nv)
    with pytest.raises(gb.PartitionError) as plain:
        gb.forward_dynamics(model, q, zero, zero)
    with pytest.raises(gb.PartitionError) as single:
        checked(q, zero, zero)
    with pytest.raises(gb.PartitionError) as many:
        checked(batch, zero, zero)
    assert str(single.value) == str(plain.value)
    assert str(many.value) == f"robot 1: {plain.value}"


def test_bound_calls_check_each_time():
    model = load("mini_cheetah")
    checked = gb.compile(gb.forward_dynamics, model, checked=True)
    for arrays in (states(model), [x[0].copy() for x in states(model)]):
        call = checked.bind(*arrays)
        assert np.array_equal(call(), checked.unchecked(*arrays))
        arrays[0][..., 3:7] *= 1.01
        with pytest.raises(gb.InputError, match="quaternion"):
            call()


def test_results_that_are_not_finite():
    b = gb.ModelBuilder("light")
    b.add_body("arm", 1.0, (0.1, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01))
    b.add_joint("arm", "revolute", "world", "arm")
    b.add_body("ghost")
    b.add_joint("ghost", "revolute", "arm", "ghost", xyz=(0.1, 0, 0))
    model = b.build()
    checked = gb.compile(gb.forward_dynamics, model, checked=True)
    with pytest.raises(gb.ModelError, match=r"^robot 0: output .* is not finite"):
        checked(np.zeros((3, 2)), np.zeros(2), np.ones(2))


def test_single_precision():
    """Rounded states are valid, open and unnormalised ones are not."""
    for name in ("mini_cheetah", "six_bar"):
        model = load(name)
        checked = gb.compile(gb.forward_dynamics, model, dtype="float32", checked=True)
        q, v, tau = (x.astype(np.float32) for x in states(model, 50))
        assert np.isfinite(checked(q, v, tau)).all()
        q[7, 3] += 0.1
        with pytest.raises(gb.GrublerError, match=r"^robot 7: "):
            checked(q, v, tau)


def test_functions_of_ones_own():
    model = load("four_bar")

    def power(model, q, v, tau):
        return np.stack([tau @ v, gb.energy(model, q, v).kinetic])

    checked = gb.compile(power, model, checked=True)
    q, v, tau = states(model)
    assert checked(q, v, tau).shape == (6, 2)
    with pytest.raises(gb.ClosureError, match="robot 0: loop 'pin' is open"):
        checked(q + 0.1, v, tau)


def test_refused():
    model = load("four_bar")

    def add(model, x, y):
        return x + y

    with pytest.raises(gb.InputError, match="has no argument q to check"):
        gb.compile(add, model, shapes={"x": (1,), "y": (1,)}, checked=True)
    with pytest.raises(gb.InputError, match="checked=True is the CPU's"):
        gb.compile(gb.mass_matrix, model, target="cuda", checked=True)
    checked = gb.compile(gb.mass_matrix, model, checked=True)
    with pytest.raises(gb.InputError, match="takes 1 arguments"):
        checked(np.zeros(3), np.zeros(1))
    with pytest.raises(gb.InputError, match="shape"):
        checked(np.zeros(2))
    with pytest.raises(gb.InputError, match=r"give its \.unchecked"):
        gb.export(checked, "out")
    assert repr(checked).startswith("<compiled, checked mass_matrix")


class TestValidity:
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_compiled(self, name):
        """Conditions against singular values and dead points; gaps against the model's own."""
        model = MECHANISMS[name][0]()
        for m in (model, gb.analytic(model)):
            q, _ = m.random_states(8, 0)
            lengths, gaps, conditions = gb.compile(gb.validity, m)(q)
            assert np.abs(lengths - 1).max(initial=0.0) < 1e-12
            for i, x in enumerate(q):
                assert abs(gaps[i].max() - m.loop_gap(x)) < 1e-13  # round-off of closed forms
                for cluster, found in zip(
                    [c for c in m.clusters if c.loops], conditions[i], strict=True
                ):
                    joint = cluster.embedding
                    if not joint.implicit:
                        assert 1 <= found < 1e6
                        continue
                    K, _ = joint.constraint(joint.positions(x[cluster.q]), None)
                    true = np.linalg.cond(K[np.ix_(joint.kept, joint.dependent)])
                    assert true * (1 - 1e-9) <= found <= len(joint.kept) * true * (1 + 1e-9)

    def test_outputs_in_order(self):
        model = load("loop_sampler")
        q, _ = model.random_state(0)
        found = gb.validity(model, q)
        assert found.gaps.shape == (len(model.loops),)
        assert found.conditions.shape == (sum(bool(c.loops) for c in model.clusters),)
        joints = [b.joint for c in model.clusters for b in c.embedding.coordinates]
        assert found.lengths.shape == (sum(j.nq != j.nv for j in joints),)
        assert gb.validity(model, 2 * q).lengths == pytest.approx(2.0)

    def test_models_without_loops(self):
        found = gb.validity(load("arm7"), np.zeros(7))
        assert [x.shape for x in found] == [(0,), (0,), (0,)]
