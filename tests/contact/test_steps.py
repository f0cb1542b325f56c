"""Simulations of robots with contacts: loops, joint limits, dry friction, batches, errors."""

from functools import lru_cache

import numpy as np
import pytest

import grubler as gb
from grubler.contact.cone import SLIP, STICK

from .scenes import G, PointsOnPlane, ball, box, free_state

load = lru_cache(maxsize=None)(gb.robots.load)
FEET = ("HR_foot_contact", "HL_foot_contact", "FR_foot_contact", "FL_foot_contact")


@lru_cache(maxsize=1)
def standing():
    """Mini Cheetah on four feet: (model, plan, q with the feet on the ground)."""
    model = load("mini_cheetah")
    plan = PointsOnPlane.of(model, dict.fromkeys(FEET, 0.02), friction=0.7)
    q = model.neutral()
    for i, name in enumerate(model.q_names):
        q[i] = -0.8 if "hip" in name else 1.6 if "knee" in name else q[i]
    q[2] += 0.02 - min(gb.frame_pose(model, q, foot)[1][2] for foot in FEET)
    return model, plan, q


def law(q0):
    def torque(t, q, v):
        tau = np.zeros(len(v))
        tau[6:] = 60 * (q0[7:] - q[7:]) - 3 * v[6:]
        return tau

    return torque


def test_a_standing_robot_weighs_what_it_weighs():
    model, plan, q = standing()
    run = gb.Simulator(model, 2e-3, contacts=plan).run(q, np.zeros(model.nv), law(q), steps=3000)
    weight = sum(body.mass for body in model.bodies) * G
    assert abs(run.contact.force[-1, :, 2].sum() - weight) < 1e-6 * weight
    assert run.unconverged == 0 and run.contact_residual.max() < 1e-9
    assert (run.contact.modes[-1] == STICK).all()
    gaps, points, _ = run.contact.geometry(run.q[-2:])
    assert np.abs(gaps).max() < 1e-9
    assert np.abs(points[1] - points[0]).max() < 1e-10


def dense_problem(model, plan, q, v, tau, dt):
    """G, g of the feet from the mass matrix and frame Jacobians alone."""
    M, a = gb.mass_matrix(model, q), gb.forward_dynamics(model, q, v, tau)
    J = []
    for foot in FEET:
        R, _ = gb.frame_pose(model, q, foot)
        own = gb.frame_jacobian(model, q, foot)
        below = np.array([0, 0, -0.02])
        J.append(R @ own[3:] + np.cross((R @ own[:3]).T, below).T)
    J = np.concatenate(J)
    R, _ = gb.frame_pose(model, q, model.bodies[0].name)
    turning = np.tile(dt * (R @ np.cross(v[:3], v[3:6])), len(FEET))
    free = v + dt * a
    free[3:6] += dt * np.cross(v[:3], v[3:6])
    assert np.abs(J @ free - (J @ (v + dt * a) + turning)).max() < 1e-10
    gaps = [gb.frame_pose(model, q, f)[1][2] - 0.02 for f in FEET]
    g = J @ free
    g[2::3] += np.maximum(gaps, 0) / dt
    return J, M, free, J @ np.linalg.solve(M, J.T), g


def test_contact_dynamics_solves_the_dense_problem():
    """v⁺ = v_free + M⁻¹ Jᵀ λ, and λ solves Coulomb's law for the dense G, g."""
    from grubler.contact.admm import admm

    model, plan, q = standing()
    rng = np.random.default_rng(0)
    for _ in range(5):
        v = rng.normal(size=model.nv)
        v[5] -= 1.0
        tau = rng.normal(size=model.nv)
        found = gb.contact_dynamics(model, q, v, tau, 2e-3, plan, tolerance=1e-12)
        J, M, free, D, g = dense_problem(model, plan, q, v, tau, 2e-3)
        expected = free + np.linalg.solve(M, J.T @ found.impulse)
        np.testing.assert_allclose(found.v, expected, atol=1e-10 * np.abs(v).max() + 1e-11)
        impulse, residual, _ = admm(D, g, [0.7] * 4)
        assert residual < 1e-11 and found.residual < 1e-11
        np.testing.assert_allclose(found.impulse, impulse, atol=1e-9)


