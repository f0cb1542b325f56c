"""The lemmas of the spatial operator algebra, on a serial chain, a tree, and clusters."""

from itertools import pairwise

import numpy as np
import pytest
from cases import state

import grubler as gb
from conftest import load, relative
from grubler.constrained import operators

ROBOTS = ["arm7", "quadruped", "joint_sampler", "mini_cheetah", "six_bar", "loop_sampler"]


@pytest.fixture(scope="module", params=ROBOTS)
def op(request):
    model = load(request.param)
    q = state(model, 1)[0]
    found = operators(model, q)
    found.q = q
    return found


def equal(x, y, tolerance=1e-10):
    x, y = (z.dense() if hasattr(z, "dense") else z for z in (x, y))
    assert x.shape == y.shape
    assert np.abs(x - y).max(initial=0.0) < tolerance * (1 + np.abs(y).max(initial=0.0))


def one(op, n=None):
    return op.identity(n)


def test_products_are_those_of_the_matrices(op):
    rng = np.random.default_rng(0)
    for name in ("E_phi", "phi", "E_psi", "psi", "H", "M", "P", "D", "G", "K", "tau_bar", "Omega",
                 "Upsilon", "mass_matrix", "mass_matrix_inverse"):  # fmt: skip
        A = getattr(op, name)
        x, y = rng.normal(size=A.shape[1]), rng.normal(size=A.shape[0])
        equal(A @ x, A.dense() @ x)
        equal(A.T @ y, A.dense().T @ y)


def test_newton_euler_factorization(op):
    """𝓜 = H φ M φ* H* (0.14)."""
    equal(op.mass_matrix, gb.mass_matrix(op.model, op.q))


def test_phi_and_psi_are_inverses(op):
    """(0.12), (0.27), and nilpotency."""
    equal(op.phi @ (one(op) - op.E_phi), one(op))
    equal(op.psi @ (one(op) - op.E_psi), one(op))
    E = op.E_phi.dense()
    assert np.abs(np.linalg.matrix_power(E, len(op.states))).max() == 0.0


def test_articulated_inertia(op):
    """(0.25) and (0.26)."""
    free = op.P - op.P @ op.H.T @ op.D_inverse @ op.H @ op.P
    equal(op.P - op.E_phi @ free @ op.E_phi.T, op.M)
    equal(op.H @ op.P @ op.H.T, op.D)
    equal(op.P @ op.H.T @ op.D_inverse, op.G)
    equal(op.E_phi @ op.G, op.K)
    equal(op.E_phi @ op.tau_bar, op.E_psi)


def test_lemma_1_innovations_factorization(op):
    factor = one(op, op.nv) + op.H @ op.phi @ op.K
    equal(factor @ op.D @ factor.T, op.mass_matrix)


def test_lemma_2_inverse_of_the_factor(op):
    factor = one(op, op.nv) + op.H @ op.phi @ op.K
    equal(factor @ (one(op, op.nv) - op.H @ op.psi @ op.K), one(op, op.nv), 1e-9)


def test_lemma_3_inverse_of_the_mass_matrix(op):
    equal(op.mass_matrix_inverse @ op.mass_matrix, one(op, op.nv), 1e-9)


def test_lemma_4(op):
    equal((one(op, op.nv) - op.H @ op.psi @ op.K) @ op.H @ op.phi, op.H @ op.psi)


def test_admittance(op):
    """Λ = B* Ω B (0.34)."""
    frames = [op.model.frames[0].name, op.model.frames[-1].name]
    equal(op.inverse_osim(frames), gb.inverse_osim(op.model, op.q, frames))


def ancestors(op, k):
    path = [k]
    while op.states[path[-1]].cluster.parent is not None:
        path.append(op.states[path[-1]].cluster.parent)
    return path


def test_lemma_5_on_paths(op):
    """Ω = Υ + ψ̃* Υ + Υ ψ̃ between a cluster and its ancestors; across branches through the
    nearest common ancestor."""
    Omega, Upsilon, psi = (getattr(op, n).dense() for n in ("Omega", "Upsilon", "psi"))
    strict = psi - np.eye(len(psi))
    lemma = Upsilon + strict.T @ Upsilon + Upsilon @ strict
    edges = np.cumsum([0, *[state.S.shape[0] for state in op.states]])
    rows = [slice(a, b) for a, b in pairwise(edges)]
    serial = True
    for i in range(len(rows)):
        for k in range(len(rows)):
            up, others = ancestors(op, i), ancestors(op, k)
            if i in others or k in up:
                equal(lemma[rows[i], rows[k]], Omega[rows[i], rows[k]])
                continue
            serial = False
            common = next((j for j in up if j in others), None)
            value = np.zeros((edges[i + 1] - edges[i], edges[k + 1] - edges[k]))
            if common is not None:
                j = rows[common]
                value = psi[j, rows[i]].T @ Upsilon[j, j] @ psi[j, rows[k]]
            equal(value, Omega[rows[i], rows[k]])
    if serial:
        equal(lemma, Omega)
        equal(op.Upsilon - op.E_psi.T @ op.Upsilon @ op.E_psi, op.H.T @ op.D_inverse @ op.H)


def test_lemma_6(op):
    equal(op.P - op.E_psi @ op.P @ op.E_psi.T, op.M)


def test_lemma_7(op):
    strict = op.psi - one(op)
    equal(op.psi @ op.E_psi, strict)  # (a)
    equal(op.E_psi @ op.psi, strict)
    equal(op.phi, op.psi @ (one(op) + op.K @ op.H @ op.phi))  # (c)
    equal(op.phi, (one(op) + op.phi @ op.K @ op.H) @ op.psi)
    equal(op.H @ op.psi @ op.M @ op.psi.T @ op.H.T, op.D)  # (d)


def test_lemma_7b(op):
    """Unlike Lemma .5 it holds on trees as it stands: forces of branches meet once."""
    strict = op.psi - one(op)
    equal(op.psi @ op.M @ op.psi.T, op.P + strict @ op.P + op.P @ strict.T)


def test_products_cost_the_order_of_n():
    """The product with 𝓜⁻¹, traced: a straight line in the number of joints."""
    counts = []
    for n in (4, 8, 12):
        model = gb.robots.load("robot_a", n=n, seed=1)
        fn = lambda model, q, tau: operators(model, q).mass_matrix_inverse @ tau  # noqa: E731
        counts.append(gb.count_operations(fn, model).total)
    assert abs((counts[2] - counts[1]) / (counts[1] - counts[0]) - 1) < 0.02


def test_forward_dynamics_by_operators():
    """β̈ = [1 - HψK]* D⁻¹ [1 - HψK] (T - C) (0.31)."""
    model = load("mini_cheetah")
    q, v, tau = state(model)
    a = operators(model, q).mass_matrix_inverse @ (tau - gb.bias_force(model, q, v))
    assert relative(a, gb.forward_dynamics(model, q, v, tau)) < 1e-9


def test_bad_products():
    op = operators(load("arm7"), np.zeros(7))
    with pytest.raises(gb.InputError, match="do not meet"):
        op.H @ op.H
    with pytest.raises(gb.InputError, match=r"give a vector \(42,\), or multiply .dense"):
        op.H @ [0.0, 0.0, 0.0]
    with pytest.raises(gb.InputError, match="do not add up"):
        op.H + op.M
