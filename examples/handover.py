"""Two arms and a quadruped hand over a box: grasp, carry, release.

The left arm holds a box; the right arm grasps it, too; the left arm lets go; the right arm carries
the box away and back and sets it on the quadruped, which stands on its four feet, and lets go, too.
Each robot's dynamics is compiled once; an event changes a few rows of the closures (Rodriguez,
Jain, Kreutz-Delgado: primary and secondary systems) and nothing else. A grasp is an inelastic
impact: energy is lost; a release loses none.

    python examples/handover.py handover.svg
"""

import sys
from functools import cache

import numpy as np

import grubler as gb
from grubler.constrained import ClosedChain, Closure

HAND = "panda_hand_tcp"
FEET = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]
ELBOW = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])
EVENTS = {  # s: what happens
    0.3: ("attach", "right grasp"),
    0.6: ("detach", "left grasp"),
    1.4: ("attach", "on the back"),
    1.7: ("detach", "right grasp"),
}


def box_model() -> gb.Model:
    b = gb.ModelBuilder("box")
    b.add_body("box", 1.5, inertia=(0.01, 0, 0, 0.02, 0, 0.02))
    b.add_joint("float", "free", "world", "box")
    for name, xyz in (("left", (0, 0, 0)), ("right", (0.2, 0, 0)), ("bottom", (0.1, 0, -0.1))):
        b.add_frame(name, "box", xyz)
    return b.build()


def scene():
    """The robots, where they stand, and their states at the beginning."""
    arm, quadruped, box = gb.robots.load("arm7"), gb.robots.load("quadruped"), box_model()
    _, hand = gb.frame_pose(arm, ELBOW, HAND)
    turned = np.diag([-1.0, -1.0, 1.0])  # the right arm faces the left one
    right_place = (turned, hand + np.array([0.2, 0.0, 0.0]) - turned @ hand)
    q_box = np.concatenate([hand, [1.0, 0, 0, 0]])
    crouched = quadruped.neutral()
    crouched[7:] = np.tile([0.0, -0.8, 1.6], 4)
    crouched[:3] = hand + np.array([0.1, 0.0, -0.2])  # its back below the box
    chain = ClosedChain(
        {"left": arm, "right": arm, "quadruped": quadruped},
        {"box": box},
        ports={"left": [HAND], "right": [HAND], "quadruped": ["Floating Base", *FEET],
               "box": ["left", "right", "bottom"]},
        places={"right": right_place},
    )  # fmt: skip
    state = {
        "left": (ELBOW, np.zeros(7)),
        "right": (ELBOW, np.zeros(7)),
        "quadruped": (crouched, np.zeros(18)),
        "box": (q_box, np.zeros(6)),
    }
    return chain, state


CLOSURES = {
    "left grasp": Closure("left grasp", ("left", HAND), ("box", "left")),
    "right grasp": Closure("right grasp", ("right", HAND), ("box", "right")),
    "on the back": Closure("on the back", ("quadruped", "Floating Base"), ("box", "bottom")),
}


@cache
def code(fn, model, **options):
    """Compiled once."""
    return gb.compile(fn, model, **options)


def torques(chain, state, t: float):
    """Gravity compensation, and springs to postures; the right arm carries from 0.6 to 1.4 s."""
    out = {"box": np.zeros(6)}
    away = 0.25 * np.sin(np.pi * np.clip((t - 0.6) / 0.8, 0, 1)) ** 2
    grasps = [n for n in ("left", "right") if f"{n} grasp" in chain.closures]
    carried = "on the back" not in chain.closures
    for name in ("left", "right"):
        q, v = state[name]
        model = chain.robots[name].model
        goal = ELBOW + (away if name == "right" else 0.0) * np.array([1, 0.3, 0, 0.5, 0, 0.3, 0])
        wanted = 200.0 * (goal - q) - 28.0 * v
        out[name] = code(gb.inverse_dynamics, model)(q, v, wanted)
        if name in grasps and carried:  # its share of the box's weight
            R, _ = code(gb.frame_pose, model, frame=HAND)(q)
            J = code(gb.frame_jacobian, model, frame=HAND)(q)
            out[name] = out[name] + J[3:].T @ (R.T @ np.array([0, 0, 1.5 * 9.81 / len(grasps)]))
    q, v = state["quadruped"]
    crouch = np.tile([0.0, -0.8, 1.6], 4)
    legs = 60.0 * (crouch - q[7:]) - 1.5 * v[6:]
    out["quadruped"] = np.concatenate([np.zeros(6), legs])
    return out


