"""Branches of linkages: told apart, chosen, and kept by every change of coordinates."""

from __future__ import annotations

import numpy as np
import pytest

import grubler as gb
from conftest import load
from formats.shared_models import shared
from linkages import MECHANISMS, stewart

STATES = 16


def motion(model: gb.Model, q, v, tau):
    """Rotations and positions of all bodies, and the accelerations of all joints."""
    k = gb.kinematics(model, q)
    a = gb.forward_dynamics(model, q, v, tau)
    return k.rotation, k.position, gb.spanning_state(model, q, v, a).accelerations


def same_motion(old: gb.Model, new: gb.Model, q, v, tau) -> float:
    """The largest difference of poses, and of accelerations relative to the largest."""
    y = gb.convert_configuration(old, new, q)
    w, force = gb.convert_velocity(old, new, q, v), gb.convert_force(old, new, q, tau)
    one, two = motion(old, q, v, tau), motion(new, y, w, force)
    pose = max(np.abs(np.asarray(x) - np.asarray(z)).max() for x, z in zip(one[:2], two[:2]))
    return max(pose, np.abs(one[2] - two[2]).max() / (1 + np.abs(one[2]).max()))


class TestConversions:
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_bodies_and_accelerations_stay(self, name):
        """To closed form and back, and to other partitions: every state is converted exactly, or
        stands on another branch than the closed form and is refused."""
        model = MECHANISMS[name][0]()
        closed = gb.analytic(model)
        numeric = gb.numeric(closed)
        rng, refused = np.random.default_rng(0), 0
        for q, v in zip(*model.random_states(STATES, 0), strict=True):
            tau = rng.uniform(-2, 2, model.nv)
            better = gb.repartition(model, q)
            assert same_motion(model, better, q, v, tau) < 1e-10
            own = closed
            try:
                gb.convert_configuration(model, closed, q)
            except gb.ClosureError as error:
                assert "stands on another branch" in str(error)
                refused += 1
                own = gb.analytic(gb.with_reference(model, q))  # as the error advises
            y = gb.convert_configuration(model, own, q)
            # Near a dead point, bars that meet at an angle s, positions have rounding over s and
            # accelerations over s³.
            limit = 1e-10 * max(1.0, gb.validity(own, y).conditions.max() / 30) ** 3
            assert same_motion(model, own, q, v, tau) < limit
            w, force = gb.convert_velocity(model, own, q, v), gb.convert_force(model, own, q, tau)
            assert same_motion(own, numeric, y, w, force) < limit
        assert refused <= STATES // 4

    def test_legs_that_pass_their_joint(self):
        """Platforms of the 6-UPS below their base have legs that came through their joints: the
        closed form would turn those by half a turn."""
        model = stewart()
        closed = gb.analytic(model)
        q, _ = model.random_states(100, 0)
        legs = [i for i, name in enumerate(model.q_names) if name.startswith("slide")]
        through = (q[:, legs] < -0.7).any(axis=1)  # 0.7 m from the joint to the rod's end
        assert through.any() and not through.all()
        for x, other in zip(q, through, strict=True):
            if other:
                with pytest.raises(gb.ClosureError, match=r"loop .leg.. stands on another branch"):
                    gb.convert_configuration(model, closed, x)
            else:
                gb.convert_configuration(model, closed, x)

    def test_open_loops_are_named(self):
        model = load("four_bar")
        with pytest.raises(gb.ClosureError, match="loop 'pin' is open by"):
            gb.convert_configuration(model, gb.analytic(model), model.neutral() * 1.1)

    def test_models_of_other_mechanisms(self):
        with pytest.raises(gb.InputError, match="not models of one mechanism"):
            gb.convert_configuration(load("four_bar"), load("six_bar"), np.zeros(3))

    def test_compiled(self):
        """On symbols nothing can be checked; the values are the same."""
        model = load("four_bar")
        closed = gb.analytic(model)

        def convert(model, q):
            return gb.convert_configuration(model, closed, q)

        q, _ = model.random_state(0)
        compiled = gb.compile(convert, model)
        assert compiled(q) == pytest.approx(gb.convert_configuration(model, closed, q))


