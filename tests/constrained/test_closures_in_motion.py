"""Closures over time: drift, stabilisation, momentum across events; limbs that are joined."""

import numpy as np
import pytest
from cases import grow
from pairs import GRAVITY, JOINTS, free, of_tree, tree

import grubler as gb
from conftest import relative
from grubler.algebra.spatial import Transform, axis_rotation
from grubler.constrained import ClosedChain, Closure, Constraint, constrained_forward_dynamics
from grubler.constrained.held import HeldRows
from grubler.model.derived import spanning_tree

FLOAT = free("a").bodies[0].joint.motion
HINGE = JOINTS["hinge"][1]


def runge_kutta(chain, states, t: float, dt: float, motions=None):
    """One classical step of free bodies, (q, v) by name; `motions` at a time."""

    def rate(s, at):
        given = {n: (unit(q), v, None) for n, (q, v) in s.items()}
        a = chain.forward_dynamics(given, motions=motions and motions(at)).a
        return {n: (FLOAT.derivative(q, v), a[n]) for n, (q, v) in s.items()}

    def moved(s, k, h):
        return {n: (s[n][0] + h * k[n][0], s[n][1] + h * k[n][1]) for n in s}

    k1 = rate(states, t)
    k2 = rate(moved(states, k1, dt / 2), t + dt / 2)
    k3 = rate(moved(states, k2, dt / 2), t + dt / 2)
    k4 = rate(moved(states, k3, dt), t + dt)
    for k, h in ((k1, dt / 6), (k2, dt / 3), (k3, dt / 3), (k4, dt / 6)):
        states = moved(states, k, h)
    return {n: (unit(q), v) for n, (q, v) in states.items()}


def unit(q):
    return np.concatenate([q[:3], q[3:] / np.linalg.norm(q[3:])])


def simulated(chain, states, seconds: float, steps: int, motions=None):
    for i in range(steps):
        states = runge_kutta(chain, states, i * seconds / steps, seconds / steps, motions)
    return states


def pair(closures, gravity=GRAVITY, **options) -> ClosedChain:
    models = {n: free(n, gravity=gravity) for n in "ab"}
    return ClosedChain({"a": models["a"]}, {"b": models["b"]}, closures, **options)


def spun(joint: str, speed: float, gravity=GRAVITY, seed=0):
    """Bodies on a joint that moves at a speed, and so does body a."""
    model, rng = tree(joint, gravity), np.random.default_rng(seed)
    q, v = model.random_state(seed)[0], rng.uniform(-1, 1, model.nv)
    v[6:] = speed
    bodies = of_tree(model, q, v, 0 * v)
    return {n: (x.q, x.v) for n, x in bodies.items()}


def opening(states):
    """How far the ports of a hinge are apart, and the sine of the angle between its axes."""
    (R, p), (R_a, p_a) = (gb.frame_pose(free(n), states[n][0], f"{n}_port") for n in "ba")
    return np.linalg.norm(p - p_a), np.linalg.norm(np.cross(R[:, 2], R_a[:, 2]))


def test_a_hinge_does_not_open_and_its_drift_is_of_the_integrators_order():
    """One second at 6 rad/s without stabilisation: the drift of Runge and Kutta's steps, of fourth
    order."""
    chain = pair([Closure("c", ("b", "b_port"), ("a", "a_port"), HINGE, period=None)])
    start = spun("hinge", 6.0)
    drift = np.array([opening(simulated(chain, start, 1.0, n)) for n in (50, 100, 200)])
    assert drift[2].max() < 1e-6
    order = np.log2(drift[:-1] / drift[1:])
    assert np.all(order > 3.5), (drift, order)


@pytest.mark.parametrize("joint", ["hinge", "cylinder", "slider", "universal", "ball"])
def test_stabilised_closures_come_back_at_any_angle(joint):
    """Ports that are a little apart and tilted meet again, while the joint moves on."""
    rows = JOINTS[joint][1]
    place = (np.eye(3), np.zeros(3))
    chain = pair([Closure("c", ("b", "b_port"), ("a", "a_port"), rows, place, period=0.05)])
    states = spun(joint, 6.0 if joint != "slider" else 0.5, gravity=np.zeros(3))
    model = free("b")
    q, v = states["b"]
    states["b"] = model.integrate(q, np.array([2e-3, -1e-3, 1e-3, 1e-3, 2e-3, -1e-3])), v
    held = chain.closures["c"].checked

    def error(s):
        (R, p), (R_a, p_a) = (gb.frame_pose(free(n), s[n][0], f"{n}_port") for n in "ba")
        X = Transform(R.T, p) @ Transform(R_a.T, p_a).inverse()
        return np.abs(held.error(X)).max()

    assert error(states) > 5e-4
    assert error(simulated(chain, states, 1.0, 250)) < 1e-7


