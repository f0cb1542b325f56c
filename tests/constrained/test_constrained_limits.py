"""Redundant, singular, infeasible and soft constraints, and bad input."""

import numpy as np
import pytest
from cases import (
    CASES,
    HANDS,
    LEGS,
    TOES,
    in_many_digits,
    ladder,
    points,
    state,
    welds,
    with_world_frame,
)

import grubler as gb
from conftest import load, relative
from grubler.constrained import Constraint, constrained_forward_dynamics


def solve(model, q, v, tau, constraints, method="pv_early", **options):
    return constrained_forward_dynamics(model, q, v, tau, constraints, method=method, **options)


def equals_least_squares(model, q, v, tau, constraints, tolerance=1e-11):
    expected = solve(model, q, v, tau, constraints, "kkt")
    found = solve(model, q, v, tau, constraints)
    assert np.all(np.isfinite(found.a)) and np.all(np.isfinite(found.multipliers))
    scale = np.abs(solve(model, q, v, tau, []).a).max()
    assert np.abs(found.a - expected.a).max() < tolerance * scale
    assert relative(found.multipliers, expected.multipliers) < tolerance
    assert np.abs(found.residual - expected.residual).max() < tolerance * scale
    return found


class TestRedundant:
    @pytest.mark.parametrize("robot", ["humanoid", "mit_humanoid"])
    def test_both_feet_welded_twice(self, robot):
        model = load(robot)
        q, v, tau = state(model)
        once = solve(model, q, v, tau, welds(TOES))
        for method in ("pv", "pv_early", "ltl", "proximal", "kkt"):
            twice = solve(model, q, v, tau, welds(TOES) + welds(TOES), method)
            assert relative(twice.a, once.a) < 1e-9
            assert (
                relative(twice.multipliers[:12] + twice.multipliers[12:], once.multipliers) < 1e-8
            )
            assert np.abs(twice.residual).max() < 1e-8 * np.abs(once.a).max()

    def test_toe_and_heel_of_one_foot(self):
        """Two points of a rigid foot: five rows of six are independent."""
        model = load("humanoid")
        q, _, tau = state(model)
        feet = points(["right_toe_contact", "right_heel_contact", "left_toe_contact"])
        found = equals_least_squares(model, q, np.zeros(model.nv), tau, feet)
        assert np.abs(found.residual).max() < 1e-9 * np.abs(found.a).max()

    def test_a_planar_chain_held_in_space(self):
        model = load("pbt_chain")
        q, _, tau = state(model)
        found = equals_least_squares(model, q, np.zeros(model.nv), tau, points(["cp-B-5"]))
        assert np.abs(found.residual).max() < 1e-9 * (1 + np.abs(found.a).max())

    def test_a_triangle_of_closures(self):
        """Three feet closed in a ring: the third closure follows from the others."""
        model = load("quadruped")
        q, _, tau = state(model)
        v = np.zeros(model.nv)
        ring = [Constraint(LEGS[i], "point", to=LEGS[(i + 1) % 3]) for i in range(3)]
        found = equals_least_squares(model, q, v, tau, ring)
        assert np.abs(found.residual).max() < 1e-11 * np.abs(found.a).max()


