"""Our kernels against compiled and generated C++ as reported for such a machine, µs.

Each kernel runs in a loop of compiled code, one lane, and is checked against a dense solve.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from tests.constrained.cases import in_many_digits

import grubler as gb
from grubler.constrained import Constraint, constrained_forward_dynamics

from .against_peers import from_urdf
from .constrained import STATES, loop, points, welds
from .peers import example_urdf
from .timing import interleaved

FEET = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
ENDS = ["left_sole_link", "right_sole_link", "wrist_left_ft_link", "wrist_right_ft_link"]
BARS = 24


def cases() -> list[tuple]:
    """(what, function, model, options, compiled C++, generated C++, its own pv)."""
    solo = from_urdf("solo_description/robots/solo12.urdf", "free")
    talos = from_urdf("talos_data/robots/talos_reduced.urdf", "free")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cassie = gb.load(example_urdf("cassie_description/robots/cassie_v2.sdf"))
    feet, ends = ([m.frame(n).name for n in x] for m, x in ((solo, FEET), (talos, ENDS)))
    dynamics, osim = constrained_forward_dynamics, gb.inverse_osim

    def held(constraints, method="pv_early"):
        return {"constraints": tuple(constraints), "method": method}

    def seen(frames, rows=range(6)):
        return {"frames": [(f, tuple(rows)) for f in frames], "method": "pv_osim"}

    point = (3, 4, 5)
    cassie_feet = [Constraint("left-foot"), Constraint("right-foot")]
    return [
        ("solo12, four 3D feet", dynamics, solo, held(points(feet)), 7.4, 2.03, 4.4),
        ("Talos, 2 x 6D", dynamics, talos, held(welds(ends[:2])), 13.4, 4.9, 8.5),
        ("Talos, 4 x 6D", dynamics, talos, held(welds(ends)), 20.7, None, 13.1),
        ("inverse OSIM, solo12, one foot", osim, solo, seen(feet[:1], point), 2.0, 1.1, None),
        ("inverse OSIM, solo12, four feet", osim, solo, seen(feet, point), 3.2, 2.1, None),
        ("inverse OSIM, Talos, 2 x 6D", osim, talos, seen(ends[:2]), 5.3, 4.0, None),
        ("Cassie with its four loops", gb.forward_dynamics, cassie, {"method": "c_aba"},
         18.3, 5.1, None),
        ("Cassie, loops and two 6D feet", dynamics, cassie, held(cassie_feet), 26.3, 7.6, None),
        (f"chain of {BARS} four-bars", gb.forward_dynamics, four_bars(BARS), {"method": "c_aba"},
         171.0, None, None),
    ]  # fmt: skip


def four_bars(n: int) -> gb.Model:
    """Crank-rockers, each on the follower of the one before."""
    b = gb.ModelBuilder(f"{n} four-bars")
    y, ground, reference = (0.0, 1.0, 0.0), "world", {}
    for i in range(n):
        crank, coupler, follower = (f"{name}{i}" for name in ("crank", "coupler", "follower"))
        b.add_body(crank, 0.7, (0.08, 0.0, 0.015), (0.0024, 0, 0, 0.004, 0, 0.0032))
        b.add_body(coupler, 1.1, (0.21, 0.0, -0.02), (0.0126, 0, 0, 0.021, 0, 0.0168))
        b.add_body(follower, 0.9, (0.17, 0.0, 0.01), (0.0078, 0, 0, 0.013, 0, 0.0104))
        at = (0.0, 0.05, 0.0) if i else (0.0, 0.0, 0.0)
        b.add_joint(crank, "revolute", ground, crank, xyz=at, axis=y, independent=True)
        b.add_joint(coupler, "revolute", crank, coupler, xyz=(0.2, 0.0, 0.0), axis=y)
        there = (0.5, at[1], 0.0)
        b.add_joint(follower, "revolute", ground, follower, xyz=there, axis=y)
        b.add_loop(
            f"pin{i}", "revolute", coupler, follower, predecessor_xyz=(0.45, 0.0, 0.0),
            successor_xyz=(0.4, 0.0, 0.0), axis=y,
        )  # fmt: skip
        reference |= {crank: 1.05, coupler: -0.53, follower: 1.6}
        ground = follower
    return b.build(reference=reference)


def against_code() -> list[dict]:
    rows = []
    for what, fn, model, options, compiled, generated, own in cases():
        code = gb.compile(fn, model, lanes=1, **options)
        seconds = interleaved({"ours": loop(code, model)}, rounds=100, seconds=0.001)["ours"]
        seconds *= 1e6 / STATES
        best = min(x for x in (compiled, generated, own) if x is not None)
        rows.append({
            "what": what, "compiled": compiled, "generated": generated, "own": own,
            "ours": seconds, "ratio": best / seconds, "ops": code.operations.total,
            "method": options["method"], "error": checked(code, fn, model, options),
        })  # fmt: skip
        print(f"  {what}: {seconds:.2f} µs, best rival {best}", flush=True)
    return rows


def checked(code, fn, model, options) -> float:
    """The largest error of some states, relative, against a dense solve that shares nothing.

    Of constraints that is done in fifty digits: in sixteen it is good to 1e-12 on Cassie's feet.
    """
    worst = 0.0
    for seed in range(4):
        q, v = model.random_state(seed)
        tau = np.random.default_rng(seed).uniform(-1, 1, model.nv)
        state = (q, v, tau)[: len(code.inputs)]
        found = code(*state)
        found = found[0] if isinstance(found, tuple) else found
        expected = dense(fn, model, options)(*state)
        worst = max(worst, float(np.abs(found - expected).max() / np.abs(expected).max()))
    return worst


def dense(fn, model, options):
    """The same by dense linear algebra."""
    if fn is gb.forward_dynamics:
        return partial(gb.forward_dynamics, model, method="lagrange")
    if fn is gb.inverse_osim:
        return partial(dense_osim, model, options["frames"])
    return lambda *x: in_many_digits(model, *x, options["constraints"])[0]


def dense_osim(model, frames, q):
    J = np.concatenate([gb.frame_jacobian(model, q, f)[list(rows)] for f, rows in frames])
    return J @ np.linalg.solve(gb.mass_matrix(model, q), J.T)
