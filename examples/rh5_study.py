"""The study of Kumar et al. (hybrid numerical-analytical approach) on the reduced RH5 Manus.

A humanoid's upper body: a torso on two linear actuators (2SPU+1U), a yaw joint, two arms whose
elbows are moved by linear actuators (RRPR): 23 tree joints, 13 degrees of freedom, 13 actuators.
Run it to see

1. the torso closed numerically against its closed form, along cycloidal trajectories (Table II),
2. the articulated-body algorithm with constraint embedding against the inverse of M (Sec. V-D),
3. the factorization of the inverse mass matrix, eq. (27),
4. what analytic, hybrid and numeric closing cost, in operations and in time (Figs. 7 and 9).

    python examples/rh5_study.py [submechanisms.yml]

Every variant starts from the independent joints alone: what is closed numerically takes its Newton
steps inside the timing, as in the paper. On the full robot the wrists have no closed form, so that
"analytic" there is what the paper calls its hybrid approach (Fig. 9).

Numbers: hybrid_numerical_analytical_approach_case_study (model/submechanisms_urdf), BSD-3-Clause,
(c) 2022 DFKI RIC Underactuated Lab; the right arm is here the left one mounted on the other side.
With a HyRoDyn YAML file as its argument the study runs on that robot instead.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import grubler as gb
from grubler import compiler
from grubler.algorithms.assemble import newton_step
from grubler.algorithms.elimination import eliminations
from grubler.algorithms.sweep import outward
from grubler.control.actuation import actuator_effort, actuator_state
from grubler.model.exchange import analytic, convert_configuration

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
SHORT = 2e-5  # kg and kg m²: the wrist's stand-in, as in the file

# joint, parent, kind, axis, xyz, rpy, mass, com, (ixx, ixy, ixz, iyy, iyz, izz), (lower, upper)
TORSO = (
    ("BodyPitch", "world", "revolute", Y, (0, 0, 0.016), (0, 0, 0), 0.076413, (0, 0, 0),
     (1.3771e-5, 0, 0, 1.3771e-5, 0, 2.4637e-5), (-0.5236, 0.5236)),
    ("BodyRoll", "BodyPitch", "revolute", X, (0, 0, 0), (0, 0, 0), 1.4553,
     (-0.009734, 1.6e-5, 0.052947),
     (0.0010658, -7.3725e-7, -6.3202e-6, 0.0010006, 1.8604e-7, 0.0017602), (-0.4363, 0.4363)),
    ("BodyYaw", "BodyRoll", "revolute", Z, (0, 0, 0), (0, 0, 0), 11.70239,
     (-0.00472766, 1.62687e-7, 0.113977),
     (0.439472, 4.46749e-5, 0.0184711, 0.332344, 0.000204235, 0.18077), (-3.0, 3.0)),
)  # fmt: skip
LEG = (  # y and roll are the left leg's; the right one has them with the other sign
    ("1", "world", "revolute", X, (-0.089827, 0.02, -0.194), (-0.24177, 0, 0), 0.042423,
     (0.020399, 0, 0), (1e-5, 0, 0, 1.85373e-5, 0, 2.03063e-5), None),
    ("2", "1", "revolute", Y, (0, 0, 0), (0, -0.010339, 0), 0.81664, (-5.3e-5, 1.1e-5, 0.12216),
     (0.0004188, 1.09469e-7, 4.6371e-7, 0.00042136, 2.82482e-8, 0.00051891), None),
    ("Act", "2", "prismatic", Z, (0, 0, 0.23999), (0, 0, 0), 0.1019, (0, 0, -0.077362),
     (0.000137083, 0, 0, 0.000137103, 0, 1e-5), None),
)  # fmt: skip
LEG_ON_ROLL = (-0.092308, 0.0774556, 0.0229976)
ARM = (
    ("Shoulder1", "BodyYaw", "revolute", X, (0.001912, 0.227137, 0.375777),
     (3.141538, -0.23628, 1.309002), 1.602, (-0.0091569, 0.0036464, -0.00016872),
     (0.0012117, -8.0704e-5, -3.528e-6, 0.0015561, -2.6511e-6, 0.0010024), (-3.0, 3.0)),
    ("Shoulder2", "Shoulder1", "revolute", Y, (0, 0, 0), (0, 0, 0), 0.50849,
     (0.010763, 0.020477, 0.0278),
     (0.0010465, 0.00012061, 5.4855e-5, 0.00092568, 0.00027501, 0.0010393), (-0.243, 1.84)),
    ("Shoulder3", "Shoulder2", "revolute", Z, (0, 0, 0), (0, 0, 1.5707), 0.85234,
     (-3.2703e-5, 0.0033688, 0.14648),
     (0.0028013, 5.1939e-7, -7.2591e-7, 0.0027401, 5.4672e-5, 0.00078629), (-3.0, 3.0)),
    ("ElbowB11", "Shoulder3", "revolute", X, (0, -0.029, 0.1391), (-0.25319, 0, 0), 0.32696,
     (2.5944e-5, 1.8924e-5, 0.10704), (0.00011102, 0, 0, 0.00011251, 0, 7.0733e-5), None),
    ("ElbowAct", "ElbowB11", "prismatic", Z, (0, 0, 0.29542), (0, 0, 0), 0.054652,
     (-6.1594e-6, 0, -0.085859), (0.00010607, 0, 0, 0.000105975, 0, 1e-5), None),
    ("Elbow", "Shoulder3", "revolute", X, (0, 0.001, 0.3511), (0, 0, 0), 0.63578,
     (-7.016e-5, 0.001127, 0.080286),
     (0.00050999, 2.2297e-7, 4.047e-7, 0.00051633, -4.4233e-5, 0.00046537), (-1.8, 0.0)),
    ("WristRoll", "Elbow", "revolute", X, (0, 0, 0.122), (0, -1.570793, 3.141593), SHORT,
     (0, 0, 0), (SHORT, 0, 0, SHORT, 0, SHORT), (-3.0, 3.0)),
)  # fmt: skip
PIN_ON_ELBOW = (0.0, 0.0440008, 0.0740015)
INDEPENDENT = ("BodyPitch", "BodyRoll", "ALElbow", "ARElbow")


def _add(b: gb.ModelBuilder, row, name: str, parent: str, xyz, rpy) -> None:
    _, _, kind, axis, _, _, mass, com, inertia, limits = row
    lower, upper = limits or (None, None)
    b.add_body(name, mass, com, inertia)
    chosen = True if name in INDEPENDENT else None
    b.add_joint(name, kind, parent, name, xyz=xyz, rpy=rpy, axis=axis, lower=lower, upper=upper,
                independent=chosen)  # fmt: skip


def rh5_manus() -> gb.Model:
    """The reduced upper body, every loop closed numerically."""
    b = gb.ModelBuilder("RH5 Manus, reduced")
    for row in TORSO:
        _add(b, row, row[0], row[1], row[4], row[5])
    for side, sign in (("L", 1), ("R", -1)):
        for row in LEG:
            parent = row[1] if row[1] == "world" else f"Body{side}{row[1]}"
            x, y, z = row[4]
            _add(b, row, f"Body{side}{row[0]}", parent, (x, sign * y, z),
                 (sign * row[5][0], *row[5][1:]))  # fmt: skip
        x, y, z = LEG_ON_ROLL
        b.add_loop(f"torso {side}", "ball", f"Body{side}Act", "BodyRoll",
                   successor_xyz=(x, sign * y, z))  # fmt: skip
        b.add_actuator(f"torso {side}", f"Body{side}Act")
    b.add_actuator("BodyYaw", "BodyYaw")
    for side, sign in (("L", 1), ("R", -1)):
        for row in ARM:
            parent = row[1] if row[1] == "BodyYaw" else f"A{side}{row[1]}"
            x, y, z = row[4]
            mounted = row[1] == "BodyYaw" and sign < 0
            rpy = (row[5][0], -row[5][1], np.pi - row[5][2]) if mounted else row[5]
            _add(b, row, f"A{side}{row[0]}", parent, (x, sign * y if mounted else y, z), rpy)
        b.add_loop(f"elbow {side}", "revolute", f"A{side}Elbow", f"A{side}ElbowAct", axis=X,
                   predecessor_xyz=PIN_ON_ELBOW)  # fmt: skip
        for joint in ("Shoulder1", "Shoulder2", "Shoulder3", "ElbowAct", "WristRoll"):
            b.add_actuator(f"A{side}{joint}", f"A{side}{joint}")
    return b.build()


def cycloid(start, end, duration: float, t: float):
    """Position, velocity and acceleration of a cycloidal motion between two points."""
    w = 2 * np.pi / duration
    reach = end - start
    y = start + reach * (t / duration - np.sin(w * t) / (2 * np.pi))
    return y, reach / duration * (1 - np.cos(w * t)), reach / duration * w * np.sin(w * t)


def ends(model: gb.Model, share: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """Two configurations of the independent joints, inside their limits and one radian."""
    joints = [model.joint(name) for name in model.v_names]
    lower = np.array([max(-1.0, -1.0 if joint.lower is None else joint.lower) for joint in joints])
    upper = np.array([min(1.0, 1.0 if joint.upper is None else joint.upper) for joint in joints])
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    return middle - share * half, middle + share * half


def closed_numerically(model: gb.Model, names, y, start) -> np.ndarray:
    """q of a model at independent positions y, by Newton steps from the configuration before."""
    values = dict(zip(names, y, strict=True))
    positions = model.unpack(start)
    for name, value in values.items():
        positions[model.body_of_joint(name).index] = np.array([value])
    q = model.pack(positions)
    return gb.assemble(model, q)[0]


def compare_torso(hybrid: gb.Model, closed: gb.Model, steps: int = 25, duration: float = 4.0):
    """RMSE of the torso's two actuators, numeric torso against closed form: {quantity: (L, R)}."""
    names = closed.v_names
    bodies = _cluster_of(closed, "BodyPitch")
    torso = [i for i, actuator in enumerate(closed.actuators) if actuator.joint in bodies]
    first, last = ends(closed)
    q_hybrid = hybrid.neutral()
    errors = {"position": [], "velocity": [], "acceleration": [], "force": []}
    for t in np.linspace(0, duration, steps):
        y, v, a = cycloid(first, last, duration, t)
        q_hybrid = closed_numerically(hybrid, names, y, q_hybrid)
        order = [names.index(n) for n in hybrid.v_names]
        one = actuator_state(hybrid, q_hybrid, v[order], a[order])
        two = actuator_state(closed, y, v, a)
        for key, x, z in zip(errors, one, two, strict=False):
            errors[key].append((x - z)[torso])
        forces = [actuator_effort(m, q, v[o], a[o])
                  for m, q, o in ((hybrid, q_hybrid, order), (closed, y, slice(None)))]  # fmt: skip
        errors["force"].append((forces[0] - forces[1])[torso])
    return {key: np.sqrt(np.mean(np.square(x), axis=0)) for key, x in errors.items()}


