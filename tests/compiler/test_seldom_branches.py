"""Branches: what is computed where a condition fails, in each lane for itself."""

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.algebra import symbolic
from grubler.compiler.backends.llvm.emitter import KEPT
from grubler.compiler.backends.llvm.lower import lower
from grubler.compiler.errors import DialectError
from grubler.compiler.ir.tape import evaluate, last_branch
from grubler.compiler.passes.schedule import asked_first, spread
from grubler.compiler.passes.simplify import optimize
from grubler.errors import InputError


def root_or(x, a):
    """A square root by Newton's steps where a is positive, else something else of its own."""
    start = np.ones(2) + 0.0 * x
    y = gc.iterate(lambda y, a: y - (y * y - a) / (2.0 * y), start, np.abs(a), count=8)
    z = gc.otherwise(np.logical_and(a[0] > 0.0, a[1] > 0.0), np.sin(x) + y, lambda: a / y - 3.0 * x)
    return z * 2.0, np.cos(z[0]) + y[1]


def samples(n=45):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), rng.normal(size=(n, 2))


@pytest.mark.parametrize("lanes", [1, 8])
def test_each_lane_takes_its_own(lanes):
    f = gc.compile_function(root_or, [2, 2], lanes=lanes)
    X, A = samples()
    found = f(X, A)
    taken = np.all(A > 0, axis=1)
    assert 5 < taken.sum() < 40
    for i in range(len(X)):
        for got, want in zip(found, root_or(X[i], A[i])):
            np.testing.assert_allclose(got[i], want, rtol=1e-13, atol=1e-13)


def seldom_negative(x, a):
    """A branch that gives all results, for states with a negative first element of x."""
    usual = np.concatenate([np.sin(x) + a, x * a])
    both = gc.otherwise(x[0] >= 0.0, usual, lambda: np.concatenate([np.cos(x) * a, a - x]))
    return both[:2], both[2:]


def beside_others(x, a):
    """A first result that no branch gives, which marks the states, and a branch for the others."""
    z = gc.otherwise(x[0] >= 0.0, x + a, lambda: x * a)
    return np.sin(a), z, gc.otherwise(x[1] >= 0.0, z * a, lambda: z - x)


@pytest.mark.parametrize("fn", [seldom_negative, beside_others])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 7, 8, 1023, 1024, 1025, 2100])
def test_states_that_take_a_branch_are_gathered(fn, share, count):
    """Whatever their number and place, on arrays of any strides, by one thread and by two: the same
    bits as alone; NaN stays NaN."""
    rng = np.random.default_rng(count)
    X, A = np.abs(rng.normal(size=(count, 2))), rng.normal(size=(count, 2))
    X[rng.random(count) < share] *= -1.0
    X[count // 2, 1] = np.nan
    alone = gc.compile_function(fn, [2, 2], lanes=1)(X, A)
    code = gc.compile_function(fn, [2, 2], lanes=8)
    columns = [np.asfortranarray(x) for x in (X, A)]
    strided = [np.repeat(x, 2, axis=0)[::2] for x in (X, A)]
    for given in ((X, A), columns, strided):
        for threads in (1, 2):
            for found, expected in zip(code(*given, threads=threads), alone, strict=True):
                np.testing.assert_array_equal(found, expected)
    one = code(X, A[0])  # one argument the same for all states
    for found, expected in zip(one, gc.compile_function(fn, [2, 2], lanes=1)(X, A[0])):
        np.testing.assert_array_equal(found, expected)


def test_the_same_bits_alone_and_together():
    f = gc.compile_function(root_or, [2, 2])
    X, A = samples()
    for got, x, a in zip(zip(*f(X, A)), X, A):
        for together, alone in zip(got, f(x, a)):
            np.testing.assert_array_equal(together, alone)


def test_tape():
    X, A = samples(9)
    tape = gc.trace(root_or, [2, 2])
    assert len(tape.branches) == len(tape.loops) == 1
    for x, a in zip(X, A):
        for got, want in zip(evaluate(tape, x, a), root_or(x, a)):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)
    other = gc.trace(lambda x, a: gc.otherwise(a[0] > 0.0, x, lambda: x + 1.0), [2, 2])
    one_more = gc.trace(lambda x, a: gc.otherwise(a[0] > 0.0, x, lambda: x + 2.0), [2, 2])
    assert other.digest() != one_more.digest()


