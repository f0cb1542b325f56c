"""Products of every robot of the zoo against derivatives in fifty digits, plain and compiled."""

import numpy as np
import pytest
from extended import Reference

import grubler as gb
from conftest import ROBOTS, load, relative, states

HEAVY = {"loop_sampler", "tello", "tello_explicit", "jvrc1", "mit_humanoid", "robot_b"}
IMPLICIT = ["tello", "four_bar", "parallel_four_bar", "six_bar", "planar_leg_linkage",
            "loop_sampler"]  # fmt: skip


def directions(model, seed, *sizes):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=n) for n in sizes]


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("fn", [gb.forward_dynamics, gb.inverse_dynamics], ids=lambda f: f.__name__)
def test_dynamics_in_fifty_digits(robot, fn):
    """J ẋ by forward mode, and w · J ẋ by reverse mode, which agree to rounding."""
    model = load(robot)
    nv = model.nv
    reference = Reference(lambda q, v, x: fn(model, q, v, x), model, [None, (nv,), (nv,)])
    jvp, vjp = gb.jvp(fn, model), gb.vjp(fn, model)
    for seed, (q, v, x) in enumerate(states(model, 1 if robot in HEAVY else 2)):
        dq, dv, dx, w = directions(model, seed, nv, nv, nv, nv)
        expected = reference.derivative([q, v, x], [dq, dv, dx])
        found = jvp(model, q, v, x, dq, dv, dx)
        assert relative(found, expected) < 1e-12
        back = vjp(model, q, v, x, w)
        power = sum(a @ b for a, b in zip(back, (dq, dv, dx), strict=True))
        assert abs(power - w @ found) <= 1e-13 * (np.abs(w) @ np.abs(found))


@pytest.mark.parametrize("robot", ["four_bar", "six_bar", "mini_cheetah", "joint_sampler"])
def test_compiled_is_what_numpy_gives(robot):
    """Twenty states at once, in both dtypes, for each product."""
    model = load(robot)
    nv = model.nv
    Q, V, T = (np.stack(x) for x in zip(*states(model, 20), strict=True))
    D = np.random.default_rng(4).normal(size=(20, 4, nv))
    fn = gb.forward_dynamics
    cases = {
        gb.jvp(fn, model): (Q, V, T, D[:, 0], D[:, 1], D[:, 2]),
        gb.vjp(fn, model): (Q, V, T, D[:, 3]),
        gb.hvp(fn, model, wrt=["q", "v"]): (Q, V, T, D[:, 3], D[:, 0], D[:, 1]),
        gb.jacobian(fn, model, wrt="q", value=True): (Q, V, T),
    }
    for product, arguments in cases.items():
        batch = gb.compile(product, model)(*arguments)
        single = gb.compile(product, model, dtype="float32")(*[x.astype("f4") for x in arguments])
        for i in range(0, 20, 7):
            for k, plain in enumerate(_tuple(product(model, *[x[i] for x in arguments]))):
                assert relative(_tuple(batch)[k][i], plain) < 1e-12
                assert relative(_tuple(single)[k][i], plain) < 2e-2


