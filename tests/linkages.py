"""Mechanisms with a closed form, drawn at random around a shape that works."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import grubler as gb
from grubler.algebra.spatial import rpy_matrix
from grubler.coordinates.embedding import OpenJoint
from grubler.model.exchange import with_embeddings

BOX = (0.004, 0.0003, -0.0002, 0.005, 0.0001, 0.003)


def link(b, name, joint, kind, parent, mass=0.6, **options):
    b.add_body(name, mass, (0.03, -0.01, 0.02), BOX)
    b.add_joint(joint, kind, parent, name, **options)


def lambda_elbow(tilt=(0.0, 0.0, 0.0), guided=False, **options) -> gb.Model:
    """An elbow moved by a linear actuator (RRPR); or `guided`, a slider-crank on a fixed guide.

    `tilt` turns the whole mechanism, so that no axis is a coordinate axis.
    """
    b = gb.ModelBuilder("guided" if guided else "lambda")
    R = rpy_matrix(*tilt)
    link(b, "forearm", "elbow", "revolute", "world", R=R, axis=(0, 1, 0), **options)
    if guided:
        link(b, "piston", "slide", "prismatic", "world", R=R, xyz=R @ (0.5, 0.1, -0.05),
             axis=(0, 0, 1))  # fmt: skip
        link(b, "rod", "pivot", "revolute", "piston", axis=(0, -1, 0))
        tip, where = (0.1, 0.1, -0.35), "rod"
    else:
        link(b, "cylinder", "pivot", "revolute", "world", R=R, xyz=R @ (0.05, 0.1, -0.3),
             axis=(0, -1, 0))  # fmt: skip
        link(b, "rod", "slide", "prismatic", "cylinder", xyz=(0.02, 0, 0.1), axis=(0.1, 0, 1))
        tip, where = (0.0, 0.0, 0.05), "rod"
    b.add_loop(
        "closing", "revolute", "forearm", where, axis=(0, 1, 0),
        predecessor_xyz=(0.2, 0.1, 0.02), successor_xyz=tip if not guided else (-0.1, 0, 0.33),
    )  # fmt: skip
    b.add_actuator("motor", "slide")
    start = {"elbow": 0.3, "slide": 0.1} if not guided else {"elbow": 0.2, "slide": -0.3}
    return b.build(reference=start)


def ankle(legs="rrp", seed=0, universal=False, rows="ball") -> gb.Model:
    """A parallel ankle on two legs: "rrp" (2SPU+1U), "rus" (cranks and rods), "ball" (2SPU+1U, each
    leg on a ball in the shin, closed by a universal joint at the foot)."""
    rng = np.random.default_rng(seed)
    b = gb.ModelBuilder(f"ankle {legs}")
    link(b, "shin", "base", "revolute", "world", axis=(0, 1, 0))
    if universal:
        link(b, "foot", "cross", "universal", "shin", xyz=(0, 0, -0.3), axis=(0, 1, 0),
             axis2=(1, 0, 0), mass=1.2, independent=True)  # fmt: skip
    else:
        link(b, "cross", "pitch", "revolute", "shin", 0.1, xyz=(0, 0, -0.3), axis=(0, 1, 0),
             independent=True)  # fmt: skip
        link(b, "foot", "roll", "revolute", "cross", 1.2, axis=(1, 0, 0), independent=True)
    for side, y in (("left", 0.06), ("right", -0.06)):
        wobble = rng.uniform(-0.01, 0.01, 3)
        foot = np.array([-0.06, y, -0.02]) + wobble
        top = np.array([-0.05, y, -0.06]) + rng.uniform(-0.01, 0.01, 3)
        if legs == "rrp":
            tilt = rpy_matrix(*rng.uniform(-0.05, 0.05, 3))
            if universal:
                link(b, f"{side}_cylinder", f"{side}_u", "universal", "shin", 0.2, xyz=top, R=tilt,
                     axis=(1, 0, 0), axis2=(0.1, 1, 0))  # fmt: skip
            else:
                link(b, f"{side}_yoke", f"{side}_1", "revolute", "shin", 0.05, xyz=top, R=tilt,
                     axis=(1, 0, 0))  # fmt: skip
                link(b, f"{side}_cylinder", f"{side}_2", "revolute", f"{side}_yoke", 0.2,
                     xyz=(0.01, 0, 0), rpy=(0.02, 0.1, -0.05), axis=(0, 1, 0))  # fmt: skip
            link(b, f"{side}_rod", f"{side}_slide", "prismatic", f"{side}_cylinder", 0.1,
                 xyz=(0.001, 0.002, -0.2), axis=(0.02, -0.01, -1))  # fmt: skip
            end = (0.0, 0.001, -0.05)
        elif legs == "ball":
            tilt = rpy_matrix(*rng.uniform(-0.05, 0.05, 3))
            link(b, f"{side}_cylinder", f"{side}_ball", "spherical", "shin", 0.2, xyz=top, R=tilt)
            link(b, f"{side}_rod", f"{side}_slide", "prismatic", f"{side}_cylinder", 0.1,
                 xyz=(0.001, 0.002, -0.2), rpy=(0.1, 0.05, 0.3),
                 axis=(0.02, -0.01, -1))  # fmt: skip
            ends = {"predecessor_xyz": (0.0, 0.001, -0.05), "predecessor_rpy": (0.1, 0.2, 0.3),
                    "successor_xyz": foot, "axis": (1, 0.1, 0), "axis2": (-0.1, 1, 0)}  # fmt: skip
            b.add_loop(f"{side}", "universal", f"{side}_rod", "foot", **ends)
            b.add_actuator(f"{side}", f"{side}_slide")
            continue
        else:
            link(b, f"{side}_crank", f"{side}_motor", "revolute", "shin", 0.2, xyz=top,
                 axis=(0.1, 1, 0))  # fmt: skip
            link(b, f"{side}_yoke", f"{side}_1", "revolute", f"{side}_crank", 0.02,
                 xyz=(-0.06, 0.01, 0), axis=(0, 1, 0))  # fmt: skip
            link(b, f"{side}_rod", f"{side}_2", "revolute", f"{side}_yoke", 0.1, axis=(1, 0, 0))
            end = (0.0, 0.0, -0.26)
        last = f"{side}_rod"
        b.add_loop(f"{side}", rows, last, "foot", predecessor_xyz=end, successor_xyz=foot)
        b.add_actuator(f"{side}", f"{side}_slide" if legs == "rrp" else f"{side}_motor")
    return b.build()


def stewart(seed=0, universal=True) -> gb.Model:
    """A 6-UPS platform: six legs, each a universal joint, a slider and a ball."""
    rng = np.random.default_rng(seed)
    b = gb.ModelBuilder("stewart")
    b.add_body("platform", 8.0, (0.01, 0.0, 0.02), (0.2, 0.0, 0.0, 0.25, 0.0, 0.4))
    b.add_joint("pose", "free", "world", "platform", independent=True)
    for i in range(6):
        low, high = np.deg2rad(60 * (i // 2) * 2 + (10 if i % 2 else -10)), 0.0
        high = np.deg2rad(60 * (i // 2) * 2 + (45 if i % 2 else -45))
        foot = np.array([0.6 * np.cos(low), 0.6 * np.sin(low), 0.0]) + rng.uniform(-0.02, 0.02, 3)
        top = np.array([0.4 * np.cos(high), 0.4 * np.sin(high), 0.0])
        aim = top + np.array([0, 0, 0.8]) - foot
        yaw, pitch = np.arctan2(aim[1], aim[0]), np.arctan2(np.hypot(aim[0], aim[1]), aim[2])
        place = {"xyz": foot, "R": rpy_matrix(0, pitch, yaw) @ rpy_matrix(0.02, 0, 0.3)}
        if universal:
            link(b, f"cylinder{i}", f"u{i}", "universal", "world", 0.5, axis=(1, 0, 0),
                 axis2=(0, 1, 0), **place)  # fmt: skip
        else:
            link(b, f"yoke{i}", f"r{i}", "revolute", "world", 0.1, axis=(1, 0, 0), **place)
            link(b, f"cylinder{i}", f"s{i}", "revolute", f"yoke{i}", 0.5, axis=(0, 1, 0))
        link(b, f"rod{i}", f"slide{i}", "prismatic", f"cylinder{i}", 0.3, xyz=(0, 0, 0.5),
             axis=(0, 0, 1))  # fmt: skip
        b.add_loop(f"leg{i}", "ball", f"rod{i}", "platform", predecessor_xyz=(0, 0, 0.2),
                   successor_xyz=top)  # fmt: skip
        b.add_actuator(f"leg{i}", f"slide{i}")
    return b.build(reference={"pose": (0, 0, 0.8, 1, 0, 0, 0)})


def stewart_on_balls(seed=0) -> gb.Model:
    """A 6-UPS platform whose legs hang on balls of the platform, closed by universal joints of the
    base: the other cut of the same mechanism."""
    rng = np.random.default_rng(seed)
    b = gb.ModelBuilder("stewart on balls")
    b.add_body("platform", 8.0, (0.01, 0.0, 0.02), (0.2, 0.0, 0.0, 0.25, 0.0, 0.4))
    b.add_joint("pose", "free", "world", "platform", independent=True)
    for i in range(6):
        low = np.deg2rad(60 * (i // 2) * 2 + (10 if i % 2 else -10))
        high = np.deg2rad(60 * (i // 2) * 2 + (45 if i % 2 else -45))
        foot = np.array([0.6 * np.cos(low), 0.6 * np.sin(low), 0.0]) + rng.uniform(-0.02, 0.02, 3)
        top = np.array([0.4 * np.cos(high), 0.4 * np.sin(high), 0.0])
        aim = foot - top - np.array([0, 0, 0.8])
        yaw, pitch = np.arctan2(aim[1], aim[0]), np.arctan2(np.hypot(aim[0], aim[1]), aim[2])
        turned = rpy_matrix(0, pitch, yaw)
        link(b, f"rod{i}", f"ball{i}", "spherical", "platform", 0.3, xyz=top, R=turned)
        link(b, f"cylinder{i}", f"slide{i}", "prismatic", f"rod{i}", 0.5, xyz=(0, 0, 0.5),
             axis=(0, 0, 1))  # fmt: skip
        tip = np.linalg.norm(aim) - 0.5
        b.add_loop(f"leg{i}", "universal", "world", f"cylinder{i}", predecessor_xyz=foot,
                   predecessor_R=turned, successor_xyz=(0, 0, tip), axis=(1, 0, 0),
                   axis2=(0, 1, 0))  # fmt: skip
        b.add_actuator(f"leg{i}", f"slide{i}")
    return b.build(reference={"pose": (0, 0, 0.8, 1, 0, 0, 0)})


def planar_ring(seed: int, side_P: str, side_S: str, kind: str) -> gb.Model | None:
    """A random planar loop: two chains of revolute (r) and prismatic (p) joints on a moving base,
    closed at random positions; None where those are singular."""
    rng = np.random.default_rng(seed)
    b = gb.ModelBuilder(f"ring {seed}")
    link(b, "base", "base", "revolute", "world", axis=rng.uniform(-1, 1, 3))
    R = rpy_matrix(*rng.uniform(-3, 3, 3))  # rows: plane x, plane y, normal, in the base
    reference = {}
    ends = []
    for side, joints in (("P", side_P), ("S", side_S)):
        parent, E = "base", np.eye(3)
        for i, letter in enumerate(joints):
            name = f"{side}{i}"
            offset = R.T @ np.array([*rng.uniform(-0.4, 0.4, 2), rng.uniform(-0.1, 0.1)])
            turn = rpy_matrix(*rng.uniform(-1, 1, 3))  # the joint frame, at random
            normal = R[2] * rng.choice([-1.0, 1.0])
            slide = R.T @ np.array([*rng.uniform(-1, 1, 2), 0.0])
            axis = turn.T @ E @ (normal if letter == "r" else slide)
            link(b, name, name, "revolute" if letter == "r" else "prismatic", parent,
                 xyz=E @ offset, R=turn, axis=axis)  # fmt: skip
            reference[name] = rng.uniform(-0.4, 0.4)
            parent, E = name, turn.T @ E
        ends.append(parent)
    tree = gb.ModelBuilder("tree")
    tree._masses, tree._edges, tree._joint_names = b._masses, b._edges, b._joint_names
    model = tree.build()
    q = model.assemble(reference)
    (R_P, p_P), (R_S, p_S) = (gb.frame_pose(model, q, end) for end in ends)
    R_base, _ = gb.frame_pose(model, q, "base")
    point = p_P + rng.uniform(-0.3, 0.3, 3)
    axis = (1, 0.3, 0) if kind == "prismatic" else (0, 0, 1)
    b.add_loop("ring", kind, *ends, axis=axis,
               predecessor_xyz=R_P.T @ (point - p_P), predecessor_R=R_P.T @ R_base @ R.T,
               successor_xyz=R_S.T @ (point - p_S), successor_R=R_S.T @ R_base @ R.T)  # fmt: skip
    try:
        model = b.build(reference=reference)
    except gb.GrublerError:
        return None
    joint = model.clusters[-1].embedding
    if not joint.implicit or joint.nv != len(side_P + side_S) - (3 if kind == "fixed" else 2):
        return None
    K, _ = joint.constraint({i: model.reference[i] for i in model.clusters[-1].bodies}, None)
    if np.linalg.cond(K[np.ix_(joint.kept, joint.dependent)]) > 30:
        return None
    return model


TILT = (0.3, 0.2, -0.5)


def sampled(loop: str) -> gb.Model:
    """The zoo's sampler of loops with one of them left, the others cut."""
    model = gb.robots.load("loop_sampler")

    def cut(cluster):
        names = {own.name for own in cluster.loops}
        return OpenJoint(cluster.embedding.bodies, ()) if names - {loop} else None

    kept = tuple(own for own in model.loops if own.name == loop)
    return replace(with_embeddings(model, cut), loops=kept)


