"""Products in other functions and of other functions: parameters, steps of a simulation, branches,
nesting, targets, errors."""

import pickle
import subprocess

import numpy as np
import pytest
from extended import Reference, moved

import grubler as gb
from conftest import load, relative, states
from facts import SHARED
from grubler.algebra.symbolic import is_symbolic
from grubler.constrained import Constraint
from grubler.model.fingerprint import fingerprint
from grubler.model.parameters import NAMES
from grubler.sim.kernel import Kernel

FOUR_BAR, CHEETAH = load("four_bar"), load("mini_cheetah")


def in_parameters(model, fn, names):
    """A function of parameters in place of their values in the model."""
    return lambda *x: fn(gb.with_parameters(model, dict(zip(names, x, strict=True))))


@pytest.mark.parametrize("robot", ["mini_cheetah", "robot_a", "four_bar", "tello"])
@pytest.mark.parametrize("fn", [gb.forward_dynamics, gb.inverse_dynamics], ids=lambda f: f.__name__)
def test_parameters(robot, fn):
    """Masses, centres, inertias, ratios and gravity, against fifty digits; as inputs, too."""
    model = load(robot)
    names = [n for n in NAMES if n != "ratio" or robot in ("mini_cheetah", "robot_a")]
    q, v, x = next(states(model, 1))
    rng = np.random.default_rng(0)
    point = [gb.parameter_values(model, n) for n in names]
    d = [rng.normal(size=p.shape) * np.maximum(np.abs(p), 1e-2) for p in point]
    w = rng.normal(size=model.nv)
    found = gb.jvp(fn, model, wrt=names)(model, q, v, x, *d)
    shapes = [p.shape for p in point]
    reference = Reference(
        in_parameters(model, lambda changed: fn(changed, q, v, x), names), model, shapes
    )
    expected = reference.derivative(point, d)
    assert relative(found, expected) < 1e-12
    vjp = gb.vjp(fn, model, wrt=names)
    back = vjp(model, q, v, x, w)
    assert abs(sum(np.sum(a * b) for a, b in zip(back, d, strict=True)) - w @ expected) <= 1e-12 * (
        np.abs(w) @ np.abs(expected)
    )
    other = [p * rng.uniform(0.9, 1.1, p.shape) for p in point]
    compiled = gb.compile(vjp, model, parameters=names)
    changed = gb.with_parameters(model, dict(zip(names, other, strict=True)))
    for a, b in zip(
        compiled(q, v, x, w, *other), vjp(changed, q, v, x, w), strict=True
    ):  # fmt: skip
        assert relative(a, b) < 1e-12


STEPS = [
    ("four_bar", "semi_implicit"), ("four_bar", "rk4"), ("six_bar", "implicit_midpoint"),
    ("joint_sampler", "semi_implicit"),
]  # fmt: skip


@pytest.mark.parametrize("robot, integrator", STEPS)
def test_a_step_of_a_simulation(robot, integrator):
    """Its closures, its fixed point and its branches, in both modes, against fifty digits."""
    model = load(robot)
    kernel = Kernel(model, 1e-3, integrator, None, None, 1, "float64")

    def step(model, q, v, tau):
        return kernel.recorded(np.concatenate([q, v, np.zeros(kernel.carried)]), tau)[:2]

    q, v, tau = next(states(model, 1))
    rng = np.random.default_rng(2)
    d = [rng.normal(size=model.nv) for _ in range(3)]
    nv = (model.nv,)
    expected = Reference(lambda *x: step(model, *x), model, [None, nv, nv]).derivative(
        [q, v, tau], d
    )
    found = np.concatenate(gb.jvp(step, model)(model, q, v, tau, *d))
    tight = 1e-9 if integrator == "implicit_midpoint" else 1e-11
    assert relative(found, expected) < tight
    w = [rng.normal(size=n) for n in (model.nq, model.nv)]
    back = gb.compile(gb.vjp(step, model), model)(q, v, tau, *w)
    power = sum(a @ b for a, b in zip(back, d, strict=True))
    assert abs(power - np.concatenate(w) @ expected) < tight * np.abs(expected).max() * 10


