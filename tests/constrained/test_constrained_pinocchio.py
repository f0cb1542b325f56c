"""Trees with constraints equal Pinocchio's constrained dynamics to 1e-9."""

import numpy as np
import pytest

import facts
import grubler as gb
from conftest import relative
from grubler.constrained import Constraint, constrained_forward_dynamics, solve_osim

SWAP = [3, 4, 5, 0, 1, 2]
METHODS = ("pv", "pv_early", "ltl", "proximal")


def with_frames(known: dict) -> gb.Model:
    """The model of a reference with the frames of its constraints."""
    b = gb.ModelBuilder(known["robot"], gravity=known["model"]["gravity"])
    for joint in known["model"]["joints"]:
        name, parent = joint["name"], joint["parent"]
        b.add_body(name, joint["mass"], joint["com"], joint["inertia_com"], physical=False)
        kind = "free" if joint["type"] == "JointModelFreeFlyer" else "revolute"
        b.add_joint(
            name, kind, "world" if parent == "universe" else parent, name,
            xyz=joint["p"], R=joint["R"], axis=joint.get("axis", (0, 0, 1)),
        )  # fmt: skip
    seen = set()
    for constraints in known["constraint_sets"].values():
        for c in constraints:
            if c["name"] not in seen:
                seen.add(c["name"])
                b.add_frame(c["name"], c["joint1"], c["p1"], R=c["R1"])
    return b.build()


@pytest.mark.parametrize("robot", ["pin_panda7", "pin_solo12"])
def test_reference(robot):
    known = facts.read("reference", robot)
    model = with_frames(known)
    iq, iv = facts.from_pinocchio(model, known["model"]["joints"])
    for given in known["states"]:
        q, v, tau = (np.array(given[n])[i] for n, i in (("q", iq), ("v", iv), ("tau", iv)))
        for name, expected in given["constrained"].items():
            sets = known["constraint_sets"][name]
            constraints = [Constraint(c["name"], "point" if c["type"] == "3D" else "weld")
                           for c in sets]  # fmt: skip
            order = []
            for c in sets:  # rows of six are [linear; angular] there
                size = 3 if c["type"] == "3D" else 6
                order += [len(order) + i for i in (range(3) if size == 3 else SWAP)]
            for method in METHODS:
                found = constrained_forward_dynamics(model, q, v, tau, constraints, method=method)
                a = np.array(expected["a_con"])[iv]
                multipliers = np.array(expected["lam"])[order]
                assert relative(found.a, a) < 1e-9, (name, method)
                assert relative(found.multipliers, multipliers) < 1e-9, (name, method)
            inverse = np.array(expected["inv_osim"])[np.ix_(order, order)]
            rows = [(c["name"], (3, 4, 5) if c["type"] == "3D" else range(6)) for c in sets]
            for method in ("c_efpa", "pv_osim", "kjr", "ltl_osim"):
                assert relative(gb.inverse_osim(model, q, rows, method=method), inverse) < 1e-9
            b = np.arange(1.0, len(order) + 1)
            assert relative(solve_osim(model, q, b, rows), np.linalg.solve(inverse, b)) < 1e-8


LIVE = {  # file, base, welded links, links with points
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", ["left_ankle_roll_link",
           "right_ankle_roll_link"], ["left_wrist_yaw_link"]),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", [],
               ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]),
    "talos": ("talos_data/robots/talos_reduced.urdf", ["left_sole_link", "right_sole_link"], []),
}  # fmt: skip


@pytest.mark.parametrize("robot", LIVE)
def test_live(robot):
    pin = pytest.importorskip("pinocchio")
    from test_pinocchio import Twin, urdf

    path, welded, pointed = LIVE[robot]
    file = urdf(path)
    if not file.exists():
        pytest.skip(f"{path} is not in this example-robot-data")
    twin = Twin(file, "free")
    kinds = [(n, "weld") for n in welded] + [(n, "point") for n in pointed]
    contacts = []
    for name, kind in kinds:
        frame = twin.pin.frames[twin.pin.getFrameId(name)]
        kind = pin.ContactType.CONTACT_6D if kind == "weld" else pin.ContactType.CONTACT_3D
        contacts.append(
            pin.RigidConstraintModel(
                kind, twin.pin, frame.parentJoint, frame.placement, pin.ReferenceFrame.LOCAL
            )
        )
    data = twin.pin.createData()
    models, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for contact in contacts:
        models.append(contact)
        contact_data.append(contact.createData())
    pin.initConstraintDynamics(twin.pin, data, models, contact_data)
    for seed in range(3):
        q, v = twin.model.random_state(seed)
        tau = np.random.default_rng(seed).uniform(-10, 10, twin.model.nv)
        settings = pin.ProximalSettings(1e-14, 0.0, 1)
        a = pin.constraintDynamics(
            twin.pin, data, twin.q(q), twin.v(v), twin.v(tau), models, contact_data, settings
        )
        constraints = [Constraint(n, kind) for n, kind in kinds]
        for method in METHODS:
            found = constrained_forward_dynamics(twin.model, q, v, tau, constraints, method=method)
            assert relative(found.a, np.array(a)[twin.iv]) < 1e-9
