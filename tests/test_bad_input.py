"""Bad input: each mistake gets an error that names what is wrong, where, and the fix."""

import numpy as np
import pytest

import grubler as gb
from conftest import load

INERTIA = (0.02, 0, 0, 0.03, 0, 0.04)


def builder(*names):
    b = gb.ModelBuilder("test")
    for name in names:
        b.add_body(name, 1.0, inertia=INERTIA)
    return b


class TestDescription:
    def test_cycle(self):
        b = builder("a", "b")
        b.add_joint("j1", "revolute", "b", "a")
        b.add_joint("j2", "revolute", "a", "b")
        with pytest.raises(gb.ModelError, match=r"cycle: .*a.*b.*add_loop"):
            b.build()

    def test_disconnected(self):
        b = builder("a", "lost")
        b.add_joint("j1", "revolute", "world", "a")
        with pytest.raises(gb.ModelError, match="'lost' is not connected"):
            b.build()

    def test_two_parents(self):
        b = builder("a", "b", "c")
        b.add_joint("j1", "revolute", "a", "c")
        with pytest.raises(gb.ModelError, match=r"'c' already hangs from joint 'j1'.*add_loop"):
            b.add_joint("j2", "revolute", "b", "c")

    @pytest.mark.parametrize(
        ("call", "match"),
        [
            (lambda b: b.add_joint("x", "revolute", "wrold", "a"), "did you mean|no body"),
            (lambda b: b.add_loop("x", "ball", "arm", "forarm"), "did you mean 'forearm'"),
            (lambda b: b.add_coupling("x", "elbow", {"shouldr": 2.0}), "did you mean 'shoulder'"),
            (lambda b: b.add_frame("x", "fore_arm"), "did you mean 'forearm'"),
            (lambda b: b.add_actuator("x", "elbo"), "did you mean 'elbow'"),
        ],
    )
    def test_unknown_names_get_a_suggestion(self, call, match):
        b = builder("arm", "forearm", "a")
        b.add_joint("shoulder", "revolute", "world", "arm")
        b.add_joint("elbow", "revolute", "arm", "forearm")
        call(b)
        if "x" not in b._joint_names:
            b.add_joint("ja", "revolute", "world", "a")
        with pytest.raises(gb.ModelError, match=match):
            b.build()

    def test_a_ratio_names_its_joint(self):
        b = builder("a")
        with pytest.raises(gb.ModelError, match="coupling 'x': give either ratios"):
            b.add_coupling("x", "elbow", 2.0)

    def test_unknown_kinds(self):
        b = builder("a")
        with pytest.raises(gb.ModelError, match="did you mean 'revolute'"):
            b.add_joint("j", "revolut", "world", "a")
        with pytest.raises(gb.ModelError, match="did you mean 'cylindrical'"):
            b.add_loop("l", "cylindric", "world", "a")

    def test_duplicate_names(self):
        b = builder("a", "b")
        b.add_joint("j", "revolute", "world", "a")
        b.add_frame("f", "a")
        b.add_actuator("m", "j")
        b.add_loop("l", "ball", "world", "a")
        for call in (
            lambda: b.add_body("a", 1.0, inertia=INERTIA),
            lambda: b.add_joint("j", "revolute", "a", "b"),
            lambda: b.add_frame("f", "a"),
            lambda: b.add_frame("a", "b"),
            lambda: b.add_actuator("m", "j"),
            lambda: b.add_coupling("l", "j", {"j": 1.0}),
        ):
            with pytest.raises(gb.ModelError, match="already"):
                call()

    @pytest.mark.parametrize(
        ("body", "match"),
        [
            ({"mass": -1.0}, "negative mass"),
            ({"mass": np.nan}, "not finite"),
            ({"mass": 1.0, "inertia": (1, 0, 0, 1, 0, 3)}, "triangle inequality"),
            ({"mass": 1.0, "inertia": (-1, 0, 0, 1, 0, 1)}, "not positive"),
            ({"mass": 1.0, "inertia": (1, 2, 3)}, "shape"),
            ({"mass": 1.0, "inertia": np.triu(np.ones((3, 3)))}, "not symmetric"),
            ({"mass": 1.0, "com": (0, 0)}, "3 finite numbers"),
            ({"mass": 1.0, "com": (0, 0, np.inf)}, "finite"),
        ],
    )
    def test_inertia_no_body_can_have(self, body, match):
        with pytest.raises(gb.ModelError, match=match):
            gb.ModelBuilder().add_body("bad", **body)

    def test_planar_idealisation_on_request(self):
        gb.ModelBuilder().add_body("flat", 1.0, inertia=(0, 0, 0, 0, 0, 1), physical=False)

    @pytest.mark.parametrize(
        "options",
        [
            {"axis": (0, 0, 0)},
            {"axis": (0, 1)},
            {"xyz": (0, 0)},
            {"R": 2 * np.eye(3)},
            {"R": np.full((3, 3), np.nan)},
        ],
    )
    def test_bad_geometry(self, options):
        with pytest.raises(gb.ModelError):
            builder("a").add_joint("j", "revolute", "world", "a", **options)

    def test_coupling_of_a_free_joint(self):
        b = builder("a", "b")
        b.add_joint("float", "free", "world", "a")
        b.add_joint("j", "revolute", "a", "b")
        b.add_coupling("c", "j", {"float": 1.0})
        with pytest.raises(gb.ModelError, match="one degree of freedom"):
            b.build()

    @pytest.mark.parametrize(
        "options",
        [{}, {"ratios": {}}, {"ratios": {"j": 1.0}, "polynomial": (1, 2)}, {"polynomial": (1, 2)}],
    )
    def test_incomplete_coupling(self, options):
        with pytest.raises(gb.ModelError, match="coupling 'c'"):
            builder("a").add_coupling("c", "j", **options)

    def test_coupling_to_itself_and_fixed(self):
        b = builder("a", "b")
        b.add_joint("j", "revolute", "world", "a")
        b.add_joint("stiff", "fixed", "a", "b")
        b.add_coupling("c", "j", {"j": 1.0})
        with pytest.raises(gb.ModelError, match="twice"):
            b.build()
        b = builder("a", "b")
        b.add_joint("j", "revolute", "world", "a")
        b.add_joint("stiff", "fixed", "a", "b")
        b.add_coupling("c", "j", {"stiff": 1.0})
        with pytest.raises(gb.ModelError, match="fixed and cannot move"):
            b.build()

    def test_loop_on_one_body(self):
        b = builder("a")
        b.add_joint("j", "revolute", "world", "a")
        b.add_loop("l", "ball", "a", "a")
        with pytest.raises(gb.ModelError, match="joins a body to itself"):
            b.build()

    def test_distance_and_universal_need_their_numbers(self):
        b = builder("a")
        b.add_joint("j", "revolute", "world", "a")
        b.add_loop("l", "distance", "world", "a")
        with pytest.raises(gb.ModelError, match="distance="):
            b.build()
        b = builder("a")
        b.add_joint("j", "revolute", "world", "a")
        b.add_loop("l", "universal", "world", "a", axis=(0, 0, 1), axis2=(0, 1, 1))
        with pytest.raises(gb.ModelError, match="normal"):
            b.build()

    def test_unknown_robot(self):
        with pytest.raises(gb.ModelError, match="did you mean 'mini_cheetah'"):
            gb.robots.load("mini_cheeta")


