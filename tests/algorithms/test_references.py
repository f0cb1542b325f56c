"""States computed by other libraries, reproduced to 1e-9 relative, 1e-8 where a loop is implicit.

`grbda_*` come from generalized_rbda, `pin_*` from Pinocchio (pin_fourbar from 50-digit arithmetic).
"""

from functools import cache

import numpy as np
import pytest

import facts
import grubler as gb

STATES = range(5)


def rotor_chain():
    """Three links of 1 m with a rotor each, gear 6: the robot of urdf_revolute_rotor_chain."""
    b = gb.ModelBuilder("revolute_rotor_chain")
    parent = "world"
    for i in range(3):
        place = (1.0 if i else 0.0, 0.0, 0.0)
        b.add_body(f"link-{i}", 1.0, (0.5, 0.0, 0.0), (1, 0, 0, 1, 0, 1))
        b.add_body(f"rotor-{i}", 0.0, (0.0, 0.0, 0.0), (1e-4, 0, 0, 1e-4, 0, 1e-4))
        b.add_joint(f"joint{i + 1}", "revolute", parent, f"link-{i}", xyz=place)
        b.add_joint(f"joint{i + 1}r", "revolute", parent, f"rotor-{i}", xyz=place)
        b.add_coupling(f"transmission{i + 1}", f"joint{i + 1}r", ratios={f"joint{i + 1}": 6.0})
        parent = f"link-{i}"
    b.add_frame("tip_link-2", "link-2", (0.1, 0.2, 0.3))
    return b.build()


# How to make the model, and the tolerance.
GRBDA = {
    "mini_cheetah": (lambda: gb.robots.load("mini_cheetah"), 1e-9),
    "gt_chain12_random": (lambda: facts.build(facts.read("facts", "gt_chain12_random")), 1e-9),
    "urdf_revolute_rotor_chain": (rotor_chain, 1e-9),
    "urdf_four_bar": (lambda: gb.robots.load("parallel_four_bar"), 1e-8),
}


@cache
def loaded(name):
    known = facts.read("reference", f"grbda_{name}")
    return known, GRBDA[name][0]()


@pytest.fixture(
    params=[(name, i) for name in GRBDA for i in STATES], ids=lambda p: f"{p[0]}-{p[1]}"
)
def case(request):
    """The model, the reference state, (q, v) and a check with the robot's tolerance."""
    name, i = request.param
    known, model = loaded(name)
    state = known["states"][i]
    positions = facts.by_joint(model, known["q_span_labels"], state["q_span"])
    velocities = facts.by_joint(model, known["v_span_labels"], state["qd_span"])
    q, v = gb.from_spanning(model, positions, velocities)
    assert facts.by_body(model, model.v_names) == known["y_velocity_labels"]
    return Case(model, known, state, q, v, GRBDA[name][1])


class Case:
    def __init__(self, model, known, state, q, v, tolerance):
        self.model, self.known, self.state = model, known, state
        self.q, self.v, self.tolerance = q, v, tolerance

    def check(self, actual, key, floor=0.0):
        """`floor` is the size against which an entry that ought to vanish is measured."""
        expected = np.asarray(self.state[key] if isinstance(key, str) else key, dtype=float)
        scale = max(np.abs(expected).max(initial=0.0), floor)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=self.tolerance * scale + 1e-13)

    def spanning_rows(self):
        """Our rows of the spanning velocities in the reference's order."""
        ours = facts.by_body(self.model, self.model.spanning_names)
        return [ours.index(label) for label in self.known["v_span_labels"]]

    def frames(self):
        return {name: name.removeprefix("EE:") for name in self.known["end_effectors"]}


def test_independent_coordinates(case):
    case.check(case.v, "yd")
    np.testing.assert_array_equal(case.model.gravity, case.known["gravity"])


