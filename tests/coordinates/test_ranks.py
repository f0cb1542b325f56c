"""The rank of loops does not depend on the round-off of a description; a doubt is named."""

import numpy as np
import pytest

import grubler as gb
from conftest import load
from grubler.checks import check


def four_bar(tilt=0.0, size=1.0, seed=0, closing="revolute") -> gb.ModelBuilder:
    """A planar four-bar, its hinges tilted out of the normal by round-off, in rad."""
    b, rng = gb.ModelBuilder("four bar"), np.random.default_rng(seed)

    def axis():
        return np.array([0, 1, 0]) + tilt * rng.uniform(-1, 1, 3)

    for name, length in (("crank", 0.2), ("coupler", 0.45), ("follower", 0.4)):
        x = length * size
        b.add_body(name, length, (x / 2, 0, 0), np.array((1e-4, 0, 0, 1e-3, 0, 1e-3)) * size**2)
    b.add_joint("j1", "revolute", "world", "crank", axis=axis())
    b.add_joint("j2", "revolute", "crank", "coupler", xyz=(0.2 * size, 0, 0), axis=axis())
    b.add_joint("j3", "revolute", "world", "follower", xyz=(0.5 * size, 0, 0), axis=axis())
    b.add_loop("tip", closing, "coupler", "follower", axis=axis(),
               predecessor_xyz=(0.45 * size, 0, 0), successor_xyz=(0.4 * size, 0, 0))  # fmt: skip
    return b


@pytest.mark.parametrize("closing", ["revolute", "ball", "cylindrical"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tilt", [1e-7, 1e-6, 1e-5])
def test_round_off_of_axes_takes_no_freedom(tilt, seed, closing):
    """Five rows of rank 2 in the plane; hinges written with five to seven digits are of rank 5."""
    model = four_bar(tilt, seed=seed, closing=closing).build({"j1": 1.0, "j2": -0.5, "j3": 1.6})
    assert model.nv == 1
    (note,) = model.notes
    assert "round-off" in note and ("(mobility 1), as here, or as" in note or tilt < 1e-6)
    report = check(model, samples=3)
    assert report.ok and note in report.warnings and report.notes == model.notes
    assert sum(loop.added for loop in report.loops) == 2
    exact = four_bar(closing=closing).build({"j1": 1.0, "j2": -0.5, "j3": 1.6})
    q, _ = exact.random_state(seed)
    exact_q = exact.assemble(dict(zip(exact.q_names, q, strict=True)), fixed=exact.v_names)
    near = model.assemble(dict(zip(exact.q_names, q, strict=True)), fixed=exact.v_names)
    assert model.loop_gap(near) < 1e-12
    assert np.abs(near - exact_q).max() < 1e3 * tilt
    tau = gb.inverse_dynamics(model, near, np.ones(1), np.ones(1))
    due = gb.inverse_dynamics(exact, exact_q, np.ones(1), np.ones(1))
    assert np.abs(tau - due).max() < 1e4 * tilt


def test_round_off_of_axes_does_not_disturb_a_simulation():
    """Rows that are kept close to the last digit, and energy stays as in the exact mechanism."""
    model = four_bar(1e-5).build({"j1": 1.0, "j2": -0.5, "j3": 1.6})
    q, gap = gb.assemble(model, model.neutral() + 1e-3)
    assert gap < 1e-12 and model.loop_gap(q) < 1e-12
    run = gb.Simulator(model, dt=1e-3, integrator="rk4").run(model.neutral(), [0.5], steps=500)
    assert run.loop_gap.max() < 1e-11
    assert np.ptp(run.energy) < 1e-8 * np.ptp(run.kinetic)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_unit_of_length_does_not_matter(size):
    model = four_bar(size=size).build({"j1": 1.0, "j2": -0.5, "j3": 1.6})
    assert model.nv == 1 and not model.notes


def test_real_misalignment_is_a_constraint():
    """Hinges a hundredth of a radian out of the normal jam, or bind in fact: no freedom is made
    up."""
    with pytest.raises(gb.GrublerError):
        four_bar(1e-2).build({"j1": 1.0, "j2": -0.5, "j3": 1.6})


@pytest.mark.parametrize("pitch", [1e-1, 1e-3, 2e-4])
def test_a_fine_screw_is_a_constraint(pitch):
    """A nut on a screw of small pitch moves along as the screw turns: rank 1, without a doubt."""
    b = gb.ModelBuilder("screw")
    for name in ("screw", "nut"):
        b.add_body(name, 1.0, (0, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01))
    b.add_joint("turn", "helical", "world", "screw", axis=(0, 0, 1), pitch=pitch)
    b.add_joint("slide", "prismatic", "world", "nut", axis=(0, 0, 1))
    b.add_loop("thread", "inplane", "screw", "nut", axis=(0, 0, 1))
    model = b.build()
    assert model.nv == 1 and not model.notes


def test_nothing_is_in_doubt_in_the_zoo():
    for name in ("loop_sampler", "six_bar", "planar_leg_linkage", "parallel_four_bar"):
        assert not load(name).notes


def bennett(digits: int) -> gb.Model:
    """Bennett's linkage, four skew hinges that move because sin α / a = sin β / b; its numbers are
    written with so many digits."""
    alpha, beta, a = 0.7, 1.1, 0.3
    b = a * np.sin(beta) / np.sin(alpha)
    link = [(a, alpha), (b, beta), (a, alpha), (b, beta)]  # from hinge to hinge: length, twist
    builder, parent = gb.ModelBuilder("bennett"), "world"

    def frame(length, twist):
        return {"xyz": np.round((length, 0, 0), digits), "rpy": np.round((twist, 0, 0), digits)}

    for i in range(3):
        builder.add_body(f"l{i}", 1.0, (0.1, 0.02, 0.03), (0.02, 0, 0, 0.03, 0, 0.04))
        builder.add_joint(
            f"j{i}", "revolute", parent, f"l{i}", **frame(*(link[i - 1] if i else (0, 0)))
        )
        parent = f"l{i}"
    ends = {"predecessor": frame(*link[2]), "successor": frame(-link[3][0], -link[3][1])}
    options = {f"{end}_{key}": x for end, values in ends.items() for key, x in values.items()}
    builder.add_loop("close", "revolute", "l2", "world", **options)
    return builder.build({"j0": 1.0, "j1": 2.0, "j2": -1.0})


@pytest.mark.parametrize("digits", [15, 8, 6, 5, 4])
def test_an_overconstrained_linkage_moves_whatever_its_digits(digits):
    """Closed form: tan(θ₁/2) tan(θ₂/2) is constant, ± sin((β + α)/2) / sin((β - α)/2)."""
    model = bennett(digits)
    assert model.nv == 1 and bool(model.notes) == (digits < 15)
    ratio = np.sin((1.1 + 0.7) / 2) / np.sin((1.1 - 0.7) / 2)
    for seed in range(3):
        q, _ = model.random_state(seed)
        assert model.loop_gap(q) < 1e-12
        product = np.tan(q[0] / 2) * np.tan(q[1] / 2)
        near = min(abs(abs(product) - ratio), abs(abs(product) - 1 / ratio))
        assert near < 1e2 * 10.0**-digits + 1e-9
