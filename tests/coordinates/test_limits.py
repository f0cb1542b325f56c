"""Joint limits: kept by assembly, by the neutral configuration and by random states."""

from __future__ import annotations

import numpy as np
import pytest

import grubler as gb
from conftest import ROBOTS, load
from formats.shared_models import shared
from linkages import ankle, link

FILES = (  # limits of dependent joints, of joints at zero, and of closed linkages
    "kangaroo_pal_mjcf/kangaroo.xml", "robotiq_2f85_mjcf/2f85.xml", "cassie_mjcf/cassie.xml",
    "cassie_dairlib_urdf/cassie_v2.urdf", "reachy_mini_mjcf/reachy_mini.xml",
    "g1_tiangong_parallel_ankle_mjcf/g1_ankle_23urdf311.xml",
)  # fmt: skip


def beyond(model: gb.Model, q) -> dict[str, float]:
    """Joints beyond their limits, read from the parts alone."""
    found = {}
    for i, x in model.unpack(q).items():
        joint = model.bodies[i].joint
        if joint.nv != 1 or None in (joint.lower, joint.upper) or joint.lower >= joint.upper:
            continue
        if max(joint.lower - x[0], x[0] - joint.upper) > 1e-8:
            found[joint.name] = float(x[0])
    return found


def conditions(model: gb.Model, q) -> float:
    """The largest condition of the clusters' partitions."""
    found = [1.0]
    for cluster in model.clusters:
        joint = cluster.embedding
        if joint.implicit:
            K, _ = joint.constraint(joint.positions(q[cluster.q]), None)
            found.append(np.linalg.cond(K[np.ix_(joint.kept, joint.dependent)]))
    return max(found)


def slider_crank(**limits) -> gb.ModelBuilder:
    """A crank of 0.2 m and a rod of 0.5 m; `limits` are (lower, upper) by joint name."""
    b = gb.ModelBuilder("slider crank")
    for name, kind, parent, options in (
        ("crank", "revolute", "world", {"axis": (0, 1, 0)}),
        ("rod", "revolute", "crank", {"axis": (0, 1, 0), "xyz": (0.2, 0, 0)}),
        ("piston", "prismatic", "world", {"axis": (1, 0, 0)}),
    ):
        low, high = limits.get(name, (None, None))
        b.add_body(name, 1.0, inertia=(0.01, 0, 0, 0.01, 0, 0.01))
        b.add_joint(name, kind, parent, name, lower=low, upper=high, **options)
    b.add_loop("pin", "revolute", "rod", "piston", predecessor_xyz=(0.5, 0, 0), axis=(0, 1, 0))
    return b