def momentum(states):
    """Total linear momentum, and angular about the origin."""
    total = np.zeros(6)
    for n, (q, v) in states.items():
        c = gb.centroidal(free(n), q, v)
        total += np.concatenate([c.momentum[:3] + np.cross(c.com, c.momentum[3:]), c.momentum[3:]])
    return total


@pytest.mark.parametrize("joint", JOINTS)
def test_momentum_through_attachment_motion_and_release(joint):
    """No gravity, ports apart: attached as they are, caught, moved, released, moved."""
    zero = np.zeros(3)
    chain = pair([], zero, ports={"a": ["a_port"], "b": ["b_port"]})
    rng = np.random.default_rng(1)
    states = {n: (free(n).random_state(i)[0], rng.uniform(-1, 1, 6)) for i, n in enumerate("ab")}
    start = momentum(states)
    due = 1e-12 * np.abs(start).max()
    closure = Closure("c", ("b", "b_port"), ("a", "a_port"), JOINTS[joint][1])
    chain.attach(closure, {n: q for n, (q, _) in states.items()})
    after = chain.impulse({n: (q, v, None) for n, (q, v) in states.items()})
    states = {n: (states[n][0], after[n]) for n in "ab"}
    assert np.abs(momentum(states) - start).max() < due
    states = simulated(chain, states, 0.05, 400)
    assert np.abs(momentum(states) - start).max() < due
    chain.detach("c")
    states = simulated(chain, states, 0.02, 100)
    assert np.abs(momentum(states) - start).max() < due


def test_a_driven_hinge_follows_its_angle():
    """The angle of a weld that turns as prescribed, from a start that is off by a hundredth."""
    place = (np.eye(3), np.zeros(3))
    chain = pair([Closure("c", ("b", "b_port"), ("a", "a_port"), place=place, period=0.05)])
    states = spun("weld", 0.0)
    q, v = states["b"]
    states["b"] = free("b").integrate(q, np.full(6, 0.01)), v

    def motions(t):
        turn = np.array([2.0 * np.sin(3 * t), 6.0 * np.cos(3 * t), -18.0 * np.sin(3 * t)])
        return {"c": np.outer(turn, np.eye(6)[2])}

    end = simulated(chain, states, 1.0, 200, motions)
    (R, p), (R_a, p_a) = (gb.frame_pose(free(n), end[n][0], f"{n}_port") for n in "ba")
    due = axis_rotation(np.array([0.0, 0, 1]), np.cos(2 * np.sin(3)), np.sin(2 * np.sin(3)))
    assert np.abs(p - p_a).max() < 1e-6 and np.abs(R_a.T @ R - due).max() < 1e-6


def limbs(closed: bool) -> gb.Model:
    """A free trunk with two limbs of three joints; `closed`: a hinge joins their ends."""
    b = gb.ModelBuilder("limbs", gravity=GRAVITY)
    b.add_body("trunk", 3.0, com=(0.02, 0, 0.05), inertia=(0.1, 0, 0, 0.12, 0, 0.08))
    b.add_joint("float", "free", "world", "trunk")
    left, right = (grow(b, "trunk", name, n) for name, n in (("left", 4), ("right", 4)))
    at = {"xyz": (0.05, 0.02, 0.1), "rpy": (0.3, -0.4, 0.2)}
    b.add_frame("left_end", left, at["xyz"], rpy=at["rpy"])
    b.add_frame("right_end", right, (0.0, 0.03, 0.12), rpy=(-0.2, 0.1, 0.5))
    if closed:
        b.add_loop(
            "hinge", "revolute", left, right, predecessor_xyz=at["xyz"], predecessor_rpy=at["rpy"],
            successor_xyz=(0.0, 0.03, 0.12), successor_rpy=(-0.2, 0.1, 0.5),
        )  # fmt: skip
    return b.build()


