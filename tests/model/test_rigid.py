"""Sub-loops that cannot move are welded; links that spin idly can be locked."""

import numpy as np

import grubler as gb
from conftest import load
from grubler.checks import check
from linkages import link

MOMENTS = (0.02, 0.001, 0, 0.03, 0, 0.04)


def arm(triangle: str) -> gb.Model:
    """An arm that carries a triangle of three bars and a tool on its apex; `triangle` is "loop" or
    "fixed": its joints closed by a loop, or welded by hand where they come to be."""
    b = gb.ModelBuilder("arm")
    b.add_body("upper", 1.0, (0.1, 0, 0), MOMENTS)
    b.add_joint("shoulder", "revolute", "world", "upper", axis=(0, 1, 0))
    kind = "revolute" if triangle == "loop" else "fixed"
    for name, x, angle in (("left", 0.2, -np.pi / 3), ("right", 0.7, -2 * np.pi / 3)):
        b.add_body(name, 0.5, (0.2, 0, 0), MOMENTS)
        start = angle if kind == "fixed" else angle + 0.2
        b.add_joint(f"j_{name}", kind, "upper", name, xyz=(x, 0, 0), rpy=(0, start, 0),
                    axis=(0, 1, 0))  # fmt: skip
    if kind == "revolute":
        b.add_loop("apex", "revolute", "left", "right", axis=(0, 1, 0),
                   predecessor_xyz=(0.5, 0, 0), successor_xyz=(0.5, 0, 0))  # fmt: skip
    b.add_body("tool", 0.3, (0, 0, 0.1), MOMENTS)
    b.add_joint("wrist", "revolute", "left", "tool", xyz=(0.5, 0, 0), axis=(0.2, 0, 1))
    b.add_frame("tip", "right", xyz=(0.1, 0.2, 0.3))
    b.add_actuator("motor", "shoulder")
    return b.build()


def test_a_triangle_on_an_arm_is_welded_exactly():
    model, due = arm("loop"), arm("fixed")
    assert model.v_names == due.v_names == ("shoulder", "wrist") and not model.loops
    (note,) = model.notes
    assert "'apex' leaves no motion to joint 'j_left', 'j_right'" in note and not due.notes
    assert note in str(model) and note in check(model, samples=1).table()
    for seed in range(3):
        q, v = due.random_state(seed)
        tau = np.random.default_rng(seed).uniform(-1, 1, 2)
        for method in ("c_aba", "lagrange"):
            a = gb.forward_dynamics(model, q, v, tau, method=method)
            np.testing.assert_allclose(a, gb.forward_dynamics(due, q, v, tau), rtol=1e-11)
        for x, y in zip(gb.frame_pose(model, q, "tip"), gb.frame_pose(due, q, "tip"), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-12)


def four_bar_with_a_truss(truss: bool) -> gb.Model:
    """A four-bar whose coupler is a triangle of three bars that the loop passes through."""
    b, y = gb.ModelBuilder("truss"), {"axis": (0, 1, 0)}
    b.add_body("crank", 1.0, (0.1, 0, 0), MOMENTS)
    b.add_joint("j_crank", "revolute", "world", "crank", **y)
    b.add_body("coupler", 1.0, (0.2, 0, 0), MOMENTS)
    b.add_joint("j_coupler", "revolute", "crank", "coupler", xyz=(0.2, 0, 0), **y)
    b.add_body("left", 0.5, (0.1, 0, 0), MOMENTS)
    b.add_body("right", 0.5, (0.1, 0, 0), MOMENTS)
    kind = "revolute" if truss else "fixed"
    b.add_joint("j_left", kind, "coupler", "left", rpy=(0, -np.pi / 3, 0), **y)
    b.add_joint("j_right", kind, "coupler", "right", xyz=(0.4, 0, 0), rpy=(0, -2 * np.pi / 3, 0),
                **y)  # fmt: skip
    if truss:
        b.add_loop("apex", "ball", "left", "right", predecessor_xyz=(0.4, 0, 0),
                   successor_xyz=(0.4, 0, 0))  # fmt: skip
    b.add_body("rocker", 1.0, (0.2, 0, 0), MOMENTS)
    b.add_joint("j_rocker", "revolute", "world", "rocker", xyz=(0.5, 0, 0), **y)
    b.add_loop("pin", "revolute", "left", "rocker", predecessor_xyz=(0.4, 0, 0),
               successor_xyz=(0.5, 0, 0), **y)  # fmt: skip
    return b.build({"j_crank": 1.0, "j_coupler": -0.5, "j_rocker": -1.6})


