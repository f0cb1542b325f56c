"""Joint kinds: subspace, bias and manifold against derivatives of the transform."""

import numpy as np
import pytest

from conftest import relative
from grubler.algebra.spatial import cross_motion
from grubler.algebra.symbolic import symbols, trace
from grubler.errors import ModelError
from grubler.mechanism.joints import KINDS, Universal

AXIS = np.array([1.0, 2.0, -0.5])


def make(kind):
    options = {}
    if kind not in ("free", "spherical", "fixed"):
        options["axis"] = AXIS
    if kind == "universal":
        options["axis2"] = np.array([0.3, -0.2, 1.0])
    if kind == "helical":
        options["pitch"] = 0.13
    return KINDS[kind](**options)


@pytest.fixture(params=[k for k in KINDS if k != "fixed"])
def joint(request):
    return make(request.param)


def sample(joint, seed):
    rng = np.random.default_rng(seed)
    q = joint.integrate(joint.neutral(), rng.uniform(-1, 1, joint.nv))
    return q, rng.uniform(-1, 1, joint.nv)


def velocity_between(joint, q0, q1, dt):
    """The spatial velocity, in child coordinates, that turns X(q0) into X(q1) in dt."""
    # X(q1) = exp(-[v dt]x) X(q0): read v off the relative transform
    relative_X = joint.transform(q1) @ joint.transform(q0).inverse()
    R = relative_X.E.T
    w = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    return np.concatenate([w, relative_X.r]) / dt


def test_subspace_is_the_derivative_of_the_transform(joint):
    h = 1e-6
    for seed in range(5):
        q, v = sample(joint, seed)
        numeric = velocity_between(
            joint, joint.integrate(q, v, -h), joint.integrate(q, v, h), 2 * h
        )
        # expressed at the midpoint up to O(h)
        assert np.abs(numeric - joint.subspace(q) @ v).max() < 1e-5


def test_bias_is_the_apparent_derivative_of_the_subspace(joint):
    h = 1e-5
    for seed in range(5):
        q, v = sample(joint, seed)
        ends = [joint.subspace(joint.integrate(q, v, t)) for t in (-h, h)]
        numeric = (ends[1] - ends[0]) @ v / (2 * h)
        bias = joint.bias(q, v)
        assert np.abs(numeric - (0.0 if bias is None else bias)).max() < 1e-8


def test_position_derivatives(joint):
    h = 1e-4
    for seed in range(5):
        q, v = sample(joint, seed)
        before, after = joint.integrate(q, v, -h), joint.integrate(q, v, h)
        assert np.abs((after - before) / (2 * h) - joint.derivative(q, v)).max() < 1e-7
        second = (after - 2 * q + before) / h**2
        assert np.abs(second - joint.second(q, v)).max() < 1e-5


def test_difference_inverts_integrate(joint):
    for seed in range(5):
        q, v = sample(joint, seed)
        assert np.abs(joint.difference(q, joint.integrate(q, v)) - v).max() < 1e-12
        tiny = v * 1e-9
        assert np.abs(joint.difference(q, joint.integrate(q, tiny)) - tiny).max() < 1e-15


def test_constant_velocity_is_a_one_parameter_group(joint):
    for seed in range(3):
        q, v = sample(joint, seed)
        once = joint.integrate(q, v, 0.8)
        twice = joint.integrate(joint.integrate(q, v, 0.5), v, 0.3)
        assert np.abs(once - twice).max() < 1e-12


def test_same_numbers_from_symbols(joint):
    q, v = sample(joint, 1)
    for fn, args in (
        (lambda q: joint.transform(q).matrix(), (q,)),
        (joint.subspace, (q,)),
        (joint.derivative, (q, v)),
        (joint.second, (q, v)),
        (lambda q, v: joint.integrate(q, v, 0.3), (q, v)),
    ):
        traced = np.array(trace(fn, [a.shape for a in args])(*args)).squeeze()
        assert np.abs(traced - np.squeeze(fn(*args))).max() < 1e-14
    assert symbols("x", 3).shape == (3,)


def test_bias_matters_in_acceleration():
    """Universal: differentiate v_J(t) numerically in the moving child frame."""
    joint = make("universal")
    q, v = sample(joint, 2)
    a = np.array([0.4, -0.7])
    h = 1e-5

    def vJ(t):
        return joint.subspace(q + v * t + a * t * t / 2) @ (v + a * t)

    numeric = (vJ(h) - vJ(-h)) / (2 * h)
    assert relative(joint.subspace(q) @ a + joint.bias(q, v), numeric) < 1e-8
    assert np.abs(cross_motion(vJ(0), vJ(0))).max() < 1e-15


def test_bad_axes():
    with pytest.raises(ModelError, match="not a direction"):
        KINDS["revolute"](axis=np.zeros(3))
    with pytest.raises(ModelError, match="parallel"):
        Universal(axis=np.array([1.0, 0, 0]), axis2=np.array([2.0, 0, 0]))
