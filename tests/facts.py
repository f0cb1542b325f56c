"""Published facts and reference outputs beside the repository, and models built from them.

They live in ../shared, outside the project; tests that need them skip where they are absent.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from grubler import Model, ModelBuilder

SHARED = Path(__file__).resolve().parents[2] / "shared"


def read(folder: str, name: str) -> dict:
    """A JSON file of ../shared, or a skipped test."""
    path = SHARED / folder / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no {folder}/{name}.json: ../shared is not beside the repository")
    return json.loads(path.read_text())


def joint_name(body: dict) -> str:
    """The name of a body's joint; unnamed ones are named after the body."""
    name = body["joint"]["name"]
    return f"{body['name']}_joint" if name.startswith("unnamed") else name


def build(facts: dict) -> Model:
    """A model through ModelBuilder: couplings from G, implicit clusters from their formulas."""
    b = ModelBuilder(facts["robot"], gravity=facts["gravity"])
    joints = {body["name"]: joint_name(body) for body in facts["bodies"]}
    independent = {
        name
        for cluster in facts["clusters"]
        if cluster["constraint"]["kind"] == "implicit"
        for name in cluster["bodies"][:2]
    }
    for body in facts["bodies"]:
        b.add_body(body["name"], body["mass"], body["com"], body["I_com"], physical=False)
        free = body["joint"]["type"] == "free"
        b.add_joint(
            joints[body["name"]],
            body["joint"]["type"],
            "world" if body["parent"] == "ground" else body["parent"],
            body["name"],
            xyz=body["xyz"],
            rpy=body["rpy"],
            axis=(0, 0, 1) if free else body["joint"]["axis"],
            independent=True if body["name"] in independent else None,
        )
    for cluster in facts["clusters"]:
        _add_loops(b, cluster, joints)
    for point in facts["contact_points"]:
        b.add_frame(point["name"], point["body"], point["offset"])
    return b.build()


def _add_loops(b: ModelBuilder, cluster: dict, joints: dict[str, str]) -> None:
    constraint = cluster["constraint"]
    if constraint["kind"] == "explicit":
        leaders = constraint["independent"]
        for body, row in zip(cluster["bodies"], constraint["G"], strict=True):
            if body not in leaders:
                ratios = {joints[n]: r for n, r in zip(leaders, row, strict=True) if r}
                b.add_coupling(f"{body}_coupling", joints[body], ratios=ratios)
    elif constraint["kind"] == "implicit":
        names = [joints[body] for body in cluster["bodies"]]
        b.add_constraint(cluster["name"], phi=differential(constraint), joints=names)


def differential(constraint: dict):
    """phi of one of Tello's differentials, evaluated from the formula in the facts."""
    code = [compile(constraint[row], row, "eval") for row in ("phi1", "phi2")]
    ratio = constraint["N"]

    def phi(q):
        y1, y2 = q[0] / ratio, q[1] / ratio
        names = {"sin": np.sin, "cos": np.cos, "pi": np.pi, "__builtins__": {}}
        names |= {"y1": y1, "y2": y2, "d": (y1 - y2) / 2, "a": q[2], "b": q[3]}
        return np.stack([eval(row, names) for row in code])

    return phi


def by_body(model: Model, labels) -> list[str]:
    """Coordinate labels under the name of the body that the joint carries."""
    bodies = {body.joint.name: body.name for body in model.bodies}
    split = (label.partition(":") for label in labels)
    return [bodies[joint] + colon + rest for joint, colon, rest in split]


def by_joint(model: Model, labels, values) -> dict[str, np.ndarray]:
    """Values labelled 'body' or 'body:component', gathered by joint name."""
    gathered: dict[str, list[float]] = {}
    for label, value in zip(labels, values, strict=True):
        gathered.setdefault(model.body(label.partition(":")[0]).joint.name, []).append(value)
    return {name: np.array(x) for name, x in gathered.items()}


def build_from_pinocchio(facts: dict) -> Model:
    """A tree from the joint table of a Pinocchio reference; a body has its joint's name."""
    b = ModelBuilder(facts["robot"], gravity=facts["model"]["gravity"])
    for joint in facts["model"]["joints"]:
        name, parent = joint["name"], joint["parent"]
        b.add_body(name, joint["mass"], joint["com"], joint["inertia_com"], physical=False)
        free = joint["type"] == "JointModelFreeFlyer"
        b.add_joint(
            name,
            "free" if free else "revolute",
            "world" if parent == "universe" else parent,
            name,
            xyz=joint["p"],
            R=joint["R"],
            axis=joint.get("axis", (0, 0, 1)),
        )
    return b.build()


def from_pinocchio(model: Model, joints: list[dict]) -> tuple[list[int], list[int]]:
    """Where our coordinates stand in Pinocchio's: q = q_pin[iq], v = v_pin[iv].

    Its free joint has the quaternion's scalar last and the linear velocity first.
    """
    table = {joint["name"]: joint for joint in joints}
    iq, iv = [], []
    for body in model.bodies:
        joint = table[body.joint.name]
        free = body.joint.kind == "free"
        iq += [joint["idx_q"] + i for i in ((0, 1, 2, 6, 3, 4, 5) if free else range(joint["nq"]))]
        iv += [joint["idx_v"] + i for i in ((3, 4, 5, 0, 1, 2) if free else range(joint["nv"]))]
    return iq, iv


def relative_error(actual, expected) -> float:
    """The largest difference over the largest expected entry (over 1 where all are zero)."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    scale = np.abs(expected).max(initial=0.0)
    return float(np.abs(actual - expected).max(initial=0.0) / (scale if scale > 0 else 1.0))