@pytest.mark.parametrize("method", ["pv_early", "pv", "ltl"])
def test_constrained_dynamics(method):
    """Accelerations and multipliers of a quadruped on three feet, by any method."""
    model = load("quadruped")
    feet = tuple(Constraint(f"{leg}_foot_contact", "point") for leg in ("HR", "HL", "FR"))

    def fn(model, q, v, tau):
        return gb.constrained_forward_dynamics(model, q, v, tau, feet, method=method)[:2]

    q, v, tau = next(states(model, 1))
    rng = np.random.default_rng(2)
    d = [rng.normal(size=model.nv) for _ in range(3)]
    nv = (model.nv,)
    expected = Reference(lambda *x: fn(model, *x), model, [None, nv, nv]).derivative([q, v, tau], d)
    found = gb.compile(gb.jvp(fn, model), model)(q, v, tau, *d)
    assert relative(np.concatenate(found), expected) < 1e-10  # rows are ill-conditioned
    w = [rng.normal(size=len(x)) for x in found]
    back = gb.compile(gb.vjp(fn, model), model)(q, v, tau, *w)
    power = sum(a @ b for a, b in zip(back, d, strict=True))
    assert abs(power - np.concatenate(w) @ expected) < 1e-10 * (
        np.abs(np.concatenate(w)) @ np.abs(expected)
    )


def test_inside_a_function_of_the_users():
    """A gradient inside a function that is compiled and differentiated again, with values of the
    function around in a closure."""
    model = FOUR_BAR
    q, _ = model.random_state(0)
    energy = gb.vjp(gb.energy, model, wrt="q")

    def torque(model, q, gain):
        _, potential = np.zeros(1), energy(model, q, 0.0 * gain, np.zeros(1), np.ones(1))

        def scaled(model, q):
            return gain * gb.frame_pose(model, q, "pin")[1] @ np.ones(3)  # gain comes from around

        return potential + gb.vjp(scaled, model)(model, q, np.ones(1)) * gain

    gain = np.array([0.3])
    plain = torque(model, q, gain)
    compiled = gb.compile(torque, model, shapes={"gain": (1,)})(q, gain)
    np.testing.assert_allclose(compiled, plain, atol=1e-13)
    J = gb.jacobian(torque, model, shapes={"gain": (1,)})
    by_q, by_gain = gb.compile(J, model)(q, gain)
    h = 1e-5
    ahead, behind = (model.integrate(q, np.array([s * h])) for s in (1, -1))
    slope = (torque(model, ahead, gain) - torque(model, behind, gain)) / (2 * h)
    np.testing.assert_allclose(by_q[:, 0], slope, rtol=1e-7)
    slope = (torque(model, q, gain + h) - torque(model, q, gain - h)) / (2 * h)
    np.testing.assert_allclose(by_gain[:, 0], slope, rtol=1e-7)


def test_nested_by_hand_is_the_hessian_where_coordinates_are_plain():
    """jvp of vjp, vjp of jvp and jvp of jvp of a robot without quaternions: one bilinear form."""
    model = load("arm7")
    nv = (model.nv,)
    q, v, tau = next(states(model, 1))
    rng = np.random.default_rng(0)
    d, e, w = (rng.normal(size=model.nv) for _ in range(3))
    fn = gb.forward_dynamics
    vjp, jvp = gb.vjp(fn, model, wrt="q"), gb.jvp(fn, model, wrt="q")
    hessian = e @ gb.hvp(fn, model, wrt="q")(model, q, v, tau, w, d)
    assert jvp.directions == ("d_q",) and gb.jvp(jvp, model, wrt="q").directions == ("dd_q",)
    assert e @ gb.jvp(vjp, model, wrt="q")(model, q, v, tau, w, d) == pytest.approx(
        hessian, rel=1e-11
    )
    assert w @ gb.jvp(jvp, model, wrt="q")(model, q, v, tau, d, e) == pytest.approx(
        hessian, rel=1e-11
    )
    over = gb.vjp(jvp, model, wrt="q")
    assert over.weights == ("w",) and gb.vjp(vjp, model, wrt="q").weights == ("ww",)
    assert e @ over(model, q, v, tau, d, w) == pytest.approx(hessian, rel=1e-11)
    assert nv == over(model, q, v, tau, d, w).shape