def test_pinocchios_solvers_find_the_same():
    pin = pytest.importorskip("pinocchio")
    from .with_pinocchio import solved

    model, plan, q = standing()
    rng = np.random.default_rng(1)
    for _ in range(3):
        v = rng.normal(size=model.nv)
        v[5] -= 1.0
        found = gb.contact_dynamics(model, q, v, np.zeros(model.nv), 2e-3, plan, tolerance=1e-13)
        *_, D, g = dense_problem(model, plan, q, v, np.zeros(model.nv), 2e-3)
        for kind in ("admm", "pgs"):
            impulse = solved(pin, kind, D, g, [0.7] * 4)
            np.testing.assert_allclose(impulse, found.impulse, atol=2e-7)


@pytest.mark.parametrize("robot", ["tello", "four_bar"])
def test_loops_stay_closed_through_impacts(robot):
    model = load(robot)
    names = {
        "tello": [f.name for f in model.frames if "toe" in f.name or "heel" in f.name],
        "four_bar": ["pin"],
    }[robot]
    q = model.neutral()
    low = min(gb.frame_pose(model, q, n)[1][2] for n in names)
    lower = {"tello": 0.02, "four_bar": -0.01}[robot]  # it falls by 2 cm; it rises by 1 cm
    normal = (0, 0, 1.0) if lower > 0 else (0, 0, -1.0)
    height = (low - lower) * normal[2]
    plan = PointsOnPlane.of(
        model, dict.fromkeys(names, 0.0), friction=0.6, height=height, normal=normal
    )
    run = gb.Simulator(model, 1e-3, contacts=plan).run(q, np.zeros(model.nv), steps=400)
    assert run.contact.impulse[..., 2].max() > 0
    assert max(model.loop_gap(x) for x in run.q) < 1e-10
    gaps, *_ = run.contact.geometry(run.q)
    assert gaps.min() > -1e-3
    assert (run.contact_residual < 1e-6).mean() > 0.999


def slider(**options):
    b = gb.ModelBuilder("slider")
    b.add_body("cart", 2.0, (0, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1))
    b.add_joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), **options)
    b.add_body("ball", 1.0, (0, 0, 0), (0.004, 0, 0, 0.004, 0, 0.004))
    b.add_joint("free", "free", "world", "ball", xyz=(0, 1, 0))
    return b.build()


def test_dry_friction_of_a_joint_holds_exactly_and_yields_exactly():
    model = slider()
    plan = PointsOnPlane.of(model, {"ball": 0.1}, height=-5.0)
    passive = gb.Passive(friction={"rail": 3.0})
    solver = gb.ContactSolver(tolerance=1e-14)
    sim = gb.Simulator(model, 1e-3, contacts=plan, passive=passive, solver=solver)
    i = model.v_names.index("rail")
    q, v = model.neutral(), np.zeros(model.nv)
    for push, expected in ((2.9, 0.0), (5.0, (5.0 - 3.0) / 2.0)):
        tau = np.zeros(model.nv)
        tau[i] = push
        run = sim.run(q, v, tau, steps=200)
        np.testing.assert_allclose(run.v[:, i], expected * run.time, atol=1e-12)
        np.testing.assert_allclose(run.contact.joint_impulse[1:, 0], -min(push, 3.0) * 1e-3)