def test_a_rigid_loop_inside_a_larger_one_is_welded():
    model, due = four_bar_with_a_truss(True), four_bar_with_a_truss(False)
    assert model.q_names == due.q_names and [loop.name for loop in model.loops] == ["pin"]
    assert "'apex'" in model.notes[0]
    q, v = due.random_state(0)
    np.testing.assert_allclose(
        gb.forward_dynamics(model, q, v, np.ones(1)), gb.forward_dynamics(due, q, v, np.ones(1)),
        rtol=1e-9,
    )  # fmt: skip


def test_a_joint_at_rest_for_a_moment_is_not_rigid():
    """The follower of a four-bar rests where crank and coupler are in line."""
    b, y = gb.ModelBuilder("dead"), {"axis": (0, 1, 0)}
    for name, length in (("crank", 0.2), ("coupler", 0.45), ("follower", 0.4)):
        b.add_body(name, length, (length / 2, 0, 0), (1e-4, 0, 0, 1e-3, 0, 1e-3))
    b.add_joint("crank", "revolute", "world", "crank", **y)
    b.add_joint("coupler", "revolute", "crank", "coupler", xyz=(0.2, 0, 0), **y)
    b.add_joint("follower", "revolute", "world", "follower", xyz=(0.5, 0, 0), **y)
    b.add_loop("tip", "ball", "coupler", "follower", predecessor_xyz=(0.45, 0, 0),
               successor_xyz=(0.4, 0, 0))  # fmt: skip
    angle = -np.arccos((0.65**2 + 0.5**2 - 0.4**2) / (2 * 0.65 * 0.5))
    end = 0.65 * np.array([np.cos(angle), -np.sin(angle)]) - (0.5, 0)
    model = b.build({"crank": angle, "follower": np.arctan2(-end[1], end[0])})
    assert model.nv == 1 and len(model.loops) == 1 and not model.notes
    assert not load("loop_sampler").notes


def test_an_actuator_of_a_welded_joint_is_named():
    b = gb.ModelBuilder("truss")
    for name, x in (("left", 0.0), ("right", 1.0)):
        link(b, name, f"j_{name}", "revolute", "world", xyz=(x, 0, 0), axis=(0, 1, 0))
    b.add_loop("apex", "ball", "left", "right", predecessor_xyz=(0.5, 0, 0.5),
               successor_xyz=(-0.5, 0, 0.5))  # fmt: skip
    link(b, "free", "hinge", "revolute", "left")
    b.add_actuator("motor", "j_left")
    b.add_actuator("other", "hinge")
    model = b.build()
    assert [a.name for a in model.actuators] == ["other"]
    assert "actuator 'motor' is left out: joint 'j_left' cannot move" in model.notes


def rods(joint: str, spin: float, rods: int = 2, **options) -> gb.Model:
    """Two rods between an arm and a rocker on a sloping hinge, on a ball at either end or with
    another joint at the arm. Rods are thin, and symmetric about their line; `spin` is their moment
    about it."""
    b = gb.ModelBuilder("rods")
    b.add_body("arm", 1.0, (0.1, 0, 0), MOMENTS)
    b.add_joint("arm", "revolute", "world", "arm", axis=(0, 1, 0))
    b.add_body("rocker", 1.5, (0, 0.1, 0.2), MOMENTS)
    b.add_joint("rocker", "universal", "world", "rocker", xyz=(0.5, 0.1, 0), axis=(0, 1, 0),
                axis2=(1, 0, 0))  # fmt: skip
    for i in range(rods):
        b.add_body(f"rod {i}", 0.5, (0.2, 0, 0), (spin, 0, 0, 0.01, 0, 0.01))
        kind = {"spherical": {}, "universal": {"axis": (0, 1, 0), "axis2": (0, 0, 1)}}[joint]
        b.add_joint(f"ball {i}", joint, "arm", f"rod {i}", xyz=(0.2, 0.1 * i, 0), **kind)
        b.add_loop(f"tip {i}", "ball", f"rod {i}", "rocker", predecessor_xyz=(0.4 + 0.02 * i, 0, 0),
                   successor_xyz=(0.02 * i, 0.1 * i, 0.3 - 0.05 * i))  # fmt: skip
    return b.build({"arm": 0.2}, **options)