class TestFixedJoints:
    """Dependent joints of a closed form keep their guess as those of its numeric twin do."""

    @pytest.mark.parametrize("make", [lambda: load("four_bar"), ankle], ids=["four_bar", "ankle"])
    def test_each_dependent_joint(self, make):
        model = make()
        closed = gb.analytic(model)
        names = [b.joint.name for c in closed.clusters if c.loops for b in c.embedding.bodies]
        dependent = [n for n in names if n not in closed.q_names and model.joint(n).nv == 1]
        assert dependent
        for seed in range(4):
            positions = model.unpack(model.random_state(seed)[0])
            for name in dependent:
                i = model.body_of_joint(name).index
                guess = {name: float(positions[i][0])}
                q = closed.assemble(guess, fixed=[name])
                assert abs(closed.unpack(q)[i][0] - guess[name]) < 1e-9
                assert closed.loop_gap(q) < 1e-9

    def test_same_as_the_numeric_twin(self):
        model = load("four_bar")
        closed = gb.analytic(model)
        follower = float(model.random_state(3)[0][model.q_names.index("follower")])
        guess = {"follower": follower}
        q = model.assemble(guess, fixed=["follower"])
        assert closed.assemble(guess, fixed=["follower"])[0] == pytest.approx(q[0], abs=1e-9)
        free = model.assemble(guess)  # a guess that counts, but need not be kept
        assert closed.assemble(guess)[0] == pytest.approx(free[0], abs=1e-9)

    def test_other_branch_is_refused(self):
        model = load("four_bar")
        crank = float(model.neutral()[0])
        closed = gb.analytic(model)
        other = gb.analytic(model, branches={"pin": "other"})
        wanted = {"crank": crank, "follower": float(other.unpack(np.array([crank]))[2][0])}
        assert model.loop_gap(model.assemble(wanted, fixed=list(wanted))) < 1e-9
        with pytest.raises(gb.ClosureError, match="loop 'pin' closes here only on another branch"):
            closed.assemble(wanted, fixed=list(wanted))

    def test_out_of_reach_is_refused(self):
        closed = gb.analytic(slider_crank().build(reference={"crank": 0.8, "rod": -1.0}))
        with pytest.raises(gb.ClosureError, match=r"'pin' cannot be closed.* free some"):
            closed.assemble({"piston": 2.0}, fixed=["piston"])

    def test_gears(self):
        b = gb.ModelBuilder("gear")
        link(b, "arm", "arm", "revolute", "world")
        link(b, "rotor", "rotor", "revolute", "world")
        b.add_coupling("gear", "rotor", {"arm": 10.0})
        model = b.build()
        assert model.assemble({"rotor": 5.0}, fixed=["rotor"]) == pytest.approx([0.5])
        assert model.assemble({"arm": 0.3}) == pytest.approx([0.3])
        with pytest.raises(gb.ClosureError, match="'gear' cannot be closed"):
            model.assemble({"rotor": 5.0, "arm": 0.3}, fixed=["rotor", "arm"])

    def test_independent_joints_out_of_reach_move(self):
        """An array whose closed form has no real solution is a guess like any other."""
        b = gb.ModelBuilder("rocker")
        for name, x in (("left", 0.0), ("right", 0.9)):
            link(b, name, name, "revolute", "world", xyz=(x, 0, 0), axis=(0, 1, 0),
                 independent=name == "left")  # fmt: skip
        link(b, "rod", "rod", "revolute", "left", xyz=(0.4, 0, 0), axis=(0, 1, 0))
        b.add_loop("pin", "revolute", "rod", "right", predecessor_xyz=(0.4, 0, 0),
                   successor_xyz=(0.3, 0, 0), axis=(0, 1, 0))  # fmt: skip
        closed = b.build(reference={"left": -1.2, "rod": 1.2, "right": -2.0}, analytic=True)
        far = np.array([np.pi])  # the rod's end cannot come so far from the rocker's pivot
        with np.errstate(invalid="ignore"):
            assert not np.isfinite(closed.loop_gap(far))
        assert closed.loop_gap(closed.assemble(far)) < 1e-9


class TestWithinLimits:
    @pytest.mark.parametrize("name", ROBOTS)
    def test_zoo(self, name):
        model = load(name)
        assert beyond(model, model.neutral()) == {}
        q, _ = model.random_states(50, 1)
        assert all(beyond(model, x) == {} for x in q)
        assert beyond(model, model.random_state(1)[0]) == {}

    @pytest.mark.parametrize("name", FILES)
    def test_files(self, name):
        model = shared(name)
        assert beyond(model, model.neutral()) == {}
        assert model.loop_gap(model.neutral()) < 1e-9
        q, _ = model.random_states(100, 1)
        assert all(beyond(model, x) == {} for x in q)
        assert max(model.loop_gap(x) for x in q) < 1e-7
        assert beyond(model, model.random_state(1)[0]) == {}
        assert np.unique(q.round(9), axis=0).shape == q.shape  # none is left at the start

    def test_dependent_joints_turn_the_branch(self):
        """The rod closes upwards or downwards: its limits decide."""
        for low, high in ((0.0, 3.0), (-3.0, 0.0)):
            model = slider_crank(rod=(low, high), piston=(0.1, 0.6)).build()
            q = model.neutral()
            assert beyond(model, q) == {} and model.loop_gap(q) < 1e-10
            states, _ = model.random_states(200, 0)
            assert all(beyond(model, x) == {} for x in states)
            assert np.ptp(states[:, 2]) > 0.2

    def test_limits_that_contradict_the_loop_are_passed(self):
        """The piston cannot come that far: the loop closes, with the other limits kept."""
        model = slider_crank(piston=(2.0, 3.0), crank=(-0.5, 0.5)).build()
        q = model.neutral()
        assert model.loop_gap(q) < 1e-10 and list(beyond(model, q)) == ["piston"]

    def test_gears_with_limits(self):
        b = gb.ModelBuilder("gear")
        for name in ("arm", "rotor"):
            b.add_body(name, 1.0, inertia=(0.01, 0, 0, 0.01, 0, 0.01))
        b.add_joint("arm", "revolute", "world", "arm", lower=-2.0, upper=2.0)
        b.add_joint("rotor", "revolute", "world", "rotor", lower=1.0, upper=4.0)
        b.add_coupling("gear", "rotor", {"arm": 10.0})
        model = b.build()
        assert beyond(model, model.neutral()) == {}
        q, _ = model.random_states(100, 0)
        assert all(beyond(model, x) == {} for x in q)

    def test_keyframes_are_kept_and_zero_is_not(self):
        pytest.importorskip("mujoco")
        text = """<mujoco><worldbody><body><joint name="knee" type="hinge" range="30 60"/>
            <geom size="0.1"/></body></worldbody>%s</mujoco>"""
        assert gb.load(text % "").neutral() == pytest.approx([np.pi / 6])
        key = '<keyframe><key qpos="0.2"/></keyframe>'
        assert gb.load(text % key).neutral() == pytest.approx([0.2])

    def test_guesses_beyond_limits_are_wishes(self):
        model = slider_crank(crank=(-0.5, 0.5)).build()
        assert model.assemble({"crank": 0.8}, fixed=["crank"])[0] == 0.8
        q = model.assemble({"crank": 0.8})
        assert np.array_equal(model.assemble(q), q)

    def test_one_sided_and_equal_limits(self):
        b = gb.ModelBuilder("limits")
        for name, low, high in (("up", 1.0, None), ("down", None, -1.0), ("none", 0.0, 0.0)):
            b.add_body(name, 1.0, inertia=(1, 0, 0, 1, 0, 1))
            b.add_joint(name, "revolute", "world", name, lower=low, upper=high)
        model = b.build()
        assert list(model.neutral()) == [1.0, -1.0, 0.0]
        q, _ = model.random_states(200, 0)
        assert q[:, 0].min() >= 1.0 and q[:, 1].max() <= -1.0
        assert np.ptp(q, axis=0).min() > 0.8

    def test_simulated_states_may_pass_limits(self):
        """Limits are for starting: integration along the manifold does not know them."""
        model = slider_crank(crank=(-0.5, 0.5)).build(reference={"crank": 0.4, "rod": -0.6})
        v = np.zeros(model.nv)
        v[0] = 1.0 if model.v_names[0] == "crank" else -1.0
        q = model.integrate(model.neutral(), v, 0.2)
        assert model.loop_gap(q) < 1e-9
        assert q[model.q_names.index(model.v_names[0])] == pytest.approx(
            model.neutral()[model.q_names.index(model.v_names[0])] + 0.2 * v[0]
        )