class TestAssemblies:
    def test_four_bar_is_open_or_crossed(self):
        """Both closures by hand: circles of the coupler and of the follower about their pivots."""
        model = load("four_bar")
        for q in model.random_states(5, 0)[0]:
            (found,) = gb.assemblies(model, q).values()
            assert len(found) == 2 and np.array_equal(found[0], q)
            end = 0.2 * np.array([np.cos(q[0]), -np.sin(q[0])])  # of the crank, in x and z
            d = np.array([0.5, 0.0]) - end
            along = (d @ d + 0.45**2 - 0.4**2) / (2 * d @ d)
            height = np.sqrt(0.45**2 / (d @ d) - along**2)
            pins = [end + along * d + s * height * np.array([-d[1], d[0]]) for s in (1, -1)]
            points = []
            for x in found:
                _, p = gb.frame_pose(model, x, "pin")
                points.append(p[[0, 2]])
            for pin in pins:
                assert min(np.abs(pin - point).max() for point in points) < 1e-9

    def test_closed_form_on_each_branch(self):
        model = load("four_bar")
        q, _ = model.random_state(1)
        for way in gb.assemblies(model, q)["pin"]:
            chosen = gb.with_reference(model, way)
            assert np.array_equal(chosen.neutral(), way)
            closed = gb.analytic(chosen)
            assert gb.numeric(closed).loop_gap(way) < 1e-9
            assert closed.unpack(way[:1])[2] == pytest.approx(way[2:], abs=1e-9)

    def test_random_states_stay_on_the_chosen_branch(self):
        model = load("four_bar")
        bends = []
        for way in gb.assemblies(model)["pin"]:
            q, _ = gb.with_reference(model, way).random_states(100, 0)
            bend = np.sign(np.sin(q[:, 2] - q[:, 0] - q[:, 1]))
            assert (bend == bend[0]).all()
            bends.append(bend[0])
        assert sorted(bends) == [-1, 1]

    def test_independent_joints_stay(self):
        model = load("six_bar")
        q, _ = model.random_state(0)
        places = [model.q_names.index(n) for n in model.v_names]
        (found,) = gb.assemblies(model, q).values()
        assert len(found) > 1
        for way in found:
            assert model.loop_gap(way) < 1e-7 and np.array_equal(way[places], q[places])
        for i, a in enumerate(found):
            assert all(np.abs(np.exp(1j * a) - np.exp(1j * b)).max() > 1e-3 for b in found[:i])

    def test_limits_leave_fewer(self):
        model = shared("kangaroo_pal_mjcf/kangaroo.xml")
        q, _ = model.random_state(0)
        kept, all_of_them = gb.assemblies(model, q), gb.assemblies(model, q, limits=False)
        assert len(kept) == 2 and kept.keys() == all_of_them.keys()
        for name, ways in kept.items():
            assert len(ways) == 1 < len(all_of_them[name])

    def test_models_without_implicit_loops(self):
        assert gb.assemblies(load("mini_cheetah")) == {}
        assert gb.assemblies(gb.analytic(load("four_bar"))) == {}

    def test_bad_input(self):
        model = load("four_bar")
        with pytest.raises(gb.ClosureError, match="loop 'pin' is open"):
            gb.assemblies(model, np.zeros(3))
        with pytest.raises(gb.ClosureError, match="loop 'pin' is open"):
            gb.with_reference(model, np.zeros(3))
        with pytest.raises(gb.InputError, match="tries is 0"):
            gb.assemblies(model, tries=0)
        with pytest.raises(gb.InputError, match="limits is 1"):
            gb.assemblies(model, limits=1)
        with pytest.raises(gb.InputError, match="shape"):
            gb.with_reference(model, np.zeros(2))