def test_a_joint_stops_at_its_limit_and_leaves_it():
    model = slider(lower=-0.5, upper=0.1)
    plan = PointsOnPlane.of(model, {"ball": 0.1}, height=-5.0)
    solver = gb.ContactSolver(limits=True, tolerance=1e-14)
    i = model.v_names.index("rail")
    v = np.zeros(model.nv)
    v[i] = 1.0
    run = gb.Simulator(model, 1e-3, contacts=plan, solver=solver).run(model.neutral(), v, steps=200)
    place = run["rail"][:, 0]
    assert place.max() <= 0.1 + 1e-12 and abs(place[-1] - 0.1) < 1e-9
    assert abs(run.v[-1, i]) < 1e-12
    tau = np.zeros((400, model.nv))
    tau[:100, i], tau[100:, i] = 4.0, -2.0
    run = gb.Simulator(model, 1e-3, contacts=plan, solver=solver).run(
        run.q[-1], np.zeros(model.nv), tau, steps=400
    )
    assert np.abs(run.v[:100, i]).max() < 1e-12
    np.testing.assert_allclose(run.v[-1, i], -0.3, atol=1e-9)
    np.testing.assert_allclose(run.contact.joint_impulse[1:100, 0], -4e-3, rtol=1e-9)


def test_joint_damping_is_implicit():
    """A damping that would make an explicit step explode: v⁺ = v / (1 + dt d / m)."""
    model = slider()
    plan = PointsOnPlane.of(model, {"ball": 0.1}, height=-5.0)
    sim = gb.Simulator(model, 1e-2, contacts=plan, passive=gb.Passive(damping={"rail": 1e4}))
    i = model.v_names.index("rail")
    v = np.zeros(model.nv)
    v[i] = 1.0
    run = sim.run(model.neutral(), v, steps=5)
    np.testing.assert_allclose(run.v[:, i], (1 + 1e-2 * 1e4 / 2.0) ** -np.arange(6.0), rtol=1e-12)


def test_a_batch_is_its_robots():
    model, corners = box()
    plan = PointsOnPlane.of(model, dict.fromkeys(corners, 0.0), friction=0.5)
    rng = np.random.default_rng(0)
    q = np.array([free_state(model, (0, 0, 0.1 + 0.02 * k)) for k in range(5)])
    v = 0.3 * rng.normal(size=(5, 6))
    runs = gb.Simulator(model, 2e-3, contacts=plan, batch=5).run(q, v, steps=100)
    alone = gb.Simulator(model, 2e-3, contacts=plan)
    for k in range(5):
        run = alone.run(q[k], v[k], steps=100)
        one = runs.robot(k)
        np.testing.assert_allclose(one.q, run.q, atol=1e-9)
        np.testing.assert_allclose(one.contact_residual, run.contact_residual, atol=1e-9)
    assert runs.contact.modes.shape == (101, 5, 4)


def test_single_precision_creeps_little():
    model, corners = box()
    plan = PointsOnPlane.of(
        model, dict.fromkeys(corners, 0.0), friction=0.6, normal=(np.sin(0.4), 0, np.cos(0.4))
    )
    q = free_state(model, (0.1 * np.sin(0.4), 0, 0.1 * np.cos(0.4)),
                   (np.cos(0.2), 0, np.sin(0.2), 0))  # fmt: skip
    solver = gb.ContactSolver(tolerance=1e-6)
    sim = gb.Simulator(model, 2e-3, contacts=plan, solver=solver, dtype="float32")
    run = sim.run(q, np.zeros(6), steps=2000)
    assert np.abs(run.q[-1] - run.q[500]).max() / 3.0 < 1e-5


def test_a_step_that_is_not_solved_is_counted_or_refused():
    model, corners = box()
    plan = PointsOnPlane.of(model, dict.fromkeys(corners, 0.0), friction=0.5)
    q, v = free_state(model, (0, 0, 0.1)), np.array([0, 0, 3.0, 1.0, 0, 0])
    loose = gb.ContactSolver(iterations=1)
    run = gb.Simulator(model, 2e-3, contacts=plan, solver=loose).run(q, v, steps=5)
    assert run.unconverged > 0 and run.contact_residual.max() > 1e-6
    strict = gb.ContactSolver(iterations=1, error_above=1e-8)
    with pytest.raises(gb.SimulationError, match="solved to"):
        gb.Simulator(model, 2e-3, contacts=plan, solver=strict).run(q, v, steps=5)