class TestRandomStates:
    @pytest.mark.parametrize("name", ROBOTS)
    def test_rows_are_random_states(self, name):
        """The batch closes by other code than the single state, from the same draws."""
        model = load(name)
        q, v = model.random_states(8, 3)
        rng = np.random.default_rng(3)
        one = [model.random_state(rng) for _ in range(8)]
        assert np.array_equal(v, [state[1] for state in one])
        clear = [conditions(model, x) < 100 for x in q]  # where branches cross, either is taken
        assert sum(clear) >= 6
        assert np.abs(q - [state[0] for state in one])[clear].max() < 1e-8

    @pytest.mark.parametrize("name", ["four_bar", "parallel_four_bar"])
    def test_one_branch(self, name):
        """Coupler and rocker keep the side to which they bend: open and crossed are told apart."""
        model = load(name)
        q, _ = model.random_states(500, 2)
        bend = np.sin(q[:, model.q_names.index("follower" if name == "four_bar" else "joint3")]
                      - q[:, 0] - q[:, 1])  # fmt: skip
        assert (np.sign(bend) == np.sign(bend[0])).all()

    @pytest.mark.parametrize("name", ["six_bar", "tello", "loop_sampler"])
    def test_guarantees(self, name):
        model = load(name)
        q, v = model.random_states(300, 0)
        assert q.shape == (300, model.nq) and v.shape == (300, model.nv)
        for x in q:
            assert model.loop_gap(x) < 1e-7
            for cluster in model.clusters:
                positions = cluster.embedding.positions(x[cluster.q])
                assert all(loop.on_branch(positions) for loop in cluster.loops)
            assert conditions(model, x) < 1e4

    def test_seeds(self):
        model = load("four_bar")
        one, two, other = (model.random_states(5, seed)[0] for seed in (1, 1, 2))
        assert np.array_equal(one, two) and not np.array_equal(one, other)
        rng = np.random.default_rng(1)
        both = np.concatenate([model.random_states(2, rng)[0], model.random_states(3, rng)[0]])
        assert both[:2] == pytest.approx(one[:2])

    def test_numbers_of_states(self):
        model = load("four_bar")
        q, v = model.random_states(0)
        assert q.shape == (0, 3) and v.shape == (0, 1)
        for n in (-1, 2.5, "3", True, None):
            with pytest.raises(gb.InputError, match="the number of random states"):
                model.random_states(n)
