"""Contact steps a second on one core, in batches of fp64, beside MuJoCo in the same run.

    python -m benchmarks.contact                                    # all robots that are found
    python -m benchmarks.contact --robots mini_cheetah --sweeps 3 5

A step is the whole of a simulation's: dynamics, contacts from warm starts, correction of positions,
integration, closure of loops. Robots stand on the ground, held by springs in their joints, and
shake with random torques, so that points stick, slip and open. The residual of the natural map, in
m/s, says how exactly Coulomb's law holds. MuJoCo takes one state after the other, with its default
options, from the same posture and with the same springs, on the same points.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import grubler as gb
from grubler.mechanism.geometry import Box, Sphere

from .tables import table

BATCH, DT = 1024, 2e-3
SETTLE, TIMED = 150, 100  # steps before the clock, and under it
CASSIE = Path(__file__).resolve().parents[2] / "shared" / "models" / "cassie_mjcf" / "cassie.xml"


@dataclass
class Scene:
    """A robot on the ground: model, contacts, posture, springs and damping of its joints, noise."""

    name: str
    model: gb.Model
    contacts: gb.Contacts
    q: np.ndarray
    passive: gb.Passive
    shake: float

    @classmethod
    def of(cls, name, model, contacts, q, stiffness, damping, shake) -> Scene:
        """The robot with its lowest point on the ground."""
        gap = gb.contact_candidates(model, q, contacts).gap
        q[2] -= gap.min()
        position = model.unpack(q)
        joints = [b for b in model.bodies if b.joint.nq == b.joint.nv == 1]
        held = [b for b in joints if b.joint.name in model.v_names]
        springs = {b.joint.name: (stiffness, float(position[b.index][0])) for b in held}
        own = gb.Passive.of(model)
        passive = gb.Passive(
            spring={**own.spring, **springs},
            damping={**own.damping, **{b.joint.name: damping for b in held}},
        )
        return cls(name, model, contacts, q, passive, shake)

    def noise(self, rng, count: int) -> np.ndarray:
        """Random torques of the joints that have springs to the posture, (count, nv)."""
        moved = [name in self.passive.spring for name in self.model.v_names]
        return self.shake * rng.normal(size=(count, self.model.nv)) * np.array(moved)


def mini_cheetah(name: str = "mini_cheetah") -> Scene:
    model = gb.robots.load(name)
    feet = {f"{leg}_foot_contact": Sphere(0.02) for leg in ("HR", "HL", "FR", "FL")}
    q = model.neutral()
    for i, joint in enumerate(model.q_names):
        q[i] = -0.8 if "hip" in joint else 1.6 if "knee" in joint else q[i]
    return Scene.of(name, model, gb.Contacts(model, shapes=feet, friction=0.7), q, 60, 2, 3)


def humanoid(name: str) -> Scene:
    model = gb.robots.load(name)
    feet = {f.name: Sphere(0.0) for f in model.frames if "toe" in f.name or "heel" in f.name}
    contacts = gb.Contacts(model, shapes=feet, friction=0.7)
    return Scene.of(name, model, contacts, model.neutral(), 100, 3, 1)


def pinocchio_models() -> Path:
    """The robots of example-robot-data."""
    for folder in sys.path:
        found = Path(folder) / "cmeel.prefix/share/example-robot-data/robots"
        if found.is_dir():
            return found
    raise FileNotFoundError("example-robot-data is not installed")


def go1() -> Scene:
    path = Path(pinocchio_models()) / "go1_description/urdf/go1.urdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gb.load(path, base="free")
    shapes = {f"{leg}_foot": Sphere(0.023) for leg in ("FR", "FL", "RR", "RL")}
    trunk = model.bodies[0].name
    shapes[trunk] = Box(np.array([0.376, 0.0935, 0.114]))
    q = model.neutral()
    for i, joint in enumerate(model.q_names):
        q[i] = 0.8 if "thigh" in joint else -1.6 if "calf" in joint else q[i]
    contacts = gb.Contacts(model, shapes=shapes, touching=list(shapes), friction=0.7)
    return Scene.of("go1", model, contacts, q, 60, 2, 3)


def cassie() -> Scene:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gb.load(CASSIE)
        contacts = gb.Contacts(model, touching=["left-foot", "right-foot"])
    return Scene.of("cassie", model, contacts, model.neutral(), 300, 5, 3)


SCENES: dict[str, Callable] = {
    "mini_cheetah": mini_cheetah,
    "quadruped": lambda: mini_cheetah("quadruped"),
    "go1": go1,
    "cassie": cassie,
    "mit_humanoid": lambda: humanoid("mit_humanoid"),
    "tello": lambda: humanoid("tello"),
}


def simulator(scene: Scene, sweeps: int | None, newton: int = 0, **options) -> gb.Simulator:
    solver = gb.ContactSolver(iterations=sweeps, newton=newton, tolerance=1e-9)
    options = {"batch": BATCH, "passive": scene.passive, **options}
    return gb.Simulator(scene.model, DT, contacts=scene.contacts, solver=solver, **options)


def measure(scene: Scene, sweeps: int | None, newton: int = 0, dtype: str = "float64") -> dict:
    """Steps a second of a batch on one core, and the residuals of the steps that were timed."""
    sim = simulator(scene, sweeps, newton, dtype=dtype)
    step, kernel, nv = sim._step, sim._kernel, scene.model.nv
    rng = np.random.default_rng(0)
    q, v = np.tile(scene.q, (BATCH, 1)), np.zeros((BATCH, nv))
    state = [x.astype(dtype) for x in (q, v, np.zeros((BATCH, kernel.carried)))]
    out = tuple(np.empty_like(x) for x in state)
    least, residuals, modes = np.inf, [], []
    inside = kernel.contacting
    for k in range(SETTLE + TIMED):
        tau = scene.noise(rng, BATCH).astype(dtype)
        start = time.perf_counter()
        step(state[0], state[1], tau, state[2], out=out, threads=1)
        spent = time.perf_counter() - start
        state = [np.array(x) for x in out]
        if k >= SETTLE:
            least = min(least, spent)
            residuals.append(state[2][:, -4])
            first = kernel.lifted + inside.rows
            modes.append(state[2][:, first : first + inside.points])
    residuals, modes = np.concatenate(residuals), np.concatenate(modes)
    return {
        "points": inside.points, "steps_per_second": BATCH / least,
        "residual_median": float(np.median(residuals)),
        "residual_99.9": float(np.quantile(residuals, 0.999)),
        "touching": float((modes > 0).mean()), "slipping": float((modes == 2).mean()),
        "finite": bool(np.isfinite(state[1]).all()),
    }  # fmt: skip


def mujoco_steps(scene: Scene) -> float:
    """MuJoCo's steps a second of one robot on the same points."""
    import mujoco

    from .peers import mjcf

    if scene.name == "cassie":  # its own description, with the contacts of its feet
        spec = mujoco.MjSpec.from_file(str(CASSIE))
        seen = [g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_MESH]
        for geom in spec.geoms:
            geom.material = ""
        for part in [*seen, *spec.meshes, *spec.materials, *spec.textures]:
            spec.delete(part)
        if not any(g.type == mujoco.mjtGeom.mjGEOM_PLANE for g in spec.worldbody.geoms):
            plane = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
            plane.contype, plane.conaffinity = 15, 15
        return mujoco_timed(scene, spec)
    text = mjcf(scene.model, None).replace('<flag contact="disable"/>', "")
    spec = mujoco.MjSpec.from_string(text)
    kinds = {"Ball": mujoco.mjtGeom.mjGEOM_SPHERE, "Box": mujoco.mjtGeom.mjGEOM_BOX,
             "Capsule": mujoco.mjtGeom.mjGEOM_CAPSULE}  # fmt: skip
    for pair in scene.contacts.pairs:
        shape = pair.shapes[0]
        kind = type(shape).__name__
        size = {
            "Ball": lambda s: [max(s.radius, 1e-3), 0, 0],
            "Box": lambda s: s.size / 2,
            "Capsule": lambda s: [s.radius, s.length / 2, 0],
        }[kind](shape)
        geom = spec.body(scene.model.bodies[pair.body].name).add_geom(
            type=kinds[kind], size=size, pos=shape.position,
            friction=[pair.friction, 0, 0], condim=3, mass=0.0,
        )  # fmt: skip
        z = shape.rotation[:, 2]
        geom.alt.zaxis = z
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    return mujoco_timed(scene, spec)