def test_spanning_map(case):
    rows = case.spanning_rows()
    G, g = gb.spanning_map(case.model, case.q, case.v)
    case.check(G[rows], "G")
    case.check(g[rows], "g", floor=np.abs(case.state["qd_span"]).max())
    span = gb.spanning_state(case.model, case.q, case.v, np.array(case.state["ydd_fd"]))
    case.check(span.velocities[rows], "qd_span")
    case.check(span.accelerations[rows], "qdd_span_fd")


def test_dynamics(case):
    model, q, v, state = case.model, case.q, case.v, case.state
    case.check(gb.forward_dynamics(model, q, v, state["tau"]), "ydd_fd")
    case.check(gb.inverse_dynamics(model, q, v, state["ydd_in"]), "tau_id")
    case.check(gb.mass_matrix(model, q), "H")
    case.check(gb.bias_force(model, q, v), "C", floor=np.abs(state["tau_id"]).max())


def test_external_forces(case):
    model, q, v, state = case.model, case.q, case.v, case.state
    pose = gb.kinematics(model, q)
    f_ext = {}
    for name, f in state["f_ext_world"].items():
        R, p = (x[model.body(name).index] for x in (pose.rotation, pose.position))
        moment, force = np.array(f[:3]), np.array(f[3:])
        f_ext[name] = np.concatenate([R.T @ (moment - np.cross(p, force)), R.T @ force])
    case.check(gb.forward_dynamics(model, q, v, state["tau"], f_ext), "ydd_fd_with_f_ext")
    case.check(gb.inverse_dynamics(model, q, v, state["ydd_in"], f_ext), "tau_id_with_f_ext")


def test_end_effectors(case):
    model, q, v = case.model, case.q, case.v
    kinematics = gb.kinematics(model, q, v)
    for label, frame in case.frames().items():
        J = gb.frame_jacobian(model, q, frame)
        case.check(J, case.state["J_ee_body"][label])
        rotation, position = gb.frame_pose(model, q, frame)
        case.check(position, case.state["ee_position_world"][label])
        body = model.frame(frame).body
        w, l = kinematics.velocity[body][:3], kinematics.velocity[body][3:]
        velocity = rotation @ (l + np.cross(w, model.frame(frame).placement.r))
        case.check(velocity, case.state["ee_velocity_world"][label])
        case.check(rotation @ (J @ v)[3:], case.state["ee_velocity_world"][label])
    case.check(gb.inverse_osim(model, q, list(case.frames().values())), "inv_osim")


@pytest.mark.parametrize("i", STATES)
@pytest.mark.parametrize("robot, zoo", [("panda7", None), ("panda7", "arm7"), ("solo12", None)])
def test_pinocchio_trees(robot, zoo, i):
    known = facts.read("reference", f"pin_{robot}")
    model = gb.robots.load(zoo) if zoo else facts.build_from_pinocchio(known)
    iq, iv = facts.from_pinocchio(model, known["model"]["joints"])
    state = {k: np.array(x) for k, x in known["states"][i].items() if k != "constrained"}
    q, v = state["q"][iq], state["v"][iv]
    results = {
        "aba_a": gb.forward_dynamics(model, q, v, state["tau"][iv]),
        "rnea_tau": gb.inverse_dynamics(model, q, v, state["a_in"][iv]),
        "nle_h": gb.bias_force(model, q, v),
    }
    for key, result in results.items():
        assert facts.relative_error(result, state[key][iv]) < 1e-9, key
    assert facts.relative_error(gb.mass_matrix(model, q), state["crba_M"][np.ix_(iv, iv)]) < 1e-9