def test_configurations_of_other_names():
    """Two configurations: the derivative of a distance along both."""
    model = load("joint_sampler")
    q0, q1 = (model.random_state(i)[0] for i in range(2))
    link = model.bodies[-1].name

    def apart(model, start, end):
        gap = gb.frame_pose(model, start, link)[1] - gb.frame_pose(model, end, link)[1]
        return gap @ gap

    shapes = {"start": (model.nq,), "end": (model.nq,)}
    options = {"shapes": shapes, "configurations": ("start", "end")}
    J = gb.jacobian(apart, model, **options)(model, q0, q1)
    assert [x.shape for x in J] == [(model.nv,), (model.nv,)]
    d = np.random.default_rng(0).normal(size=(2, model.nv))
    expected = Reference(lambda *x: apart(model, *x), model, [None, None]).derivative([q0, q1], d)
    assert sum(a @ b for a, b in zip(J, d, strict=True)) == pytest.approx(expected[0], rel=1e-12)
    second = gb.hvp(apart, model, **options)
    assert second.weights == ()  # of a scalar
    H = second(model, q0, q1, *d)
    curvature = Reference(lambda *x: apart(model, *x), model, [None, None]).second([q0, q1], d)
    assert sum(a @ b for a, b in zip(H, d, strict=True)) == pytest.approx(curvature[0], rel=1e-11)


def test_the_retraction_is_that_of_the_model():
    """T ξ is the velocity of model.integrate on every kind of joint and loop."""
    for robot in ("joint_sampler", "loop_sampler", "tello"):
        model = load(robot)
        q, v = model.random_state(5)
        h = 1e-6
        ahead, behind = (model.integrate(q, v, s * h) for s in (1, -1))
        rate = gb.jvp(lambda model, q: q * 1.0, model)(model, q, v)
        np.testing.assert_allclose(rate, (ahead - behind) / (2 * h), atol=1e-7)
        np.testing.assert_allclose(moved(model, q, v * 1e-9), q + rate * 1e-9, atol=1e-14)


def test_other_targets(tmp_path):
    """C, CasADi and PTX hold a derivative like any other function."""
    model = FOUR_BAR
    q, v, tau = next(states(model, 1))
    vjp = gb.vjp(gb.forward_dynamics, model)
    expected = np.concatenate(vjp(model, q, v, tau, [1.0]))
    found = gb.casadi_function(vjp, model)(q, v, tau, [1.0])
    np.testing.assert_allclose([float(x) for x in found], expected, rtol=1e-12)
    compiled = gb.compile(vjp, model)
    written = gb.export(compiled, tmp_path)
    assert written is None or written
    code = [p for p in tmp_path.iterdir() if p.suffix == ".c"]
    subprocess.run(["cc", "-O1", "-c", *map(str, code), "-o", str(tmp_path / "x.o")], check=True)
    assert "vjp_forward_dynamics" in code[0].read_text()


def test_names_and_shapes():
    product = gb.vjp(gb.forward_dynamics, CHEETAH, value=True)
    assert repr(product) == "<vjp of forward_dynamics by q, v, tau>"
    assert product.__name__ == "vjp_forward_dynamics" and "q, v, tau" in product.__doc__
    compiled = gb.compile(product, CHEETAH)
    assert [a.name for a in compiled.inputs] == ["q", "v", "tau", "w"]
    nv = (CHEETAH.nv,)
    assert [a.shape for a in compiled.outputs] == [nv, nv, nv, nv]
    by_place = gb.jvp(gb.forward_dynamics, CHEETAH, wrt=[0, -1, "q"])
    assert by_place.wrt == ("q", "tau") and by_place.directions == ("d_q", "d_tau")
    assert gb.jvp(gb.forward_dynamics, CHEETAH, wrt="mass").directions == ("d_mass",)


