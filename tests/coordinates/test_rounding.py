"""What rounding leaves in a description changes neither the code nor the choice of coordinates."""

import numpy as np
import pytest

import grubler as gb
from grubler.algebra.linalg import pivot_order
from grubler.algebra.spatial import axis_rotation
from grubler.coordinates.partition import pivots

Z = np.array([0.0, 0.0, 1.0])


def turned(angle, axis=Z):
    return axis_rotation(np.asarray(axis, float), np.cos(angle), np.sin(angle))


def arm(seed=None) -> gb.Model:
    """Four links; with a seed the numbers are what a program gets from poses in the world."""
    rng = np.random.default_rng(seed)

    def noise(x):
        x = np.asarray(x, float)
        return x if seed is None else x + 1e-16 * rng.standard_normal(x.shape)

    b = gb.ModelBuilder("arm")
    parent = "world"
    for i, axis in enumerate(("z", "y", "y", "z")):
        axis = np.eye(3)["xyz".index(axis)]
        pose = np.eye(3) if seed is None else turned(rng.uniform(-3, 3), axis)
        b.add_body(f"link{i}", 1.0 + i, noise((0.0, 0.0, 0.2)), noise((0.02, 0, 0, 0.03, 0, 0.01)))
        b.add_joint(
            f"joint{i}", "revolute", parent, f"link{i}", xyz=noise((0.0, 0.1, 0.3)),
            R=pose.T @ pose, axis=noise(axis),
        )  # fmt: skip
        parent = f"link{i}"
    b.add_frame("tool", parent, noise((0.0, 0.0, 0.1)), R=noise(np.eye(3)))
    return b.build()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", [gb.forward_dynamics, gb.inverse_dynamics])
def test_rounding_costs_no_operation(algorithm, seed):
    clean, noisy = arm(), arm(seed)
    counts = [gb.compile(algorithm, m, lanes=1).operations.total for m in (clean, noisy)]
    assert counts[0] == counts[1]
    state = (*clean.random_state(1), np.ones(4))
    assert np.abs(algorithm(clean, *state) - algorithm(noisy, *state)).max() < 1e-12
    placement = noisy.frame("tool").placement
    assert np.array_equal(placement.E, np.eye(3)) and placement.r[0] == placement.r[1] == 0.0


def test_small_angles_and_lengths_stay():
    b = gb.ModelBuilder("nearly straight")
    b.add_body("link", 1.0, (1e-9, 0.0, 0.5), (1.0, 1e-9, 0, 1.0, 0, 1.0))
    b.add_joint("hinge", "revolute", "world", "link", xyz=(2e-9, 0.0, 1.0), R=turned(3e-9))
    body = b.build().bodies[0]
    placement = body.joint.placement
    assert (placement.E[0, 1], placement.r[0]) == (pytest.approx(3e-9), 2e-9)
    assert (body.com[0], body.inertia[0, 1]) == (1e-9, 1e-9)


def test_numbers_of_a_model_are_read_only():
    body = arm(0).bodies[1]
    for x in (body.joint.placement.E, body.joint.placement.r, body.com, body.inertia):
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 1.0


@pytest.mark.parametrize("seed", range(10))
def test_equal_pivots_are_chosen_alike(seed):
    """Legs of a symmetric platform differ in rounding alone, which must not choose coordinates."""
    rng = np.random.default_rng(seed)

    def noisy(A):
        return np.array(A) * (1 + 1e-15 * rng.standard_normal(np.shape(A)))

    h = np.sqrt(0.5)
    equal = noisy([[1.0, 0.0, h, h], [0.0, 1.0, h, -h]])
    assert pivots(equal, 2, [[0, 1, 2, 3]], prefer_last=False) == [0, 1]
    assert pivots(noisy([[1.0, 0.5]]), 1, [[0, 1]], prefer_last=True) == [1]
    assert pivot_order(noisy([[1.0, 0.0, 2.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 1.0]])) == (0, 1, 2)
