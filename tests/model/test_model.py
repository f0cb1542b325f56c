"""Building, clustering, partitioning, assembling, naming."""

import numpy as np
import pytest

import grubler as gb
from conftest import load, relative
from grubler.algebra.spatial import rpy_matrix

LINK = {"mass": 1.0, "com": (0.1, 0.0, 0.05), "inertia": (0.02, 0, 0, 0.03, 0, 0.04)}


def chain(*parents, loops=()):
    """Bodies 0, 1, ... each on parents[i] ("world" or an index) by a revolute joint."""
    b = gb.ModelBuilder("chain")
    rng = np.random.default_rng(0)
    for i, parent in enumerate(parents):
        b.add_body(f"b{i}", **LINK)
        b.add_joint(
            f"j{i}", "revolute", "world" if parent is None else f"b{parent}", f"b{i}",
            xyz=rng.uniform(-0.3, 0.3, 3), rpy=rng.uniform(-1, 1, 3), axis=(0, 1, 0),
        )  # fmt: skip
    for i, (a, c) in enumerate(loops):
        b.add_coupling(f"c{i}", f"j{a}", {f"j{c}": 1.5})
    return b


def groups(model):
    return [list(c.bodies) for c in model.clusters]


class TestClustering:
    def test_a_tree_has_one_body_a_cluster(self):
        model = chain(None, 0, 1, 1, 0).build()
        assert groups(model) == [[0], [1], [2], [3], [4]]

    def test_a_gear_joins_two(self):
        assert groups(chain(None, 0, 0, 1, loops=[(1, 2)]).build()) == [[0], [1, 2], [3]]

    def test_a_coupling_past_a_joint_takes_it_in(self):
        # j0 and j2 are coupled, body 1 lies between: a cycle of clusters becomes one
        assert groups(chain(None, 0, 1, loops=[(2, 0)]).build()) == [[0, 1, 2]]

    def test_coupled_branches_pair_up_level_by_level(self):
        # two legs on a base, coupled at the tips: pairs stay smaller than one big cluster
        model = chain(None, 0, 0, 1, 2, 3, 4, loops=[(5, 6)]).build()
        assert groups(model) == [[0], [1, 2], [3, 4], [5, 6]]

    def test_a_motor_on_the_base_drives_a_far_joint(self):
        # body 4 sits on the base and drives j3 past bodies 1 and 2: 2³ + 3³ is less than 1 + 4³
        model = chain(None, 0, 1, 2, 0, loops=[(4, 3)]).build()
        assert sorted(map(len, groups(model))) == [2, 3]

    def test_overlapping_loops_merge(self):
        model = chain(None, 0, 0, 0, 0, loops=[(1, 2), (2, 3)]).build()
        assert groups(model) == [[0], [1, 2, 3], [4]]

    def test_children_of_two_bodies_of_one_cluster(self):
        # Fig. 5 of the paper: a cluster whose bodies hang from two bodies of its parent
        model = chain(None, 0, 0, 1, 2, loops=[(1, 2), (3, 4)]).build()
        assert groups(model) == [[0], [1, 2], [3, 4]]
        assert model.clusters[2].output == (0, 1)

    @pytest.mark.parametrize(
        ("parents", "loops"),
        [
            ((None, 0, 0, 1, 2, 3, 4), [(5, 6)]),
            ((None, 0, 1, 2, 0), [(4, 3)]),
            ((None, 0, 0, 1, 2), [(1, 2), (3, 4)]),
            ((None, None, 0, 1, 2, 3), [(5, 4)]),
            ((None, 0, 1), [(2, 0)]),
        ],
    )
    def test_dynamics_of_odd_clusters(self, parents, loops):
        model = chain(*parents, loops=loops).build()
        q, v = model.random_state(0)
        tau = np.ones(model.nv)
        a = gb.forward_dynamics(model, q, v, tau)
        assert relative(gb.forward_dynamics(model, q, v, tau, method="lagrange"), a) < 1e-10
        assert relative(gb.inverse_dynamics(model, q, v, a), tau) < 1e-9
        frames = [b.name for b in model.bodies]
        dense = gb.inverse_osim(model, q, frames, method="projected")
        assert relative(gb.inverse_osim(model, q, frames), dense) < 1e-9