def _cluster_of(model: gb.Model, joint: str):
    index = model.body_of_joint(joint).index
    return next(c.bodies for c in model.clusters if index in c.bodies)


def compare_embedding(model: gb.Model, steps: int = 25, duration: float = 4.0) -> float:
    """The largest difference of accelerations, constraint embedding against M⁻¹(tau - bias),
    relative to the largest acceleration, along the trajectory."""
    first, last = ends(model)
    worst = 0.0
    for t in np.linspace(0, duration, steps):
        y, v, a = cycloid(first, last, duration, t)
        tau = 1.1 * gb.inverse_dynamics(model, y, v, a)
        recursive = gb.forward_dynamics(model, y, v, tau)
        direct = np.linalg.solve(gb.mass_matrix(model, y), tau - gb.bias_force(model, y, v))
        worst = max(worst, np.abs(recursive - direct).max() / np.abs(direct).max())
    return worst


def inverse_factors(model: gb.Model, q):
    """(I - κψX, D) of eq. (27), cluster by cluster: M⁻¹ = [I - κψX] D⁻¹ [I - κψX]'.

    (κψX)_kj, for a cluster k that descends from j, is the acceleration that joint k gives way by
    when joint j accelerates, the joints between giving way as well: D_k⁻¹ U_k' carried through the
    articulated transforms (1 - S D⁻¹ U') X.
    """
    states = outward(model, q)
    joints = eliminations(states)
    factor = np.eye(model.nv)
    pivots = np.zeros((model.nv, model.nv))
    for j, root in enumerate(states):
        pivots[root.cluster.v, root.cluster.v] = np.linalg.inv(
            joints[j].D.solve(np.eye(root.cluster.nv))
        )
        carried = {j: root.S}
        for k in range(j + 1, len(states)):
            up = states[k].cluster.parent
            if up not in carried:
                continue
            moved = states[k].X.motions(carried[up])
            yields = joints[k].D.solve(joints[k].U.T @ moved)
            factor[states[k].cluster.v, root.cluster.v] = -yields
            carried[k] = moved - states[k].S @ yields
    return factor, pivots