def momentum_of(model, q, v):
    return gb.centroidal(model, q, v).momentum[3:]


def mechanics(chain, state):
    """Total energy in J, and the linear momentum of every robot in kg m/s, world axes."""
    energy, momentum = 0.0, {}
    for name, robot in chain.robots.items():
        q, v = state[name]
        energy += float(sum(code(gb.energy, robot.model)(q, v)))
        energy += sum(body.mass for body in robot.model.bodies) * 9.81 * robot.p[2]
        momentum[name] = robot.R @ code(momentum_of, robot.model)(q, v)
    return energy, momentum


def simulate(seconds: float = 2.2, dt: float = 1e-3, every: int = 5):
    """Semi-implicit steps through the events; a list of records."""
    chain, state = scene()
    positions = {n: q for n, (q, _) in state.items()}
    for foot in FEET:
        chain.attach(Closure(foot, ("quadruped", foot), None, "point"), positions)
    chain.attach(CLOSURES["left grasp"], positions)
    work, records, events = 0.0, [], []
    for step in range(round(seconds / dt)):
        t = step * dt
        for moment, (what, name) in EVENTS.items():
            if abs(t - moment) > dt / 2:
                continue
            before = mechanics(chain, state)
            if what == "attach":
                chain.attach(CLOSURES[name], {n: q for n, (q, _) in state.items()})
                after = chain.impulse({n: (q, v, None) for n, (q, v) in state.items()})
                state = {n: (q, after[n]) for n, (q, _) in state.items()}
            else:
                chain.detach(name)
            events.append((t, f"{what} {name}", before, mechanics(chain, state)))
        tau = torques(chain, state, t)
        motion = chain.forward_dynamics({n: (q, v, tau[n]) for n, (q, v) in state.items()})
        if step % every == 0:
            energy, momentum = mechanics(chain, state)
            force = {n: f for n, f in motion.forces.items() if n in CLOSURES}
            records.append((t, energy, work, momentum, force, motion.residual))
        following = {}
        for n, (q, v) in state.items():
            v_next = v + dt * motion.a[n]
            work += dt * float(tau[n] @ (v + v_next)) / 2
            following[n] = (chain.robots[n].model.integrate(q, v_next, dt), v_next)
        state = following
    return records, events


def picture(records, events, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    t = np.array([r[0] for r in records])
    figure, axes = plt.subplots(3, 1, figsize=(8, 8), sharex=True, layout="constrained")
    energy, work = (np.array([r[i] for r in records]) for i in (1, 2))
    axes[0].plot(t, energy - energy[0], label="energy")
    axes[0].plot(t, energy - energy[0] - work, label="energy less the motors' work")
    axes[0].set_ylabel("[J]")
    for name in ("left", "right", "quadruped", "box"):
        axes[1].plot(t, [np.linalg.norm(r[3][name]) for r in records], label=name)
    axes[1].set_ylabel("momentum [kg m/s]")
    for name in CLOSURES:
        held = [np.linalg.norm(r[4][name][3:]) if name in r[4] else np.nan for r in records]
        axes[2].plot(t, held, label=name)
    axes[2].set_ylabel("force of the closure [N]")
    axes[2].set_xlabel("time [s]")
    for axis in axes:
        axis.legend(loc="upper right", fontsize=8)
        axis.grid(alpha=0.3)
        for moment, *_ in events:
            axis.axvline(moment, color="0.6", lw=0.8)
    figure.savefig(path)
    plt.close(figure)


def main(path: str | None = None, seconds: float = 2.2):
    records, events = simulate(seconds)
    print("event                      energy before   after [J]   lost")
    for t, name, before, after in events:
        print(
            f"{t:4.2f} s {name:<20} {before[0]:12.4f} {after[0]:11.4f} {before[0] - after[0]:8.1e}"
        )
    if path is not None:
        picture(records, events, path)
    return records, events


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
