"""Rows where they cost least: in frames of the dynamics, a point on the body that carries it."""

import numpy as np
import pytest
from cases import grow, industrial_arm, state

import grubler as gb
from conftest import relative
from grubler.constrained import Constraint, constrained_forward_dynamics
from grubler.constrained.constraints import checked_constraints
from grubler.constrained.equations import prepared
from grubler.constrained.rows import in_new_frames


def as_the_dense_solution(model, constraints, seeds=3, methods=("pv", "pv_early", "ltl")):
    for seed in range(seeds):
        q, v, tau = state(model, seed)
        push = {model.bodies[-1].name: np.arange(6.0)} if seed else None
        expected = constrained_forward_dynamics(model, q, v, tau, constraints, push, method="kkt")
        for method in methods:
            found = constrained_forward_dynamics(model, q, v, tau, constraints, push, method=method)
            assert relative(found.a, expected.a) < 1e-10
            assert relative(found.multipliers, expected.multipliers) < 1e-10


def test_a_point_on_the_axis_of_a_hinge_is_held_by_the_body_that_carries_it():
    model = industrial_arm()
    held = Constraint("tool", "point", target=(0.3, 0.1, 0.4))
    alone = [Constraint("tool", "point", acceleration=(1.0, -2.0, 0.5), period=0.2)]
    for constraints, cluster in (
        (alone, 4), ([Constraint("hand", "point")], 5), ([held], 5),
        ([*alone, Constraint("hand", (3,))], 5), ([Constraint("tool", (3, 4, 5))], 5),
    ):  # fmt: skip
        checked = tuple(checked_constraints(model, constraints))
        for seed in range(3):
            q, v, _ = state(model, seed)
            rows = prepared(model, q, v, np.zeros(model.nv), checked).rows
            assert set(rows[0].ends) == {cluster}
        as_the_dense_solution(model, constraints)


def test_points_on_the_axes_of_fingers_are_points_of_the_palm():
    """Two are five rows there, three are six: what depends on others is known before any state."""
    b = gb.ModelBuilder("hand")
    palm = grow(b, "world", "link", 6)
    for name, xyz in (("a", (0.0, 0.05, 0.1)), ("b", (0.0, -0.05, 0.1)), ("c", (0.03, 0, 0.1))):
        b.add_body(name, 0.2, com=(0.02, 0, 0.03), inertia=(1e-3, 0, 0, 1e-3, 0, 1e-3))
        b.add_joint(f"{name}_joint", "revolute", palm, name, axis=(0, 1, 0), xyz=xyz)
        b.add_frame(f"{name}_base", name, (0, 0.01, 0), rpy=(0.1, 0.2, 0.3))
    model = b.build()
    for fingers, m in (("ab", 5), ("abc", 6)):
        constraints = [Constraint(f"{name}_base", "point") for name in fingers]
        q, v, _ = state(model)
        checked = tuple(checked_constraints(model, constraints))
        (rows,) = prepared(model, q, v, np.zeros(model.nv), checked).rows
        assert set(rows.ends) == {5} and rows.m == m
        as_the_dense_solution(model, constraints, methods=("pv_early",))


def oblique() -> gb.Model:
    """A trunk on a free base with an arm and a geared rotor, all at odd angles."""
    b, rng, parent = gb.ModelBuilder("oblique"), np.random.default_rng(4), "trunk"
    b.add_body("trunk", 4.0, com=(0.0, 0.02, 0.1), inertia=(0.1, 0, 0, 0.2, 0, 0.3))
    b.add_joint("float", "free", "world", "trunk")
    for i in range(6):
        b.add_body(f"link{i}", 1.0, com=(0.05, 0.02, 0.1), inertia=(0.02, 0, 0, 0.03, 0, 0.01))
        b.add_joint(
            f"joint{i}", "revolute", parent, f"link{i}", xyz=rng.uniform(-0.2, 0.2, 3),
            rpy=rng.uniform(-1, 1, 3), axis=np.eye(3)[i % 3],
        )  # fmt: skip
        b.add_frame(f"frame{i}", f"link{i}", rng.uniform(-0.1, 0.1, 3), rpy=rng.uniform(-1, 1, 3))
        parent = f"link{i}"
    b.add_body("rotor", 0.2, inertia=(0.01, 0, 0, 0.01, 0, 0.02))
    b.add_joint("rotor_joint", "revolute", "link1", "rotor", xyz=(0, 0.1, 0), rpy=(0.3, 1, 0))
    b.add_coupling("gear", "rotor_joint", {"joint2": 5.0})
    return b.build()


ON_ODD_FRAMES = {
    "point": [Constraint("frame5", "point")],
    "axis": [Constraint("link5", "point", acceleration=(1.0, 2.0, -1.0))],
    "weld": [Constraint("frame4", "weld")],
    "held": [Constraint("frame5", "point", target=(0.1, 0.2, 0.3)), Constraint("frame2", (0, 4))],
    "held pose": [Constraint("frame3", "weld", target=(np.eye(3), (0.1, 0.2, 0.3)))],
    "between": [Constraint("frame5", "point", to="frame1"), Constraint("trunk", (2, 3))],
    "rotor": [Constraint("rotor", (2,)), Constraint("frame4", (3, 5))],
}


@pytest.mark.parametrize("name", ON_ODD_FRAMES)
def test_rows_are_seen_from_the_frames_that_the_dynamics_lays(name):
    model, constraints = oblique(), ON_ODD_FRAMES[name]
    checked = tuple(checked_constraints(model, constraints))
    placed, kept = in_new_frames(model, checked)
    assert kept == ({model.body("rotor").index} if name == "rotor" else set())
    assert any(
        not np.allclose(new.frame.placement.r, old.frame.placement.r)
        for new, old in zip(placed, checked, strict=True)
    )
    as_the_dense_solution(model, constraints)