def test_locked_rods_equal_universal_joints_by_hand():
    """Two SS rods locked: one freedom less each, and the dynamics of RSU rods made by hand."""
    free, model = rods("spherical", 1e-9), rods("spherical", 1e-9, lock_idle=True)
    due = rods("universal", 1e-9)
    assert (free.nv, model.nv, due.nv) == (3, 1, 1)
    assert len(model.notes) == 2 and not free.notes
    assert all("spins alone" in note and "is universal" in note for note in model.notes)
    assert not check(model, samples=2).idle and len(check(free, samples=2).idle) == 2
    assert model.notes[0] in check(model, samples=1).table()
    (model, due) = (gb.repartition(m, m.neutral(), independent=["arm"]) for m in (model, due))
    for angle, rate in ((0.2, 0.5), (0.4, -1.0), (-0.1, 2.0)):
        q = model.assemble({"arm": angle}, fixed=["arm"])
        rocker = q[[model.q_names.index(n) for n in ("rocker:1", "rocker:2")]]
        same = due.assemble({"arm": angle, "rocker": rocker}, fixed=["arm", "rocker"])
        a = gb.forward_dynamics(model, q, [rate], [0.3])
        assert model.v_names == due.v_names == ("arm",)
        np.testing.assert_allclose(a, gb.forward_dynamics(due, same, [rate], [0.3]), rtol=1e-6)


def test_locked_rods_equal_free_ones_up_to_the_inertia_of_the_spin():
    """The error is proportional to the moment about the rod's line: 1e-4 of it leaves 1e-4."""
    errors = []
    for spin in (1e-5, 1e-7):
        free, model = rods("spherical", spin, 1), rods("spherical", spin, 1, lock_idle=True)
        assert free.nv == model.nv + 1
        q = model.assemble({"arm": 0.3}, fixed=["arm"])
        twin = {joint: q[model.q_names.index(joint)] for joint in ("arm",)}
        rocker = [n for n in model.q_names if n.startswith("rocker")]
        twin["rocker"] = [q[model.q_names.index(n)] for n in rocker]
        names = list(model.v_names)
        full = free.assemble(twin, fixed=["arm", "rocker"])
        independent = gb.repartition(free, full, independent=names)
        chosen = [independent.v_names.index(n) for n in names]
        v = np.zeros(independent.nv)
        rates = np.linspace(0.5, 1.0, len(names))
        v[chosen] = rates
        due = gb.forward_dynamics(model, q, rates, np.ones(len(names)))
        tau = np.zeros(independent.nv)
        tau[chosen] = 1.0
        errors.append(np.abs(gb.forward_dynamics(independent, full, v, tau)[chosen] - due).max())
    assert errors[1] < 0.02 * errors[0] + 1e-10 and errors[1] < 1e-4


def strut(kind: str, **options) -> gb.Model:
    """A strut on a joint of two freedoms, which a ball in line with its second axis holds."""
    b = gb.ModelBuilder("strut")
    b.add_body("strut", 1.0, (0, 0, 0.2), (0.02, 0, 0, 0.02, 0, 1e-3))
    b.add_body("piston", 0.5, (0, 0, 0.1), (0.01, 0, 0, 0.01, 0, 1e-3))
    if kind == "revolute":
        b.add_joint("foot", "revolute", "world", "strut", axis=(1, 0, 0))
    else:
        b.add_joint("foot", "universal", "world", "strut", axis=(1, 0, 0), axis2=(0, 0, 1))
    b.add_joint("slide", "prismatic", "strut", "piston", xyz=(0, 0, 0.4), axis=(0, 0, 1))
    b.add_body("swing", 1.0, (0, 0.1, 0), (0.02, 0, 0, 0.02, 0, 0.02))
    b.add_joint("swing", "revolute", "world", "swing", xyz=(0, 0.5, 0), axis=(1, 0, 0))
    b.add_loop("tip", "ball", "piston", "swing", predecessor_xyz=(0, 0, 0.2),
               successor_xyz=(0, 0.1, 0.4))  # fmt: skip
    return b.build({"foot": -0.8 if kind == "revolute" else (-0.8, 0.3)}, **options)


def test_a_joint_of_two_freedoms_keeps_the_other_one():
    model, due = strut("universal", lock_idle=True), strut("revolute")
    assert strut("universal").nv == 2 and model.nv == due.nv == 1
    assert model.joint("foot").kind == "revolute" and "is revolute" in model.notes[0]
    (model, due) = (gb.repartition(m, m.neutral(), independent=["swing"]) for m in (model, due))
    for swing in (0.1, 0.3):
        q, same = (m.assemble({"swing": swing}, fixed=["swing"]) for m in (model, due))
        a = gb.forward_dynamics(model, q, [0.7], [0.2])
        np.testing.assert_allclose(a, gb.forward_dynamics(due, same, [0.7], [0.2]), rtol=1e-9)
