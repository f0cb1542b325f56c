"""Spatial algebra, small solvers and symbols against dense NumPy."""

import numpy as np
import pytest

from grubler.algebra import spatial
from grubler.algebra.linalg import LDL, pivot_order, solve_general, symmetric
from grubler.algebra.symbolic import Differentiable, is_symbolic, symbols, trace
from grubler.errors import InputError

rng = np.random.default_rng(0)


def random_transform():
    q = rng.standard_normal(4)
    return spatial.Transform(
        spatial.quaternion_matrix(q / np.linalg.norm(q)).T, rng.standard_normal(3)
    )


def test_transform_methods_equal_the_matrix():
    X, Y = random_transform(), random_transform()
    m, f, M = rng.standard_normal(6), rng.standard_normal(6), rng.standard_normal((6, 4))
    A = rng.standard_normal((6, 6))
    I = A @ A.T
    assert np.allclose(X.motion(m), X.matrix() @ m)
    assert np.allclose(X.motions(M), X.matrix() @ M)
    assert np.allclose(X.force_back(f), X.matrix().T @ f)
    assert np.allclose(X.forces_back(M), X.matrix().T @ M)
    assert np.allclose(X.congruence(I), X.matrix().T @ I @ X.matrix())
    assert np.allclose(X.sandwich(A, Y), X.matrix().T @ A @ Y.matrix())
    assert np.allclose((X @ Y).matrix(), X.matrix() @ Y.matrix())
    assert np.allclose(X.inverse().matrix() @ X.matrix(), np.eye(6))


def test_cross_products_are_dual():
    v, m, f = rng.standard_normal((3, 6))
    assert np.isclose(spatial.cross_force(v, f) @ m, -f @ spatial.cross_motion(v, m))
    assert np.allclose(spatial.cross_motion(v, v), 0)


def test_spatial_inertia_gives_kinetic_energy():
    mass, com = 2.5, np.array([0.1, -0.2, 0.3])
    A = rng.standard_normal((3, 3))
    inertia = A @ A.T
    w, v = rng.standard_normal((2, 3))
    V = np.concatenate([w, v])
    direct = 0.5 * mass * np.sum((v + np.cross(w, com)) ** 2) + 0.5 * w @ inertia @ w
    assert np.isclose(0.5 * V @ spatial.spatial_inertia(mass, com, inertia) @ V, direct)


def test_quaternions_round_trip():
    for _ in range(50):
        q = rng.standard_normal(4)
        q /= np.linalg.norm(q) * (1 if q[0] > 0 else -1)
        R = spatial.quaternion_matrix(q)
        assert np.allclose(R @ R.T, np.eye(3)) and np.isclose(np.linalg.det(R), 1)
        assert np.allclose(spatial.matrix_quaternion(R), q)
        w = spatial.quaternion_log(q)
        assert np.allclose(spatial.quaternion_exp(w), q)
    for turn in np.vstack([np.eye(3), -np.eye(3)]) * np.pi:
        R = spatial.quaternion_matrix(spatial.quaternion_exp(turn))
        assert np.allclose(spatial.quaternion_matrix(spatial.matrix_quaternion(R)), R)


def test_right_angles_are_exact():
    R = spatial.rpy_matrix(1.570796326795, 0.0, 3.14159265359)
    assert set(np.unique(R)) <= {-1.0, 0.0, 1.0}
    assert not set(np.unique(spatial.rpy_matrix(1.5707, 0, 0))) <= {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("n", [1, 2, 3, 6, 11])
def test_ldl(n):
    A = rng.standard_normal((n, n))
    A = A @ A.T + np.eye(n)
    b, B = rng.standard_normal(n), rng.standard_normal((n, 3))
    assert np.allclose(LDL(A).solve(b), np.linalg.solve(A, b))
    assert np.allclose(LDL(A).solve(B), np.linalg.solve(A, B))
    assert np.allclose(LDL(A).quadratic(B), B.T @ np.linalg.solve(A, B))


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_general_solve_with_pivots_chosen_beforehand(n):
    A, B = rng.standard_normal((n, n)), rng.standard_normal((n, 2))
    A[0, 0] = 0.0 if n > 1 else A[0, 0]  # a diagonal pivot that fails without the order
    assert np.allclose(solve_general(A, B, pivot_order(A)), np.linalg.solve(A, B))


def test_symmetric_keeps_the_upper_triangle():
    A = rng.standard_normal((4, 4))
    assert np.array_equal(symmetric(A), np.triu(A) + np.triu(A, 1).T)


def test_ldl_6x6_is_cheap():
    """Branch-free and without zeros: far below the 588 operations of a generic symbolic solve."""
    f = trace(lambda A, b: LDL(symmetric(A)).solve(b), [(6, 6), (6,)])
    moves = 36 + 6 + 6
    assert f.n_instructions() - moves < 240


def test_differentiable_function():
    f = Differentiable(lambda x: np.stack([np.sin(x[0]) * x[1], x[1] ** 3]), 2)
    x, d = np.array([0.3, 0.7]), np.array([1.1, -0.4])
    assert np.allclose(f.value(x), [np.sin(0.3) * 0.7, 0.7**3])
    assert np.allclose(f.jacobian(x), [[np.cos(0.3) * 0.7, np.sin(0.3)], [0, 3 * 0.49]])
    curvature = [-np.sin(0.3) * 0.7 * 1.21 + 2 * np.cos(0.3) * 1.1 * -0.4, 6 * 0.7 * 0.16]
    assert np.allclose(f.curvature(x, d), curvature)
    assert is_symbolic(f.jacobian(symbols("x", 2)))


def test_function_outside_the_dialect():
    with pytest.raises(InputError, match=r"np\.stack"):
        Differentiable(lambda x: np.array([x[0], x[1]]), 2).value(np.zeros(2))
