"""The call's boundary: batches of any size and layout, out, bind, threads, and bad input."""

import ctypes
import gc as garbage
import mmap
import sys
import threading

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.compiler.backends.cpu import native
from grubler.errors import InputError


def formula(A, x, s):
    """Several outputs, matrices and a scalar: everything a signature may have."""
    y = A @ x
    return y * s[0], np.stack([y, y + s[1]]), y[0] * y[1]


SHAPES = [(2, 3), 3, 2]


@pytest.fixture(scope="module", params=["float64", "float32"])
def f(request):
    return gc.compile_function(formula, SHAPES, dtype=request.param, name="formula")


def data(f, n, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, *a.shape)).astype(f.dtype) for a in f.inputs]


def expected(arguments):
    rows = [formula(*state) for state in zip(*arguments)]
    return [np.array([row[i] for row in rows]) for i in range(3)]


def close(f, got, want):
    for g, w in zip(got, want):
        assert g.dtype == f.dtype
        np.testing.assert_allclose(g, w.reshape(g.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", range(71))
def test_any_batch_size(f, n):
    arguments = data(f, n)
    got = f(*arguments)
    assert [g.shape for g in got] == [(n, 2), (n, 2, 2), (n,)]
    if n:
        close(f, got, expected(arguments))


def test_a_state_gives_the_same_bits_alone_and_in_a_batch(dynamics):
    _, compiled, nq, nv = dynamics
    rng = np.random.default_rng(0)
    Q, V, T = (rng.normal(size=(29, n)) for n in (nq, nv, nv))
    batch = compiled(Q, V, T)
    for i in range(29):
        np.testing.assert_array_equal(compiled(Q[i], V[i], T[i]), batch[i])
    np.testing.assert_array_equal(compiled(Q, V, T, threads=3), batch)
    np.testing.assert_array_equal(compiled.structure_of_arrays(Q.T, V.T, T.T).T, batch)


def guarded(shape, dtype, at_end):
    """An array against a page that must not be touched, after it or before it."""
    page = mmap.PAGESIZE
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = -(-size // page) + 2
    memory = mmap.mmap(-1, pages * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(start, page, 0) == 0
    assert protect(start + (pages - 1) * page, page, 0) == 0
    offset = (pages - 1) * page - size if at_end else page
    array = np.frombuffer(memory, dtype, int(np.prod(shape)), offset).reshape(shape)
    return array, memory


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("n", [1, 3, 7, 8, 9, 15, 16, 17, 31, 33])
def test_nothing_outside_the_arrays_is_touched(f, dynamics, n, at_end):
    for compiled in (f, dynamics[1]):
        for last in (False, True):
            arguments, outputs, memories = [], [], []
            for array in (*compiled.inputs, *compiled.outputs):
                shape = (*array.shape, n) if last else (n, *array.shape)
                value, memory = guarded(shape, compiled.dtype, at_end)
                memories.append(memory)
                (arguments if len(arguments) < len(compiled.inputs) else outputs).append(value)
            for argument in arguments:
                argument[...] = np.random.default_rng(n).normal(size=argument.shape)
            call = compiled.structure_of_arrays if last else compiled
            call(*arguments, out=outputs if len(outputs) > 1 else outputs[0])
            rows = [np.moveaxis(a, -1, 0) if last else a for a in arguments]
            again = compiled(*[row.copy() for row in rows])
            for target, want in zip(outputs, again if isinstance(again, tuple) else (again,)):
                got = np.moveaxis(target, -1, 0) if last else target
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("threads", [1, 3])
def test_one_lane_in_place_and_not(threads):
    """Contiguous states are read and written where they are, others by way of scratch: an output
    without elements, one with one, arrays shared by all states, strides, columns."""

    def fn(A, b):
        return A @ b, np.stack([b[0] * b[1]]), b[:0], A.T * b[2]

    one = gc.compile_function(fn, [(2, 3), 3], lanes=1)
    rng = np.random.default_rng(4)
    A, b = rng.normal(size=(11, 2, 3)), rng.normal(size=(11, 3))
    wide, apart = np.zeros((11, 4, 6)), np.zeros((11, 6))
    wide[:, ::2, ::2], apart[:, ::2] = A, b
    expected = [np.stack(rows) for rows in zip(*(one(A[i], b[i]) for i in range(11)))]
    for given in ((A, b), (wide[:, ::2, ::2], b), (A, apart[:, ::2]), (A.copy("F"), b.copy("F"))):
        for got, want in zip(one(*given, threads=threads), expected):
            np.testing.assert_array_equal(got, want)
    for got, want in zip(one(A[3], b, threads=threads), one(np.stack([A[3]] * 11), b)):
        np.testing.assert_array_equal(got, want)
    transposed = np.zeros((2, 11)).T
    out = (transposed, np.zeros((11, 1)), np.zeros((11, 0)), np.zeros((11, 3, 2)))
    for got, want in zip(one(A, b, out=out, threads=threads), expected):
        np.testing.assert_array_equal(got, want)


def test_canaries_around_the_output_survive(f):
    for n in (1, 5, 8, 13, 40):
        arguments = data(f, n)
        frames = [np.full((n + 2, *a.shape), 7, f.dtype) for a in f.outputs]
        f(*arguments, out=[frame[1:-1] for frame in frames])
        assert all(np.all(frame[0] == 7) and np.all(frame[-1] == 7) for frame in frames)
        close(f, [frame[1:-1] for frame in frames], expected(arguments))


def test_single_state(f):
    arguments = [a[0] for a in data(f, 1)]
    got = f(*arguments)
    assert [g.shape for g in got] == [(2,), (2, 2), ()]
    close(f, got, [np.asarray(w) for w in formula(*arguments)])


def test_an_argument_may_be_the_same_for_all(f):
    A, x, s = data(f, 21)
    close(f, f(A[0], x, s), expected([np.broadcast_to(A[0], A.shape), x, s]))
    close(
        f,
        f(A, x[3], s[2], threads=2),
        expected([A, np.tile(x[3], (21, 1)), np.tile(s[2], (21, 1))]),
    )


def test_layouts_and_dtypes_are_converted(f):
    A, x, s = data(f, 19)
    want = expected([A, x, s])
    wide = np.zeros((19, 7), f.dtype)
    wide[:, 2:5] = x
    close(f, f(np.asfortranarray(A), wide[:, 2:5], s[::-1][::-1]), want)
    close(f, f(A.swapaxes(1, 2).copy().swapaxes(1, 2), x, s), want)
    other = "float32" if f.dtype == np.float64 else "float64"
    close(f, f(A.astype(other), x, s), want)
    close(f, f(A.tolist(), x.tolist(), s), want)
    close(f, f(A, x, s.astype(f.dtype.newbyteorder())), want)
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(f.dtype).reshape(x.shape)
    close(f, f(A, odd, s), want)
    whole = [np.round(a).astype(int) for a in (A, x, s)]
    close(f, f(*whole), expected(whole))


def test_structure_of_arrays(f):
    arguments = data(f, 23)
    got = f.structure_of_arrays(*[np.moveaxis(a, 0, -1).copy() for a in arguments])
    assert [g.shape for g in got] == [(2, 23), (2, 2, 23), (23,)]
    close(f, [np.moveaxis(g, -1, 0) for g in got], expected(arguments))
    out = [np.empty_like(g) for g in got]
    views = [np.moveaxis(a, 0, -1) for a in arguments]
    assert f.structure_of_arrays(*views, out=out, threads=2)[1] is out[1]
    close(f, out, got)


def test_out_is_written_and_returned(f):
    arguments = data(f, 12)
    out = [np.empty((12, *a.shape), f.dtype) for a in f.outputs]
    returned = f(*arguments, out=out)
    assert all(r is o for r, o in zip(returned, out))
    close(f, out, expected(arguments))


def test_out_may_overlap_the_arguments():
    g = gc.compile_function(lambda x, y: np.stack([x[1] + y[0], x[0], x[2] * 2]), [3, 3])
    X, Y = np.random.default_rng(0).normal(size=(2, 50, 3))
    want = g(X.copy(), Y)
    assert g(X, Y, out=X) is X
    np.testing.assert_array_equal(X, want)
    buffer = np.arange(160.0).reshape(-1)
    source, target = buffer[:150].reshape(50, 3), buffer[3:153].reshape(50, 3)
    want = g(source.copy(), Y)
    np.testing.assert_array_equal(g(source, Y, out=target), want)
    x = np.arange(3.0)
    np.testing.assert_array_equal(g(x, Y[0], out=x), g(np.arange(3.0), Y[0]))


def test_strided_out():
    g = gc.compile_function(lambda x: x * 2.0, [3])
    X = np.random.default_rng(0).normal(size=(20, 3))
    wide = np.zeros((20, 8))
    g(X, out=wide[:, 1:7:2])
    np.testing.assert_array_equal(wide[:, 1:7:2], X * 2)
    assert np.all(wide[:, ::2] == 0) and np.all(wide[:, 7] == 0)
    backwards = np.zeros((20, 3))[::-1, ::-1]
    np.testing.assert_array_equal(g(X, out=backwards), X * 2)
    column = np.zeros((3, 2))
    np.testing.assert_array_equal(g(X[0], out=column[:, 1]), X[0] * 2)


def test_bind(f):
    arguments = [a[0] for a in data(f, 1)]
    step = f.bind(*arguments)
    first = [r.copy() for r in step()]
    close(f, first, [np.asarray(w) for w in formula(*arguments)])
    arguments[1][:] = 2.0
    second = step()
    close(f, second, [np.asarray(w) for w in formula(*arguments)])
    assert step()[0] is second[0]


def test_bind_keeps_its_arrays_alive():
    g = gc.compile_function(lambda x: x * 2.0, [64])
    steps = g.bind(np.arange(64.0)), g.bind(np.tile(np.arange(64.0), (5, 1)))
    del g
    for step in steps:
        for _ in range(5):
            garbage.collect()
            np.testing.assert_array_equal(step().reshape(-1, 64)[-1], np.arange(64.0) * 2)
        out = step()
        before = sys.getrefcount(out)
        for _ in range(1000):
            step()
        assert sys.getrefcount(out) == before


def test_bind_a_batch(f):
    arguments = data(f, 33)
    out = [np.empty((33, *a.shape), f.dtype) for a in f.outputs]
    step = f.bind(*arguments, out=out, threads=2)
    assert step()[2] is out[2]
    close(f, out, expected(arguments))
    arguments[0][:] = 1.0
    close(f, step(), expected(arguments))


@pytest.mark.skipif(not native.AVAILABLE, reason="needs CPython's layouts")
def test_plain_batches_are_checked_in_machine_code(f, monkeypatch):
    """The careful path, taken with `threads`, and the fast one give the same; what the fast one
    cannot read is left to the other."""
    f.prepare()
    for n in (0, 1, 7, 8, 33):
        arguments = data(f, n)
        want = f(*arguments, threads=1)
        out = tuple(np.empty((n, *a.shape), f.dtype) for a in f.outputs)
        with monkeypatch.context() as patch:
            patch.setattr(f, "_call", lambda *_, **__: pytest.fail("took the careful path"))
            for got in (f(*arguments), f(*arguments, out=out), f(*arguments, out=list(out))):
                assert [g.tobytes() for g in got] == [w.tobytes() for w in want]
        assert all(o is g for o, g in zip(f(*arguments, out=out), out))
    mixed = [arguments[0].copy("F"), arguments[1].tolist(), arguments[2].astype("f8")]
    for got, w in zip(f(*mixed), want):
        np.testing.assert_array_equal(got, w)
    shared = f(arguments[0][3], *arguments[1:])
    np.testing.assert_array_equal(shared[0][3], want[0][3])


@pytest.mark.parametrize("out", [5, "text", {}, (), np.zeros(3), [None] * 3, np.zeros((4, 3, 1))])
def test_an_out_that_is_none_is_named(f, out):
    f.prepare()
    with pytest.raises(InputError, match="out"):
        f(*data(f, 4), out=out)


def test_a_batch_too_large_for_the_stack():
    g = gc.compile_function(lambda x: np.outer(x, x), [60]).prepare()
    X = np.random.default_rng(0).normal(size=(9, 60))
    np.testing.assert_array_equal(g(X), X[:, :, None] * X[:, None, :])


@pytest.mark.parametrize("bind", [True, False])
def test_a_batch_releases_the_gil(bind):
    g = gc.compile_function(lambda x: np.sin(np.exp(np.sin(x))), [8]).prepare()
    X, out = np.zeros((2, 400_000, 8))
    call = g.bind(X, out=out) if bind else lambda: g(X, out=out)
    thread, steps = threading.Thread(target=call), 0
    thread.start()
    while thread.is_alive():
        steps += 1
    assert steps > 1000


@pytest.mark.parametrize("broken", ["dtype", "list", "strided", "overlap", "number"])
def test_bind_refuses_what_it_cannot_read_in_place(broken):
    g = gc.compile_function(lambda x, y: x + y, [3, 3])
    x, y, out = np.zeros(3), np.zeros(3), np.zeros(3)
    cases = {
        "dtype": lambda: g.bind(x.astype("f4"), y),
        "list": lambda: g.bind([1.0, 2, 3], y),
        "strided": lambda: g.bind(np.zeros(6)[::2], y),
        "overlap": lambda: g.bind(x, y, out=x),
        "number": lambda: g.bind(x),
    }
    with pytest.raises(InputError):
        cases[broken]()
    assert g.bind(x, y, out=out)() is out


def test_without_native_methods(monkeypatch):
    monkeypatch.setattr(native, "AVAILABLE", False)
    g = gc.compile_function(lambda x: x * 3.0, [3])
    x = np.arange(3.0)
    np.testing.assert_array_equal(g(x), x * 3)
    step = g.bind(x)
    x[:] = 1
    np.testing.assert_array_equal(step(), [3.0, 3, 3])
    X = np.arange(30.0).reshape(10, 3)
    np.testing.assert_array_equal(g(X), X * 3)
    np.testing.assert_array_equal(g.bind(X)(), X * 3)


def test_many_threads_call_at_once(f):
    arguments = data(f, 100)
    want, failures = f(*arguments), []

    def work():
        for _ in range(30):
            for got, w in zip(f(*arguments, threads=2), want):
                if not np.array_equal(got, w):
                    failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_nan_passes_through(dynamics):
    _, compiled, nq, nv = dynamics
    rng = np.random.default_rng(0)
    Q, V, T = (rng.normal(size=(10, n)) for n in (nq, nv, nv))
    clean = compiled(Q, V, T)
    Q[4] = np.nan
    got = compiled(Q, V, T)
    assert np.all(np.isnan(got[4]))
    np.testing.assert_array_equal(np.delete(got, 4, 0), np.delete(clean, 4, 0))


BAD = {
    "shape": (lambda f, A, x, s: f(A, x[:, :2], s), r"'x' has shape \(5, 2\)"),
    "states": (lambda f, A, x, s: f(A, x[:4], s), "holds 4 states"),
    "complex": (lambda f, A, x, s: f(A, x + 1j, s), "complex"),
    "text": (lambda f, A, x, s: f(A, "abc", s), "'x'"),
    "ragged": (lambda f, A, x, s: f(A, [[1], [1, 2]], s), "'x'"),
    "none": (lambda f, A, x, s: f(A, None, s), "'x'"),
    "bool": (lambda f, A, x, s: f(A, x > 0, s), "bool"),
    "number": (lambda f, A, x, s: f(A, x), "takes 3 arguments"),
    "threads": (lambda f, A, x, s: f(A, x, s, threads=0), "threads"),
    "threads type": (lambda f, A, x, s: f(A, x, s, threads=1.5), "threads"),
    "out number": (lambda f, A, x, s: f(A, x, s, out=np.zeros((5, 2))), "tuple of 3"),
    "out type": (lambda f, A, x, s: f(A, x, s, out=[1, 2, 3]), "NumPy array"),
    "out shape": (lambda f, A, x, s: f(A, x, s, out=[np.zeros((4, 2), f.dtype)] * 3), "shape"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(f, case):
    call, message = BAD[case]
    with pytest.raises(InputError, match=message):
        call(f, *data(f, 5))


def test_bad_out(dynamics):
    g = gc.compile_function(lambda x: x * 2.0, [3])
    X, frozen = np.zeros((4, 3)), np.zeros((4, 3))
    frozen.flags.writeable = False
    with pytest.raises(InputError, match="read-only"):
        g(X, out=frozen)
    with pytest.raises(InputError, match="float32"):
        g(X, out=np.zeros((4, 3), "f4"))
    two = gc.compile_function(lambda x: (x, x * 2.0), [3])
    shared = np.zeros((4, 3))
    with pytest.raises(InputError, match="overlap"):
        two(X, out=(shared, shared))


def test_bad_options():
    fn = lambda x: x * 2.0  # noqa: E731
    with pytest.raises(InputError, match="float46"):
        gc.compile_function(fn, [3], dtype="float46")
    with pytest.raises(InputError, match="int32"):
        gc.compile_function(fn, [3], dtype="int32")
    with pytest.raises(InputError, match="lanes"):
        gc.compile_function(fn, [3], lanes=3)
    with pytest.raises(InputError, match="shape"):
        gc.compile_function(fn, [(1, 2, 3)])
    with pytest.raises(InputError, match="shapes"):
        gc.compile_function(fn, 3)
    with pytest.raises(InputError, match="names"):
        gc.compile_function(fn, [3], names=["a", "b"])


def test_empty_arguments_and_outputs():
    g = gc.compile_function(lambda x, y: (x * 2.0, y[:0], y), [0, 2])
    a, b, c = g(np.zeros(0), np.ones(2))
    assert a.shape == b.shape == (0,) and np.all(c == 1)
    a, b, c = g(np.zeros((9, 0)), np.ones((9, 2)))
    assert a.shape == b.shape == (9, 0) and np.all(c == 1)


def test_without_arguments_and_constant_outputs():
    g = gc.compile_function(lambda: np.arange(3.0), [])
    np.testing.assert_array_equal(g(), np.arange(3.0))
    np.testing.assert_array_equal(g.bind()(), np.arange(3.0))
    g = gc.compile_function(lambda x: (np.eye(2), x[0], 2.0), [1])
    a, b, c = g(np.ones((10, 1)))
    np.testing.assert_array_equal(a[7], np.eye(2))
    assert np.all(b == 1) and np.all(c == 2)