class TestPartition:
    def geared(self, **flags):
        b = gb.ModelBuilder("gear")
        for name in ("link", "rotor"):
            b.add_body(name, **LINK)
            b.add_joint(f"{name}_joint", "revolute", "world", name, independent=flags.get(name))
        b.add_coupling("gear", "rotor_joint", {"link_joint": 6.0}, offset=0.3)
        return b.build()

    def test_gear_keeps_the_leader_independent(self):
        model = self.geared()
        assert model.q_names == model.v_names == ("link_joint",)
        assert np.allclose(gb.spanning_state(model, [0.5]).positions, [0.5, 3.3])

    def test_gear_inverted_on_request(self):
        model = self.geared(rotor=True)
        assert model.v_names == ("rotor_joint",)
        assert np.allclose(gb.spanning_state(model, [3.3]).positions, [0.5, 3.3])
        M_link = gb.mass_matrix(self.geared(), [0.5])[0, 0]
        assert np.isclose(gb.mass_matrix(model, [3.3])[0, 0], M_link / 36)
        assert self.geared(link=False).v_names == ("rotor_joint",)

    def test_both_ends_of_a_gear_cannot_be_independent(self):
        with pytest.raises(gb.PartitionError, match="cannot be independent"):
            self.geared(link=True, rotor=True)
        with pytest.raises(gb.PartitionError, match="cannot be dependent"):
            self.geared(link=False, rotor=False)

    def test_redundant_and_contradictory_couplings(self):
        b = chain(None, 0, 0, loops=[(1, 2)])
        b.add_coupling("again", "j2", {"j1": 1 / 1.5})
        assert b.build().nv == 2
        b.add_coupling("against", "j1", {"j2": 1.5}, offset=0.2)
        with pytest.raises(gb.ClosureError, match="contradict"):
            b.build()

    def test_cam_cannot_be_inverted(self):
        b = gb.ModelBuilder("cam")
        for name in ("cam", "lever"):
            b.add_body(name, **LINK)
            independent = True if name == "lever" else None
            b.add_joint(f"j_{name}", "revolute", "world", name, independent=independent)
        b.add_coupling("c", "j_lever", leader="j_cam", polynomial=(0, 0, 1.0))
        with pytest.raises(gb.PartitionError, match="implicit constraint"):
            b.build()

    def test_choice_in_a_linkage(self):
        base = load("four_bar")
        assert base.v_names[0] == base.joints[0].name

    def test_mobility_zero(self):
        b = gb.ModelBuilder("truss")
        for name, x in (("left", 0.0), ("right", 1.0)):
            b.add_body(name, **LINK)
            b.add_joint(f"j_{name}", "revolute", "world", name, xyz=(x, 0, 0), axis=(0, 1, 0))
        b.add_loop(
            "apex", "ball", "left", "right",
            predecessor_xyz=(0.5, 0, 0.5), successor_xyz=(-0.5, 0, 0.5),
        )  # fmt: skip
        model = b.build()
        assert model.nv == 0 and not model.bodies
        assert "'apex' leaves no motion to joint 'j_left', 'j_right'" in model.notes[0]


class TestAssembly:
    def test_random_states_are_assembled(self):
        for name in ("four_bar", "six_bar", "planar_leg_linkage", "tello", "loop_sampler"):
            model = load(name)
            for seed in range(10):
                q, _ = model.random_state(seed)
                assert model.loop_gap(q) < 1e-12, name

    def test_same_seed_same_state(self):
        model = load("loop_sampler")
        for x, y in zip(model.random_state(3), model.random_state(3), strict=True):
            assert np.array_equal(x, y)

    def test_assemble_holds_fixed_joints(self):
        model = load("four_bar")
        crank = model.joints[0].name
        q = model.assemble({crank: 0.9}, fixed=[crank])
        assert q[0] == 0.9 and model.loop_gap(q) < 1e-12

    def test_assemble_from_an_open_array(self):
        model = load("six_bar")
        q, _ = model.random_state(1)
        rough = q + np.random.default_rng(0).uniform(-0.1, 0.1, model.nq)
        closed = model.assemble(rough)
        assert model.loop_gap(closed) < 1e-12 and np.abs(closed - q).max() < 0.5

    def test_straight_guess_is_left(self):
        """All joints at zero is a singular, open configuration of the six-bar."""
        model = load("six_bar")
        assert model.loop_gap(model.assemble(np.zeros(model.nq))) < 1e-12

    def test_out_of_reach_names_the_loop_and_the_gap(self):
        b = gb.ModelBuilder("short")
        for name, x in (("left", 0.0), ("right", 2.0)):
            b.add_body(name, **LINK)
            b.add_joint(f"j_{name}", "revolute", "world", name, xyz=(x, 0, 0), axis=(0, 1, 0))
        b.add_loop(
            "rope", "distance", "left", "right",
            predecessor_xyz=(0.5, 0, 0), successor_xyz=(0.5, 0, 0), distance=0.1,
        )  # fmt: skip
        with pytest.raises(gb.ClosureError, match=r"'rope' cannot be closed: still open by .* mm"):
            b.build()

    def test_reversed_axes_are_refused(self):
        b = gb.ModelBuilder("flipped")
        for name, length in (("crank", 0.2), ("coupler", 0.45), ("follower", 0.4)):
            b.add_body(name, length, (length / 2, 0, 0), (1e-4, 0, 0, 1e-3, 0, 1e-3))
        y = {"axis": (0, 1, 0)}
        b.add_joint("j1", "revolute", "world", "crank", **y)
        b.add_joint("j2", "revolute", "crank", "coupler", xyz=(0.2, 0, 0), **y)
        b.add_joint("j3", "revolute", "world", "follower", xyz=(0.5, 0, 0), **y)
        b.add_loop(
            "tip", "revolute", "coupler", "follower", axis=(0, 1, 0),
            predecessor_xyz=(0.45, 0, 0), successor_xyz=(0.4, 0, 0), successor_rpy=(np.pi, 0, 0),
        )  # fmt: skip
        with pytest.raises(gb.ClosureError, match="axes reversed"):
            b.build()

    def test_integrate_keeps_loops_closed(self):
        model = load("loop_sampler")
        q, v = model.random_state(0)
        for _ in range(20):
            q = model.integrate(q, v, 0.005)
        assert model.loop_gap(q) < 1e-12


