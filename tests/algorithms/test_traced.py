"""The same source on floats and on symbols: every public algorithm traced, on every robot."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler.algebra.symbolic import trace

SOME = ["mini_cheetah", "tello", "tello_explicit", "pbt_chain", "four_bar", "loop_sampler",
        "joint_sampler", "arm7"]  # fmt: skip


def numbers(function, *args):
    out = function(*args)
    outputs = out if isinstance(out, tuple) else (out,)
    return [np.array(x, dtype=float) for x in outputs]


def agree(model, fn, *args):
    expected = fn(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    traced = numbers(trace(fn, [a.shape for a in args]), *args)
    for got, want in zip(traced, expected, strict=True):
        want = np.asarray(want)
        assert relative(got.reshape(want.shape), want) < 1e-11


def test_forward_and_inverse_dynamics(model):
    q, v = model.random_state(5)
    x = np.linspace(-1, 1, model.nv)
    agree(model, lambda q, v, x: gb.forward_dynamics(model, q, v, x), q, v, x)
    agree(model, lambda q, v, x: gb.inverse_dynamics(model, q, v, x), q, v, x)


@pytest.mark.parametrize("name", SOME)
def test_every_other_algorithm(name):
    model = load(name)
    q, v = model.random_state(6)
    x = np.linspace(-1, 1, model.nv)
    frame = model.bodies[-1].name
    f = np.linspace(0, 1, 6 * len(model.bodies)).reshape(-1, 6)
    for method in ("projection", "lagrange", "mass_matrix"):
        agree(
            model, lambda q, v, x, m=method: gb.forward_dynamics(model, q, v, x, method=m), q, v, x
        )
    agree(model, lambda q, v, x: gb.inverse_dynamics(model, q, v, x, method="projected"), q, v, x)
    agree(model, lambda q, v, x, f: gb.forward_dynamics(model, q, v, x, f), q, v, x, f)
    agree(model, lambda q: gb.mass_matrix(model, q), q)
    agree(model, lambda q, v: gb.bias_force(model, q, v), q, v)
    agree(model, lambda q: gb.inverse_osim(model, q, [frame, model.bodies[0].name]), q)
    agree(model, lambda q: gb.frame_jacobian(model, q, frame), q)
    agree(model, lambda q, v: gb.frame_acceleration_bias(model, q, v, frame), q, v)
    agree(model, lambda q, v: tuple(gb.energy(model, q, v)), q, v)
    agree(model, lambda q, v: tuple(gb.centroidal(model, q, v)), q, v)
    agree(model, lambda q, v, x: tuple(gb.spanning_state(model, q, v, x)), q, v, x)
    agree(model, lambda q, x: gb.generalized_force(model, q, x), q, np.ones(model.nv_span))
    agree(model, lambda q, v, a: gb.kinematics(model, q, v, a)[1:], q, v, x)


def test_a_tree_does_the_work_of_the_tree_algorithms():
    """Clusters cost a plain tree nothing: the counts of ABA and RNEA on a 18-dof quadruped."""
    model = load("quadruped")
    sizes = [(model.nq,), (model.nv,), (model.nv,)]
    aba = trace(lambda q, v, x: gb.forward_dynamics(model, q, v, x), sizes)
    rnea = trace(lambda q, v, x: gb.inverse_dynamics(model, q, v, x), sizes)
    assert aba.n_instructions() < 4024  # a hand-made ABA of the same robot
    assert rnea.n_instructions() < 2200


def test_work_grows_linearly_along_a_chain():
    counts = []
    for n in (4, 8, 12):
        model = gb.robots.load("robot_a", n=n, seed=1)
        sizes = [(model.nq,), (model.nv,), (model.nv,)]
        counts.append(trace(lambda q, v, x, m=model: gb.forward_dynamics(m, q, v, x), sizes))
    a, b, c = (f.n_instructions() for f in counts)
    assert abs((c - b) - (b - a)) < 0.02 * (b - a)
