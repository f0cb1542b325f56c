"""Tangent calculus: against fifty digits, Pinocchio, exact derivatives, and its own inverses."""

import mpmath
import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler.algebra import lie
from grubler.algebra.spatial import quaternion_exp, quaternion_log
from grubler.algorithms import tangent
from grubler.mechanism.joints import Free, Prismatic

SIZES = (0.0, 1e-12, 1e-8, 1e-5, 1e-4, 3e-4, 1e-3, 0.02, 0.3, 0.49, 0.51, 1.0, 2.0, 3.1)
IMPLICIT = ("four_bar", "six_bar", "tello", "loop_sampler")


def steps(model, count=5, size=0.1):
    """(q, v, xi) at random."""
    for seed in range(count):
        q, v = model.random_state(seed)
        yield q, v, size * np.random.default_rng(seed).uniform(-1, 1, model.nv)


# the groups, against mpmath


def hat(w):
    return mpmath.matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def precise(w, l):
    """The rotation, the way and the Jacobian of a twist in fifty digits, by power series."""
    with mpmath.workdps(60):
        w, l = [mpmath.mpf(float(x)) for x in w], [mpmath.mpf(float(x)) for x in l]
        H = mpmath.zeros(4)
        H[:3, :3] = hat(w)
        for i in range(3):
            H[i, 3] = l[i]
        E = mpmath.expm(H, method="taylor")
        ad = mpmath.zeros(6)
        ad[:3, :3] = ad[3:, 3:] = hat(w)
        ad[3:, :3] = hat(l)
        J, term = mpmath.eye(6), mpmath.eye(6)
        for k in range(1, 80):
            term = term * (-ad) / (k + 1)
            J = J + term
        inverse = J**-1

        def numbers(M):
            return np.array([[float(M[i, j]) for j in range(M.cols)] for i in range(M.rows)])

        return numbers(E[:3, :3]), numbers(E[:3, 3])[:, 0], numbers(J), numbers(inverse)


@pytest.mark.parametrize("size", SIZES)
def test_exponentials_and_their_derivatives_in_fifty_digits(size):
    rng = np.random.default_rng(0)
    for _ in range(4):
        w, l = rng.standard_normal((2, 3))
        w *= size / np.linalg.norm(w)
        R, way, J, inverse = precise(w, l)
        x = np.concatenate([w, l])
        assert np.abs(lie.rotation(w) - R).max() < 5e-16
        assert relative(lie.advance(w, l), way) < 2e-15
        assert np.abs(lie.rotation_jacobian(w) - J[:3, :3]).max() < 1e-15
        assert relative(lie.twist_jacobian(x), J) < 3e-15
        assert relative(lie.twist_jacobian_inverse(x), inverse) < 2e-14
        assert relative(lie.advance_inverse(w, way), l) < 1e-14


@pytest.mark.parametrize("size", SIZES)
def test_logarithms_lose_no_digits(size):
    rng = np.random.default_rng(1)
    for _ in range(4):
        w = rng.standard_normal(3)
        w *= size / np.linalg.norm(w)
        q = quaternion_exp(w)
        for sign in (1.0, -1.0):
            assert np.abs(quaternion_log(sign * q) - w).max() <= 4e-16 * size / (1 - size / 3.2)


def test_half_a_turn():
    """At θ = π the vector has length π and one of two signs; beyond, the shorter way is taken."""
    for axis in np.eye(3):
        assert np.allclose(quaternion_log(np.concatenate([[0.0], axis])), np.pi * axis, atol=1e-15)
        w = quaternion_log(quaternion_exp((np.pi + 0.1) * axis))
        assert np.allclose(w, -(np.pi - 0.1) * axis, atol=1e-14)


# models


def test_difference_undoes_integrate(model):
    for q, _, xi in steps(model):
        following = gb.integrate(model, q, xi)
        assert model.loop_gap(following) < 1e-12
        assert np.abs(gb.difference(model, q, following) - xi).max() < 1e-14
        assert np.abs(gb.integrate(model, q, np.zeros(model.nv)) - q).max() < 1e-12


def test_integrate_agrees_with_the_model_where_joints_are_whole(model):
    """`Model.integrate` closes loops by another iteration."""
    if not all(tangent.whole(c.embedding) for c in model.clusters if c.embedding.implicit):
        pytest.skip("a joint that is partly independent: another chart")
    for q, _, xi in steps(model, 3):
        assert np.abs(gb.integrate(model, q, xi) - model.integrate(q, xi)).max() < 1e-11


