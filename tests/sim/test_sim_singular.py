"""Simulation past singularities of the coordinates, and its stop at those of a mechanism."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler.algebra.linalg import RowSpace
from grubler.sim.kernel import Kernel
from grubler.sim.spaces import Partitioned, Spanning


def rssr():
    """A crank about z, a rod on two balls, a rocker about x: any coordinate has dead points."""
    builder = gb.ModelBuilder("rssr")
    builder.add_body("crank", 1.0, (0.1, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01))
    builder.add_body("rod", 0.5, (0.35, 0, 0), (0.001, 0, 0, 0.02, 0, 0.02))
    builder.add_body("rocker", 1.0, (0, 0, 0.2), (0.01, 0, 0, 0.01, 0, 0.01))
    builder.add_joint("jc", "revolute", "world", "crank", axis=(0, 0, 1))
    builder.add_joint("js", "spherical", "crank", "rod", xyz=(0.2, 0, 0))
    builder.add_joint("jr", "revolute", "world", "rocker", xyz=(0.6, 0.3, 0.1), axis=(1, 0, 0))
    builder.add_loop(
        "ball", "ball", "rod", "rocker", predecessor_xyz=(0.7, 0, 0), successor_xyz=(0, 0, 0.45)
    )
    return builder.build()


def energy_error(trajectory) -> float:
    return np.ptp(trajectory.energy) / trajectory.kinetic.max()


def driven_by(coordinate: str, speed=8.0):
    """The zoo's four-bar in a coordinate, and the state in which its crank has a speed."""
    model = load("four_bar")
    q, _ = model.random_state(seed=0)
    other = gb.repartition(model, q, independent=[coordinate])
    return model, other, q, gb.convert_velocity(model, other, q, np.array([speed]))


def test_row_space():
    rng = np.random.default_rng(0)
    for m, n in ((1, 3), (2, 3), (5, 7), (4, 4)):
        K = rng.normal(size=(m, n))
        K[0, 0] = 0.0
        rows, b = RowSpace(K), rng.normal(size=m)
        N, x = rows.null_space() if m < n else np.zeros((n, 0)), rows.least_norm(b)
        assert np.abs(K @ N).max(initial=0.0) < 1e-14 and relative(N.T @ N, np.eye(n - m)) < 1e-14
        assert relative(x, np.linalg.pinv(K) @ b) < 1e-12
        volume = np.prod(rows.distances())
        assert np.isclose(volume, np.linalg.det(K @ K.T), rtol=1e-11)
    K[-1] = K[0]
    assert RowSpace(K).distances()[-1] < 1e-28


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4", "implicit_midpoint"])
def test_dead_points_are_passed_as_in_good_coordinates(integrator):
    """The follower turns back twice a turn of the crank. In its coordinate the motion is that of
    the crank's own, where no point is dead."""
    model, other, q, v = driven_by("follower")
    steps, dt = (1500, 1e-3) if integrator == "rk4" else (6000, 2.5e-4)
    good = gb.Simulator(model, dt, integrator).run(q, np.array([8.0]), steps=steps)
    found = gb.Simulator(other, dt, integrator).run(q, v, steps=steps)
    turns = np.sum(np.diff(np.sign(good.velocity("follower"))) != 0)
    assert turns >= 4 and not good.carried.any() and found.carried.any()
    off = {"semi_implicit": 2e-2, "rk4": 2e-6, "implicit_midpoint": 1e-4}[integrator]
    for name in ("crank", "coupler", "follower"):
        assert np.abs(found[name] - good[name]).max() < off
        assert relative(found.velocity(name), good.velocity(name)) < 20 * off
    assert found.loop_gap.max() < 1e-10


def test_joints_move_as_their_positions_say():
    """Velocities and accelerations of dependent joints against differences of positions."""
    _, other, q, v = driven_by("follower")
    run = gb.Simulator(other, 1e-4, "rk4").run(q, v, np.array([0.3]), steps=6000)
    for name in ("crank", "coupler", "follower"):
        x, rate, a = run[name][:, 0], run.velocity(name), run.acceleration(name)
        slope = (8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12 * 1e-4)
        assert np.abs(slope - rate[2:-2]).max() < 1e-6 * np.abs(rate).max()
        slope = (8 * (rate[3:-1] - rate[1:-3]) - (rate[4:] - rate[:-4])) / (12 * 1e-4)
        assert np.abs(slope - a[2:-2])[:-1].max() < 2e-6 * np.abs(a).max()
    with pytest.raises(gb.InputError, match="did you mean 'crank'"):
        run.velocity("crnk")


