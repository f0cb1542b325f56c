"""Models without any degree of freedom: everything works, on arrays of size zero."""

import numpy as np
import pytest

import grubler as gb
from grubler.checks import check
from grubler.viewer.posture import Posture
from grubler.viewer.scene import Scene

LINK = (1.0, (0.1, 0, 0), (1, 0, 0, 1, 0, 1))
NONE = np.zeros(0)


def truss() -> gb.Model:
    """Two bars that a loop holds, with a frame on one."""
    b = gb.ModelBuilder("truss")
    for name, x in (("left", 0.0), ("right", 1.0)):
        b.add_body(name, *LINK)
        b.add_joint(f"j_{name}", "revolute", "world", name, xyz=(x, 0, 0), axis=(0, 1, 0))
    b.add_loop("apex", "ball", "left", "right", predecessor_xyz=(0.5, 0, 0.5),
               successor_xyz=(-0.5, 0, 0.5))  # fmt: skip
    b.add_frame("tip", "left", xyz=(0.5, 0, 0.5))
    return b.build()


def couplings() -> gb.Model:
    """Two gears of different ratios between the same two shafts let neither turn."""
    b = gb.ModelBuilder("jammed")
    for name in ("one", "two"):
        b.add_body(name, *LINK)
        b.add_joint(f"j_{name}", "revolute", "world", name)
    b.add_coupling("a", "j_two", ratios={"j_one": 2.0})
    b.add_coupling("b", "j_two", ratios={"j_one": 3.0}, offset=0.5)
    return b.build()


def mjcf() -> gb.Model:
    pytest.importorskip("mujoco")
    body = '<body name="a"><geom size="0.1" mass="1"/><site name="tip"/></body>'
    return gb.load(f"<mujoco><worldbody>{body}</worldbody></mujoco>")


def urdf() -> gb.Model:
    return gb.load('<robot name="r"><link name="base"/></robot>')


def empty() -> gb.Model:
    return gb.ModelBuilder("empty").build()


@pytest.fixture(params=[truss, couplings, mjcf, urdf, empty], ids=lambda f: f.__name__)
def model(request) -> gb.Model:
    return request.param()


def test_shapes(model):
    assert model.nq == model.nv == model.nv_span == 0
    q, v = model.random_state(0)
    assert q.shape == v.shape == (0,)
    for x in (
        model.neutral(),
        model.assemble(),
        model.integrate(q, v, 0.1),
        gb.assemble(model, q)[0],
    ):
        assert x.shape == (0,)
    for method in ("c_aba", "lagrange", "projection", "mass_matrix"):
        assert gb.forward_dynamics(model, q, v, v, method=method).shape == (0,)
    assert gb.inverse_dynamics(model, q, v, v).shape == gb.bias_force(model, q, v).shape == (0,)
    assert gb.mass_matrix(model, q).shape == gb.spanning_map(model, q)[0].shape == (0, 0)
    assert gb.generalized_force(model, q, NONE).shape == (0,)
    assert gb.generalized_force(model, q, {}).shape == (0,)
    assert gb.from_spanning(model, {})[0].shape == (0,)
    state = gb.spanning_state(model, q, v, v)
    assert state.positions.shape == state.velocities.shape == state.accelerations.shape == (0,)
    k = gb.kinematics(model, q, v, v)
    assert k.rotation.shape == (0, 3, 3) and k.position.shape == (0, 3)
    assert k.velocity.shape == k.acceleration.shape == (0, 6)
    c = gb.centroidal(model, q, v)
    assert c.matrix.shape == (6, 0) and c.momentum.shape == (6,) and not c.momentum.any()
    assert gb.energy(model, q, v) == (0.0, 0.0)
    assert gb.repartition(model, q).nv == gb.analytic(model).nv == gb.numeric(model).nv == 0
    for x in (gb.convert_velocity(model, model, q, v), gb.convert_force(model, model, q, v)):
        assert x.shape == (0,)
    for x in (gb.integrate(model, q, v), gb.difference(model, q, q), gb.gravity_force(model, q)):
        assert x.shape == (0,)
    assert gb.interpolate(model, q, q, 0.5).shape == model.lower.shape == (0,)
    for fn, size in (
        (gb.tangent_map, 1), (gb.mass_matrix_inverse, 1), (gb.coriolis_matrix, 2),
        (gb.integrate_derivatives, 2), (gb.difference_derivatives, 2), (gb.regressor, 3),
    ):  # fmt: skip
        found = fn(model, *[q] * size)
        for x in found if isinstance(found, tuple) else (found,):
            assert x.shape == (0, 0)
    assert gb.joint_reactions(model, q, v, v).shape == (0, 6)
    assert [x.shape for x in gb.loop_forces(model, q, v, v)] == [(0,), (0, 6)]
    assert gb.base_parameters(model).names == gb.regressor_names(model) == ()
    model.check_closed(q)
    assert model.loop_gap(q) == 0.0


