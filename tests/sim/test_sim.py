"""The simulator: order of convergence, energy, loops that stay closed, batches, bad input."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler.sim import load as load_trajectory

ORDERS = {"semi_implicit": 1, "implicit_midpoint": 2, "rk4": 4}


def end_state(model, q, v, integrator, steps, duration=0.08):
    sim = gb.Simulator(model, duration / steps, integrator)
    trajectory = sim.run(q, v, np.linspace(-1, 1, model.nv), steps=steps)
    R, p, *_ = gb.kinematics(model, trajectory.q[-1])
    return np.concatenate([R.ravel(), p.ravel(), trajectory.v[-1]])


@pytest.mark.parametrize("integrator", ORDERS)
@pytest.mark.parametrize("name", ["joint_sampler", "four_bar"])
def test_order_of_convergence_on_the_manifold(name, integrator):
    """Halving the step divides the error by 2^order, quaternions and closed loops included."""
    model = load(name)
    q, v = model.random_state(0)
    exact = end_state(model, q, v, "rk4", 320)
    errors = [np.abs(end_state(model, q, v, integrator, n) - exact).max() for n in (10, 20)]
    order = np.log2(errors[0] / errors[1])
    assert abs(order - ORDERS[integrator]) < 0.35


@pytest.mark.parametrize("name", ["four_bar", "gt_chain", "mini_cheetah", "tello"])
def test_energy_and_loops_hold(name):
    model = load(name)
    q, v = model.random_state(0)
    drift = {}
    for integrator in ORDERS:
        trajectory = gb.Simulator(model, 1e-3, integrator).run(q, v / 2, steps=500)
        assert trajectory.loop_gap.max() < 1e-10
        drift[integrator] = np.ptp(trajectory.energy) / trajectory.kinetic.max()
    assert drift["rk4"] < 1e-8 < 1e-1
    assert drift["rk4"] < drift["implicit_midpoint"] < drift["semi_implicit"] < 0.05


def test_batch_equals_single_and_substeps():
    model = load("mini_cheetah")
    states = [model.random_state(i) for i in range(3)]
    Q, V = (np.stack(x) for x in zip(*states, strict=True))
    tau = np.full(model.nv, 0.1)
    batch = gb.Simulator(model, 1e-3, batch=3, threads=2).run(Q, V, tau, steps=20)
    for i, (q, v) in enumerate(states):
        single = gb.Simulator(model, 1e-3).run(q, v, tau, steps=20)
        assert np.array_equal(batch.robot(i).q, single.q)
        coarse = gb.Simulator(model, 1e-3, substeps=10).run(q, v, tau, steps=2)
        assert relative(coarse.q[-1], single.q[-1]) < 1e-12
        assert np.isclose(coarse.time[-1], single.time[-1])
    spread = gb.Simulator(model, 1e-3, batch=4).run(*states[0], steps=3)
    assert spread.q.shape == (4, 4, model.nq)


def test_controllers():
    model = load("arm7")
    q, v = model.random_state(0)
    sim = gb.Simulator(model, 1e-3)

    def pd(t, q, v):
        return gb.inverse_dynamics(model, q, v, -400 * q - 40 * v)

    by_function = sim.run(q, v, pd, steps=300)
    by_table = sim.run(q, v, by_function.tau[:-1], steps=300)
    assert np.array_equal(by_function.q, by_table.q)
    assert np.abs(by_function.q[-1]).max() < 0.05 * np.abs(q).max()  # computed torque: it settles


def test_passive_forces_dissipate_and_limit():
    model = load("four_bar")
    joint = model.joints[2].name  # a dependent joint: the force arrives through Gᵀ
    q, v = model.random_state(0)
    for passive in (
        gb.Passive(damping={joint: 0.05}),
        gb.Passive(friction={joint: 0.05}),
    ):
        trajectory = gb.Simulator(model, 1e-3, "rk4", passive=passive).run(q, v, steps=300)
        assert np.all(np.diff(trajectory.energy) < 1e-9)
        assert trajectory.energy[-1] < trajectory.energy[0] - 1e-3
    pendulum = gb.ModelBuilder("pendulum")
    pendulum.add_body("bob", 1.0, (0, 0, -0.5), (0.01, 0, 0, 0.01, 0, 0.01))
    pendulum.add_joint("j", "revolute", "world", "bob", axis=(0, 1, 0), lower=-0.3, upper=0.3)
    model = pendulum.build()
    limited = gb.Passive(limit_stiffness=2e3, limit_damping=5.0)
    trajectory = gb.Simulator(model, 1e-3, "rk4", passive=limited).run([0.0], [3.0], steps=2000)
    assert np.abs(trajectory.q).max() < 0.4
    spring = gb.Passive(spring={"j": (50.0, 0.2)}, damping={"j": 5.0})
    rest = gb.Simulator(model, 1e-3, passive=spring).run([0.0], [0.0], steps=5000).q[-1, 0]
    assert np.isclose(50.0 * (rest - 0.2) + 9.81 * 0.5 * np.sin(rest), 0, atol=1e-6)


def test_save_load_plot_names(tmp_path):
    model = load("four_bar")
    q, v = model.random_state(0)
    trajectory = gb.Simulator(model, 1e-3).run(q, v, steps=20)
    path = trajectory.save(tmp_path / "run")
    again = load_trajectory(path, model)
    assert np.array_equal(again.q, trajectory.q) and np.array_equal(again.time, trajectory.time)
    assert trajectory[model.joints[1].name].shape == (21, 1)
    assert np.array_equal(trajectory.velocity(model.v_names[0]), trajectory.v[:, 0])
    picture = tmp_path / "run.svg"
    trajectory.plot(picture)
    assert picture.stat().st_size > 10_000
    with pytest.raises(gb.InputError, match="coordinates are not those"):
        load_trajectory(path, load("six_bar"))
    other = gb.with_parameters(model, {"mass": gb.parameter_values(model, "mass") * 2})
    with pytest.raises(gb.InputError, match="other numbers"):
        load_trajectory(path, other)
    (tmp_path / "junk.npz").write_bytes(b"not a zip")
    with pytest.raises(gb.InputError, match="not a trajectory file"):
        load_trajectory(tmp_path / "junk.npz", model)
    with pytest.raises(gb.InputError, match="did you mean"):
        trajectory.velocity(model.v_names[0] + "x")


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"dt": 0.0}, "dt is"),
            ({"dt": -1e-3}, "dt is"),
            ({"dt": np.nan}, "dt is"),
            ({"integrator": "rk5"}, "did you mean 'rk4'"),
            ({"batch": 0}, "batch is"),
            ({"substeps": 0}, "substeps is"),
            ({"dt": "1"}, "dt is '1'"),
            ({"dt": True}, "dt is True"),
            ({"substeps": True}, "substeps is"),
            ({"threads": 0}, "threads is"),
            ({"passive": {"damping": 1.0}}, r"gb\.Passive"),
            ({"target": "gpu"}, "unknown target|no target|target"),
        ],
    )
    def test_options(self, options, match):
        with pytest.raises(gb.InputError, match=match):
            gb.Simulator(load("arm7"), **options)

    def test_passive(self):
        with pytest.raises(gb.ModelError, match="no joint"):
            gb.Simulator(load("arm7"), passive=gb.Passive(damping={"nope": 1.0}))

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"spring": {"crank": 5.0}}, r"spring of joint 'crank' is 5\.0.*\(stiffness, rest"),
            ({"spring": {"crank": (5.0, "x")}}, "spring of joint 'crank', rest position is 'x'"),
            ({"damping": {"crank": np.nan}}, "damping of joint 'crank' is nan"),
            ({"friction": {"crank": True}}, "friction of joint 'crank' is True"),
            ({"damping": 0.5}, r"damping is 0\.5: give \{joint: number\}"),
            ({"damping": {"crank": 0.5}, "limit_damping": "x"}, "limit_damping is 'x'"),
            ({"damping": {"crank": 0.5}, "friction_speed": np.nan}, "friction_speed is nan"),
        ],
    )
    def test_numbers_of_passive_forces(self, options, match):
        with pytest.raises(gb.InputError, match=match):
            gb.Simulator(load("four_bar"), passive=gb.Passive(**options))

    def test_controller_mistakes_keep_the_trajectory(self):
        model = load("arm7")
        q, v = model.random_state(0)
        sim = gb.Simulator(model, 1e-3)

        def fails(t, q, v):
            return np.zeros(7) if t < 0.0045 else np.zeros(3)

        with pytest.raises(gb.SimulationError, match=r"step 5 .*shape \(3,\)") as caught:
            sim.run(q, v, fails, steps=100)
        assert len(caught.value.trajectory) == 6
        with pytest.raises(gb.SimulationError, match=r"step 0 .*not finite"):
            sim.run(q, v, lambda t, q, v: np.full(7, np.nan), steps=3)
        with pytest.raises(gb.InputError, match="torques have shape"):
            sim.run(q, v, np.zeros((4, 7)), steps=3)

    def test_blow_up_names_time_and_joint(self):
        model = load("arm7")
        q, v = model.random_state(0)
        sim = gb.Simulator(model, 0.05)
        with pytest.raises(gb.SimulationError, match=r"blew up at t = .* s: '") as caught:
            sim.run(q, v, lambda t, q, v: 1e5 * v, steps=1000)
        assert np.isfinite(caught.value.trajectory.v).all()

    def test_states(self):
        model = load("four_bar")
        with pytest.raises(gb.ClosureError):
            gb.Simulator(model).run(model.neutral() + 0.1, np.zeros(1), steps=1)
        with pytest.raises(gb.InputError, match="q has shape"):
            gb.Simulator(model, batch=2).run(np.zeros((3, 3)), np.zeros((3, 1)), steps=1)

    def test_an_interrupt_and_a_crash_keep_the_trajectory(self):
        model = load("four_bar")
        q, v = model.random_state(0)
        sim = gb.Simulator(model, 1e-3)

        def interrupted(t, q, v):
            if t > 0.0065:
                raise KeyboardInterrupt
            return np.zeros(1)

        with pytest.raises(KeyboardInterrupt) as caught:
            sim.run(q, v, interrupted, steps=100)
        kept = caught.value.trajectory
        assert len(kept) == 8
        assert np.array_equal(kept.q, sim.run(q, v, steps=7).q)
        with pytest.raises(gb.SimulationError, match=r"step 0 .*raised KeyError: 'gain'") as caught:
            sim.run(q, v, lambda t, q, v: {}["gain"], steps=3)
        assert len(caught.value.trajectory) == 1
        with pytest.raises(gb.SimulationError, match="returned a str"):
            sim.run(q, v, lambda t, q, v: "full speed", steps=3)

    def test_controllers_cannot_change_the_run(self):
        model = load("four_bar")
        q, v = model.random_state(0)

        def meddles(t, q, v):
            q += 1.0
            v[:] = np.nan
            return np.zeros(1)

        sim = gb.Simulator(model, 1e-3)
        assert np.array_equal(sim.run(q, v, meddles, steps=70).q, sim.run(q, v, steps=70).q)
        with pytest.raises(gb.SimulationError, match="complex"):
            sim.run(q, v, lambda t, q, v: np.array([1j]), steps=3)
        with pytest.raises(gb.InputError, match="complex torques"):
            sim.run(q, v, np.array([1j]), steps=3)
        with pytest.raises(gb.InputError, match=r"torque \(2, 0\) is nan"):
            sim.run(q, v, np.array([[0.0], [0.0], [np.nan]]), steps=3)

        def leaves(t, q, v):
            raise SystemExit("enough")

        with pytest.raises(gb.SimulationError, match=r"step 0 .*exit \(enough\)") as caught:
            sim.run(q, v, leaves, steps=3)
        assert len(caught.value.trajectory) == 1

    @pytest.mark.parametrize(
        "spoil",
        [
            {"q": np.zeros((2, 7))}, {"v": np.full((21, 1), np.nan)}, {"time": np.zeros(1)},
            {"tau": np.array([["a"]] * 21)}, {"time": np.zeros(21)}, {"carried": np.zeros((21, 1))},
        ],
    )  # fmt: skip
    def test_a_file_that_holds_no_run(self, spoil, tmp_path):
        model = load("four_bar")
        path = gb.Simulator(model, 1e-3).run(*model.random_state(0), steps=20).save(tmp_path / "x")
        with np.load(path) as file:
            arrays = dict(file)
        np.savez(path, **(arrays | spoil))
        with pytest.raises(gb.InputError, match=r"x\.npz' holds"):
            load_trajectory(path, model)
