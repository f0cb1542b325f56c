"""Plain trees read from URDF equal Pinocchio to 1e-10."""

import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

import facts
import grubler as gb
from grubler.formats import FormatWarning, load_urdf

pin = pytest.importorskip("pinocchio")

ROBOTS = {  # file below the robots of example-robot-data, base
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "fixed"),
    "kinova": ("kinova_description/robots/kinova.urdf", "fixed"),  # continuous joints
    "solo12": ("solo_description/robots/solo12.urdf", "free"),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", "free"),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "free"),
}


def urdf(path: str) -> Path:
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return Path(package.locate_file(f"cmeel.prefix/share/example-robot-data/robots/{path}"))


def quietly_loaded(path: Path, base: str = "fixed") -> gb.Model:
    """The model without the warnings about friction, transmissions and Gazebo."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        return load_urdf(path, base=base)


class Twin:
    """A robot in both libraries, and the maps between their coordinates."""

    def __init__(self, path: Path, base: str):
        self.model = quietly_loaded(path, base)
        root = [pin.JointModelFreeFlyer()] if base == "free" else []
        self.pin = pin.buildModelFromUrdf(str(path), *root)
        self.data = self.pin.createData()
        joints = [
            {"name": name, "idx_q": j.idx_q, "idx_v": j.idx_v, "nq": j.nq, "nv": j.nv}
            for name, j in zip(self.pin.names, self.pin.joints)
        ]
        self.iq, self.iv = facts.from_pinocchio(self.model, joints)
        assert (self.pin.nq, self.pin.nv) == (len(self.iq), len(self.iv))

    def q(self, q):
        """Pinocchio's q: scalar last in quaternions, (cos, sin) for continuous joints."""
        spanning = []
        for body in self.model.bodies:
            x = q[self.model.clusters[body.index].q]
            spanning += [np.cos(x[0]), np.sin(x[0])] if self._on_circle(body) else [*x]
        result = np.empty(self.pin.nq)
        result[self.iq] = spanning
        return result

    def _on_circle(self, body):
        return body.joint.kind == "continuous"

    def v(self, v):
        result = np.empty(self.pin.nv)
        result[self.iv] = v
        return result


@pytest.fixture(scope="module", params=ROBOTS)
def twin(request):
    path, base = ROBOTS[request.param]
    return Twin(urdf(path), base)


@pytest.fixture(params=range(4))
def state(request, twin):
    """A random state of the twin, with an acceleration and a generalized force."""
    q, v = twin.model.random_state(request.param)
    rng = np.random.default_rng(request.param)
    return q, v, rng.uniform(-1, 1, twin.model.nv), rng.uniform(-10, 10, twin.model.nv)


def assert_equal(actual, expected):
    assert facts.relative_error(actual, expected) < 1e-10


def test_dynamics(twin, state):
    (q, v, a, tau), model, iv = state, twin.model, twin.iv
    pq, pv = twin.q(q), twin.v(v)
    known = pin.rnea(twin.pin, twin.data, pq, pv, twin.v(a))
    assert_equal(gb.inverse_dynamics(model, q, v, a), known[iv])
    known = pin.nonLinearEffects(twin.pin, twin.data, pq, pv)
    assert_equal(gb.bias_force(model, q, v), known[iv])
    M = np.triu(pin.crba(twin.pin, twin.data, pq))
    M = M + np.triu(M, 1).T
    assert_equal(gb.mass_matrix(model, q), M[np.ix_(iv, iv)])
    known = pin.aba(twin.pin, twin.data, pq, pv, twin.v(tau))
    assert_equal(gb.forward_dynamics(model, q, v, tau), known[iv])


def test_derivatives(twin, state):
    (q, v, a, tau), model = state, twin.model
    pq, pv, both = twin.q(q), twin.v(v), np.ix_(twin.iv, twin.iv)
    dq, dv, M = pin.computeRNEADerivatives(twin.pin, twin.data, pq, pv, twin.v(a))
    M = np.triu(M)
    ours = gb.inverse_dynamics_derivatives(model, q, v, a)
    for got, known in zip(ours, (dq, dv, M + np.triu(M, 1).T), strict=True):
        assert_equal(got, known[both])
    dq, dv, inverse = pin.computeABADerivatives(twin.pin, twin.data, pq, pv, twin.v(tau))
    inverse = np.triu(inverse)
    ours = gb.forward_dynamics_derivatives(model, q, v, tau)
    for got, known in zip(ours, (dq, dv, inverse + np.triu(inverse, 1).T), strict=True):
        assert_equal(got, known[both])


