"""CasADi Functions of machine code with our Jacobian, against those of CasADi's expressions."""

import shutil

import casadi
import numpy as np
import pytest

import grubler as gb
from conftest import load, relative

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler"
)
FOUR_BAR = load("four_bar")


def jacobian_of(f, *values):
    """The dense Jacobian of all outputs by all inputs."""
    x = [casadi.MX.sym(f"x{i}", f.sparsity_in(i)) for i in range(f.n_in())]
    out = f.call(x)
    J = casadi.jacobian(casadi.veccat(*out), casadi.veccat(*x))
    return np.array(casadi.Function("J", x, [J])(*values))


@pytest.mark.parametrize("robot", ["four_bar", "joint_sampler"])
def test_forward_dynamics(robot):
    model = load(robot)
    q, v = model.random_state(1)
    tau = np.ones(model.nv)
    f = gb.casadi_function(gb.forward_dynamics, model, compiled=True)
    assert f.name_in() == ["q", "v", "tau"] and f.name() == "forward_dynamics"
    assert relative(np.array(f(q, v, tau)).ravel(), gb.forward_dynamics(model, q, v, tau)) < 1e-12
    J = gb.jacobian(gb.forward_dynamics, model, configurations=())(model, q, v, tau)
    assert relative(jacobian_of(f, q, v, tau), np.concatenate(J, axis=1)) < 1e-11


def mixed(model, x, q):
    """Outputs of all shapes from a matrix: CasADi counts columns first."""
    rows = [np.stack([x[i, 0] * x[i, 1] * q[0], x[i, 2] ** 2, np.sin(x[i, 0])]) for i in range(2)]
    return np.stack(rows), x[0] @ x[1], x[1] * q[0]


def test_matrices_are_turned():
    options = {"shapes": {"x": (2, 3)}}
    f = gb.casadi_function(mixed, FOUR_BAR, compiled=True, **options)
    g = gb.casadi_function(mixed, FOUR_BAR, **options)
    x, q = np.random.default_rng(0).normal(size=(2, 3)), FOUR_BAR.neutral()
    for a, b in zip(f(x, q), g(x, q), strict=True):
        np.testing.assert_allclose(np.array(a), np.array(b), atol=1e-15)
    np.testing.assert_allclose(jacobian_of(f, x, q), jacobian_of(g, x, q), atol=1e-15)


def test_masses_are_inputs():
    f = gb.casadi_function(
        gb.forward_dynamics, FOUR_BAR, compiled=True, parameters=["mass"], inputs=["q", "v", "tau"]
    )
    q, v = FOUR_BAR.random_state(1)
    tau, mass = np.ones(1), 1.3 * gb.parameter_values(FOUR_BAR, "mass")
    changed = gb.with_parameters(FOUR_BAR, {"mass": mass})
    assert float(f(q, v, tau, mass)) == pytest.approx(
        gb.forward_dynamics(changed, q, v, tau)[0], rel=1e-12
    )
    product = gb.jacobian(gb.forward_dynamics, changed, wrt="mass")
    J = jacobian_of(f, q, v, tau, mass)[:, -len(mass) :]
    np.testing.assert_allclose(J, product(changed, q, v, tau), rtol=1e-11)


@pytest.mark.parametrize("robot, frame", [("four_bar", "pin"), ("six_bar", "tip")])
def test_ipopt_moves_a_linkage(robot, frame):
    """The independent joint that brings a point of a closed linkage where another posture has it:
    loops are closed by Newton's steps inside the function, and IPOPT has their derivative."""
    model = load(robot)
    start, goal = (model.random_state(i)[0] for i in (0, 1))
    (cluster,) = [c for c in model.clusters if c.embedding.implicit]
    joint = cluster.embedding
    free = [cluster.q.start + i for i in joint.independent]  # hinges alone: one entry of q each
    target = gb.frame_pose(model, goal, frame)[1]

    def gap(model, x):
        guess = [x[free.index(i)] if i in free else start[i] for i in range(model.nq)]
        q, _ = gb.assemble(model, np.stack(guess))
        away = gb.frame_pose(model, q, frame)[1] - target
        return away @ away * 100.0

    n = len(free)
    f = gb.casadi_function(gap, model, compiled=True, shapes={"x": (n,)})
    x = casadi.MX.sym("x", n)
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-12,
             "hessian_approximation": "limited-memory"}}  # fmt: skip
    solver = casadi.nlpsol("solver", "ipopt", {"x": x, "f": f(x)}, quiet)
    near = start[free] + 0.7 * (goal[free] - start[free])
    best = solver(x0=near)
    assert solver.stats()["success"]
    assert float(best["f"]) < 1e-12


def test_refused(monkeypatch):
    with pytest.raises(gb.InputError, match="no option named 'dtype'"):
        gb.casadi_function(gb.energy, FOUR_BAR, compiled=True, dtype="float32")
    with pytest.raises(gb.InputError, match="compiled is 'yes'"):
        gb.casadi_function(gb.energy, FOUR_BAR, compiled="yes")
    monkeypatch.setenv("CC", "/nowhere/cc")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(gb.InputError, match="needs a C compiler"):
        gb.casadi_function(gb.energy, FOUR_BAR, compiled=True)