MECHANISMS = {
    "four_bar": (lambda: gb.robots.load("four_bar"), "planar four-bar"),
    "parallelogram": (lambda: gb.robots.load("parallel_four_bar"), "planar four-bar"),
    "six_bar": (lambda: gb.robots.load("six_bar"), "planar four-bar of several inputs"),
    "leg": (lambda: gb.robots.load("planar_leg_linkage"), "planar four-bar"),
    "lambda": (lambda: lambda_elbow(TILT), "slider-crank"),
    "slider_crank": (lambda: lambda_elbow(TILT, guided=True), "slider-crank"),
    "slider in a loop": (lambda: sampled("slider_crank"), "slider-crank"),
    "weld in a loop": (lambda: sampled("welded"), "planar four-bar"),
    "2SPU+1U": (lambda: ankle("rrp"), "2SPU+1U"),
    "2SPU+1U, universal": (lambda: ankle("rrp", universal=True), "2SPU+1U"),
    "2RUS+1U": (lambda: ankle("rus"), "2RUS+1U"),
    "2SPU+1U, on balls": (lambda: ankle("ball"), "2SPU+1U"),
    "6-UPS": (stewart, "6-UPS platform"),
    "6-UPS, on balls": (stewart_on_balls, "6-UPS platform"),
    "6-RRPS": (lambda: stewart(universal=False), "6-UPS platform"),
}
