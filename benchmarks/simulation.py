"""Steps a second on one core, beside MuJoCo's rollout on the same Mini Cheetah."""

from __future__ import annotations

import numpy as np

import grubler as gb
from grubler.model.derived import independent_tree

from .against_peers import one_state
from .peers import MuJoCo
from .timing import best, copied, interleaved

BATCH, STEPS = 4096, 10


def mujoco_rollout(peer: MuJoCo, robots: int, steps: int):
    """A call that advances `robots` copies of the peer's state by `steps` steps."""
    from mujoco import rollout

    mujoco, model = peer.mujoco, peer.model
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, peer.data, state, kind)
    states = np.tile(state, (robots, 1))
    return lambda: rollout.rollout(model, peer.data, states, nstep=steps)


def simulated(model, state):
    simulator = gb.Simulator(model, 1e-3, batch=BATCH, substeps=STEPS)
    out = np.empty_like(state[0]), np.empty_like(state[1])
    return lambda: simulator.step(*state, out=out)


def steps_per_second() -> list[dict]:
    exact, tree = gb.robots.load("mini_cheetah"), gb.robots.load("quadruped")
    armature = dict(zip(exact.v_names, independent_tree(exact).armature, strict=True))
    peers = {
        "MuJoCo, tree": (MuJoCo(tree), tree),
        "MuJoCo, rotors as armature": (MuJoCo(tree, armature), tree),
        "MuJoCo, rotors as equalities": (MuJoCo(exact), exact),
    }
    robots, calls = 64, {}
    for label, (peer, model) in peers.items():
        peer.model.opt.timestep = 1e-3
        q, v, _ = one_state(model)
        peer.set_state(q, v / 10, np.zeros(model.nv))
        calls[label, 0] = mujoco_rollout(peer, robots, STEPS)
    for label, model in (("grubler, tree", tree), ("grubler, 12 exact rotors", exact)):
        q, v, _ = one_state(model)
        state = np.tile(q, (BATCH, 1)), np.tile(v / 10, (BATCH, 1)), np.zeros((BATCH, model.nv))
        calls |= copied(label, simulated, model, state)
    seconds = best(interleaved(calls, rounds=15, seconds=0.02))
    rows = []
    for label, s in seconds.items():
        count = (robots if "MuJoCo" in label else BATCH) * STEPS
        rows.append({"what": label, "steps_per_second": count / s})
    rate = {row["what"]: row["steps_per_second"] for row in rows}
    for row in rows:
        rival = "MuJoCo, rotors as equalities" if "exact" in row["what"] else "MuJoCo, tree"
        row["ratio"] = row["steps_per_second"] / rate[rival]
    return rows