def test_tangent_map_is_the_rate_of_q(model):
    for q, v, _ in steps(model):
        h, T = 1e-3, gb.tangent_map(model, q)

        def central(h, q=q, v=v):
            ahead, behind = (gb.integrate(model, q, s * h * v) for s in (1, -1))
            return (ahead - behind) / (2 * h)

        coarse, middle, fine = central(4 * h), central(2 * h), central(h)
        once = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
        rate = (16 * once[1] - once[0]) / 15
        assert np.abs(T @ v - rate).max() < 1e-8 * (1 + np.abs(rate).max())


def quotient(fn, n, h=2e-4):
    """The derivative of fn (n,) -> (m,) at zero by central differences, extrapolated."""

    def central(h):
        return np.stack([(fn(h * e) - fn(-h * e)) / (2 * h) for e in np.eye(n)], axis=1)

    return (4 * central(h) - central(2 * h)) / 3


def test_derivatives_of_integrate_and_difference(model):
    def move(x, d):
        return gb.integrate(model, x, d)

    def apart(x, y):
        return gb.difference(model, x, y)

    def largest(q, xi):
        n, end = model.nv, move(q, xi)
        A, B = gb.integrate_derivatives(model, q, xi)
        C, D = gb.difference_derivatives(model, q, end)
        pairs = (
            (A, lambda d: apart(end, move(move(q, d), xi))),
            (B, lambda d: apart(end, move(q, xi + d))),
            (C, lambda d: apart(move(q, d), end)),
            (D, lambda d: apart(q, move(end, d))),
        )
        return max(np.abs(quotient(fn, n) - J).max() for J, fn in pairs)

    for q, _, xi in steps(model, 1):
        assert largest(q, xi) < 1e-8


@pytest.mark.parametrize("size", [1e-6, 0.1, 1.7])
def test_the_chain_rule_closes(model, size):
    """difference(q, integrate(q, ξ)) = ξ, whatever q: derivatives by q and ξ are 0 and 1."""
    if not all(c.embedding.always_closed for c in model.clusters if c.loops):
        size = min(size, 0.1)  # linkages have ends
    for q, _, xi in steps(model, 3, size):
        end = gb.integrate(model, q, xi)
        A, B = gb.integrate_derivatives(model, q, xi)
        A0, A1 = gb.difference_derivatives(model, q, end)
        assert np.abs(A1 @ B - np.eye(model.nv)).max() < 1e-11
        assert np.abs(A0 + A1 @ A).max() < 1e-11


def test_exact_derivatives_of_positions(model):
    """d(q ⊕ ξ) = T(q ⊕ ξ) (A δ + B dξ), by automatic differentiation, no loop to be closed."""
    if any(c.embedding.implicit for c in model.clusters):
        pytest.skip("closed by Newton steps")
    f = gb.casadi_function(gb.integrate, model)
    size = 1.0 if all(c.embedding.always_closed for c in model.clusters if c.loops) else 0.1
    for q, _, xi in steps(model, 3, size):
        by_q, by_xi = (np.array(J) for J in f.jacobian()(q, xi, 0))
        T = gb.tangent_map(model, gb.integrate(model, q, xi))
        A, B = gb.integrate_derivatives(model, q, xi)
        assert relative(T @ B, by_xi) < 1e-12
        assert relative(T @ A, by_q @ gb.tangent_map(model, q)) < 1e-12


@pytest.mark.parametrize("name", ["joint_sampler", *IMPLICIT])
def test_exact_derivatives_through_newton_steps(name):
    """By forward mode on the tape, the closed loops by the implicit-function theorem."""
    model = load(name)
    integrated = gb.compile(gb.jvp(gb.integrate, model), model)
    ends = gb.jvp(gb.difference, model, configurations=["q0", "q1"])
    apart = gb.compile(ends, model)
    for q, v, xi in steps(model, 3):
        d, e = v, v[::-1]
        end = gb.integrate(model, q, xi)
        A, B = gb.integrate_derivatives(model, q, xi)
        moved = gb.tangent_map(model, end) @ (A @ d + B @ e)
        assert relative(integrated(q, xi, d, e), moved) < 1e-11
        A, B = gb.difference_derivatives(model, q, end)
        assert relative(apart(q, end, d, e), A @ d + B @ e) < 1e-12


def test_interpolation_ends_where_it_should(model):
    for q, _, xi in steps(model, 3, 0.2):
        end = gb.integrate(model, q, xi)
        assert np.abs(gb.interpolate(model, q, end, 0.0) - q).max() < 1e-12
        assert np.abs(gb.interpolate(model, q, end, 1.0) - end).max() < 1e-11
        middle = gb.interpolate(model, q, end, 0.5)
        assert model.loop_gap(middle) < 1e-12
        assert np.abs(gb.difference(model, q, middle) - 0.5 * xi).max() < 1e-13