def test_what_is_seldom_is_counted_apart():
    found = gc.count_operations(
        lambda x: gc.otherwise(x[0] > 0.0, 2.0 * x, lambda: np.sin(x) * x + x), [3]
    )
    assert (found.total, found.seldom) == (3 + 1, 3 * 3)


def test_inside_a_branch_and_inside_a_loop():
    def inner(x):
        return gc.otherwise(x[0] > 1.0, x * 0.5, lambda: 3.0 * x + 1.0)

    def fn(x):
        y = gc.iterate(inner, x, count=6)
        return gc.otherwise(y[0] > 2.0, y, lambda: inner(y) + inner(x))

    f = gc.compile_function(fn, [1])
    X = np.linspace(-1.0, 4.0, 40)[:, None]
    np.testing.assert_allclose(f(X), np.stack([fn(x) for x in X]), rtol=1e-13)


def nested(x, a):
    """Three deep: a loop's result, a branch's values and the arguments are read further in; the
    innermost has a loop of its own."""
    y = gc.iterate(lambda y, a: 0.5 * (y + a / y), 1.0 + 0.0 * x, 1.0 + np.abs(a), count=6)

    def outer():
        z, s = np.sin(a) * x + y, np.exp(-x * x)

        def middle():
            w = z * z + s

            def inner():
                return gc.iterate(lambda u, w: 0.5 * u + w, z, w, count=3) * y[::-1] + s

            return gc.otherwise(w[0] < 2.0, w - z * x, inner)

        return gc.otherwise(x[1] > 0.0, s - z, middle) + z[0]

    v = gc.otherwise(x[0] > 0.0, np.cos(x) * y, outer)
    return v * 2.0, gc.otherwise(a[0] > 0.0, v, lambda: v - y)


def test_nested_in_each_lane():
    X, A = samples(400)
    want = [np.stack(w) for w in zip(*[nested(x, a) for x, a in zip(X, A)])]
    third = [
        (np.sin(a) * x + np.sqrt(1 + np.abs(a)))[0] ** 2 + np.exp(-(x[0] ** 2)) > 2.0
        for x, a in zip(X, A)
    ]
    second = np.all(X <= 0.0, axis=1)
    assert min(np.sum(second & third), np.sum(second & np.logical_not(third))) > 20
    found = {lanes: gc.compile_function(nested, [2, 2], lanes=lanes)(X, A) for lanes in (1, 4, 8)}
    for one, four, eight, expected in zip(*found.values(), want):
        np.testing.assert_allclose(one, expected, rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(one, eight)
        np.testing.assert_array_equal(one, four)
    single = gc.compile_function(nested, [2, 2])
    for i in range(0, 400, 7):
        for one, alone in zip(found[1], single(X[i], A[i])):
            np.testing.assert_array_equal(one[i], alone)


def test_nested_tape():
    tape = gc.trace(nested, [2, 2])
    assert len(tape.branches) == 2 and len(tape.loops) == 1
    inside = tape.branches[0].step
    assert len(inside.branches) == 1 and not inside.loops
    assert len(inside.branches[0].step.branches) == 1
    innermost = inside.branches[0].step.branches[0].step
    assert len(innermost.loops) == 1 and tape.iterates and innermost.iterates
    # What the branches around have computed is not computed again.
    assert not {"sin", "exp"} & {ins[0] for ins in innermost.instructions}
    X, A = samples(60)
    for x, a in zip(X, A):
        for got, want in zip(evaluate(tape, x, a), nested(x, a)):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


def test_nothing_of_a_nested_branch_is_computed_outside():
    def fn(x):
        def rarely():
            y = np.tanh(x)
            return gc.otherwise(np.sin(y[0]) > 0.5, 2.0 * y, lambda: np.exp(y) * x)

        return gc.otherwise(x[0] > 0.0, x + 1.0, rarely)

    tape = gc.trace(fn, [3])
    ops = [{ins[0] for ins in t.instructions} for t in (tape, tape.branches[0].step)]
    assert not ops[0] & {"tanh", "sin", "exp"} and "exp" not in ops[1] and "sin" in ops[1]
    found = gc.count_operations(fn, [3])
    assert (found.total, found.seldom) == (3 + 1, 3 + 2 + 3 + 6)


def test_nested_in_a_loop():
    def step(x, a):
        return gc.otherwise(
            x[0] > 1.0,
            x * 0.5,
            lambda: gc.otherwise(x[0] + a[0] > 0.0, x + 0.7 * a, lambda: a * a - x * 1.5),
        )

    def fn(x, a):
        y = gc.iterate(step, x, a, count=9)
        return gc.otherwise(y[0] > 0.5, y, lambda: gc.iterate(step, y + a, a, count=3) + step(x, a))

    X, A = samples(200)
    found = gc.compile_function(fn, [2, 2])(X, A)
    np.testing.assert_array_equal(found, gc.compile_function(fn, [2, 2], lanes=1)(X, A))
    want = np.stack([fn(x, a) for x, a in zip(X, A)])
    np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-13)