def test_wrong_input_is_refused():
    model = ball()
    for options, match in (
        ({"friction": -0.1}, "friction of 'ball' is -0.1"),
        ({"restitution": 1.5}, "restitution of 'ball' is 1.5"),
        ({"normal": (0, 0, 0)}, "direction"),
    ):
        with pytest.raises(gb.InputError, match=match):
            PointsOnPlane.of(model, {"ball": 0.1}, **options)
    with pytest.raises(gb.InputError, match="radius"):
        PointsOnPlane.of(model, {"ball": -0.1})
    plan = PointsOnPlane.of(model, {"ball": 0.1})
    with pytest.raises(gb.InputError, match="semi_implicit"):
        gb.Simulator(model, 1e-3, "rk4", contacts=plan)
    with pytest.raises(gb.InputError, match="iterations"):
        gb.Simulator(model, 1e-3, contacts=plan, solver=gb.ContactSolver(iterations=0))
    with pytest.raises(gb.InputError, match="give contacts"):
        gb.Simulator(model, 1e-3, solver=gb.ContactSolver())
    with pytest.raises(gb.InputError, match="no contacts"):
        _ = gb.Simulator(model, 1e-3).run(model.neutral(), np.zeros(6), steps=1).contact_residual
    sim = gb.Simulator(model, 1e-3, contacts=plan)
    run = sim.run(free_state(model, (0, 0, 0.1)), np.zeros(6), steps=2)
    with pytest.raises(gb.InputError, match="no accelerations"):
        run.acceleration(model.v_names[0])
    rough = PointsOnPlane.of(model, {"ball": 0.1})
    object.__setattr__(rough, "names", ("someone",))
    with pytest.raises(gb.InputError, match="planned for other bodies"):
        gb.contact_dynamics(model, model.neutral(), np.zeros(6), np.zeros(6), 1e-3, rough)
    rolling = gb.Contacts(model, shapes={"ball": gb.Sphere(0.1)}, rolling=0.01)
    with pytest.raises(gb.InputError, match="rolling friction"):
        gb.Simulator(model, 1e-3, contacts=rolling)


def test_single_steps_hand_on_their_impulses():
    """Steps one by one are those of a run, to the last bit; without warm starts they are not."""
    model, corners = box()
    plan = PointsOnPlane.of(model, dict.fromkeys(corners, 0.0), friction=0.5)
    q, v = free_state(model, (0, 0, 0.1)), np.array([0, 0, 3.0, 1.0, 0, 0])
    sim = gb.Simulator(model, 2e-3, contacts=plan, solver=gb.ContactSolver(iterations=3))
    run = sim.run(q, v, steps=10)
    state, cold, tau = (q, v, np.zeros(sim.carried)), (q, v), np.zeros(6)
    for _ in range(10):
        state = sim.step(state[0], state[1], tau, carried=state[2])
        cold = sim.step(*cold, tau)
    np.testing.assert_array_equal(state[0], run.q[-1])
    np.testing.assert_array_equal(state[2], run.contact.data[-1])
    assert np.abs(cold[0] - run.q[-1]).max() > 0
    with pytest.raises(gb.InputError, match="hands on nothing"):
        gb.Simulator(model, 2e-3).step(q, v, tau, carried=np.zeros(1))


def test_plans_of_shapes_stand_as_well():
    """The same ball by gb.Contacts: the same step."""
    model = ball()
    plans = (
        PointsOnPlane.of(model, {"ball": 0.1}, friction=0.4),
        gb.Contacts(model, shapes={"ball": gb.Sphere(0.1)}, friction=0.4),
    )
    q, v = free_state(model, (0, 0, 0.1)), np.array([0, 5.0, 0, 1.0, 0, -1.0])
    a, b = (gb.contact_dynamics(model, q, v, np.zeros(6), 1e-3, plan) for plan in plans)
    np.testing.assert_allclose(a.v, b.v, atol=1e-14)
    assert b.impulse[2] > 0.5 and SLIP > STICK