@pytest.mark.parametrize("name", ["mini_cheetah", "joint_sampler", *IMPLICIT])
def test_compiled(name):
    model = load(name)
    cases = list(steps(model, 9, 0.05))
    q, xi = (np.stack([case[i] for case in cases]) for i in (0, 2))
    end = np.stack([gb.integrate(model, *pair) for pair in zip(q, xi)])
    for fn, arguments in (
        (gb.integrate, (q, xi)), (gb.difference, (q, end)), (gb.tangent_map, (q,)),
        (gb.integrate_derivatives, (q, xi)), (gb.difference_derivatives, (q, end)),
        (gb.interpolate, (q, end, np.full((9, 1), 0.3))),
    ):  # fmt: skip
        compiled = gb.compile(fn, model)
        expected = [fn(model, *(a[i] for a in arguments)) for i in range(9)]
        for found in (compiled(*arguments), [compiled(*(a[0] for a in arguments))]):
            many = isinstance(found, list)
            for i, wanted in enumerate(expected[: 1 if many else 9]):
                outputs = found[0] if many else found
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)
                wanted = wanted if isinstance(wanted, tuple) else (wanted,)
                for x, y in zip(outputs, wanted):
                    assert np.abs((x if many else x[i]) - y).max() < 1e-11, fn.__name__


@pytest.mark.parametrize("name", ["mini_cheetah", "loop_sampler"])
def test_single_precision(name):
    model = load(name)
    integrate = gb.compile(gb.integrate, model, dtype="float32")
    for q, _, xi in steps(model, 5, 0.05):
        found = integrate(q.astype(np.float32), xi.astype(np.float32))
        assert np.abs(found - gb.integrate(model, q, xi)).max() < 2e-5


def test_a_step_out_of_reach_is_refused():
    """No crank-rocker turns its rocker round: floats raise, compiled code says NaN."""
    model = load("four_bar")
    compiled, refused = gb.compile(gb.integrate, model), 0
    for q, _, xi in steps(model, 20, 3.0):
        found = compiled(q, xi)
        try:
            expected = gb.integrate(model, q, xi)
        except gb.ClosureError as error:
            assert "smaller steps" in str(error)
            assert np.all(np.isnan(found))
            refused += 1
        else:
            assert np.abs(found - expected).max() < 1e-11
    assert refused


def test_a_kind_without_derivatives_is_refused():
    """A user's joint that moves in its own way must say how: the sum's derivatives are not its."""

    class Odd(Prismatic):
        kind = "odd"

        def integrate(self, q, v, dt=1.0):
            return q + 2.0 * v * dt

    with pytest.raises(gb.ModelError, match="'odd' defines integrate but not its deriv"):
        Odd().integrate_derivatives(np.zeros(1))


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 3.0])
def test_free_bodies_as_pinocchio_moves_them(size):
    pin = pytest.importorskip("pinocchio")
    robot = pin.Model()
    robot.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    theirs = [3, 4, 5, 0, 1, 2]  # [linear; angular]
    joint, rng = Free(), np.random.default_rng(0)
    for _ in range(5):
        q, x = joint.integrate(joint.neutral(), rng.uniform(-1, 1, 6)), rng.uniform(-1, 1, 6)
        x = size * x / np.linalg.norm(x[:3])
        end = joint.integrate(q, x)
        p, p1 = (y[[0, 1, 2, 4, 5, 6, 3]] for y in (q, end))
        assert np.abs(pin.integrate(robot, p, x[theirs]) - p1).max() < 1e-14
        assert np.abs(pin.difference(robot, p, p1) - x[theirs]).max() < 1e-13 * (1 + size)
        places = np.ix_(theirs, theirs)
        for ours, wanted in (
            (joint.integrate_derivatives(x), pin.dIntegrate(robot, p, x[theirs])),
            (joint.difference_derivatives(x), pin.dDifference(robot, p, p1)),
        ):
            for J, W in zip(ours, wanted):
                # theirs cancel at 1e-3 rad; in fifty digits ours do not (above)
                assert np.abs(J[places] - W).max() < 1e-10 * (1 + np.abs(W).max())


def test_wrong_arguments():
    model = load("four_bar")
    q, _ = model.random_state(0)
    with pytest.raises(gb.InputError, match=r"xi has shape \(3,\), expected \(1,\)"):
        gb.integrate(model, q, np.zeros(3))
    with pytest.raises(gb.ClosureError, match="open"):
        gb.difference(model, q, q + 0.1)
    with pytest.raises(gb.InputError, match=r"q1\[0\].* is nan"):
        gb.difference(model, q, q * np.nan)
    with pytest.raises(gb.InputError, match="t is 'half'"):
        gb.interpolate(model, q, q, "half")
    with pytest.raises(gb.InputError, match=r"t is \[0.1, 0.2\]"):
        gb.interpolate(model, q, q, [0.1, 0.2])
