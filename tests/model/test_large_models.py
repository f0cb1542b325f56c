"""Large models: what building and tracing do grows in proportion to the model.

Function calls are counted instead of seconds, so that a loaded machine changes nothing.
"""

import cProfile

import numpy as np
import pytest

import grubler as gb
from conftest import load
from grubler import compiler
from grubler.algebra import linalg, spatial


def calls(fn, *arguments) -> int:
    """How many functions are called, those of NumPy and CasADi included."""
    profile = cProfile.Profile()
    profile.runcall(fn, *arguments)
    return sum(entry.callcount for entry in profile.getstats())


def chain(links: int, welded: int = 0) -> gb.ModelBuilder:
    """A serial chain of hinges; behind every link hang `welded` bodies on fixed joints."""
    b, parent = gb.ModelBuilder("chain"), "world"
    for i in range(links):
        b.add_body(f"link{i}", 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        b.add_joint(f"joint{i}", "revolute", parent, f"link{i}", xyz=(0.1, 0.0, 0.2))
        parent = f"link{i}"
        for k in range(welded):
            b.add_body(f"part{i}_{k}", 0.1)
            b.add_joint(f"weld{i}_{k}", "fixed", parent, f"part{i}_{k}", xyz=(0.0, 0.1, 0.0))
    return b


def geared(pairs: int) -> gb.ModelBuilder:
    """Links and rotors on the world, in pairs that a gear couples."""
    b = gb.ModelBuilder("geared")
    for i in range(pairs):
        b.add_body(f"link{i}", 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        b.add_joint(f"joint{i}", "revolute", "world", f"link{i}")
        b.add_body(f"rotor{i}", 0.1, inertia=(0.01, 0, 0, 0.01, 0, 0.01))
        b.add_joint(f"spin{i}", "revolute", "world", f"rotor{i}")
        b.add_coupling(f"gear{i}", f"spin{i}", {f"joint{i}": 6.0})
    return b


@pytest.mark.parametrize("make", [chain, lambda n: chain(n, welded=3), geared])
def test_building_is_linear(make):
    few, many = (calls(make(n).build) for n in (50, 200))
    assert many < 4.4 * few


def test_a_long_chain_is_what_it_was_described_as():
    model = chain(1200, welded=1).build()
    assert model.nv == 1200 and len(model.frames) == 1200
    assert [body.parent for body in model.bodies] == list(range(-1, 1199))
    assert all(body.mass == pytest.approx(1.1) for body in model.bodies)


def test_a_cycle_far_from_the_world_is_named_link_by_link():
    b = gb.ModelBuilder("ring")
    for i in range(5):
        b.add_body(f"b{i}", 1.0)
        b.add_joint(f"j{i}", "revolute", "b2" if i == 4 else f"b{i + 1}", f"b{i}")
    with pytest.raises(gb.ModelError, match=r"b2 -> b3 -> b4 -> b2;"):
        b.build()


def banded(x, n: int, width: int = 2):
    """A matrix with symbols in a band along the diagonal, well conditioned without pivoting."""
    return np.stack([
        np.stack([
            x[i] * x[j] + 4.0 * (i == j) if abs(i - j) <= width else 0.0 for j in range(n)
        ])
        for i in range(n)
    ])  # fmt: skip


def test_solving_a_banded_system_is_traced_row_by_row():
    """n³/3 multiplications of zeros are not made, and a row is one operation."""

    def solved(n):
        return calls(compiler.trace, lambda x: linalg.solve_general(banded(x, n), np.eye(n)), [n])

    def made(n):
        return calls(compiler.trace, lambda x: banded(x, n), [n])

    assert solved(48) - made(48) < 5 * (solved(24) - made(24))


@pytest.mark.parametrize("order", [None, (2, 0, 3, 1)])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_solve_general_against_numpy(order, columns):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4)) + 4 * np.eye(4)
    A[3, 0] = A[1, 2] = 0.0
    B = rng.normal(size=(4, *columns))
    rows = list(order or range(4))
    permuted, right = np.empty_like(A), np.empty_like(B)
    permuted[rows], right[rows] = A, B
    expected = np.linalg.solve(A, B)
    assert np.allclose(linalg.solve_general(permuted, right, order), expected, rtol=0, atol=1e-14)
    shapes = [A.shape, B.shape]
    tape = compiler.trace(lambda a, b: linalg.solve_general(a, b, order), shapes)
    assert np.allclose(compiler.evaluate(tape, permuted, right)[0], expected, rtol=0, atol=1e-14)


PRIMITIVES = {
    "skew": (spatial.skew, [(3,)]),
    "cross": (spatial.cross, [(3,), (3,)]),
    "cross with a constant": (lambda x: spatial.cross(x, np.array([1.0, 0.0, -2.0])), [(3,)]),
    "constant cross": (lambda x: spatial.cross(np.array([0.0, 0.5, -2.0]), x), [(3,)]),
    "symmetric": (linalg.symmetric, [(4, 4)]),
    "rotation": (lambda x: spatial.axis_rotation(np.array([0.6, 0, -0.8]), x[0], x[1]), [(2,)]),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives_compute_on_symbols_what_they_do_on_floats(name):
    fn, shapes = PRIMITIVES[name]
    values = [np.random.default_rng(i).normal(size=shape) for i, shape in enumerate(shapes)]
    found = compiler.evaluate(compiler.trace(fn, shapes), *values)[0]
    assert found.tolist() == fn(*values).tolist()


def test_cross_and_symmetric_against_numpy():
    a, b, M = np.arange(3.0), np.array([2.0, -1.0, 0.5]), np.arange(9.0).reshape(3, 3)
    assert spatial.cross(a, b).tolist() == np.cross(a, b).tolist()
    assert (spatial.skew(a) @ b).tolist() == np.cross(a, b).tolist()
    assert linalg.symmetric(M).tolist() == [[0, 1, 2], [1, 4, 5], [2, 5, 8]]


def test_a_loop_sees_positions_that_are_overwritten_in_place():
    """A loop keeps the kinematics of the last q: by its numbers, not by the array."""
    model = load("six_bar")
    q, other = (model.random_state(seed)[0] for seed in (0, 1))
    for loop in model.loops:
        expected = [loop.residual(model.unpack(x)) for x in (q, other)]
        positions = {i: x.copy() for i, x in model.unpack(q).items()}
        K, _ = loop.linearize(positions, None)
        for i, x in model.unpack(other).items():
            positions[i][:] = x + 0.1
        assert np.abs(loop.residual(positions) - expected[0]).max() > 1e-3
        for i, x in model.unpack(q).items():
            positions[i][:] = x
        again, _ = loop.linearize(positions, None)
        assert all(K[i].tolist() == again[i].tolist() for i in K)
        assert loop.residual(positions).tolist() == expected[0].tolist()


def test_a_loop_on_complex_positions_is_not_the_one_on_floats():
    """Derivatives by complex steps go through the same loops."""
    model = load("four_bar")
    q, _ = model.random_state(3)
    positions, h = model.unpack(q), 1e-30
    for loop in model.loops:
        K, _ = loop.linearize(positions, None)
        for i in K:
            step = {j: x + 1j * h * (i == j) for j, x in positions.items()}
            assert np.allclose(loop.equations(step).imag / h, K[i][:, 0], rtol=0, atol=1e-13)