def _tuple(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("robot", [r for r in ROBOTS if r not in HEAVY] + ["tello"])
def test_second_derivatives_in_fifty_digits(robot):
    """ẋᵀ H ẋ of a weighted acceleration along q ⊕ ξ, and H is symmetric."""
    model = load(robot)
    nv = model.nv
    fn = gb.forward_dynamics
    q, v, tau = next(states(model, 1))
    dq, dv, dt, eq, ev, et, w = directions(model, 3, *[nv] * 7)
    hvp = gb.hvp(fn, model)
    first, second = hvp(model, q, v, tau, w, dq, dv, dt), hvp(model, q, v, tau, w, eq, ev, et)
    left = sum(a @ b for a, b in zip(first, (eq, ev, et), strict=True))
    right = sum(a @ b for a, b in zip(second, (dq, dv, dt), strict=True))
    size = sum(np.abs(a) @ np.abs(b) for a, b in zip(first, (eq, ev, et), strict=True))
    assert abs(left - right) <= 1e-12 * size + 1e-14  # one robot's Hessian is zero
    reference = Reference(lambda q, v, x: fn(model, q, v, x), model, [None, (nv,), (nv,)])
    curvature = reference.second([q, v, tau], [dq, dv, dt])
    found = sum(a @ b for a, b in zip(first, (dq, dv, dt), strict=True))
    assert abs(found - w @ curvature) <= 1e-12 * (np.abs(w) @ np.abs(curvature)) + 1e-14


@pytest.mark.parametrize("robot", IMPLICIT)
def test_closing_loops_is_differentiated_at_its_fixed_point(robot):
    """assemble(q): from an open guess, whose independent joints pass through, in both modes."""
    model = load(robot)
    q, _ = model.random_state(3)
    rng = np.random.default_rng(1)
    guess = _pushed_open(model, q, rng)
    d, w = rng.normal(size=model.nq), rng.normal(size=model.nq)

    def closed(model, q):
        return gb.assemble(model, q)[0]

    options = {"configurations": ()}  # a guess: its entries are varied one by one
    found = gb.jvp(closed, model, **options)(model, guess, d)
    expected = Reference(lambda q: closed(model, q), model, [(model.nq,)]).derivative([guess], [d])
    assert relative(found, expected) < 1e-12
    vjp = gb.vjp(closed, model, **options)
    back = vjp(model, guess, w)
    assert abs(back @ d - w @ expected) <= 1e-12 * (np.abs(w) @ np.abs(expected))
    compiled = gb.compile(vjp, model)(np.stack([guess, q]), np.stack([w, w]))
    assert relative(compiled[0], back) < 1e-12


def _pushed_open(model, q, rng):
    """A configuration near q with its loops open, its independent joints where they are."""
    parts = []
    for cluster in model.clusters:
        joint, x = cluster.embedding, q[cluster.q]
        if joint.implicit:
            step = np.zeros(joint.nv_span)
            step[list(joint.dependent)] = rng.uniform(-0.02, 0.02, len(joint.dependent))
            positions, moved = joint.positions(x), joint.split(step)
            x = np.concatenate(
                [b.joint.motion.integrate(positions[b.index], moved[b.index]) for b in joint.bodies]
            )
        parts.append(x)
    return np.concatenate(parts)


def test_least_norm_steps_depend_on_their_start():
    """All joints move, so that the fixed point depends on the way there: both modes follow it."""
    model = load("four_bar")
    q, _ = model.random_state(3)
    rng = np.random.default_rng(1)
    open_q = q + rng.uniform(-0.05, 0.05, model.nq)

    def closed(model, q):
        return gb.assemble(model, q, hold=False)[0]

    reference = Reference(lambda q: closed(model, q), model, [(model.nq,)])
    expected = np.stack([reference.derivative([open_q], [d]) for d in np.eye(model.nq)], axis=1)
    for mode in ("forward", "reverse"):
        J = gb.jacobian(closed, model, mode=mode, configurations=())
        assert relative(J(model, open_q), expected) < 1e-11
        P = gb.compile(J, model)(q)
        np.testing.assert_allclose(P @ P, P, atol=1e-12)  # a projection on the closed manifold
        assert relative(gb.compile(J, model)(np.stack([q, open_q]))[1], expected) < 1e-11


OUTPUTS = {
    "mass_matrix": (gb.mass_matrix, {}),
    "energy": (gb.energy, {}),
    "centroidal": (gb.centroidal, {"inputs": ["q", "v"]}),
    "frame_pose": (gb.frame_pose, {"frame": None}),
    "frame_jacobian": (gb.frame_jacobian, {"frame": None}),
    "spanning_state": (gb.spanning_state, {"inputs": ["q", "v", "a"]}),
}


@pytest.mark.parametrize("robot", ["joint_sampler", "six_bar", "mini_cheetah"])
@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_jacobians_of_all_shapes(robot, name):
    """Scalars, vectors, matrices and several outputs, forward and reverse, column by column."""
    model = load(robot)
    fn, options = OUTPUTS[name]
    options = dict(options)
    if "frame" in options:
        options["frame"] = model.bodies[-1].name
    J = gb.jacobian(fn, model, mode="forward", value=True, **options)
    names, nv = J.names, model.nv
    q, v, a = next(states(model, 1))
    point = [{"q": q, "v": v, "a": a}[n] for n in names]
    found = J(model, *point)
    back = gb.jacobian(fn, model, mode="reverse", **options)(model, *point)
    plain = fn(model, **dict(zip(names, point, strict=True)),
               **{k: x for k, x in options.items() if k != "inputs"})  # fmt: skip
    plain = [x for x in _tuple(plain) if x is not None] if isinstance(plain, tuple) else [plain]
    values, blocks = found[: len(plain)], found[len(plain) :]
    for x, y in zip(values, plain, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)
    for x, y in zip(blocks, _tuple(back), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-11)
    kinds = [None if n == "q" else (nv,) for n in names]

    def flat(*x):
        named = dict(zip(names, x, strict=True))
        out = fn(model, **named, **{k: x for k, x in options.items() if k != "inputs"})
        return tuple(y for y in out if y is not None) if isinstance(out, tuple) else out

    d = directions(model, 2, *[nv] * len(names))
    expected = Reference(flat, model, kinds).derivative(point, d)
    start = 0
    for i, x in enumerate(plain):
        row = blocks[i * len(names) : (i + 1) * len(names)]
        rate = sum(np.reshape(J @ di, np.shape(x)) for J, di in zip(row, d, strict=True))
        size = np.size(x)
        np.testing.assert_allclose(
            np.ravel(rate), expected[start : start + size], rtol=1e-12,
            atol=1e-12 * max(1.0, np.abs(expected).max()),
        )  # fmt: skip
        start += size


def test_symmetries():
    """∂a/∂tau = M⁻¹, ∂ID/∂a = M, and gravity's torque is the gradient of the potential energy."""
    for robot in ("mini_cheetah", "six_bar"):
        model = load(robot)
        q, v, tau = next(states(model, 1))
        M = gb.mass_matrix(model, q)
        inverse = gb.jacobian(gb.forward_dynamics, model, wrt="tau")(model, q, v, tau)
        assert relative(inverse @ M, np.eye(model.nv)) < 1e-9
        assert (
            relative(gb.jacobian(gb.inverse_dynamics, model, wrt="a")(model, q, v, tau), M) < 1e-12
        )
        gradient = gb.vjp(gb.energy, model, wrt="q")(model, q, 0 * v, [0.0], [1.0])
        assert relative(gb.inverse_dynamics(model, q, 0 * v, 0 * v), gradient) < 1e-12
