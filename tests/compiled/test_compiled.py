"""Machine code against the same algorithm on floats: every robot, every public algorithm."""

import subprocess
import sys

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative, states

SOME = ["mini_cheetah", "tello", "tello_explicit", "four_bar", "loop_sampler", "joint_sampler"]


def batch(model, count):
    rows = list(states(model, count))
    return [np.stack(column) for column in zip(*rows, strict=True)]


def test_dynamics_of_every_robot(model):
    """One state and a batch whose size is no multiple of the lanes."""
    Q, V, X = batch(model, 5)
    for fn in (gb.forward_dynamics, gb.inverse_dynamics):
        compiled = gb.compile(fn, model)
        expected = np.stack([fn(model, q, v, x) for q, v, x in zip(Q, V, X, strict=True)])
        assert relative(compiled(Q, V, X), expected) < 1e-11
        assert relative(compiled(Q[0], V[0], X[0]), expected[0]) < 1e-11


@pytest.mark.parametrize("name", SOME)
def test_every_other_algorithm(name):
    model = load(name)
    Q, V, X = batch(model, 3)
    frame = model.bodies[-1].name
    F = np.random.default_rng(0).uniform(-1, 1, (3, len(model.bodies), 6))
    torques = np.ones((3, model.nv_span))
    cases = [
        (gb.forward_dynamics, {"method": "projection"}, (Q, V, X)),
        (gb.forward_dynamics, {"method": "lagrange"}, (Q, V, X)),
        (gb.forward_dynamics, {"inputs": ["q", "v", "tau", "f_ext"]}, (Q, V, X, F)),
        (gb.mass_matrix, {}, (Q,)),
        (gb.bias_force, {}, (Q, V)),
        (gb.inverse_osim, {"frames": [frame, (model.bodies[0].name, (3, 4, 5))]}, (Q,)),
        (gb.frame_jacobian, {"frame": frame}, (Q,)),
        (gb.frame_acceleration_bias, {"frame": frame}, (Q, V)),
        (gb.frame_pose, {"frame": frame}, (Q,)),
        (gb.energy, {}, (Q, V)),
        (gb.centroidal, {"inputs": ["q", "v"]}, (Q, V)),
        (gb.spanning_state, {"inputs": ["q", "v", "a"]}, (Q, V, X)),
        (gb.generalized_force, {}, (Q, torques)),
    ]
    for fn, options, arrays in cases:
        compiled = gb.compile(fn, model, **options)
        plain = {k: v for k, v in options.items() if k != "inputs"}
        names = options.get("inputs", [a.name for a in compiled.inputs])
        for i in range(3):
            expected = fn(model, **dict(zip(names, (a[i] for a in arrays), strict=True)), **plain)
            expected = expected if isinstance(expected, tuple) else (expected,)
            got = compiled(*(a[i] for a in arrays))
            got = got if isinstance(got, tuple) else (got,)
            for x, y in zip(got, expected, strict=True):
                assert x.shape == np.shape(y)
                assert np.abs(x - y).max() < 1e-10 * (1 + np.abs(y).max()), fn.__name__


def test_single_precision():
    model = load("mini_cheetah")
    Q, V, X = batch(model, 20)
    exact = gb.compile(gb.forward_dynamics, model)(Q, V, X)
    rough = gb.compile(gb.forward_dynamics, model, dtype="float32")(Q, V, X)
    assert rough.dtype == np.float32
    error = np.abs(rough - exact).max(axis=1) / np.abs(exact).max(axis=1)
    assert np.median(error) < 1e-5 and error.max() < 1e-3