def test_rssr_and_six_bar_keep_their_energy():
    model = rssr()
    for seed in range(3):
        run = gb.Simulator(model, 1e-3, "rk4").run(*model.random_state(seed=seed), steps=2000)
        assert run.carried.any() and energy_error(run) < 1e-5 and run.loop_gap.max() < 1e-10
    model = load("six_bar")
    sim = gb.Simulator(model, 1e-3, "rk4")
    for seed in range(8):
        q, v = model.random_state(seed=seed)
        run = sim.run(q, v / np.abs(v).max() * 6.0, steps=1500)
        assert energy_error(run) < 1e-5 and run.loop_gap[::10].max() < 1e-10


@pytest.mark.parametrize("name", ["six_bar", "rssr", "planar_leg_linkage"])
def test_both_spaces_take_the_same_step(name):
    """Where the model's coordinates are regular, a step in all velocities is the same step, up to
    the order of the integrator; so are accelerations, exactly."""
    model = rssr() if name == "rssr" else load(name)
    usual = Partitioned(model, 1e-3, None, "float64")
    space = Spanning(usual)
    assert space.carried == model.nv_span - (1 if name == "planar_leg_linkage" else 0)
    compared = 0
    for seed in range(8):
        q, v = model.random_state(seed=seed)
        tau = np.random.default_rng(seed).normal(size=model.nv)
        w = space.lift(q, v, np.zeros(space.carried))
        assert relative(space.lower(w)[0], v) == 0.0
        a = usual.acceleration(q, v, tau)
        found = space.lower(space.acceleration(q, w, tau))[0]
        assert relative(found, a) < 1e-10
        ours, theirs = (s.spanning_motion(q, x, y) for s, x, y in (
            (space, w, space.acceleration(q, w, tau)), (usual, v, a)))  # fmt: skip
        assert relative(ours[0], theirs[0]) < 1e-12 and relative(ours[1], theirs[1]) < 1e-9
        kernel = Kernel(model, 1e-3, "rk4", None, None, 1, "float64")
        x = np.concatenate([q, v, np.zeros(space.carried)])
        one, good = kernel._usual(x, tau)
        other = kernel._in_all_velocities(x, tau)
        nx = model.nq + model.nv
        if good:
            compared += 1
            assert np.abs(one[:nx] - other[:nx]).max() < 1e-7
    assert compared >= 2


def test_batches_and_substeps_are_the_same_run():
    _, other, q, v = driven_by("follower")
    states = [(q, v), (q, -v), (q, 0.3 * v)]
    Q, V = (np.stack(x) for x in zip(*states, strict=True))
    batch = gb.Simulator(other, 1e-3, "rk4", batch=3).run(Q, V, steps=600)
    for i, state in enumerate(states):
        single = gb.Simulator(other, 1e-3, "rk4").run(*state, steps=600)
        assert np.array_equal(batch.robot(i).q, single.q)
        assert np.array_equal(batch.robot(i).carried, single.carried)
        fed = gb.Simulator(other, 1e-3, "rk4").run(*state, lambda t, q, v: np.zeros(1), steps=600)
        assert np.array_equal(fed.q, single.q)
        coarse = gb.Simulator(other, 1e-3, "rk4", substeps=20).run(*state, steps=30)
        assert np.abs(coarse.q - single.q[::20]).max() < 1e-9


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_steps_as_its_robots(threads):
    model = load("six_bar")
    Q, V = model.random_states(11, seed=1)
    tau = np.random.default_rng(0).normal(size=V.shape)
    sim = gb.Simulator(model, 1e-3)
    alone = [np.stack(x) for x in zip(*map(sim.step, Q, V, tau), strict=True)]
    batch = gb.Simulator(model, 1e-3, batch=11, threads=threads)
    out = np.empty_like(Q), np.empty_like(V)
    batch.step(Q, V, tau, out=out)
    for found in (batch.step(Q, V, tau), out):
        assert all(np.array_equal(x, y) for x, y in zip(found, alone, strict=True))


def test_forces_act_on_joints_in_both_spaces():
    """Damping of a dependent joint and a torque on the follower, through its dead points: the
    energy lost is the work done."""
    _, other, q, v = driven_by("follower")
    passive = gb.Passive(damping={"coupler": 0.02})
    tau = np.array([0.4])
    run = gb.Simulator(other, 1e-3, "rk4", passive=passive).run(q, v, tau, steps=1200)
    power = 0.4 * run.velocity("follower") - 0.02 * run.velocity("coupler") ** 2
    work = np.concatenate([[0.0], np.cumsum(0.5e-3 * (power[1:] + power[:-1]))])
    assert run.carried.any()
    assert np.abs(run.energy - run.energy[0] - work).max() < 1e-4 * run.kinetic.max()