def test_links(twin, state):
    """Pose, Jacobian and acceleration bias of every link, those on fixed joints included."""
    (q, v, _, _), model = state, twin.model
    pq, pv = twin.q(q), twin.v(v)
    pin.forwardKinematics(twin.pin, twin.data, pq, pv, np.zeros(twin.pin.nv))
    pin.updateFramePlacements(twin.pin, twin.data)
    swap = [3, 4, 5, 0, 1, 2]
    for i, frame in enumerate(twin.pin.frames):
        if frame.type != pin.FrameType.BODY or frame.name in ("universe", "world"):
            continue
        R, p = gb.frame_pose(model, q, frame.name)
        assert_equal(R, twin.data.oMf[i].rotation)
        np.testing.assert_allclose(p, twin.data.oMf[i].translation, atol=1e-11)
        J = pin.computeFrameJacobian(twin.pin, twin.data, pq, i, pin.ReferenceFrame.LOCAL)
        assert_equal(gb.frame_jacobian(model, q, frame.name), J[swap][:, twin.iv])
        bias = pin.getFrameAcceleration(twin.pin, twin.data, i, pin.ReferenceFrame.LOCAL).vector
        ours = gb.frame_acceleration_bias(model, q, v, frame.name)
        np.testing.assert_allclose(ours, bias[swap], atol=1e-10 * (1 + np.abs(bias).max()))


AXES = {
    "local": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
    "world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


@pytest.mark.parametrize("axes", AXES)
def test_frames_in_all_axes(twin, state, axes):
    (q, v, a, _), model = state, twin.model
    pq, pv, pa = twin.q(q), twin.v(v), twin.v(a)
    pin.forwardKinematics(twin.pin, twin.data, pq, pv, pa)
    pin.computeJointJacobians(twin.pin, twin.data, pq)
    pin.updateFramePlacements(twin.pin, twin.data)
    swap = [3, 4, 5, 0, 1, 2]
    accelerations = pin.getFrameAcceleration
    if axes == "world_aligned":  # the rate of the velocity there is that of the point
        accelerations = pin.getFrameClassicalAcceleration
    frames = [(i, f) for i, f in enumerate(twin.pin.frames) if f.type == pin.FrameType.BODY]
    for i, frame in frames[1::3]:
        known = pin.getFrameVelocity(twin.pin, twin.data, i, AXES[axes]).vector[swap]
        ours = gb.frame_velocity(model, q, v, frame.name, axes=axes)
        np.testing.assert_allclose(ours, known, atol=1e-10)
        known = pin.getFrameJacobian(twin.pin, twin.data, i, AXES[axes])[swap][:, twin.iv]
        J = gb.frame_jacobian(model, q, frame.name, axes=axes)
        assert_equal(J, known)
        known = accelerations(twin.pin, twin.data, i, AXES[axes]).vector[swap]
        ours = gb.frame_acceleration(model, q, v, a, frame.name, axes=axes)
        np.testing.assert_allclose(ours, known, atol=1e-10 * (1 + np.abs(known).max()))
        drift = gb.frame_acceleration_bias(model, q, v, frame.name, axes=axes)
        np.testing.assert_allclose(J @ a + drift, ours, atol=1e-11 * (1 + np.abs(ours).max()))


def test_centre_of_mass(twin, state):
    (q, v, a, _), model = state, twin.model
    pin.centerOfMass(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a))
    assert_equal(gb.com(model, q), twin.data.com[0])
    np.testing.assert_allclose(gb.com_velocity(model, q, v), twin.data.vcom[0], atol=1e-11)
    np.testing.assert_allclose(gb.com_acceleration(model, q, v, a), twin.data.acom[0], atol=1e-10)
    known = pin.jacobianCenterOfMass(twin.pin, twin.data, twin.q(q))
    assert_equal(gb.com_jacobian(model, q), known[:, twin.iv])
    assert model.mass == pytest.approx(pin.computeTotalMass(twin.pin), rel=1e-12)