class TestParameters:
    def test_values_of_the_model_give_its_dynamics(self):
        for name in ("mini_cheetah", "mit_humanoid", "loop_sampler"):
            model = load(name)
            names = ["gravity", "mass", "com", "inertia", "ratio"]
            values = [gb.parameter_values(model, n) for n in names]
            fd = gb.compile(gb.forward_dynamics, model, parameters=names)
            Q, V, X = batch(model, 3)
            expected = np.stack(
                [gb.forward_dynamics(model, q, v, x) for q, v, x in zip(Q, V, X, strict=True)]
            )
            assert relative(fd(Q, V, X, *values), expected) < 1e-10

    def test_other_values_equal_another_model(self):
        """A heavier payload and another gear, against a model built with these numbers."""

        def build(mass, ratio):
            b = gb.ModelBuilder("arm")
            b.add_body("link", 1.0, (0.2, 0, 0), (0.01, 0, 0, 0.02, 0, 0.02))
            b.add_body("rotor", 0.1, inertia=(1e-4, 0, 0, 1e-4, 0, 2e-4))
            b.add_body("load", mass, (0.1, 0, 0), (0.001, 0, 0, 0.001, 0, 0.001))
            b.add_joint("j", "revolute", "world", "link", axis=(0, 1, 0))
            b.add_joint("r", "revolute", "world", "rotor", axis=(0, 1, 0))
            b.add_joint("w", "revolute", "link", "load", xyz=(0.4, 0, 0), axis=(0, 1, 0))
            b.add_coupling("gear", "r", {"j": ratio})
            return b.build()

        model = build(0.5, 6.0)
        fd = gb.compile(gb.forward_dynamics, model, parameters=["mass", "ratio"])
        q, v, tau = np.array([0.3, -0.2]), np.array([1.0, 0.5]), np.array([0.2, 0.1])
        masses = np.tile(gb.parameter_values(model, "mass"), (4, 1))
        masses[:, 2] = [0.5, 1.0, 1.5, 2.0]
        ratios = np.array([[6.0], [7.0], [8.0], [9.0]])
        got = fd(q, v, tau, masses, ratios)  # the state is broadcast over the batch
        for i in range(4):
            other = build(masses[i, 2], ratios[i, 0])
            assert relative(got[i], gb.forward_dynamics(other, q, v, tau)) < 1e-11

    def test_bad_parameters(self):
        model = load("mini_cheetah")
        with pytest.raises(gb.InputError, match="did you mean 'mass'"):
            gb.compile(gb.forward_dynamics, model, parameters=["masses"])
        b = gb.ModelBuilder("inverted")
        for name in ("a", "b"):
            b.add_body(name, 1.0, inertia=(1, 0, 0, 1, 0, 1))
            b.add_joint(f"j{name}", "revolute", "world", name, independent=name == "b" or None)
        b.add_coupling("gear", "jb", {"ja": 2.0})
        with pytest.raises(gb.ModelError, match="cannot be parameters"):
            gb.compile(gb.forward_dynamics, b.build(), parameters=["ratio"])


class TestInterface:
    def test_users_own_function(self):
        model = load("arm7")

        def tracking(model, q, v, target, gain):
            error = target - q
            return gb.inverse_dynamics(model, q, v, gain[0] * error - gain[1] * v)

        compiled = gb.compile(tracking, model, shapes={"target": (7,), "gain": (2,)})
        q, v = model.random_state(0)
        target, gain = np.ones(7), np.array([100.0, 20.0])
        assert relative(compiled(q, v, target, gain), tracking(model, q, v, target, gain)) < 1e-12

    def test_auto_finds_its_choice_again(self, tmp_path, monkeypatch):
        """The estimates take seconds: they are made once for a robot and its options."""
        monkeypatch.setenv("GRUBLER_CACHE_DIR", str(tmp_path / "cache"))
        asked, model = [], load("four_bar")
        monkeypatch.setattr(
            gb.compiled.problem.compiler,
            "estimate_cycles",
            lambda *_: asked.append(1) or float(len(asked)),
        )
        methods = len(gb.forward_dynamics.exact_methods)
        for _ in range(3):
            gb.compile(gb.forward_dynamics, model, method="auto")
            assert len(asked) == methods
        heavier = {"mass": 2 * gb.parameter_values(model, "mass")}
        gb.compile(gb.forward_dynamics, gb.with_parameters(model, heavier), method="auto")
        assert len(asked) == 2 * methods
        gb.compile(gb.forward_dynamics, model, method="auto", parameters=["mass"])
        assert len(asked) == 3 * methods

    def test_auto_takes_the_method_of_the_fewest_cycles(self):
        """An arm's C-ABA has fewer operations than the factorized mass matrix, but they wait for
        each other; on a quadruped and on a chain it has fewer of both."""
        for name, method in (
            ("arm7", "mass_matrix"),
            ("quadruped", "c_aba"),
            ("gt_chain", "c_aba"),
        ):
            counts = {
                m: gb.compile(gb.forward_dynamics, load(name), method=m).operations
                for m in ("auto", "c_aba", "mass_matrix")
            }
            assert counts["c_aba"].total < counts["mass_matrix"].total
            assert counts["auto"] == counts[method]
        with pytest.raises(gb.InputError, match="auto"):
            gb.compile(gb.energy, load("arm7"), method="auto")

    def test_casadi_function(self):
        model = load("mini_cheetah")
        f = gb.casadi_function(gb.forward_dynamics, model)
        q, v = model.random_state(0)
        tau = np.ones(model.nv)
        expected = gb.forward_dynamics(model, q, v, tau)
        assert relative(np.array(f(q, v, tau)).ravel(), expected) < 1e-12

    def test_bad_calls(self):
        model = load("arm7")
        with pytest.raises(gb.InputError, match="target"):
            gb.compile(gb.forward_dynamics, model, target="tpu")
        with pytest.raises(gb.InputError, match="dtype"):
            gb.compile(gb.forward_dynamics, model, dtype="float16")
        with pytest.raises(gb.InputError, match="a Model, not str"):
            gb.compile(gb.forward_dynamics, "arm7")
        with pytest.raises(gb.InputError, match="a function"):
            gb.compile("forward_dynamics", model)
        with pytest.raises(gb.InputError, match="shape of argument 'x'"):
            gb.compile(lambda model, q, x: x, model)
        with pytest.raises(gb.InputError, match="needs frames, which is no array"):
            gb.compile(gb.inverse_osim, model)