@pytest.mark.parametrize("i", STATES)
@pytest.mark.parametrize("robot", ["panda7", "solo12"])
def test_pinocchio_constraint_frames(robot, i):
    """Jacobian, drift and inverse operational-space inertia of the frames held there."""
    known = facts.read("reference", f"pin_{robot}")
    model = facts.build_from_pinocchio(known)
    iq, iv = facts.from_pinocchio(model, known["model"]["joints"])
    state = known["states"][i]
    q, v = np.array(state["q"])[iq], np.array(state["v"])[iv]
    for name, held in known["constraint_sets"].items():
        J, gamma, frames = [], [], []
        for contact in held:
            body = model.body(contact["joint1"]).index
            place = gb.algebra.spatial.Transform(np.array(contact["R1"]).T, np.array(contact["p1"]))
            frame = gb.mechanism.parts.Frame(contact["name"], body, place)
            rows = (3, 4, 5, 0, 1, 2) if contact["type"] == "6D" else (3, 4, 5)
            jacobian = gb.frame_jacobian(model, q, frame)
            drift = gb.frame_acceleration_bias(model, q, v, frame)
            if contact["type"] == "3D":  # classical acceleration of the point
                w, l = np.split(jacobian @ v, 2)
                drift = drift + np.concatenate([np.zeros(3), np.cross(w, l)])
            J.append(jacobian[list(rows)])
            gamma.append(drift[list(rows)])
            frames.append((frame, rows))
        known_J = np.array(state["constrained"][name]["J"])[:, iv]
        assert facts.relative_error(np.concatenate(J), known_J) < 1e-9
        known_gamma = state["constrained"][name]["gamma"]
        assert facts.relative_error(np.concatenate(gamma), known_gamma) < 1e-9
        osim = gb.inverse_osim(model, q, frames)
        assert facts.relative_error(osim, state["constrained"][name]["inv_osim"]) < 1e-9


@pytest.mark.parametrize("i", STATES)
def test_four_bar(i):
    known = facts.read("reference", "pin_fourbar")
    model, state = gb.robots.load("four_bar"), known["states"][i]
    names = ("crank", "coupler", "follower")
    q, v = gb.from_spanning(model, dict(zip(names, state["q"])), dict(zip(names, state["v"])))
    torques, reduced = dict(zip(names, state["tau"])), state["reduced"]
    G, g = gb.spanning_map(model, q, v)
    tau = gb.generalized_force(model, q, torques)
    a = gb.forward_dynamics(model, q, v, tau)
    span = gb.spanning_state(model, q, v, a)
    results = {
        "G": (G[:, 0], reduced["G"]),
        "g": (g, reduced["g_bias"]),
        "tau": (tau, [reduced["tau_reduced"]]),
        "mass": (gb.mass_matrix(model, q), [[reduced["mass"]]]),
        "a_crank": (a, [reduced["a_crank"]]),
        "a": (span.accelerations, state["a"]),
        "v": (span.velocities, state["v"]),
    }
    for key, (actual, expected) in results.items():
        assert facts.relative_error(actual, expected) < 1e-8, key


@pytest.mark.parametrize("i", STATES)
def test_four_bar_cut_open(i):
    """The spanning tree of the four-bar: M, h and the acceleration of the free chains."""
    known = facts.read("reference", "pin_fourbar")
    b = gb.ModelBuilder("tree")
    places = {"crank": ("world", 0.0), "coupler": ("crank", 0.2), "follower": ("world", 0.5)}
    for body in known["facts"]["bodies"]:
        name, (parent, x) = body["name"], places[body["name"]]
        b.add_body(name, body["mass"], body["com"], np.diag(body["inertia_com_diag"]))
        b.add_joint(name, "revolute", parent, name, xyz=(x, 0.0, 0.0), axis=(0, 1, 0))
    model, state = b.build(), known["states"][i]
    q, v, tau = (np.array(state[key]) for key in ("q", "v", "tau"))
    assert facts.relative_error(gb.mass_matrix(model, q), state["M"]) < 1e-9
    assert facts.relative_error(gb.bias_force(model, q, v), state["h"]) < 1e-9
    a = gb.forward_dynamics(model, q, v, tau)
    assert facts.relative_error(a, state["aba_tree_a"]) < 1e-9
