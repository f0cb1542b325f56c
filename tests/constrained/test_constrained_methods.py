"""Every method against the dense KKT solution, on floats, traced, and compiled."""

import numpy as np
import pytest
from cases import (
    CASES,
    LEGS,
    hanging,
    points,
    smallest_lever,
    state,
    with_world_frame,
)

import grubler as gb
from conftest import load, relative
from grubler.algebra.symbolic import trace
from grubler.constrained import Constraint, constrained_forward_dynamics
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.plan import row_determined

HARD = ("pv", "pv_early", "ltl", "proximal")


def case(name):
    robot, constraints = CASES[name]
    return load(robot), constraints


def close(found, expected, tolerance=1e-9):
    assert relative(found.a, expected.a) < tolerance
    if len(expected.multipliers):
        assert relative(found.multipliers, expected.multipliers) < tolerance


@pytest.mark.parametrize("name", CASES)
def test_hard_methods_agree_with_the_dense_solution(name):
    model, constraints = case(name)
    for seed in range(2):
        q, v, tau = state(model, seed)
        expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt")
        scale = 1 + np.abs(expected.a).max()
        for method in HARD:
            found = constrained_forward_dynamics(model, q, v, tau, constraints, method=method)
            close(found, expected)
            assert np.abs(found.residual).max(initial=0.0) < 1e-8 * scale
        regular = constrained_forward_dynamics(model, q, v, tau, constraints, regular=True)
        close(regular, expected)


@pytest.mark.parametrize("name", CASES)
def test_the_solution_is_gauss_principle(name):
    """M a + h = tau + J' λ and J a + J̇ v + R λ = k, by algorithms that share nothing."""
    model, constraints = case(name)
    q, v, tau = state(model, 5)
    found = constrained_forward_dynamics(model, q, v, tau, constraints)
    force, start = np.zeros(model.nv), 0
    for c in constraints:
        K = np.eye(6)
        if isinstance(c.rows, str):
            K = K[3:] if c.rows == "point" else K
        else:
            K = np.asarray(c.rows, dtype=float) if np.ndim(c.rows) == 2 else K[list(c.rows)]
        lam = found.multipliers[start : start + len(K)]
        start += len(K)
        push = K.T @ lam
        force += gb.frame_jacobian(model, q, c.frame).T @ push
        R, p = gb.frame_pose(model, q, c.frame)
        if c.to is not None:
            R2, p2 = gb.frame_pose(model, q, c.to)
            f = R @ push[3:]
            moment = R @ push[:3] + np.cross(p - p2, f)
            back = np.concatenate([R2.T @ moment, R2.T @ f])
            force -= gb.frame_jacobian(model, q, c.to).T @ back
            continue
        a = gb.frame_jacobian(model, q, c.frame) @ found.a
        a = a + gb.frame_acceleration_bias(model, q, v, c.frame)
        if isinstance(c.rows, str) and c.rows == "point":
            w = gb.frame_jacobian(model, q, c.frame) @ v
            a = a + np.concatenate([np.zeros(3), np.cross(w[:3], w[3:])])
        soft = np.zeros(len(K)) if c.softness is None else c.softness * lam
        wanted = np.zeros(len(K)) if c.acceleration is None else np.asarray(c.acceleration)
        assert np.abs(K @ a + soft - wanted).max() < 1e-11 * (1 + np.abs(found.a).max())
    balance = gb.inverse_dynamics(model, q, v, found.a) - tau - force
    due = min(1e-10, 1e-13 / smallest_lever(model, constraints, q))
    assert np.abs(balance).max() < due * (1 + np.abs(force).max())


def test_forces_alone_pass_joints_that_are_told():
    """Six rows on six joints, and a finger that goes its own way, on a spring or not: no joint's
    inertia is asked for, and all that hangs there is felt by the multipliers."""
    model = hanging()
    for hard, soft in ((6, None), (6, 0.1), (5, None)):
        constraints = [Constraint("hand", tuple(range(6))[6 - hard :])]
        if soft:
            constraints.append(Constraint("tip", (3, 5), softness=soft))
        checked = tuple(checked_constraints(model, constraints))
        assert sorted(row_determined(model, checked)) == ([0, 1, 2, 3, 4, 5] if hard == 6 else [])
        code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
        for seed in range(5):
            q, v, tau = state(model, seed)
            v = v * (seed % 2)
            expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt")
            found = constrained_forward_dynamics(model, q, v, tau, constraints)
            close(found, expected, 1e-11)
            for x, y in zip(code(q, v, tau), expected[:2], strict=True):
                assert relative(x, y) < 1e-11


@pytest.mark.parametrize("name", ["quadruped base", "six_bar held", "leg held"])
def test_robots_of_the_zoo_have_joints_that_are_told(name):
    model, constraints = case(name)
    assert row_determined(model, tuple(checked_constraints(model, constraints)))