def test_a_key_tells_derivatives_of_one_function_apart():
    def mine(model, q, v):
        return np.sin(v) * v

    q, v = CHEETAH.random_state(0)
    found = [
        gb.compile(gb.jacobian(mine, CHEETAH, wrt=name), CHEETAH, key="a test's own")(q, v)
        for name in ("v", "q")
    ]
    np.testing.assert_allclose(found[0], np.diag(np.cos(v) * v + np.sin(v)))
    assert not found[1].any()


def test_refused():
    model = FOUR_BAR
    q, v = model.random_state(0)
    fn = gb.forward_dynamics
    errors = {
        "no argument named 'mas': did you mean 'mass'": lambda: gb.jvp(fn, model, wrt="mas"),
        "no argument named '7'": lambda: gb.jvp(fn, model, wrt=[7]),
        "wrt is 2.5": lambda: gb.jvp(fn, model, wrt=2.5),
        "value is": lambda: gb.jvp(fn, model, value=b"x"),
        "configurations is": lambda: gb.hvp(fn, model, configurations=3),
        "wrt is empty": lambda: gb.jvp(fn, model, wrt=[]),
        "no mode named 'sideways'": lambda: gb.jacobian(fn, model, mode="sideways"),
        "needs a Model": lambda: gb.jvp(fn, "four_bar"),
        "fn is|needs a function": lambda: gb.vjp(3, model),
        r"d_q has shape \(3,\), expected \(1,\)": lambda: gb.jvp(fn, model, wrt="q")(
            model, q, v, v, np.ones(3)
        ),
        "missing a required argument": lambda: gb.jvp(fn, model)(model, q, v, v),
        "d_q is 'x'": lambda: gb.jvp(fn, model, wrt="q")(model, q, v, v, "x"),
        "w is .*nan": lambda: gb.vjp(fn, model)(model, q, v, v, np.array([np.nan])),
        "loop '": lambda: gb.vjp(fn, model)(model, q + 0.1, v, v, v),
        "is no configuration": lambda: gb.jvp(fn, model, configurations=("v",)),
        "'forward_dynamics': no option named 'metod'": lambda: gb.jvp(fn, model, metod="c_aba"),
        "cannot be traced": lambda: gb.vjp(lambda model, q: q if q[0] > 0 else -q, model),
    }  # fmt: skip
    for message, call in errors.items():
        with pytest.raises(gb.GrublerError, match=message):
            call()


def test_methods_keep_their_own_derivatives():
    """Approximate methods do not solve the exact equation: theirs are derivatives of what they
    compute."""
    model = CHEETAH
    nv = (model.nv,)
    q, v, tau = next(states(model, 1))
    d = np.random.default_rng(0).normal(size=(3, model.nv))
    for method in ("c_aba", "mass_matrix", "projection", "approximate", "unconstrained", "auto"):
        fn = gb.jvp(gb.forward_dynamics, model, method=method)
        if method == "auto":
            assert fn.options["method"] in ("c_aba", "mass_matrix", "projection")
            continue

        def plain(*x, method=method):
            return gb.forward_dynamics(model, *x, method=method)

        expected = Reference(plain, model, [None, nv, nv]).derivative([q, v, tau], d)
        assert relative(fn(model, q, v, tau, *d), expected) < 1e-12


def test_symbols_have_shapes():
    seen = []

    def fn(model, q):
        seen.append(is_symbolic(q))
        return q[:2]

    gb.jvp(fn, FOUR_BAR)(FOUR_BAR, FOUR_BAR.neutral(), np.ones(1))
    assert seen == [True]