@pytest.mark.parametrize("source", [truss, mjcf])
def test_frames_stand_still(source):
    model = source()
    R, p = gb.frame_pose(model, NONE, "tip")
    assert np.allclose(R @ R.T, np.eye(3)) and np.all(np.isfinite(p))
    if source is truss:
        np.testing.assert_allclose(p, (0.5, 0, 0.5), atol=1e-12)
    assert gb.frame_jacobian(model, NONE, "tip").shape == (6, 0)
    assert not gb.frame_acceleration_bias(model, NONE, NONE, "tip").any()


def test_words(model):
    assert "mobility 0" in str(model) and "mobility 0" in repr(model)
    report = check(model)
    assert report.ok and "mobility 0" in report.table() and report.to_json()


def test_compiled(model):
    for algorithm in (gb.forward_dynamics, gb.inverse_dynamics, gb.mass_matrix, gb.bias_force,
                      gb.energy, gb.spanning_map, gb.centroidal, gb.assemble):  # fmt: skip
        assert gb.count_operations(algorithm, model).total == 0
        for target in ("cpu", "cuda"):
            gb.compile(algorithm, model, target=target)
    f = gb.compile(gb.forward_dynamics, model)
    assert f(NONE, NONE, NONE).shape == (0,)
    assert f(*np.zeros((3, 5, 0))).shape == (5, 0)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4", "implicit_midpoint"])
def test_simulated(model, integrator, tmp_path):
    run = gb.Simulator(model, dt=0.01, integrator=integrator).run(NONE, NONE, steps=5)
    assert run.q.shape == run.v.shape == (6, 0) and np.isclose(run.time[-1], 0.05)
    assert run.energy.shape == run.loop_gap.shape == (6,)
    run.save(tmp_path / "run.npz")
    assert gb.Trajectory.load(tmp_path / "run.npz", model).q.shape == (6, 0)
    batch = gb.Simulator(model, dt=0.01, batch=4).run(*np.zeros((2, 4, 0)), steps=3)
    assert batch.q.shape == (4, 4, 0)


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_saved(model, suffix, tmp_path):
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    gb.save(model, tmp_path / f"robot{suffix}")
    assert gb.load(tmp_path / f"robot{suffix}").nv == 0


def test_viewed(model):
    posture = Posture(model)
    assert posture.q.shape == (0,) and not posture.sliders
    scene = Scene.of(model)
    assert scene.snapshot(NONE).loops == () and scene.room(NONE) is not None


def test_a_rigid_part_beside_one_that_moves():
    """A truss on the world does not disturb a pendulum next to it."""
    alone, beside = gb.ModelBuilder("alone"), gb.ModelBuilder("beside")
    for b in (alone, beside):
        b.add_body("bob", *LINK)
        b.add_joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    for name, x in (("left", 0.0), ("right", 1.0)):
        beside.add_body(name, *LINK)
        beside.add_joint(f"j_{name}", "revolute", "world", name, xyz=(x, 0, 0), axis=(0, 1, 0))
    beside.add_loop("apex", "ball", "left", "right", predecessor_xyz=(0.5, 0, 0.5),
                    successor_xyz=(-0.5, 0, 0.5))  # fmt: skip
    one, two = alone.build(), beside.build()
    assert one.v_names == two.v_names
    a, b = (gb.forward_dynamics(m, [0.3], [0.2], [0.1]) for m in (one, two))
    assert np.array_equal(a, b)
