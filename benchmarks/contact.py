"""Contact steps a second on one core, in batches of fp64, beside MuJoCo in the same run.

    python -m benchmarks.contact            # all robots
    python -m benchmarks.contact --robots mini_cheetah --sweeps 3

A step is the whole of a simulation's: dynamics, contacts from warm starts, correction of positions,
integration, closure of loops. Robots stand on the ground and shake with random torques, so that
points stick, slip and open. The residual of the natural map says how exactly Coulomb's law holds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import grubler as gb
from grubler.contact.candidates import PointsOnPlane

BATCH, DT = 1024, 2e-3
SETTLE = 150  # steps before the clock: from where the robots are put to where they stand


class Scene:
    """A robot on the ground: its model, plan, posture and gains that hold it there."""

    def __init__(self, name, model, plan, q, stiffness, damping, shake):
        self.name, self.model, self.plan, self.q = name, model, plan, q
        self.stiffness, self.damping, self.shake = stiffness, damping, shake

    def hold(self, q, v, rng):
        """Torques of a batch: springs to the posture, damping, noise."""
        tau = np.zeros(v.shape)
        n = min(self.model.nv - 6, self.model.nq - 7)
        tau[:, 6:] = -self.damping * v[:, 6:] + self.shake * rng.normal(size=v[:, 6:].shape)
        if self.model.nq - 7 == self.model.nv - 6:
            tau[:, 6:] += self.stiffness * (self.q[7 : 7 + n] - q[:, 7 : 7 + n])
        return tau


def mini_cheetah(rotors: bool = True) -> Scene:
    model = gb.robots.load("mini_cheetah" if rotors else "quadruped")
    feet = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]
    q = model.neutral()
    for i, name in enumerate(model.q_names):
        q[i] = -0.8 if "hip" in name else 1.6 if "knee" in name else q[i]
    return on_ground("mini_cheetah" if rotors else "quadruped", model, feet, 0.02, q, 40, 1, 3)


def humanoid() -> Scene:
    model = gb.robots.load("mit_humanoid")
    feet = [f.name for f in model.frames if "toe" in f.name or "heel" in f.name]
    return on_ground("mit_humanoid", model, feet, 0.0, model.neutral(), 60, 2, 2)


def tello() -> Scene:
    model = gb.robots.load("tello")
    feet = [f.name for f in model.frames if "toe" in f.name or "heel" in f.name]
    return on_ground("tello", model, feet, 0.0, model.neutral(), 60, 2, 1)


def on_ground(name, model, feet, radius, q, stiffness, damping, shake) -> Scene:
    plan = PointsOnPlane.of(model, dict.fromkeys(feet, radius), friction=0.7)
    q[2] += radius - min(gb.frame_pose(model, q, foot)[1][2] for foot in feet)
    return Scene(name, model, plan, q, stiffness, damping, shake)


SCENES = {
    "mini_cheetah": mini_cheetah,
    "quadruped": lambda: mini_cheetah(rotors=False),
    "mit_humanoid": humanoid,
    "tello": tello,
}


def measure(scene: Scene, sweeps: int | None, dtype: str = "float64") -> dict:
    """Steps a second of a batch on one core, and the residuals of the steps that were timed."""
    solver = gb.ContactSolver(iterations=sweeps)
    sim = gb.Simulator(
        scene.model, DT, batch=BATCH, contacts=scene.plan, solver=solver, dtype=dtype
    )
    step, model = sim._step, scene.model
    rng = np.random.default_rng(0)
    q, v = np.tile(scene.q, (BATCH, 1)), np.zeros((BATCH, model.nv))
    carried = np.zeros((BATCH, sim._kernel.carried))
    q, v, carried = (x.astype(dtype) for x in (q, v, carried))
    out = tuple(np.empty_like(x) for x in (q, v, carried))
    least, residuals, touching, slipping = np.inf, [], [], []
    for k in range(SETTLE + 100):
        tau = scene.hold(q, v, rng).astype(dtype)
        start = time.perf_counter()
        step(q, v, tau, carried, out=out, threads=1)
        spent = time.perf_counter() - start
        q, v, carried = (np.array(x) for x in out)
        if k >= SETTLE:
            least = min(least, spent)
            inside = sim._kernel.contacting
            residuals.append(carried[:, -2])
            modes = carried[:, sim._kernel.lifted + inside.rows :][:, : inside.points]
            touching.append((modes > 0).mean())
            slipping.append((modes == 2).mean())
    residuals = np.concatenate(residuals)
    return {
        "robot": scene.name, "points": len(scene.plan.points), "steps_per_second": BATCH / least,
        "residual_median": float(np.median(residuals)),
        "residual_99.9": float(np.quantile(residuals, 0.999)),
        "touching": float(np.mean(touching)), "slipping": float(np.mean(slipping)),
        "finite": bool(np.isfinite(v).all()),
    }  # fmt: skip


def mujoco_steps(scene: Scene) -> float:
    """MuJoCo's steps a second of one robot standing on spheres at the same points."""
    import mujoco

    from .peers import mjcf

    text = mjcf(scene.model, None)
    spec = mujoco.MjSpec.from_string(text)
    plan = scene.plan
    for point, centre, radius in zip(plan.points, plan.centres, plan.radii, strict=True):
        spec.body(scene.model.bodies[point.body].name).add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[max(radius, 1e-3), 0, 0], pos=centre,
            friction=[point.friction, 0, 0], condim=3, mass=0.0,
        )  # fmt: skip
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    spec.option.timestep = DT
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:7] = scene.q[:7]
    for joint in scene.model.joints:
        if joint.nq == 1:
            number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
            if number >= 0:
                i = scene.model.body_of_joint(joint.name).index
                data.qpos[model.jnt_qposadr[number]] = scene.model.unpack(scene.q)[i][0]
    start = data.qpos.copy()
    best = np.inf
    for _ in range(5):
        data.qpos[:], data.qvel[:] = start, 0
        mujoco.mj_forward(model, data)
        begin = time.perf_counter()
        for _ in range(100):
            mujoco.mj_step(model, data)
        best = min(best, (time.perf_counter() - begin) / 100)
    return 1 / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="*", default=["mini_cheetah", "quadruped"])
    parser.add_argument("--sweeps", type=int, nargs="*", default=[3])
    parser.add_argument("--no-mujoco", action="store_true")
    options = parser.parse_args()
    for name in options.robots:
        scene = SCENES[name]()
        rival = None if options.no_mujoco else mujoco_steps(scene)
        for sweeps in options.sweeps:
            row = measure(scene, sweeps or None)
            text = (
                f"{name}, {sweeps or 'tolerance'} sweeps: {row['steps_per_second'] / 1e6:.3f} M/s"
            )
            if rival:
                text += f", MuJoCo {rival / 1e6:.3f} M/s"
            print(text, {k: v for k, v in row.items() if k not in ("robot", "steps_per_second")})


if __name__ == "__main__":
    main()
