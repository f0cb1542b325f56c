"""The main job in one minute: a robot with twelve geared rotors, computed exactly.

Loads MIT's Mini Cheetah, prints its tree, loops, clusters and mobility, computes forward and
inverse dynamics by independent methods, and shows what ignoring or approximating the rotors costs.
"""

from pathlib import Path

import numpy as np

import grubler as gb


def relative(x, y):
    return np.abs(x - y).max() / np.abs(y).max()


def main():
    model = gb.robots.load("mini_cheetah")
    print(model)

    q, v = model.random_state(seed=1)
    tau = np.random.default_rng(1).uniform(-5, 5, model.nv)
    a = gb.forward_dynamics(model, q, v, tau)

    print("\nforward dynamics: tau -> acceleration, relative distance from the Cluster ABA")
    for method, label in (
        ("projection", "projection (GᵀHG)⁻¹"),
        ("lagrange", "Lagrange multipliers"),
        ("mass_matrix", "cluster CRBA, factorized"),
    ):
        other = gb.forward_dynamics(model, q, v, tau, method=method)
        print(f"  {label:<26} {relative(other, a):.1e}")
    back = gb.inverse_dynamics(model, q, v, a)
    print(f"  {'Cluster RNEA gives back tau':<26} {relative(back, tau):.1e}")

    print("\nthe same torques, without treating the rotors exactly: error of the accelerations")
    for method, label in (("unconstrained", "rotors ignored"), ("approximate", "armature N² I")):
        other = gb.forward_dynamics(model, q, v, tau, method=method)
        error = np.abs(other - a)
        worst = int(np.argmax(error))
        print(
            f"  {label:<16} {100 * relative(other, a):6.1f} % of the largest acceleration, worst "
            f"{error[worst]:8.1f} at {model.v_names[worst]}"
        )

    print("\nthe torques that hold and move the legs (a = 0 at the base, 20 rad/s² at the joints)")
    wanted = np.concatenate([np.zeros(6), np.full(model.nv - 6, 20.0)])
    exact = gb.inverse_dynamics(model, q, v, wanted)[6:]
    for method, label in (("unconstrained", "rotors ignored"), ("approximate", "armature N² I")):
        other = gb.inverse_dynamics(model, q, v, wanted, method=method)[6:]
        rms = np.sqrt(np.mean((other - exact) ** 2))
        print(f"  {label:<16} RMS error {rms:.3f} N m of {np.abs(exact).max():.2f} N m at most")

    simulate(model)


def simulate(model):
    """Half a second of free fall with swinging legs, exact rotors and all."""
    q, v = model.random_state(seed=1)
    run = gb.Simulator(model, dt=1e-3, integrator="rk4").run(q, v, steps=500)
    drift = np.abs(run.energy - run.energy[0]).max() / run.kinetic.max()
    print(f"\nsimulated {run.time[-1]:g} s in steps of 1 ms: energy held to {drift:.0e}")
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    print(f"  trajectory: {run.save(folder / 'demo.npz')}")
    try:
        run.plot(folder / "demo.svg")
        print(f"  picture: {folder / 'demo.svg'}")
    except ImportError:
        print("  for a picture: .venv/bin/pip install -e .[plot]")
    saved = folder / "demo.npz"
    print(f"  look at it: .venv/bin/grubler view mini_cheetah --trajectory {saved} --open")


if __name__ == "__main__":
    main()