def test_substeps_are_counted_each():
    model, corners = box()
    plan = PointsOnPlane.of(model, dict.fromkeys(corners, 0.0), friction=0.5)
    q, v = free_state(model, (0, 0, 0.1)), np.array([0, 0, 3.0, 1.0, 0, 0])
    loose = gb.ContactSolver(iterations=1)
    fine = gb.Simulator(model, 2e-3, contacts=plan, solver=loose).run(q, v, steps=20)
    coarse = gb.Simulator(model, 2e-3, contacts=plan, solver=loose, substeps=5).run(q, v, steps=4)
    np.testing.assert_allclose(coarse.q[-1], fine.q[-1], atol=1e-13)
    assert coarse.unconverged == fine.unconverged > 0
    np.testing.assert_allclose(coarse.contact.worst, fine.contact_residual.max(), rtol=1e-9)


def test_a_run_on_the_gpu_is_that_of_the_cpu(monkeypatch):
    from gpu import fake_gpu

    fake_gpu.install(monkeypatch)
    model, corners = box()
    plan = PointsOnPlane.of(model, dict.fromkeys(corners, 0.0), friction=0.5)
    q, v = free_state(model, (0, 0, 0.1)), np.array([0, 0, 3.0, 1.0, 0, 0])
    runs = []
    for target in ("cpu", "cuda"):
        sim = gb.Simulator(
            model, 2e-3, contacts=plan, batch=2, target=target,
            solver=gb.ContactSolver(iterations=8),
        )  # fmt: skip
        run = sim.run(q, v, steps=10)
        runs.append(sim.trajectory(run) if target == "cuda" else run)
    cpu, gpu = runs
    np.testing.assert_allclose(gpu.q, cpu.q, atol=1e-12)
    np.testing.assert_allclose(gpu.contact.impulse[-1], cpu.contact.impulse[-1], atol=1e-12)
    assert gpu.unconverged == cpu.unconverged
    np.testing.assert_allclose(gpu.contact.worst, cpu.contact.worst, rtol=1e-6)
    strict = gb.ContactSolver(iterations=1, error_above=1e-9)
    sim = gb.Simulator(model, 2e-3, contacts=plan, batch=2, target="cuda", solver=strict)
    with pytest.raises(gb.SimulationError, match="solved to"):
        sim.run(q, v, steps=10)


def test_newton_steps_of_fixed_number_solve_rigid_patches():
    """A box that slides and turns: Newton steps leave far less than sweeps alone."""
    model, corners = box()
    plan = PointsOnPlane.of(model, dict.fromkeys(corners, 0.0), friction=0.5)
    q, v = free_state(model, (0, 0, 0.1)), np.array([0, 0, 2.0, 1.0, 0.5, 0])
    medians = []
    for newton in (0, 3):
        solver = gb.ContactSolver(iterations=3, newton=newton)
        run = gb.Simulator(model, 2e-3, contacts=plan, solver=solver).run(q, v, steps=60)
        medians.append(np.median(run.contact_residual[1:]))
    assert medians[1] < 0.1 * medians[0] < 1e-6
    with pytest.raises(gb.InputError, match="give iterations"):
        gb.Simulator(model, 2e-3, contacts=plan, solver=gb.ContactSolver(newton=1))


def test_factors_of_the_base_give_what_the_whole_matrix_gives(monkeypatch):
    from grubler.contact import step

    model, plan, q = standing()
    v = 0.3 * np.random.default_rng(4).normal(size=model.nv)
    runs = []
    for many in (100, 2):
        monkeypatch.setattr(step, "MANY", many)
        solver = gb.ContactSolver(iterations=6, limits=True)
        passive = gb.Passive(friction={j.name: 0.1 for j in model.joints if "knee" in j.name})
        sim = gb.Simulator(model, 2e-3, contacts=plan, solver=solver, passive=passive)
        runs.append(sim.run(q, v, steps=30))
    assert runs[0].contact.impulse[-1, :, 2].min() > 0.01
    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-11)
    np.testing.assert_allclose(runs[1].contact.data, runs[0].contact.data, atol=1e-7)