class TestCalls:
    @pytest.fixture
    def state(self):
        model = load("mini_cheetah")
        return model, *model.random_state(0), np.zeros(model.nv)

    def test_shapes(self, state):
        model, q, v, tau = state
        for args, what in (
            ((q[:-1], v, tau), "q has shape"),
            ((q, v[:, None], tau), "v has shape"),
            ((q, v, np.zeros(3)), "tau has shape"),
        ):
            with pytest.raises(gb.InputError, match=what):
                gb.forward_dynamics(model, *args)

    def test_types(self, state):
        model, q, v, tau = state
        for bad in (["a"] * model.nv, v + 1j, object()):
            with pytest.raises(gb.InputError, match="v "):
                gb.forward_dynamics(model, q, bad, tau)

    def test_nan_is_named(self, state):
        model, q, v, tau = state
        v = v.copy()
        v[7] = np.nan
        with pytest.raises(gb.InputError, match=rf"v\[7\] \({model.v_names[7]}\) is nan"):
            gb.forward_dynamics(model, q, v, tau)

    def test_quaternion_must_be_unit(self, state):
        model, q, v, tau = state
        q = q.copy()
        q[3:7] *= 1.1
        with pytest.raises(gb.InputError, match=r"quaternion.*length 1\.1"):
            gb.forward_dynamics(model, q, v, tau)

    def test_unknown_method_frame_body(self, state):
        model, q, v, tau = state
        with pytest.raises(gb.InputError, match="did you mean 'c_aba'"):
            gb.forward_dynamics(model, q, v, tau, method="caba")
        with pytest.raises(gb.ModelError, match="did you mean"):
            gb.frame_jacobian(model, q, "FR_foot_contct")
        with pytest.raises(gb.ModelError, match="no body"):
            gb.forward_dynamics(model, q, v, tau, {"nobody": np.zeros(6)})
        with pytest.raises(gb.InputError, match="f_ext of body"):
            gb.forward_dynamics(model, q, v, tau, {model.bodies[0].name: np.zeros(5)})
        with pytest.raises(gb.InputError, match="f_ext has shape"):
            gb.forward_dynamics(model, q, v, tau, np.zeros((3, 6)))

    def test_osim_rows(self, state):
        model, q, *_ = state
        for frames in ([], [("FR_foot_contact", ())], [("FR_foot_contact", (6,))]):
            with pytest.raises(gb.InputError):
                gb.inverse_osim(model, q, frames)

    def test_open_loop_names_the_gap(self):
        model = load("four_bar")
        q = model.neutral()
        q[1] += 0.01
        with pytest.raises(
            gb.ClosureError, match=r"is open by .* mm at this q: use model\.assemble"
        ):
            gb.forward_dynamics(model, q, np.zeros(1), np.zeros(1))

    def test_singular_partition_is_named(self):
        """A four-bar driven by its crank, at the toggle where the crank cannot drive it."""
        b = gb.ModelBuilder("toggle")
        for name, length in (("crank", 0.4), ("coupler", 0.3), ("follower", 0.2)):
            b.add_body(name, length, (length / 2, 0, 0), (1e-4, 0, 0, 1e-3, 0, 1e-3))
        y = {"axis": (0, 1, 0)}
        b.add_joint("j1", "revolute", "world", "crank", independent=True, **y)
        b.add_joint("j2", "revolute", "crank", "coupler", xyz=(0.4, 0, 0), **y)
        b.add_joint("j3", "revolute", "world", "follower", xyz=(0.5, 0, 0), **y)
        b.add_loop(
            "tip", "ball", "coupler", "follower",
            predecessor_xyz=(0.3, 0, 0), successor_xyz=(0.2, 0, 0),
        )  # fmt: skip
        model = b.build()
        # coupler and follower stretched in line from the crank's tip to the follower's pivot
        crank = np.arccos((0.4**2 + 0.5**2 - 0.5**2) / (2 * 0.4 * 0.5))
        tip = 0.4 * np.array([np.cos(crank), np.sin(crank)])
        heading = np.arctan2(-tip[1], 0.5 - tip[0])
        q = -np.array([crank, heading - crank, heading + np.pi])  # about +y, x turns towards -z
        assert model.loop_gap(q) < 1e-12
        with pytest.raises(gb.PartitionError, match=r"singular at this q.*j1"):
            gb.forward_dynamics(model, q, np.zeros(1), np.zeros(1))

    def test_closed_form_out_of_reach(self):
        model = load("tello_explicit")
        q = model.neutral()
        q[model.q_names.index("left-hip-clamp-to-gimbal")] = 1.5
        with pytest.raises(gb.ClosureError, match="out of reach"):
            gb.forward_dynamics(model, q, np.zeros(model.nv), np.zeros(model.nv))

    def test_massless_leaf(self):
        b = builder("a")
        b.add_body("ghost")
        b.add_joint("j", "revolute", "world", "a")
        b.add_joint("g", "revolute", "a", "ghost")
        model = b.build()
        with pytest.raises(gb.ModelError, match="singular: coordinate"):
            gb.forward_dynamics(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])

    def test_from_spanning_refuses_inconsistent_values(self):
        model = load("mini_cheetah")
        gear = model.loops[0]
        leader, rotor = gear.inputs[0].joint.name, gear.outputs[0].joint.name
        with pytest.raises(gb.InputError, match=f"'{rotor}' is dependent"):
            gb.from_spanning(model, {leader: 0.1, rotor: 0.1})
        with pytest.raises(gb.InputError, match="violates its loop"):
            gb.from_spanning(model, {leader: 0.1}, {leader: 1.0, rotor: 1.0})
        with pytest.raises(gb.ModelError, match="no joint named"):
            gb.from_spanning(model, {"nothing": 1.0})

    def test_independent_tree_must_be_connected(self):
        model = load("tello")
        q, v = model.random_state(0)
        with pytest.raises(gb.ModelError, match="not connected"):
            gb.inverse_dynamics(model, q, v, v, method="approximate")

    def test_assemble_refuses_nonsense(self):
        model = load("four_bar")
        with pytest.raises(gb.InputError, match="q_guess has shape"):
            model.assemble(np.zeros(7))
        with pytest.raises(gb.ModelError, match="no joint"):
            model.assemble(fixed=["nope"])
        with pytest.raises(gb.ClosureError, match="cannot be closed"):
            names = [j.name for j in model.joints]
            model.assemble({names[0]: 0.3, names[1]: 2.0, names[2]: 2.0}, fixed=names)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: gb.jacobian(gb.energy, m, mode=np.zeros(3)), "no mode named"),
        (lambda m: gb.jacobian(gb.energy, m, configurations=np.array("x")), "configurations is"),
        (lambda m: gb.vjp(gb.energy, m, inputs=["q"], shapes={1: 2}), "shapes has 1: 2"),
        (lambda m: gb.vjp(gb.mass_matrix, m, inputs=np.zeros((0, 6))), "inputs|wrt"),
        (lambda m: gb.check(gb.Model), "without arguments"),
        (lambda m: gb.Closure("ab", ("a", "b"), rows=[10**400]), "rows"),
        (lambda m: gb.ModelBuilder().add_body("a", welded=np.zeros(2)), "give True or False"),
        (lambda m: gb.ModelBuilder().build(lock_idle=np.zeros(2)), "give True or False"),
        (lambda m: gb.linearize(m, [0.0], [0.0]), "needs a Simulator"),
        (lambda m: gb.compile(gb.mass_matrix, m, checked=np.zeros(0)), "give True or False"),
        (lambda m: m.integrate(*m.random_state(0), np.inf), "dt is inf"),
        (lambda m: gb.Contacts(m, ground=np.array(1.0)), "ground is"),
    ],
)
def test_arrays_and_classes_where_words_are_due(call, said):
    with pytest.raises(gb.GrublerError, match=said):
        call(load("four_bar"))


def test_numbers_of_other_kinds_move_a_model():
    model = load("four_bar")
    q, v = model.random_state(0)
    moved = model.integrate(q.astype(np.longdouble), memoryview(v))
    assert np.array_equal(moved, model.integrate(q, v))