def mujoco_timed(scene: Scene, spec) -> float:
    """Steps a second of MuJoCo from the scene's posture, with its springs."""
    import mujoco

    spec.option.timestep = DT
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:7] = scene.q[:7]
    unpacked = scene.model.unpack(scene.q)
    for joint in scene.model.joints:
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
        if number < 0 or joint.nq != 1:
            continue
        place = unpacked[scene.model.body_of_joint(joint.name).index][0]
        data.qpos[model.jnt_qposadr[number]] = place
        if joint.name in scene.passive.spring:
            stiffness, rest = scene.passive.spring[joint.name]
            model.jnt_stiffness[number] = stiffness
            model.qpos_spring[model.jnt_qposadr[number]] = rest
            model.dof_damping[model.jnt_dofadr[number]] = scene.passive.damping.get(joint.name, 0.0)
    best = np.inf
    for _ in range(SETTLE):
        mujoco.mj_step(model, data)
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(TIMED):
            mujoco.mj_step(model, data)
        best = min(best, (time.perf_counter() - begin) / TIMED)
    print(f"  MuJoCo: {data.ncon} contacts, {data.nefc} rows")
    return 1 / best


# robot, sweeps, steps of Newton's method: as `make bench` measures it
CASES = (("mini_cheetah", 3, 0), ("mini_cheetah", 5, 0), ("go1", 3, 0), ("mit_humanoid", 3, 2))