@pytest.mark.parametrize("name", ["parallel_four_bar", "planar_leg_linkage"])
def test_a_singularity_of_the_mechanism_stops_the_run(name):
    """A parallelogram that lies flat may go on as another four-bar."""
    model = load(name)
    q, _ = model.random_state(seed=0)
    v = np.full(model.nv, 6.0)
    with pytest.raises(gb.SimulationError, match="singularity of the mechanism itself") as caught:
        gb.Simulator(model, 1e-3, "rk4").run(q, v, steps=3000)
    assert f"loop '{model.loops[0].name}'" in str(caught.value)
    kept = caught.value.trajectory
    assert 10 < len(kept) < 3000 and energy_error(kept) < 1e-6 and kept.loop_gap.max() < 1e-10
    with pytest.raises(gb.SimulationError, match="of robot 1 stopped at"):
        gb.Simulator(model, 1e-3, "rk4", batch=2).run(
            np.stack([q, q]), np.stack([0 * v, v]), steps=3000
        )


def triple_rocker():
    """A four-bar in which no joint goes round."""
    builder = gb.ModelBuilder("triple rocker")
    for name, length in (("crank", 0.4), ("coupler", 0.3), ("follower", 0.4)):
        moment = length**2 / 12
        builder.add_body(name, 1.0, (length / 2, 0, 0), np.diag([1e-3, moment, moment]))
    y = (0, 1, 0)
    builder.add_joint("crank", "revolute", "world", "crank", axis=y)
    builder.add_joint("coupler", "revolute", "crank", "coupler", xyz=(0.4, 0, 0), axis=y)
    builder.add_joint("follower", "revolute", "world", "follower", xyz=(0.6, 0, 0), axis=y)
    builder.add_loop(
        "pin", "revolute", "coupler", "follower", axis=y,
        predecessor_xyz=(0.3, 0, 0), successor_xyz=(0.4, 0, 0),
    )  # fmt: skip
    return builder.build(reference={"crank": -1.2})


def test_a_closed_form_stops_at_its_dead_point():
    """Its branch ends there; the numeric twin goes on."""
    model = triple_rocker()
    closed = gb.analytic(model)
    assert not closed.clusters[0].embedding.implicit
    twin = gb.numeric(closed)
    q, v = closed.neutral(), np.array([6.0])
    for dt in (1e-3, 1e-2):
        with pytest.raises(gb.SimulationError, match=r"closed form of loop 'pin' .* gb\.numeric"):
            gb.Simulator(closed, dt, "rk4").run(q, v, steps=round(2 / dt))
    run = gb.Simulator(twin, 1e-3, "rk4").run(twin.neutral(), v, steps=2000)
    assert run.carried.any() and energy_error(run) < 1e-5


def test_energy_that_nobody_put_in_stops_the_run():
    model = load("four_bar")
    q, _ = model.random_state(seed=0)
    with pytest.raises(gb.SimulationError, match=r"energy has changed .* at t = .* smaller dt"):
        gb.Simulator(model, 0.03, "rk4").run(q, np.array([30.0]), steps=3000)
    run = gb.Simulator(model, 1e-3, "rk4").run(q, np.array([30.0]), np.array([5.0]), steps=500)
    assert len(run) == 501


def test_a_run_that_is_lost_keeps_what_was_right():
    """Steps so long that the energy is wrong long before a number overflows: within one block."""
    model = load("arm7")
    q, v = model.random_state(seed=0)
    sim = gb.Simulator(model, 0.1, "rk4")
    with pytest.raises(gb.SimulationError, match=r"blew up .* energy is wrong") as caught:
        sim.run(q, 5.0 * v, steps=1000)
    kept = caught.value.trajectory
    assert energy_error(kept) < 0.1 and np.isfinite(kept.v).all()


def test_steps_too_long_are_no_singularity():
    """Joints that turn by a tenth of a radian in a step: short steps come to the singularity."""
    model = load("parallel_four_bar")
    q, _ = model.random_state(seed=0)
    v = np.full(model.nv, 100.0)
    with pytest.raises(
        gb.SimulationError, match=r"joints of loop '.*' turn by 0\.\d* rad"
    ) as caught:
        gb.Simulator(model, 1e-3, "rk4").run(q, v, steps=500)
    long = caught.value.trajectory
    with pytest.raises(gb.SimulationError, match="singularity of the mechanism itself") as caught:
        gb.Simulator(model, 1e-5, "rk4").run(q, v, steps=50_000)
    short = caught.value.trajectory
    assert short.time[-1] > long.time[-1] and energy_error(short) < 1e-6


@pytest.mark.parametrize("name", ["four_bar", "six_bar", "planar_leg_linkage"])
@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_watching_the_coordinates_costs_little(name, integrator, monkeypatch):
    """Operations of a step on its usual way, with and without what watches its coordinates."""
    model = load(name)

    def operations():
        kernel = Kernel(model, 1e-3, integrator, None, None, 1, "float64")
        kernel.key = None
        return kernel.compile("cpu", None).operations

    watched = operations()
    for check in ("regular", "resolved"):
        monkeypatch.setattr(Partitioned, check, lambda self, *_: None)
    bare = operations()
    assert watched.seldom > 0 and bare.total < watched.total < 1.05 * bare.total