class TestWelding:
    def build(self, welded: bool):
        b = gb.ModelBuilder("weld")
        b.add_body("arm", **LINK)
        b.add_joint("shoulder", "revolute", "world", "arm", axis=(0, 1, 0))
        b.add_body("tool", mass=0.5, com=(0, 0.1, 0), inertia=(0.01, 0, 0, 0.012, 0, 0.013))
        place = {"xyz": (0.3, 0.1, 0.0), "rpy": (0.2, -0.4, 0.9)}
        if welded:
            b.add_joint("flange", "fixed", "arm", "tool", **place)
        else:
            b.add_joint("flange", "revolute", "arm", "tool", **place)
            b.add_coupling("locked", "flange", {"shoulder": 0.0})
        b.add_frame("tip", "tool", xyz=(0, 0, 0.2))
        return b.build()

    def test_a_fixed_joint_equals_a_locked_one(self):
        fixed, locked = self.build(True), self.build(False)
        assert len(fixed.bodies) == 1 and fixed.nv == locked.nv == 1
        q, v, tau = [0.4], [1.2], [0.7]
        assert relative(
            gb.forward_dynamics(fixed, q, v, tau), gb.forward_dynamics(locked, q, v, tau)
        ) < 1e-12  # fmt: skip
        for frame in ("tip", "tool"):
            assert np.allclose(
                gb.frame_jacobian(fixed, q, frame), gb.frame_jacobian(locked, q, frame), atol=1e-14
            )
            for x, y in zip(gb.frame_pose(fixed, q, frame), gb.frame_pose(locked, q, frame)):
                assert np.allclose(x, y, atol=1e-14)

    def test_bodies_fixed_to_the_world(self):
        b = gb.ModelBuilder("pedestal")
        b.add_body("stand", **LINK)
        b.add_joint("bolt", "fixed", "world", "stand", xyz=(0, 0, 1))
        b.add_body("arm", **LINK)
        b.add_joint("j", "revolute", "stand", "arm", xyz=(0.1, 0, 0), axis=(0, 1, 0))
        model = b.build()
        assert [body.name for body in model.bodies] == ["arm"]
        assert np.allclose(gb.frame_pose(model, [0.0], "arm")[1], [0.1, 0, 1])
        assert np.allclose(gb.frame_pose(model, [0.0], "stand")[1], [0, 0, 1])
        assert np.array_equal(gb.frame_jacobian(model, [0.0], "stand"), np.zeros((6, 1)))


