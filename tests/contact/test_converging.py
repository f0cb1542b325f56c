"""Solvers against each other: sweeps, Newton's steps and ADMM on random problems."""

import numpy as np
import pytest

from grubler.contact.admm import admm
from grubler.contact.gauss_seidel import sweeps, to_tolerance
from grubler.contact.problem import JointLaw, PointLaw, Problem


def random_problem(rng, points, joints, rank=None):
    """G = A Aᵀ of some rank, cut into blocks; some rows approach."""
    laws = [PointLaw(float(rng.uniform(0.2, 0.9))) for _ in range(points)]
    laws += [JointLaw(-0.3, 0.5, 0.2) for _ in range(joints)]
    sizes = [law.rows for law in laws]
    n = sum(sizes)
    A = rng.normal(size=(n, rank or n + 2))
    G, g, at = A @ A.T / n, rng.normal(size=n), np.cumsum([0, *sizes])
    if rank is not None:
        g = A @ rng.normal(size=rank) / np.sqrt(n)
    blocks = [
        [G[at[i] : at[i + 1], at[j] : at[j + 1]] for j in range(len(laws))]
        for i in range(len(laws))
    ]
    return Problem(blocks, [g[at[i] : at[i + 1]] for i in range(len(laws))], laws), G, g


def zero(problem):
    return [np.zeros(law.rows) for law in problem.laws]


@pytest.mark.parametrize("seed", range(12))
def test_sweeps_and_admm_agree(seed):
    problem, G, g = random_problem(np.random.default_rng(seed), 3, 0)
    x, _, _, _ = to_tolerance(problem, zero(problem), (20, 30, 1000), 1e-12)
    y, residual, _ = admm(G, g, [law.friction for law in problem.laws])
    assert residual < 1e-11 and np.abs(problem.residual(x)).max() < 1e-11
    np.testing.assert_allclose(np.concatenate(x), y, atol=1e-8 * (1 + np.abs(y).max()))


@pytest.mark.parametrize("seed", range(8))
def test_singular_problems_are_solved(seed):
    """Five points, six freedoms: the impulses are not unique, the law holds."""
    problem, *_ = random_problem(np.random.default_rng(100 + seed), 5, 0, rank=6)
    x, *_ = to_tolerance(problem, zero(problem), (20, 30, 1000), 1e-11)
    assert np.abs(problem.residual(x)).max() < 1e-10


@pytest.mark.parametrize("seed", range(8))
def test_joints_obey_their_law(seed):
    """u within its bounds, impulses only at the bounds or by friction: by cases."""
    problem, *_ = random_problem(np.random.default_rng(200 + seed), 1, 4)
    x, *_ = to_tolerance(problem, zero(problem), (20, 30, 1000), 1e-13)
    u = problem.velocities(x)
    for law, rate, impulse in list(zip(problem.laws, u, x))[1:]:
        rate, impulse = float(rate[0]), float(impulse[0])
        assert law.low - 1e-11 <= rate <= law.high + 1e-11
        if abs(rate) < 1e-10:
            assert abs(impulse) <= law.hold + 1e-10
        elif law.low + 1e-10 < rate < law.high - 1e-10:  # it slips: friction does all it can
            assert abs(impulse + np.sign(rate) * law.hold) < 1e-9
        else:  # at a bound: friction and the stop push the same way
            assert impulse * np.sign(rate) <= -law.hold + 1e-9


def test_more_sweeps_leave_less():
    problem, *_ = random_problem(np.random.default_rng(0), 4, 2)
    left = []
    for count in (1, 4, 16, 64):
        x, *_ = sweeps(problem, zero(problem), count)
        left.append(np.abs(problem.residual(x)).max())
    assert left[3] < 1e-3 * left[0] and left[3] <= left[2] <= left[1]