def test_two_limbs_of_one_robot_are_joined_as_by_a_loop():
    closed = limbs(closed=True)
    tree_ = spanning_tree(closed)
    rows = (Constraint("right_end", HINGE, to="left_end"),)
    code = gb.compile(constrained_forward_dynamics, tree_, constraints=rows)
    for seed in range(3):
        q, v = closed.random_state(seed)
        v = 4.0 * v
        a = gb.forward_dynamics(closed, q, v, np.zeros(closed.nv))
        q, v, a = gb.spanning_state(closed, q, v, a)
        for method in ("kkt", "proximal", "pv", "pv_early", "ltl"):
            found = constrained_forward_dynamics(tree_, q, v, 0 * v, rows, method=method)
            assert relative(found.a, a) < 1e-9, method
        assert relative(code(q, v, 0 * v)[0], a) < 1e-9


class TestPlaces:
    """Which rows hold a pose, and how far a frame is off it."""

    @pytest.mark.parametrize(
        "rows", [(0, 1, 3, 4, 5), (0, 1, 2, 3, 4), (0, 1, 3, 4), (0, 1, 5), (3, 4, 5),
                 (0, 1, 2), (0, 1, 2, 5), (0, 1), (0, 1, 2, 3, 4, 5)],
    )  # fmt: skip
    def test_errors_of_joints_anywhere_in_the_frame(self, rows):
        """K of a joint placed anywhere: no error along its motions, and the rate K V across."""
        rng = np.random.default_rng(len(rows))
        R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        R = R * np.linalg.det(R)
        into = Transform(R, rng.uniform(-1, 1, 3))  # from the frame to the joint's
        mix = rng.standard_normal((len(rows), len(rows)))
        held = HeldRows(mix @ np.eye(6)[list(rows)] @ into.matrix(), False)
        assert held.has_place
        free_ones = np.linalg.svd(held.K)[2][len(rows) :]
        V = free_ones.T @ rng.uniform(-3, 3, len(free_ones))
        X = exponential(V)
        assert np.abs(held.error(X)).max() < 1e-13
        rate, h = rng.uniform(-1, 1, 6), 1e-5
        change = held.error(exponential(h * rate) @ X) - held.error(exponential(-h * rate) @ X)
        assert np.abs(change / (2 * h) - held.K @ rate).max() < 1e-8

    @pytest.mark.parametrize(
        "K", [np.eye(6)[[3, 4]], np.eye(6)[[2, 3, 4, 5]], np.eye(6)[[5]],
              np.array([[1.0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0],
                        [0, 0, 0, 0, 1, 0], [0, 0, 0.1, 0, 0, -1]])],
    )  # fmt: skip
    def test_rows_of_no_joint_hold_velocities_alone(self, K):
        """Skates, constant-velocity couplings, screws: no pose tells how far they are off."""
        assert not HeldRows(K, False).has_place
        place = (np.eye(3), np.zeros(3))
        with pytest.raises(gb.InputError, match="those of no joint"):
            Closure("c", ("b", "b_port"), ("a", "a_port"), K, place)
        model = free("a", "b")
        q, v = model.random_state(0)
        with pytest.raises(gb.InputError, match="those of no joint"):
            constrained_forward_dynamics(
                model, q, v, 0 * v, [Constraint("b_port", K, to="a_port", target=place)]
            )
        closure = Closure("c", ("b", "b_port"), ("a", "a_port"), K, period=0.2)
        states = {"a": (q[:7], v[:6], None), "b": (q[7:], v[6:], None)}
        found = pair([closure], compiled=False).forward_dynamics(states).a
        slowed = [Constraint("b_port", K, to="a_port", period=0.2)]
        expected = constrained_forward_dynamics(model, q, v, 0 * v, slowed).a
        assert relative(np.concatenate([found["a"], found["b"]]), expected) < 1e-10


def exponential(V):
    """The transform into a frame that has moved with the constant velocity V for a second."""
    q = FLOAT.integrate(np.array([0.0, 0, 0, 1, 0, 0, 0]), V)
    return FLOAT.transform(q)