def test_many_angles_serve_branches():
    """Sines that one state's kernel computes together are read by its branches, too."""

    def fn(q):
        def rarely():
            y = np.sin(q) - np.cos(q[::-1])
            return gc.otherwise(y[0] > 0.2, y, lambda: y * np.cos(q) + np.sin(2.0 * q))

        return gc.otherwise(q[0] > 0.3, np.sin(q) * np.cos(q), rarely)

    Q = np.random.default_rng(0).normal(size=(100, 12))
    want = np.stack([fn(q) for q in Q])
    for lanes in (1, 8):
        f = gc.compile_function(fn, [12], lanes=lanes)
        np.testing.assert_allclose(f(Q), want, rtol=1e-14, atol=1e-14)


def one_way_or_the_other(x, a):
    """All results come from a branch, whose condition is known early; one inside it likewise."""
    y = x * a
    late = np.tanh(y) - a

    def rarely():
        z = np.sin(y) + x
        w = gc.otherwise(z[0] > 0.5, np.exp(z), lambda: z * z - y)
        return np.concatenate([w, w])

    both = gc.otherwise(y[0] > 0.0, np.concatenate([late, late * x]), rarely)
    return both[:2], both[2:]


def test_a_single_state_goes_one_way_as_soon_as_it_is_known():
    tape = optimize(gc.trace(one_way_or_the_other, [2, 2]))
    k, fork = last_branch(tape)
    late = [i for i, ins in enumerate(tape.instructions) if ins[0] == "tanh"]
    assert tape.instructions[k][0] == "branch" and fork < min(late)
    aside, core = lower(tape, "float64", 1).split("@core(")
    before, after = core.split("\nseldom1:")
    seldom, usual = after.split("\nusual2:")
    assert "tanh" in usual and "tanh" not in before + seldom
    # What is seldom computed is a function of its own, the branch inside it a part of that.
    inside = aside.split("@seldom0(")[1]
    assert "call void @seldom0(" in seldom and "exp(" not in core
    assert "exp(" in inside and "\nusual" in inside
    assert "\nusual" not in lower(tape, "float64", 8)  # lanes go either way
    assert last_branch(gc.trace(root_or, [2, 2])) is None  # it computes more after the branch
    X, A = samples(200)
    want = [np.stack(w) for w in zip(*[one_way_or_the_other(x, a) for x, a in zip(X, A)])]
    found = {n: gc.compile_function(one_way_or_the_other, [2, 2], lanes=n)(X, A) for n in (1, 8)}
    for one, eight, expected in zip(*found.values(), want):
        np.testing.assert_allclose(one, expected, rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(one, eight)


def long_or_not(n):
    """n products in a row, unless a condition of six steps fails."""

    def fn(x):
        y = x * 1.5
        for i in range(n):
            y = y * (x + i)
        asked = x[0] * x[1] / (x[0] - x[1])
        return gc.otherwise(asked / (x[0] + asked) > 0.0, y, lambda: 3.0 * x)

    return fn


def test_little_is_asked_first():
    """A condition that depends on few values comes before all others: a processor that foretells it
    does not wait. One that depends on many is asked where it stands."""
    tape = optimize(gc.trace(long_or_not(40), [2]))
    first = asked_first(tape)
    assert 0 < len(first) < 12
    assert not asked_first(optimize(gc.trace(long_or_not(1), [2])))
    for single in (False, True):
        ordered = spread(tape, single, first)
        k, fork = last_branch(ordered)
        assert fork + 1 == len(first) < k
    core = lower(ordered, "float64", 1, 1, KEPT, True).split("@core(")[1]
    before, after = core.split("\nseldom1:")
    ahead = [i[0] for i in ordered.instructions[: fork + 1]]
    computed = sum(op not in ("const", "input", "lt") for op in ahead)
    assert before.count("@llvm.fake.use(double") == computed > 4 and "\nusual2:" in after
    code = {n: gc.compile_function(long_or_not(40), [2], lanes=n) for n in (1, 8)}
    X = np.random.default_rng(0).normal(size=(100, 2)) * 0.1
    expected = [long_or_not(40)(x) for x in X]
    np.testing.assert_allclose(code[1](X), expected, rtol=1e-13)
    np.testing.assert_array_equal(code[1](X), code[8](X))


def test_what_is_found_in_a_branch_stays_there():
    found = []

    def inner(x):
        found.append(gc.otherwise(x[0] > 1.0, x, lambda: 2.0 * x))
        return found[-1]

    with pytest.raises(DialectError, match="known only there"):
        gc.trace(lambda x: gc.otherwise(x[0] > 0.0, x, lambda: inner(x)) + found[-1], [2])


def test_floats_compute_one_side_only():
    def never():
        raise AssertionError

    assert gc.otherwise(True, 1.0, never) == 1.0
    assert gc.otherwise(np.float64(2.0) < 1.0, 1.0, lambda: 2.0) == 2.0


def test_a_casadi_function_computes_both():
    def fn(x):
        return gc.otherwise(x[0] > 0.0, x, lambda: x * x)

    def two_deep(x):
        return gc.otherwise(x[1] > 0.0, 2.0 * x, lambda: fn(x))

    h = gc.casadi_function(two_deep, [2])
    for x in np.random.default_rng(0).normal(size=(20, 2)):
        np.testing.assert_array_equal(np.array(h(x)).ravel(), two_deep(x))

    f = gc.casadi_function(fn, [2])
    g = symbolic.trace(fn, [(2,)])
    for x in (np.array([1.0, -3.0]), np.array([-2.0, 3.0])):
        np.testing.assert_array_equal(np.array(f(x)).ravel(), fn(x))
        np.testing.assert_array_equal(np.array(g(x)).ravel(), fn(x))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_function_knows_its_precision(dtype):
    def fn(x):
        return gc.iterate(lambda x: x + gc.precision(), x, count=2) + gc.precision()

    assert gc.compile_function(fn, [1], dtype=dtype)(np.zeros(1, dtype)) == 3 * np.finfo(dtype).eps
    assert gc.precision() == np.finfo(float).eps


def test_bad_branches():
    with pytest.raises(InputError, match="one size"):
        gc.trace(lambda x: gc.otherwise(x[0] > 0.0, x, lambda: x[:1]), [2])
    with pytest.raises(InputError, match="1-D"):
        gc.trace(lambda x: gc.otherwise(x[0, 0] > 0.0, x, lambda: x), [(2, 2)])