class TestSingular:
    @pytest.mark.parametrize("robot", ["quadruped", "mini_cheetah"])
    @pytest.mark.parametrize("moving", [False, True])
    def test_straight_legs(self, robot, moving):
        model = load(robot)
        v = moving * np.random.default_rng(1).uniform(-1, 1, model.nv)
        equals_least_squares(model, model.neutral(), v, np.linspace(-3, 3, model.nv), points(LEGS))

    def test_one_straight_leg(self):
        model = load("quadruped")
        q, v, tau = state(model, 3)
        q[9] = 0.0
        equals_least_squares(model, q, v, tau, points(LEGS))

    @pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 1e-5, 3e-6, 1e-6, 1e-7, 1e-9, 1e-12])
    def test_near_a_singular_posture(self, angle):
        """A knee almost straight: resolved early, the row costs rounding errors of eps / |K S|²;
        before that is more than a few digits it is carried to the world."""
        model = load("quadruped")
        q, v, tau = state(model, 3)
        q[9] = angle
        a, multipliers = in_many_digits(model, q, v, tau, points(LEGS))
        found = solve(model, q, v, tau, points(LEGS))
        due = max(1e-13, min(1e-18 / angle**2, 100 * angle**2, 1e-12))
        assert relative(found.a, a) < due
        assert relative(found.multipliers, multipliers) < 10 * due

    @pytest.mark.parametrize(
        "sets, tolerance",
        # arms and legs straight: two eigenvalues of J M⁻¹ J' are 1e-9 of the largest, so that
        # neither solution is known to better than eps * 1e9
        [(welds(TOES), 1e-11), (welds(TOES + HANDS), 2e-7), (points(TOES + HANDS), 1e-11)],
    )
    def test_a_humanoid_standing_straight(self, sets, tolerance):
        model = load("humanoid")
        v, tau = np.zeros(model.nv), np.ones(model.nv)
        found = equals_least_squares(model, model.neutral(), v, tau, sets, tolerance)
        assert np.abs(found.residual).max() < 1e-9

    def test_a_straight_arm(self):
        model = load("arm7")
        v = np.random.default_rng(0).uniform(-1, 1, 7)
        equals_least_squares(model, np.zeros(7), v, np.ones(7), welds(["panda_hand_tcp"]))

    @pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 1e-3)])
    def test_compiled(self, dtype, tolerance):
        model = load("quadruped")
        code = gb.compile(
            constrained_forward_dynamics, model, constraints=points(LEGS), dtype=dtype
        )
        v, tau = np.zeros(model.nv), np.linspace(-3, 3, model.nv)
        for q in (model.neutral(), model.random_state(3)[0]):
            for knee in (0.0, 1e-5, 1e-3, 0.1):
                q[9] = knee
                expected = solve(model, q, v, tau, points(LEGS), "kkt")
                a, multipliers = code(*(x.astype(dtype) for x in (q, v, tau)))
                assert relative(a, expected.a) < tolerance
                assert relative(multipliers, expected.multipliers) < tolerance

    def test_lanes_beside_a_singular_one(self):
        """A state gives the same bits alone and beside others, singular ones among them."""
        model = load("quadruped")
        code = gb.compile(constrained_forward_dynamics, model, constraints=points(LEGS))
        states = [np.stack(x) for x in zip(*[state(model, seed) for seed in range(19)])]
        states[0][[3, 12], 9] = 0.0
        found = code(*states)
        for i in range(19):
            q, v, tau = (x[i] for x in states)
            expected = solve(model, q, v, tau, points(LEGS), "kkt")
            assert relative(found[0][i], expected.a) < 1e-11
            for x, alone in zip(found, code(q, v, tau)):
                np.testing.assert_array_equal(x[i], alone)

    def test_a_ladder_of_many_singular_rungs(self):
        """More rows pass a body than it has directions: they are folded (Remark 9)."""
        model, tips = ladder(9)
        q, v = np.zeros(model.nv), np.zeros(model.nv)
        for posture in (q, state(model)[0]):
            found = equals_least_squares(model, posture, v, np.ones(model.nv), welds(tips))
            assert np.abs(found.residual).max() < 1e-9