def steps_per_second() -> list[dict]:
    """The robots that need no file of ours, beside MuJoCo."""
    rows = []
    for name, sweeps, newton in CASES:
        scene = SCENES[name]()
        row = {"robot": name, "sweeps": sweeps, "newton": newton}
        row |= measure(scene, sweeps, newton) | {"mujoco": mujoco_steps(scene)}
        rows.append(row | {"ratio": row["steps_per_second"] / row["mujoco"]})
    return rows


def report(rows: list[dict]) -> str:
    """The table of what was measured."""
    shown = table(rows, {
        "robot": "robot", "points": "points", "sweeps": "sweeps", "newton": "Newton steps",
        "steps_per_second": "steps a second", "mujoco": "MuJoCo", "ratio": "ratio",
        "residual_median": "residual m/s", "residual_99.9": "99.9 %",
    })  # fmt: skip
    title = "## Contact steps a second, one core, batch of 1024, fp64"
    return "\n".join(["", title, "", shown, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="*", default=["mini_cheetah", "go1", "cassie"])
    parser.add_argument("--sweeps", type=int, nargs="*", default=[3], help="0: to a tolerance")
    parser.add_argument("--newton", type=int, default=0, help="steps after the sweeps")
    parser.add_argument("--no-mujoco", action="store_true")
    options = parser.parse_args()
    for name in options.robots:
        try:
            scene = SCENES[name]()
        except (ImportError, FileNotFoundError) as error:
            print(f"{name}: left out, {error}")
            continue
        rival = None if options.no_mujoco else mujoco_steps(scene)
        for sweeps in options.sweeps:
            row = measure(scene, sweeps or None, options.newton if sweeps else 0)
            speed = row.pop("steps_per_second")
            how = f"{sweeps} sweeps, {options.newton} Newton steps" if sweeps else "to 1e-9 m/s"
            text = f"{name}, {how}: {speed / 1e6:.3f} M/s"
            if rival:
                text += f", MuJoCo {rival / 1e6:.4f} M/s, ratio {speed / rival:.0f}"
            print(text, row, flush=True)


if __name__ == "__main__":
    main()
