"""Cassie and the Robotiq gripper against MuJoCo: the tree exactly, the loops in the limit.

MuJoCo's constraints are soft: each is weighed by an impedance d < 1 and the acceleration error
falls like 1 - d. Before version 4 it also left the loops' velocity-product terms (dJ/dt) v out of
its reference acceleration: where they are missing they are put there, differenced from its own
Jacobian.
"""

import numpy as np
import pytest
from shared_models import error, path, shared

import grubler as gb
from grubler.formats import convert
from grubler.formats._report import Complaints
from grubler.formats._xml import read_xml
from grubler.formats.mjcf_compile import compile_mjcf
from grubler.model.derived import spanning_tree

mujoco = pytest.importorskip("mujoco")

FILES = {"cassie": "cassie_mjcf/cassie.xml", "gripper": "robotiq_2f85_mjcf/2f85.xml"}


class Twin:
    """A robot in both libraries, MuJoCo's without springs, damping, limits, servos, contact."""

    def __init__(self, file: str):
        self.model = shared(file)
        compiled = compile_mjcf(path(file), read_xml(path(file)), Complaints())
        self.mj = compiled.model
        for array in ("dof_damping", "jnt_stiffness", "jnt_limited", "dof_frictionloss"):
            getattr(self.mj, array)[:] = 0
        off = mujoco.mjtDisableBit
        self.mj.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_ACTUATION
        self.mj.opt.tolerance = 0.0
        self.mj.opt.iterations = 200
        self.mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        self.data = mujoco.MjData(self.mj)

    def span(self, q, v, tau):
        """The state of the spanning tree in both layouts: ours (q, v) and MuJoCo's."""
        state = gb.spanning_state(self.model, q, v)
        return state.positions, state.velocities, convert.to_mujoco(self.model, self.mj, q, v)

    def columns(self, q):
        """The matrix T with qvel = T v_span, MuJoCo's velocities from ours."""
        tree = spanning_tree(self.model)
        span = gb.spanning_state(self.model, q).positions
        return np.stack(
            [convert.to_mujoco(tree, self.mj, span, e).v for e in np.eye(self.mj.nv)], axis=1
        )


@pytest.fixture(scope="module", params=FILES)
def twin(request):
    return Twin(FILES[request.param])


@pytest.mark.parametrize("seed", range(3))
def test_mass_matrix_and_bias_of_the_tree(twin, seed):
    model, mj, data = twin.model, twin.mj, twin.data
    q, v = model.random_state(seed)
    span, rates, theirs = twin.span(q, v, None)
    tree, T = spanning_tree(model), twin.columns(q)
    data.qpos[:], data.qvel[:] = theirs.q, theirs.v
    mujoco.mj_forward(mj, data)
    full = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, full)
    assert error(gb.mass_matrix(tree, span), T.T @ full @ T) < 1e-10
    # the derivative of T v: MuJoCo's linear velocity is the world's
    drift = convert.to_mujoco(tree, mj, span, rates, np.zeros(mj.nv)).a
    bias = T.T @ (data.qfrc_bias + full @ drift)
    assert error(gb.bias_force(tree, span, rates), bias) < 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_geoms_whose_mesh_is_missing_leave_the_tree_as_it_is(seed):
    """Toddlerbot's contacts name geoms of missing meshes: these stay, without mass."""
    twin = Twin("toddlerbot_2xc_mjcf/toddlerbot_2xc.xml")
    assert (len(twin.model.bodies), twin.model.nv_span, twin.model.nv) == (45, 50, 38)
    assert sum(loop.rows for loop in twin.model.loops) == 21
    test_mass_matrix_and_bias_of_the_tree(twin, seed)


def test_armature_is_read(twin):
    model, mj = twin.model, twin.mj
    for j in range(mj.njnt):
        name = mj.joint(j).name or "cassie-pelvis_joint"
        assert model.joint(name).armature == mj.dof_armature[mj.jnt_dofadr[j]]


@pytest.mark.parametrize("moving", [False, True], ids=["at rest", "moving"])
@pytest.mark.parametrize("seed", range(3))
def test_accelerations_approach_ours_as_constraints_stiffen(twin, seed, moving):
    """The error falls tenfold with each tenth of 1 - d, and extrapolates to nothing."""
    model, mj = twin.model, twin.mj
    q, v = model.random_state(seed)
    v = 2.0 * v if moving else np.zeros(model.nv)
    force = np.random.default_rng(seed).uniform(-1, 1, model.nv_span)
    a = gb.forward_dynamics(model, q, v, gb.generalized_force(model, q, force))
    ours = convert.to_mujoco(model, mj, q, v, a).a
    errors, values = [], []
    softness = (1e-1, 1e-2, 1e-3, 1e-4)
    for soft in softness:
        values.append(_constrained(twin, q, v, force, soft))
        errors.append(error(values[-1], ours))
    assert errors[-1] < 5e-4
    assert 9 < errors[-2] / errors[-1] < 11
    limit = _extrapolated(softness, values)
    assert error(limit, ours) < 0.01 * errors[-1]
    if moving:  # the terms matter: without them the limit is another motion
        without = [_constrained(twin, q, v, force, soft, drift=False) for soft in softness[-2:]]
        assert error(_extrapolated(softness, without), ours) > 100 * error(limit, ours)


def _extrapolated(softness, values) -> np.ndarray:
    """The limit d = 1 of the last two values, whose error falls like (1 - d) / d."""
    r = np.array(softness[-2:]) / (1 - np.array(softness[-2:]))
    return values[-1] - (values[-2] - values[-1]) * r[1] / (r[0] - r[1])


def _constrained(twin, q, v, force, soft: float, drift: bool = True) -> np.ndarray:
    """MuJoCo's qacc with impedance 1 - soft and no stabilisation: the reference acceleration of
    the loops' rows is -(dJ/dt) v, or without `drift` nothing."""
    mj, data = twin.mj, twin.data
    mj.eq_solref[:] = (-1e-9, -1e-9)
    mj.eq_solimp[:] = (1 - soft, 1 - soft, 1e-3, 0.5, 2.0)
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    theirs = convert.to_mujoco(twin.model, mj, q, v)
    reference = -_jacobian_rate(mj, theirs.q, theirs.v) @ theirs.v
    mujoco.mj_resetData(mj, data)
    data.qpos[:], data.qvel[:] = theirs.q, theirs.v
    data.qfrc_applied[:] = np.linalg.solve(twin.columns(q).T, force)
    mujoco.mj_fwdPosition(mj, data)
    mujoco.mj_fwdVelocity(mj, data)
    if int(mujoco.__version__.split(".")[0]) >= 4:
        assert np.allclose(data.efc_aref, reference, rtol=1e-6, atol=1e-6)
    data.efc_aref[:] = reference if drift else 0.0
    mujoco.mj_fwdActuation(mj, data)
    mujoco.mj_fwdAcceleration(mj, data)
    mujoco.mj_fwdConstraint(mj, data)
    return data.qacc.copy()


def _jacobian_rate(mj, qpos, qvel) -> np.ndarray:
    """dJ/dt of the loops' rows along a motion, by central differences of fourth order."""
    data = mujoco.MjData(mj)

    def jacobian(h: float) -> np.ndarray:
        data.qpos[:] = qpos
        mujoco.mj_integratePos(mj, data.qpos, qvel, h)
        mujoco.mj_fwdPosition(mj, data)
        return data.efc_J.reshape(data.nefc, mj.nv).copy()

    h = 1e-4
    near, far = jacobian(h) - jacobian(-h), jacobian(2 * h) - jacobian(-2 * h)
    return (8 * near - far) / (12 * h)