class TestInfeasible:
    def test_conflicting_accelerations_are_met_half_way(self):
        model = load("quadruped")
        q, v, tau = state(model)
        up = Constraint(LEGS[0], "point", acceleration=(0, 0, 1.0))
        found = equals_least_squares(model, q, v, tau, [up, *points(LEGS[:1])])
        assert np.allclose(np.abs(found.residual), [0, 0, 0.5, 0, 0, 0.5], atol=1e-9)

    def test_conflicting_closures_too(self):
        """Two feet tied to each other, and told to part."""
        model = load("quadruped")
        q, v, tau = state(model)
        part = Constraint(LEGS[0], "point", to=LEGS[1], acceleration=(0, 0, 1.0))
        tied = Constraint(LEGS[0], "point", to=LEGS[1])
        found = equals_least_squares(model, q, v, tau, [part, tied])
        assert np.allclose(np.abs(found.residual), [0, 0, 0.5, 0, 0, 0.5], atol=1e-9)

    @pytest.mark.parametrize("seed", range(3))
    def test_more_constraints_than_freedom(self, seed):
        model = load("quadruped")
        q, v, tau = state(model, seed)
        found = equals_least_squares(model, q, v, tau, welds(LEGS))
        assert np.abs(found.residual).max() > 1e-3
        for method in ("pv", "ltl"):
            with pytest.raises(gb.InputError, match="24 hard constraint rows on 18 degrees"):
                solve(model, q, v, tau, welds(LEGS), method)

    def test_methods_that_need_independent_rows_say_so(self):
        model = load("quadruped")
        q, v, tau = state(model)
        up = Constraint(LEGS[0], "point", acceleration=(0, 0, 1.0))
        for method in ("pv", "ltl"):
            with pytest.raises(gb.InputError, match="pv_early"):
                solve(model, q, v, tau, [up, *points(LEGS[:1])], method)
            with pytest.raises(gb.InputError, match="depend on each other"):
                solve(load("pbt_chain"), *state(load("pbt_chain")), points(["cp-B-5"]), method)

    def test_proximal_meets_them_in_least_squares_too(self):
        model = load("quadruped")
        q, v, tau = state(model)
        expected = solve(model, q, v, tau, welds(LEGS), "kkt")
        found = solve(model, q, v, tau, welds(LEGS), "proximal")
        assert relative(found.a, expected.a) < 1e-6


SOFT_SETS = [("humanoid", TOES + HANDS, "weld"), ("mini_cheetah", LEGS, "point")]


class TestSoft:
    @pytest.mark.parametrize("robot, frames, rows", SOFT_SETS)
    def test_soft_methods_agree(self, robot, frames, rows):
        model = load(robot)
        q, v, tau = state(model)
        for R in (1.0, 1e-3):
            soft = [Constraint(f, rows, softness=R) for f in frames]
            expected = solve(model, q, v, tau, soft, "kkt")
            for method in ("pv_soft", "ltl_soft", "pv_early", "pv", "ltl"):
                found = solve(model, q, v, tau, soft, method)
                assert relative(found.a, expected.a) < 1e-9
                assert relative(found.multipliers, expected.multipliers) < 1e-9

    def test_between_two_bodies(self):
        model = load("quadruped")
        q, v, tau = state(model)
        soft = [Constraint(LEGS[0], "point", to=LEGS[1], softness=0.01),
                Constraint(LEGS[1], "point", to=LEGS[2], softness=0.02)]  # fmt: skip
        expected = solve(model, q, v, tau, soft, "kkt")
        for method in ("pv_soft", "ltl_soft"):
            assert relative(solve(model, q, v, tau, soft, method).a, expected.a) < 1e-9

    @pytest.mark.parametrize("method", ["pv_soft", "ltl_soft"])
    def test_converges_to_hard_and_then_diverges(self, method):
        """Fig. 3: the residual falls with R, and past a weight of 1e8 accelerations part again."""
        model = load("humanoid")
        q, v, tau = state(model)
        hard = solve(model, q, v, tau, welds(TOES), "kkt").a
        off = {}
        for power in range(0, 15, 2):
            soft = [Constraint(f, softness=10.0**-power) for f in TOES]
            off[power] = relative(solve(model, q, v, tau, soft, method).a, hard)
        assert off[0] > off[2] > off[4] > off[6]
        best = min(off.values())
        assert best < 1e-5
        assert off[14] > 10 * best

    def test_soft_constraints_may_be_redundant(self):
        model = load("quadruped")
        q, v, tau = state(model)
        soft = [Constraint(f, softness=1e-3) for f in LEGS] * 2
        found = solve(model, q, v, tau, soft, "pv_soft")
        assert relative(found.a, solve(model, q, v, tau, soft, "kkt").a) < 1e-8


