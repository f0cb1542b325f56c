"""Primary and secondary systems against one model of everything, and across events."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler.constrained import ClosedChain, Closure, Constraint, constrained_forward_dynamics


def body(b, name, xyz=(0.0, 0, 0)):
    b.add_body(name, 2.0, inertia=(0.02, 0, 0, 0.03, 0, 0.04), com=(0.01, 0.02, 0.03))
    b.add_joint(f"{name}_float", "free", "world", name, xyz=xyz)
    b.add_frame(f"{name}_left", name, (0, 0.2, 0), rpy=(0.1, 0.2, 0.3))
    b.add_frame(f"{name}_right", name, (0, -0.2, 0))


def arm(b, name, n=6):
    parent = "world"
    for i in range(n):
        b.add_body(f"{name}{i}", 1.0, com=(0.02, 0, 0.1), inertia=(0.02, 0, 0, 0.03, 0, 0.01))
        axis = np.eye(3)[i % 3]
        xyz = (0.02, 0, 0.2)
        b.add_joint(f"{name}{i}_joint", "revolute", parent, f"{name}{i}", xyz=xyz, axis=axis)
        parent = f"{name}{i}"
    b.add_frame(f"{name}_hand", parent, (0, 0, 0.1))


def built(*parts):
    b = gb.ModelBuilder("_".join(name for _, name in parts))
    for make, name in parts:
        make(b, name)
    return b.build()


@pytest.fixture(scope="module")
def world():
    """The same mechanism as robots and an object, and as one model."""
    left, right, box = built((arm, "l")), built((arm, "r")), built((body, "box"))
    return left, right, box, built((arm, "l"), (arm, "r"), (body, "box"))


def draw(seed, *models):
    rng = np.random.default_rng(seed)
    return [(*m.random_state(seed + i), rng.uniform(-5, 5, m.nv)) for i, m in enumerate(models)]


ARM, BOX = ("primary", "l_hand"), ("secondary", "box_left")
CLOSURES = [
    Closure("left grasp", ("l", "l_hand"), ("box", "box_left"), period=None),
    Closure("right grasp", ("r", "r_hand"), ("box", "box_right"), "point", period=None),
]


@pytest.mark.parametrize("secondary_first", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_equals_one_model_with_constraints(world, secondary_first, compiled):
    left, right, box, whole = world
    chain = ClosedChain({"l": left, "r": right}, {"box": box}, CLOSURES, compiled=compiled)
    constraints = [
        Constraint("l_hand", to="box_left"),
        Constraint("r_hand", "point", to="box_right"),
    ]
    for seed in range(3):
        states = dict(zip(("l", "r", "box"), draw(seed, left, right, box)))
        found = chain.forward_dynamics(states, secondary_first=secondary_first)
        q, v, tau = (np.concatenate([states[n][i] for n in ("l", "r", "box")]) for i in range(3))
        expected = constrained_forward_dynamics(whole, q, v, tau, constraints, method="kkt")
        a = np.concatenate([found.a[n] for n in ("l", "r", "box")])
        assert relative(a, expected.a) < 1e-8
        forces = np.concatenate([found.forces[c.name] for c in CLOSURES])
        assert relative(forces, expected.multipliers) < 1e-8
        assert found.residual < 1e-8 * np.abs(a).max()


def test_a_closure_within_the_primary_and_one_with_the_world(world):
    left, right, box, whole = world
    chain = ClosedChain(
        {"l": left, "r": right}, {"box": box},
        [Closure("hands", ("l", "l_hand"), ("r", "r_hand"), (3, 4), period=None),
         Closure("pin", ("box", "box_left"), None, "point", period=None)],
        compiled=False,
    )  # fmt: skip
    states = dict(zip(("l", "r", "box"), draw(7, left, right, box)))
    found = chain.forward_dynamics(states)
    q, v, tau = (np.concatenate([states[n][i] for n in ("l", "r", "box")]) for i in range(3))
    constraints = [Constraint("l_hand", (3, 4), to="r_hand"), Constraint("box_left", "point")]
    expected = constrained_forward_dynamics(whole, q, v, tau, constraints, method="kkt")
    assert relative(np.concatenate([found.a[n] for n in ("l", "r", "box")]), expected.a) < 1e-8


def test_events_leave_the_robots_code_untouched(world):
    left, right, box, _ = world
    chain = ClosedChain(
        {"l": left, "r": right}, {"box": box}, [CLOSURES[0]],
        ports={"r": ["r_hand"], "box": ["box_right"]},
    )  # fmt: skip
    states = dict(zip(("l", "r", "box"), draw(1, left, right, box)))
    chain.forward_dynamics(states)
    code = {n: dict(robot._code) for n, robot in chain.robots.items()}
    chain.attach(CLOSURES[1])
    both = chain.forward_dynamics(states)
    chain.detach("left grasp")
    one = chain.forward_dynamics(states)
    assert set(both.forces) == {"left grasp", "right grasp"} and set(one.forces) == {"right grasp"}
    assert {n: robot._code for n, robot in chain.robots.items()} == code
    free = gb.forward_dynamics(left, *states["l"])
    assert relative(one.a["l"], free) < 1e-10
    chain.detach("right grasp")
    assert (
        relative(chain.forward_dynamics(states).a["r"], gb.forward_dynamics(right, *states["r"]))
        < 1e-10
    )


def test_another_object_leaves_the_robots_code_untouched(world):
    left, _, box, _ = world
    b = gb.ModelBuilder("heavier")
    body(b, "box")
    b.add_body("lid", 3.0, com=(0, 0, 0.1), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
    b.add_joint("hinge", "revolute", "box", "lid", xyz=(0.1, 0, 0), axis=(0, 1, 0))
    other = b.build()
    grasp = [Closure("grasp", ARM, BOX, period=None)]
    chain, fresh = ClosedChain(left, box, grasp), ClosedChain(left, other, grasp)
    before, after = (
        dict(zip(("primary", "secondary"), draw(2, left, model))) for model in (box, other)
    )
    chain.forward_dynamics(before)
    code = dict(chain.robots["primary"]._code)
    chain.exchange("secondary", other)
    found, expected = chain.forward_dynamics(after), fresh.forward_dynamics(after)
    assert chain.robots["primary"]._code == code and chain.secondary == {"secondary": other}
    assert all(np.array_equal(found.a[n], expected.a[n]) for n in after)
    with pytest.raises(gb.ModelError, match="no frame named 'box_left'"):
        chain.exchange("secondary", left)
    assert chain.secondary == {"secondary": other}


def test_an_inelastic_grasp_conserves_momentum(world):
    """Two free boxes that are welded in flight: momentum stays, energy is lost."""
    one, two = built((body, "a")), built((body, "b"))
    weld = Closure("weld", ("a", "a_left"), ("b", "b_right"))
    chain = ClosedChain({"a": one}, {"b": two}, [weld], compiled=False)
    states = dict(zip("ab", draw(4, one, two)))
    after = chain.impulse(states)

    def momentum(v):
        total = np.zeros(6)
        for n, model in (("a", one), ("b", two)):
            c = gb.centroidal(model, states[n][0], v[n])
            total += np.concatenate(
                [c.momentum[:3] + np.cross(c.com, c.momentum[3:]), c.momentum[3:]]
            )
        return total

    before = {n: states[n][1] for n in states}
    assert np.abs(momentum(after) - momentum(before)).max() < 1e-10
    energy = [sum(gb.energy(m, states[n][0], v[n]).kinetic for n, m in (("a", one), ("b", two)))
              for v in (before, after)]  # fmt: skip
    assert energy[1] < energy[0]
    again = chain.impulse({n: (states[n][0], after[n], None) for n in states})
    assert max(np.abs(again[n] - after[n]).max() for n in states) < 1e-10


def test_held_as_grasped_and_placed_robots():
    """A pose is held from the moment of attachment; robots stand where they are placed."""
    arm7, box = load("arm7"), built((body, "box"))
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    chain = ClosedChain(
        arm7, box, ports={"primary": ["panda_hand_tcp"], "secondary": ["box_left"]},
        places={"primary": (turn, np.array([1.0, 2.0, 0.0]))}, compiled=False,
    )  # fmt: skip
    (q, _, tau), (q_box, _, _) = draw(0, arm7, box)
    grasp = Closure("grasp", ("primary", "panda_hand_tcp"), ("secondary", "box_left"))
    chain.attach(grasp, {"primary": q, "secondary": q_box})
    states = {"primary": (q, np.zeros(7), tau), "secondary": (q_box, np.zeros(6), None)}
    found = chain.forward_dynamics(states)
    assert found.residual < 1e-9 * np.abs(found.a["primary"]).max()
    # the box hangs on the hand as a part of it: same force as the box needs to move along
    R, p = gb.frame_pose(box, q_box, "box_left")
    R_h, p_h = gb.frame_pose(arm7, q, "panda_hand_tcp")
    R_h, p_h = turn @ R_h, turn @ p_h + np.array([1.0, 2.0, 0.0])
    f = found.forces["grasp"]
    force, moment = R_h @ f[3:], R_h @ f[:3]
    moment = moment + np.cross(p_h - p, force)
    wrench = -np.concatenate([R.T @ moment, R.T @ force])
    J = gb.frame_jacobian(box, q_box, "box_left")
    assert (
        relative(gb.forward_dynamics(box, q_box, np.zeros(6), J.T @ wrench), found.a["secondary"])
        < 1e-8
    )


def test_bad_calls(world):
    left, right, box, _ = world
    chain = ClosedChain({"l": left, "r": right}, {"box": box}, [CLOSURES[0]], compiled=False)
    with pytest.raises(gb.InputError, match="attached already"):
        chain.attach(CLOSURES[0])
    with pytest.raises(gb.InputError, match="is not a port of 'r'"):
        chain.attach(CLOSURES[1])
    with pytest.raises(gb.InputError, match="did you mean 'left grasp'"):
        chain.detach("left gras")
    with pytest.raises(gb.InputError, match="no state of 'box'"):
        chain.forward_dynamics({n: (np.zeros(6), None, None) for n in "lr"})
    with pytest.raises(gb.InputError, match="no robot named 'q'"):
        ClosedChain({"l": left}, {"box": box}, ports={"q": ["x"]})
    with pytest.raises(gb.InputError, match="closures hold 'x': give a list"):
        ClosedChain(left, closures={"x": 1})
    with pytest.raises(gb.InputError, match="about the vertical"):
        ClosedChain(left, places={"primary": (np.diag([1.0, -1, -1]), np.zeros(3))})
    with pytest.raises(gb.InputError, match="in the primary and in the secondary"):
        ClosedChain({"x": left}, {"x": box})
    with pytest.raises(gb.ModelError, match="no frame named"):
        ClosedChain(left, ports={"primary": ["nowhere"]})


@pytest.mark.parametrize(
    "given, message",
    [
        ({"first": "primary"}, r"an end of closure 'grasp' is 'primary': give \(robot, frame\)"),
        ({"second": ARM}, "to itself"),
        ({"rows": (7,)}, "distinct rows"),
        ({"rows": "wel"}, "rows 'wel' of closure 'grasp'"),
        ({"rows": ()}, "no rows"),
        ({"place": np.zeros(3)}, r"give \(R, p\)"),
        ({"place": (np.ones((3, 3)), np.zeros(3))}, "rotation matrix"),
        ({"place": (np.eye(3), [0, 0])}, r"p of place of closure 'grasp' has shape \(2,\)"),
        ({"period": 0}, "seconds > 0"),
        ({"damping": -1.0}, "a ratio > 0"),
    ],
)
def test_bad_closures(given, message):
    with pytest.raises(gb.InputError, match=message):
        Closure("grasp", **{"first": ARM, "second": BOX, **given})


def test_bad_states(world):
    left, _, box, _ = world
    chain = ClosedChain(left, box, [Closure("grasp", ARM, BOX)], compiled=False)
    (q, v, tau), (q_box, _, _) = draw(0, left, box)
    good = {"primary": (q, v, tau), "secondary": (q_box, None, None)}
    for bad, message in (
        ({"primary": (q, v)}, r"'primary' is not \(q, v, tau\)"),
        ({"primary": (q, v[:3], None)}, r"of 'primary': v has shape \(3,\)"),
        ({"secondary": (2 * q_box, None, None)}, "of 'secondary': the quaternion .* normalise"),
        ({"tertiary": (q, v, tau)}, "no robot named 'tertiary'"),
    ):
        with pytest.raises(gb.InputError, match=message):
            chain.forward_dynamics(good | bad)
    chain.detach("grasp")
    still = chain.impulse(good)
    assert np.array_equal(still["primary"], v) and np.array_equal(still["secondary"], np.zeros(6))


def test_secondary_first_says_where_it_cannot(world):
    left, _, box, _ = world
    state = dict(zip(("primary", "secondary"), draw(0, left, box)))
    twice = [Closure("grasp", ARM, BOX), Closure("again", ARM, BOX)]
    held = [Closure("nail", BOX, None, "point")]
    for closures, named in ((twice, "grasp, again"), (held, "nail")):
        chain = ClosedChain(left, box, closures, compiled=False)
        assert chain.forward_dynamics(state).residual < 1e-6
        with pytest.raises(gb.InputError, match=f"cannot at this posture.*: {named}; leave"):
            chain.forward_dynamics(state, secondary_first=True)
    alone = ClosedChain(left, closures=[Closure("hold", ARM, None, "point")], compiled=False)
    with pytest.raises(gb.InputError, match="no secondary system"):
        alone.forward_dynamics({"primary": state["primary"]}, secondary_first=True)


def test_gains_of_a_closure():
    """A point that has moved off its place comes back as the damped spring says."""
    box = built((body, "box"))
    pin = Closure(
        "pin", ("secondary", "box_left"), None, "point", (np.eye(3), np.zeros(3)), 0.3, 0.7
    )
    chain = ClosedChain({}, box, [pin], compiled=False)
    ((q, v, tau),) = draw(3, box)
    a = chain.forward_dynamics({"secondary": (q, v, tau)}).a["secondary"]
    R, p = gb.frame_pose(box, q, "box_left")
    J = gb.frame_jacobian(box, q, "box_left")[3:]
    k = -2 * 0.7 / 0.3 * (J @ v) - R.T @ p / 0.3**2
    held = [Constraint("box_left", "point", acceleration=k)]
    assert relative(a, constrained_forward_dynamics(box, q, v, tau, held).a) < 1e-9