TRACED = ["arm7 H", "quadruped 4F3", "quadruped mixed", "mini_cheetah 4F3", "humanoid 2F",
          "mit_humanoid 2F", "tello 2F", "loop_sampler", "soft and hard"]  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_traced(name):
    model, constraints = case(name)
    q, v, tau = state(model, 7)
    for method in HARD if name in ("arm7 H", "quadruped mixed", "soft and hard") else ("pv_early",):
        fn = trace(
            lambda q, v, tau, m=method, r=model, c=constraints: constrained_forward_dynamics(
                r, q, v, tau, c, method=m
            )[:2],
            [q.shape, v.shape, tau.shape],
        )
        expected = constrained_forward_dynamics(model, q, v, tau, constraints, method=method)
        a, multipliers = (np.array(x).ravel() for x in fn(q, v, tau))
        assert relative(a, expected.a) < 1e-10
        assert relative(multipliers, expected.multipliers) < 1e-10


@pytest.mark.parametrize("name", ["arm7 H", "quadruped 4F3", "mini_cheetah 4F3", "humanoid 2F"])
@pytest.mark.parametrize("method", ["pv", "pv_early", "ltl"])
def test_compiled(name, method):
    model, constraints = case(name)
    rows = [state(model, seed) for seed in range(5)]
    Q, V, T = (np.stack(x) for x in zip(*rows, strict=True))
    code = gb.compile(constrained_forward_dynamics, model, constraints=constraints, method=method)
    a, multipliers = code(Q, V, T)
    for i, (q, v, tau) in enumerate(rows):
        expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt")
        assert relative(a[i], expected.a) < 1e-9
        assert relative(multipliers[i], expected.multipliers) < 1e-9


@pytest.mark.parametrize(
    "name", ["arm7 H3", "quadruped mixed", "mini_cheetah 4F3", "humanoid 2F", "tello_explicit F+H3"]
)
def test_no_posture_costs_digits(name):
    """A thousand random postures, those near singular ones among them: PV-early against LTL."""
    model, constraints = case(name)
    Q, V, T = (np.stack(x) for x in zip(*[state(model, s) for s in range(1000)], strict=True))
    found, expected = (
        gb.compile(constrained_forward_dynamics, model, constraints=constraints, method=method)
        for method in ("pv_early", "ltl")
    )
    for x, y in zip(found(Q, V, T), expected(Q, V, T)):
        assert (np.abs(x - y).max(axis=1) / np.abs(y).max(axis=1)).max() < 1e-9


def test_compiled_without_constraints_is_forward_dynamics():
    model = load("mini_cheetah")
    q, v, tau = state(model)
    for method in ("pv", "pv_early", "ltl", "proximal", "kkt"):
        found = constrained_forward_dynamics(model, q, v, tau, [], method=method)
        assert relative(found.a, gb.forward_dynamics(model, q, v, tau)) < 1e-10
        assert found.multipliers.shape == found.residual.shape == (0,)


def test_desired_accelerations_and_forces_as_inputs_of_compiled_code():
    model = load("quadruped")
    q, v, tau = state(model)
    rng = np.random.default_rng(0)
    desired, forces = rng.uniform(-1, 1, 6), rng.uniform(-5, 5, (len(model.bodies), 6))
    code = gb.compile(
        constrained_forward_dynamics, model, constraints=points(LEGS[:2]),
        inputs=["q", "v", "tau", "desired", "f_ext"], shapes={"desired": (6,)},
    )  # fmt: skip
    a, _ = code(q, v, tau, desired, forces)
    described = [Constraint(f, "point", acceleration=desired[3 * i : 3 * i + 3])
                 for i, f in enumerate(LEGS[:2])]  # fmt: skip
    expected = constrained_forward_dynamics(model, q, v, tau, described, forces, method="kkt")
    assert relative(a, expected.a) < 1e-10


def test_gravity_and_masses_as_parameters():
    model = load("quadruped")
    q, v, tau = state(model)
    gravity, mass = np.array([1.0, 2.0, -3.0]), 1.2 * gb.parameter_values(model, "mass")
    other = gb.with_parameters(model, {"gravity": gravity, "mass": mass})
    for method in ("pv", "pv_early"):
        code = gb.compile(
            constrained_forward_dynamics, model, constraints=points(LEGS), method=method,
            parameters=["gravity", "mass"],
        )  # fmt: skip
        expected = constrained_forward_dynamics(other, q, v, tau, points(LEGS), method="kkt")
        assert relative(code(q, v, tau, gravity, mass)[0], expected.a) < 1e-9


def test_armature():
    b = gb.ModelBuilder("geared")
    parent = "world"
    for i in range(5):
        b.add_body(f"b{i}", 1.0, com=(0.1, 0.05 * i, 0), inertia=(0.1, 0, 0, 0.2, 0, 0.1))
        b.add_joint(
            f"j{i}", "revolute", parent, f"b{i}", xyz=(0.1, 0.2, 0.3), axis=np.eye(3)[i % 3],
            armature=0.3 * (i % 2),
        )  # fmt: skip
        parent = f"b{i}"
    model = b.build()
    q, v, tau = state(model)
    for constraints in ([("b4", "point")], [("b4", (0, 4)), Constraint("b2", (2,), softness=0.2)]):
        expected = constrained_forward_dynamics(model, q, v, tau, constraints, method="kkt")
        for method in HARD:
            close(
                constrained_forward_dynamics(model, q, v, tau, constraints, method=method), expected
            )