def test_external_forces():
    """By f_ext, an input without default: of forward dynamics through their equation."""
    model = load("six_bar")
    q, v, tau = next(states(model, 1))
    rng = np.random.default_rng(1)
    f_ext, df = (rng.normal(size=(len(model.bodies), 6)) for _ in range(2))
    inputs = ["q", "v", "tau", "f_ext"]
    nv = (model.nv,)
    d = [rng.normal(size=model.nv) for _ in range(3)]
    found = gb.jvp(gb.forward_dynamics, model, inputs=inputs)(model, q, v, tau, f_ext, *d, df)
    reference = Reference(
        lambda q, v, tau, f: gb.forward_dynamics(model, q, v, tau, f), model,
        [None, nv, nv, f_ext.shape],
    )  # fmt: skip
    expected = reference.derivative([q, v, tau, f_ext], [*d, df])
    assert relative(found, expected) < 1e-12
    back = gb.vjp(gb.forward_dynamics, model, inputs=inputs, wrt="f_ext")
    w = rng.normal(size=model.nv)
    moments = gb.compile(back, model)(q, v, tau, f_ext, w)
    J = gb.jacobian(gb.forward_dynamics, model, inputs=inputs, wrt="f_ext")(model, q, v, tau, f_ext)
    np.testing.assert_allclose(moments.ravel(), w @ J, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_in_both_dtypes_and_on_a_gpu(dtype):
    """Newton's loop closes to what the dtype can hold; PTX is written for each."""
    model = load("six_bar")

    def closed(model, q):
        return gb.assemble(model, q)[0]

    q = model.neutral() + np.random.default_rng(0).uniform(-0.01, 0.01, model.nq)
    J = gb.jacobian(closed, model, mode="reverse", configurations=())
    exact, found = J(model, q), gb.compile(J, model, dtype=dtype)(q.astype(dtype))
    assert relative(found, exact) < (1e-4 if dtype == "float32" else 1e-12)
    on_gpu = gb.compile(J, model, target="cuda", dtype=dtype)
    assert ".entry" in on_gpu.ptx(0)


def test_products_of_our_functions_are_found_in_the_cache():
    vjp, other = (gb.vjp(gb.forward_dynamics, FOUR_BAR, wrt=n) for n in ("q", "v"))
    first = fingerprint(vjp, FOUR_BAR)
    assert first and first == fingerprint(gb.vjp(gb.forward_dynamics, FOUR_BAR, wrt="q"), FOUR_BAR)
    assert first != fingerprint(other, FOUR_BAR)
    assert not fingerprint(gb.jvp(lambda model, q: q, FOUR_BAR), FOUR_BAR)
    again = pickle.loads(pickle.dumps(vjp))
    q, v, tau = next(states(FOUR_BAR, 1))
    np.testing.assert_array_equal(
        again(FOUR_BAR, q, v, tau, [1.0]), vjp(FOUR_BAR, q, v, tau, [1.0])
    )


def test_cassie():
    """Two legs closed by rods and plantars, some of whose ball joints are partly independent."""
    path = SHARED / "models" / "cassie_mjcf" / "cassie.xml"
    if not path.exists():
        pytest.skip("no Cassie beside the repository")
    model = gb.load(path)
    nv = (model.nv,)
    q, v, tau = next(states(model, 1))
    rng = np.random.default_rng(1)
    *d, w = (rng.normal(size=model.nv) for _ in range(4))
    fn = gb.forward_dynamics
    expected = Reference(lambda *x: fn(model, *x), model, [None, nv, nv]).derivative([q, v, tau], d)
    assert relative(gb.jvp(fn, model)(model, q, v, tau, *d), expected) < 1e-12
    back = gb.compile(gb.vjp(fn, model), model)(q, v, tau, w)
    power = sum(a @ b for a, b in zip(back, d, strict=True))
    assert abs(power - w @ expected) < 1e-12 * (np.abs(w) @ np.abs(expected))


def test_a_model_without_freedom():
    builder = gb.ModelBuilder("rigid")
    builder.add_body("plate", 1.0, (0, 0, 0), (1, 0, 0, 1, 0, 1))
    builder.add_joint("bolt", "fixed", "world", "plate")
    model, none = builder.build(), np.zeros(0)
    assert gb.jacobian(gb.forward_dynamics, model, wrt="q")(model, *[none] * 3).shape == (0, 0)
    assert [x.shape for x in gb.vjp(gb.forward_dynamics, model)(model, *[none] * 4)] == [(0,)] * 3
    assert gb.jvp(gb.inverse_dynamics, model)(model, *[none] * 6).shape == (0,)
    assert gb.hvp(gb.forward_dynamics, model, wrt="v")(model, *[none] * 5).shape == (0,)
