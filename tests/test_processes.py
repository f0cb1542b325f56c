"""Other processes and threads: forks at any moment, pickles, compilers side by side."""

import copy
import gc
import multiprocessing as mp
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest

import grubler as gb
from conftest import load
from grubler.compiler import forks

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
METHODS = ["spawn", *(["fork"] if hasattr(os, "fork") else [])]
PATIENCE = 20  # s


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUBLER_CACHE_DIR", str(tmp_path / "cache"))


def forked(work) -> int:
    """The exit code of a child that does this work, or -1 where it hangs."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def batch(model, size=256):
    q, v = model.random_state(0)
    return np.tile(q, (size, 1)), np.tile(v, (size, 1)), np.ones((size, model.nv))


@FORKS
class TestForks:
    def test_threads_work_in_the_child(self):
        model = load("four_bar")
        f = gb.compile(gb.forward_dynamics, model)
        arguments = batch(model)
        expected = f(*arguments, threads=3)
        bound = f.bind(*arguments, threads=2)
        bound()

        def work():
            np.testing.assert_array_equal(f(*arguments, threads=3), expected)
            np.testing.assert_array_equal(bound(), expected)
            sim = gb.Simulator(model, batch=256, threads=2)
            sim.run(*arguments[:2], steps=3)
            assert forked(lambda: f(*arguments, threads=2)) == 0  # and in its child

        assert [forked(work) for _ in range(3)] == [0, 0, 0]
        np.testing.assert_array_equal(f(*arguments, threads=3), expected)

    @pytest.mark.parametrize("what", ["compile", "load"])
    def test_a_fork_while_threads_compile(self, what):
        """At whatever moment: the child compiles, too."""
        stop, failures = threading.Event(), []
        model = load("four_bar")
        factors = iter(range(1, 10**6))

        def compile_one():
            factor = 1.0 if what == "load" else float(next(factors))
            f = gb.compile(lambda model, q, v: factor * gb.bias_force(model, q, v), model)
            return f(*model.random_state(0)) / factor

        expected = compile_one()

        def check():
            np.testing.assert_allclose(compile_one(), expected, rtol=1e-12)

        def others():
            while not stop.is_set():
                try:
                    check()
                except BaseException as error:
                    failures.append(error)
                    raise

        threads = [threading.Thread(target=others) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            codes = []
            for i in range(8):
                time.sleep(0.013 * i)
                codes.append(forked(check))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert codes == [0] * 8 and not failures

    def test_a_program_that_another_thread_was_compiling(self):
        """Its lock must be free in the child, its tape whole or absent."""
        model = load("quadruped")
        f = gb.compile(lambda model, q, v, tau: -gb.forward_dynamics(model, q, v, tau), model)
        arguments = batch(model, 3)
        thread = threading.Thread(target=f, args=arguments)
        thread.start()
        time.sleep(0.05)
        assert forked(partial(f, *arguments)) == 0
        thread.join()

    def test_a_fork_inside_a_traced_function_does_not_wait_for_itself(self):
        model, codes = load("four_bar"), []

        def law(model, q):
            codes.append(forked(lambda: None))
            return 2.0 * q

        gb.compile(law, model)(model.neutral())
        assert codes and set(codes) == {0}

    def test_a_thread_that_died_inside_keeps_no_fork_waiting(self):
        thread = threading.Thread(target=forks.uninterrupted().__enter__)
        thread.start()
        thread.join()
        assert forked(lambda: None) == 0

    @pytest.mark.parametrize("number", [1, 4])
    def test_pools_of_forked_workers(self, number):
        """What users do: threads in the parent, then a pool."""
        code = textwrap.dedent(
            f"""
            import multiprocessing as mp, numpy as np, grubler as gb
            model = gb.robots.load("four_bar")
            f = gb.compile(gb.mass_matrix, model)
            q = np.tile(model.neutral(), (64, 1))
            f(q, threads=2)
            with mp.get_context("fork").Pool({number}) as pool:
                total = sum(pool.map(lambda_free, range(8)))
            assert np.isclose(total, 8 * f(q).sum())
            """
        ).replace("with mp", "def lambda_free(i):\n    return f(q, threads=2).sum()\nwith mp")
        run = subprocess.run(
            [sys.executable, "-c", code], timeout=PATIENCE, env=os.environ, check=False
        )
        assert run.returncode == 0


def law(t, q, v):
    return -0.3 * v


def twice(model, q, v):
    return 2.0 * v


def functions():
    """Compiled functions of every origin, with arguments."""
    model = load("four_bar")
    q, v = model.random_state(2)
    gain = 3.0
    for fn, options, arguments in (
        (gb.forward_dynamics, {}, (q, v, np.ones(1))),
        (gb.forward_dynamics, {"dtype": "float32", "lanes": 2}, (q, v, np.ones(1))),
        (gb.inverse_dynamics, {"method": "auto"}, (q, v, np.ones(1))),
        (gb.mass_matrix, {"parameters": ["mass"]}, (q, gb.parameter_values(model, "mass"))),
        (gb.energy, {}, (q, v)),
        (gb.assemble, {}, (q,)),
        (twice, {"key": "twice"}, (q, v)),
        (twice, {}, (q, v)),
        (lambda model, q, v: gain * v, {}, (q, v)),
        (lambda model, q, v: gain * v, {"key": "gain"}, (q, v)),
    ):
        yield gb.compile(fn, model, **options), arguments


def call(f, *arguments):
    return f(*arguments)


def call_batch(f, *arguments):
    return f(*(np.stack([a] * 5) for a in arguments))


def same(a, b):
    a, b = (x if isinstance(x, tuple) else (x,) for x in (a, b))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


class TestPickles:
    @pytest.mark.parametrize("called", [False, True])
    def test_compiled_functions(self, called):
        for f, arguments in functions():
            if called:
                f(*arguments)
            other = pickle.loads(pickle.dumps(f))
            again = pickle.loads(pickle.dumps(other))
            for g in (other, again, copy.copy(f), copy.deepcopy(f)):
                assert repr(g) == repr(f) and g.__doc__ == f.__doc__ and g.name == f.name
                same(g(*arguments), f(*arguments))
                same(call_batch(g, *arguments), call_batch(f, *arguments))

    def test_without_a_cache(self, monkeypatch):
        monkeypatch.setenv("GRUBLER_CACHE_DIR", "")
        for f, arguments in functions():
            same(pickle.loads(pickle.dumps(f))(*arguments), f(*arguments))

    @pytest.mark.parametrize("method", METHODS)
    def test_arrive_in_workers(self, method):
        with mp.get_context(method).Pool(1) as pool:
            for f, arguments in functions():
                same(pool.apply(call, (f, *arguments)), f(*arguments))
                same(pool.apply(call_batch, (f, *arguments)), call_batch(f, *arguments))

    def test_arrive_in_futures(self):
        f, arguments = next(functions())
        with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as pool:
            same(pool.submit(call, f, *arguments).result(PATIENCE), f(*arguments))

    def test_functions_for_a_gpu(self):
        model = load("four_bar")
        f = gb.compile(gb.forward_dynamics, model, target="cuda")
        other = pickle.loads(pickle.dumps(f))
        assert repr(other) == repr(f) and other.chosen == f.chosen and other.ptx() == f.ptx()

    def test_nothing_is_compiled_again(self, monkeypatch):
        """The other process loads what this one compiled, without tracing."""
        f = gb.compile(gb.forward_dynamics, load("four_bar"))
        f.prepare(batch=False)
        data = pickle.dumps(f)
        code = (
            "import pickle, sys, logging, numpy as np, io; log = io.StringIO();"
            "logging.basicConfig(level=logging.DEBUG, stream=log);"
            f"f = pickle.loads({data!r}); f.prepare(batch=False);"
            "sys.exit(any(w in log.getvalue() for w in ('trace', 'compile', 'emit')))"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)

    @pytest.mark.parametrize("threads", [None, 2])
    @pytest.mark.parametrize("size", [None, 7, 64])
    def test_bound_calls(self, size, threads):
        if size is None and threads:
            return
        model = load("four_bar")
        f = gb.compile(gb.forward_dynamics, model)
        q, v = model.random_state(2)
        arguments = [q, v, np.ones(1)]
        if size:
            arguments = [np.stack([a] * size) for a in arguments]
        bound = f.bind(*arguments, threads=threads)
        expected = bound().copy()
        other, tau = pickle.loads(pickle.dumps((bound, arguments[2])))
        result = other()
        np.testing.assert_array_equal(result, expected)
        assert other() is result and result is not bound()
        tau[...] = 2.0  # the arrays that came with it are those that it reads
        arguments[2][...] = 2.0
        np.testing.assert_array_equal(other(), bound())
        assert not np.array_equal(result, expected)

    def test_bound_calls_of_several_outputs(self):
        model = load("four_bar")
        f = gb.compile(gb.energy, model)
        bound = f.bind(*model.random_state(1))
        same(pickle.loads(pickle.dumps(bound))(), bound())

    @pytest.mark.parametrize("method", METHODS)
    def test_bound_calls_arrive_in_workers(self, method):
        model = load("four_bar")
        f = gb.compile(gb.forward_dynamics, model)
        bound = f.bind(*batch(model, 9))
        with mp.get_context(method).Pool(1) as pool:
            same(pool.apply(bound), bound())

    def test_bound_calls_free_their_arrays(self):
        model = load("four_bar")
        f = gb.compile(gb.mass_matrix, model)
        q = model.neutral()
        seen = weakref.ref(q)
        bound = f.bind(q)
        bound()
        gc.disable()  # without waiting for the collector
        try:
            del q, bound
            assert seen() is None
        finally:
            gc.enable()

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize(
        "options",
        [
            {}, {"integrator": "rk4", "substeps": 3}, {"dtype": "float32"},
            {"passive": gb.Passive({"crank": 0.4})}, {"control": law}, {"batch": 3, "threads": 2},
        ],
        ids=lambda options: " ".join(options) or "plain",
    )  # fmt: skip
    def test_simulators_arrive_in_workers(self, method, options):
        model = load("four_bar")
        sim = gb.Simulator(model, 2e-3, **options)
        state = model.random_state(3)
        here = sim.run(*state, steps=20)
        with mp.get_context(method).Pool(1) as pool:
            there = pool.apply(run_simulator, (sim, state))
        same((here.q, here.v), (there.q, there.v))


def run_simulator(sim, state):
    return sim.run(*state, steps=20)


class TestThreads:
    def test_compile_side_by_side(self):
        """The same function and others, from several threads at once."""
        model = load("four_bar")
        q, v = model.random_state(0)
        robots = [load(name) for name in ("six_bar", "planar_leg_linkage", "four_bar")]
        expected = [gb.bias_force(m, *m.random_state(0)) for m in robots]
        shared = gb.compile(lambda model, q, v: 1.0 * gb.bias_force(model, q, v), model)
        start, failures = threading.Barrier(4), []

        def work():
            start.wait()
            try:
                same(shared(q, v), shared(q, v))
                np.testing.assert_allclose(shared(q, v), expected[2], rtol=1e-12)
                for m, x in zip(robots, expected):
                    f = gb.compile(gb.bias_force, m)
                    np.testing.assert_allclose(f(*m.random_state(0)), x, rtol=1e-11)
                    assert gb.count_operations(gb.bias_force, m).total > 50
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