class TestNamesAndMaps:
    def test_names_have_the_right_lengths(self, model):
        assert len(model.q_names) == model.nq and len(model.v_names) == model.nv
        assert len(model.spanning_names) == model.nv_span
        q, v = model.random_state(0)
        assert q.shape == (model.nq,) and v.shape == (model.nv,)
        assert model.neutral().shape == (model.nq,)
        assert model.loop_gap(model.neutral()) < 1e-10

    def test_spanning_round_trip(self, model):
        q, v = model.random_state(2)
        span = gb.spanning_state(model, q, v)
        positions, velocities, i, j = {}, {}, 0, 0
        for index in model.spanning_order:
            joint = model.bodies[index].joint
            positions[joint.name] = span.positions[i : i + joint.nq]
            velocities[joint.name] = span.velocities[j : j + joint.nv]
            i, j = i + joint.nq, j + joint.nv
        q2, v2 = gb.from_spanning(model, positions, velocities)
        assert np.allclose(q2, q, atol=1e-12) and np.allclose(v2, v, atol=1e-9)

    def test_generalized_force_is_dual_to_velocity(self, model):
        q, v = model.random_state(1)
        rng = np.random.default_rng(0)
        torques = {j.name: rng.uniform(-1, 1, j.nv) for j in model.joints}
        tau = gb.generalized_force(model, q, torques)
        span = gb.spanning_state(model, q, v).velocities
        stacked = np.concatenate(
            [torques[model.bodies[i].joint.name] for i in model.spanning_order]
        )
        assert np.isclose(tau @ v, stacked @ span, rtol=1e-10)

    def test_print_shows_everything(self, model):
        text = str(model)
        assert all(body.name in text for body in model.bodies)
        assert all(loop.name in text for loop in model.loops)
        assert f"mobility {model.nv}" in text and "clusters" in text
        assert f"mobility {model.nv}" in repr(model)

    def test_model_is_read_only(self):
        model = load("mini_cheetah")
        with pytest.raises(AttributeError):
            model.name = "other"
        with pytest.raises(ValueError, match="read-only"):
            model.bodies[0].com[0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            model.gravity[2] = 0.0


def test_rotor_angle_does_not_matter():
    """A body symmetric about its joint axis enters the dynamics without its angle."""
    b = gb.ModelBuilder("offset gear")
    for name in ("link", "rotor"):
        inertia = (0.01, 0, 0, 0.02, 0, 0.02) if name == "link" else (1e-4, 0, 0, 1e-4, 0, 1.5e-4)
        b.add_body(name, 1.0, (0.1, 0, 0) if name == "link" else (0, 0, 0.02), inertia)
        b.add_joint(f"j_{name}", "revolute", "world", name, rpy=(0.3, 0.2, 0.1))
    b.add_coupling("gear", "j_rotor", {"j_link": 7.0}, offset=1.0)
    model = b.build()
    assert model.body("rotor").symmetric_about_joint
    assert not model.body("link").symmetric_about_joint
    f = {"rotor": np.arange(6.0)}  # in rotor coordinates: here the angle does matter
    a = gb.forward_dynamics(model, [0.4], [1.1], [0.2], f)
    assert (
        relative(gb.forward_dynamics(model, [0.4], [1.1], [0.2], f, method="lagrange"), a) < 1e-12
    )
    R, _ = gb.frame_pose(model, [0.4], "rotor")
    turned = rpy_matrix(0.3, 0.2, 0.1) @ rpy_matrix(0, 0, 0.4 * 7 + 1)
    assert np.allclose(R, turned)


def test_armature_adds_to_the_spanning_diagonal():
    """M + Gᵀ R G, in every algorithm, also behind a gear and in an implicit cluster."""

    def build(armature):
        b = gb.ModelBuilder("arm")
        for name in ("link", "rotor", "crank", "coupler", "rocker"):
            b.add_body(name, **LINK)
        y = {"axis": (0, 1, 0)}
        b.add_joint("j", "revolute", "world", "link", armature=armature, **y)
        b.add_joint("r", "revolute", "world", "rotor", armature=2 * armature, **y)
        b.add_coupling("gear", "r", {"j": 5.0})
        b.add_joint("c1", "revolute", "link", "crank", armature=3 * armature, **y)
        b.add_joint("c2", "revolute", "crank", "coupler", xyz=(0.2, 0, 0), **y)
        b.add_joint("c3", "revolute", "link", "rocker", xyz=(0.5, 0, 0), armature=armature, **y)
        b.add_loop(
            "tip", "ball", "coupler", "rocker",
            predecessor_xyz=(0.45, 0, 0), successor_xyz=(0.4, 0, 0),
        )  # fmt: skip
        return b.build()

    bare, armed = build(0.0), build(0.3)
    q, v = armed.random_state(1)
    G, _ = gb.spanning_map(armed, q)
    R = np.diag([armed.joint(n).armature for n in armed.spanning_names])
    M = gb.mass_matrix(armed, q)
    assert relative(M, gb.mass_matrix(bare, q) + G.T @ R @ G) < 1e-12
    assert relative(M, gb.mass_matrix(armed, q, method="projected")) < 1e-12
    tau = np.array([0.3, -0.2])
    a = gb.forward_dynamics(armed, q, v, tau)
    for method in ("projection", "lagrange", "mass_matrix"):
        assert relative(gb.forward_dynamics(armed, q, v, tau, method=method), a) < 1e-11
    assert relative(gb.inverse_dynamics(armed, q, v, a), tau) < 1e-10
    omega = gb.inverse_osim(armed, q, ["coupler"])
    assert relative(gb.inverse_osim(armed, q, ["coupler"], method="projected"), omega) < 1e-11
    extra = gb.energy(armed, q, v).kinetic - gb.energy(bare, q, v).kinetic
    assert np.isclose(extra, 0.5 * v @ G.T @ R @ G @ v)
    with pytest.raises(gb.ModelError, match="armature"):
        build(-1.0)
