"""Tables II-IV and Fig. 11 of Chignoli et al., every method compiled the same way."""

from __future__ import annotations

import logging
import time

import numpy as np

import grubler as gb

from .against_peers import kernel_us, one_state
from .timing import best, copied, interleaved

ROBOTS = {
    "12 Link GT Chain": ("gt_chain", {"n": 12, "seed": 1}),
    "12 Link PBT Chain": ("pbt_chain", {"n": 12, "seed": 1}),
    "Mini Cheetah": ("mini_cheetah", {}),
    "MIT Humanoid": ("mit_humanoid", {}),
    "Tello Humanoid": ("tello_explicit", {}),
    "JVRC-1": ("jvrc1", {}),
}
# percent of computation time more (+) or less (-) than the cluster algorithm
PAPER = {
    ("II", "approximate"): (-40.3, -36.2, -41.0, -42.0, -59.6, -37.7),
    ("II", "projected"): (38.0, 37.8, 36.7, 35.9, 22.4, 36.6),
    ("III", "approximate"): (-34.1, -34.6, -35.3, -38.6, -49.4, -38.4),
    ("III", "projection"): (86.8, 73.5, 21.0, 32.5, 22.2, 87.3),
    ("III", "lagrange"): (133.1, 119.8, 76.3, 106.2, 82.7, 212.8),
    ("IV", "approximate"): (-35.7, -52.1, -28.6, -37.4, -51.4, -22.54),
    ("IV", "projected"): (51.8, 6.3, 19.0, 23.2, 7.8, 107.4),
}
FUNCTIONS = {
    "II": (gb.inverse_dynamics, "c_rnea"),
    "III": (gb.forward_dynamics, "c_aba"),
    "IV": (gb.inverse_osim, "c_efpa"),
}


def end_effectors(model) -> list[str]:
    """The feet, or the last link's contact point, as in the paper's benchmark."""
    names = [f.name for f in model.frames]
    feet = [n for n in names if "foot" in n or "toe" in n]
    return feet[:4] or names[-1:]


def compiled(table, method, model):
    options = {"frames": end_effectors(model)} if table == "IV" else {}
    return gb.compile(FUNCTIONS[table][0], model, method=method, lanes=1, **options)


def compiled_call(table, method, model, states):
    f, batch = compiled(table, method, model), states[:1] if table == "IV" else states
    out = np.empty((len(states[0]), *f.outputs[0].shape))
    return lambda: f(*batch, out=out)


def tables(count: int = 256) -> list[dict]:
    rows = []
    for column, (label, (name, options)) in enumerate(ROBOTS.items()):
        model = gb.robots.load(name, **options)
        states = [np.tile(np.stack(x), (count // 8, 1))
                  for x in zip(*(one_state(model, s) for s in range(8)), strict=True)]  # fmt: skip
        for table, (_, cluster) in FUNCTIONS.items():
            methods = [cluster, *(m for t, m in PAPER if t == table)]
            calls, counts = {}, {}
            for m in methods:
                counts[m] = compiled(table, m, model).operations.total
                calls |= copied(m, compiled_call, table, m, model, states)
            seconds = best(interleaved(calls, rounds=60, seconds=0.002))
            for method in methods[1:]:
                percent = 100 * (seconds[method] / seconds[cluster] - 1)
                operations = 100 * (counts[method] / counts[cluster] - 1)
                paper = PAPER[table, method][column]
                rows.append({
                    "table": table, "robot": label, "method": method, "percent": percent,
                    "percent_operations": operations, "paper": paper,
                    "cluster_us": seconds[cluster] / count * 1e6,
                    "same_sign": bool(np.sign(percent) == np.sign(paper)),
                })  # fmt: skip
    return rows


def chains(lengths=(2, 4, 8, 12, 16, 20, 24)) -> list[dict]:
    """Fig. 11: forward dynamics of chains, time against the number of links."""
    rows = []
    for family in ("gt_chain", "pbt_chain"):
        for n in lengths:
            model = gb.robots.load(family, n=n, seed=1)
            row = {"chain": family, "n": n}
            for method in ("c_aba", "projection", "lagrange"):
                row[method] = kernel_us(gb.forward_dynamics, model, method=method)
            rows.append(row)
    return rows


def compile_times() -> list[dict]:
    """Trace and compile C-ABA from nothing, no cache."""
    rows = []
    logging.getLogger("grubler").setLevel(logging.ERROR)
    for name in ("quadruped", "mini_cheetah", "mit_humanoid", "tello", "jvrc1"):
        model = gb.robots.load(name)
        q, v, tau = one_state(model)
        start = time.perf_counter()
        # a parameterless wrapper of its own has no cache key and a tape that is not on disk yet
        salt = float(np.random.default_rng().uniform(0.9, 1.1))
        f = gb.compile(
            lambda model, q, v, tau, s=salt: gb.forward_dynamics(model, q, v, s * tau), model
        )
        f(q, v, tau)
        one = time.perf_counter() - start
        f(q[None], v[None], tau[None])
        rows.append({"robot": name, "one_state_s": one, "both_s": time.perf_counter() - start,
                     "instructions": len(f.tape.instructions)})  # fmt: skip
    return rows