class TestBadInput:
    @pytest.mark.parametrize(
        "constraint, message",
        [
            (Constraint("HR_fot_contact"), "did you mean 'HR_foot_contact'"),
            (Constraint(LEGS[0], "ponit"), "give 'point', 'weld'"),
            (Constraint(LEGS[0], np.zeros((0, 6))), "no rows"),
            (Constraint(LEGS[0], ()), "no rows"),
            (Constraint(LEGS[0], np.zeros((2, 6))), "row 0 of the constraint .* is zero"),
            (Constraint(LEGS[0], np.ones((2, 5))), r"shape \(2, 5\)"),
            (Constraint(LEGS[0], np.full((1, 6), np.nan)), "not finite"),
            (Constraint(LEGS[0], (1, 7)), "distinct rows"),
            (Constraint(LEGS[0], (1, 1)), "distinct rows"),
            (Constraint(LEGS[0], (True, False)), "distinct rows"),
            (Constraint(LEGS[0], 3), r"shape \(\): give 'point'"),
            (Constraint(LEGS[0], None), r"give 'point'"),
            (Constraint(LEGS[0], ("x", "y")), "'x', 'y'.*give 'point'"),
            (Constraint(LEGS[0], "point", softness=0.0), "R > 0"),
            (Constraint(LEGS[0], "point", softness=-1.0), "R > 0"),
            (Constraint(LEGS[0], "point", softness=(1.0, 1.0)), r"\(3,\)"),
            (Constraint(LEGS[0], "point", softness="soft"), "R > 0"),
            (Constraint(LEGS[0], "point", acceleration=(1, 2)), r"shape \(2,\), expected \(3,\)"),
            (Constraint(LEGS[0], "point", acceleration=(1, 2, np.nan)), r"\[2\] is nan"),
            (Constraint(LEGS[0], "point", target="up"), "target .* is not an array"),
            (Constraint(LEGS[0], "weld", target=(1, 2, 3)), r"give \(R, p\)"),
            (Constraint(LEGS[0], "weld", target=(np.diag([1, 1, -1]), np.zeros(3))), "rotation"),
            (Constraint(LEGS[0], "point", target=(1, 2, 3), period=0.0), "seconds > 0"),
            (Constraint(LEGS[0], "point", target=(1, 2, 3), period="fast"), "seconds > 0"),
            (Constraint(LEGS[0], "point", target=(1, 2, 3), damping=-1.0), "a ratio > 0"),
            (Constraint(LEGS[0], "weld", target=(np.ones((3, 3)), np.zeros(3))), "rotation"),
            (Constraint(LEGS[0], (3,), target=(1, 2, 3)), "'point' takes a position"),
            (Constraint("torso-contact-1", to="torso-contact-2"), "on one body"),
            (3.0, "a constraint is a Constraint"),
        ],
    )
    def test_constraints(self, constraint, message):
        model = load("quadruped")
        with pytest.raises(gb.GrublerError, match=message):
            solve(model, *state(model), [constraint])

    def test_world(self):
        model = with_world_frame()
        with pytest.raises(gb.InputError, match="fixed to the world"):
            solve(model, *state(model), [Constraint("anchor")])

    def test_calls(self):
        model = load("quadruped")
        q, v, tau = state(model)
        with pytest.raises(gb.InputError, match="did you mean 'pv_early'"):
            solve(model, q, v, tau, points(LEGS), "pv_erly")
        with pytest.raises(gb.InputError, match="softness= of every constraint"):
            solve(model, q, v, tau, points(LEGS), "pv_soft")
        with pytest.raises(gb.InputError, match="desired has shape"):
            solve(model, q, v, tau, points(LEGS), desired=np.zeros(5))
        with pytest.raises(gb.InputError, match="tau has shape"):
            solve(model, q, v, tau[:3], points(LEGS))
        with pytest.raises(gb.InputError, match="constraints are None: give a list"):
            solve(model, q, v, tau, None)
        with pytest.raises(gb.InputError, match="no option 'regular': it is one of 'pv_early'"):
            solve(model, q, v, tau, points(LEGS), "pv", regular=True)
        with pytest.raises(gb.InputError, match=r"no option 'regulr'$"):
            solve(model, q, v, tau, points(LEGS), regulr=True)
        for wrong in ({"iterations": 0}, {"iterations": 2.5}, {"damping": 0.0}, {"damping": "x"}):
            with pytest.raises(gb.InputError, match="damping > 0 and a number of iterations"):
                solve(model, q, v, tau, points(LEGS), "proximal", **wrong)
        with pytest.raises(gb.InputError, match="for numbers only: compile 'pv_early'"):
            gb.compile(solve, model, constraints=points(LEGS), method="kkt")

    def test_a_free_base_with_nothing_attached(self):
        """The torso alone constrained, and constraints within the body alone."""
        model = load("quadruped")
        q, v, tau = state(model)
        for constraints in (
            [Constraint("torso-contact-1")],
            [Constraint(LEGS[0], "point", to="torso-contact-1")],
            [Constraint(LEGS[0], "point", to=LEGS[3], softness=0.1)],
        ):
            expected = solve(model, q, v, tau, constraints, "kkt")
            for method in ("pv", "pv_early", "ltl"):
                found = solve(model, q, v, tau, constraints, method)
                assert relative(found.a, expected.a) < 1e-9

    def test_never_nan_without_a_word(self):
        """Random directions, random rows: every answer is finite, or an error."""
        rng = np.random.default_rng(0)
        model = load("quadruped")
        names = [f.name for f in model.frames]
        for seed in range(15):
            chosen = rng.choice(names, size=4)
            sets = [Constraint(str(n), rng.normal(size=(rng.integers(1, 7), 6))) for n in chosen]
            q, v, tau = state(model, seed)
            found = solve(model, q, v, tau, sets)
            expected = solve(model, q, v, tau, sets, "kkt")
            assert np.all(np.isfinite(found.a))
            assert (
                np.linalg.norm(found.residual)
                < (1 + 1e-6) * np.linalg.norm(expected.residual) + 1e-7 * np.abs(expected.a).max()
            )


def test_every_case_is_about_a_robot_of_the_zoo():
    assert {robot for robot, _ in CASES.values()} <= set(gb.robots.names())


@pytest.mark.parametrize("method", ["pv_early", "proximal", "kkt", "pv", "ltl"])
def test_a_joint_that_moves_no_inertia(method):
    """Every method says so, and those that meet any rows do not ask for independent ones."""
    b = gb.ModelBuilder("massless")
    b.add_body("link", 1.0, com=(0.1, 0, 0), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
    b.add_joint("joint", "revolute", "world", "link", axis=(0, 0, 1))
    b.add_body("tip", 0.0, com=(0, 0, 0), inertia=(0, 0, 0, 0, 0, 0))
    b.add_joint("tip_joint", "revolute", "link", "tip", xyz=(1, 0, 0), axis=(0, 0, 1))
    said = "bodies with inertia" if method in ("pv", "ltl") else "moves no inertia.*gb.check"
    with pytest.raises(gb.InputError, match=said):
        solve(b.build(), np.zeros(2), np.zeros(2), np.ones(2), [Constraint("tip", (3,))], method)
