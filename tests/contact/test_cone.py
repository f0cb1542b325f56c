"""The exact solve of one point, against Coulomb's law with fifty digits and against a search."""

import mpmath
import numpy as np
import pytest

import grubler as gb
from grubler.contact.cone import OPEN, SLIP, STICK, natural_map, point, projected, solve_point


def cases(count, condition=10.0, seed=0):
    """Random symmetric positive definite A (3, 3), friction and b (3,) of any size."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        A = Q @ np.diag(condition ** rng.uniform(-0.5, 0.5, 3)) @ Q.T
        yield (
            A,
            float(rng.choice([0.01, 0.3, 0.7, 1.5])),
            rng.normal(size=3) * 10.0 ** rng.uniform(-3, 3),
        )


def violated(A, mu, b, x, mode) -> float:
    """How far Coulomb's law is from holding, relative to b: by its three cases, no projection."""
    u, size = A @ x + b, np.linalg.norm(b)
    if mode == OPEN:
        return max(np.abs(x).max(), -u[2] / size)
    pressed = max(0.0, -x[2])
    if mode == STICK:
        return max(np.abs(u).max() / size, pressed, np.hypot(*x[:2]) / x[2] - mu)
    against = np.abs(u[:2] / np.hypot(*u[:2]) + x[:2] / np.hypot(*x[:2])).max()
    return max(abs(u[2]) / size, pressed, abs(np.hypot(*x[:2]) / (mu * x[2]) - 1), against)


@pytest.mark.parametrize(("condition", "tolerance"), [(1.0, 1e-13), (10.0, 1e-12), (1e3, 1e-9)])
def test_each_solution_obeys_coulombs_law(condition, tolerance):
    modes = set()
    for A, mu, b in cases(1000, condition):
        x, mode, _ = solve_point(point(A, mu), b)
        assert violated(A, mu, b, x, mode) < tolerance
        modes.add(float(mode))
    assert modes == {OPEN, STICK, SLIP}


def test_the_natural_map_is_zero_at_solutions_alone():
    rng = np.random.default_rng(3)
    for A, mu, b in cases(300):
        p = point(A, mu)
        x, _, _ = solve_point(p, b)
        assert np.abs(natural_map(x, A @ x + b, mu, A[2, 2])).max() < 1e-13 * np.linalg.norm(b)
        other = projected(x + 0.1 * np.linalg.norm(x + 1e-3 * b) * rng.normal(size=3), mu)
        off = np.abs(other - x).max()
        if off > 1e-3 * np.abs(b).max():
            map_ = natural_map(other, A @ other + b, mu, A[2, 2])
            assert np.abs(map_).max() > 1e-6 * np.abs(b).max()


def test_projection_is_the_nearest_point_of_the_cone():
    rng = np.random.default_rng(4)
    for _ in range(300):
        x, mu = rng.normal(size=3), float(rng.uniform(0, 2))
        best = projected(x, mu)
        assert np.hypot(*best[:2]) <= mu * best[2] + 1e-14
        others = rng.normal(size=(2000, 3)) * 2
        others[:, 2] = np.abs(others[:, 2])
        shrink = np.minimum(1, mu * others[:, 2] / np.hypot(others[:, 0], others[:, 1]))
        others[:, :2] *= shrink[:, None]
        assert np.linalg.norm(others - x, axis=1).min() >= np.linalg.norm(best - x) - 1e-14
        near = best + 1e-4 * (others - best)  # the cone is convex
        assert np.linalg.norm(near - x, axis=1).min() >= np.linalg.norm(best - x) - 1e-14


def exact_slip(A, mu, b):
    """The impulse of a slipping point with fifty digits: the direction of slip by Newton's method
    on the angle, from a search over the circle; no Schur complement, no α."""
    mpmath.mp.dps = 50
    A, b, mu = mpmath.matrix(A.tolist()), mpmath.matrix(b.tolist()), mpmath.mpf(mu)

    def state(angle):
        d = mpmath.cos(angle), mpmath.sin(angle)
        normal = -b[2] / (A[2, 2] + mu * (A[2, 0] * d[0] + A[2, 1] * d[1]))
        x = mpmath.matrix([mu * normal * d[0], mu * normal * d[1], normal])
        return d, x, A * x + b

    def across(angle):
        d, _, u = state(angle)
        return u[0] * d[1] - u[1] * d[0]

    found = []
    grid = np.linspace(0, 2 * np.pi, 721)
    values = [float(across(mpmath.mpf(float(a)))) for a in grid]
    for k in range(720):
        if values[k] * values[k + 1] <= 0:
            angle = mpmath.findroot(across, (float(grid[k]), float(grid[k + 1])), solver="anderson")
            d, x, u = state(angle)
            if x[2] > 0 and u[0] * d[0] + u[1] * d[1] <= 0:
                found.append(np.array([float(v) for v in x]))
    return found


def test_slipping_points_agree_with_fifty_digits():
    seen = 0
    for A, mu, b in cases(60, seed=7):
        x, mode, _ = solve_point(point(A, mu), b)
        if mode != SLIP:
            continue
        roots = exact_slip(A, mu, b)
        assert roots
        assert min(np.abs(r - x).max() for r in roots) < 1e-13 * np.abs(x).max()
        seen += 1
    assert seen > 10


def test_points_without_friction_only_push():
    for A, _, b in cases(100):
        x, mode, _ = solve_point(point(A, 0.0), b)
        u = A @ x + b
        assert np.all(x[:2] == 0.0)
        if b[2] < 0:
            assert abs(u[2]) < 1e-14 * abs(b[2]) and mode == SLIP
        else:
            assert np.all(x == 0.0) and mode == OPEN


def test_a_point_at_rest_stays_so():
    x, mode, _ = solve_point(point(np.eye(3), 0.5), np.zeros(3))
    assert np.all(x == 0.0) and mode == OPEN
    x, mode, _ = solve_point(point(np.eye(3), 0.5), np.array([0.0, 0.0, -1.0]))
    np.testing.assert_allclose(x, [0, 0, 1], atol=1e-15)
    assert mode == STICK


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_solves_are_those_of_floats(dtype):
    from grubler.compiler import compile_function

    def law(A, b):
        return solve_point(point(A, 0.6), b)[0]

    call = compile_function(law, [(3, 3), (3,)], dtype=dtype)
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    for A, _, b in cases(200, seed=9):
        expected = law(A, b)
        found = call(A, b)
        assert np.abs(found - expected).max() <= tolerance * (
            np.abs(expected).max() + np.abs(b).max()
        )
    assert gb.contact_dynamics is not None