def closed_inverse_dynamics(model, q, v, a):
    """Inverse dynamics from a guess that is closed first, where the model needs that."""
    return gb.inverse_dynamics(model, gb.assemble(model, q)[0], v, a)


def closed_forward_dynamics(model, q, v, tau):
    return gb.forward_dynamics(model, gb.assemble(model, q)[0], v, tau)


def closed_state(model, q, v, a):
    """Positions, velocities and accelerations of all tree joints."""
    return tuple(gb.spanning_state(model, gb.assemble(model, q)[0], v, a))


STUDIED = (closed_state, closed_inverse_dynamics, closed_forward_dynamics)


def benchmark(
    models: dict[str, gb.Model], count: int = 10_000, share: float = 0.8, functions=STUDIED,
    rounds: int = 40,
):  # fmt: skip
    """Microseconds a call, compiled, over random states: {model: {function: t}}.

    Every model starts from the same independent positions; where it closes loops numerically the
    dependent joints start from the neutral configuration. The models take turns, and the best of
    all rounds counts: what else the machine does hits all of them alike.
    """
    reference = models["analytic"]
    rng = np.random.default_rng(0)
    y = rng.uniform(*ends(reference, share), (count, reference.nv))
    calls = {}
    for kind, model in models.items():
        columns = [model.q_names.index(n) for n in reference.v_names]
        q = np.tile(model.neutral(), (count, 1))
        q[:, columns] = y
        v, x = rng.uniform(-1, 1, (2, count, model.nv))
        for fn in functions:
            calls[kind, fn.__name__] = (gb.compile(fn, model), q, v, x)
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for key, (compiled, *arguments) in calls.items():
            start = time.perf_counter()
            compiled(*arguments)
            best[key] = min(best[key], time.perf_counter() - start)
    return {
        kind: {fn.__name__: best[kind, fn.__name__] / count * 1e6 for fn in functions}
        for kind in models
    }