class TestAssembly:
    @pytest.mark.parametrize("name", ["four_bar", "six_bar", "tello", "loop_sampler"])
    def test_a_batch_is_closed(self, name):
        model = load(name)
        close = gb.compile(gb.assemble, model)
        rng = np.random.default_rng(0)
        Q = np.stack([model.random_state(i)[0] for i in range(12)])
        dependent = [
            c.q.start + i
            for c in model.clusters
            if c.embedding.implicit and c.embedding.nq == c.embedding.nv_span
            for i in c.embedding.dependent
        ]
        rough = Q.copy()
        rough[:, dependent] += rng.uniform(-0.02, 0.02, (12, len(dependent)))
        closed, gap = close(rough)
        assert gap.shape == (12,) and gap.max() < 1e-12
        assert np.abs(closed - Q).max() < 1e-9  # the independent joints were held
        one, left = close(rough[0])
        assert np.array_equal(one, closed[0]) and left < 1e-12

    def test_floats_agree(self):
        model = load("four_bar")
        rough = model.neutral() + np.array([0.0, 0.1, -0.1])
        q, gap = gb.assemble(model, rough)
        q_compiled, _ = gb.compile(gb.assemble, model)(rough)
        assert gap < 1e-12 and np.abs(q - q_compiled).max() < 1e-12

    def test_what_cannot_close_says_so(self):
        model = load("four_bar")
        q = model.neutral()
        q[0] += 40.0  # any crank angle can be reached or not: the gap tells
        closed, gap = gb.compile(gb.assemble, model)(q)
        assert closed[0] == q[0]
        assert (gap < 1e-12) == (model.loop_gap(closed) < 1e-12)


def test_second_process_does_not_trace(tmp_path):
    """The cache is keyed by the model's numbers: the same robot comes back without tracing."""
    script = (
        "import logging, sys; logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)\n"
        "import grubler as gb, numpy as np\n"
        "m = gb.robots.load('mini_cheetah', **{})\n"
        "f = gb.compile(gb.forward_dynamics, m)\n"
        "q, v = m.random_state(0)\n"
        "print('result', f(q, v, np.ones(m.nv)).sum().hex())\n"
    )
    runs = []
    for _ in range(2):
        env = {"GRUBLER_CACHE_DIR": str(tmp_path), "PATH": "", "GRUBLER_LOG": "debug"}
        run = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True
        )
        runs.append(run.stdout + run.stderr)
    results = [line for run in runs for line in run.splitlines() if line.startswith("result")]
    assert len(results) == 2 and results[0] == results[1]
    assert "trace" in runs[0]
    assert "trace" not in runs[1]


def test_fingerprint_tells_models_apart():
    from grubler.model.fingerprint import fingerprint

    a, b = gb.robots.load("mini_cheetah"), gb.robots.load("mini_cheetah")
    assert fingerprint(a) == fingerprint(b)
    assert fingerprint(a) != fingerprint(gb.robots.load("quadruped"))
    heavier = gb.with_parameters(a, {"mass": gb.parameter_values(a, "mass") * 1.01})
    assert fingerprint(heavier) != fingerprint(a)
    secret = gb.ModelBuilder("mine")
    for name in ("x", "y"):
        secret.add_body(name, 1.0, inertia=(1, 0, 0, 1, 0, 1))
        secret.add_joint(f"j{name}", "revolute", "world", name)
    secret.add_constraint(
        "c", gamma=lambda y: np.stack([np.sin(y[0])]), independent=["jx"], dependent=["jy"]
    )
    assert not fingerprint(secret.build())  # a function of the user's: never cached by name
