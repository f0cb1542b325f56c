"""How accurate PV-early is: random and nearly singular states of robots with loops and constraints.

    python -m benchmarks.accuracy_constrained [--states N] [--singular N] [--exact N] [--seed N]

Errors are relative to the largest acceleration and to the largest multiplier of a state, the larger
of both. All states are compared with LTL after one step of iterative refinement, the worst of them
with fifty digits. Only states count whose rows are independent: cond(J M⁻¹ J') below 1e6. A state
is beyond where its error exceeds a hundred times that of LTL, and 1e-12. Random mechanisms have
loops, gears and constraints with the world and between bodies.
"""

from __future__ import annotations

import argparse

import numpy as np
from tests.constrained.cases import CASES
from tests.constrained.precise import (
    FACTOR,
    FLOOR,
    Ltl,
    compared,
    error,
    near_singular,
    random_states,
)  # fmt: skip
from tests.mechanisms import ROWS, SCALAR, Draft

import grubler as gb
from grubler.constrained import Constraint, constrained_forward_dynamics
from grubler.constrained.constraints import checked_constraints

NAMES = [
    "arm7 H3", "arm7 K", "quadruped 4F3", "quadruped mixed", "mini_cheetah 2F3",
    "mini_cheetah 4F3", "mini_cheetah closures", "humanoid 2F", "humanoid F+bar", "mit_humanoid 2F",
    "mit_humanoid 2F3+2H3", "tello 2F", "jvrc1 2F", "joint_sampler", "loop_sampler",
]  # fmt: skip
CHUNK = 50_000  # states at a time


def robots(mechanisms: int):
    """(name, model, constraints) of the zoo and of random mechanisms."""
    legs = CASES["mini_cheetah 4F3"][1]
    for name in NAMES:
        robot, constraints = CASES.get(name, ("mini_cheetah", legs[:2]))
        yield name, gb.robots.load(robot), constraints
    for seed in range(mechanisms):
        found = mechanism(seed)
        if found is not None:
            yield (f"mechanism {seed}", *found)


def mechanism(seed: int):
    """A random mechanism on a free base and random constraints, None where it cannot move so."""
    draft = Draft(seed)
    rng = np.random.default_rng(seed)
    draft.body("world", "free")
    for _ in range(rng.integers(6, 12)):
        draft.body(str(rng.choice(draft.bodies)), str(rng.choice(SCALAR)))
    for _ in range(2):
        leader = str(rng.choice(draft.scalars))
        rotor = draft.body(draft.builder._edges[leader[2:]].parent, "revolute")
        draft.gear(f"j_{rotor}", [leader])
    try:
        if seed % 2:
            a, b = rng.choice(draft.bodies[1:], 2, replace=False)
            draft.loop(str(rng.choice(list(ROWS))), str(a), str(b))
        model = draft.builder.build(reference=draft.reference)
    except gb.GrublerError:
        return None
    bodies = [str(x) for x in rng.permutation(draft.bodies)[:4]]
    constraints = [
        Constraint(bodies[0], "point"),
        Constraint(bodies[1], rng.normal(size=(2, 6))),
        Constraint(bodies[2], tuple(int(i) for i in rng.permutation(6)[:2]), to=bodies[3]),
    ]
    return model, constraints


def compare(model, constraints, count: int, singular: int, exact: int, seed: int) -> list[dict]:
    """A row for random states and one for nearly singular ones."""
    checked = tuple(checked_constraints(model, constraints))
    ltl = Ltl(model, checked)
    code = gb.compile(constrained_forward_dynamics, model, constraints=tuple(constraints))
    rows = []
    for label, number in (("random", count), ("singular", singular)):
        rng, rest, parts, kept = np.random.default_rng(seed), number, [], []
        while rest > 0:
            states = random_states(model, min(rest, CHUNK), rng)
            if label == "singular":
                states = near_singular(model, checked, states, rng)
            rest -= len(states[0])
            errors, allowed, regular = compared(ltl, code(*states), states)
            parts.append((errors[regular], (errors / allowed)[regular]))
            order = np.argsort(np.where(regular, errors / allowed, 0.0))[-exact:] if exact else []
            kept += [([x[i] for x in states], errors[i] / allowed[i]) for i in order]
        errors, share = (np.concatenate(x) for x in zip(*parts, strict=True))
        if not len(errors):  # the rows depend on each other everywhere
            continue
        kept = [state for state, _ in sorted(kept, key=lambda pair: -pair[1])[:exact]]
        judged = [in_fifty_digits(ltl, code, state) for state in kept]
        rows.append({
            "states": label, "regular": len(errors), "median": float(np.median(errors)),
            "worst": float(errors.max()), "beyond": int(np.sum(share > 1)),
            "worst, exact": max((x for x, _ in judged), default=float("nan")),
            "beyond, exact": sum(x > y for x, y in judged),
        })  # fmt: skip
    return rows


def in_fifty_digits(ltl: Ltl, code, state) -> tuple[float, float]:
    """The error of a state and what is allowed."""
    exact = ltl.in_fifty_digits(*state)
    plain = ltl.compiled(*state)[3:]
    return float(error(code(*state), exact)), max(FLOOR, FACTOR * float(error(plain, exact)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy_constrained")
    parser.add_argument("--states", type=int, default=1_000_000, help="random states of a robot")
    parser.add_argument("--singular", type=int, default=10_000, help="nearly singular ones")
    parser.add_argument("--exact", type=int, default=200, help="worst ones, in fifty digits")
    parser.add_argument("--mechanisms", type=int, default=20, help="random mechanisms to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="robots whose name contains this")
    given = parser.parse_args()
    columns = ["regular", "median", "worst", "beyond", "worst, exact", "beyond, exact"]
    print("| robot | states | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 2) + "|")
    for name, model, constraints in robots(given.mechanisms):
        if given.only and given.only not in name:
            continue
        counts = given.states, given.singular, given.exact, given.seed
        for row in compare(model, constraints, *counts):
            values = (
                f"{row[c]:.1e}" if isinstance(row[c], float) else str(row[c]) for c in columns
            )
            print(f"| {name} | {row['states']} | " + " | ".join(values) + " |", flush=True)


if __name__ == "__main__":
    main()
