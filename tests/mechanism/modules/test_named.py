"""Modules that a description names: Tello's differentials and parallel belts."""

import numpy as np
import pytest

import grubler as gb
from grubler.algebra.symbolic import Differentiable
from grubler.mechanism.loops.modules import NAMED, parallel_belts, tello_hip, tello_knee
from grubler.robots.tello import hip_gamma, hip_phi, knee_gamma, knee_phi

LINKS = np.random.default_rng(0).uniform(-0.3, 0.3, (20, 2))


def rotors(n: int, kind="revolute"):
    b = gb.ModelBuilder("rotors")
    for i in range(n):
        b.add_body(f"b{i}", 1.0, inertia=(1, 0, 0, 1, 0, 1))
        b.add_joint(f"j{i}", kind, "world", f"b{i}")
    return b.build().bodies


@pytest.mark.parametrize(
    ("make", "phi", "gamma"),
    [
        (tello_hip, hip_phi, hip_gamma),
        (tello_knee, knee_phi, knee_gamma),
    ],
)
class TestDifferentials:
    def test_closes_the_implicit_form(self, make, phi, gamma):
        bodies = rotors(4)
        module = make("d", bodies[:2], bodies[2:])
        for x in LINKS:
            y = module.value(x)
            assert np.allclose(y, gamma(x), atol=1e-12)
            assert np.abs(phi(np.concatenate([y, x]))).max() < 1e-12

    def test_derivatives(self, make, phi, gamma):
        """Against the twin: the differentials implicit, G and g by partitioning."""
        bodies = rotors(4)
        module = make("d", bodies[:2], bodies[2:])
        twin, exact = Differentiable(phi, 4), Differentiable(gamma, 2)
        rng = np.random.default_rng(1)
        for x in LINKS:
            d = rng.uniform(-1, 1, 2)
            y, J = module.value(x), module.jacobian(x)
            K = twin.jacobian(np.concatenate([y, x]))
            G = -np.linalg.solve(K[:, :2], K[:, 2:])
            assert np.allclose(J, G, rtol=1e-9, atol=1e-10)
            k = -twin.curvature(np.concatenate([y, x]), np.concatenate([J @ d, d]))
            g = np.linalg.solve(K[:, :2], k)
            assert np.allclose(module.curvature(x, d), g, rtol=1e-9, atol=1e-9)
            assert np.allclose(module.curvature(x, d), exact.curvature(x, d), rtol=1e-8, atol=1e-8)

    def test_other_branch_closes_too(self, make, phi, gamma):
        bodies = rotors(4)
        module = make("d", bodies[:2], bodies[2:])
        other = module.with_branch(-module.branch)
        for x in LINKS[:5]:
            y = other.value(x)
            assert np.abs(phi(np.concatenate([y, x]))).max() < 1e-12
            assert np.abs(y - module.value(x)).max() > 0.1

    def test_bad_descriptions(self, make, phi, gamma):
        bodies = rotors(4)
        with pytest.raises(gb.ModelError, match="two motors to two links"):
            make("d", bodies[:1], bodies[2:])
        with pytest.raises(gb.ModelError, match="branch of differential"):
            make("d", bodies[:2], bodies[2:], branch=0)


def test_tello_with_modules_equals_tello():
    """The whole robot: closed forms of the zoo against the modules."""
    model = gb.robots.load("tello_explicit")
    rng = np.random.default_rng(0)
    for cluster in model.clusters:
        if len(cluster.bodies) != 4:
            continue
        (step,) = cluster.embedding.steps
        make = tello_hip if "hip" in step.name else tello_knee
        module = make(step.name, step.inputs, step.outputs)
        for x in LINKS[:5]:
            d = rng.uniform(-1, 1, 2)
            assert np.allclose(module.value(x), step.value(x), atol=1e-12)
            assert np.allclose(module.jacobian(x), step.jacobian(x), rtol=1e-9, atol=1e-9)
            assert np.allclose(module.curvature(x, d), step.curvature(x, d), rtol=1e-8, atol=1e-8)


class TestBelts:
    def test_equals_linear_couplings(self):
        """The zoo's chain of parallel belts: the same linear map, all rotors at once."""
        model = gb.robots.load("pbt_chain", n=4)
        for cluster in model.clusters:
            joint = cluster.embedding
            n = len(joint.coordinates)
            if n < 2:
                continue
            G, _, _ = joint.velocity_map({i: model.reference[i] for i in cluster.bodies}, None)
            dependent = [c for c in range(joint.nv_span) if c not in joint.independent]
            rows = G[dependent]
            gears = [rows[i, i] for i in range(n)]
            belts = [list(rows[i, : i + 1] / gears[i]) for i in range(n)]
            bodies = rotors(2 * n)
            module = parallel_belts("belts", bodies[:n], bodies[n:], gears, belts)
            x = np.arange(1.0, n + 1)
            assert np.allclose(module.jacobian(x), rows) and np.allclose(module.value(x), rows @ x)
            assert not module.curvature(x, x).any() and "parallel belts" in module.describe()

    def test_bad_descriptions(self):
        bodies = rotors(4)
        with pytest.raises(gb.ModelError, match="give as many of each"):
            parallel_belts("b", bodies[:2], bodies[2:], [6.0])
        with pytest.raises(gb.ModelError, match="rotor 2 runs along 2 links"):
            parallel_belts("b", bodies[:2], bodies[2:], [6.0, 6.0], [[1.0], [1.0]])


def test_table_of_named_modules():
    assert set(NAMED) == {"parallel_belts", "tello_hip", "tello_knee"}
    bodies = rotors(4)
    assert NAMED["tello_hip"]("d", bodies[:2], bodies[2:]).describe().startswith("differential")
