"""Derivatives of forward dynamics against Pinocchio's, the same tree, from Python on one core."""

from __future__ import annotations

from functools import partial

import numpy as np

import grubler as gb
from grubler.constrained import Constraint

from .against_peers import BATCH, batch_call, bound_call, from_urdf, one_state
from .peers import Pinocchio
from .tables import table
from .timing import best, copied, interleaved

FEET = {
    "solo12": ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
    "go1": ("FL_foot", "FR_foot", "RL_foot", "RR_foot"),
}
CONSTRAINED = gb.constrained_forward_dynamics_derivatives


def trees() -> dict[str, gb.Model]:
    return {
        "quadruped, 18 dof": gb.robots.load("quadruped"),
        "solo12, 18 dof": from_urdf("solo_description/robots/solo12.urdf", "free"),
        "go1, 18 dof": from_urdf("go1_description/urdf/go1.urdf", "free"),
        "humanoid, 24 dof": gb.robots.load("humanoid"),
        "g1, 35 dof": from_urdf("g1_description/urdf/g1_29dof_rev_1_0.urdf", "free"),
        "talos, 38 dof": from_urdf("talos_data/robots/talos_reduced.urdf", "free"),
    }


def against_pinocchio() -> list[dict]:
    """∇FD of trees: one state (bound call) and a batch on one core."""
    return [_row(name, model) for name, model in trees().items()]


def _row(name: str, model: gb.Model) -> dict:
    peer, state, fn = Pinocchio(model), one_state(model), gb.forward_dynamics_derivatives
    given = peer.state(*state)
    peer.pin.computeABADerivatives(peer.model, peer.data, *given)
    ours = gb.compile(fn, model)(*state)
    order = np.argsort(peer.iv)
    known = peer.data.ddq_dq[np.ix_(order, order)]
    batch = [np.tile(x, (BATCH, 1)) for x in state]
    out = tuple(np.empty((BATCH, model.nv, model.nv)) for _ in range(3))
    seconds = best(interleaved(
        {("pin", 0): partial(peer.pin.computeABADerivatives, peer.model, peer.data, *given)}
        | copied("one", bound_call, fn, model, state)
        | copied("batch", batch_call, fn, model, batch, out)
    ))  # fmt: skip
    return {
        "robot": name,
        "error": np.abs(ours[0] - known).max() / np.abs(known).max(),
        "operations": gb.count_operations(fn, model).total,
        "pin_us": seconds["pin"] * 1e6,
        "us": seconds["one"] * 1e6,
        "ratio": seconds["pin"] / seconds["one"],
        "batch_us": seconds["batch"] / BATCH * 1e6,
        "batch_ratio": seconds["pin"] / (seconds["batch"] / BATCH),
    }


def with_feet_held() -> list[dict]:
    """Derivatives of constrained dynamics, four feet held by points."""
    rows = []
    for name, model in trees().items():
        feet = FEET.get(name.split(",")[0])
        if feet is None:
            continue
        constraints = [Constraint(foot, "point") for foot in feet]
        peer, state = Pinocchio(model), one_state(model)
        solve = peer.constrained_call(constraints, state)
        solve()
        models, data = solve.args[5:7]
        derive = partial(
            peer.pin.computeConstraintDynamicsDerivatives, peer.model, peer.data, models, data
        )

        def both(solve=solve, derive=derive):
            solve()
            derive()

        fn = gb.compile(CONSTRAINED, model, constraints=constraints)
        bound = fn.bind(*(np.ascontiguousarray(x) for x in state))
        both()
        order = np.argsort(peer.iv)
        known = np.array(peer.data.ddq_dtau)[np.ix_(order, order)]
        seconds = best(interleaved({("pin", 0): both, ("one", 0): bound}))
        rows.append({
            "robot": name,
            "error": np.abs(fn(*state)[2] - known).max() / np.abs(known).max(),
            "pin_us": seconds["pin"] * 1e6,
            "us": seconds["one"] * 1e6,
            "ratio": seconds["pin"] / seconds["one"],
        })  # fmt: skip
    return rows


def operations() -> list[dict]:
    """Operations of the derivatives, and over those of the function."""
    rows = []
    for robot in (
        "mini_cheetah",
        "jvrc1",
        "mit_humanoid",
        "tello",
        "quadruped",
        "humanoid",
        "arm7",
    ):
        model = gb.robots.load(robot)
        row = {"robot": robot}
        for key, fn, of in (
            ("inverse", gb.inverse_dynamics_derivatives, gb.inverse_dynamics),
            ("forward", gb.forward_dynamics_derivatives, gb.forward_dynamics),
            ("vjp", gb.vjp(gb.forward_dynamics, model), gb.forward_dynamics),
        ):
            row[key] = gb.count_operations(fn, model).total
            row[f"{key}_ratio"] = row[key] / gb.count_operations(of, model).total
        rows.append(row)
    return rows


def steps() -> dict:
    """What is measured, by name."""
    return {
        "derivatives": against_pinocchio,
        "derivatives_held": with_feet_held,
        "derivatives_operations": operations,
    }


def report(data: dict) -> str:
    """The tables of all that was measured."""
    parts = ["", "## Derivatives of forward dynamics", ""]
    if "derivatives" in data:
        parts += ["Against `pin.computeABADerivatives`, from Python, one core, fp64.", "", table(
            data["derivatives"], {
                "robot": "robot", "error": "error", "operations": "operations",
                "pin_us": "pinocchio µs", "us": "ours", "ratio": "ratio", "batch_us": "batch",
                "batch_ratio": "ratio",
            }), "", "Four feet held by points, against `constraintDynamics` and "
            "`computeConstraintDynamicsDerivatives` together.", "", table(
            data["derivatives_held"], {
                "robot": "robot", "error": "error", "pin_us": "pinocchio µs", "us": "ours",
                "ratio": "ratio",
            }), ""]  # fmt: skip
    parts += ["Operations, and over those of the function.", "", table(
        data["derivatives_operations"], {
            "robot": "robot", "inverse": "∇ID", "inverse_ratio": "/ ID", "forward": "∇FD",
            "forward_ratio": "/ FD", "vjp": "VJP of FD", "vjp_ratio": "/ FD",
        }), ""]  # fmt: skip
    return "\n".join(parts)


def main() -> None:
    print(report({name: step() for name, step in steps().items()}))


if __name__ == "__main__":
    main()