class TestStabilisation:
    """Baumgarte: errors of position and velocity die out with the period that was asked for."""

    def test_the_desired_acceleration_is_that_of_a_damped_spring(self):
        model = load("quadruped")
        q, v, tau = state(model)
        R, p = gb.frame_pose(model, q, LEGS[0])
        target = p + np.array([0.01, -0.02, 0.03])
        speed = gb.frame_jacobian(model, q, LEGS[0])[3:] @ v
        for period, damping in ((0.1, 1.0), (0.25, 1.0), (0.25, 0.4)):
            held = Constraint(LEGS[0], "point", target=target, period=period, damping=damping)
            k = -2 * damping / period * speed - R.T @ (p - target) / period**2
            plain = Constraint(LEGS[0], "point", acceleration=k)
            found, expected = (
                constrained_forward_dynamics(model, q, v, tau, [c]) for c in (held, plain)
            )
            close(found, expected)
        default = constrained_forward_dynamics(
            model, q, v, tau, [Constraint(LEGS[0], "point", target=target)]
        )
        same = Constraint(LEGS[0], "point", target=target, period=0.1)
        close(default, constrained_forward_dynamics(model, q, v, tau, [same]), 1e-14)

    def test_a_weld_comes_back_to_its_place(self):
        """A drifted arm held at its hand: after some periods the hand is where it belongs."""
        model = load("arm7")
        q = model.random_state(2)[0]
        R, p = gb.frame_pose(model, q, "panda_hand_tcp")
        hold = [Constraint("panda_hand_tcp", target=(R, p), period=0.1)]
        v = np.full(7, 0.1)
        q = model.integrate(q, np.full(7, 0.01))
        for _ in range(200):
            a = constrained_forward_dynamics(model, q, v, -2.0 * v, hold).a
            v = v + 0.01 * a
            q = model.integrate(q, v, 0.01)
        R_now, p_now = gb.frame_pose(model, q, "panda_hand_tcp")
        assert np.abs(p_now - p).max() < 1e-4 and np.abs(R_now - R).max() < 1e-4

    def test_relative_place(self):
        """Two feet held at a bar: where they are, without a target, or pulled to another place."""
        model = load("quadruped")
        q, v, tau = state(model, 4)
        p0 = gb.frame_pose(model, q, LEGS[0])[1]
        R1, p1 = gb.frame_pose(model, q, LEGS[1])
        bar = R1.T @ (p0 - p1)
        at = Constraint(LEGS[0], "point", to=LEGS[1], target=bar)
        off = constrained_forward_dynamics(model, q, 0 * v, tau, [at])
        plain = [Constraint(LEGS[0], "point", to=LEGS[1])]
        assert np.abs(off.residual).max() < 1e-9
        for method in HARD:
            close(
                constrained_forward_dynamics(model, q, v, tau, [at], method=method),
                constrained_forward_dynamics(model, q, v, tau, [at], method="kkt"),
            )
        close(constrained_forward_dynamics(model, q, 0 * v, tau, plain), off)
        off_by = np.array([0.01, -0.02, 0.03])
        k = R1 @ off_by / 0.1**2  # r'' of a damped spring at rest
        k = gb.frame_pose(model, q, LEGS[0])[0].T @ k
        pulled = Constraint(LEGS[0], "point", to=LEGS[1], target=bar + off_by)
        expected = Constraint(LEGS[0], "point", to=LEGS[1], acceleration=k)
        close(
            *(constrained_forward_dynamics(model, q, 0 * v, tau, [c]) for c in (pulled, expected))
        )

    def test_world_frames(self):
        """A place seen from a frame of the world is a place in the world."""
        model = with_world_frame()
        q, v, tau = state(model)
        R, p = gb.frame_pose(model, q, "anchor")
        R_there, p_there = gb.frame_pose(model, model.random_state(9)[0], "link4")
        seen = (R.T @ R_there, R.T @ (p_there - p))
        for rows, here, there in (("point", p_there, seen[1]), ("weld", (R_there, p_there), seen)):
            expected = Constraint("link4", rows, target=here)
            found = Constraint("link4", rows, to="anchor", target=there)
            for c in (expected, found):
                close(
                    solve(model, q, v, tau, [c]), solve(model, q, v, tau, [c], method="kkt"), 1e-6
                )
            a, b = solve(model, q, v, tau, [found]), solve(model, q, v, tau, [expected])
            assert relative(a.a, b.a) < 1e-9


def solve(model, q, v, tau, constraints, **options):
    return constrained_forward_dynamics(model, q, v, tau, constraints, **options)