def test_inverse_gravity_and_coriolis(twin, state):
    (q, v, _, _), model, iv = state, twin.model, twin.iv
    pq, pv = twin.q(q), twin.v(v)
    inverse = pin.computeMinverse(twin.pin, twin.data, pq)
    inverse = np.triu(inverse) + np.triu(inverse, 1).T
    assert_equal(gb.mass_matrix_inverse(model, q), inverse[np.ix_(iv, iv)])
    known = pin.computeGeneralizedGravity(twin.pin, twin.data, pq)
    assert_equal(gb.gravity_force(model, q), known[iv])
    C = gb.coriolis_matrix(model, q, v)
    known = pin.computeCoriolisMatrix(twin.pin, twin.data, pq, pv)[np.ix_(iv, iv)]
    assert_equal(C @ v, known @ v)
    assert np.abs(np.sum((C - known) * np.outer(v, v))) < 1e-9 * (1 + np.abs(C).max())


def test_regressor(twin, state):
    """Both times their own parameters; a body's columns are the same where its axes are."""
    (q, v, a, _), model, iv = state, twin.model, twin.iv
    known = pin.computeJointTorqueRegressor(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a))
    Y, order = gb.regressor(model, q, v, a), [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # their xy, yy, xz
    joints = {name: i - 1 for i, name in enumerate(twin.pin.names)}
    for body in model.bodies:
        name = body.joint.name if body.joint.name in joints else "root_joint"
        theirs = known[:, 10 * joints[name] : 10 * joints[name] + 10][iv][:, order]
        ours = Y[:, 10 * body.index : 10 * body.index + 10]
        np.testing.assert_allclose(ours, theirs, atol=1e-10 * (1 + np.abs(theirs).max()))


def test_joint_reactions(twin, state):
    (q, v, a, _), model = state, twin.model
    pin.rnea(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a))
    ours = gb.joint_reactions(model, q, v, a)
    joints = {name: i for i, name in enumerate(twin.pin.names)}
    for body in model.bodies:
        name = body.joint.name if body.joint.name in joints else "root_joint"
        known = twin.data.f[joints[name]].vector[[3, 4, 5, 0, 1, 2]]
        np.testing.assert_allclose(ours[body.index], known, atol=1e-10 * (1 + np.abs(known).max()))


def test_limits(twin):
    model = twin.model
    lower, upper = twin.pin.lowerPositionLimit, twin.pin.upperPositionLimit
    for body in model.bodies:
        joint = body.joint
        if joint.nq != 1 or joint.kind == "continuous":
            continue
        place = model.q_names.index(joint.name)
        there = twin.pin.joints[twin.pin.getJointId(joint.name)].idx_q
        assert model.lower[place] == pytest.approx(lower[there])
        assert model.upper[place] == pytest.approx(upper[there])


def test_energy_and_momentum(twin, state):
    (q, v, _, _), model = state, twin.model
    pq, pv = twin.q(q), twin.v(v)
    energy, whole = gb.energy(model, q, v), gb.centroidal(model, q, v)
    kinetic = pin.computeKineticEnergy(twin.pin, twin.data, pq, pv)
    potential = pin.computePotentialEnergy(twin.pin, twin.data, pq)
    assert_equal([energy.kinetic, energy.potential], [kinetic, potential])
    assert_equal(whole.com, pin.centerOfMass(twin.pin, twin.data, pq))
    momentum = pin.computeCentroidalMomentum(twin.pin, twin.data, pq, pv)
    assert_equal(whole.momentum, np.concatenate([momentum.angular, momentum.linear]))
    matrix = pin.ccrba(twin.pin, twin.data, pq, pv)
    assert_equal(whole.matrix, matrix[[3, 4, 5, 0, 1, 2]][:, twin.iv])


def test_mimic_joint_equals_pinocchio():
    """The Panda's second finger mimics the first: 8 degrees of freedom in both libraries."""
    path = urdf("panda_description/urdf/panda.urdf")
    model = quietly_loaded(path)
    known = pin.buildModelFromUrdf(str(path), mimic=True)
    data = known.createData()
    assert model.v_names == tuple(known.names[1:9])
    for seed in range(4):
        q, v = model.random_state(seed)
        a = np.random.default_rng(seed).uniform(-1, 1, 8)
        assert_equal(gb.inverse_dynamics(model, q, v, a), pin.rnea(known, data, q, v, a))
        M = np.triu(pin.crba(known, data, q))
        assert_equal(gb.mass_matrix(model, q), M + np.triu(M, 1).T)