def operations(models: dict[str, gb.Model]) -> dict[str, tuple[int, int, int]]:
    """Operations of a Newton step of all loops that are closed numerically, of inverse and of
    forward dynamics (at positions that are closed already)."""
    found = {}
    for kind, model in models.items():
        implicit = [c.embedding for c in model.clusters if c.embedding.implicit]
        step = sum(
            compiler.count_operations(lambda x, joint=j: newton_step(joint, x), [(j.nq,)]).total
            for j in implicit
        )
        dynamics = (gb.inverse_dynamics, gb.forward_dynamics)
        found[kind] = (step, *(gb.count_operations(fn, model).total for fn in dynamics))
    return found


def variants(model: gb.Model) -> dict[str, gb.Model]:
    """The same robot closed in three ways: in closed form, the torso numeric, all numeric."""
    closed = analytic(model)
    torso = {loop.name for loop in model.loops if "torso" in loop.name}
    others = [loop.name for loop in model.loops if loop.name not in torso]
    hybrid = analytic(model, [n for n in others if _is_closed(closed, n)])
    return {"analytic": closed, "hybrid": hybrid, "numeric": model}


def _is_closed(model: gb.Model, loop: str) -> bool:
    own = (c for c in model.clusters if loop in [x.name for x in c.loops])
    return not next(own).embedding.implicit


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The RH5 Manus study of Kumar et al.")
    parser.add_argument("file", nargs="?", help="a HyRoDyn YAML file (default: the reduced robot)")
    parser.add_argument("--states", type=int, default=10_000, help="random states to time over")
    options = parser.parse_args(arguments)
    model = rh5_manus() if options.file is None else gb.load(options.file)
    models = variants(model)
    print(f"{model.name}: {model.nv_span} tree joints, mobility {model.nv}\n")
    whole = not any(c.embedding.implicit for c in models["analytic"].clusters)
    if whole:
        verify(models)
    print("operations a call    a Newton step   inverse   forward dynamics")
    for kind, row in operations(models).items():
        print(f"  {kind:<20}" + "".join(f"{n:10d}" for n in row))
    print("\nmicroseconds a call        state   inverse   forward dynamics")
    # what is numeric even then (the full robot's wrists) is kept near the neutral pose, to converge
    times = benchmark(models, options.states, share=0.8 if whole else 0.1)
    for kind, row in times.items():
        print(f"  {kind:<20}" + "".join(f"{t:10.2f}" for t in row.values()))


def verify(models: dict[str, gb.Model]) -> None:
    """Table II, and Secs. IV and V-D: what must agree."""
    closed = models["analytic"]
    print("torso, numeric against closed form (RMSE)    left       right")
    for key, (left, right) in compare_torso(models["hybrid"], closed).items():
        print(f"  {key:<40} {left:9.1e} {right:9.1e}")
    q = ends(closed)[0]
    print(f"\nABA with embedding against M⁻¹: {compare_embedding(closed):.1e}")
    factor, D = inverse_factors(closed, q)
    inverse = np.linalg.inv(gb.mass_matrix(closed, q))
    gap = np.abs(factor @ np.linalg.inv(D) @ factor.T - inverse).max() / np.abs(inverse).max()
    print(f"[I - κψX] D⁻¹ [I - κψX]' against M⁻¹: {gap:.1e}\n")
    same = convert_configuration(closed, models["numeric"], q)
    print(f"closed form leaves the loops open by {models['numeric'].loop_gap(same):.1e} m\n")


if __name__ == "__main__":
    main()
