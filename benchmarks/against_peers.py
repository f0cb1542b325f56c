"""Plain trees against Pinocchio and MuJoCo; the papers' robots against the papers' own figures."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

import grubler as gb
from grubler.formats import load_urdf
from grubler.model.derived import independent_tree

from .peers import MuJoCo, Pinocchio, example_urdf
from .timing import best, copied, interleaved

BATCH = 4096
STATES = 512  # of a kernel's loop

# Pinocchio through C++ code generation (robot-specific C, inertias baked in), µs on such a machine
CODE_GENERATION = {
    "panda, 7 dof": (0.55, 0.24),
    "solo12, 18 dof": (1.33, 0.46),
    "talos, 38 dof": (3.16, 1.25),
    "gt_chain(24), 24 dof": (18.6, None),
}
# the papers' C++ library on such a machine, µs
PAPERS = {
    "mini_cheetah": (41.5, 11.3), "mit_humanoid": (67.3, 17.5), "tello": (78.4, 22.8),
    "jvrc1": (109.6, 30.2), "gt_chain": (36.7, 10.6), "pbt_chain": (51.5, 11.6),
}  # fmt: skip


def from_urdf(path: str, base: str) -> gb.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_urdf(example_urdf(path), base=base)


def trees() -> dict[str, gb.Model]:
    return {
        "arm, 7 dof": gb.robots.load("arm7"),
        "quadruped, 18 dof": gb.robots.load("quadruped"),
        "humanoid, 24 dof": gb.robots.load("humanoid"),
        "solo12, 18 dof": from_urdf("solo_description/robots/solo12.urdf", "free"),
        "talos, 38 dof": from_urdf("talos_data/robots/talos_reduced.urdf", "free"),
    }


def one_state(model, seed=0):
    q, v = model.random_state(seed)
    return q, v, np.random.default_rng(seed).uniform(-1, 1, model.nv)


def against_pinocchio() -> list[dict]:
    """The same tree, from Python: one state (bound call) and a batch on one core."""
    rows = []
    for name, model in trees().items():
        peer, state = Pinocchio(model), one_state(model)
        row = {"robot": name}
        pq, pv, px = peer.state(*state)
        simulator = MuJoCo(model)
        simulator.set_state(*state)
        for key, fn, rival in (
            ("aba", gb.forward_dynamics, peer.pin.aba),
            ("rnea", gb.inverse_dynamics, peer.pin.rnea),
        ):
            compiled = gb.compile(fn, model)
            expected = peer.back(rival(peer.model, peer.data, pq, pv, px))
            error = np.abs(compiled(*state) - expected).max() / np.abs(expected).max()
            batch = [np.tile(x, (BATCH, 1)) for x in state]
            out = np.empty((BATCH, model.nv))
            others = {("mujoco", 0): simulator.forward} if key == "aba" else {}
            seconds = best(interleaved(
                others
                | {("pin", 0): partial(rival, peer.model, peer.data, pq, pv, px)}
                | copied("bound", bound_call, fn, model, state)
                | copied("batch", batch_call, fn, model, batch, out)
            ))  # fmt: skip
            row |= {
                f"{key}_error": error,
                f"{key}_pin_us": seconds["pin"] * 1e6,
                f"{key}_us": seconds["bound"] * 1e6,
                f"{key}_ratio": seconds["pin"] / seconds["bound"],
                f"{key}_batch_us": seconds["batch"] / BATCH * 1e6,
                f"{key}_batch_ratio": seconds["pin"] / (seconds["batch"] / BATCH),
            }
            if others:
                row["mujoco_us"] = seconds["mujoco"] * 1e6
        rows.append(row)
    return rows


def bound_call(fn, model, state):
    """One state, bound to its arrays."""
    return gb.compile(fn, model).bind(*(np.ascontiguousarray(x) for x in state))


def batch_call(fn, model, batch, out, lanes: int | None = None, **options):
    return partial(gb.compile(fn, model, lanes=lanes, **options), *batch, out=out)


def rotors_against_tree() -> list[dict]:
    """Mini Cheetah with twelve exact rotors against Pinocchio without them, and MuJoCo."""
    exact, tree = gb.robots.load("mini_cheetah"), gb.robots.load("quadruped")
    state, tree_state = one_state(exact), one_state(tree)
    peer = Pinocchio(tree)
    pin_state = peer.state(*tree_state)
    reduced = independent_tree(exact)
    armature = dict(zip(exact.v_names, reduced.armature, strict=True))
    mujocos = {
        "MuJoCo mj_forward, tree": MuJoCo(tree),
        "MuJoCo mj_forward, rotors as armature": MuJoCo(tree, armature),
        "MuJoCo mj_forward, rotors as equalities": MuJoCo(exact),
    }
    for label, m in mujocos.items():
        m.set_state(*(state if "equalities" in label else tree_state))
    batch, out = [np.tile(x, (BATCH, 1)) for x in state], np.empty((BATCH, exact.nv))
    one, many = "grubler C-ABA, 12 exact rotors", "grubler C-ABA, 12 exact rotors, batch"
    calls = copied(one, bound_call, gb.forward_dynamics, exact, state)
    calls["Pinocchio aba, tree without rotors", 0] = lambda: peer.pin.aba(
        peer.model, peer.data, *pin_state
    )
    calls |= {(label, 0): m.forward for label, m in mujocos.items()}
    calls |= copied(many, batch_call, gb.forward_dynamics, exact, batch, out)
    seconds = best(interleaved(calls))
    seconds[many] /= BATCH
    ours = seconds[one]
    return [{"what": k, "us": s * 1e6, "ratio": s / ours} for k, s in seconds.items()]


def kernel_us(fn, model, lanes: int | None = 1, **options) -> float:
    """A state's time in a loop of compiled code: one after the other, or over the SIMD lanes."""
    rows = [one_state(model, seed) for seed in range(8)]
    batch = [np.tile(np.stack(x), (STATES // 8, 1)) for x in zip(*rows, strict=True)]
    make = partial(batch_call, lanes=lanes, **options)
    calls = copied("ours", make, fn, model, batch, np.empty((STATES, model.nv)))
    return best(interleaved(calls, rounds=150, seconds=0.001))["ours"] / STATES * 1e6


def against_code_generation() -> list[dict]:
    models = {
        "panda, 7 dof": gb.robots.load("arm7"),
        "solo12, 18 dof": from_urdf("solo_description/robots/solo12.urdf", "free"),
        "talos, 38 dof": from_urdf("talos_data/robots/talos_reduced.urdf", "free"),
        "gt_chain(24), 24 dof": gb.robots.load("gt_chain", n=24, seed=1),
    }
    rows = []
    for name, model in models.items():
        aba, rnea = CODE_GENERATION[name]
        row = {"robot": name, "nv": model.nv}
        for key, fn, rival in (
            ("aba", gb.forward_dynamics, aba), ("rnea", gb.inverse_dynamics, rnea),
        ):  # fmt: skip
            ours = kernel_us(fn, model)
            row |= {f"{key}_us": ours, f"{key}_rival_us": rival}
            row[f"{key}_ratio"] = None if rival is None else rival / ours
        rows.append(row)
    return rows


def against_the_papers() -> list[dict]:
    rows = []
    for name, (aba, rnea) in PAPERS.items():
        options = {"n": 12, "seed": 1} if "chain" in name else {}
        model = gb.robots.load(name, **options)
        row = {"robot": name}
        for key, fn, rival in (
            ("aba", gb.forward_dynamics, aba), ("rnea", gb.inverse_dynamics, rnea),
        ):  # fmt: skip
            ours = kernel_us(fn, model)
            lanes = kernel_us(fn, model, lanes=None)
            row |= {
                f"{key}_us": ours, f"{key}_paper_us": rival, f"{key}_ratio": rival / ours,
                f"{key}_lanes_us": lanes, f"{key}_lanes_ratio": rival / lanes,
            }  # fmt: skip
        rows.append(row)
    return rows
